//! The thirty properties, each from a local file and through the networks, beside plain participants.

use serde::Serialize;

use crate::failure::{Result, same};
use crate::file::{self, Checked};
use crate::link::Network;
use crate::network::{Monitor, Passage, Role, formula, pass};
use crate::report::Mark;
use crate::say;
use crate::table::{Table, mean, median};
use crate::timescales::Property;
use crate::traces::{Folder, Trace};
use crate::turns::{self, Programs, Turns};

/// The plan of a measurement.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The measured program, and the one that it is compared with from files.
    pub programs: Programs,
    /// The properties.
    pub properties: Vec<Property>,
    /// Messages in a trace.
    pub length: u64,
    /// The seed of the generator.
    pub seed: u64,
    /// The number of turns.
    pub repeat: usize,
    /// The networks, besides the file.
    pub networks: Vec<Network>,
}

/// The figures of one property.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The name of the property.
    pub property: String,
    /// The number of messages in its trace.
    pub messages: u64,
    /// The mean length of a message, in bytes.
    pub message_bytes: f64,
    /// From a local file, verdicts on change.
    pub file_change: Vec<Checked>,
    /// From a local file, a verdict for every message.
    pub file_every: Vec<Checked>,
    /// From a local file, verdicts on change, by the program of `--against`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub against_change: Vec<Checked>,
    /// From a local file, a verdict for every message, by the program of `--against`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub against_every: Vec<Checked>,
    /// Through networks.
    pub networks: Vec<OnNetwork>,
}

/// The figures of one property on one network.
#[derive(Clone, Debug, Serialize)]
pub struct OnNetwork {
    /// The network.
    pub network: Network,
    /// A verdict for every message, beside an echo.
    pub every: Pair,
    /// Verdicts on change, beside a counting subscriber.
    pub change: Pair,
}

/// The monitor and a plain participant, by turns.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Pair {
    /// The runs of the monitor.
    pub monitor: Vec<Passage>,
    /// The runs of the plain participant.
    pub plain: Vec<Passage>,
}

impl Pair {
    /// Returns the monitor's messages per second over the plain participant's: the median of the turns.
    pub fn ratio(&self) -> f64 {
        let turns = self.monitor.iter().zip(&self.plain);
        median(&turns.map(|(m, p)| p.seconds / m.seconds).collect::<Vec<_>>())
    }

    /// Returns the monitor's median seconds.
    fn seconds(&self) -> f64 {
        median_of(&self.monitor, |p| p.seconds)
    }

    fn measure(&mut self, turn: usize, mut one: impl FnMut(bool) -> Result<Passage>) -> Result<()> {
        // Each comes first as often as the other.
        for monitor in [turn.is_multiple_of(2), !turn.is_multiple_of(2)] {
            let passage = one(monitor)?;
            if monitor { self.monitor.push(passage) } else { self.plain.push(passage) }
        }
        Ok(())
    }
}

fn median_of<T: Copy>(values: &[T], of: impl Fn(T) -> f64) -> f64 {
    median(&values.iter().map(|&v| of(v)).collect::<Vec<_>>())
}

/// Measures one property after another. When something fails, `rows` has the properties before.
///
/// # Errors
/// When a message is lost, or a network cannot be used.
pub fn measure(plan: &Plan, rows: &mut Vec<Row>) -> Result<()> {
    let folder = Folder::new("timescales")?;
    for (i, &property) in plan.properties.iter().enumerate() {
        let row = one(plan, property, &folder)?;
        let on: Vec<String> = row.networks.iter().map(brief).collect();
        say(&format!(
            "{:>2}/{} {:<14} file {:.1} ns{}",
            i + 1,
            plan.properties.len(),
            row.property,
            median_of(&row.file_change, Checked::cpu_ns),
            on.concat()
        ));
        rows.push(row);
    }
    Ok(())
}

fn brief(on: &OnNetwork) -> String {
    let OnNetwork { network, every, change } = on;
    format!(
        "; {} every {:.3} s ({:.2} of echo), change {:.3} s ({:.2} of count)",
        network.name(),
        every.seconds(),
        every.ratio(),
        change.seconds(),
        change.ratio()
    )
}

