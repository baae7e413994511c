//! `rondel-bench`: the benchmarks of Rondel.
//!
//! The measured program `rondel` runs as a child process, as in production. This process publishes its
//! messages and counts its verdicts. A message too few or too many fails the measurement.

// Nothing outside uses a binary: `pub` here means the whole of it.
#![allow(unreachable_pub)]

mod align;
mod autoware;
mod broker;
mod child;
mod engine;
mod failure;
mod file;
mod footprint;
mod join;
mod language;
mod latency;
mod link;
mod machine;
mod mosquitto;
mod network;
mod order;
#[cfg(test)]
mod patterns;
mod peer;
mod place;
mod program;
mod properties;
mod rates;
mod recordings;
mod report;
mod table;
mod table1;
mod timescales;
mod traces;
mod turns;
mod wire;

use std::fs::{self, File};
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::align::Align;
use crate::autoware::Autoware;
use crate::engine::Engine;
use crate::failure::{Failure, Result, io_error};
use crate::footprint::Footprint;
use crate::latency::Latency;
use crate::link::Network;
use crate::peer::Peer;
use crate::report::{Mark, Report};
use crate::timescales::Property;
use crate::turns::Programs;
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
struct Arguments {
    /// Measure this program (default: `rondel` beside this program, else the one in PATH)
    #[arg(long, value_name = "PATH", global = true, display_order = 900)]
    rondel: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant)] // there is one, on its way from the command line
enum Command {
    /// Measure footprint, latency, many properties and Timescales, into a folder
    All(All),
    /// Measure the Timescales benchmark: from a file, and on networks beside plain participants
    Timescales(Timescales),
    /// Measure the round trip through the monitor, beside an echo
    Latency(LatencyOptions),
    /// Measure 1, 10, 100 and 300 properties at once on one stream
    Properties(PropertiesOptions),
    /// Measure properties by key, quantifiers, dense time, robustness and a thousand properties, from a file
    Language(LanguageOptions),
    /// Measure order, losses and latency of two topics, for each setting of alignment
    Order(OrderOptions),
    /// Measure MQTT beside mosquitto's own clients
    Mqtt(MqttOptions),
    /// Measure binary messages of ROS 2: typed topics of DDS, pushed and polled, and rmw_zenoh, beside plain subscribers
    Rates(RatesOptions),
    /// Measure reading MCAP files, beside rosbags and the `mcap` crate
    Recordings(RecordingsOptions),
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
struct Against {
    /// Compare with this other program `rondel`, by turns, from files
    #[arg(long, value_name = "PATH")]
    against: Option<PathBuf>,
}

/// The options for results.
#[derive(Debug, Args)]
struct Places {
    /// Write the tables to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write all single results to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The options for traces.
#[derive(Debug, Args)]
struct Selection {
    /// Make traces of N lines
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(100..=50_000_000))]
    length: u64,
    /// Seed the generator with N
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Measure only these properties, such as RespondBQR10,RecurGLB1000
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Measure each N times, by turns
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
}

/// The options for networks.
#[derive(Debug, Args)]
struct On {
    /// Measure on these networks: zenoh, dds, mqtt (which starts mosquitto); `none` for none
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "zenoh,dds", value_parser = network)]
    networks: Vec<Option<Network>>,
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

impl On {
    fn all(&self) -> Vec<Network> {
        self.networks.iter().copied().flatten().collect()
    }
}

#[derive(Debug, Args)]
struct Timescales {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    against: Against,
    #[command(flatten)]
    on: On,
    #[command(flatten)]
    places: Places,
}

#[derive(Debug, Args)]
struct Pings {
    /// Send N messages there and back, to each participant
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pings: usize,
    /// Change to the other participant after N messages
    #[arg(long, value_name = "N", default_value_t = 500)]
    batch: usize,
}

#[derive(Debug, Args)]
struct LatencyOptions {
    #[command(flatten)]
    pings: Pings,
    #[command(flatten)]
    on: On,
    #[command(flatten)]
    places: Places,
}

#[derive(Debug, Args)]
struct PropertiesOptions {
    /// Make a trace of N lines
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(100..=50_000_000))]
    length: u64,
    /// Measure each N times
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeat: usize,
    #[command(flatten)]
    against: Against,
    #[command(flatten)]
    on: On,
    #[command(flatten)]
    places: Places,
}

