//! `rondel record`: writes messages to MCAP files as they arrive.

mod summary;
mod tape;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use rondel_event::{Timestamp, TopicId};
use rondel_net::adapter::{Problems, Subscription, now};
use rondel_net::ros2;
use rondel_recording::Compression;
use rondel_runtime::Input;

use super::from_deployment;
use super::listen::{Listening, named_deployment, only_listens};
use crate::deployment::{self, Address, Binding, Deployment};
use crate::discover::{self, Learning};
use crate::losses::{Seen, Undelivered};
use crate::networks::{NetworkArguments, Networks};
use crate::output::Format;
use crate::pipeline::{Stop, sentence};
use crate::recorder::{Channel, Disk, Job, Place, warn_of_doubles};
use crate::{complain, exit, say, signals, warn};
use tape::{Names, Tape};

/// How long messages may wait for those that fill a segment.
const SEAL: Duration = Duration::from_millis(100);
/// After so many of these, losses are reported: once a second.
const LOSSES: u32 = 10;
/// For how much longer than that the recorder does not run if it was stopped, as `run` takes it.
const PAUSE: Duration = Duration::from_millis(500);
/// How long after it messages may still come that waited meanwhile.
const AFTER: Duration = Duration::from_secs(1);
/// How long to wait at the end for messages that are on their way, and for no message to come.
const DRAIN: Duration = Duration::from_secs(1);
const QUIET: Duration = Duration::from_millis(20);
/// How long a receiver may take to return from its last message.
const CLOSE: Duration = Duration::from_secs(3);
/// The memory of messages that wait to be written, unless it is set.
const MEMORY: usize = 64 << 20;

/// Record the messages on topics into an MCAP file, as they are
#[derive(Debug, Args)]
pub struct Record {
    /// The topics: zenoh:KEY or mqtt:TOPIC (wildcards allowed), dds:TOPIC or ros2:/TOPIC, with an encoding
    /// that is not JSON dds+cdr:TOPIC; or a deployment (.yaml) for all its topics
    #[arg(value_name = "ADDRESS", required = true)]
    sources: Vec<String>,
    /// The file; when it is split, FILE_0.mcap, FILE_1.mcap and so on
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Begin the next file when one has this size, such as 1 GiB
    #[arg(long, value_name = "SIZE", value_parser = split_size)]
    split_size: Option<u64>,
    /// Begin the next file after this time, such as 10 min
    #[arg(long, value_name = "DURATION", value_parser = split_time)]
    split_time: Option<i64>,
    /// How messages are compressed
    #[arg(long, value_enum, default_value = "zstd")]
    compression: Compressed,
    /// The memory for messages that wait to be written (default: 64 MiB)
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<usize>,
    /// Stop after N messages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// The type of the messages, such as nav_msgs/msg/Odometry (default on DDS: that of the publisher)
    #[arg(long = "type", value_name = "TYPE")]
    message_type: Option<String>,
    /// A file or folder with definitions of message types (may be repeated)
    #[arg(long, value_name = "PATH")]
    schemas: Vec<PathBuf>,
    /// The format of the closing summary on standard error
    #[arg(long, value_enum, default_value = "text")]
    summary: Format,
    #[command(flatten)]
    network: NetworkArguments,
}

/// How messages are compressed.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Compressed {
    /// Small files
    Zstd,
    /// Less work
    Lz4,
    /// Not at all
    None,
}

impl Record {
    /// Records until a signal or the wanted number of messages, and returns the exit status.
    pub fn run(self) -> u8 {
        match self.deployment() {
            Ok(deployment) => match self.record(deployment) {
                Ok(status) | Err(status) => status,
            },
            Err(error) => {
                if !error.is_empty() {
                    complain(&error);
                }
                exit::USAGE
            }
        }
    }

    /// What to listen to. The error is empty if it has been shown.
    fn deployment(&self) -> Result<Deployment, String> {
        let Some(file) = named_deployment(&self.sources) else {
            return Listening {
                sources: &self.sources,
                input: Input::default(),
                message_type: self.message_type.as_deref(),
                schemas: &self.schemas,
                network: &self.network,
                patterns: Ok(()),
            }
            .deployment();
        };
        if self.sources.len() > 1 {
            return Err(format!("either addresses or one deployment, not {file} and others"));
        }
        let given = [(self.message_type.is_some(), "--type"), (!self.schemas.is_empty(), "--schemas")];
        from_deployment("record", given.into_iter().chain(self.network.given()))?;
        let mut deployment = Deployment::from_file(Path::new(file)).map_err(|_| String::new())?;
        add_clock(&mut deployment)?;
        Ok(only_listens(deployment, self.network.exit_on_unreachable, false))
    }

