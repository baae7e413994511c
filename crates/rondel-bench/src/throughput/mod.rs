//! Messages per second of three patterns, by the number of participants and the size of messages.
//!
//! Every participant is a process. On Zenoh sources connect to their sinks directly. Sources greet until a greeting
//! of each has reached its sinks; then all publish as fast as the network takes messages. A message that is missing or comes
//! twice fails the measurement.

mod aligned;
mod party;

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

pub use self::aligned::Aligned;
pub use self::party::{Feed, Sink, Source};
use crate::child::{Child, Stdout};
use crate::failure::{Result, same};
use crate::link::{Link, Network, PATIENCE, free_port};
use crate::program;
use crate::runs::Runs;
use crate::say;
use crate::table::{Table, groups, median};

/// The time limit for a run.
const LIMIT: Duration = Duration::from_secs(120);

/// A pattern of publishers and subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Pattern {
    /// One publishes, all others subscribe.
    S1,
    /// All others publish, one subscribes.
    S2,
    /// Pairs: half of them publish, each to a subscriber of its own.
    S3,
}

/// The patterns that are measured.
pub const PATTERNS: [Pattern; 3] = [Pattern::S1, Pattern::S2, Pattern::S3];

/// A topic with the numbers of its participants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flow {
    sources: usize,
    sinks: usize,
}

impl Pattern {
    fn name(self) -> &'static str {
        match self {
            Pattern::S1 => "S1: one to all",
            Pattern::S2 => "S2: all to one",
            Pattern::S3 => "S3: pairs",
        }
    }

    /// Returns the topics of a number of participants, at least two.
    fn flows(self, participants: usize) -> Vec<Flow> {
        let others = participants.max(2) - 1;
        match self {
            Pattern::S1 => vec![Flow { sources: 1, sinks: others }],
            Pattern::S2 => vec![Flow { sources: others, sinks: 1 }],
            Pattern::S3 => vec![Flow { sources: 1, sinks: 1 }; participants.max(2) / 2],
        }
    }
}

/// The plan of the measurement.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The networks.
    pub networks: Vec<Network>,
    /// The numbers of participants, with the first size.
    pub participants: Vec<usize>,
    /// The sizes of messages in bytes, with the first number of participants.
    pub sizes: Vec<usize>,
    /// The number of messages that all publish together.
    pub messages: u64,
    /// The number of turns.
    pub repeat: usize,
    /// The numbers of publishers to a subscriber that aligns their messages.
    pub aligned: Vec<usize>,
}

impl Plan {
    /// Returns the numbers of participants with the sizes of messages.
    fn cells(&self) -> Vec<(usize, usize)> {
        let first = (self.participants.first().copied(), self.sizes.first().copied());
        let (Some(fewest), Some(smallest)) = first else { return Vec::new() };
        let by_participants = self.participants.iter().map(|participants| (*participants, smallest));
        by_participants.chain(self.sizes.iter().skip(1).map(|bytes| (fewest, *bytes))).collect()
    }
}

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The network.
    pub network: Network,
    /// The pattern.
    pub pattern: Pattern,
    /// The number of participants.
    pub participants: usize,
    /// The size of messages.
    pub bytes: usize,
    /// The turn, from 0.
    pub turn: usize,
    /// The number of messages that all subscribers have received together.
    pub received: u64,
    /// The longest time of a subscriber from its first message to its last, in seconds.
    pub seconds: f64,
    /// Messages received per second.
    pub rate: f64,
}

/// Measures every pattern on every network, by turns.
///
/// # Errors
/// When a network cannot be used, or messages are missing or come twice.
pub fn measure(plan: &Plan, runs: &mut Runs) -> Result<Vec<Run>> {
    let mut all = Vec::new();
    for turn in 0..plan.repeat.max(1) {
        for &network in &plan.networks {
            for (participants, bytes) in plan.cells() {
                for pattern in PATTERNS {
                    let run = run(plan, network, pattern, participants, bytes, turn)?;
                    say(&format!(
                        "{}, {}, {participants} participants, {bytes} bytes: {:.0} messages/s",
                        network.name(),
                        pattern.name(),
                        run.rate
                    ));
                    runs.add(&run)?;
                    all.push(run);
                }
            }
        }
    }
    Ok(all)
}

/// Measures many publishers to a monitor that aligns their messages by time, beside a plain subscriber.
///
/// # Errors
/// When a network cannot be used, or messages are missing or come twice.
pub fn measure_aligned(rondel: &Path, plan: &Plan, runs: &mut Runs) -> Result<Vec<Aligned>> {
    aligned::measure(rondel, plan, runs)
}

/// Returns the table of subscribers that align messages.
pub fn table_of_aligned(runs: &[Aligned]) -> Table {
    aligned::table(runs)
}

/// Result of a sink.
#[derive(Debug, Deserialize)]
struct Received {
    received: u64,
    seconds: f64,
}

