//! Queries over a store of verdicts, also one that another process writes, or that an earlier release has written.

mod history;
mod incidents;
mod properties;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rondel_sinks::sqlite::{Cell, Operations, Reader, Rows, StoreError, StoreErrorKind};
use serde_json::{Value, json};

use crate::answer::{INCONCLUSIVE, Problem};
use crate::live::shorten;

pub(crate) use history::{Change, HistoryQuery};
pub(crate) use incidents::ViolationQuery;
pub(crate) use properties::{InstanceQuery, Summary, summary_json};

/// Time limit for locks.
const LIMIT: Duration = Duration::from_secs(2);
/// Maximum number of instances of a property in a store.
const INSTANCES: usize = 10_000;
/// Version of stores from which on operators may act, and verdicts can be muted.
const WITH_OPERATORS: u32 = 2;
/// Time without a write after which a run may have been killed, in nanoseconds: it writes every ten seconds.
const SILENT: i64 = 60_000_000_000;

/// A store, opened again when its file is replaced.
#[derive(Debug)]
pub(crate) struct Store {
    path: PathBuf,
    /// Name of the series of runs; `None` for that of the latest run.
    series: Option<String>,
    open: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    reader: Reader,
    version: u32,
    /// Device and inode, to notice that the file was replaced.
    identity: Option<(u64, u64)>,
}

/// An open store, with the series that the page shows.
pub(crate) struct View<'s> {
    reader: &'s Reader,
    version: u32,
    /// Row of the series; -1 before the first run.
    series: i64,
    /// Its name.
    pub(crate) name: String,
    /// Event time that it has reached.
    pub(crate) reached: Option<i64>,
}

/// Device and inode of a file.
fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// The error of a store as the answer to a request.
fn problem(error: StoreError) -> Problem {
    match error.kind {
        StoreErrorKind::Query => Problem::new(500, error.message),
        _ => Problem::unavailable(error.message),
    }
}

impl Store {
    pub(crate) fn new(path: PathBuf, series: Option<String>) -> Store {
        Store { path, series, open: Mutex::new(None) }
    }

    /// Opens the store at once.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub(crate) fn check(&self) -> Result<(), String> {
        let series = self.read(|view| Ok(view.series)).map_err(|problem| problem.message)?;
        match &self.series {
            Some(name) if series < 0 => {
                Err(format!("the store {} has no series `{name}`", self.path.display()))
            }
            _ => Ok(()),
        }
    }

    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the store.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&View<'_>) -> Result<T, StoreError>,
    ) -> Result<T, Problem> {
        let mut slot = self.open();
        let found = identity(&self.path);
        if slot.as_ref().is_some_and(|open| open.identity != found) {
            *slot = None;
        }
        let open = match slot.take() {
            Some(open) => open,
            None => {
                let reader = Reader::open_earlier(&self.path, LIMIT).map_err(problem)?;
                let version = reader.version().map_err(problem)?;
                Open { reader, version, identity: found }
            }
        };
        let result = View::new(&open, self.series.as_deref()).and_then(|view| read(&view));
        // After an error it is opened again: another process may have brought it up to date.
        if result.is_ok() {
            *slot = Some(open);
        }
        result.map_err(problem)
    }

    /// Carries out an action of an operator.
    pub(crate) fn act<T>(
        &self,
        act: impl FnOnce(&mut Operations) -> Result<T, StoreError>,
    ) -> Result<T, Problem> {
        let done = Operations::open(&self.path, LIMIT).and_then(|mut operations| act(&mut operations));
        done.map_err(|error| match error.kind {
            // Written for the command line.
            StoreErrorKind::Query => {
                Problem::new(409, error.message.replace("say so with --replace", "replace it"))
            }
            _ => Problem::unavailable(error.message),
        })
    }
}

