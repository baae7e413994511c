//! `rondel run`: a specification against a live network.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::HumanCount;
use rondel_event::{TimeUnit, TopicId, Verdict};
use rondel_net::adapter::{Problems, Subscription};
use rondel_spec::Spec;

use crate::chains::ChainReport;
use crate::deployment::{self, Address, Alignment, Binding, Deployment, spread, time_of_event};
use crate::evidence::Witness;
use crate::networks::{NetworkArguments, Networks};
use crate::outlet::Sink;
use crate::output::{Emit, Format, colour_of};
use crate::pipeline::{self, AlignmentReport, Counts, Parts, Pipeline, Stop, Summary};
use crate::resume::{self, Resumed};
use crate::specification::{Reading, Specification, Syntax, TimeModel};
use crate::tally::{Tally, Unseen, counted};
use crate::{complain, exit, say, signals, warn};

/// How long what is still on its way to a subscription is waited for at the end.
const DRAIN: Duration = Duration::from_secs(2);
/// How long nothing must come for it to have ended.
const QUIET: Duration = Duration::from_millis(20);
/// How long a receiver may take to return from its last sample.
const CLOSE: Duration = Duration::from_secs(3);
/// How long a publisher that was woken may take to return.
const WAKE: Duration = Duration::from_millis(500);
/// How long publishers wait at the end until what they were given was taken.
const FLUSH: Duration = Duration::from_secs(2);

/// Check a live network and publish verdicts
///
/// With a deployment file (rondel.yaml), or in short form with --topic and --publish. Ends gracefully
/// on SIGINT and SIGTERM: everything received is checked, and a summary printed. The exit status is 0
/// then, whatever the verdicts: they were published.
#[derive(Debug, Args)]
pub struct Run {
    /// The deployment (.yaml), or in short form a specification
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// One formula instead of a specification file
    #[arg(short, long, value_name = "FORMULA", conflicts_with = "file", allow_hyphen_values = true)]
    formula: Option<String>,
    /// The language of the specification
    #[arg(long, value_enum, default_value = "rondel")]
    syntax: Syntax,
    /// The model of time of properties that do not say so themselves (default: dense with units of time
    /// in their bounds, otherwise steps)
    #[arg(long, value_enum)]
    time: Option<TimeModel>,
    /// Where a topic comes from: zenoh:KEY, dds:TOPIC or mqtt:TOPIC, with several topics NAME=zenoh:KEY
    #[arg(short, long, value_name = "ADDRESS")]
    topic: Vec<String>,
    /// Where verdicts go: zenoh:KEY, dds:TOPIC, mqtt:TOPIC or stdout; with several properties below it, one
    /// each
    #[arg(short, long, value_name = "ADDRESS")]
    publish: Vec<String>,
    /// Which verdicts leave (default: change)
    #[arg(short, long, value_enum)]
    emit: Option<Emit>,
    /// The time of an event: arrival, source, or the field of the message that holds it
    #[arg(long, value_name = "WHICH", default_value = "arrival")]
    time_from: String,
    /// The unit of a time that stands in a message
    #[arg(long, value_name = "UNIT", default_value = "s", value_parser = ["s", "ms", "us", "ns"])]
    time_unit: String,
    /// How verdicts are printed on standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Say with every violation why: what changed at the last moments
    #[arg(long)]
    explain: bool,
    /// End after so many messages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Go on from where a run ended that wrote this snapshot; from the beginning if there is none yet
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Another run will go on from here: write what is known into this file, now and then and at the end,
    /// and leave open there what is open
    #[arg(long, value_name = "FILE")]
    snapshot_to: Option<PathBuf>,
    /// How often that is, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "snapshot_to", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    snapshot_every: u64,
    /// Receive nothing before somebody has subscribed to every topic of the verdicts, at most so many
    /// seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=86_400))]
    wait_subscribers: u64,
    /// How the closing summary is written on standard error
    #[arg(long, value_enum, default_value = "text")]
    summary: Format,
    #[command(flatten)]
    network: NetworkArguments,
}

