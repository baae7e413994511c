//! The chain of the study of containerised microservices: sensor -> filter -> fusion -> planner -> actuator, each a
//! process that passes the stamp on, with and without a monitor that has the chain as a property; bare, or in containers.

mod cgroup;
mod containers;
mod deployment;
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

use self::cgroup::ControlGroup;
use self::containers::Containers;
pub use self::containers::Layout;
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
/// The time limit for the start of all participants in containers.
const START: Duration = Duration::from_secs(600);

/// The number of times that a run is repeated in which messages are missing at its end.
const MOST_REPEATS: u32 = 3;

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
    /// The distributions of the participants.
    pub layouts: Vec<Layout>,
    /// Options of `docker run` that limit the CPUs of a container; each is measured besides none.
    pub limits: Vec<String>,
    /// The image of the containers: the monitor's program, and the libraries of this one.
    pub image: String,
}

impl Plan {
    /// Returns the layouts, each with its limits. Limits are measured with the first number of chains.
    fn settings(&self, chains: usize) -> Vec<(Layout, Option<&str>)> {
        let mut settings: Vec<_> = self.layouts.iter().map(|&layout| (layout, None)).collect();
        if self.chains.first() == Some(&chains) {
            let contained = self.layouts.iter().filter(|&&layout| layout != Layout::Bare);
            let limits = contained.flat_map(|&layout| self.limits.iter().map(move |limit| (layout, limit)));
            settings.extend(limits.map(|(layout, limit)| (layout, Some(limit.as_str()))));
        }
        settings
    }
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
    /// The distribution of the participants.
    layout: Layout,
    /// The option of `docker run` that limits the CPUs of each container.
    limit: Option<String>,
    /// Whether a monitor was there.
    monitored: bool,
    /// The turn, from 0.
    turn: usize,
    /// The number of runs before it that were repeated, as messages were missing.
    incomplete: u32,
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
    /// CPU seconds of all participants: of the processes, or of the containers from the start of the sensors on.
    cpu_seconds: f64,
    /// Peak of their resident memory, in bytes, summed.
    peak_bytes: u64,
    /// Peak of the memory of their containers, in bytes, summed.
    container_bytes: Option<u64>,
    /// The monitor's figures.
    monitor: Option<Monitored>,
}

/// The figures of a monitor.
#[derive(Clone, Debug, Serialize)]
struct Monitored {
    /// CPU seconds of the process, or of its container from the start of the sensors on.
    cpu_seconds: f64,
    /// Peak of its resident memory, in bytes.
    peak_bytes: u64,
    /// Peak of the memory of its container, in bytes.
    container_bytes: Option<u64>,
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

/// Measures every network, number of chains and layout, with and without a monitor by turns.
///
/// # Errors
/// When a participant fails, or messages are lost again and again.
pub fn measure(rondel: &Path, plan: &Plan, runs: &mut Runs) -> Result<Vec<Run>> {
    let folder = Folder::new("chain")?;
    let mut all = Vec::new();
    for &network in &plan.networks {
        for &chains in &plan.chains {
            for turn in 0..plan.repeat.max(1) {
                // Each comes first as often as the other.
                let mut settings = plan.settings(chains);
                if !turn.is_multiple_of(2) {
                    settings.reverse();
                }
                for (layout, limit) in settings {
                    for monitored in [turn.is_multiple_of(2), !turn.is_multiple_of(2)] {
                        let of = monitored.then_some((rondel, &folder));
                        let run = Bench { network, chains, layout, limit, plan }.run_complete(of, turn)?;
                        say(&run.line());
                        runs.add(&run)?;
                        all.push(run);
                    }
                }
            }
        }
    }
    Ok(all)
}

impl Run {
    /// Returns a line about it.
    fn line(&self) -> String {
        let Run { chains, network, layout, .. } = self;
        let limit = self.limit.as_ref().map(|limit| format!(" {limit}")).unwrap_or_default();
        let with = if self.monitored { "with" } else { "without" };
        let mean = crate::table::mean(&self.latency_us);
        let (network, layout) = (network.name(), layout.name());
        format!("{network}, {chains} chains, {layout}{limit}, {with} a monitor: {mean:.0} us")
    }
}

fn network(error: impl std::fmt::Display) -> Failure {
    Failure::Network(error.to_string())
}

/// Chains on a network.
struct Bench<'a> {
    network: Way,
    chains: usize,
    layout: Layout,
    limit: Option<&'a str>,
    plan: &'a Plan,
}

/// A monitor that runs: its process, or the client of the engine with the control groups of its container.
struct Watched {
    child: Child,
    group: Option<ControlGroup>,
    /// CPU seconds that its container had used when the sensors started.
    before: f64,
}

