//! The case study of an Autoware vehicle: a drive with planted faults, and which of them the monitor finds.

mod compare;
mod drive;
mod faults;
mod live;
mod messages;
mod traffic;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use rondel_net::zenoh;

use self::compare::{Comparison, Violation};
use self::drive::SECONDS;
use self::faults::FAULTS;
use self::live::Driven;
use self::messages::{Message, TOPICS};
use self::traffic::{Plan, messages};
use crate::failure::{Failure, Result, io_error};
use crate::peer::stop_signal;
use crate::place::Place;
use crate::say;

/// The begin of a recorded drive, in nanoseconds since 1970.
const RECORDED_NS: u64 = 1_700_000_000_000_000_000;

/// Generate the traffic of an Autoware vehicle with planted faults, and run the monitor on it
#[derive(Debug, Args)]
pub struct Autoware {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the planted faults, each with the properties that must find it
    Faults,
    /// Write a drive as a recording
    Record(Record),
    /// Publish a drive as a node of ROS 2 over Zenoh or DDS
    Publish(Publish),
    /// Run generator and monitor, and compare the violations with the planted faults
    Study(Study),
    /// Compare the violations that a monitor has printed with the planted faults
    Compare(Compare),
    /// Be a router of Zenoh until SIGINT or SIGTERM
    Route(Route),
}

#[derive(Debug, Args)]
struct Drive {
    /// Seed jitter and delays with N
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Plant no faults
    #[arg(long)]
    no_faults: bool,
    /// Stop the drive after SECONDS
    #[arg(long, value_name = "SECONDS", default_value_t = SECONDS)]
    seconds: f64,
}

/// Middleware of the ROS 2 messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Middleware {
    /// Zenoh, in the formats of rmw_zenoh
    Zenoh,
    /// DDS
    Dds,
}

impl Middleware {
    fn of_ros2(self) -> rondel_net::ros2::Middleware {
        match self {
            Middleware::Zenoh => rondel_net::ros2::Middleware::Zenoh,
            Middleware::Dds => rondel_net::ros2::Middleware::Dds,
        }
    }

    fn live(self) -> &'static str {
        match self {
            Middleware::Zenoh => "live over rmw_zenoh",
            Middleware::Dds => "live over DDS",
        }
    }
}

impl Drive {
    fn plan(&self) -> Plan {
        Plan { seed: self.seed, faults: !self.no_faults, seconds: self.seconds.min(SECONDS) }
    }
}

#[derive(Debug, Args)]
struct Record {
    /// Write the messages to this file, as JSON lines
    file: PathBuf,
    #[command(flatten)]
    drive: Drive,
}

#[derive(Debug, Args)]
struct Publish {
    /// Publish over this middleware
    #[arg(long, value_enum, default_value = "zenoh")]
    middleware: Middleware,
    /// On Zenoh: listen on this endpoint, as the router of rmw_zenoh does
    #[arg(long, value_name = "ENDPOINT", default_value = "tcp/127.0.0.1:7447")]
    listen: String,
    /// On Zenoh: connect to the router at this endpoint, instead of being one
    #[arg(long, value_name = "ENDPOINT", conflicts_with = "listen")]
    connect: Option<String>,
    /// On DDS: join this domain
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(0..=230))]
    domain: u32,
    /// On DDS: use this network interface, by name or address
    #[arg(long, value_name = "NAME", default_value = "lo")]
    interface: String,
    #[command(flatten)]
    drive: Drive,
}

#[derive(Debug, Args)]
struct Study {
    /// Read the specification and the deployments from this folder
    #[arg(long, value_name = "FOLDER", default_value = "examples/autoware")]
    examples: PathBuf,
    /// Check recordings only
    #[arg(long, conflicts_with = "middleware")]
    recorded: bool,
    /// Drive live over this middleware only (default: each, at the same time)
    #[arg(long, value_enum)]
    middleware: Option<Middleware>,
    #[command(flatten)]
    drive: Drive,
}

#[derive(Debug, Args)]
struct Compare {
    /// The verdicts: JSON lines of a monitor
    verdicts: PathBuf,
    /// The begin of the drive, in nanoseconds since 1970, as `publish` prints it
    #[arg(long, value_name = "NANOSECONDS")]
    begin: u64,
    #[command(flatten)]
    drive: Drive,
}

