//! Many publishers to one subscriber that aligns their messages by time: a monitor, beside a plain subscriber.

use std::path::Path;

use nix::sys::signal::Signal;
use serde::Serialize;

use super::{LIMIT, Plan, end, open, rate, result};
use crate::child::{Child, Ended, Stdout};
use crate::failure::{Result, same};
use crate::link::{Link, Network, PATIENCE, free_port};
use crate::program;
use crate::runs::Runs;
use crate::say;
use crate::table::{Table, groups, median};
use crate::traces::Folder;

/// The topic of markers.
const PROGRESS: &str = "throughput/progress";
/// The size of messages: `{"t":…}` with microseconds.
const BYTES: usize = 22;

/// The subscriber of all publishers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Subscriber {
    /// It counts messages as they arrive.
    Plain,
    /// A monitor that waits at most 5 ms for a message.
    Wait,
    /// A monitor that waits for progress markers.
    Markers,
}

const SUBSCRIBERS: [Subscriber; 3] = [Subscriber::Plain, Subscriber::Wait, Subscriber::Markers];

impl Subscriber {
    /// Returns the name for people.
    fn name(self) -> &'static str {
        match self {
            Subscriber::Plain => "plain subscriber",
            Subscriber::Wait => "monitor, max_wait 5 ms",
            Subscriber::Markers => "monitor, markers",
        }
    }

    /// Returns the settings of alignment in a deployment.
    fn alignment(self, network: Network) -> String {
        // A limit of waiting messages would release them early.
        let all = "late: drop, absent_after: never, queue: 10000000";
        match self {
            Subscriber::Markers => {
                format!("{{ {all}, max_wait: none, progress: \"{}\" }}", network.address(PROGRESS))
            }
            Subscriber::Plain | Subscriber::Wait => format!("{{ {all}, max_wait: 5 ms }}"),
        }
    }
}

/// A run of a subscriber.
#[derive(Clone, Debug, Serialize)]
pub struct Aligned {
    /// The network.
    pub network: Network,
    /// The subscriber.
    pub subscriber: Subscriber,
    /// The number of publishers, each with a topic of its own.
    pub publishers: usize,
    /// The size of messages.
    pub bytes: usize,
    /// The turn, from 0.
    pub turn: usize,
    /// The number of messages that the subscriber has received.
    pub received: u64,
    /// The number of late messages, which were dropped.
    pub late: u64,
    /// The time of the subscriber from its first message to its last, in seconds.
    pub seconds: f64,
    /// Messages received per second.
    pub rate: f64,
}

fn topic(number: usize) -> String {
    format!("throughput/{number}")
}

/// Returns a specification with a property over all topics.
fn specification(publishers: usize) -> String {
    let topics =
        (0..publishers).map(|number| format!("topic t{number} \"{}\" {{ t: int }}\n", topic(number)));
    let formula: Vec<String> = (0..publishers).map(|number| format!("t{number}.t >= 0")).collect();
    format!("{}property stamped = {}\n", topics.collect::<String>(), formula.join(" and "))
}

/// Returns the deployment of the monitor: `section` is that of the network.
fn deployment(network: Network, section: &str, subscriber: Subscriber, publishers: usize) -> String {
    let mut text = format!("specification: throughput.rondel\n{section}topics:\n");
    for number in 0..publishers {
        let source = network.address(&topic(number));
        text += &format!("  t{number}: {{ source: \"{source}\", time: t, time_unit: us }}\n");
    }
    text + &format!("alignment: {}\nverdicts: {{ to: stdout }}\n", subscriber.alignment(network))
}

/// Returns the number of late messages in the summary of a monitor.
fn late(ended: &Ended) -> Result<u64> {
    let late = ended.object().and_then(|summary| summary["alignment"]["late"].as_u64());
    late.ok_or_else(|| ended.failed("the monitor"))
}

