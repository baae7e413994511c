//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::align::Align;
use crate::autoware::Autoware;
use crate::engine::Engine;
use crate::link::Network;
use crate::peer::Peer;
use crate::studies::{
    ChainOptions, ClocksOptions, FailoverOptions, MesaOptions, RoundtripOptions, StandbyOptions,
    ThroughputOptions,
};
use crate::wire::Wire;

/// Measure Rondel on this machine
///
/// Runs `rondel` and plain participants as child processes, on loopback only. Counts every message at both
/// ends; when one is missing, or comes twice, the exit status is 1.
#[derive(Debug, Parser)]
#[command(
    name = "rondel-bench",
    version,
    about,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub struct Arguments {
    /// Measure this program (default: `rondel` beside this program, else the one in PATH)
    #[arg(long, value_name = "PATH", global = true, display_order = 900)]
    pub rondel: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant)] // there is one, on its way from the command line
pub enum Command {
    /// Measure footprint, latency, many properties and Timescales, into a folder
    All(All),
    /// Measure the Timescales benchmark: from a file, and on networks beside plain participants
    Timescales(Timescales),
    /// Measure the round trip through the monitor, beside an echo
    Latency(LatencyOptions),
    /// Measure the round trip through a gate, beside an echo
    Gate(LatencyOptions),
    /// Measure 1, 10, 100 and 300 properties at once on one stream
    Properties(PropertiesOptions),
    /// Measure properties by key, quantifiers, dense time, robustness and a thousand properties, from a file
    Language(LanguageOptions),
    /// Measure order, losses and latency of two topics, of one node and of two, for each setting of alignment
    Order(OrderOptions),
    /// Measure MQTT beside mosquitto's own clients
    Mqtt(MqttOptions),
    /// Measure binary messages of ROS 2: typed topics of DDS, pushed and polled, and rmw_zenoh, beside plain subscribers
    Rates(RatesOptions),
    /// Measure reading MCAP files, beside rosbags and the `mcap` crate
    Recordings(RecordingsOptions),
    /// Measure a simulated fleet beside the predictions of `rondel size`
    Size(SizeOptions),
    /// Measure the study of MESA: copies of a property about flights, from a file, on one and several threads
    Mesa(MesaOptions),
    /// Measure a chain of five participants, with and without a monitor
    Chain(ChainOptions),
    /// Measure the take-over of a topic of DDS by a weaker publisher
    Failover(FailoverOptions),
    /// Measure the take-over of a standby monitor, on Zenoh, MQTT and DDS
    Standby(StandbyOptions),
    /// Measure the round trip by size of the payload, beside an echo of datagrams
    Roundtrip(RoundtripOptions),
    /// Measure messages per second of three patterns, by the number of participants and the size of messages
    Throughput(ThroughputOptions),
    /// Simulate alignment with errors of clocks
    Clocks(ClocksOptions),
    /// Measure the time until ready, and memory
    Footprint(FootprintOptions),
    /// Measure steps of the engine, without decoding
    Engine(Engine),
    /// Measure alignment, without decoding
    Align(Align),
    /// Measure a network alone, with nothing but counting behind it
    Wire(Wire),
    /// Write the traces of the Timescales benchmark, and their formulas
    Traces(Traces),
    /// Generate the traffic of an Autoware vehicle with planted faults, and run the monitor on it
    Autoware(Autoware),
    /// Take part in a measurement as a plain participant
    #[command(hide = true)]
    Peer(Peer),
}

/// The options for comparing.
#[derive(Debug, Args)]
pub struct Against {
    /// Compare with this other program `rondel`, by turns, from files
    #[arg(long, value_name = "PATH")]
    pub against: Option<PathBuf>,
}

/// The options for results.
#[derive(Debug, Args)]
pub struct Places {
    /// Write the tables to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write all single results to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// The options for traces.
#[derive(Debug, Args)]
pub struct Selection {
    /// Make traces of N lines
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(100..=50_000_000))]
    pub length: u64,
    /// Seed the generator with N
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Measure only these properties, such as RespondBQR10,RecurGLB1000
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Measure each N times, by turns
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub repeat: u16,
}

/// The options for networks.
#[derive(Debug, Args)]
pub struct On {
    /// Measure on these networks: zenoh, dds, mqtt (which starts mosquitto); `none` for none
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "zenoh,dds", value_parser = network)]
    pub networks: Vec<Option<Network>>,
}

impl On {
    pub fn all(&self) -> Vec<Network> {
        self.networks.iter().copied().flatten().collect()
    }
}

fn network(text: &str) -> std::result::Result<Option<Network>, String> {
    match text {
        "zenoh" => Ok(Some(Network::Zenoh)),
        "dds" => Ok(Some(Network::Dds)),
        "mqtt" => Ok(Some(Network::Mqtt)),
        "none" => Ok(None),
        _ => Err("known are: zenoh, dds, mqtt, none".to_owned()),
    }
}

#[derive(Debug, Args)]
pub struct Timescales {
    #[command(flatten)]
    pub selection: Selection,
    #[command(flatten)]
    pub against: Against,
    #[command(flatten)]
    pub on: On,
    #[command(flatten)]
    pub places: Places,
}

