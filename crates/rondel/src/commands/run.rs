//! `rondel run`: a specification against a live network.

use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use clap::Args;
use rondel_event::{TimeUnit, TopicId};
use rondel_net::durability::Schedule;
use rondel_recording::durable;
use rondel_runtime::{Input, Session, SessionPlan};

use super::from_deployment;
use crate::deployment::{
    self, Address, AlignmentSection, Binding, Deployment, Durability, Typing, Unheard, check_time_field,
    spread, time_source, unheard,
};
use crate::discover;
use crate::live::{Options, Running};
use crate::networks::{self, NetworkArguments};
use crate::output::{Emit, Format};
use crate::pipeline::{self, Simulated, Stop};
use crate::recorder::FlightSettings;
use crate::resume;
use crate::signals::{self, Asked};
use crate::specification::{Reading, Specification, is_deployment};
use crate::spool::Spools;
use crate::summary::status;
use crate::{complain, exit, say, warn};

/// How often to look whether a network was given up.
const CHECK: Duration = Duration::from_secs(1);

/// Check a live network and publish verdicts
///
/// Reads a deployment file (rondel.yaml), or in short form --topic and --publish. SIGINT and SIGTERM end
/// the run gracefully: it checks everything that was received and prints a summary. The exit status is
/// then 0, whatever the verdicts, which were published, unless --strict is given.
#[derive(Debug, Args)]
pub struct Run {
    /// The deployment (.yaml), or in short form a specification
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// One formula instead of a specification file
    #[arg(short, long, value_name = "FORMULA", conflicts_with = "file", allow_hyphen_values = true)]
    formula: Option<String>,
    #[command(flatten)]
    reading: Reading,
    /// The source of a topic: zenoh:KEY, dds:TOPIC or mqtt:TOPIC; with several topics NAME=zenoh:KEY
    #[arg(short, long, value_name = "ADDRESS")]
    topic: Vec<String>,
    /// The sink of verdicts: zenoh:KEY, dds:TOPIC, mqtt:TOPIC or stdout; with several properties each has
    /// its own topic below it
    #[arg(short, long, value_name = "ADDRESS")]
    publish: Vec<String>,
    /// The verdicts to publish (default: change)
    #[arg(short, long, value_enum)]
    emit: Option<Emit>,
    /// The time of an event: arrival, source, or a field of the message
    #[arg(long, value_name = "WHICH", default_value = "arrival")]
    time_from: String,
    /// The unit of times in messages that are plain numbers
    #[arg(long, value_name = "UNIT", default_value = "s", value_parser = ["s", "ms", "us", "ns"])]
    time_unit: String,
    /// The format of verdicts on standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Explain each violation: show the values that caused it
    #[arg(long)]
    explain: bool,
    /// Stop after N messages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Resume from a snapshot; start from the beginning if there is none yet
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Write a snapshot to this file from time to time and at the end, and leave pending obligations open
    /// for the next run
    #[arg(long, value_name = "FILE")]
    snapshot_to: Option<PathBuf>,
    /// The time between snapshots in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "snapshot_to", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    snapshot_every: u64,
    /// Wait up to SECONDS for subscribers on every verdict topic before processing messages
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=86_400))]
    wait_subscribers: u64,
    /// Exit with the status that `rondel check --strict` has: 1 after a violation, 4 if a property was not
    /// decided or is vacuous
    #[arg(long)]
    strict: bool,
    /// The format of the closing summary on standard error
    #[arg(long, value_enum, default_value = "text")]
    summary: Format,
    #[command(flatten)]
    network: NetworkArguments,
}

impl Run {
    /// Runs until a signal or the wanted number of messages, and returns the exit status.
    pub fn run(self) -> u8 {
        let started = Instant::now();
        match self.deployment() {
            Ok(deployment) => self.run_deployment(deployment, started).unwrap_or_else(|status| status),
            Err(status) => status,
        }
    }

    /// Learns the types of topics, and runs.
    fn run_deployment(&self, mut deployment: Deployment, started: Instant) -> Result<u8, u8> {
        let (stop, stopped) = mpsc::channel();
        let asking = stop.clone();
        // The receiver lives as long as this function: a later signal has nothing to stop.
        let asked = signals::listen(move || _ = asking.send(Stop::Asked)).map_err(|error| {
            complain(&format!("cannot listen for signals: {error}"));
            exit::USAGE
        })?;
        discover::types(&mut deployment, || asked.yet())?;
        Ok(run(&deployment, self, started, (stop, &stopped, &asked)))
    }

