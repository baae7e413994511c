//! `rondel bench`: measurements.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::bench::failure::{Failure, Result, io_error};
use crate::bench::footprint::{self, Footprint};
use crate::bench::language;
use crate::bench::latency::{self, Latency};
use crate::bench::link::Network;
use crate::bench::mosquitto;
use crate::bench::order;
use crate::bench::peer::Peer;
use crate::bench::properties;
use crate::bench::report::{Mark, Report};
use crate::bench::table1;
use crate::bench::timescales::{self, Property};
use crate::{complain, exit, say};

/// Measure Rondel on this machine
///
/// Runs itself as child processes, on loopback only. Every message is counted at both ends; when one is
/// missing, or comes twice, the exit status is 1.
#[derive(Debug, Args)]
pub struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant)] // there is one, on its way from the command line
enum What {
    /// Everything below, into a folder
    All(All),
    /// The Timescales benchmark: file, Zenoh, DDS, beside plain participants
    Timescales(Timescales),
    /// The round trip through the monitor, beside an echo
    Latency(LatencyOptions),
    /// 1, 10, 100 and 300 properties at once on one stream
    Properties(PropertiesOptions),
    /// Properties by key, dense time, robustness, a thousand properties
    Language(LanguageOptions),
    /// Two topics from one cause: what each setting of alignment makes of what arrives
    Order(OrderOptions),
    /// MQTT beside mosquitto's own clients
    Mqtt(MqttOptions),
    /// Time until ready, and memory
    Footprint(FootprintOptions),
    /// Write the traces of the Timescales benchmark, and their formulas
    Traces(Traces),
    /// Take part in a measurement as a plain participant
    #[command(hide = true)]
    Peer(Peer),
}

/// Where results go.
#[derive(Debug, Args)]
struct Places {
    /// Write the tables to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write all single results to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Which traces.
#[derive(Debug, Args)]
struct Selection {
    /// Lines in a trace
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(100..=50_000_000))]
    length: u64,
    /// The seed of the generator
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Only these properties, such as RespondBQR10,RecurGLB1000
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// How often each is measured, in turn with what it is compared with
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
}

/// Which networks.
#[derive(Debug, Args)]
struct On {
    /// On which networks, of zenoh, dds and mqtt (with mosquitto, which is started for it); `none` for none
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
    on: On,
    #[command(flatten)]
    places: Places,
}

#[derive(Debug, Args)]
struct Pings {
    /// Messages there and back, to each
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pings: usize,
    /// How many before it is the other's turn
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
    /// Lines in the trace
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(100..=50_000_000))]
    length: u64,
    /// How often each is measured
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeat: usize,
    /// On which networks besides the file: zenoh or none
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
    places: Places,
}

#[derive(Debug, Args)]
struct FootprintOptions {
    /// How often it is measured
    #[arg(long, value_name = "N", default_value_t = 5)]
    repeat: usize,
    #[command(flatten)]
    on: On,
    #[command(flatten)]
    places: Places,
}

#[derive(Debug, Args)]
struct OrderOptions {
    /// On which networks: zenoh, dds, mqtt (with mosquitto, which is started for it)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "zenoh,dds,mqtt", value_enum)]
    networks: Vec<Network>,
    /// From one burst of four messages to the next
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "1us,10us,100us,1ms,10ms,100ms", value_parser = duration)]
    periods: Vec<Duration>,
    /// By how much the messages of the second topic are sent later than they should
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "0ms,2ms", value_parser = duration)]
    delays: Vec<Duration>,
    /// Messages for each network, period and delay, at most
    #[arg(long, value_name = "N", default_value_t = 4000, value_parser = clap::value_parser!(u64).range(4..=1_000_000))]
    events: u64,
    /// Seconds for each of them, at most
    #[arg(long, value_name = "N", default_value_t = 2.0)]
    seconds: f64,
    #[command(flatten)]
    places: Places,
}

#[derive(Debug, Args)]
struct MqttOptions {
    /// Lines in the trace
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1_000..=50_000_000))]
    length: u64,
    /// Messages there and back, to each
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pings: usize,
    /// How often each is measured, in turn
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeat: usize,
    #[command(flatten)]
    places: Places,
}