impl Run {
    /// Runs until it is to end, and returns the exit status.
    pub fn run(self) -> u8 {
        let started = Instant::now();
        match self.deployment() {
            Ok(mut deployment) => {
                let witness = self.explain.then(|| Witness::new(&mut deployment.specification));
                match self.resumed(&deployment) {
                    Ok(resumed) => run(&deployment, &self, witness, resumed, started),
                    Err(why) => {
                        complain(&why);
                        exit::USAGE
                    }
                }
            }
            Err(status) => status,
        }
    }

    fn resumed(&self, deployment: &Deployment) -> Result<Option<Resumed>, String> {
        let Some(file) = &self.resume else { return Ok(None) };
        if matches!(file.try_exists(), Ok(false)) {
            warn(&format!("there is no snapshot {} yet: this run begins from the beginning", file.display()));
            return Ok(None);
        }
        let accept = |resumed: &Resumed| pipeline::accepts(deployment, self.explain, resumed);
        resume::read(file, self.explain, accept).map(Some)
    }

    fn deployment(&self) -> Result<Deployment, u8> {
        let is_yaml = |file: &Path| file.extension().is_some_and(|e| e == "yaml" || e == "yml");
        let short = self.formula.is_some() || !self.topic.is_empty() || !self.publish.is_empty();
        let file = match &self.file {
            Some(file) if is_yaml(file) && short => {
                complain(
                    "--topic, --publish and --formula are the short form; with a deployment file they stand in it",
                );
                return Err(exit::USAGE);
            }
            Some(file) if is_yaml(file) => Some(file.clone()),
            None if !short => Some(deployment::default_file()),
            _ => None,
        };
        match file {
            Some(file) => {
                let network = NetworkArguments {
                    exit_on_unreachable: self.network.exit_on_unreachable,
                    ..NetworkArguments::default()
                };
                let reading = (self.time_from.as_str(), self.time_unit.as_str(), self.syntax, self.time);
                if self.network != network || reading != ("arrival", "s", Syntax::Rondel, None) {
                    complain(
                        "networks, times and syntax are settings of the deployment file: --zenoh-*, --dds-*, \
                         --mqtt-*, --time, --time-from, --time-unit and --syntax belong to the short form",
                    );
                    return Err(exit::USAGE);
                }
                let mut deployment = Deployment::from_file(&file).map_err(|_| exit::USAGE)?;
                deployment.exit_on_unreachable |= self.network.exit_on_unreachable;
                deployment.emit = self.emit.unwrap_or(deployment.emit);
                Ok(deployment)
            }
            None => self.short_form(),
        }
    }

    fn short_form(&self) -> Result<Deployment, u8> {
        let wrong = |message: String| {
            complain(&message);
            exit::USAGE
        };
        let reading = Reading { syntax: Some(self.syntax), time: self.time };
        let loaded = Specification::from_arguments(self.file.as_ref(), self.formula.as_deref(), reading);
        let specification = loaded.map_err(|_| exit::USAGE)?;
        let topics = &specification.spec.topics;
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
                    "say where topic '{}' comes from: --topic {name}zenoh:KEY",
                    topic.name
                )));
            };
            let time_unit = deployment::time_unit(&self.time_unit).unwrap_or(TimeUnit::Seconds);
            bindings.push(Binding { address, time: time_of_event(&self.time_from), time_unit });
        }
        let mut places = Vec::new();
        for text in &self.publish {
            places.push(Address::parse_sink(text).map_err(|e| wrong(format!("--publish {text}: {e}")))?);
        }
        if places.is_empty() {
            places.push(Address::Stdout);
        }
        let sinks = spread(&places, specification.program.properties())
            .map_err(|error| wrong(format!("--publish: {error}")))?;
        if let Some(error) = deployment::returns(bindings.iter().map(|b| &b.address), &sinks) {
            return Err(wrong(format!("--publish: {error}")));
        }
        let used = bindings.iter().map(|b| &b.address).chain(sinks.iter().flatten());
        let networks = self.network.settings(used).map_err(wrong)?;
        Ok(Deployment {
            networks,
            specification,
            emit: self.emit.unwrap_or(Emit::Change),
            alignment: Alignment::by_default(&bindings),
            synchronized: None,
            sources: bindings,
            sinks,
            exit_on_unreachable: self.network.exit_on_unreachable,
        })
    }
}