impl Bench<'_> {
    fn count(&self) -> u64 {
        self.plan.messages + WARM_UP
    }

    /// Runs all chains once. A run in which messages are missing is said and repeated: a participant begins once one reader
    /// is known, which may be that of the monitor, and its first message is lost to the next participant.
    fn run_complete(&self, monitor: Option<(&Path, &Folder)>, turn: usize) -> Result<Run> {
        let mut incomplete = 0;
        loop {
            match self.run(monitor, turn) {
                Ok(run) => return Ok(Run { incomplete, ..run }),
                Err(failure @ (Failure::Late { .. } | Failure::Count { .. }))
                    if incomplete < MOST_REPEATS =>
                {
                    incomplete += 1;
                    say(&format!("a run is repeated: {failure}"));
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Runs all chains once, with a monitor if there is a program.
    fn run(&self, monitor: Option<(&Path, &Folder)>, turn: usize) -> Result<Run> {
        let containers = self.containers()?;
        let place = match &containers {
            None => Place::free(self.network.middleware())?,
            Some(containers) => containers.place(self.network.middleware())?,
        };
        // The router of Zenoh, through which the nodes find each other.
        let router = match self.network {
            Way::Dds => None,
            Way::Zenoh => {
                let settings = place.settings("bench")?;
                Some(Networks::open(&settings, Some(PATIENCE), || false, |_| {}).map_err(network)?)
            }
        };
        let mut monitor = monitor
            .map(|(rondel, folder)| self.start_monitor(rondel, folder, &place, containers.as_ref()))
            .transpose()?;
        let children = self.start_stages(&place, containers.as_ref())?;
        let before = containers.as_ref().map_or(Ok(0.0), |all| all.used().map(|used| used.cpu_seconds))?;
        if let Some(Watched { group: Some(group), before, .. }) = &mut monitor {
            *before = group.used()?.cpu_seconds;
        }
        let sending = self.sending();
        std::thread::sleep(sending.mul_f64(0.9));
        // Their memory: after the end there is none. A child that has failed says so below.
        let peak_bytes: u64 = match &containers {
            None => children.iter().map(|child| child.peak_memory().unwrap_or(0)).sum(),
            Some(containers) => containers.peak(),
        };
        let (mut cpu_seconds, mut times, mut late) = (0.0, Times::default(), 0);
        for child in children {
            let ended = child.wait(sending + LIMIT)?.succeeded("a participant of the chain")?;
            cpu_seconds += ended.cpu_seconds;
            if let Some(outputs) = ended.log.iter().find_map(|line| Outputs::parse(line)) {
                same(|| "messages at the actuator".to_owned(), self.count(), outputs.len() as u64)?;
                late += outputs.later_than(WITHIN_NS);
                times.add(outputs.times(WARM_UP));
            }
        }
        let container_bytes = match &containers {
            None => None,
            Some(containers) => {
                // The children are clients of the engine: their CPU time is not that of the participants.
                let used = containers.used()?;
                cpu_seconds = used.cpu_seconds - before;
                Some(used.bytes)
            }
        };
        let monitor = monitor.map(|monitor| self.end_monitor(monitor)).transpose()?;
        if let Some(router) = router {
            router.close();
        }
        let Times { latency_us, age_us, reaction_us } = times;
        let messages = self.plan.messages * self.chains as u64;
        same(|| "measured messages".to_owned(), messages, latency_us.len() as u64)?;
        Ok(Run {
            network: self.network,
            chains: self.chains,
            layout: self.layout,
            limit: self.limit.map(str::to_owned),
            monitored: monitor.is_some(),
            turn,
            incomplete: 0,
            seconds: sending.as_secs_f64(),
            latency_us,
            age_us,
            reaction_us,
            late,
            cpu_seconds,
            peak_bytes,
            container_bytes,
            monitor,
        })
    }

    /// Returns the time of publishing.
    fn sending(&self) -> Duration {
        self.plan.period * u32::try_from(self.count()).unwrap_or(u32::MAX)
    }

    /// Starts the containers of the participants, if they are in any.
    fn containers(&self) -> Result<Option<Containers>> {
        let number = match self.layout {
            Layout::Bare => return Ok(None),
            Layout::One => 1,
            Layout::Each => self.chains * STAGES.len(),
        };
        Containers::start(&self.plan.image, number, self.limit, START + self.sending() + LIMIT).map(Some)
    }

    /// Starts the participants, so that each finds the next one; the sensors last.
    fn start_stages(&self, place: &Place, containers: Option<&Containers>) -> Result<Vec<Child>> {
        let mut children = Vec::new();
        for chain in 1..=self.chains {
            for number in (1..STAGES.len()).rev() {
                let mut child = self.start_stage(place, containers, chain, number)?;
                child.wait_for("ready", PATIENCE)?;
                children.push(child);
            }
        }
        // All at once: a sensor that is ready begins.
        let sensors = (1..=self.chains).map(|chain| self.start_stage(place, containers, chain, 0));
        let mut sensors = sensors.collect::<Result<Vec<Child>>>()?;
        for sensor in &mut sensors {
            sensor.wait_for("ready", PATIENCE)?;
        }
        sensors.append(&mut children);
        Ok(sensors)
    }

    fn start_stage(
        &self,
        place: &Place,
        containers: Option<&Containers>,
        chain: usize,
        number: usize,
    ) -> Result<Child> {
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
        match place {
            Place::Dds(domain, interface) => {
                arguments.extend([format!("--dds={domain}"), format!("--interface={interface}")]);
            }
            Place::Zenoh(endpoint) | Place::ZenohRouter(endpoint) => {
                arguments.push(format!("--zenoh={endpoint}"));
            }
        }
        let Some(containers) = containers else {
            return Child::start(name, &program::own()?, &arguments, Stdout::Nothing);
        };
        arguments.push("--listen=0.0.0.0".to_owned());
        containers.start_stage(name, (chain - 1) * STAGES.len() + number, arguments)
    }

    fn start_monitor(
        &self,
        rondel: &Path,
        folder: &Folder,
        place: &Place,
        containers: Option<&Containers>,
    ) -> Result<Watched> {
        folder.write("chain.rondel", deployment::specification(self.chains).as_bytes())?;
        let path = folder.write("rondel.yaml", deployment::deployment(place, self.chains).as_bytes())?;
        let mut arguments = ["run", "--emit=violations", "--summary=json"].map(str::to_owned).to_vec();
        if let Some(containers) = containers {
            let (child, group) = containers.start_monitor(&path, &arguments)?;
            return Ok(Watched { child, group: Some(group), before: 0.0 });
        }
        arguments.push(path.display().to_string());
        let mut child = Child::start("monitor", rondel, &arguments, Stdout::Nothing)?;
        child.wait_for("ready", PATIENCE)?;
        Ok(Watched { child, group: None, before: 0.0 })
    }

    fn end_monitor(&self, monitor: Watched) -> Result<Monitored> {
        let Watched { child, group, before } = monitor;
        // After the end there is nothing to read. A child that has failed says so first.
        let peak_bytes = group.as_ref().map_or_else(|| child.peak_memory(), ControlGroup::first_peak);
        let used = group.as_ref().map(ControlGroup::used);
        let ended = child.end()?;
        let summary = ended.summary("monitor")?;
        let (peak_bytes, used) = (peak_bytes?, used.transpose()?);
        same(|| "monitor: dropped".to_owned(), 0, summary.dropped)?;
        Ok(Monitored {
            cpu_seconds: used.map_or(ended.cpu_seconds, |used| used.cpu_seconds - before),
            peak_bytes,
            container_bytes: used.map(|used| used.bytes),
            received: summary.received,
            sent: self.count() * (STAGES.len() * self.chains) as u64,
            chains: chains_of(&ended),
        })
    }
}

/// Returns the chains in the summary of a monitor.
fn chains_of(ended: &Ended) -> Value {
    ended.object().map_or(Value::Null, |mut summary| summary["chains"].take())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_stamps_count_as_late() {
        let chains = serde_json::json!([{ "late": 2, "lost": { "objects1": 1, "control1": 3 } }, { "late": 1, "lost": {} }]);
        let monitored = Monitored {
            cpu_seconds: 0.0,
            peak_bytes: 0,
            container_bytes: None,
            received: 0,
            sent: 0,
            chains,
        };
        assert_eq!(monitored.late(), 7);
    }

    #[test]
    fn limits_are_measured_in_containers_with_the_first_number_of_chains() {
        let plan = Plan {
            networks: vec![Way::Dds],
            chains: vec![2, 4],
            messages: 10,
            period: Duration::from_millis(10),
            work: Duration::ZERO,
            repeat: 1,
            layouts: vec![Layout::Bare, Layout::Each],
            limits: vec!["--cpus=1".to_owned()],
            image: "rondel".to_owned(),
        };
        let unlimited: [(Layout, Option<&str>); 2] = [(Layout::Bare, None), (Layout::Each, None)];
        assert_eq!(plan.settings(4), unlimited);
        assert_eq!(plan.settings(2)[..2], unlimited);
        assert_eq!(plan.settings(2)[2..], [(Layout::Each, Some("--cpus=1"))]);
    }
}