/// A time such as `10us`.
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
    /// Where to write NAME.jsonl and NAME.rye
    folder: PathBuf,
    #[command(flatten)]
    selection: Selection,
}

impl Bench {
    /// Measures, and returns the exit status.
    pub fn run(self) -> u8 {
        let result = match &self.what {
            What::All(all) => all.run(),
            What::Timescales(options) => {
                reported(&options.places, |r| table_1(&options.selection, &options.on, r))
            }
            What::Latency(options) => {
                reported(&options.places, |r| latencies(&options.pings, &options.on, r))
            }
            What::Properties(options) => reported(&options.places, |r| {
                many(options.length, options.repeat, options.on.all().contains(&Network::Zenoh), r)
            }),
            What::Footprint(options) => {
                reported(&options.places, |r| footprints(options.repeat, &options.on, r))
            }
            What::Mqtt(options) => reported(&options.places, |r| brokered(options, r)),
            What::Order(options) => reported(&options.places, |r| orders(options, r)),
            What::Language(options) => reported(&options.places, |r| languages(&options.selection, r)),
            What::Traces(traces) => traces.run(),
            What::Peer(peer) => peer.run(),
        };
        result.unwrap_or_else(|failure| {
            complain(&failure.to_string());
            failure.status()
        })
    }
}

/// Measures and reports, also what was measured before something failed.
fn reported(places: &Places, measure: impl FnOnce(&mut Report) -> Result<()>) -> Result<u8> {
    report(places.out.as_deref(), places.json.as_deref(), measure)
}

fn report(
    out: Option<&Path>,
    json: Option<&Path>,
    measure: impl FnOnce(&mut Report) -> Result<()>,
) -> Result<u8> {
    let mut report = Report::new();
    let measured = measure(&mut report);
    report.write(out, json)?;
    measured.map(|()| exit::SATISFIED)
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

fn table_1(selection: &Selection, on: &On, report: &mut Report) -> Result<()> {
    let plan = table1::Plan {
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

fn latencies(pings: &Pings, on: &On, report: &mut Report) -> Result<()> {
    let mut results: Vec<Latency> = Vec::new();
    for network in on.all() {
        let result = latency::measure(network, pings.pings, pings.batch)?;
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

fn many(length: u64, repeat: usize, zenoh: bool, report: &mut Report) -> Result<()> {
    let results = properties::measure(length, 1, repeat, zenoh)?;
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
    report.add("properties", &results, [properties::table(&results)]);
    Ok(())
}

fn languages(selection: &Selection, report: &mut Report) -> Result<()> {
    let (length, repeat) = (selection.length, usize::from(selection.repeat));
    let (costs, marks) = language::measure(length, repeat)?;
    report.marks(marks);
    let (dense, marks) = language::measure_dense(&selection.properties()?, length, repeat)?;
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

fn brokered(options: &MqttOptions, report: &mut Report) -> Result<()> {
    let file = std::env::temp_dir().join(format!("rondel-bench-{}.jsonl", std::process::id()));
    let measured = mosquitto::measure(options.length, options.pings, options.repeat, &file);
    let _ = fs::remove_file(&file);
    let clients = measured?;
    report.add("mqtt", &clients, [mosquitto::table(&clients)]);
    Ok(())
}

fn footprints(repeat: usize, on: &On, report: &mut Report) -> Result<()> {
    let mut results: Vec<Footprint> = Vec::new();
    for network in on.all() {
        let result = footprint::measure(network, repeat)?;
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
    fn run(&self) -> Result<u8> {
        let (out, json) = (self.out.join("results.md"), self.out.join("results.json"));
        report(Some(&out), Some(&json), |report| {
            let zenoh = self.on.all().contains(&Network::Zenoh);
            footprints(5, &self.on, report)?;
            latencies(&self.pings, &self.on, report)?;
            many(self.selection.length, usize::from(self.selection.repeat).max(3), zenoh, report)?;
            table_1(&self.selection, &self.on, report)
        })
    }
}

impl Traces {
    fn run(&self) -> Result<u8> {
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
        Ok(exit::SATISFIED)
    }
}