fn run(
    deployment: &Deployment,
    arguments: &Run,
    witness: Option<Witness>,
    resumed: Option<Resumed>,
    started: Instant,
) -> u8 {
    let (stop, stopped) = mpsc::channel();
    let asking = stop.clone();
    // The receiver lives as long as this function; after it there is nothing to stop.
    let asked = match signals::listen(move || _ = asking.send(Stop::Asked)) {
        Ok(asked) => asked,
        Err(error) => {
            complain(&format!("cannot listen for signals: {error}"));
            return exit::USAGE;
        }
    };
    let Deployment { networks, exit_on_unreachable, .. } = deployment;
    let networks = match crate::networks::open(networks, *exit_on_unreachable, || asked.yet()) {
        Ok(networks) => networks,
        Err(status) => return status,
    };
    let colour = io::stdout().is_terminal();
    let Run { format, count, .. } = *arguments;
    let wait_subscribers = Duration::from_secs(arguments.wait_subscribers);
    let every = Duration::from_secs(arguments.snapshot_every);
    let snapshots = arguments.snapshot_to.as_ref().map(|file| (file.clone(), every));
    let options =
        Options { format, colour, witness, resumed, snapshots, count, wait_subscribers, stop, screen: None };
    let running = Running::start(deployment, networks, options, || asked.yet());
    let running = match running {
        Ok(running) => running,
        Err(error) => {
            complain(&error);
            return exit::NETWORK;
        }
    };
    say(&format!(
        "ready after {} ms: {}",
        started.elapsed().as_millis(),
        deployment.sources.iter().map(|b| b.address.to_string()).collect::<Vec<_>>().join(", ")
    ));
    let why = stopped.recv().unwrap_or(Stop::Asked);
    let Some(report) = running.end(why) else {
        complain(
            "a subscriber of the verdicts takes nothing, so that ending cannot wait for it: verdicts are lost",
        );
        // Whatever is dropped from here on would wait for it again.
        std::process::exit(i32::from(exit::NETWORK));
    };
    say(&match arguments.summary {
        Format::Json => report.json(),
        Format::Text => report.summary(io::stderr().is_terminal()),
    });
    if !report.kept {
        exit::TRACE
    } else if report.flushed && report.counts.unpublished == 0 {
        exit::SATISFIED
    } else {
        exit::NETWORK
    }
}

/// How a deployment is run.
pub struct Options {
    /// How verdicts are printed on standard output.
    pub format: Format,
    /// Whether in colour.
    pub colour: bool,
    /// What watches why properties are violated, where that is asked for.
    pub witness: Option<Witness>,
    /// Where it goes on from, if it does.
    pub resumed: Option<Resumed>,
    /// The file for what another run will go on from, and how often it is written.
    pub snapshots: Option<(PathBuf, Duration)>,
    /// After how many messages to stop.
    pub count: Option<u64>,
    /// How long to wait, before anything is received, until somebody has subscribed to the verdicts.
    pub wait_subscribers: Duration,
    /// Where to say so.
    pub stop: mpsc::Sender<Stop>,
    /// What shows messages that were put in order, besides where they go.
    pub screen: Option<Sink>,
}

/// A deployment that is running.
pub struct Running {
    networks: Networks,
    pipeline: Arc<Pipeline>,
    subscriptions: Vec<Box<dyn Subscription>>,
    /// What gives the verdicts that time brings, if it brings some.
    keeper: Option<JoinHandle<()>>,
    /// What writes down, now and then, what is known, if that is asked for.
    snapshots: Option<Snapshots>,
    spec: Spec,
    /// What is published.
    leaves: &'static str,
}

