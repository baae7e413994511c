//! The measurements of the command line, with their reports.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::failure::{Failure, Result, io_error};
use crate::footprint::Footprint;
use crate::latency::Latency;
use crate::link::Network;
use crate::options::{
    Against, All, Arguments, Command, MqttOptions, On, OrderOptions, Pings, Places, Selection, Traces,
};
use crate::report::{Mark, Report};
use crate::timescales::Property;
use crate::turns::Programs;
use crate::{
    footprint, language, latency, mosquitto, order, program, properties, rates, recordings, say, size,
    table1, timescales, workers,
};

impl Arguments {
    /// Measures.
    pub fn run(self) -> Result<()> {
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
            Command::Gate(options) => {
                reported(&options.places, |r| gates(&rondel, &options.pings, &options.on, r))
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
            Command::Size(options) => reported(&options.places, |report| {
                let figures = size::measure(&rondel, options.keys, options.sampled)?;
                report.add("size", &figures, [size::table(&figures)]);
                Ok(())
            }),
            Command::Chain(options) => options.run(&rondel),
            Command::Failover(options) => options.run(),
            Command::Standby(options) => options.run(&rondel),
            Command::Roundtrip(options) => options.run(),
            Command::Throughput(options) => options.run(&rondel),
            Command::Clocks(options) => options.run(),
            Command::Mesa(options) => options.run(&rondel),
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
///
/// # Errors
/// When the measurement fails, or the report cannot be written.
pub fn reported(places: &Places, measure: impl FnOnce(&mut Report) -> Result<()>) -> Result<()> {
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
    let monitor = Through { name: "monitor", section: "latency", limit: 5.0 };
    let measure = |network| latency::measure(rondel, network, pings.pings, pings.batch);
    round_trips(&monitor, on, report, measure)
}

fn gates(rondel: &Path, pings: &Pings, on: &On, report: &mut Report) -> Result<()> {
    let gate = Through { name: "gate", section: "gate", limit: 20.0 };
    let measure = |network| latency::measure_gate(rondel, network, pings.pings, pings.batch);
    round_trips(&gate, on, report, measure)
}

/// A participant whose round trip is measured beside that of an echo.
struct Through {
    name: &'static str,
    /// The section of the report.
    section: &'static str,
    /// The time that it may add, in microseconds.
    limit: f64,
}

fn round_trips(
    through: &Through,
    on: &On,
    report: &mut Report,
    measure: impl Fn(Network) -> Result<Latency>,
) -> Result<()> {
    let Through { name, section, limit } = *through;
    let mut results: Vec<Latency> = Vec::new();
    for network in on.all() {
        let result = measure(network)?;
        say(&format!("latency on {}: the {name} adds {:.1} us", network.name(), result.difference_us));
        results.push(result);
    }
    let mark = |r: &Latency| {
        let what =
            format!("{}: round trip through the {name} minus through an echo, medians", r.network.name());
        Mark::at_most(what, r.difference_us, limit, "us")
    };
    report.marks(results.iter().map(mark));
    report.add(section, &results, [latency::table(&results, name)]);
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
    let spread = workers::measure(programs, length, repeat)?;
    report.add("workers", &spread, [workers::table(&spread)]);
    Ok(())
}

fn orders(options: &OrderOptions, report: &mut Report) -> Result<()> {
    let plan = order::Plan {
        networks: options.networks.clone(),
        periods: options.periods.clone(),
        delays: options.delays.clone(),
        events: options.events,
        seconds: options.seconds,
        instants: options.instants.iter().copied().flatten().collect(),
    };
    let mut measured = order::Measured::default();
    let ended = order::measure(&plan, &mut measured);
    let order::Measured { cells, instants } = &measured;
    report.marks(order::marks(cells));
    report.marks([order::mark_of_instants(instants)]);
    report.add("order", cells, order::tables(cells));
    report.add("instants", instants, [order::table_of_instants(instants)]);
    ended
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