    /// The session: a new one, or one that continues from a snapshot.
    fn session(&self, plan: &SessionPlan, exactly: bool) -> Result<Session, String> {
        // Without the state, messages that are repeated would count as new.
        match self.resume.as_ref().or(self.snapshot_to.as_ref().filter(|_| exactly)) {
            Some(file) if matches!(file.try_exists(), Ok(false)) => {
                let other = self.snapshot_to.as_ref().filter(|to| *to != file && to.exists());
                if let Some(other) = other {
                    return Err(format!(
                        "the snapshot {} does not exist, and {} would be replaced: name it in --resume, or remove it",
                        file.display(),
                        other.display()
                    ));
                }
                warn(&format!(
                    "the snapshot {} does not exist yet: starting from the beginning",
                    file.display()
                ));
            }
            Some(file) => return resume::restore(file, plan, ""),
            None => {}
        }
        plan.start().map_err(|error| error.to_string())
    }

    /// The snapshots to write.
    fn schedule(&self, durability: Option<Durability>) -> Result<Option<(PathBuf, Schedule)>, &'static str> {
        let (every, exactly) = match (durability, &self.snapshot_to) {
            (Some(Durability::None), Some(_)) => {
                return Err("`durability: none` writes no snapshots: leave --snapshot-to out");
            }
            (Some(Durability::Snapshot | Durability::Exactly(_)), None) => {
                return Err(
                    "`durability` of the deployment needs a file for snapshots: add --snapshot-to FILE",
                );
            }
            (Some(Durability::Exactly(every)), _) => (every, true),
            _ => (Duration::from_secs(self.snapshot_every), false),
        };
        Ok(self.snapshot_to.clone().map(|file| (file, Schedule { every, exactly })))
    }

    fn deployment(&self) -> Result<Deployment, u8> {
        let short = self.formula.is_some() || !self.topic.is_empty() || !self.publish.is_empty();
        let file = match &self.file {
            Some(file) if is_deployment(file) => Some(file.clone()),
            None if !short => Some(deployment::default_file()),
            _ => None,
        };
        match file {
            Some(file) => {
                let given = [
                    (self.formula.is_some(), "--formula"),
                    (!self.topic.is_empty(), "--topic"),
                    (!self.publish.is_empty(), "--publish"),
                    (self.time_from != "arrival", "--time-from"),
                    (self.time_unit != "s", "--time-unit"),
                ];
                let given = given.into_iter().chain(self.reading.given()).chain(self.network.given());
                from_deployment("run", given).map_err(|why| {
                    complain(&why);
                    exit::USAGE
                })?;
                let mut deployment = Deployment::from_file(&file).map_err(|_| exit::USAGE)?;
                deployment.exit_on_unreachable |= self.network.exit_on_unreachable;
                deployment.emit = self.emit.map_or(deployment.emit, Into::into);
                self.emitting(deployment)
            }
            None => self.short_form().and_then(|deployment| self.emitting(deployment)),
        }
    }

    /// Refuses sinks that cannot show what the options emit.
    fn emitting(&self, deployment: Deployment) -> Result<Deployment, u8> {
        match deployment::check_emit(deployment.emit, &deployment.sinks) {
            Ok(()) => Ok(deployment),
            Err(why) => {
                complain(&format!(
                    "--emit violations: {}",
                    why.replace("write `emit: change`", "use --emit change")
                ));
                Err(exit::USAGE)
            }
        }
    }

    fn short_form(&self) -> Result<Deployment, u8> {
        let wrong = |message: String| {
            complain(&message);
            exit::USAGE
        };
        let loaded =
            Specification::from_arguments(self.file.as_ref(), self.formula.as_deref(), &self.reading);
        let specification = loaded.map_err(|_| exit::USAGE)?;
        let topics = specification.spec.declared();
        let mut sources: Vec<Option<Address>> = vec![None; topics.len()];
        for text in &self.topic {
            let (index, address) = match text.split_once('=') {
                Some((name, address)) => match topics.iter().position(|t| t.name == name) {
                    Some(index) => (index, address),
                    None => {
                        return Err(wrong(format!(
                            "--topic {text}: the specification has no topic '{name}'"
                        )));
                    }
                },
                None if topics.len() == 1 => (0, text.as_str()),
                None => return Err(wrong(format!("--topic {text}: with several topics write NAME={text}"))),
            };
            if sources[index].is_some() {
                return Err(wrong(format!(
                    "--topic {text}: topic '{}' has a source already",
                    topics[index].name
                )));
            }
            sources[index] =
                Some(Address::parse_source(address).map_err(|e| wrong(format!("--topic {text}: {e}")))?);
        }
        let mut bindings = Vec::new();
        for (topic, source) in topics.iter().zip(sources) {
            let Some(address) = source else {
                let name = if specification.is_formula { String::new() } else { format!("{}=", topic.name) };
                return Err(wrong(format!(
                    "topic '{}' has no source; add --topic {name}ADDRESS, where ADDRESS is zenoh:KEY, dds:TOPIC, \
                     ros2:/TOPIC or mqtt:TOPIC",
                    topic.name
                )));
            };
            if let Err(error) = check_time_field(topic, &self.time_from) {
                return Err(wrong(format!("--time-from {}: {error}", self.time_from)));
            }
            let time_unit = deployment::time_unit(&self.time_unit).unwrap_or(TimeUnit::Seconds);
            let mut input = Input { time: time_source(&self.time_from), time_unit, ..Input::default() };
            let schemas = &*specification.schemas;
            let typing = Typing { topic: Some(topic), own: None, has_encoding: false, schemas };
            let completed = typing.complete(address, &mut input);
            let (address, doubt) =
                completed.map_err(|why| wrong(format!("topic '{}': {why}", topic.name)))?;
            doubt.iter().for_each(|why| warn(&format!("topic '{}': {why}", topic.name)));
            bindings.push(Binding { address, input });
        }
        for Unheard { text, misleads, .. } in unheard(&specification.spec, &bindings) {
            if misleads {
                return Err(wrong(text));
            }
            warn(&text);
        }
        let mut places = Vec::new();
        for text in &self.publish {
            places.push(Address::parse_verdicts(text).map_err(|e| wrong(format!("--publish {text}: {e}")))?);
        }
        if places.is_empty() {
            places.push(Address::Stdout);
        }
        let sinks = spread(&places, &specification.spec.address_names())
            .map_err(|error| wrong(format!("--publish: {error}")))?;
        if let Some(error) = deployment::returns(bindings.iter().map(|b| &b.address), &sinks) {
            return Err(wrong(format!("--publish: {error}")));
        }
        let used = bindings.iter().map(|b| &b.address).chain(sinks.iter().flatten());
        let network = self.network.with_wait();
        let networks = network.settings(used).map_err(wrong)?;
        Ok(Deployment {
            networks,
            specification,
            emit: self.emit.unwrap_or(Emit::Change).into(),
            alignment: AlignmentSection::by_default(
                &bindings.iter().map(|binding| binding.input.clone()).collect::<Vec<_>>(),
            ),
            synchronized: None,
            sources: bindings,
            sinks,
            slow_consumer: network.slow_consumer.unwrap_or_default(),
            spool: None,
            heartbeat: None,
            record: None,
            exit_on_unreachable: self.network.exit_on_unreachable,
            missing_after: Some(deployment::MISSING_AFTER),
            limits: deployment::Limits::default(),
            durability: None,
            ids: false,
            blind: Default::default(),
            reset: Default::default(),
            clock: None,
        })
    }
}

