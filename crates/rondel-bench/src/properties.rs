//! Many properties at once on one stream.

use std::fmt::Write as _;

use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::link::Network;
use crate::network::{Monitor, Passage, Role, pass};
use crate::table::{Table, median};
use crate::timescales::Property;
use crate::traces::{Folder, Trace};
use crate::turns::{self, Programs, Turns};

/// The numbers of properties.
pub const COUNTS: [usize; 4] = [1, 10, 100, 300];

/// The figures of one number of properties.
#[derive(Clone, Debug, Serialize)]
pub struct Properties {
    /// The number of properties.
    pub properties: usize,
    /// The number of messages.
    pub messages: u64,
    /// From a local file: CPU seconds of the process, median.
    pub file_cpu_seconds: f64,
    /// From a local file: every run.
    pub file: Turns,
    /// The ratio to the time of one property.
    pub file_ratio: f64,
    /// On Zenoh, verdicts on change: seconds from the first message to the last, median.
    pub zenoh_seconds: Option<f64>,
    /// The ratio to the time of one property.
    pub zenoh_ratio: Option<f64>,
}

/// Returns a specification of `count` properties over one topic: the ten families in turn, each round with wider bounds,
/// no two alike. They share the subformulas of the families, such as `once t.q`.
pub fn specification(count: usize) -> String {
    let mut text = "topic t { q: bool, p: bool, s: bool, r: bool }\n".to_owned();
    for i in 0..count {
        let turn = i as u64 / 10;
        let (l, u) = (3 + turn, 10 + 7 * turn);
        let between = "t.r and not t.q and once t.q";
        let respond = format!("(t.s -> once[{l}, {u}] t.p) and not ((not t.s) since[{u},] t.p)");
        let formula = match i % 10 {
            0 => format!("historically ((once[0, {u}] t.q) -> ((not t.p) since t.q))"),
            1 => format!("historically (({between}) -> ((not t.p) since[{l}, {u}] t.q))"),
            2 => format!("historically (t.r -> historically[0, {u}] (not t.p))"),
            3 => format!("historically ((once[0, {u}] t.q) -> (t.p since t.q))"),
            4 => format!("historically (({between}) -> (t.p since[{l}, {u}] t.q))"),
            5 => format!("historically (t.r -> historically[0, {u}] t.p)"),
            6 => format!("historically (({between}) -> ((once[0, {u}] (t.p or t.q)) since t.q))"),
            7 => format!("historically (once[0, {u}] t.p)"),
            8 => format!("historically (({between}) -> (({respond}) since t.q))"),
            _ => format!("historically ({respond})"),
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "property p{i} = {formula}");
    }
    text
}

/// Measures each number of properties `repeat` times, by turns.
///
/// # Errors
/// When a message is lost, or a network cannot be used.
pub fn measure(
    programs: &Programs,
    length: u64,
    seed: u64,
    repeat: usize,
    zenoh: bool,
) -> Result<Vec<Properties>> {
    let property =
        Property::by_name("RespondBQR10").ok_or_else(|| Failure::Usage("no such property".to_owned()))?;
    let trace = Trace::of(property, length, seed)?;
    let folder = Folder::new("properties")?;
    let path = folder.write("trace.jsonl", trace.text())?;
    let mut files = vec![Turns::default(); COUNTS.len()];
    let mut passages: Vec<Vec<Passage>> = vec![Vec::new(); COUNTS.len()];
    for _ in 0..repeat.max(1) {
        for (i, count) in COUNTS.into_iter().enumerate() {
            let specification = folder.write(&format!("p{count}.rondel"), specification(count).as_bytes())?;
            let specification = vec![specification.display().to_string()];
            let mut arguments = vec!["--emit=change".to_owned()];
            arguments.extend_from_slice(&specification);
            files[i].check(programs, &arguments, &path, length)?;
            if zenoh {
                let answers = if count == 1 { "bench/out" } else { "bench/out/*" };
                let monitor = Monitor { program: programs.rondel.clone(), specification };
                passages[i].push(pass(Network::Zenoh, &trace, Role::MonitorChange(&monitor), answers)?);
            }
        }
    }
    let file_seconds: Vec<f64> = files.iter().map(|turns| median(&turns.cpu_seconds())).collect();
    let seconds = |runs: &Vec<Passage>| median(&runs.iter().map(|p| p.seconds).collect::<Vec<_>>());
    let zenoh_seconds: Vec<Option<f64>> =
        passages.iter().map(|p| (!p.is_empty()).then(|| seconds(p))).collect();
    let results = COUNTS.into_iter().enumerate().map(|(i, properties)| Properties {
        properties,
        messages: length,
        file_cpu_seconds: file_seconds[i],
        file: files[i].clone(),
        file_ratio: file_seconds[i] / file_seconds[0],
        zenoh_seconds: zenoh_seconds[i],
        zenoh_ratio: zenoh_seconds[i].zip(zenoh_seconds[0]).map(|(many, one)| many / one),
    });
    Ok(results.collect())
}

/// Returns the tables.
pub fn tables(results: &[Properties]) -> Vec<Table> {
    let name = |r: &Properties| format!("{} properties", r.properties);
    let by_turns = results.iter().map(|r| (name(r), r.file.clone())).collect::<Vec<_>>();
    [table(results)].into_iter().chain(turns::table(&by_turns)).collect()
}

fn table(results: &[Properties]) -> Table {
    let mut table = Table::new(
        "Many properties at once",
        &["properties", "file, CPU s", "ns per event", "ratio to one", "Zenoh, s", "ratio to one"],
    );
    for r in results {
        let or_none =
            |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |v| format!("{v:.digits$}"));
        table.row(vec![
            r.properties.to_string(),
            format!("{:.3}", r.file_cpu_seconds),
            format!("{:.1}", r.file_cpu_seconds * 1e9 / r.messages as f64),
            format!("{:.2}", r.file_ratio),
            or_none(r.zenoh_seconds, 3),
            or_none(r.zenoh_ratio, 2),
        ]);
    }
    table.note(
        "One stream of messages with four fields, verdicts on change. The properties are the ten families in turn, \
         each round with wider bounds (3 + k, 10 + 7 k), so that no two are alike; common subformulas are computed \
         once.",
    );
    table
}

#[cfg(test)]
mod tests {
    use rondel_engine::Program;

    use super::*;

    #[test]
    fn the_specification_is_one() {
        for count in COUNTS {
            let text = specification(count);
            let parsed = rondel_spec::parse(&text);
            let spec = parsed.spec.unwrap_or_else(|| panic!("{text}"));
            assert_eq!(Program::compile(&spec).unwrap().properties().len(), count);
        }
    }
}