/// What another run will go on from.
struct Snapshots {
    file: PathBuf,
    /// Ends the thread, by being dropped.
    end: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl Snapshots {
    /// Writes one so often, on a thread of its own.
    fn start(pipeline: Arc<Pipeline>, file: PathBuf, every: Duration) -> io::Result<Snapshots> {
        let (end, ended) = mpsc::channel::<()>();
        let target = file.clone();
        let write = move || {
            let mut failed = false;
            while ended.recv_timeout(every) == Err(mpsc::RecvTimeoutError::Timeout) {
                let written = resume::write(&target, &pipeline.snapshot());
                if let Err(error) = &written
                    && !failed
                {
                    warn(&format!("cannot write the snapshot {}: {error}; trying again", target.display()));
                }
                failed = written.is_err();
            }
        };
        let thread = thread::Builder::new().name("snapshots".into()).spawn(write)?;
        Ok(Snapshots { file, end, thread })
    }

    /// Writes the last one. Whether it is there.
    fn end(self, pipeline: &Pipeline) -> bool {
        drop(self.end);
        // If it has panicked, that has been said.
        let _ = self.thread.join();
        match resume::write(&self.file, &pipeline.snapshot()) {
            Ok(()) => true,
            Err(error) => {
                complain(&format!("cannot write the snapshot {}: {error}", self.file.display()));
                false
            }
        }
    }
}

impl Running {
    /// Makes the publishers, then the subscriptions: from the first message on there is a way out.
    ///
    /// # Errors
    /// What could not be made, and why.
    pub fn start(
        deployment: &Deployment,
        networks: Networks,
        options: Options,
        asked: impl Fn() -> bool,
    ) -> Result<Running, String> {
        let sink = |address: &Address| match address {
            Address::Stdout => Ok(Sink::Stdout),
            address => networks.publisher(address, true).map(Sink::Network),
        };
        let all = |places: &[Address]| places.iter().map(sink).collect::<Result<Vec<Sink>, String>>();
        let sinks: Vec<Vec<Sink>> =
            deployment.sinks.iter().map(|places| all(places)).collect::<Result<_, _>>()?;
        let mut synchronized = deployment.synchronized.as_deref().map(all).transpose()?;
        let reports = all(&deployment.alignment.reports)?;
        if !options.wait_subscribers.is_zero() {
            let deadline = Instant::now() + options.wait_subscribers;
            let verdicts = sinks.iter().flatten().zip(deployment.sinks.iter().flatten());
            let sets = synchronized.iter().flatten().zip(deployment.synchronized.iter().flatten());
            for (sink, address) in verdicts.chain(sets) {
                let Sink::Network(publisher) = sink else { continue };
                // In slices, to be ended in between.
                let mut matched = false;
                while !matched && !asked() && Instant::now() < deadline {
                    matched = publisher.wait_matched(Duration::from_millis(100));
                }
                if !matched {
                    warn(&format!("nobody has subscribed to {address}; verdicts are published all the same"));
                }
            }
        }
        if let Some(screen) = options.screen {
            synchronized.get_or_insert_default().push(screen);
        }
        let pipeline = Arc::new(Pipeline::new(Parts {
            specification: &deployment.specification,
            bindings: &deployment.sources,
            alignment: &deployment.alignment,
            synchronized,
            reports,
            emit: deployment.emit,
            sinks,
            batching: deployment.addresses().any(Address::holds_back),
            format: options.format,
            colour: options.colour,
            witness: options.witness,
            resumed: options.resumed,
            goes_on: options.snapshots.is_some(),
            stop_after: options.count,
            stop: options.stop,
        })?);
        let subscribe = |(i, binding): (usize, &Binding)| {
            networks.subscribe(&binding.address, TopicId(i as u32), Arc::clone(&pipeline))
        };
        let mut subscriptions: Vec<_> =
            deployment.sources.iter().enumerate().map(subscribe).collect::<Result<_, _>>()?;
        if let Some(address) = &deployment.alignment.progress {
            subscriptions.push(networks.subscribe(address, pipeline.progress(), Arc::clone(&pipeline))?);
        }
        let keep_time = {
            let pipeline = Arc::clone(&pipeline);
            move || pipeline.keep_time()
        };
        let keeper = pipeline.is_timed().then(|| {
            let thread = thread::Builder::new().name("time".into());
            thread.spawn(keep_time).map_err(|error| format!("cannot start a thread: {error}"))
        });
        let snapshots = options.snapshots.map(|(file, every)| {
            Snapshots::start(Arc::clone(&pipeline), file, every)
                .map_err(|error| format!("cannot start a thread: {error}"))
        });
        Ok(Running {
            snapshots: snapshots.transpose()?,
            subscriptions,
            keeper: keeper.transpose()?,
            networks,
            pipeline,
            spec: deployment.specification.spec.clone(),
            leaves: match (&deployment.synchronized, deployment.alignment.policy.makes_sets()) {
                (None, _) => "verdicts",
                (Some(_), true) => "sets",
                (Some(_), false) => "messages",
            },
        })
    }

