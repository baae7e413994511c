//! The commands of the studies, which write every single run besides their tables.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;

use crate::failover::{self, End, Liveliness};
use crate::failure::Result;
use crate::link::Network;
use crate::measurements::reported;
use crate::options::{Places, duration};
use crate::report::Report;
use crate::runs::Runs;
use crate::{chain, clocks, mesa, roundtrip, standby, throughput};

/// The options for results of a study.
#[derive(Debug, Args)]
pub struct StudyPlaces {
    #[command(flatten)]
    pub places: Places,
    /// Write every single run to this file, as lines of JSON
    #[arg(long, value_name = "FILE")]
    pub runs: Option<PathBuf>,
}

impl StudyPlaces {
    /// Measures and writes a report and the runs, also when the measurement fails halfway.
    fn written(
        &self,
        study: &'static str,
        measure: impl FnOnce(&mut Report, &mut Runs) -> Result<()>,
    ) -> Result<()> {
        let mut runs = Runs::create(study, self.runs.as_deref())?;
        reported(&self.places, |report| measure(report, &mut runs))
    }
}

/// Reads a number of this range, for which `value_parser!` has no limits.
fn number(range: RangeInclusive<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(range)
}

#[derive(Debug, Args)]
pub struct MesaOptions {
    /// Make a trace of N messages
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(100..=50_000_000))]
    pub length: u64,
    /// Check N copies of the property
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(8..=20_000))]
    pub copies: u64,
    /// Measure with these numbers of call signs
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "125,250,500,1000,2000,3215", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub keys: Vec<u64>,
    /// Write the messages in this form
    #[arg(long, value_name = "NAME", default_value = "lines", value_enum)]
    pub form: mesa::Form,
    /// Measure each N times, by turns
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub repeat: usize,
    #[command(flatten)]
    pub places: StudyPlaces,
}

impl MesaOptions {
    /// Measures.
    ///
    /// # Errors
    /// When the measurement fails, or its results cannot be written.
    pub fn run(&self, rondel: &Path) -> Result<()> {
        let plan = mesa::Plan {
            messages: self.length,
            copies: self.copies,
            keys: self.keys.clone(),
            repeat: self.repeat,
            form: self.form,
        };
        self.places.written("mesa", |report, runs| {
            let measured = mesa::measure(rondel, &plan, runs)?;
            report.add("mesa", &measured, mesa::tables(&measured));
            Ok(())
        })
    }
}

#[derive(Debug, Args)]
pub struct FailoverOptions {
    /// End the stronger publisher in these ways
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "shutdown,kill,pause",
        value_enum
    )]
    pub ends: Vec<End>,
    /// Give the participants of the publishers these leases
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "200ms,500ms", value_parser = duration)]
    pub leases: Vec<Duration>,
    /// Give the publishers a lease of their own (default: none)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub topic_lease: Option<Duration>,
    /// Publish with these kinds of liveliness, if the publishers have a lease
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "automatic,manual-by-topic",
        value_enum
    )]
    pub liveliness: Vec<Liveliness>,
    /// Publish a message every TIME
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = duration)]
    pub period: Duration,
    /// Measure N take-overs of each
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub repeat: usize,
    #[command(flatten)]
    pub places: StudyPlaces,
}

impl FailoverOptions {
    /// Measures.
    ///
    /// # Errors
    /// When the measurement fails, or its results cannot be written.
    pub fn run(&self) -> Result<()> {
        let plan = failover::Plan {
            ends: self.ends.clone(),
            leases: self.leases.clone(),
            topic_lease: self.topic_lease,
            kinds: self.liveliness.clone(),
            period: self.period,
            repeat: self.repeat,
        };
        self.places.written("failover", |report, runs| {
            let measured = failover::measure(&plan, runs)?;
            report.add("failover", &measured, [failover::table(&measured)]);
            Ok(())
        })
    }
}

#[derive(Debug, Args)]
pub struct StandbyOptions {
    /// Measure on these networks: zenoh, mqtt (which starts mosquitto), dds
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "zenoh,mqtt,dds", value_enum)]
    pub networks: Vec<Network>,
    /// End the active member in these ways
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "shutdown,kill,pause,promote",
        value_enum
    )]
    pub ends: Vec<standby::End>,
    /// Give the group these leases; ends that wait for none are measured with the first
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "50ms,200ms", value_parser = lease)]
    pub leases: Vec<Duration>,
    /// Publish a message every TIME
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = period)]
    pub period: Duration,
    /// Measure N take-overs of each
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub repeat: usize,
    #[command(flatten)]
    pub places: StudyPlaces,
}

