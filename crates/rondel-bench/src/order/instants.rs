//! Instants of two nodes: each publishes a message with the same time on a topic of its own, and one computation needs both.

use std::time::{Duration, Instant};

use clap::Args;
use nix::sys::signal::Signal;
use rondel_event::Timestamp;
use rondel_net::adapter::now;
use serde::Serialize;

use super::record::{self, Recording};
use super::sender::{Send, Topic, wait_until};
use super::setting::{Outcome, SETTINGS, Setting, replay};
use super::{Plan, SEND, TOPICS, period};
use crate::begin::Begin;
use crate::child::{Child, Stdout};
use crate::failure::Result;
use crate::join::Join;
use crate::link::{Link, Network, PATIENCE};
use crate::report::Mark;
use crate::table::{Table, quantile};
use crate::{program, say};

/// Both nodes begin at a multiple of this time.
const GRID: Duration = Duration::from_millis(100);

/// Publish a message on one topic at each instant, from the signal SIGUSR1 on
#[derive(Debug, Args)]
pub struct Node {
    /// Join this network
    #[arg(long, value_enum)]
    on: Network,
    /// Publish on this topic
    #[arg(long)]
    topic: String,
    /// Have an instant every N nanoseconds
    #[arg(long)]
    period: u64,
    /// Publish at N instants
    #[arg(long)]
    count: u64,
    #[command(flatten)]
    network: Join,
}

impl Node {
    /// Publishes at all instants.
    ///
    /// # Errors
    /// When the network cannot be used, or the signal does not come.
    pub fn run(&self) -> Result<()> {
        let begin = Begin::register()?;
        let mut topic = Topic::open(self.on, &self.network, &self.topic)?;
        topic.warm_up()?;
        say("ready");
        begin.wait()?;
        let begun = now().as_nanos();
        let begin = first(begun);
        let started = Instant::now() + Duration::from_nanos((begin - begun).unsigned_abs());
        topic.send(Send::Complete(Timestamp::from_nanos(begin - 1)))?;
        for number in 0..self.count {
            let passed = self.period.saturating_mul(number);
            wait_until(started + Duration::from_nanos(passed));
            let stamp = Timestamp::from_nanos(begin.saturating_add_unsigned(passed));
            topic.send(Send::Event { number, stamp })?;
            topic.send(Send::Complete(stamp))?;
        }
        topic.close();
        Ok(())
    }
}

/// Returns the first instant of a node that begins at this time: the same one for times in the same interval of the grid.
fn first(begun: i64) -> i64 {
    let grid = GRID.as_nanos() as i64;
    (begun / grid + 1) * grid
}

/// The results for one network and period.
#[derive(Clone, Debug, Serialize)]
pub struct Instants {
    /// The network.
    pub network: Network,
    /// Microseconds from one instant to the next.
    pub period_us: f64,
    /// The number of instants.
    pub instants: u64,
    /// The number of messages that arrived.
    pub arrived: u64,
    /// The result of each setting.
    pub settings: Vec<Computed>,
}

/// The result of one setting.
#[derive(Clone, Debug, Serialize)]
pub struct Computed {
    /// The setting.
    pub setting: Setting,
    /// The number of instants without a computation on the messages of both nodes.
    pub mixed: u64,
    /// The number of late messages, which were dropped.
    pub late: u64,
    /// Microseconds from an instant until the release of a message: median, 99th percentile, maximum.
    pub latency_us: [f64; 3],
}

/// Returns the number of computations on two messages of one instant. Without alignment it runs at each message of the
/// first topic, on the newest one of the second; by time, once an instant is complete.
fn computed(outcome: &Outcome, setting: Setting) -> u64 {
    let mut newest = [None; TOPICS.len()];
    let mut computed = 0;
    for release in &outcome.releases {
        let topic = release.topic.index();
        newest[topic] = Some(release.sent);
        let is_run = setting != Setting::Arrival || topic == 0;
        computed += u64::from(is_run && newest[0] == newest[1]);
    }
    computed
}

