//! One trace through a network and back, counted at both ends.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::child::{Child, Stdout};
use crate::failure::{Failure, Result, same};
use crate::link::{Link, Network, PATIENCE, wait_subscribed};
use crate::peer::publish;
use crate::program;
use crate::timescales::Property;
use crate::traces::Trace;

/// The time limit for a trace, besides the time for its messages.
const LIMIT: Duration = Duration::from_secs(60);
/// The time limit for each message: 10,000 messages a second.
const SLOWEST: Duration = Duration::from_micros(100);
/// The silence after which no more messages are expected.
const QUIET: Duration = Duration::from_millis(50);

/// A monitor: `rondel run` with a specification.
#[derive(Clone, Debug)]
pub struct Monitor {
    /// The program.
    pub program: PathBuf,
    /// The arguments that name the specification.
    pub specification: Vec<String>,
}

impl Monitor {
    /// Returns a monitor of a property.
    pub fn of(rondel: &Path, property: Property) -> Monitor {
        Monitor { program: rondel.to_owned(), specification: formula(&property.formula()) }
    }
}

/// A gate: `rondel run` with a deployment.
#[derive(Clone, Debug)]
pub struct Gate {
    /// The program.
    pub program: PathBuf,
    /// The file with the deployment.
    pub deployment: PathBuf,
}

/// The participant at the other end.
#[derive(Clone, Copy, Debug)]
pub enum Role<'a> {
    /// A monitor that publishes a verdict for every message.
    MonitorEvery(&'a Monitor),
    /// A monitor that publishes verdicts on change.
    MonitorChange(&'a Monitor),
    /// A gate that passes every message on.
    Gate(&'a Gate),
    /// Publishes every message again.
    Echo,
    /// Counts messages.
    Count,
}

/// The figures of one trace through a network.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Passage {
    /// With an answer to every message: seconds from before the first message is published until the last answer is back.
    /// Otherwise: seconds from the first message at the subscriber to the last one there.
    pub seconds: f64,
    /// CPU seconds of the whole process at the other end.
    pub cpu_seconds: f64,
    /// The number of messages; as many were sent as received.
    pub messages: u64,
    /// The number of answers; as many were received as the other end reports.
    pub answers: u64,
}

impl Role<'_> {
    fn answers_all(self) -> bool {
        matches!(self, Role::MonitorEvery(_) | Role::Gate(_) | Role::Echo)
    }

    fn name(self) -> &'static str {
        match self {
            Role::MonitorEvery(_) => "monitor (every)",
            Role::MonitorChange(_) => "monitor (change)",
            Role::Gate(_) => "gate",
            Role::Echo => "echo",
            Role::Count => "count",
        }
    }

    /// Returns the program of the child.
    ///
    /// # Errors
    /// When the system does not say where this program is.
    pub fn program(self) -> Result<PathBuf> {
        match self {
            Role::MonitorEvery(monitor) | Role::MonitorChange(monitor) => Ok(monitor.program.clone()),
            Role::Gate(gate) => Ok(gate.program.clone()),
            Role::Echo | Role::Count => program::own(),
        }
    }

    /// Returns the arguments of the child, which ends after `count` messages.
    pub fn arguments(
        self,
        network: Network,
        link: &Link,
        input: &str,
        output: &str,
        count: Option<u64>,
    ) -> Vec<String> {
        let mut arguments: Vec<String> = match self {
            Role::MonitorEvery(_) => vec!["run".into(), "--emit=every".into()],
            Role::MonitorChange(_) => vec!["run".into(), "--emit=change".into()],
            // The deployment has the addresses.
            Role::Gate(gate) => {
                return vec!["run".into(), gate.deployment.display().to_string(), "--summary=json".into()];
            }
            Role::Echo => ["peer", "echo"].map(str::to_owned).into(),
            Role::Count => ["peer", "count"].map(str::to_owned).into(),
        };
        if let Role::MonitorEvery(monitor) | Role::MonitorChange(monitor) = self {
            arguments.extend_from_slice(&monitor.specification);
            let wait = PATIENCE.as_secs();
            arguments.extend([
                "--time-from=time".into(),
                "--summary=json".into(),
                format!("--wait-subscribers={wait}"),
            ]);
        }
        arguments.push(format!("--topic={}", network.address(input)));
        if !matches!(self, Role::Count) {
            arguments.push(format!("--publish={}", network.address(output)));
        }
        arguments.extend(count.map(|n| format!("--count={n}")));
        arguments.extend(link.join());
        arguments
    }
}

/// Returns the arguments for a formula in Reelay's format.
pub fn formula(formula: &str) -> Vec<String> {
    vec!["--syntax=rye".into(), format!("--formula={formula}")]
}

/// Sends a trace to a participant, waits until it has handled all messages, and counts at both ends. `answers` is the
/// topic of the answers, or a pattern of topics.
///
/// # Errors
/// [`Failure::Count`] when a message was lost or came twice; another when the network or the participant failed.
pub fn pass(network: Network, trace: &Trace, role: Role<'_>, answers: &str) -> Result<Passage> {
    let link = Link::open(network)?;
    let all = trace.len();
    let limit = LIMIT + SLOWEST * u32::try_from(all).unwrap_or(u32::MAX);
    let name = format!("{} on {}", role.name(), network.name());
    let back = link.count(answers, if role.answers_all() { all } else { u64::MAX })?;
    let publisher = link.publisher("bench/in", true)?;
    let arguments = role.arguments(network, &link, "bench/in", "bench/out", Some(all));
    let mut child = Child::start(&name, &role.program()?, &arguments, Stdout::Nothing)?;
    child.kill_after(limit);
    child.wait_for("ready", PATIENCE)?;
    wait_subscribed(&*publisher)?;
    let started = Instant::now();
    publish(&*publisher, trace)?;
    let round = if role.answers_all() {
        // A child that has failed knows more than that messages are missing.
        match back.counter.wait(&format!("{name}: answers"), limit) {
            Ok(ended) => Some(ended.duration_since(started).as_secs_f64()),
            Err(failure) => {
                return Err(match child.wait(Duration::from_secs(1)) {
                    Ok(ended) if ended.status != Some(0) => ended.failed(&name),
                    _ => failure,
                });
            }
        }
    } else {
        None
    };
    let ended = child.wait(limit)?;
    let summary = ended.summary(&name)?;
    let wait_until = Instant::now() + PATIENCE;
    while back.counter.received() < summary.verdicts && Instant::now() < wait_until {
        std::thread::sleep(Duration::from_millis(5));
    }
    back.subscription.drain(QUIET, PATIENCE);
    same(|| format!("{name}: received"), all, summary.received)?;
    same(|| format!("{name}: checked"), all, summary.checked)?;
    same(|| format!("{name}: dropped"), 0, summary.dropped)?;
    same(|| format!("{name}: answers that arrived"), summary.verdicts, back.counter.received())?;
    if role.answers_all() {
        same(|| format!("{name}: answers"), all, summary.verdicts)?;
    }
    let problems = back.subscription.problems();
    same(|| format!("{name}: answers lost"), 0, problems.lost + problems.malformed)?;
    drop(publisher);
    drop(back);
    link.close();
    let seconds = round.unwrap_or(summary.seconds);
    if seconds <= 0.0 {
        return Err(Failure::Usage("too few messages to measure anything".to_owned()));
    }
    Ok(Passage { seconds, cpu_seconds: ended.cpu_seconds, messages: all, answers: summary.verdicts })
}
