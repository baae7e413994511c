//! Reading a store: views with filters, and queries of people.

mod latest;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Statement, ToSql};

use super::connection::{Access, open_read};
use super::error::{StoreError, StoreErrorKind};
use super::rows::{Cell, Rows};
use latest::Condition;

/// A view of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Name, also of the view in SQL.
    pub name: &'static str,
    /// Description of its rows.
    pub about: &'static str,
    /// Columns shown, the other ones are for programs.
    pub columns: &'static [&'static str],
    /// Column in nanoseconds by which [`Filter::since`] and [`Filter::until`] choose rows, if there is one.
    time: Option<&'static str>,
    /// Whether it has a series.
    has_series: bool,
    /// Whether it has a property.
    has_property: bool,
    order: &'static str,
}

/// Views of a store.
pub const VIEWS: &[View] = &[
    View {
        name: "state",
        about: "present verdict of each property and instance",
        columns: &[
            "series",
            "property",
            "severity",
            "parameters",
            "verdict",
            "since",
            "latest",
            "is_observed",
            "violation",
            "acknowledged_by",
        ],
        time: Some("time_ns"),
        has_series: true,
        has_property: true,
        order: "",
    },
    View {
        name: "open_violations",
        about: "violations that have not ended, the latest first",
        columns: &[
            "id",
            "series",
            "property",
            "severity",
            "parameters",
            "status",
            "begin",
            "last",
            "count",
            "worst",
            "acknowledged_by",
            "acknowledged_until",
            "comment",
            "because_of",
            "silenced_until",
        ],
        time: Some("time_ns"),
        has_series: true,
        has_property: true,
        order: "ORDER BY id DESC",
    },
    View {
        name: VIOLATIONS,
        about: "violations, the latest first",
        columns: &[
            "id",
            "series",
            "property",
            "severity",
            "parameters",
            "status",
            "begin",
            "end",
            "ended_by",
            "count",
            "seconds",
            "worst",
            "acknowledged_by",
            "acknowledged_until",
            "comment",
            "because_of",
        ],
        time: Some("time_ns"),
        has_series: true,
        has_property: true,
        order: "ORDER BY id DESC",
    },
    View {
        name: "violations_per_day",
        about: "violations of each property by the day on which they began",
        columns: &[
            "series",
            "property",
            "severity",
            "day",
            "violations",
            "recoveries",
            "violated_seconds",
            "verdicts",
        ],
        time: Some("time_ns"),
        has_series: true,
        has_property: true,
        order: "ORDER BY day DESC",
    },
    View {
        name: "time_in_violation",
        about: "total time in violation of each property, the longest first",
        columns: &["series", "property", "severity", "violations", "open", "seconds"],
        time: None,
        has_series: true,
        has_property: true,
        order: "ORDER BY seconds DESC",
    },
    View {
        name: "time_to_recovery",
        about: "mean duration of the violations that have ended, the longest first",
        columns: &["series", "property", "severity", "recoveries", "mean_seconds", "longest_seconds"],
        time: None,
        has_series: true,
        has_property: true,
        order: "ORDER BY mean_seconds DESC",
    },
    View {
        name: "all_verdicts",
        about: "verdicts, the latest first",
        columns: &[
            "time",
            "series",
            "property",
            "severity",
            "parameters",
            "verdict",
            "about",
            "reported",
            "lap",
            "step",
            "robustness",
            "quantified",
            "explanation",
            "latency",
            "missing",
            "because_of",
            "id",
        ],
        time: Some("time_ns"),
        has_series: true,
        has_property: true,
        order: "ORDER BY time_ns DESC",
    },
    View {
        name: "all_runs",
        about: "runs, the latest first",
        columns: &[
            "id",
            "series",
            "kind",
            "begin",
            "end",
            "status",
            "specification",
            "configuration",
            "version",
            "host",
            "verdicts",
            "repeated",
            "reported",
        ],
        time: Some("time_ns"),
        has_series: true,
        has_property: false,
        order: "ORDER BY id DESC",
    },
    View {
        name: "all_losses",
        about: "messages and verdicts that were lost, the latest first",
        columns: &["series", "run", "reason", "subject", "count", "from", "until"],
        time: Some("time_ns"),
        has_series: true,
        has_property: false,
        order: "ORDER BY id DESC",
    },
    View {
        name: "present_silences",
        about: "silences of operators that have not ended, the latest first",
        columns: &["id", "property", "parameters", "from", "until", "set_by", "comment"],
        time: Some("time_ns"),
        has_series: false,
        has_property: true,
        order: "ORDER BY id DESC",
    },
    View {
        name: "all_actions",
        about: "actions of operators, the latest first",
        columns: &["id", "at", "operator", "kind", "members", "is_audited"],
        time: Some("time_ns"),
        has_series: false,
        has_property: false,
        order: "ORDER BY id DESC",
    },
];