/// Measures every subscriber with every number of publishers on every network, by turns.
///
/// # Errors
/// When a network cannot be used, or messages are missing or come twice.
pub fn measure(rondel: &Path, plan: &Plan, runs: &mut Runs) -> Result<Vec<Aligned>> {
    let mut all = Vec::new();
    for turn in 0..plan.repeat.max(1) {
        for &network in &plan.networks {
            for &publishers in &plan.aligned {
                for subscriber in SUBSCRIBERS {
                    let run = run(rondel, plan, network, subscriber, publishers, turn)?;
                    say(&format!(
                        "{}, {publishers} publishers, {}: {:.0} messages/s, {} late",
                        network.name(),
                        subscriber.name(),
                        run.rate,
                        run.late
                    ));
                    runs.add(&run)?;
                    all.push(run);
                }
            }
        }
    }
    Ok(all)
}

fn run(
    rondel: &Path,
    plan: &Plan,
    network: Network,
    subscriber: Subscriber,
    publishers: usize,
    turn: usize,
) -> Result<Aligned> {
    let folder = Folder::new("throughput")?;
    let each = (plan.messages / publishers.max(1) as u64).max(1);
    let expected = each * publishers as u64;
    let link = open(network)?;
    let endpoint = format!("tcp/127.0.0.1:{}", free_port()?);
    let listen = || format!("zenoh: {{ listen: {endpoint} }}\n");
    let (own, mut arguments) = if subscriber == Subscriber::Plain {
        let mut arguments: Vec<String> = ["peer", "sink", "--sources=0"].map(str::to_owned).into();
        arguments
            .extend((0..publishers).map(|number| format!("--topic={}", network.address(&topic(number)))));
        match &link {
            Some(link) => arguments.extend(link.join()),
            None => arguments.push(format!("--zenoh-listen={endpoint}")),
        }
        (program::own()?, arguments)
    } else {
        folder.write("throughput.rondel", specification(publishers).as_bytes())?;
        let section = link.as_ref().map_or_else(listen, Link::section);
        let text = deployment(network, &section, subscriber, publishers);
        let path = folder.write("throughput.yaml", text.as_bytes())?;
        let mut arguments: Vec<String> = ["run", "--summary=json", "--no-control"].map(str::to_owned).into();
        arguments.push(path.display().to_string());
        (rondel.to_owned(), arguments)
    };
    arguments.push(format!("--count={expected}"));
    let mut sink = Child::start(subscriber.name(), &own, &arguments, Stdout::Nothing)?;
    sink.wait_for("ready", PATIENCE)?;
    let joins: Vec<String> = match &link {
        Some(link) => link.join().collect(),
        None => vec![format!("--zenoh-connect={endpoint}")],
    };
    let feeds = feeds(network, subscriber, publishers, each, &joins)?;
    for feed in &feeds {
        feed.signal(Signal::SIGUSR1)?;
    }
    let (received, seconds, late) = if subscriber == Subscriber::Plain {
        let found = result(sink)?;
        (found.received, found.seconds, 0)
    } else {
        let ended = sink.wait(LIMIT)?;
        let summary = ended.summary(subscriber.name())?;
        same(|| "messages lost by the monitor".to_owned(), 0, summary.dropped)?;
        (summary.received, summary.seconds, late(&ended)?)
    };
    same(|| format!("messages of the {}", subscriber.name()), expected, received)?;
    end(feeds, "a publisher", link)?;
    let rate = rate(received, seconds);
    Ok(Aligned { network, subscriber, publishers, bytes: BYTES, turn, received, late, seconds, rate })
}

/// Starts the publishers, and waits until all are ready.
fn feeds(
    network: Network,
    subscriber: Subscriber,
    publishers: usize,
    each: u64,
    joins: &[String],
) -> Result<Vec<Child>> {
    let own = program::own()?;
    let mut feeds = Vec::new();
    for number in 0..publishers {
        let mut arguments: Vec<String> = ["peer", "feed"].map(str::to_owned).into();
        arguments.push(format!("--topic={}", network.address(&topic(number))));
        arguments.push(format!("--count={each}"));
        if subscriber == Subscriber::Markers {
            arguments.push(format!("--progress={}", network.address(PROGRESS)));
            arguments.push(format!("--name=t{number}"));
        }
        arguments.extend_from_slice(joins);
        feeds.push(Child::start("feed", &own, &arguments, Stdout::Nothing)?);
    }
    for feed in &mut feeds {
        feed.wait_for("ready", PATIENCE)?;
    }
    Ok(feeds)
}