#[derive(Debug, Args)]
struct LanguageOptions {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    against: Against,
    #[command(flatten)]
    places: Places,
}

#[derive(Debug, Args)]
struct FootprintOptions {
    /// Measure N times
    #[arg(long, value_name = "N", default_value_t = 5)]
    repeat: usize,
    #[command(flatten)]
    on: On,
    #[command(flatten)]
    places: Places,
}

#[derive(Debug, Args)]
struct OrderOptions {
    /// Measure on these networks: zenoh, dds, mqtt (which starts mosquitto)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "zenoh,dds,mqtt", value_enum)]
    networks: Vec<Network>,
    /// Send a burst of four messages every TIME, for each of these
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "1us,10us,100us,1ms,10ms,100ms", value_parser = duration)]
    periods: Vec<Duration>,
    /// Delay the messages of the second topic by each of these times
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "0ms,2ms", value_parser = duration)]
    delays: Vec<Duration>,
    /// Send at most N messages for each network, period and delay
    #[arg(long, value_name = "N", default_value_t = 4000, value_parser = clap::value_parser!(u64).range(4..=1_000_000))]
    events: u64,
    /// Send for at most SECONDS for each of them
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    seconds: f64,
    #[command(flatten)]
    places: Places,
}

#[derive(Debug, Args)]
struct MqttOptions {
    /// Make a trace of N lines
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1_000..=50_000_000))]
    length: u64,
    /// Send N messages there and back, to each participant
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pings: usize,
    /// Measure each N times, by turns
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeat: usize,
    #[command(flatten)]
    places: Places,
}

#[derive(Debug, Args)]
struct RatesOptions {
    /// Send N messages in each turn
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = clap::value_parser!(u64).range(1_000..=50_000_000))]
    length: u64,
    /// Measure each N times, by turns
    #[arg(long, value_name = "N", default_value_t = 5)]
    repeat: usize,
    #[command(flatten)]
    places: Places,
}

#[derive(Debug, Args)]
struct RecordingsOptions {
    /// Write recordings of N messages
    #[arg(long, value_name = "N", default_value_t = 300_000, value_parser = clap::value_parser!(u64).range(1_000..=50_000_000))]
    length: u64,
    /// Measure each N times, by turns
    #[arg(long, value_name = "N", default_value_t = 9)]
    repeat: usize,
    /// The Python that has rosbags and mcap
    #[arg(long, value_name = "PATH", default_value = ".venv/bin/python3")]
    python: PathBuf,
    /// The program of bench/mcap-iterate (default: without)
    #[arg(long, value_name = "PATH")]
    iterate: Option<PathBuf>,
    #[command(flatten)]
    places: Places,
}

/// Reads a time such as `10us`.
fn duration(text: &str) -> std::result::Result<Duration, String> {
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

#[derive(Debug, Args)]
struct All {
    /// Write results.md and results.json into this folder
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    on: On,
    #[command(flatten)]
    pings: Pings,
}

#[derive(Debug, Args)]
struct Traces {
    /// Write NAME.jsonl and NAME.rye into this folder
    folder: PathBuf,
    #[command(flatten)]
    selection: Selection,
}

fn main() -> ExitCode {
    log();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are printed the same way, and are no mistake.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match arguments.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say(&format!("error: {failure}"));
            ExitCode::from(failure.status())
        }
    }
}