#[derive(Debug, Args)]
pub struct Pings {
    /// Send N messages there and back, to each participant
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub pings: usize,
    /// Change to the other participant after N messages
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub batch: usize,
}

#[derive(Debug, Args)]
pub struct LatencyOptions {
    #[command(flatten)]
    pub pings: Pings,
    #[command(flatten)]
    pub on: On,
    #[command(flatten)]
    pub places: Places,
}

#[derive(Debug, Args)]
pub struct PropertiesOptions {
    /// Make a trace of N lines
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(100..=50_000_000))]
    pub length: u64,
    /// Measure each N times
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub repeat: usize,
    #[command(flatten)]
    pub against: Against,
    #[command(flatten)]
    pub on: On,
    #[command(flatten)]
    pub places: Places,
}

#[derive(Debug, Args)]
pub struct LanguageOptions {
    #[command(flatten)]
    pub selection: Selection,
    #[command(flatten)]
    pub against: Against,
    #[command(flatten)]
    pub places: Places,
}

#[derive(Debug, Args)]
pub struct FootprintOptions {
    /// Measure N times
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub repeat: usize,
    #[command(flatten)]
    pub on: On,
    #[command(flatten)]
    pub places: Places,
}

#[derive(Debug, Args)]
pub struct OrderOptions {
    /// Measure on these networks: zenoh, dds, mqtt (which starts mosquitto)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "zenoh,dds,mqtt", value_enum)]
    pub networks: Vec<Network>,
    /// Send a burst of four messages every TIME, for each of these
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "1us,10us,100us,1ms,10ms,100ms", value_parser = duration)]
    pub periods: Vec<Duration>,
    /// Delay the messages of the second topic by each of these times
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "0ms,2ms", value_parser = duration)]
    pub delays: Vec<Duration>,
    /// Send at most N messages for each network, period and delay
    #[arg(long, value_name = "N", default_value_t = 4000, value_parser = clap::value_parser!(u64).range(4..=1_000_000))]
    pub events: u64,
    /// Send for at most SECONDS for each of them
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    pub seconds: f64,
    /// Publish from two nodes, a message each every TIME, for each of these; `none` for none
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "100us,1ms,10ms,100ms", value_parser = instants)]
    pub instants: Vec<Option<Duration>>,
    #[command(flatten)]
    pub places: Places,
}

#[derive(Debug, Args)]
pub struct MqttOptions {
    /// Make a trace of N lines
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1_000..=50_000_000))]
    pub length: u64,
    /// Send N messages there and back, to each participant
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pub pings: usize,
    /// Measure each N times, by turns
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub repeat: usize,
    #[command(flatten)]
    pub places: Places,
}

#[derive(Debug, Args)]
pub struct RatesOptions {
    /// Send N messages in each turn
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = clap::value_parser!(u64).range(1_000..=50_000_000))]
    pub length: u64,
    /// Measure each N times, by turns
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub repeat: usize,
    #[command(flatten)]
    pub places: Places,
}

#[derive(Debug, Args)]
pub struct RecordingsOptions {
    /// Write recordings of N messages
    #[arg(long, value_name = "N", default_value_t = 300_000, value_parser = clap::value_parser!(u64).range(1_000..=50_000_000))]
    pub length: u64,
    /// Measure each N times, by turns
    #[arg(long, value_name = "N", default_value_t = 9)]
    pub repeat: usize,
    /// The Python that has rosbags and mcap
    #[arg(long, value_name = "PATH", default_value = ".venv/bin/python3")]
    pub python: PathBuf,
    /// The program of bench/mcap-iterate (default: without)
    #[arg(long, value_name = "PATH")]
    pub iterate: Option<PathBuf>,
    #[command(flatten)]
    pub places: Places,
}

#[derive(Debug, Args)]
pub struct SizeOptions {
    /// Simulate N vehicles
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..=20_000_000))]
    pub keys: u64,
    /// Predict from a recording of N vehicles
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(400..=1_000_000))]
    pub sampled: u64,
    #[command(flatten)]
    pub places: Places,
}

#[derive(Debug, Args)]
pub struct All {
    /// Write results.md and results.json into this folder
    #[arg(long, value_name = "FOLDER")]
    pub out: PathBuf,
    #[command(flatten)]
    pub selection: Selection,
    #[command(flatten)]
    pub on: On,
    #[command(flatten)]
    pub pings: Pings,
}

#[derive(Debug, Args)]
pub struct Traces {
    /// Write NAME.jsonl and NAME.rye into this folder
    pub folder: PathBuf,
    #[command(flatten)]
    pub selection: Selection,
}

/// Reads a time from one instant to the next.
fn instants(text: &str) -> std::result::Result<Option<Duration>, String> {
    if text == "none" { Ok(None) } else { duration(text).map(Some) }
}

/// Reads a time such as `10us`.
pub fn duration(text: &str) -> std::result::Result<Duration, String> {
    let wrong = || "a time such as 10us, 1ms or 1s".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let number: u32 = text[..digits].parse().map_err(|_| wrong())?;
    let unit = match text[digits..].trim() {
        "us" => Duration::from_micros(1),
        "ms" => Duration::from_millis(1),
        "s" => Duration::from_secs(1),
        _ => return Err(wrong()),
    };
    Ok(unit * number)
}