    /// Ends gracefully: what has been received is checked and its verdicts published. `None` when a
    /// subscriber of the verdicts takes nothing, so that this cannot be.
    pub fn end(self, why: Stop) -> Option<Report> {
        if why == Stop::Asked {
            let drained = Instant::now() + DRAIN;
            for subscription in &self.subscriptions {
                subscription.drain(QUIET, drained.saturating_duration_since(Instant::now()));
            }
        }
        let mut problems = Problems::default();
        let mut closed = true;
        let deadline = Instant::now() + CLOSE;
        for subscription in &self.subscriptions {
            closed &= subscription.close(deadline.saturating_duration_since(Instant::now()));
            let seen = subscription.problems();
            problems.malformed += seen.malformed;
            problems.empty += seen.empty;
            problems.lost += seen.lost;
            problems.incompatible += seen.incompatible;
            problems.duplicates += seen.duplicates;
            problems.breaks += seen.breaks;
        }
        if !closed {
            self.networks.wake();
        }
        let publishers = self.pipeline.end(WAKE)?;
        if let Some(keeper) = self.keeper {
            // It has nothing left to do; if it has panicked, that has been said.
            let _ = keeper.join();
        }
        let kept = self.snapshots.is_none_or(|snapshots| snapshots.end(&self.pipeline));
        let mut flushed = closed;
        let deadline = Instant::now() + FLUSH;
        for publisher in &publishers {
            flushed &= publisher.flush(deadline.saturating_duration_since(Instant::now()));
        }
        drop(self.subscriptions);
        let Summary { counts, tallies, backwards, unseen, left_out, chains, alignment } =
            self.pipeline.summary();
        let counted = why == Stop::Count;
        drop(publishers);
        flushed &= self.networks.close();
        Some(Report {
            counts,
            tallies,
            backwards,
            unseen,
            counted,
            problems,
            left_out,
            alignment,
            chains,
            leaves: self.leaves,
            properties: self.spec.properties.into_iter().map(|property| property.name).collect(),
            kept,
            flushed,
        })
    }
}

/// What a run comes to.
pub struct Report {
    /// What happened to the messages.
    pub counts: Counts,
    /// What became of the properties.
    pub tallies: Vec<Tally>,
    backwards: u64,
    unseen: Unseen,
    /// Whether it ended with the last message that was asked for.
    counted: bool,
    problems: Problems,
    /// What could not be taken into account.
    left_out: Vec<String>,
    chains: Vec<ChainReport>,
    /// What alignment came to.
    alignment: Option<AlignmentReport>,
    /// What is published.
    leaves: &'static str,
    properties: Vec<String>,
    /// Whether what another run goes on from could be written, where that was asked for.
    kept: bool,
    /// Whether everything has left.
    pub flushed: bool,
}

impl Report {
    /// For programs: one JSON object, with `seconds` from the first message received to the last.
    fn json(&self) -> String {
        let Counts { received, checked, undecodable, mistyped, verdicts, unpublished, first, last, .. } =
            self.counts;
        let Problems { malformed, lost, incompatible, .. } = self.problems;
        let seconds =
            first.zip(last).map_or(0.0, |(first, last)| (last.as_nanos() - first.as_nanos()) as f64 / 1e9);
        serde_json::json!({
            "received": received,
            "checked": checked,
            "undecodable": undecodable + malformed,
            "mistyped": mistyped,
            "empty": self.problems.empty,
            "incompatible": incompatible,
            "duplicates": self.problems.duplicates,
            "breaks": self.problems.breaks,
            "dropped": lost + unpublished,
            self.leaves: verdicts,
            "seconds": seconds,
            "flushed": self.flushed,
            "left_out": self.left_out,
            "chains": self.chains.iter().map(ChainReport::json).collect::<Vec<_>>(),
            "alignment": self.alignment.as_ref().map(AlignmentReport::json),
        })
        .to_string()
    }