fn one(plan: &Plan, property: Property, folder: &Folder) -> Result<Row> {
    let trace = Trace::of(property, plan.length, plan.seed)?;
    let path = folder.write(&format!("{}.jsonl", property.name()), trace.text())?;
    let formula = formula(&property.formula());
    let with = |emit: &str| [formula.as_slice(), &[format!("--emit={emit}")]].concat();
    let (change, every) = (with("change"), with("every"));
    // Also warms up: the first run may have to read the file from the disk.
    let verdicts = file::verdicts(&plan.programs.rondel, &every, &path)?;
    same(|| format!("{}: verdicts from the file", property.name()), plan.length, verdicts)?;
    let (mut file_change, mut file_every) = (Turns::default(), Turns::default());
    for _ in 0..plan.repeat {
        file_change.check(&plan.programs, &change, &path, plan.length)?;
        file_every.check(&plan.programs, &every, &path, plan.length)?;
    }
    folder.remove(&path);
    let monitor = Monitor { program: plan.programs.rondel.clone(), specification: formula };
    let mut networks = Vec::new();
    for &network in &plan.networks {
        let (mut every, mut change) = (Pair::default(), Pair::default());
        let run = |role: Role<'_>| pass(network, &trace, role, "bench/out");
        for turn in 0..plan.repeat {
            every.measure(turn, |monitored| {
                run(if monitored { Role::MonitorEvery(&monitor) } else { Role::Echo })
            })?;
            change.measure(turn, |monitored| {
                run(if monitored { Role::MonitorChange(&monitor) } else { Role::Count })
            })?;
        }
        networks.push(OnNetwork { network, every, change });
    }
    Ok(Row {
        property: property.name(),
        messages: plan.length,
        message_bytes: trace.mean_bytes(),
        file_change: file_change.rondel,
        file_every: file_every.rondel,
        against_change: file_change.against,
        against_every: file_every.against,
        networks,
    })
}

/// Returns the tables: Table 1 of the Timescales paper, then the details of the file and of each network.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let Some(first) = rows.first() else { return Vec::new() };
    let networks: Vec<Network> = first.networks.iter().map(|on| on.network).collect();
    let mut tables = vec![table_1(rows, &networks), file_table(rows)];
    tables.extend(turns::table(&by_turns(rows)));
    tables.extend(networks.iter().enumerate().map(|(i, &network)| network_table(rows, i, network)));
    tables
}

fn table_1(rows: &[Row], networks: &[Network]) -> Table {
    let mut heads = vec!["property".to_owned()];
    heads.extend(networks.iter().map(|n| format!("{}, host", n.name())));
    heads.push("local file".to_owned());
    let messages = rows.first().map_or(0, |row| row.messages);
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table =
        Table::new(format!("Table 1: seconds for {messages} messages, a verdict for each"), &heads);
    for row in rows {
        let mut cells = vec![row.property.clone()];
        cells.extend(row.networks.iter().map(|on| format!("{:.3}", on.every.seconds())));
        cells.push(format!("{:.3}", median_of(&row.file_every, |c| c.seconds)));
        table.row(cells);
    }
    table.note(format!(
        "Every message was counted at both ends: for each figure on a network {messages} sent, {messages} checked, \
         {messages} verdicts back."
    ));
    table
}

fn file_table(rows: &[Row]) -> Table {
    let mut table = Table::new(
        "Local file",
        &[
            "property",
            "bytes per message",
            "change: s",
            "CPU s",
            "CPU ns per event",
            "every: s",
            "CPU s",
            "CPU ns per event",
        ],
    );
    for row in rows {
        let mut cells = vec![row.property.clone(), format!("{:.1}", row.message_bytes)];
        for runs in [&row.file_change, &row.file_every] {
            cells.push(format!("{:.3}", median_of(runs, |c| c.seconds)));
            cells.push(format!("{:.3}", median_of(runs, |c| c.cpu_seconds)));
            cells.push(format!("{:.1}", median_of(runs, Checked::cpu_ns)));
        }
        table.row(cells);
    }
    let mean_of = |every: bool| {
        let runs =
            |row: &Row| median_of(if every { &row.file_every } else { &row.file_change }, Checked::cpu_ns);
        mean(&rows.iter().map(runs).collect::<Vec<_>>())
    };
    table.note(format!(
        "The whole process, from its start to its end, verdicts as JSON to /dev/null. Mean of all: {:.1} ns per \
         event on change, {:.1} with a verdict for every event.",
        mean_of(false),
        mean_of(true)
    ));
    table
}

/// Returns the turns of both programs on each file, and their sums over all files.
fn by_turns(rows: &[Row]) -> Vec<(String, Turns)> {
    let mut all = Vec::new();
    let of =
        |rondel: &[Checked], against: &[Checked]| Turns { rondel: rondel.into(), against: against.into() };
    for (verdicts, turns) in [
        ("on change", rows.iter().map(|row| of(&row.file_change, &row.against_change)).collect::<Vec<_>>()),
        ("every", rows.iter().map(|row| of(&row.file_every, &row.against_every)).collect()),
    ] {
        let mut sum = Turns::default();
        turns.iter().for_each(|turns| sum.add(turns));
        let names = rows.iter().map(|row| format!("{}, {verdicts}", row.property));
        all.extend(names.zip(turns));
        all.push((format!("all, {verdicts}"), sum));
    }
    all
}