/// Returns the table.
pub fn table(runs: &[Aligned]) -> Table {
    let heads = ["network", "publishers", "subscriber", "messages/s", "of plain", "late %"];
    let mut table = Table::new("S2 with alignment by time", &heads);
    for ((network, publishers), here) in groups(runs, |run| (run.network, run.publishers)) {
        let of = |subscriber: Subscriber| here.iter().filter(move |run| run.subscriber == subscriber);
        let rate = |subscriber: Subscriber| median(&of(subscriber).map(|run| run.rate).collect::<Vec<_>>());
        for subscriber in SUBSCRIBERS {
            let late: u64 = of(subscriber).map(|run| run.late).sum();
            let received: u64 = of(subscriber).map(|run| run.received).sum();
            table.row(vec![
                network.name().to_owned(),
                publishers.to_string(),
                subscriber.name().to_owned(),
                format!("{:.0}", rate(subscriber)),
                format!("{:.2}", rate(subscriber) / rate(Subscriber::Plain)),
                format!("{:.2}", late as f64 / received.max(1) as f64 * 100.0),
            ]);
        }
    }
    table.note(
        "Each publisher has a topic and a clock reading in each message, of 22 bytes: four bytes have no room for a time. \
         Medians of the turns, from the first message at the subscriber to the last.",
    );
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aligned(subscriber: Subscriber, rate: f64, late: u64) -> Aligned {
        let (network, bytes) = (Network::Zenoh, BYTES);
        Aligned {
            network,
            subscriber,
            publishers: 2,
            bytes,
            turn: 0,
            received: 100,
            late,
            seconds: 1.0,
            rate,
        }
    }

    #[test]
    fn rates_are_compared_with_the_plain_subscriber() {
        let runs = [
            aligned(Subscriber::Plain, 100.0, 0),
            aligned(Subscriber::Plain, 300.0, 0),
            aligned(Subscriber::Wait, 50.0, 3),
        ];
        let text = table(&runs).markdown();
        assert!(text.contains("| Zenoh | 2 | plain subscriber | 200 | 1.00 | 0.00 |"), "{text}");
        assert!(text.contains("| Zenoh | 2 | monitor, max_wait 5 ms | 50 | 0.25 | 3.00 |"), "{text}");
    }

    #[test]
    fn the_monitor_reads_every_topic() {
        let text = specification(2);
        assert!(text.contains("topic t1 \"throughput/1\" { t: int }\n"), "{text}");
        assert!(text.ends_with("property stamped = t0.t >= 0 and t1.t >= 0\n"), "{text}");
        let markers = deployment(Network::Dds, "dds: {}\n", Subscriber::Markers, 2);
        assert!(
            markers.contains("  t1: { source: \"dds:throughput/1\", time: t, time_unit: us }\n"),
            "{markers}"
        );
        assert!(markers.contains("max_wait: none, progress: \"dds:throughput/progress\""), "{markers}");
        let wait = deployment(Network::Zenoh, "zenoh: {}\n", Subscriber::Wait, 1);
        assert!(wait.contains("max_wait: 5 ms") && !wait.contains("progress"), "{wait}");
    }

    #[test]
    fn late_messages_are_those_of_the_summary() {
        let ended = |line: &str| Ended {
            status: Some(0),
            seconds: 1.0,
            cpu_seconds: 0.1,
            lines: 0,
            log: vec!["ready".to_owned(), line.to_owned()],
        };
        assert_eq!(late(&ended(r#"{"alignment":{"late":7}}"#)).unwrap(), 7);
        assert!(late(&ended(r#"{"alignment":null}"#)).is_err());
        assert!(late(&ended("stopped")).is_err());
    }
}
