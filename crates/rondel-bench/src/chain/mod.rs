//! The chain of the study of containerised microservices: sensor -> filter -> fusion -> planner -> actuator, each a
//! process that passes the stamp on, with and without a monitor that has the chain as a property.

mod figures;
mod message;
mod stage;
mod table;

use std::path::Path;
use std::time::Duration;

use rondel_net::networks::Networks;
use rondel_net::ros2::Middleware;
use serde::Serialize;
use serde_json::Value;

use self::figures::{Outputs, Times};
pub use self::stage::Stage;
pub use self::table::tables;
use crate::child::{Child, Ended, Stdout};
use crate::failure::{Failure, Result, same};
use crate::link::PATIENCE;
use crate::place::Place;
use crate::runs::Runs;
use crate::traces::Folder;
use crate::{program, say};

/// The participants, each with the topic on which it publishes.
const STAGES: [(&str, &str); 5] = [
    ("sensor", "scan"),
    ("filter", "filtered"),
    ("fusion", "objects"),
    ("planner", "trajectory"),
    ("actuator", "control"),
];
/// The number of messages at the beginning that are not measured.
const WARM_UP: u64 = 50;
/// The bound of the chain's latency in the specification, in nanoseconds.
const WITHIN_NS: i64 = 100_000_000;
/// The time limit for the end of all participants, once all messages are sent.
const LIMIT: Duration = Duration::from_secs(30);

/// The plan of the measurement.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The networks of ROS 2.
    pub networks: Vec<Way>,
    /// The numbers of chains at once.
    pub chains: Vec<usize>,
    /// The number of measured messages of each chain.
    pub messages: u64,
    /// The time between two messages of a sensor.
    pub period: Duration,
    /// The time for which each participant computes.
    pub work: Duration,
    /// The number of runs, with and without a monitor by turns.
    pub repeat: usize,
}

/// A network of ROS 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
pub enum Way {
    /// DDS
    #[serde(rename = "DDS")]
    Dds,
    /// Zenoh, in the format of rmw_zenoh
    #[serde(rename = "rmw_zenoh")]
    Zenoh,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Dds => "DDS",
            Way::Zenoh => "rmw_zenoh",
        }
    }

    fn middleware(self) -> Middleware {
        match self {
            Way::Dds => Middleware::Dds,
            Way::Zenoh => Middleware::Zenoh,
        }
    }
}

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    network: Way,
    /// The number of chains at once.
    chains: usize,
    /// Whether a monitor was there.
    monitored: bool,
    /// The turn, from 0.
    turn: usize,
    /// Seconds of publishing.
    seconds: f64,
    /// Microseconds from a stamp until it came out, of all chains.
    latency_us: Vec<f64>,
    /// Microseconds from the stamp of an output until the next output.
    age_us: Vec<f64>,
    /// Microseconds from a stamp until an output with it or a later one.
    reaction_us: Vec<f64>,
    /// The number of stamps, with those before the measurement, that took longer than the chain allows.
    late: usize,
    /// CPU seconds of all participants.
    cpu_seconds: f64,
    /// Peak of their resident memory, in bytes, summed.
    peak_bytes: u64,
    /// The monitor's figures.
    monitor: Option<Monitored>,
}

/// The figures of a monitor.
#[derive(Clone, Debug, Serialize)]
struct Monitored {
    /// CPU seconds of the process.
    cpu_seconds: f64,
    /// Peak of its resident memory, in bytes.
    peak_bytes: u64,
    /// The number of messages received, of those sent.
    received: u64,
    /// The number of messages that the participants sent.
    sent: u64,
    /// The chains in its summary.
    chains: Value,
}

impl Monitored {
    /// Returns the number of stamps that came out later than allowed, or not at all.
    fn late(&self) -> u64 {
        let chains = self.chains.as_array().into_iter().flatten();
        let lost = |chain: &Value| {
            let by_topic = chain["lost"].as_object().into_iter().flat_map(|lost| lost.values());
            by_topic.filter_map(Value::as_u64).sum::<u64>()
        };
        chains.map(|chain| chain["late"].as_u64().unwrap_or(0) + lost(chain)).sum()
    }
}