fn network_table(rows: &[Row], index: usize, network: Network) -> Table {
    let mut table = Table::new(
        format!("{} on the host", network.name()),
        &[
            "property",
            "every: s",
            "ns per message",
            "times local file",
            "echo: s",
            "monitor : echo",
            "change: s",
            "ns per message",
            "count: s",
            "monitor : count",
        ],
    );
    for row in rows {
        let Some(OnNetwork { every, change, .. }) = row.networks.get(index) else { continue };
        let ns = |seconds: f64| format!("{:.0}", seconds * 1e9 / row.messages as f64);
        let plain = |pair: &Pair| format!("{:.3}", median_of(&pair.plain, |p| p.seconds));
        table.row(vec![
            row.property.clone(),
            format!("{:.3}", every.seconds()),
            ns(every.seconds()),
            format!("{:.1}", every.seconds() / median_of(&row.file_every, |c| c.seconds)),
            plain(every),
            format!("{:.2}", every.ratio()),
            format!("{:.3}", change.seconds()),
            ns(change.seconds()),
            plain(change),
            format!("{:.2}", change.ratio()),
        ]);
    }
    let [every, change] = ratios(rows, index);
    table.note(format!(
        "Messages per second, monitor : plain participant, taken in turn; the median of all turns is {every:.3} \
         with a verdict for every message (beside an echo) and {change:.3} on change (beside a subscriber that \
         only counts)."
    ));
    table
}

/// Returns the medians, over all turns of all properties, of monitor : echo and monitor : count.
fn ratios(rows: &[Row], index: usize) -> [f64; 2] {
    [|on: &OnNetwork| on.every.clone(), |on: &OnNetwork| on.change.clone()].map(|pair| {
        let mut all = Pair::default();
        for on in rows.iter().filter_map(|row| row.networks.get(index)) {
            let Pair { monitor, plain } = pair(on);
            all.monitor.extend(monitor);
            all.plain.extend(plain);
        }
        all.ratio()
    })
}

/// Returns the marks.
pub fn marks(rows: &[Row]) -> Vec<Mark> {
    let Some(first) = rows.first() else { return Vec::new() };
    let ns: Vec<f64> = rows.iter().map(|row| median_of(&row.file_change, Checked::cpu_ns)).collect();
    let what = format!("CPU time per event from a file, whole process, mean of {} traces", rows.len());
    let mut marks = vec![Mark::at_most(what, mean(&ns), 25.0, "ns")];
    for (i, on) in first.networks.iter().enumerate() {
        let [every, change] = ratios(rows, i);
        let name = on.network.name();
        marks.push(Mark::at_least(
            format!("{name}, on change: messages/s, monitor : counting subscriber"),
            change,
            0.95,
            "",
        ));
        marks.push(Mark::at_least(format!("{name}, every: messages/s, monitor : echo"), every, 0.9, ""));
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(seconds: f64) -> Passage {
        Passage { seconds, cpu_seconds: seconds, messages: 1000, answers: 1000 }
    }

    #[test]
    fn rows_become_tables() {
        let pair = |m: f64, p: f64| Pair { monitor: vec![passage(m)], plain: vec![passage(p)] };
        let checked = Checked { seconds: 0.02, cpu_seconds: 0.00002, events: 1000 };
        let row = Row {
            property: "P10".to_owned(),
            messages: 1000,
            message_bytes: 30.0,
            file_change: vec![checked],
            file_every: vec![checked],
            against_change: vec![checked],
            against_every: vec![Checked { cpu_seconds: 0.00001, ..checked }],
            networks: vec![OnNetwork {
                network: Network::Dds,
                every: pair(2.0, 1.0),
                change: pair(1.0, 0.98),
            }],
        };
        let rows = [row];
        let text: String = tables(&rows).iter().map(Table::markdown).collect();
        assert!(text.contains("| P10 | 2.000 | 0.020 |"), "{text}");
        assert!(text.contains("| P10 | 30.0 | 0.020 | 0.000 | 20.0 | 0.020 | 0.000 | 20.0 |"), "{text}");
        assert!(text.contains("| all, every | 1000 | 20.0 | 10.0 | 2.000 | 20.0 | 10.0 | 2.000 |"), "{text}");
        assert!(text.contains("| 0.50 |") && text.contains("| 0.98 |"), "{text}");
        let met: Vec<bool> = marks(&rows).iter().map(Mark::met).collect();
        assert_eq!(met, [true, true, false]);
        assert!(tables(&[]).is_empty() && marks(&[]).is_empty());
    }
}