/// The view of all violations, of which a store has millions.
const VIOLATIONS: &str = "all_violations";
/// Instructions of SQLite between two looks at the clock.
const STEPS: i32 = 10_000;
/// Error of a query that does something else.
const ONLY_READS: &str = "a query only reads: begin it with SELECT";

/// Choice of rows of a view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter<'a> {
    /// Name of the series.
    pub series: Option<&'a str>,
    /// Name of the property.
    pub property: Option<&'a str>,
    /// Earliest time in nanoseconds.
    pub since: Option<i64>,
    /// Time in nanoseconds before which rows are.
    pub until: Option<i64>,
}

/// A store, open for reading. It does not hold up the process that writes.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
    path: PathBuf,
}

impl Reader {
    /// Opens a store. Waits up to `limit` for locks, here and in queries.
    ///
    /// # Errors
    /// [`StoreError`]: the file is missing, no store, or of another version.
    pub fn open(path: &Path, limit: Duration) -> Result<Reader, StoreError> {
        Ok(Reader { connection: open_read(path, limit, Access::Read)?, path: path.to_owned() })
    }

    /// Opens a store as [`open`](Reader::open) does, also one of an earlier [version](Reader::version): its tables may lack
    /// columns, and its views are those of the release that wrote it.
    ///
    /// # Errors
    /// [`StoreError`]: the file is missing, no store, or of a later version.
    pub fn open_earlier(path: &Path, limit: Duration) -> Result<Reader, StoreError> {
        Ok(Reader { connection: open_read(path, limit, Access::ReadEarlier)?, path: path.to_owned() })
    }

