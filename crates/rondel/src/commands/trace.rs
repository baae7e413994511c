//! `rondel trace`: from requirements to verdicts.

use std::io;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use rondel_report::{Cell, Check, Claim, Matrix, Outcome, Results, Row};
use rondel_runtime::text::counted;

use crate::output::terminal;
use crate::output::{Output, colour_of};
use crate::specification::{Reading, Specification, claims};
use crate::{complain, exit, warn};

/// Show which properties check each requirement, and how they turned out
///
/// A requirement is named in the specification: @requirement("SYS-017"). The reports are those that `rondel check
/// --report json=FILE` has written; without one, requirements and properties are listed.
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub struct Trace {
    /// The specification
    #[arg(value_name = "SPEC")]
    specification: PathBuf,
    /// Reports of `rondel check --report json=FILE`
    #[arg(value_name = "REPORT")]
    reports: Vec<PathBuf>,
    /// A file with the requirements that must be checked, one in each line; what follows a blank or comma is ignored
    #[arg(long, value_name = "FILE")]
    requirements: Option<PathBuf>,
    /// The format of the table
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    reading: Reading,
}

/// The formats of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Aligned columns; of many recordings the numbers
    Text,
    /// Comma-separated values: a column for each recording
    Csv,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  every requirement has a property, and every property of one is satisfied in every recording; an assert counts
     instead of the property that it judges
  1  a property was violated
  2  wrong usage, specification or report
  4  a requirement has no property, or a property was not decided, vacuous or not checked";

impl Trace {
    /// Prints the table and returns the exit status.
    pub fn run(self) -> u8 {
        match self.matrix() {
            Ok(matrix) => {
                let text = match self.format {
                    Format::Text => text(&matrix, !self.reports.is_empty()),
                    Format::Csv => matrix.csv(),
                };
                let mut out = Output::new(io::stdout().lock());
                out.write(text.as_bytes());
                let closed = out.is_closed();
                if let Err(error) = out.finish()
                    && !closed
                {
                    complain(&format!("cannot write the table: {error}"));
                    return exit::TRACE;
                }
                self.status(&matrix)
            }
            Err(status) => status,
        }
    }

    fn matrix(&self) -> Result<Matrix, u8> {
        let refused = |error: String| {
            complain(&error);
            exit::USAGE
        };
        let specification =
            Specification::from_file(&self.specification, &self.reading).map_err(|_| exit::USAGE)?;
        let checks = checks(&specification);
        let mut reports = Vec::new();
        for file in &self.reports {
            let read = std::fs::read_to_string(file).map_err(|error| error.to_string());
            let results = read.and_then(|text| Results::from_json(&text).map_err(|error| error.to_string()));
            let results = results
                .map_err(|error| refused(format!("cannot read the report {}: {error}", file.display())))?;
            for claim in &results.properties {
                if !checks.iter().any(|check| check.name == claim.name) {
                    warn(&format!("{}: the specification has no property {}", file.display(), claim.name));
                }
            }
            reports.push(results);
        }
        let required = match &self.requirements {
            None => Vec::new(),
            Some(file) => {
                let text = std::fs::read_to_string(file).map_err(|error| {
                    refused(format!("cannot read the requirements {}: {error}", file.display()))
                })?;
                let id = |line: &str| line.split([' ', '\t', ',', ';']).next().unwrap_or_default().to_owned();
                text.lines().map(id).filter(|id| !id.is_empty() && !id.starts_with('#')).collect()
            }
        };
        Ok(Matrix::new(&checks, &reports, &required))
    }

    fn status(&self, matrix: &Matrix) -> u8 {
        let rows = || matrix.rows.iter().filter(|row| !row.is_asserted);
        if rows().any(|row| row.worst() == Some(Outcome::Violated)) {
            return exit::VIOLATED;
        }
        let is_unsure = |row: &Row| !row.requirement.is_empty() && !row.is_satisfied();
        if !matrix.unchecked.is_empty() || !self.reports.is_empty() && rows().any(is_unsure) {
            exit::INCONCLUSIVE
        } else {
            exit::SATISFIED
        }
    }
}