#[derive(Debug, Args)]
struct Route {
    /// Read the settings of Zenoh from this file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

impl Autoware {
    /// Runs the selected action with this program `rondel`.
    ///
    /// # Errors
    /// When a process or a network fails, and when the violations are not those of the planted faults.
    pub fn run(&self, rondel: &Path) -> Result<()> {
        match &self.action {
            Action::Faults => {
                list();
                Ok(())
            }
            Action::Record(record) => write(&record.file, &messages(&record.drive.plan())),
            Action::Publish(publish) => {
                let place = match (publish.middleware, &publish.connect) {
                    (Middleware::Zenoh, Some(router)) => Place::ZenohRouter(router.clone()),
                    (Middleware::Zenoh, None) => Place::Zenoh(publish.listen.clone()),
                    (Middleware::Dds, _) => Place::Dds(publish.domain, publish.interface.clone()),
                };
                let node = live::Node::open(&place)?;
                node.wait_subscribed()?;
                let (begin_ns, _) = node.publish(&messages(&publish.drive.plan()))?;
                say(&format!("the drive began at {begin_ns} ns"));
                Ok(())
            }
            Action::Study(study) => study.run(rondel),
            Action::Compare(compare) => compare.run(),
            Action::Route(route) => route.run(),
        }
    }
}

fn list() {
    for fault in FAULTS {
        let (from, until) = (fault.from, fault.until);
        say(&format!("{from:>6.2} to {until:>5.2} s  {}: {}", fault.what, fault.found_by.join(", ")));
    }
}

fn write(path: &Path, all: &[Message]) -> Result<()> {
    let at = || io_error(path.display().to_string());
    let mut out = BufWriter::new(File::create(path).map_err(at())?);
    for message in all {
        writeln!(out, "{}", message.json(RECORDED_NS)).map_err(at())?;
    }
    out.flush().map_err(at())
}

impl Study {
    fn run(&self, rondel: &Path) -> Result<()> {
        let folder = std::env::temp_dir().join(format!("rondel-autoware-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(io_error(folder.display().to_string()))?;
        let done = self.run_in(rondel, &folder);
        let _ = fs::remove_dir_all(&folder);
        done
    }

    fn run_in(&self, rondel: &Path, folder: &Path) -> Result<()> {
        list();
        let plan = self.drive.plan();
        let without = Plan { faults: false, ..plan };
        let trace = folder.join("drive.jsonl");
        let mut results = Vec::new();
        for (of, plan) in [("recorded", plan), ("recorded without faults", without)] {
            write(&trace, &messages(&plan))?;
            results.push((of, self.check(rondel, &trace, &plan)?));
        }
        let all = messages(&plan);
        let live = self.live(rondel, folder, &all);
        for (middleware, outcome) in live {
            let Driven { verdicts, base_ns, seconds } = outcome?;
            results.push((middleware.live(), compare(&plan, &verdicts, base_ns)));
            rates(middleware.live(), &all, seconds);
        }
        conclude(&results)
    }

    /// Drives live over the middlewares, at the same time.
    fn live(&self, rondel: &Path, folder: &Path, all: &[Message]) -> Vec<(Middleware, Result<Driven>)> {
        let wanted = [Middleware::Zenoh, Middleware::Dds]
            .into_iter()
            .filter(|middleware| !self.recorded && self.middleware.is_none_or(|only| only == *middleware));
        std::thread::scope(|scope| {
            let run = |middleware: Middleware| {
                let (of, examples) = (middleware.of_ros2(), self.examples.as_path());
                (middleware, scope.spawn(move || live::run(rondel, of, examples, folder, all)))
            };
            let running: Vec<_> = wanted.map(run).collect();
            let panicked = |_| Failure::Network("the thread of a live drive has panicked".to_owned());
            let ended =
                running.into_iter().map(|(of, thread)| (of, thread.join().map_err(panicked).flatten()));
            ended.collect()
        })
    }

    fn check(&self, rondel: &Path, trace: &Path, plan: &Plan) -> Result<Comparison> {
        let output = Command::new(rondel)
            .args(["check", "--quiet", "--emit", "violations", "--format", "json"])
            .args([&self.examples.join("rondel.yaml"), trace])
            .output()
            .map_err(io_error(rondel.display().to_string()))?;
        if !matches!(output.status.code(), Some(0 | 1)) {
            return Err(Failure::Child {
                name: "rondel check".to_owned(),
                status: output.status.to_string(),
                log: String::from_utf8_lossy(&output.stderr).into_owned(),
            });
        }
        Ok(compare(plan, &String::from_utf8_lossy(&output.stdout), RECORDED_NS))
    }
}

impl Compare {
    fn run(&self) -> Result<()> {
        let at = self.verdicts.display().to_string();
        let verdicts = fs::read_to_string(&self.verdicts).map_err(io_error(&at))?;
        conclude(&[(&at, compare(&self.drive.plan(), &verdicts, self.begin))])
    }
}

impl Route {
    fn run(&self) -> Result<()> {
        let stopped = stop_signal()?;
        let settings =
            zenoh::Settings { config_file: Some(self.config.clone()), ..zenoh::Settings::default() };
        let session = zenoh::Session::open(&settings).map_err(|e| Failure::Network(e.to_string()))?;
        say("ready");
        while !stopped.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(100));
        }
        session.close().map_err(|e| Failure::Network(e.to_string()))
    }
}

/// Prints the comparisons of runs, each with its name.
///
/// # Errors
/// [`Failure::Count`] when the violations of one are not those of the planted faults.
fn conclude(runs: &[(&str, Comparison)]) -> Result<()> {
    for (of, comparison) in runs {
        comparison.lines(of).iter().for_each(|line| say(line));
    }
    let wrong = runs.iter().filter(|(_, comparison)| !comparison.is_exact()).count() as u64;
    let what = "runs in which the violations are not those of the planted faults".to_owned();
    if wrong > 0 { Err(Failure::Count { what, expected: 0, got: wrong }) } else { Ok(()) }
}

fn compare(plan: &Plan, verdicts: &str, base_ns: u64) -> Comparison {
    let violations: Vec<Violation> =
        verdicts.lines().filter_map(|line| Violation::parse(line, base_ns)).collect();
    Comparison::new(plan, &violations)
}

/// Prints the rates at which messages were published beside those of the published case study.
fn rates(of: &str, all: &[Message], seconds: f64) {
    say(&format!("{of}, messages a second: topic, here, published (one host), published (two hosts)"));
    for topic in TOPICS {
        let count = all.iter().filter(|message| message.topic == topic).count();
        let (one, two) = (topic.rate(), topic.rate_between_hosts());
        say(&format!("  {:12} {:5.1} {one:5.0} {two:5.0}", topic.name(), count as f64 / seconds));
    }
}
