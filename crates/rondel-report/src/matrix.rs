//! Traceability matrix of requirements, properties and verdicts, over the reports of many runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::results::{Judged, Outcome, Results};

/// For each requirement: the properties that check it, and their outcome in each recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    /// The recordings, in the order of the reports.
    pub recordings: Vec<String>,
    /// The rows by requirement and property; properties without a requirement come last, with an empty one.
    pub rows: Vec<Row>,
    /// Requested requirements that no property names.
    pub unchecked: Vec<String>,
}

/// A property of a requirement.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The requirement; empty for a property that names none.
    pub requirement: String,
    /// The property.
    pub property: String,
    /// Whether an assert judges the property, and decides instead of it.
    pub is_asserted: bool,
    /// Result in each recording; `None` if it was not checked there.
    pub cells: Vec<Option<Cell>>,
}

/// A property or an assert of a specification, and the requirements that it checks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// The requirements; those of an assert contain those of the property that it judges.
    pub requirements: Vec<String>,
    /// Whether an assert judges it, and decides instead of it.
    pub is_asserted: bool,
}

/// The result of a property in a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Its outcome.
    pub outcome: Outcome,
    /// Number of times that it became violated.
    pub violations: u64,
}

impl Row {
    /// The worst result over all recordings; `None` if it was checked in none.
    pub fn worst(&self) -> Option<Outcome> {
        self.cells.iter().flatten().map(|cell| cell.outcome).max()
    }

    /// Whether it is satisfied in every recording: not if it was checked in none, or in some only.
    pub fn is_satisfied(&self) -> bool {
        let is_satisfied = |cell: &Option<Cell>| cell.is_some_and(|cell| cell.outcome == Outcome::Satisfied);
        !self.cells.is_empty() && self.cells.iter().all(is_satisfied)
    }
}

impl Matrix {
    /// Creates the matrix from the properties of a specification, the reports that were kept, and the requirements that
    /// should be checked.
    pub fn new(checks: &[Check], reports: &[Results], required: &[String]) -> Matrix {
        let recordings = reports.iter().flat_map(|report| &report.recordings);
        let recordings: Vec<String> = recordings.map(|recording| recording.name.clone()).collect();
        let mut rows: BTreeMap<(bool, String, usize), Row> = BTreeMap::new();
        for (i, Check { name, requirements, is_asserted }) in checks.iter().enumerate() {
            let none = [String::new()];
            let requirements = if requirements.is_empty() { &none[..] } else { requirements };
            for requirement in requirements {
                let row = Row {
                    requirement: requirement.clone(),
                    property: name.clone(),
                    is_asserted: *is_asserted,
                    cells: cells(name, reports),
                };
                rows.insert((requirement.is_empty(), requirement.clone(), i), row);
            }
        }
        let named: BTreeSet<&String> = checks.iter().flat_map(|check| &check.requirements).collect();
        let unchecked = required.iter().filter(|requirement| !named.contains(requirement)).cloned().collect();
        Matrix { recordings, rows: rows.into_values().collect(), unchecked }
    }

    /// Returns comma-separated values with a header.
    pub fn csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let head = ["requirement", "property", "worst"].into_iter();
        // Writing into memory does not fail.
        let _ = writer.write_record(head.chain(self.recordings.iter().map(String::as_str)));
        for row in &self.rows {
            let worst = row.worst().map_or("not checked", Outcome::as_str);
            let cell = |cell: &Option<Cell>| cell.map_or("not checked", |cell| cell.outcome.as_str());
            let own = [row.requirement.as_str(), row.property.as_str(), worst].into_iter();
            let _ = writer.write_record(own.chain(row.cells.iter().map(cell)));
        }
        for requirement in &self.unchecked {
            let own = [requirement.as_str(), "", "no property"].into_iter();
            let _ = writer.write_record(own.chain(self.recordings.iter().map(|_| "")));
        }
        String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
    }
}

/// The results of a property in each recording of each report.
fn cells(property: &str, reports: &[Results]) -> Vec<Option<Cell>> {
    let mut cells = Vec::new();
    for report in reports {
        let position = report.properties.iter().position(|claim| claim.name == property);
        for recording in &report.recordings {
            let judged = position.and_then(|position| recording.properties.get(position));
            let cell = |judged: &Judged| Cell {
                // The part after the end of reading is unknown.
                outcome: match recording.problem {
                    Some(_) => judged.outcome.max(Outcome::Inconclusive),
                    None => judged.outcome,
                },
                violations: judged.count,
            };
            cells.push(judged.map(cell));
        }
    }
    cells
}