/// Measures one network and period.
///
/// # Errors
/// When the network cannot be used.
pub fn measure(link: &Link, network: Network, every: Duration, plan: &Plan) -> Result<Instants> {
    let in_time = plan.seconds / every.as_secs_f64().max(1e-9);
    let instants = (plan.events / TOPICS.len() as u64).min(in_time as u64).max(1);
    let recording = Recording::start(link)?;
    let mut nodes = Vec::new();
    for topic in TOPICS {
        let mut arguments: Vec<String> = ["peer", "node", "--on", network.scheme()].map(str::to_owned).into();
        arguments.push(format!("--topic={topic}"));
        arguments.push(format!("--period={}", every.as_nanos()));
        arguments.push(format!("--count={instants}"));
        arguments.extend(link.join());
        nodes.push(Child::start("node", &program::own()?, &arguments, Stdout::Nothing)?);
    }
    for node in &mut nodes {
        node.wait_for("ready", PATIENCE)?;
    }
    // Early in an interval of the grid, so that both begin in the same one.
    std::thread::sleep(Duration::from_nanos(
        (first(now().as_nanos()) - now().as_nanos()).max(0).unsigned_abs(),
    ));
    for node in &nodes {
        node.signal(Signal::SIGUSR1)?;
    }
    let limit = SEND + every * u32::try_from(instants).unwrap_or(u32::MAX) * 2;
    for node in nodes {
        node.wait(limit)?.succeeded("node")?;
    }
    // A marker for each message, and one before the first.
    let arrivals = recording.end((2 * instants + 1) as usize * TOPICS.len());
    let settings = SETTINGS.map(|setting| {
        let outcome = replay(&arrivals, setting);
        let latencies: Vec<f64> = outcome.latencies().map(|ns| ns as f64 / 1e3).collect();
        Computed {
            setting,
            mixed: instants.saturating_sub(computed(&outcome, setting)),
            late: outcome.late,
            latency_us: [0.5, 0.99, 1.0].map(|part| quantile(&latencies, part)),
        }
    });
    Ok(Instants {
        network,
        period_us: every.as_secs_f64() * 1e6,
        instants,
        arrived: record::events(&arrivals),
        settings: settings.into(),
    })
}

impl Instants {
    /// Returns a line for people.
    pub fn line(&self) -> String {
        let mixed = self.settings.first().map_or(0, |computed| computed.mixed);
        format!(
            "{}, two nodes, an instant every {}: {} instants, {mixed} mixed as they come",
            self.network.name(),
            period(self.period_us),
            self.instants,
        )
    }
}

/// Returns the mark.
pub fn mark(all: &[Instants]) -> Mark {
    let markers = all.iter().flat_map(|cell| &cell.settings).filter(|c| c.setting == Setting::Markers);
    let mixed: u64 = markers.map(|computed| computed.mixed).sum();
    Mark::at_most("two nodes: instants mixed with markers", mixed as f64, 0.0, "")
}

/// Returns the table.
pub fn table(all: &[Instants]) -> Table {
    let heads = ["network", "period", "setting", "instants", "mixed", "late", "p50 ms", "p99 ms", "max ms"];
    let mut table = Table::new("Two nodes: instants whose messages are used together", &heads);
    for cell in all {
        for computed in &cell.settings {
            let mut row = vec![
                cell.network.name().to_owned(),
                period(cell.period_us),
                computed.setting.name(),
                cell.instants.to_string(),
                computed.mixed.to_string(),
                computed.late.to_string(),
            ];
            row.extend(
                computed
                    .latency_us
                    .map(|us| if us.is_nan() { "-".to_owned() } else { format!("{:.2}", us / 1e3) }),
            );
            table.row(row);
        }
    }
    table.note(
        "Mixed: instants without a computation on the messages of both nodes. Without alignment it runs at each message of \
         the first node, on the newest one of the second; by time, once an instant is complete.",
    );
    table
}

#[cfg(test)]
mod tests {
    use rondel_event::TopicId;

    use super::super::setting::Release;
    use super::*;

    fn outcome(releases: &[(u32, i64)]) -> Outcome {
        let release = |&(topic, sent): &(u32, i64)| {
            let sent = Timestamp::from_nanos(sent);
            Release { topic: TopicId(topic), sent, arrived: sent, at: sent }
        };
        Outcome { releases: releases.iter().map(release).collect(), late: 0 }
    }

    #[test]
    fn a_computation_needs_two_messages_of_an_instant() {
        let markers = |releases: &[(u32, i64)]| computed(&outcome(releases), Setting::Markers);
        assert_eq!(markers(&[(0, 1), (1, 1), (0, 2), (1, 2)]), 2);
        // The message of one node is late, or does not come.
        assert_eq!(markers(&[(0, 1), (0, 2), (1, 2), (1, 3)]), 1);
        assert_eq!(markers(&[]), 0);
        let arrival = |releases: &[(u32, i64)]| computed(&outcome(releases), Setting::Arrival);
        // The first node is faster at first: the message of the second one is that of the instant before.
        assert_eq!(arrival(&[(0, 1), (1, 1), (0, 2), (1, 2), (1, 3), (0, 3)]), 1);
    }

    #[test]
    fn nodes_of_one_interval_begin_together() {
        let ms = 1_000_000;
        assert_eq!([first(100 * ms), first(150 * ms), first(199 * ms)], [200 * ms; 3]);
        assert_eq!(first(200 * ms), 300 * ms);
    }

    #[test]
    fn the_table_has_every_setting() {
        let computed =
            Computed { setting: Setting::Markers, mixed: 3, late: 1, latency_us: [1e3, 2e3, f64::NAN] };
        let cell = Instants {
            network: Network::Dds,
            period_us: 100.0,
            instants: 40,
            arrived: 80,
            settings: vec![computed],
        };
        assert!(cell.line().contains("40 instants, 3 mixed"), "{}", cell.line());
        assert!(!mark(std::slice::from_ref(&cell)).met() && mark(&[]).met());
        let text = table(&[cell]).markdown();
        assert!(text.contains("| DDS | 100 us | markers | 40 | 3 | 1 | 1.00 | 2.00 | - |"), "{text}");
    }
}