/// Writes a line to standard error.
pub(crate) fn say(line: &str) {
    // In one piece, so that it does not mix with other output; and where nobody reads there is nobody to tell.
    let _ = std::io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// Shows warnings of the networks on standard error; `RONDEL_LOG` chooses more or less.
fn log() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("RONDEL_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("error,rondel_net=warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .without_time()
        .with_target(false)
        .init();
}

impl Arguments {
    /// Measures.
    fn run(self) -> Result<()> {
        let rondel = program::rondel(self.rondel.as_deref());
        let programs =
            |Against { against }: &Against| Programs { rondel: rondel.clone(), against: against.clone() };
        match &self.command {
            Command::All(all) => all.run(&rondel),
            Command::Timescales(options) => reported(&options.places, |r| {
                table_1(programs(&options.against), &options.selection, &options.on, r)
            }),
            Command::Latency(options) => {
                reported(&options.places, |r| latencies(&rondel, &options.pings, &options.on, r))
            }
            Command::Properties(options) => reported(&options.places, |r| {
                let zenoh = options.on.all().contains(&Network::Zenoh);
                many(&programs(&options.against), options.length, options.repeat, zenoh, r)
            }),
            Command::Footprint(options) => {
                reported(&options.places, |r| footprints(&rondel, options.repeat, &options.on, r))
            }
            Command::Rates(options) => reported(&options.places, |report| {
                let rows = rates::measure(&rondel, options.length, options.repeat)?;
                report.marks(rates::marks(&rows));
                report.add("rates", &rows, [rates::table(&rows)]);
                Ok(())
            }),
            Command::Recordings(options) => reported(&options.places, |report| {
                let readers = recordings::Readers {
                    rondel: rondel.clone(),
                    python: options.python.clone(),
                    iterate: options.iterate.clone(),
                };
                let rows = recordings::measure(&readers, options.length, options.repeat)?;
                report.marks(recordings::marks(&rows));
                report.add("recordings", &rows, [recordings::table(&rows)]);
                Ok(())
            }),
            Command::Mqtt(options) => reported(&options.places, |r| brokered(&rondel, options, r)),
            Command::Order(options) => reported(&options.places, |r| orders(options, r)),
            Command::Language(options) => {
                reported(&options.places, |r| languages(&programs(&options.against), &options.selection, r))
            }
            Command::Engine(engine) => engine.run(),
            Command::Align(align) => align.run(),
            Command::Wire(wire) => wire.run(),
            Command::Traces(traces) => traces.run(),
            Command::Autoware(autoware) => autoware.run(&rondel),
            Command::Peer(peer) => peer.run(),
        }
    }
}

/// Measures and writes a report, also when the measurement fails halfway.
fn reported(places: &Places, measure: impl FnOnce(&mut Report) -> Result<()>) -> Result<()> {
    report(places.out.as_deref(), places.json.as_deref(), measure)
}

fn report(
    out: Option<&Path>,
    json: Option<&Path>,
    measure: impl FnOnce(&mut Report) -> Result<()>,
) -> Result<()> {
    let mut report = Report::new();
    let measured = measure(&mut report);
    report.write(out, json)?;
    measured
}

impl Selection {
    fn properties(&self) -> Result<Vec<Property>> {
        if self.only.is_empty() {
            return Ok(timescales::all().collect());
        }
        let find = |name: &String| {
            Property::by_name(name).ok_or_else(|| Failure::Usage(format!("--only {name}: no such property")))
        };
        self.only.iter().map(find).collect()
    }
}

fn table_1(programs: Programs, selection: &Selection, on: &On, report: &mut Report) -> Result<()> {
    let plan = table1::Plan {
        programs,
        properties: selection.properties()?,
        length: selection.length,
        seed: selection.seed,
        repeat: usize::from(selection.repeat),
        networks: on.all(),
    };
    let mut rows = Vec::new();
    let measured = table1::measure(&plan, &mut rows);
    report.marks(table1::marks(&rows));
    report.add("timescales", &rows, table1::tables(&rows));
    measured
}

fn latencies(rondel: &Path, pings: &Pings, on: &On, report: &mut Report) -> Result<()> {
    let mut results: Vec<Latency> = Vec::new();
    for network in on.all() {
        let result = latency::measure(rondel, network, pings.pings, pings.batch)?;
        say(&format!("latency on {}: the monitor adds {:.1} us", network.name(), result.difference_us));
        results.push(result);
    }
    let mark = |r: &Latency| {
        let what =
            format!("{}: round trip through the monitor minus through an echo, medians", r.network.name());
        Mark::at_most(what, r.difference_us, 5.0, "us")
    };
    report.marks(results.iter().map(mark));
    report.add("latency", &results, [latency::table(&results)]);
    Ok(())
}

fn many(programs: &Programs, length: u64, repeat: usize, zenoh: bool, report: &mut Report) -> Result<()> {
    let results = properties::measure(programs, length, 1, repeat, zenoh)?;
    if let Some(last) = results.last() {
        say(&format!("{} properties: {:.1} times one from a file", last.properties, last.file_ratio));
        let mark = |where_from: &str, ratio: f64| {
            Mark::at_most(
                format!("{} properties on one stream, {where_from}: times one", last.properties),
                ratio,
                20.0,
                "",
            )
        };
        report.marks([mark("from a file", last.file_ratio)]);
        report.marks(last.zenoh_ratio.map(|ratio| mark("on Zenoh", ratio)));
    }
    report.add("properties", &results, properties::tables(&results));
    Ok(())
}

fn languages(programs: &Programs, selection: &Selection, report: &mut Report) -> Result<()> {
    let (length, repeat) = (selection.length, usize::from(selection.repeat));
    let (costs, marks) = language::measure(programs, length, repeat)?;
    report.marks(marks);
    let (dense, marks) = language::measure_dense(programs, &selection.properties()?, length, repeat)?;
    report.marks(marks);
    report.add("language", &(&costs, &dense), language::tables(&costs, &dense));
    Ok(())
}

fn orders(options: &OrderOptions, report: &mut Report) -> Result<()> {
    let plan = order::Plan {
        networks: options.networks.clone(),
        periods: options.periods.clone(),
        delays: options.delays.clone(),
        events: options.events,
        seconds: options.seconds,
    };
    let mut cells = Vec::new();
    let measured = order::measure(&plan, &mut cells, |cell| say(&cell.line()));
    report.marks(order::marks(&cells));
    report.add("order", &cells, order::tables(&cells));
    measured
}

fn brokered(rondel: &Path, options: &MqttOptions, report: &mut Report) -> Result<()> {
    let file = std::env::temp_dir().join(format!("rondel-bench-{}.jsonl", std::process::id()));
    let measured = mosquitto::measure(rondel, options.length, options.pings, options.repeat, &file);
    let _ = fs::remove_file(&file);
    let clients = measured?;
    report.add("mqtt", &clients, [mosquitto::table(&clients)]);
    Ok(())
}

fn footprints(rondel: &Path, repeat: usize, on: &On, report: &mut Report) -> Result<()> {
    let mut results: Vec<Footprint> = Vec::new();
    for network in on.all() {
        let result = footprint::measure(rondel, network, repeat)?;
        say(&format!(
            "footprint on {}: ready after {:.0} ms, {:.1} MB",
            network.name(),
            result.ready_ms,
            result.peak_bytes / 1e6
        ));
        results.push(result);
    }
    for r in &results {
        let name = r.network.name();
        report.marks([
            Mark::at_most(format!("{name}: ready after"), r.ready_ms, 100.0, "ms"),
            Mark::at_most(format!("{name}: peak resident memory"), r.peak_bytes / 1e6, 30.0, "MB"),
        ]);
    }
    report.add("footprint", &results, [footprint::table(&results)]);
    Ok(())
}

impl All {
    fn run(&self, rondel: &Path) -> Result<()> {
        let (out, json) = (self.out.join("results.md"), self.out.join("results.json"));
        report(Some(&out), Some(&json), |report| {
            let zenoh = self.on.all().contains(&Network::Zenoh);
            let programs = Programs { rondel: rondel.to_owned(), against: None };
            footprints(rondel, 5, &self.on, report)?;
            latencies(rondel, &self.pings, &self.on, report)?;
            many(&programs, self.selection.length, usize::from(self.selection.repeat).max(3), zenoh, report)?;
            table_1(programs, &self.selection, &self.on, report)
        })
    }
}

impl Traces {
    fn run(&self) -> Result<()> {
        let at = |path: &Path| io_error(path.display().to_string());
        fs::create_dir_all(&self.folder).map_err(at(&self.folder))?;
        for property in self.selection.properties()? {
            let name = property.name();
            let formula = self.folder.join(format!("{name}.rye"));
            fs::write(&formula, property.formula() + "\n").map_err(at(&formula))?;
            let path = self.folder.join(format!("{name}.jsonl"));
            let mut out = BufWriter::new(File::create(&path).map_err(at(&path))?);
            property
                .write_trace(self.selection.length, self.selection.seed, &mut out)
                .and_then(|()| out.flush())
                .map_err(at(&path))?;
        }
        Ok(())
    }
}