fn run(
    plan: &Plan,
    network: Network,
    pattern: Pattern,
    participants: usize,
    bytes: usize,
    turn: usize,
) -> Result<Run> {
    let link = open(network)?;
    let own = program::own()?;
    let start = |role: &str, arguments: Vec<String>| {
        let all = [vec!["peer".to_owned(), role.to_owned()], arguments].concat();
        Child::start(role, &own, &all, Stdout::Nothing)
    };
    let (mut sources, mut sinks) = (Vec::new(), Vec::new());
    let flows = pattern.flows(participants);
    for (index, flow) in flows.iter().enumerate() {
        let topic = format!("--topic={}", network.address(&format!("throughput/{index}")));
        let each = (plan.messages / (flows.len() * flow.sources) as u64).max(1);
        let expected = each * flow.sources as u64;
        let mut joins: Vec<String> = link.iter().flat_map(|link| link.join()).collect();
        let mut endpoints = Vec::new();
        for _ in 0..flow.sinks {
            let mut arguments = vec![topic.clone(), format!("--sources={}", flow.sources)];
            arguments.push(format!("--count={expected}"));
            arguments.extend(joins.iter().cloned());
            if link.is_none() {
                let endpoint = format!("tcp/127.0.0.1:{}", free_port()?);
                arguments.push(format!("--zenoh-listen={endpoint}"));
                endpoints.push(format!("--zenoh-connect={endpoint}"));
            }
            let mut sink = start("sink", arguments)?;
            sink.wait_for("ready", PATIENCE)?;
            sinks.push((sink, expected));
        }
        joins.append(&mut endpoints);
        for number in 0..flow.sources {
            let mut arguments = vec![topic.clone(), format!("--number={number}")];
            arguments.extend([format!("--count={each}"), format!("--bytes={bytes}")]);
            arguments.extend(joins.iter().cloned());
            sources.push(start("source", arguments)?);
        }
    }
    for source in &mut sources {
        source.wait_for("ready", PATIENCE)?;
    }
    for (sink, _) in &mut sinks {
        sink.wait_for("greeted", PATIENCE)?;
    }
    for source in &sources {
        source.signal(Signal::SIGUSR1)?;
    }
    let (mut received, mut seconds) = (0, 0.0_f64);
    for (sink, expected) in sinks {
        let found = result(sink)?;
        same(|| "messages of a subscriber".to_owned(), expected, found.received)?;
        received += found.received;
        seconds = seconds.max(found.seconds);
    }
    end(sources, "a source", link)?;
    let rate = rate(received, seconds);
    Ok(Run { network, pattern, participants, bytes, turn, received, seconds, rate })
}

/// Joins a network for its participants. Those of Zenoh meet without this process.
fn open(network: Network) -> Result<Option<Link>> {
    if network == Network::Zenoh { Ok(None) } else { Link::open(network).map(Some) }
}

/// Waits until all publishers have ended, and leaves the network.
fn end(publishers: Vec<Child>, name: &str, link: Option<Link>) -> Result<()> {
    for publisher in publishers {
        publisher.wait(LIMIT)?.succeeded(name)?;
    }
    if let Some(link) = link {
        link.close();
    }
    Ok(())
}

/// Returns messages per second, since the first message.
fn rate(received: u64, seconds: f64) -> f64 {
    received as f64 / seconds.max(1e-9)
}

fn result(sink: Child) -> Result<Received> {
    let ended = sink.wait(LIMIT)?.succeeded("a sink")?;
    let found = ended.log.iter().rev().find_map(|line| serde_json::from_str(line).ok());
    found.ok_or_else(|| ended.failed("a sink"))
}

/// Returns a table for each network.
pub fn tables(runs: &[Run]) -> Vec<Table> {
    groups(runs, |run| run.network).into_iter().map(|(network, of)| table(network, &of)).collect()
}

fn table(network: Network, runs: &[&Run]) -> Table {
    let heads = ["participants", "bytes", "S1: one to all", "S2: all to one", "S3: pairs"];
    let mut table = Table::new(format!("Messages received per second on {}", network.name()), &heads);
    for ((participants, bytes), here) in groups(runs.iter().copied(), |run| (run.participants, run.bytes)) {
        let mut row = vec![participants.to_string(), bytes.to_string()];
        row.extend(PATTERNS.map(|pattern| {
            let of = here.iter().filter(|run| run.pattern == pattern);
            let rates: Vec<f64> = of.map(|run| run.rate).collect();
            if rates.is_empty() { "-".to_owned() } else { format!("{:.0}", median(&rates)) }
        }));
        table.row(row);
    }
    table.note(
        "All subscribers together, medians of the turns. The study measures three patterns on 4-byte data with 2 to 32 \
         participants (paper); these patterns are ours.",
    );
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_use_all_participants() {
        for participants in [2, 4, 32] {
            for pattern in PATTERNS {
                let flows = pattern.flows(participants);
                let used: usize = flows.iter().map(|flow| flow.sources + flow.sinks).sum();
                assert_eq!(used, participants, "{pattern:?}");
            }
        }
        assert_eq!(Pattern::S3.flows(4), vec![Flow { sources: 1, sinks: 1 }; 2]);
    }

    #[test]
    fn cells_vary_one_thing_at_a_time() {
        let plan = Plan {
            networks: Vec::new(),
            participants: vec![2, 4],
            sizes: vec![4, 64],
            messages: 10,
            repeat: 1,
            aligned: Vec::new(),
        };
        assert_eq!(plan.cells(), [(2, 4), (4, 4), (2, 64)]);
        assert!(Plan { sizes: Vec::new(), ..plan }.cells().is_empty());
    }

    #[test]
    fn tables_have_the_medians() {
        let run = |pattern, rate| Run {
            network: Network::Dds,
            pattern,
            participants: 2,
            bytes: 4,
            turn: 0,
            received: 10,
            seconds: 1.0,
            rate,
        };
        let runs = [run(Pattern::S1, 10.0), run(Pattern::S1, 30.0), run(Pattern::S3, 5.0)];
        let [table] = &tables(&runs)[..] else { panic!("one network") };
        assert!(table.markdown().contains("| 2 | 4 | 20 | - | 5 |"), "{}", table.markdown());
    }
}