/// Reads the lease of a group.
fn lease(text: &str) -> std::result::Result<Duration, String> {
    let is_lease = |time: &Duration| {
        time.subsec_nanos().is_multiple_of(1_000_000) && (15..=60_000).contains(&time.as_millis())
    };
    Some(duration(text)?).filter(is_lease).ok_or_else(|| "whole milliseconds, from 15ms to 60s".to_owned())
}

/// Reads the time between two messages.
fn period(text: &str) -> std::result::Result<Duration, String> {
    let is_period = |time: &Duration| (Duration::from_millis(1)..=Duration::from_secs(1)).contains(time);
    Some(duration(text)?).filter(is_period).ok_or_else(|| "a time from 1ms to 1s".to_owned())
}

impl StandbyOptions {
    /// Measures.
    ///
    /// # Errors
    /// When the measurement fails, or its results cannot be written.
    pub fn run(&self, rondel: &Path) -> Result<()> {
        let plan = standby::Plan {
            networks: self.networks.clone(),
            ends: self.ends.clone(),
            leases: self.leases.clone(),
            period: self.period,
            repeat: self.repeat,
        };
        self.places.written("standby", |report, runs| {
            let mut all = Vec::new();
            let measured = standby::measure(rondel, &plan, runs, &mut all);
            report.marks(standby::marks(&all));
            report.add("standby", &all, [standby::table(&all)]);
            measured
        })
    }
}

#[derive(Debug, Args)]
pub struct RoundtripOptions {
    /// Measure on these networks: zenoh, dds, mqtt (which starts mosquitto)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "dds,zenoh", value_enum)]
    pub networks: Vec<Network>,
    /// Send payloads of these sizes, in bytes, which a datagram can carry
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = "0,100,500,1000,2000,5000,10000,15000,20000", value_parser = number(0..=60_000))]
    pub sizes: Vec<usize>,
    /// Send N messages of each size there and back in a turn
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub pings: usize,
    /// Measure each N times, by turns
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub repeat: usize,
    #[command(flatten)]
    pub places: StudyPlaces,
}

impl RoundtripOptions {
    /// Measures.
    ///
    /// # Errors
    /// When the measurement fails, or its results cannot be written.
    pub fn run(&self) -> Result<()> {
        let plan = roundtrip::Plan {
            networks: self.networks.clone(),
            sizes: self.sizes.clone(),
            pings: self.pings.max(1),
            repeat: self.repeat,
        };
        self.places.written("roundtrip", |report, runs| {
            let lines = roundtrip::lines(&roundtrip::measure(&plan, runs)?);
            report.add("roundtrip", &lines, roundtrip::tables(&lines));
            Ok(())
        })
    }
}

#[derive(Debug, Args)]
pub struct ThroughputOptions {
    /// Measure on these networks
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "zenoh,dds", value_enum)]
    pub networks: Vec<Network>,
    /// Measure with these numbers of participants, and messages of the first size
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "2,4,8,16,32", value_parser = participants)]
    pub participants: Vec<usize>,
    /// Measure with messages of these sizes in bytes, and the first number of participants
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = "4,64,1024,16384", value_parser = number(1..=1 << 20))]
    pub sizes: Vec<usize>,
    /// Publish N messages in each run, by all participants together
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(100..=50_000_000))]
    pub length: u64,
    /// Measure a monitor that aligns the messages of these numbers of publishers, beside a plain subscriber; `none` for none
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "2,8,32", value_parser = publishers)]
    pub aligned: Vec<Option<usize>>,
    /// Measure each N times, by turns
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub repeat: usize,
    #[command(flatten)]
    pub places: StudyPlaces,
}

/// Reads a number of publishers.
fn publishers(text: &str) -> std::result::Result<Option<usize>, String> {
    if text == "none" {
        return Ok(None);
    }
    let number = text.parse::<usize>().ok().filter(|number| (1..=64).contains(number));
    number.map(Some).ok_or_else(|| "a number from 1 to 64, or none".to_owned())
}

/// Reads a number of participants.
fn participants(text: &str) -> std::result::Result<usize, String> {
    let number = text.parse::<usize>().ok().filter(|number| (2..=64).contains(number) && number % 2 == 0);
    number.ok_or_else(|| "an even number from 2 to 64".to_owned())
}

