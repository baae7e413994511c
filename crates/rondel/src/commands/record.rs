//! `rondel record`: writes messages to MCAP files as they arrive.

mod summary;
mod tape;
mod taping;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use rondel_event::Timestamp;
use rondel_net::ros2;
use rondel_recording::Compression;
use rondel_runtime::Input;

use super::listen::{Listening, misused, only_listens, read_named};
use crate::deployment::{self, Address, Binding, Deployment};
use crate::live::discover;
use crate::live::networks::{self, NetworkArguments};
use crate::live::signals::End;
use crate::output::Format;
use crate::recorder::{Channel, Disk, Job, Place, warn_of_doubles};
use crate::{complain, exit, say, warn};
use tape::{Names, Tape};

/// Default memory for messages that wait to be written.
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
    /// Compression of messages
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

/// Compression of messages.
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
        self.record().unwrap_or_else(|status| status)
    }

    /// The deployment to subscribe to. The error is empty if it has been shown.
    fn deployment(&self) -> Result<Deployment, String> {
        let given = [(self.message_type.is_some(), "--type"), (!self.schemas.is_empty(), "--schemas")];
        let named = read_named("record", &self.sources, &given, &self.network)?;
        let Some(mut deployment) = named else {
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

    fn record(&self) -> Result<u8, u8> {
        let mut deployment = self.deployment().map_err(misused)?;
        let place = self.place()?;
        let end = End::on_signal().map_err(networks::failed)?;
        discover::types(&mut deployment, &end.interrupted)?;
        let Deployment { networks, exit_on_unreachable, sources, .. } = &deployment;
        let networks = networks::open(networks, *exit_on_unreachable, &end.interrupted)?;
        let mut names: Vec<String> =
            deployment.specification.spec.declared().iter().map(|topic| topic.name.clone()).collect();
        // The specification does not know the topic of the time.
        names.extend(sources.iter().skip(names.len()).map(|binding| binding.address.to_string()));
        let channels: Vec<Channel> = sources.iter().map(Channel::of).collect();
        let offers =
            networks.offers(sources.iter().map(|binding| &binding.address)).map_err(networks::failed)?;
        let disk = Disk::start(channels.clone(), offers)
            .map_err(|error| networks::failed(format!("cannot start a thread: {error}")))?;
        disk.send(Job::Begin(Box::new(place), Vec::new(), Timestamp::from_nanos(i64::MIN)));
        let (memory, count) = (self.memory.unwrap_or(MEMORY), self.count.unwrap_or(u64::MAX));
        warn_of_doubles(sources);
        // A message of a pattern is stored under the name of its topic, from which the parameters can be read again.
        let patterns = sources.iter().map(|binding| Names::of(&binding.address)).collect();
        let tape = Arc::new(Tape::new(channels, patterns, disk, memory, count, end.stop.clone()));
        let ended = taping::run(&deployment, networks, &tape, &names, &end.stopped);
        let ended = ended.map_err(networks::failed)?;
        say(&match self.summary {
            Format::Text => ended.text(&names),
            Format::Json => ended.json(&names),
        });
        Ok(ended.status())
    }
}

/// Adds the topic `/clock` if a deployment uses simulated time.
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
