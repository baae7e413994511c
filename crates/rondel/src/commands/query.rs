//! `rondel query`: the views of a store of verdicts.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Args, ValueEnum};

use crate::deployment::nanoseconds;
use crate::{complain, exit};

/// Show the views of a store of verdicts
///
/// `rondel run`, `check` and `test` write a store with --store. Without a view, list all views.
#[cfg_attr(not(feature = "sqlite"), allow(dead_code))]
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub struct Query {
    /// The store
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The view to show
    #[arg(value_name = "VIEW", value_parser = view_names())]
    view: Option<String>,
    /// Show the rows of a statement in SQL, which only reads, instead of those of a view
    #[arg(long, value_name = "STATEMENT", conflicts_with_all = ["view", "since", "until", "property", "series"])]
    sql: Option<String>,
    /// The format of rows
    #[arg(long, value_enum, default_value = "table")]
    format: RowFormat,
    /// Show only rows from this time on: a duration before now such as "7 d", seconds since 1970, or a date and time
    #[arg(long, value_name = "TIME", requires = "view")]
    since: Option<String>,
    /// Show only rows before this time
    #[arg(long, value_name = "TIME", requires = "view")]
    until: Option<String>,
    /// Show only rows of this property
    #[arg(long, value_name = "NAME", requires = "view")]
    property: Option<String>,
    /// Show only rows of this series of runs
    #[arg(long, value_name = "NAME", requires = "view")]
    series: Option<String>,
    /// Show at most N rows
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// End a query that has not ended within this time, such as "2 min"; a number alone is in seconds
    #[arg(long, value_name = "DURATION", default_value = "30 s", value_parser = time_limit)]
    timeout: Duration,
}

/// The format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RowFormat {
    /// A table for people
    Table,
    /// Comma-separated values, with a header
    Csv,
    /// One JSON object per line
    Json,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  the rows were printed, or there is none
  2  wrong usage, the view does not have what an option names, or no run has the property or series
  3  the store could not be read, also within the time limit, or the output not be written";

/// Parses a time limit: a duration, or a number of seconds.
fn time_limit(text: &str) -> Result<Duration, &'static str> {
    let nanos = nanoseconds(text).or_else(|| nanoseconds(&format!("{text} s")));
    let limit = nanos.and_then(|nanos| u64::try_from(nanos).ok()).map(Duration::from_nanos);
    limit
        .filter(|limit| (Duration::from_millis(1)..=Duration::from_secs(86_400)).contains(limit))
        .ok_or("must be a duration from 1 ms to 24 h, such as 2 s or 10 min")
}

/// The names of all views.
#[cfg(feature = "sqlite")]
fn view_names() -> ValueParser {
    let names = rondel_sinks::sqlite::VIEWS.iter().map(|view| view.name);
    PossibleValuesParser::new(names).into()
}

#[cfg(not(feature = "sqlite"))]
fn view_names() -> ValueParser {
    PossibleValuesParser::new([] as [&str; 0]).into()
}

#[cfg(not(feature = "sqlite"))]
impl Query {
    /// Refuses, and returns the exit status.
    pub fn run(self) -> u8 {
        complain(crate::sinks::driven::UNAVAILABLE);
        exit::USAGE
    }
}

#[cfg(feature = "sqlite")]
mod reading {
    use std::io::{self, BufWriter, IsTerminal as _};
    use std::time::Duration;

    use rondel_net::adapter::now;
    use rondel_runtime::text::{duration, grouped};
    use rondel_sinks::sqlite::{Cell, Filter, Format, Reader, Rows, StoreError, StoreErrorKind, VIEWS};
    use rondel_spec::nearest;

    use super::{Query, RowFormat, complain, exit};
    use crate::commands::times::{time, too_long};
    use crate::output::Output;
    use crate::warn;

    /// Time limit for locks.
    const LIMIT: Duration = Duration::from_secs(5);
    /// Most names that are compared with one that no row has.
    const NAMES: usize = 100_000;
    /// Time without a write after which a run may have been killed, in nanoseconds: it writes every ten seconds.
    const SILENT: i64 = 60_000_000_000;
    /// Most runs of which a warning says so.
    const RUNS: usize = 10;
    /// Views that show the state of runs.
    const OF_RUNS: [&str; 3] = ["state", "open_violations", "all_runs"];

    impl Query {
        /// Prints the rows, and returns the exit status.
        pub fn run(self) -> u8 {
            match self.rows() {
                Ok((rows, silent)) => {
                    let status = self.print(&rows);
                    silent.iter().for_each(|sentence| warn(sentence));
                    status
                }
                Err((why, status)) => {
                    complain(&why);
                    status
                }
            }
        }