    /// For people.
    pub fn summary(&self, colour: bool) -> String {
        let Counts {
            received,
            checked,
            undecodable,
            mistyped,
            verdicts,
            unpublished,
            first,
            last,
            until_last,
        } = self.counts;
        let Problems { malformed, lost, incompatible, .. } = self.problems;
        let mut summary = format!(
            "received {}, checked {}, undecodable {}, dropped {}, {} {}",
            HumanCount(received),
            HumanCount(checked),
            HumanCount(undecodable + malformed),
            HumanCount(lost + unpublished),
            self.leaves,
            HumanCount(verdicts),
        );
        for (count, what) in [
            (mistyped, "values of another type"),
            (self.backwards, "times going backwards"),
            (incompatible, "publishers that do not match"),
            (self.problems.duplicates, "possible duplicates"),
            (self.problems.breaks, "broken connections"),
        ] {
            if count > 0 {
                summary += &format!(", {what} {}", HumanCount(count));
            }
        }
        if let (Some(first), Some(last)) = (first, last) {
            let seconds = (last.as_nanos() - first.as_nanos()) as f64 / 1e9;
            summary += &format!("; {seconds:.3} s since the first message");
            // Otherwise it ended some time after the last message, nobody knows how long.
            if self.counted && seconds > 0.0 {
                let rate = ((until_last.max(1) - 1) as f64 / seconds).round() as u64;
                summary += &format!(", {} messages/s", HumanCount(rate));
            }
        }
        if !self.flushed {
            summary += "; NOT everything could be handed over in time";
        }
        for (property, tally) in self.properties.iter().zip(&self.tallies) {
            let (on, off) = match tally.verdict() {
                Some(verdict) if colour => (colour_of(verdict), "\x1b[0m"),
                _ => ("", ""),
            };
            let verdict = tally.verdict().map_or("no event", Verdict::as_str);
            summary += &format!("\n  {on}{verdict:<12}{off}  {property}");
            if let Some(first) = &tally.first {
                let times = counted(tally.violations, "time", "times");
                // The time of a live system is a number that nobody knows.
                let first_step = first.step.filter(|_| first.key.is_empty());
                let first = first_step.map_or_else(|| first.to_string(), |step| format!("at step {step}"));
                summary += &format!(": became violated {times}, first {first}");
            }
        }
        for chain in &self.chains {
            summary += &format!("\n{}", chain.text());
        }
        let alignment = self.alignment.as_ref().map_or_else(Vec::new, AlignmentReport::sentences);
        for said in self.left_out.iter().chain(&alignment) {
            summary += &format!("\n  {said}");
        }
        if received > 0
            && let Some(names) = self.unseen.names()
        {
            summary += &format!("\n  no message carried what the specification reads as: {names}");
        }
        summary
    }
}