    /// The file to write.
    fn place(&self) -> Result<Place, u8> {
        let failed = |why: String| {
            complain(&format!("cannot write {}: {why}", self.output.display()));
            exit::TRACE
        };
        let folder = self.output.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Err(failed(format!("there is no folder {}", folder.display())));
        }
        let place = Place {
            file: self.output.clone(),
            compression: match self.compression {
                Compressed::Zstd => Compression::Zstd,
                Compressed::Lz4 => Compression::Lz4,
                Compressed::None => Compression::None,
            },
            keep: None,
            split: (self.split_size, self.split_time),
        };
        let first = place.name(0);
        if first.exists() {
            complain(&format!("{} exists already, and is not replaced", first.display()));
            return Err(exit::USAGE);
        }
        Ok(place)
    }

    fn record(&self, mut deployment: Deployment) -> Result<u8, u8> {
        let place = self.place()?;
        let network = |error: String| {
            complain(&error);
            exit::NETWORK
        };
        let (stop, stopped) = mpsc::channel();
        let asking = stop.clone();
        // The receiver lives as long as this function: a later signal has nothing to stop.
        let asked = signals::listen(move || _ = asking.send(Stop::Asked))
            .map_err(|e| network(format!("cannot listen for signals: {e}")))?;
        discover::types(&mut deployment, || asked.yet())?;
        let Deployment { networks, exit_on_unreachable, sources, .. } = &deployment;
        let networks = Arc::new(crate::networks::open(networks, *exit_on_unreachable, || asked.yet())?);
        let mut names: Vec<String> =
            deployment.specification.spec.declared().iter().map(|topic| topic.name.clone()).collect();
        // The specification does not know the topic of the time.
        names.extend(sources.iter().skip(names.len()).map(|binding| binding.address.to_string()));
        let channels: Vec<Channel> = sources.iter().map(Channel::of).collect();
        let offers = networks.offers(sources.iter().map(|binding| &binding.address)).map_err(network)?;
        let disk = Disk::start(channels.clone(), offers)
            .map_err(|error| network(format!("cannot start a thread: {error}")))?;
        disk.send(Job::Begin(Box::new(place), Vec::new(), Timestamp::from_nanos(i64::MIN)));
        let (memory, count) = (self.memory.unwrap_or(MEMORY), self.count.unwrap_or(u64::MAX));
        warn_of_doubles(sources);
        // Of a pattern each message is kept under the name of its topic, which gives the parameters again.
        let patterns = sources.iter().map(|binding| Names::of(&binding.address)).collect();
        let tape = Arc::new(Tape::new((channels, patterns), disk, memory, (count, stop)));
        let mut subscriptions = Vec::new();
        for (i, binding) in sources.iter().enumerate().filter(|(_, binding)| !discover::is_open(binding)) {
            subscriptions.push(subscribe(&networks, i, binding, &tape).map_err(network)?);
        }
        networks.begin();
        let subscriptions = Arc::new(Mutex::new(subscriptions));
        let begin = {
            let (networks, tape) = (Arc::downgrade(&networks), Arc::clone(&tape));
            let subscriptions = Arc::clone(&subscriptions);
            move |topic: usize, binding: &Binding| {
                let Some(networks) = networks.upgrade() else { return Ok(()) };
                tape.learn(TopicId(topic as u32), Channel::of(binding));
                let subscription = subscribe(&networks, topic, binding, &tape)?;
                subscriptions.lock().unwrap_or_else(PoisonError::into_inner).push(subscription);
                Ok(())
            }
        };
        let learning = Learning::start(&deployment, Arc::clone(&networks), begin)
            .map_err(|error| network(format!("cannot start a thread: {error}")))?;
        say(&format!("ready{}", discover::read_now(&deployment)));
        let undelivered = Undelivered::default();
        let mut seen = Seen::new(&undelivered, names.clone());
        let (mut looks, mut failed) = (0, false);
        let all: Vec<TopicId> = (0..sources.len() as u32).map(TopicId).collect();
        let mut last = (Instant::now(), now());
        while stopped.recv_timeout(SEAL) == Err(mpsc::RecvTimeoutError::Timeout) {
            let pause = last.0.elapsed();
            if pause >= SEAL + PAUSE {
                // What came meanwhile gets times of after it, or was dropped on the way.
                let until = now().as_nanos().saturating_add(AFTER.as_nanos() as i64);
                tape.cut_off(&all, last.1, Some(Timestamp::from_nanos(until)));
                warn(&format!(
                    "the recorder did not run for {:.1} s; the recording notes it",
                    pause.as_secs_f64()
                ));
            }
            last = (Instant::now(), now());
            tape.seal();
            looks = (looks + 1) % LOSSES;
            if looks > 0 {
                continue;
            }
            let losses = tape.losses(&names);
            let others = seen.notices(&undelivered, networks.recovered(), networks.outages());
            losses.into_iter().chain(others).for_each(|notice| warn(&sentence(&notice)));
            if let Some(reason) = networks.failure() {
                complain(&reason);
                failed = true;
                break;
            }
        }
        let unread = learning.map_or_else(Vec::new, Learning::end);
        let subscriptions =
            std::mem::take(&mut *subscriptions.lock().unwrap_or_else(PoisonError::into_inner));
        let mut problems = Problems::default();
        let drained = Instant::now() + DRAIN;
        if asked.yet() {
            for subscription in &subscriptions {
                subscription.drain(QUIET, drained.saturating_duration_since(Instant::now()));
            }
        }
        let (until, closed) = (now(), Instant::now() + CLOSE);
        for subscription in &subscriptions {
            subscription.close(closed.saturating_duration_since(Instant::now()));
            let seen = subscription.problems();
            problems.malformed += seen.malformed;
            problems.lost += seen.lost;
            problems.incompatible += seen.incompatible;
            problems.duplicates += seen.duplicates;
        }
        drop(subscriptions);
        let outages = networks.outages();
        for outage in &outages {
            let missed = (0..).zip(sources).filter(|(_, binding)| binding.address.is_missed(outage));
            let topics: Vec<TopicId> = missed.map(|(topic, _)| TopicId(topic)).collect();
            if !topics.is_empty() {
                tape.cut_off(&topics, outage.from, outage.until);
            }
        }
        let mut end = tape.end(problems, until, unread);
        for (topic, recovered) in networks.recovered() {
            if let Some(account) = end.accounts.get_mut(topic.index()) {
                account.recovered = recovered.count;
            }
        }
        if let Some(networks) = Arc::into_inner(networks) {
            networks.close_within(CLOSE);
        }
        say(&match self.summary {
            Format::Text => end.text(&names, &outages),
            Format::Json => end.json(&names, &outages),
        });
        Ok(end.status(failed))
    }
}