        /// Returns the rows, and a sentence for each run that they are about and that may have been killed.
        fn rows(&self) -> Result<(Rows, Vec<String>), (String, u8)> {
            let bound = |option: &str, text: &Option<String>| {
                text.as_deref()
                    .map(|text| before(option, text, now().as_nanos()))
                    .transpose()
                    .map_err(|why| (why, exit::USAGE))
            };
            let filter = Filter {
                series: self.series.as_deref(),
                property: self.property.as_deref(),
                since: bound("--since", &self.since)?,
                until: bound("--until", &self.until)?,
            };
            let limit = self.limit as usize;
            let rows = Reader::open(&self.file, LIMIT).and_then(|mut reader| {
                reader.end_within(self.timeout)?;
                match (&self.sql, &self.view) {
                    (Some(sql), _) => Ok((reader.sql(sql, limit)?, Vec::new())),
                    (None, Some(view)) => {
                        let rows = reader.view(view, &filter, limit)?;
                        if rows.rows.is_empty() {
                            check(&reader, "properties", "property", filter.property)?;
                            check(&reader, "series", "series", filter.series)?;
                        }
                        let shows_runs = OF_RUNS.contains(&view.as_str());
                        let silent = if shows_runs { silent(&reader, filter.series)? } else { Vec::new() };
                        Ok((rows, silent))
                    }
                    (None, None) => Ok((views(), Vec::new())),
                }
            });
            rows.map_err(|error| match error.kind {
                StoreErrorKind::Query => (error.to_string(), exit::USAGE),
                StoreErrorKind::Interrupted => {
                    let why = format!(
                        "the query has not ended within {}: choose fewer rows, or set another limit with --timeout",
                        duration(u64::try_from(self.timeout.as_nanos()).unwrap_or(u64::MAX))
                    );
                    (why, exit::TRACE)
                }
                _ => (error.to_string(), exit::TRACE),
            })
        }

        fn print(&self, rows: &Rows) -> u8 {
            let format = match self.format {
                RowFormat::Table => Format::Table,
                RowFormat::Csv => Format::Csv,
                RowFormat::Json => Format::Json,
            };
            let mut out = Output::new(BufWriter::new(io::stdout().lock()));
            // People read a terminal, programs read files and pipes.
            let text = match format {
                Format::Csv if io::stdout().is_terminal() => rows.escaped().text(format),
                _ => rows.text(format),
            };
            out.write(text.as_bytes());
            let finished = out.finish();
            if rows.has_more {
                let shown = grouped(rows.rows.len() as u64);
                warn(&format!("there are more than {shown} rows; --limit shows more, --since fewer"));
            }
            match finished {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                    complain(&format!("cannot write the output: {error}"));
                    exit::TRACE
                }
                _ => exit::SATISFIED,
            }
        }
    }

    /// Refuses a name that a table of the store does not have, with the nearest one.
    fn check(reader: &Reader, table: &str, kind: &str, name: Option<&str>) -> Result<(), StoreError> {
        let Some(name) = name else { return Ok(()) };
        let known = reader.sql(&format!("SELECT DISTINCT name FROM {table} ORDER BY name"), NAMES)?;
        let text = |row: &Vec<Cell>| match row.first() {
            Some(Cell::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let names: Vec<String> = known.rows.iter().filter_map(text).collect();
        if known.has_more || names.iter().any(|known| known == name) {
            return Ok(());
        }
        let meant = nearest(name, names.iter().map(String::as_str));
        let meant = meant.map_or(String::new(), |name| format!("; did you mean '{name}'?"));
        let message = format!("no run of the store has the {kind} '{name}'{meant}");
        Err(StoreError { kind: StoreErrorKind::Query, message })
    }

    /// A sentence for each run that has not ended and writes nothing any more.
    fn silent(reader: &Reader, series: Option<&str>) -> Result<Vec<String>, StoreError> {
        let now = now().as_nanos();
        let sql = "SELECT s.name, ?1 - r.reported FROM runs r JOIN series s ON s.id = r.series \
                   WHERE r.kind = 'run' AND r.end IS NULL AND r.reported <= ?1 - ?2 AND coalesce(?3, s.name) = s.name \
                   ORDER BY r.id DESC";
        let series = series.map_or(Cell::Null, |series| Cell::Text(series.to_owned()));
        let found = reader.select(sql, &[Cell::Integer(now), Cell::Integer(SILENT), series], RUNS)?;
        let sentence = |row: &Vec<Cell>| match &row[..] {
            [Cell::Text(series), Cell::Integer(silent)] => Some(format!(
                "the run of '{series}' has not ended and has written nothing for {}: it may have been killed, and what is \
                 shown of it is from before",
                duration(silent.unsigned_abs())
            )),
            _ => None,
        };
        Ok(found.rows.iter().filter_map(sentence).collect())
    }

    /// All views, as rows.
    fn views() -> Rows {
        let text = |text: &str| Cell::Text(text.to_owned());
        Rows {
            columns: vec!["view".to_owned(), "rows".to_owned()],
            rows: VIEWS.iter().map(|view| vec![text(view.name), text(view.about)]).collect(),
            has_more: false,
        }
    }

    /// Reads a time in nanoseconds since 1970; durations are before `now`.
    fn before(option: &str, text: &str, now: i64) -> Result<i64, String> {
        time(text, now, -1).ok_or_else(|| {
            let why = too_long(text).unwrap_or(
                "write a duration before now such as 2 h, seconds since 1970, or a date and time such as \
                 2026-11-22T18:04:13Z",
            );
            format!("{option} {text}: {why}")
        })
    }
}