impl<'s> View<'s> {
    fn new(open: &'s Open, series: Option<&str>) -> Result<View<'s>, StoreError> {
        let (name, reached) = Default::default();
        let mut view = View { reader: &open.reader, version: open.version, series: -1, name, reached };
        let found = match series {
            Some(name) => view.rows(
                "SELECT id, name, latest FROM series WHERE name = ?1",
                &[Cell::Text(name.to_owned())],
                1,
            )?,
            None => view.rows(
                "SELECT s.id, s.name, s.latest FROM runs r JOIN series s ON s.id = r.series ORDER BY r.id DESC LIMIT 1",
                &[],
                1,
            )?,
        };
        if let Some(row) = found.rows.first() {
            let row = Row(row);
            (view.series, view.name, view.reached) =
                (row.integer(0), row.text(1).to_owned(), row.optional_integer(2));
        }
        // The series is brought up to date every few seconds.
        let sql = "SELECT coalesce(v.about, v.time) FROM verdicts v \
                   WHERE v.seq > (SELECT max(seq) FROM verdicts) - 1000 \
                   AND (SELECT r.series FROM runs r WHERE r.id = v.run) = ?1 ORDER BY v.seq DESC LIMIT 1";
        view.reached = view.reached.max(view.number(sql, &[view.own()])?);
        Ok(view)
    }

    /// The series as a value of a statement.
    fn own(&self) -> Cell {
        Cell::Integer(self.series)
    }

    /// Whether operators may act in this version of the store.
    pub(crate) fn has_operators(&self) -> bool {
        self.version >= WITH_OPERATORS
    }

    fn rows(&self, sql: &str, values: &[Cell], limit: usize) -> Result<Rows, StoreError> {
        self.reader.select(sql, values, limit)
    }

    /// The first integer of the first row.
    fn number(&self, sql: &str, values: &[Cell]) -> Result<Option<i64>, StoreError> {
        let rows = self.rows(sql, values, 1)?;
        Ok(rows.rows.first().and_then(|row| Row(row).optional_integer(0)))
    }

    /// The parameters of an instance as the store writes them; those of the request if there is no such instance.
    pub(crate) fn instance(&self, property: &str, parameters: &Value) -> Result<String, StoreError> {
        let text = parameters.to_string();
        let Some(property) = self.property(property)? else { return Ok(text) };
        let sql = "SELECT parameters FROM states WHERE property = ?1";
        let rows = self.rows(sql, &[Cell::Integer(property)], INSTANCES)?;
        let found = rows.rows.iter().map(|row| Row(row)).find(|row| row.object(0) == *parameters);
        Ok(found.map_or(text, |row| row.text(0).to_owned()))
    }

    /// Row of a property.
    pub(crate) fn property(&self, name: &str) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT id FROM properties WHERE series = ?1 AND name = ?2";
        self.number(sql, &[self.own(), Cell::Text(name.to_owned())])
    }

    /// Kind, begin and end of the latest run, and the name of its configuration.
    pub(crate) fn run(&self) -> Result<Option<RunRow>, StoreError> {
        let sql = "SELECT kind, begin, end, configuration, reported FROM runs WHERE series = ?1 ORDER BY id DESC LIMIT 1";
        let rows = self.rows(sql, &[self.own()], 1)?;
        Ok(rows.rows.first().map(|row| {
            let row = Row(row);
            let (kind, begin, end) = (row.text(0).to_owned(), row.integer(1), row.optional_integer(2));
            let (configuration, reported) = (row.text(3).to_owned(), row.optional_integer(4));
            RunRow { kind, begin, end, configuration, reported }
        }))
    }
}

/// The latest run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunRow {
    pub(crate) kind: String,
    pub(crate) begin: i64,
    pub(crate) end: Option<i64>,
    pub(crate) configuration: String,
    /// Time of day at which it last wrote the event time that it had reached.
    reported: Option<i64>,
}

impl RunRow {
    /// Returns the time of day since which a run has written nothing, if it may have been killed: it has not ended.
    pub(crate) fn silent_since(&self, now: i64) -> Option<i64> {
        let reported = self.reported.filter(|_| self.kind == "run" && self.end.is_none())?;
        (now.saturating_sub(reported) >= SILENT).then_some(reported)
    }
}

/// Cells of a row.
#[derive(Clone, Copy, Debug)]
struct Row<'r>(&'r [Cell]);

impl<'r> Row<'r> {
    fn optional_integer(self, at: usize) -> Option<i64> {
        match self.0.get(at) {
            Some(Cell::Integer(i)) => Some(*i),
            Some(Cell::Real(x)) => Some(*x as i64),
            _ => None,
        }
    }

    fn integer(self, at: usize) -> i64 {
        self.optional_integer(at).unwrap_or(0)
    }

    fn count(self, at: usize) -> u64 {
        u64::try_from(self.integer(at)).unwrap_or(0)
    }

    fn real(self, at: usize) -> Option<f64> {
        match self.0.get(at) {
            Some(Cell::Integer(i)) => Some(*i as f64),
            Some(Cell::Real(x)) => Some(*x),
            _ => None,
        }
    }

    fn optional_text(self, at: usize) -> Option<&'r str> {
        match self.0.get(at) {
            Some(Cell::Text(text)) => Some(text),
            _ => None,
        }
    }

    fn text(self, at: usize) -> &'r str {
        self.optional_text(at).unwrap_or_default()
    }

    /// A text that is a JSON object; an empty object if it is not. Long texts in it are shortened.
    fn object(self, at: usize) -> Value {
        self.json(at).filter(Value::is_object).unwrap_or_else(|| json!({}))
    }

    /// A text that is a JSON array; an empty array if it is not. Long texts in it are shortened.
    fn array(self, at: usize) -> Value {
        self.json(at).filter(Value::is_array).unwrap_or_else(|| json!([]))
    }

    fn json(self, at: usize) -> Option<Value> {
        let mut value = serde_json::from_str(self.optional_text(at)?).ok()?;
        shorten(&mut value);
        Some(value)
    }

    /// A verdict by its number.
    fn verdict(self, at: usize) -> u8 {
        u8::try_from(self.integer(at)).unwrap_or(INCONCLUSIVE).min(INCONCLUSIVE)
    }
}

/// A pattern that matches texts which contain this one, without regard to case: for `LIKE … ESCAPE '\'`.
fn containing(text: &str) -> Cell {
    let mut pattern = "%".to_owned();
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    Cell::Text(pattern)
}