    /// Ends queries that last longer than `limit` from now on, with an error of the kind `Interrupted`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn end_within(&mut self, limit: Duration) -> Result<(), StoreError> {
        let begun = Instant::now();
        let set = self.connection.progress_handler(STEPS, Some(move || begun.elapsed() >= limit));
        set.map_err(|error| StoreError::of(&error, "read the store", &self.path))
    }

    /// Returns the version of the store.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn version(&self) -> Result<u32, StoreError> {
        let value = self.connection.pragma_query_value(None, "user_version", |row| row.get(0));
        value.map_err(|error| StoreError::of(&error, "read the store", &self.path))
    }

    /// Returns the rows of one SQL statement that only reads, with values for its parameters `?1`, `?2` and so on, at most
    /// `limit`. The latest statements stay prepared: an overview executes the same ones for each property.
    ///
    /// # Errors
    /// [`StoreError`], of the kind `Query` if the statement is wrong or writes.
    pub fn select(&self, sql: &str, values: &[Cell], limit: usize) -> Result<Rows, StoreError> {
        let statement = self.connection.prepare_cached(sql);
        let mut statement = statement.map_err(|error| self.unprepared(sql, &error))?;
        let values: Vec<&dyn ToSql> = values.iter().map(|value| value as &dyn ToSql).collect();
        self.read(&mut statement, &values, limit)
    }

    /// Returns the rows of a view, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`], of the kind `Query` if the view does not exist or does not have what the filter names.
    pub fn view(&self, name: &str, filter: &Filter<'_>, limit: usize) -> Result<Rows, StoreError> {
        let Some(view) = VIEWS.iter().find(|view| view.name == name) else {
            let names: Vec<&str> = VIEWS.iter().map(|view| view.name).collect();
            return Err(wrong(format!("there is no view `{name}`; views are {}", names.join(", "))));
        };
        let (mut conditions, mut values): (Vec<Condition>, Vec<&dyn ToSql>) = Default::default();
        let mut add = |column, operator, value| {
            values.push(value);
            conditions.push(Condition { column, operator, value: values.len() });
        };
        if let Some(series) = &filter.series {
            if !view.has_series {
                return Err(wrong(format!("the view `{name}` has no series; leave the series out")));
            }
            add("series", "=", series as &dyn ToSql);
        }
        if let Some(property) = &filter.property {
            if !view.has_property {
                return Err(wrong(format!("the view `{name}` has no property; leave the property out")));
            }
            add("property", "=", property as &dyn ToSql);
        }
        for (bound, operator) in [(&filter.since, ">="), (&filter.until, "<")] {
            if let Some(bound) = bound {
                let Some(time) = view.time else {
                    return Err(wrong(format!(
                        "the view `{name}` has no times; use `violations_per_day` for a part of the time"
                    )));
                };
                add(time, operator, bound as &dyn ToSql);
            }
        }
        let columns: Vec<String> = view.columns.iter().map(|column| format!("\"{column}\"")).collect();
        let conditions: Vec<String> = match name {
            VIOLATIONS => vec![self.latest_violations(&conditions, &values, limit)?],
            _ => conditions.iter().map(|condition| condition.of(condition.column)).collect(),
        };
        let conditions = match conditions.is_empty() {
            true => String::new(),
            false => format!("WHERE {}", conditions.join(" AND ")),
        };
        let order = view.order;
        let sql = format!("SELECT {} FROM {name} {conditions} {order}", columns.join(", "));
        self.rows(&sql, &values, limit)
    }

    /// Returns the rows of one SQL statement that only reads, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`], of the kind `Query` if the statement is wrong or writes.
    pub fn sql(&self, sql: &str, limit: usize) -> Result<Rows, StoreError> {
        self.rows(sql, &[], limit)
    }

    fn rows(&self, sql: &str, values: &[&dyn ToSql], limit: usize) -> Result<Rows, StoreError> {
        let mut statement = self.connection.prepare(sql).map_err(|error| self.unprepared(sql, &error))?;
        self.read(&mut statement, values, limit)
    }

    /// Reads the rows of a statement, if it only reads.
    fn read(
        &self,
        statement: &mut Statement<'_>,
        values: &[&dyn ToSql],
        limit: usize,
    ) -> Result<Rows, StoreError> {
        if !statement.readonly() || statement.column_count() == 0 {
            return Err(wrong(ONLY_READS.to_owned()));
        }
        read(statement, values, limit).map_err(|error| StoreError::of(&error, "read the store", &self.path))
    }

    /// The error of a statement that cannot be prepared.
    fn unprepared(&self, sql: &str, error: &rusqlite::Error) -> StoreError {
        match error {
            _ if sql.trim().is_empty() => wrong(ONLY_READS.to_owned()),
            rusqlite::Error::SqlInputError { msg, offset, .. } => {
                wrong(format!("cannot understand the query: {msg}, at character {}", (*offset).max(0) + 1))
            }
            rusqlite::Error::MultipleStatement => wrong("a query is one statement".to_owned()),
            rusqlite::Error::SqliteFailure(_, Some(message)) => {
                wrong(format!("cannot understand the query: {message}"))
            }
            other => StoreError::of(other, "read the store", &self.path),
        }
    }
}

fn read(statement: &mut Statement<'_>, values: &[&dyn ToSql], limit: usize) -> rusqlite::Result<Rows> {
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let count = columns.len();
    let mut found = Rows { columns, rows: Vec::new(), has_more: false };
    let mut rows = statement.query(values)?;
    while let Some(row) = rows.next()? {
        if found.rows.len() >= limit {
            found.has_more = true;
            break;
        }
        let cells = (0..count).map(|i| row.get_ref(i).map(cell));
        found.rows.push(cells.collect::<rusqlite::Result<_>>()?);
    }
    Ok(found)
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Cell::Null => ValueRef::Null,
            Cell::Integer(i) => ValueRef::Integer(*i),
            Cell::Real(x) => ValueRef::Real(*x),
            Cell::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(i) => Cell::Integer(i),
        ValueRef::Real(x) => Cell::Real(x),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Cell::Text(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
    }
}

fn wrong(message: String) -> StoreError {
    StoreError::new(StoreErrorKind::Query, message)
}