/// Measures every network and number of chains, with and without a monitor by turns.
///
/// # Errors
/// When a participant fails, or a message is lost.
pub fn measure(rondel: &Path, plan: &Plan, runs: &mut Runs) -> Result<Vec<Run>> {
    let folder = Folder::new("chain")?;
    let mut all = Vec::new();
    for &network in &plan.networks {
        for &chains in &plan.chains {
            for turn in 0..plan.repeat.max(1) {
                // Each comes first as often as the other.
                for monitored in [turn.is_multiple_of(2), !turn.is_multiple_of(2)] {
                    let of = monitored.then_some((rondel, &folder));
                    let run = Bench { network, chains, plan }.run(of, turn)?;
                    let mean = crate::table::mean(&run.latency_us);
                    let with = if monitored { "with" } else { "without" };
                    say(&format!("{}, {chains} chains, {with} a monitor: {mean:.0} us", network.name()));
                    runs.add(&run)?;
                    all.push(run);
                }
            }
        }
    }
    Ok(all)
}

fn network(error: impl std::fmt::Display) -> Failure {
    Failure::Network(error.to_string())
}

/// Chains on a network.
struct Bench<'a> {
    network: Way,
    chains: usize,
    plan: &'a Plan,
}

impl Bench<'_> {
    fn count(&self) -> u64 {
        self.plan.messages + WARM_UP
    }

    /// Runs all chains once, with a monitor if there is a program.
    fn run(&self, monitor: Option<(&Path, &Folder)>, turn: usize) -> Result<Run> {
        let place = Place::free(self.network.middleware())?;
        // The router of Zenoh, through which the nodes find each other.
        let router = match self.network {
            Way::Dds => None,
            Way::Zenoh => {
                let settings = place.settings("bench")?;
                Some(Networks::open(&settings, Some(PATIENCE), || false, |_| {}).map_err(network)?)
            }
        };
        let monitor =
            monitor.map(|(rondel, folder)| self.start_monitor(rondel, folder, &place)).transpose()?;
        let children = self.start_stages(&place)?;
        let sending = self.plan.period * u32::try_from(self.count()).unwrap_or(u32::MAX);
        std::thread::sleep(sending.mul_f64(0.9));
        // Their memory: after the end there is none. A child that has failed says so below.
        let peak_bytes: u64 = children.iter().map(|child| child.peak_memory().unwrap_or(0)).sum();
        let of_monitor = monitor.as_ref().map_or(0, |child| child.peak_memory().unwrap_or(0));
        let (mut cpu_seconds, mut times, mut late) = (0.0, Times::default(), 0);
        for child in children {
            let ended = child.wait(sending + LIMIT)?;
            if ended.status != Some(0) {
                return Err(ended.failed("a participant of the chain"));
            }
            cpu_seconds += ended.cpu_seconds;
            if let Some(outputs) = ended.log.iter().find_map(|line| Outputs::parse(line)) {
                same(|| "messages at the actuator".to_owned(), self.count(), outputs.len() as u64)?;
                late += outputs.later_than(WITHIN_NS);
                times.add(outputs.times(WARM_UP));
            }
        }
        let monitor = monitor.map(|child| self.end_monitor(child, of_monitor)).transpose()?;
        if let Some(router) = router {
            router.close();
        }
        let Times { latency_us, age_us, reaction_us } = times;
        let messages = self.plan.messages * self.chains as u64;
        same(|| "measured messages".to_owned(), messages, latency_us.len() as u64)?;
        Ok(Run {
            network: self.network,
            chains: self.chains,
            monitored: monitor.is_some(),
            turn,
            seconds: sending.as_secs_f64(),
            latency_us,
            age_us,
            reaction_us,
            late,
            cpu_seconds,
            peak_bytes,
            monitor,
        })
    }

    /// Starts the participants, so that each finds the next one; the sensors last.
    fn start_stages(&self, place: &Place) -> Result<Vec<Child>> {
        let (mut children, mut sensors) = (Vec::new(), Vec::new());
        for chain in 1..=self.chains {
            for number in (1..STAGES.len()).rev() {
                children.push(self.start_stage(place, chain, number)?);
            }
        }
        for chain in 1..=self.chains {
            sensors.push(self.start_stage(place, chain, 0)?);
        }
        sensors.append(&mut children);
        Ok(sensors)
    }

    fn start_stage(&self, place: &Place, chain: usize, number: usize) -> Result<Child> {
        let (name, topic) = STAGES[number];
        let mut arguments = ["peer", "stage"].map(str::to_owned).to_vec();
        arguments.extend([
            format!("--node={name}{chain}"),
            format!("--output=/chain{chain}/{topic}"),
            format!("--count={}", self.count()),
            format!("--period={}", self.plan.period.as_micros()),
            format!("--work={}", self.plan.work.as_micros()),
        ]);
        if let Some((_, before)) = number.checked_sub(1).map(|before| STAGES[before]) {
            arguments.push(format!("--input=/chain{chain}/{before}"));
        }
        if number + 1 == STAGES.len() {
            arguments.push("--actuator".to_owned());
        }
        arguments.push(match place {
            Place::Dds(domain, _) => format!("--dds={domain}"),
            Place::Zenoh(endpoint) | Place::ZenohRouter(endpoint) => format!("--zenoh={endpoint}"),
        });
        let mut child = Child::start(name, &program::own()?, &arguments, Stdout::Nothing)?;
        child.wait_for("ready", PATIENCE)?;
        Ok(child)
    }

    fn start_monitor(&self, rondel: &Path, folder: &Folder, place: &Place) -> Result<Child> {
        folder.write("chain.rondel", specification(self.chains).as_bytes())?;
        let path = folder.write("rondel.yaml", deployment(place, self.chains).as_bytes())?;
        let mut arguments = ["run", "--emit=violations", "--summary=json"].map(str::to_owned).to_vec();
        arguments.push(path.display().to_string());
        let mut child = Child::start("monitor", rondel, &arguments, Stdout::Nothing)?;
        child.wait_for("ready", PATIENCE)?;
        Ok(child)
    }

    fn end_monitor(&self, child: Child, peak_bytes: u64) -> Result<Monitored> {
        let ended = child.end()?;
        let summary = ended.summary("monitor")?;
        same(|| "monitor: dropped".to_owned(), 0, summary.dropped)?;
        Ok(Monitored {
            cpu_seconds: ended.cpu_seconds,
            peak_bytes,
            received: summary.received,
            sent: self.count() * (STAGES.len() * self.chains) as u64,
            chains: chains_of(&ended),
        })
    }
}

