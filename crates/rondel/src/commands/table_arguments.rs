//! Options that say how tables are read.

use std::path::PathBuf;

use clap::Args;
use rondel_recording::{TableOptions, check_time_format, is_table};

/// Options for reading the rows of tables.
#[derive(Args, Clone, Debug, Default)]
pub struct TableArguments {
    /// The names of the columns of a table (.csv) that has no line with them, with commas between them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Format of the times in a table (.csv), such as "%d.%m.%Y %H:%M:%S%.f"
    #[arg(long, value_name = "FORMAT", value_parser = time_format)]
    pub time_format: Option<String>,
}

/// Finds options of tables that were given, but that no recording heeds, as none is a table.
///
/// # Errors
/// A sentence.
pub fn need_table(given: &[(bool, &str)], recordings: &[PathBuf]) -> Result<(), String> {
    match given.iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) if !recordings.iter().any(|file| is_table(file)) => Err(format!(
            "{option} is for tables (.csv, .tsv, .parquet), and no recording is one: leave it out"
        )),
        _ => Ok(()),
    }
}

/// An argument as a shell reads it.
pub fn in_shell(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:+@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn time_format(text: &str) -> Result<String, String> {
    check_time_format(text).map(|()| text.to_owned())
}

/// Options for reading the rows of tables, and their times.
#[derive(Args, Clone, Debug, Default)]
pub struct TableReading {
    /// The column of a table (.csv) that has the times, or two such as Date,Time
    #[arg(long, value_name = "COLUMN")]
    pub time_field: Option<String>,
    #[command(flatten)]
    pub table: TableArguments,
}

impl TableReading {
    /// The options that were given, with their values.
    pub fn given(&self) -> Vec<(&'static str, String)> {
        let TableArguments { columns, time_format } = &self.table;
        let columns = (!columns.is_empty()).then(|| columns.join(","));
        let all = [
            ("--time-field", self.time_field.clone()),
            ("--columns", columns),
            ("--time-format", time_format.clone()),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// Refuses these options if none of the recordings is a table.
    ///
    /// # Errors
    /// A sentence.
    pub fn check(&self, recordings: &[PathBuf]) -> Result<(), String> {
        let given: Vec<(bool, &str)> = self.given().into_iter().map(|(name, _)| (true, name)).collect();
        need_table(&given, recordings)
    }

    /// The options for a table.
    pub fn options(&self) -> TableOptions<'_> {
        TableOptions {
            time: self.time_field.as_deref(),
            columns: &self.table.columns,
            time_format: self.table.time_format.as_deref(),
            ..TableOptions::default()
        }
    }
}