/// The properties and asserts. An assert decides about the requirements of the property that it judges.
fn checks(specification: &Specification) -> Vec<Check> {
    let properties = &specification.spec.properties;
    let judged = |i: usize| properties.get(i)?.criterion?.property;
    let claims = claims(specification);
    let check = |(i, claim): (usize, &Claim)| {
        let mut requirements = claim.requirements.clone();
        let of_judged = judged(i).and_then(|judged| claims.get(judged as usize));
        for requirement in of_judged.iter().flat_map(|judged| &judged.requirements) {
            if !requirements.contains(requirement) {
                requirements.push(requirement.clone());
            }
        }
        let is_asserted = (0..properties.len()).any(|assert| judged(assert) == Some(i as u32));
        Check { name: claim.name.clone(), requirements, is_asserted }
    };
    claims.iter().enumerate().map(check).collect()
}

/// The table: a line for each property of each requirement, with the numbers of recordings.
fn text(matrix: &Matrix, checked: bool) -> String {
    let colour = terminal::colours_stdout();
    let head = |name: &str, width: usize| format!("{name:<width$}");
    let width = |of: &dyn Fn(&Row) -> &str, name: &str| {
        matrix.rows.iter().map(|row| of(row).chars().count()).chain([name.len()]).max().unwrap_or(0)
    };
    let requirements = width(&|row| &row.requirement, "requirement")
        .max(matrix.unchecked.iter().map(|requirement| requirement.chars().count()).max().unwrap_or(0));
    let properties = width(&|row| &row.property, "property");
    let mut text = format!("{}  {}", head("requirement", requirements), head("property", properties));
    text = text.trim_end().to_owned() + if checked { "  verdict" } else { "" } + "\n";
    for row in &matrix.rows {
        let requirement = if row.requirement.is_empty() { "-" } else { &row.requirement };
        let line = format!("{requirement:<requirements$}  {:<properties$}", row.property);
        let who = if row.is_asserted { "; an assert decides" } else { "" };
        let verdict =
            if checked { format!("  {}{who}", verdicts(&row.cells, colour)) } else { String::new() };
        text += &format!("{}\n", format!("{line}{verdict}").trim_end());
    }
    for requirement in &matrix.unchecked {
        text += &format!("{requirement:<requirements$}  no property checks it\n");
    }
    text
}

/// `violated in 2 of 10 recordings (5 times), satisfied in 8`.
fn verdicts(cells: &[Option<Cell>], colour: bool) -> String {
    let count = |outcome: Outcome| cells.iter().flatten().filter(|cell| cell.outcome == outcome).count();
    let violations: u64 = cells.iter().flatten().map(|cell| cell.violations).sum();
    let mut parts = Vec::new();
    for outcome in [Outcome::Violated, Outcome::Inconclusive, Outcome::Vacuous, Outcome::Satisfied] {
        let recordings = count(outcome);
        if recordings == 0 {
            continue;
        }
        let (on, off) = match outcome {
            _ if !colour => ("", ""),
            Outcome::Violated => (colour_of(rondel_event::Verdict::Violated), "\x1b[0m"),
            Outcome::Satisfied => (colour_of(rondel_event::Verdict::Satisfied), "\x1b[0m"),
            Outcome::Inconclusive | Outcome::Vacuous => {
                (colour_of(rondel_event::Verdict::Inconclusive), "\x1b[0m")
            }
        };
        let times = if outcome == Outcome::Violated {
            format!(" ({})", counted(violations, "time", "times"))
        } else {
            String::new()
        };
        let within =
            if cells.len() > 1 { format!(" in {recordings} of {}", cells.len()) } else { String::new() };
        parts.push(format!("{on}{}{off}{within}{times}", outcome.as_str()));
    }
    let missing = cells.iter().filter(|cell| cell.is_none()).count();
    if missing > 0 {
        parts.push(if cells.len() > 1 {
            format!("not checked in {missing}")
        } else {
            "not checked".to_owned()
        });
    }
    if cells.is_empty() {
        parts.push("not checked".to_owned());
    }
    parts.join(", ")
}