/// Returns the chains in the summary of a monitor.
fn chains_of(ended: &Ended) -> Value {
    let line = ended.log.iter().rev().find(|line| line.starts_with('{'));
    let summary = line.and_then(|line| serde_json::from_str::<Value>(line).ok());
    summary.map_or(Value::Null, |mut summary| summary["chains"].take())
}

/// Returns the specification of a number of chains.
fn specification(chains: usize) -> String {
    let mut text = String::new();
    for chain in 1..=chains {
        for (_, topic) in STAGES {
            let of = message::TYPE;
            text += &format!("topic {topic}{chain} \"/chain{chain}/{topic}\" : {of}\n");
        }
        let topics = STAGES.map(|(_, topic)| format!("{topic}{chain}")).join(" -> ");
        let (within, longer) = (WITHIN_NS / 1_000_000, 2 * WITHIN_NS / 1_000_000);
        text += &format!(
            "chain drive{chain} = {topics} by header.stamp within {within} ms age <= {longer} ms reaction <= {longer} ms\n"
        );
    }
    text
}

/// Returns the deployment of the monitor.
fn deployment(place: &Place, chains: usize) -> String {
    let mut text = match place {
        Place::Dds(domain, interface) => format!(
            "specification: chain.rondel\nros2: {{ middleware: dds, domain: {domain} }}\n\
             dds: {{ domain: {domain}, interface: {interface} }}\ntopics:\n"
        ),
        Place::Zenoh(endpoint) | Place::ZenohRouter(endpoint) => format!(
            "specification: chain.rondel\nros2: {{ middleware: zenoh, domain: 0 }}\nzenoh: {{ connect: {endpoint} }}\n\
             topics:\n"
        ),
    };
    for chain in 1..=chains {
        for (_, topic) in STAGES {
            text += &format!("  {topic}{chain}: ros2:/chain{chain}/{topic}\n");
        }
    }
    text + "verdicts: { to: stdout }\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_specification_has_every_chain() {
        let text = specification(2);
        assert!(
            text.contains("topic control2 \"/chain2/control\" : geometry_msgs/msg/PointStamped\n"),
            "{text}"
        );
        let chain =
            "chain drive1 = scan1 -> filtered1 -> objects1 -> trajectory1 -> control1 by header.stamp";
        assert!(text.contains(chain), "{text}");
        let text = deployment(&Place::Dds(7, "lo".to_owned()), 2);
        assert!(
            text.contains("domain: 7, interface: lo") && text.contains("  scan2: ros2:/chain2/scan\n"),
            "{text}"
        );
    }

    #[test]
    fn lost_stamps_count_as_late() {
        let chains = serde_json::json!([{ "late": 2, "lost": { "objects1": 1, "control1": 3 } }, { "late": 1, "lost": {} }]);
        let monitored = Monitored { cpu_seconds: 0.0, peak_bytes: 0, received: 0, sent: 0, chains };
        assert_eq!(monitored.late(), 7);
    }
}