/// Adds the topic `/clock` to those of a deployment whose time it is.
///
/// # Errors
/// Why its type cannot be used.
fn add_clock(deployment: &mut Deployment) -> Result<(), String> {
    let Some(Address::Ros2(mut topic, encoding)) = deployment.clock.clone() else { return Ok(()) };
    warn(
        "with `use_sim_time`, log times are those of this machine, as without; the messages on /clock are recorded, too",
    );
    // All of them.
    topic.qos.depth = None;
    let address = Address::Ros2(topic, encoding);
    if deployment.sources.iter().any(|binding| binding.address.meets(&address)) {
        return Ok(());
    }
    let schema = deployment.specification.schemas.schema(ros2::clock::TYPE);
    let schema = schema.map_err(|error| format!("{}: {error}", ros2::clock::TYPE))?;
    let message_type = Some(Arc::new(rondel_decode::MessageType::Cdr(schema)));
    let input = Input { encoding: rondel_decode::Encoding::Cdr, message_type, ..Input::default() };
    deployment.sources.push(Binding { address, input });
    Ok(())
}

/// Subscribes to the topic of a source.
fn subscribe(
    networks: &Networks,
    topic: usize,
    binding: &Binding,
    tape: &Arc<Tape>,
) -> Result<Box<dyn Subscription>, String> {
    let schema = match binding.input.message_type.as_deref() {
        Some(rondel_decode::MessageType::Cdr(schema)) => Some(schema),
        _ => None,
    };
    networks.subscribe_of(&binding.address, schema, TopicId(topic as u32), Arc::clone(tape))
}

fn split_size(text: &str) -> Result<u64, &'static str> {
    let bytes = deployment::bytes(text).filter(|bytes| *bytes >= 1 << 10);
    bytes.map(|bytes| bytes as u64).ok_or("must be a whole number with a unit, from 1 KiB to 4 GiB")
}

fn split_time(text: &str) -> Result<i64, &'static str> {
    let nanos = deployment::nanoseconds(text).filter(|nanos| *nanos >= 1_000_000);
    nanos.ok_or("must be a duration of at least 1 ms, such as 10 min")
}

fn memory(text: &str) -> Result<usize, &'static str> {
    let bytes = deployment::bytes(text).filter(|bytes| *bytes >= 1 << 20);
    bytes.ok_or("must be a whole number with a unit, from 1 MiB to 4 GiB, such as 64 MiB")
}
