//! The report of a measurement: tables for people, JSON for plots, and whether the marks are met.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::failure::{Result, io_error};
use crate::machine::Machine;
use crate::table::Table;

/// A mark: a limit for a measured value.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// The name of the value.
    pub what: String,
    /// The measured value.
    pub value: f64,
    /// The limit.
    pub limit: f64,
    /// Whether the limit is a lower one.
    pub at_least: bool,
    /// The unit, for people.
    pub unit: &'static str,
}

impl Mark {
    /// Returns a mark with an upper limit.
    pub fn at_most(what: impl Into<String>, value: f64, limit: f64, unit: &'static str) -> Mark {
        Mark { what: what.into(), value, limit, at_least: false, unit }
    }

    /// Returns a mark with a lower limit.
    pub fn at_least(what: impl Into<String>, value: f64, limit: f64, unit: &'static str) -> Mark {
        Mark { what: what.into(), value, limit, at_least: true, unit }
    }

    /// Returns whether it is met.
    pub fn met(&self) -> bool {
        if self.at_least { self.value >= self.limit } else { self.value <= self.limit }
    }

    /// Returns how far the value misses the limit, in percent of the limit.
    fn missed_by(&self) -> f64 {
        (self.value - self.limit).abs() / self.limit * 100.0
    }
}

/// The report of a measurement.
#[derive(Debug)]
pub struct Report {
    machine: Machine,
    tables: Vec<Table>,
    results: serde_json::Map<String, serde_json::Value>,
    marks: Vec<Mark>,
}

impl Report {
    /// Returns an empty report about this machine.
    pub fn new() -> Report {
        Report {
            machine: Machine::this(),
            tables: Vec::new(),
            results: serde_json::Map::new(),
            marks: Vec::new(),
        }
    }

    /// Adds results and tables, under a name.
    pub fn add(&mut self, name: &str, results: &impl Serialize, tables: impl IntoIterator<Item = Table>) {
        // Plain structures always have a JSON form.
        self.results.insert(name.to_owned(), serde_json::to_value(results).unwrap_or_default());
        self.tables.extend(tables);
    }

    /// Adds marks.
    pub fn marks(&mut self, marks: impl IntoIterator<Item = Mark>) {
        self.marks.extend(marks);
    }

    /// Returns the tables in Markdown.
    pub fn markdown(&self) -> String {
        let mut out = format!("{}\n\n", self.machine.line());
        if !self.marks.is_empty() {
            let mut table = Table::new("Marks", &["what", "measured", "mark", ""]);
            for mark in &self.marks {
                let sign = if mark.at_least { "≥" } else { "≤" };
                let met = if mark.met() {
                    "met".to_owned()
                } else if mark.limit == 0.0 {
                    "**missed**".to_owned()
                } else {
                    format!("**missed** by {:.1} %", mark.missed_by())
                };
                table.row(vec![
                    mark.what.clone(),
                    format!("{:.*} {}", digits(mark.value), mark.value, mark.unit).trim_end().to_owned(),
                    format!("{sign} {} {}", mark.limit, mark.unit).trim_end().to_owned(),
                    met,
                ]);
            }
            out += &table.markdown();
        }
        for table in &self.tables {
            out += &table.markdown();
        }
        out
    }

    /// Returns all results as JSON.
    pub fn json(&self) -> String {
        let mut all = serde_json::Map::new();
        all.insert("machine".to_owned(), serde_json::to_value(&self.machine).unwrap_or_default());
        all.insert("marks".to_owned(), serde_json::to_value(&self.marks).unwrap_or_default());
        all.extend(self.results.clone());
        format!("{:#}\n", serde_json::Value::Object(all))
    }

    /// Writes the tables and the JSON to these files; the tables to standard output without a file.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, markdown: Option<&Path>, json: Option<&Path>) -> Result<()> {
        let write = |path: &Path, text: String| {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(io_error(folder.display().to_string()))?;
            }
            fs::write(path, text).map_err(io_error(path.display().to_string()))
        };
        if let Some(path) = json {
            write(path, self.json())?;
        }
        match markdown {
            Some(path) => write(path, self.markdown()),
            None => {
                use std::io::Write;
                std::io::stdout().write_all(self.markdown().as_bytes()).map_err(io_error("standard output"))
            }
        }
    }
}

/// Returns the number of decimals that leaves three significant digits.
fn digits(value: f64) -> usize {
    match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 0.1 => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_met_or_missed() {
        let below = Mark::at_most("a", 25.0, 25.0, "ns");
        let above = Mark::at_least("b", 0.8, 1.0, "");
        assert!(below.met() && !above.met());
        let mut report = Report::new();
        report.marks([below, above]);
        report.add("x", &[1, 2], [Table::new("T", &["h"])]);
        let text = report.markdown();
        assert!(text.contains("| a | 25.0 ns | ≤ 25 ns | met |"), "{text}");
        assert!(text.contains("| b | 0.80 | ≥ 1 | **missed** by 20.0 % |"), "{text}");
        assert!(report.json().contains("\"x\": [\n    1,\n    2\n  ]"));
    }
}