impl ThroughputOptions {
    /// Measures.
    ///
    /// # Errors
    /// When the measurement fails, or its results cannot be written.
    pub fn run(&self, rondel: &Path) -> Result<()> {
        let plan = throughput::Plan {
            networks: self.networks.clone(),
            participants: self.participants.clone(),
            sizes: self.sizes.clone(),
            messages: self.length,
            repeat: self.repeat,
            aligned: self.aligned.iter().copied().flatten().collect(),
        };
        self.places.written("throughput", |report, runs| {
            let measured = throughput::measure(&plan, runs)?;
            report.add("throughput", &measured, throughput::tables(&measured));
            let aligned = throughput::measure_aligned(rondel, &plan, runs)?;
            report.add("aligned", &aligned, [throughput::table_of_aligned(&aligned)]);
            Ok(())
        })
    }
}

#[derive(Debug, Args)]
pub struct ClocksOptions {
    /// Let clocks be wrong by up to each of these times
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "0us,100us,1ms,5ms,10ms", value_parser = duration)]
    pub errors: Vec<Duration>,
    /// Simulate N pairs of clocks
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub clocks: u64,
    /// Send N messages with each pair of clocks
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(2..=1_000_000))]
    pub events: u64,
    /// Send a message every TIME, on average
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = duration)]
    pub gap: Duration,
    /// Seed the generator with N
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub places: StudyPlaces,
}

impl ClocksOptions {
    /// Simulates.
    ///
    /// # Errors
    /// When the results cannot be written.
    pub fn run(&self) -> Result<()> {
        let plan = clocks::Plan {
            errors: self.errors.clone(),
            clocks: self.clocks,
            events: self.events,
            gap: self.gap,
            seed: self.seed,
        };
        self.places.written("clocks", |report, runs| {
            let simulated = clocks::measure(&plan, runs)?;
            report.marks(clocks::marks(&simulated));
            report.add("clocks", &simulated, [clocks::table(&simulated)]);
            Ok(())
        })
    }
}

#[derive(Debug, Args)]
pub struct ChainOptions {
    /// Measure on these networks
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "dds,zenoh", value_enum)]
    pub networks: Vec<chain::Way>,
    /// Run these numbers of chains at once
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "1,2,4", value_parser = number(1..=16))]
    pub chains: Vec<usize>,
    /// Send N messages through each chain
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    pub length: u64,
    /// Send a message every TIME
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = duration)]
    pub period: Duration,
    /// Compute for TIME in each participant
    #[arg(long, value_name = "TIME", default_value = "0us", value_parser = duration)]
    pub work: Duration,
    /// Measure each N times, with and without a monitor by turns
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub repeat: usize,
    /// Distribute the participants in these ways; containers need Docker
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "bare", value_enum)]
    pub layouts: Vec<chain::Layout>,
    /// Measure the first number of chains also with N CPUs for each container
    #[arg(long, value_name = "N")]
    pub cpus: Option<String>,
    /// Measure the first number of chains also with all containers pinned to these cores, such as 0 or 0-1
    #[arg(long, value_name = "CORES")]
    pub cpuset: Option<String>,
    /// Start containers of this image, which must have `rondel`, and the libraries of this program unless it is static
    #[arg(long, value_name = "NAME", default_value = "rondel")]
    pub image: String,
    #[command(flatten)]
    pub places: StudyPlaces,
}

impl ChainOptions {
    /// Measures.
    ///
    /// # Errors
    /// When the measurement fails, or its results cannot be written.
    pub fn run(&self, rondel: &Path) -> Result<()> {
        let cpus = self.cpus.iter().map(|number| format!("--cpus={number}"));
        let cpuset = self.cpuset.iter().map(|cores| format!("--cpuset-cpus={cores}"));
        let plan = chain::Plan {
            networks: self.networks.clone(),
            chains: self.chains.clone(),
            messages: self.length,
            period: self.period,
            work: self.work,
            repeat: self.repeat,
            layouts: self.layouts.clone(),
            limits: cpus.chain(cpuset).collect(),
            image: self.image.clone(),
        };
        self.places.written("chain", |report, runs| {
            let measured = chain::measure(rondel, &plan, runs)?;
            report.add("chain", &measured, chain::tables(&measured));
            Ok(())
        })
    }
}