/// Runs until the end is asked for: by `stop`, which `stopped` receives, and by a signal, as `asked` tells.
fn run(
    deployment: &Deployment,
    arguments: &Run,
    started: Instant,
    (stop, stopped, asked): (mpsc::Sender<Stop>, &mpsc::Receiver<Stop>, &Asked),
) -> u8 {
    if deployment.clock.is_some() && (arguments.resume.is_some() || arguments.snapshot_to.is_some()) {
        complain(
            "with `use_sim_time`, a run cannot continue from a snapshot: leave --resume and --snapshot-to out",
        );
        return exit::USAGE;
    }
    if deployment.clock.is_some() && deployment.record.is_some() {
        warn(
            "with `use_sim_time`, `before` and `after` of `record` are times of this machine, as are log times",
        );
    }
    let (clock, simulation) = pipeline::clock(deployment.clock.is_some());
    let plan = Arc::new(deployment.plan(rondel_runtime::Options {
        explain: arguments.explain,
        missing_after: deployment.missing_after,
        clock: Arc::clone(&clock),
        live: true,
        ..rondel_runtime::Options::default()
    }));
    plan.mixtures().iter().chain(&plan.undecidable()).for_each(|sentence| warn(sentence));
    let schedule = match arguments.schedule(deployment.durability) {
        Ok(schedule) => schedule,
        Err(error) => {
            complain(error);
            return exit::USAGE;
        }
    };
    if schedule.is_none() && takes_what_was_kept(deployment) {
        warn(
            "`clean_start: false` without --snapshot-to: what the broker kept is taken by this run, and is missing in a \
             later run that resumes from an earlier snapshot; nothing tells that run so",
        );
    }
    let exact = schedule.as_ref().filter(|(_, schedule)| schedule.exactly);
    let mut session = match arguments.session(&plan, exact.is_some()) {
        Ok(session) => session,
        Err(error) => {
            complain(&error);
            return exit::USAGE;
        }
    };
    if let Some(Err(error)) = deployment.record.as_ref().map(FlightSettings::check) {
        complain(&error);
        return exit::TRACE;
    }
    let spools = match Spools::open(deployment.spool.as_ref(), deployment.outlets()) {
        Ok(spools) => spools,
        Err(error) => {
            complain(&error);
            return exit::TRACE;
        }
    };
    let mut settings = deployment.networks.clone();
    let exact_run = exact.is_some();
    if let Some((file, _)) = exact {
        // Before a message is taken that could not be acknowledged.
        if let Err(error) = durable::replace(file, &session.snapshot("")) {
            complain(&format!("cannot write the snapshot {}: {error}", file.display()));
            return exit::TRACE;
        }
        settings.hold(session.attachment());
    }
    let networks = match networks::open(&settings, deployment.exit_on_unreachable, || asked.yet()) {
        Ok(networks) => networks,
        Err(status) => return status,
    };
    networks::show_listeners(&networks);
    // Without holding back, messages that were acknowledged after the snapshot are not repeated.
    let kept = |(_, binding): &(u32, &Binding)| {
        (exact_run || session.continues_whole()) && networks.kept(&binding.address)
    };
    let kept: Vec<TopicId> =
        (0..).zip(&deployment.sources).filter(kept).map(|(topic, _)| TopicId(topic)).collect();
    session.resumed(&kept);
    let options = Options {
        format: arguments.format,
        colour: crate::terminal::colours_stdout(),
        snapshots: schedule,
        count: arguments.count,
        wait_subscribers: Duration::from_secs(arguments.wait_subscribers),
        stop,
        spools,
        screen: None,
        simulated: simulation.map(|simulation| Simulated::new(simulation, Arc::clone(&plan))),
    };
    let running = Running::start(deployment, (&plan, session), clock, networks, options, || asked.yet());
    let running = match running {
        Ok(running) => running,
        Err(error) => {
            complain(&error);
            return exit::NETWORK;
        }
    };
    say(&format!("ready after {} ms{}", started.elapsed().as_millis(), discover::read_now(deployment)));
    let (why, failed) = wait(&running, stopped);
    let Some(summary) = running.end(why) else {
        complain("a subscriber of the verdicts does not accept them: the last verdicts are lost");
        // Dropping the publishers would wait for this subscriber again.
        std::process::exit(i32::from(exit::NETWORK));
    };
    say(&match arguments.summary {
        Format::Json => summary.json(),
        Format::Text => summary.text(crate::terminal::colours_stderr()),
    });
    if let Err(error) = &summary.kept {
        complain(&format!("cannot write the last snapshot: {error}"));
        exit::TRACE
    } else if !summary.is_complete() || failed {
        exit::NETWORK
    } else if arguments.strict {
        match status(&summary.summary, true) {
            // What came meanwhile is not known.
            exit::SATISFIED if summary.was_cut_off() || summary.stood() => exit::INCONCLUSIVE,
            status => status,
        }
    } else {
        exit::SATISFIED
    }
}

/// Whether a run takes messages that an MQTT broker has kept for the next run.
fn takes_what_was_kept(deployment: &Deployment) -> bool {
    let keeps = deployment.networks.mqtt.as_ref().is_some_and(|mqtt| !mqtt.settings.clean_start);
    keeps && deployment.sources.iter().any(|binding| matches!(binding.address, Address::Mqtt(..)))
}

/// Waits for the end of a run; returns its reason, and whether a network was given up.
fn wait(running: &Running, stopped: &mpsc::Receiver<Stop>) -> (Stop, bool) {
    loop {
        match stopped.recv_timeout(CHECK) {
            Ok(why) => return (why, false),
            Err(mpsc::RecvTimeoutError::Disconnected) => return (Stop::Asked, false),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                if let Some(reason) = running.failure() {
                    complain(&reason);
                    return (Stop::Asked, true);
                }
            }
        }
    }
}
