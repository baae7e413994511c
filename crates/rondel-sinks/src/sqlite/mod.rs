//! Store of verdicts in a file of SQLite.
//!
//! [`SqliteSink`] writes, behind a [`Driver`](crate::Driver); [`Reader`] answers queries; [`Operations`] are the actions of
//! operators, and [`Silences`] those that a running monitor heeds. Several processes may use one file.
//! docs/reference/store.md describes tables and views.

mod connection;
mod error;
mod instances;
mod operate;
mod operators;
mod read;
mod retain;
mod rows;
mod runs;
mod silences;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::InterruptHandle;

pub use connection::VERSION;
use connection::{Access, Writable, open_read};
pub use error::{StoreError, StoreErrorKind};
pub use operate::Operations;
use operators::Operators;
pub use operators::{ActionRecorder, ActionSlot};
pub use read::{Filter, Reader, VIEWS, View};
pub use rows::{Cell, Format, Rows};
pub use silences::Silences;
use writer::Writer;

use crate::entry::{Entry, RunKey};
pub use crate::operate::{Acknowledgement, Action, NewSilence, is_same_value};
use crate::sink::{Failure, Sink, Written};

/// Options of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreOptions {
    /// Whether acknowledged entries survive a loss of power, and not only a kill of the process: each batch waits for the
    /// disk.
    pub survives_power_loss: bool,
    /// Bytes that the file never exceeds, its log excepted. A full store refuses entries until some were removed.
    pub hard_limit: Option<u64>,
    /// Limits above which old rows are removed.
    pub retention: Retention,
}

/// Limits above which old rows are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Largest age, by time of day.
    pub age: Option<Duration>,
    /// Largest size of the file in bytes.
    pub bytes: Option<u64>,
}

/// Sink that writes into a store.
pub struct SqliteSink {
    path: PathBuf,
    options: StoreOptions,
    open: Option<Writable>,
    writer: Writer,
    /// The begin of the latest run, encoded, for a file that is replaced while the run lasts.
    begin: Option<(RunKey, Vec<u8>)>,
    interrupt: Arc<Mutex<Option<InterruptHandle>>>,
    operators: Operators,
}

impl SqliteSink {
    /// Creates a sink, and opens its store at once, so that a file that cannot be used is reported before a run begins.
    /// Waits up to five seconds for locks.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(path: &Path, options: StoreOptions) -> Result<SqliteSink, StoreError> {
        SqliteSink::open_within(path, options, Duration::from_secs(5))
    }

    /// Creates a sink like [`SqliteSink::open`], and waits up to `limit` for locks.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open_within(
        path: &Path,
        options: StoreOptions,
        limit: Duration,
    ) -> Result<SqliteSink, StoreError> {
        let mut sink = SqliteSink::new(path, options);
        sink.reopen(limit)?;
        if let Some(open) = &sink.open {
            // Before the first verdict. The end of a silence counts when it is queried.
            sink.operators.look(&open.connection, i64::MIN).map_err(|error| open.failed(&error))?;
        }
        Ok(sink)
    }

    /// Creates a sink whose store is opened by the first write.
    pub fn new(path: &Path, options: StoreOptions) -> SqliteSink {
        let (open, writer, begin, interrupt, operators) = Default::default();
        SqliteSink { path: path.to_owned(), options, open, writer, begin, interrupt, operators }
    }

    /// Reads the silences that have not ended at this time of day, by a connection of its own that only reads: another
    /// process may lock the store for writing meanwhile. A store that does not exist has none.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn read_silences(&self, now: i64, limit: Duration) -> Result<(), StoreError> {
        if std::fs::metadata(&self.path).is_ok_and(|found| found.is_file() && found.len() == 0) {
            return Ok(());
        }
        let connection = match open_read(&self.path, limit, Access::Read) {
            Err(error) if error.kind == StoreErrorKind::Missing => return Ok(()),
            opened => opened?,
        };
        let read = self.operators.silences.read(&connection, now);
        read.map_err(|error| StoreError::of(&error, "read the silences of the store", &self.path))
    }

    /// Silences that operators have set in the store, kept up to date by the thread of the sink.
    pub fn silences(&self) -> Arc<Silences> {
        Arc::clone(&self.operators.silences)
    }

    /// Place for the recorder of actions of operators.
    pub fn actions(&self) -> Arc<ActionSlot> {
        Arc::clone(&self.operators.actions)
    }

    /// Writes the version of the schema once more, so that a full disk is reported before a run begins.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn probe(&mut self, limit: Duration) -> Result<(), StoreError> {
        self.with(limit, |_, open, _| {
            let written = open.connection.pragma_update(None, "user_version", VERSION);
            written.map_err(|error| open.failed(&error))
        })
    }

    /// Opens the store if it is not open.
    fn reopen(&mut self, limit: Duration) -> Result<(), StoreError> {
        if self.open.as_ref().is_some_and(Writable::is_in_place) {
            return Ok(());
        }
        if let Some(open) = self.open.take() {
            self.forget();
            open.abandon();
            // Once, so that it is reported; the next attempt creates a new file.
            let message = format!(
                "the store {} was removed or replaced while it was written: verdicts stored before are not in the file that has \
                 its path now",
                self.path.display()
            );
            return Err(StoreError::new(StoreErrorKind::Io, message));
        }
        self.forget();
        let mut open = Writable::open(&self.path, &self.options, limit)?;
        self.set_interrupt(Some(open.connection.get_interrupt_handle()));
        if let Some((_, begin)) = &self.begin
            && let Ok(begin) = Entry::decode(begin)
        {
            let written = self.writer.write(&mut open.connection, &[begin]);
            written.map_err(|error| open.failed(&error))?;
        }
        self.open = Some(open);
        Ok(())
    }

    fn forget(&mut self) {
        self.set_interrupt(None);
        self.open = None;
        self.writer.forget();
        self.operators.forget();
    }

    fn set_interrupt(&self, handle: Option<InterruptHandle>) {
        *self.interrupt.lock().unwrap_or_else(PoisonError::into_inner) = handle;
    }

    /// Calls `act` with the open store, and closes it after an error of its connection.
    fn with<T>(
        &mut self,
        limit: Duration,
        act: impl FnOnce(&mut Writer, &mut Writable, &StoreOptions) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut result = self.reopen(limit);
        if result.is_ok()
            && let Some(open) = &mut self.open
        {
            match open.connection.busy_timeout(limit) {
                Err(error) => result = Err(open.failed(&error)),
                Ok(()) => {
                    let done = act(&mut self.writer, open, &self.options);
                    if done.as_ref().is_err_and(StoreError::needs_reopening) {
                        self.forget();
                    }
                    return done;
                }
            }
        }
        self.forget();
        match result {
            Err(error) => Err(error),
            Ok(()) => Err(StoreError::new(StoreErrorKind::Other, "the store is not open")),
        }
    }
}

impl Sink for SqliteSink {
    fn write(&mut self, entries: &[Entry<'_>], limit: Duration) -> Result<Written, Failure> {
        let written = self.with(limit, |writer, open, _| {
            let written = writer.write(&mut open.connection, entries).map_err(|error| open.failed(&error))?;
            open.note_log();
            Ok(written)
        });
        let written = written.map_err(StoreError::failure)?;
        for entry in entries {
            match entry {
                Entry::Begin(_) => {
                    let mut begin = Vec::new();
                    entry.encode(&mut begin);
                    self.begin = Some((entry.run(), begin));
                }
                Entry::End(end) if self.begin.as_ref().is_some_and(|(run, _)| *run == end.run) => {
                    self.begin = None;
                }
                _ => {}
            }
        }
        Ok(written)
    }

    fn maintain(&mut self, now: i64, limit: Duration) -> Result<bool, Failure> {
        let Retention { age, bytes } = self.options.retention;
        if age.is_none() && bytes.is_none() {
            return Ok(false);
        }
        let kept = self.with(limit, |writer, open, options| {
            if age.is_some() {
                // Runs and properties may go, and their numbers be used again.
                writer.forget();
            }
            let retained = retain::retain(&mut open.connection, &options.retention, now);
            retained.map_err(|error| StoreError::of(&error, "remove old rows of the store", &open.path))
        });
        kept.map_err(StoreError::failure)
    }

    fn look_interval(&self) -> Option<Duration> {
        Some(Duration::from_secs(1))
    }

    fn look(&mut self, now: i64, limit: Duration) -> Result<(), Failure> {
        let Some(open) = &self.open else {
            // It may be locked for writing for long.
            return self.read_silences(now, limit).map_err(StoreError::failure);
        };
        // A file that is gone is the next write's matter.
        if !open.is_in_place() {
            return Ok(());
        }
        let timeout = open.connection.busy_timeout(limit);
        let looked = timeout.and_then(|()| self.operators.look(&open.connection, now));
        looked.map_err(|error| open.failed(&error).failure())
    }

    fn close(&mut self, limit: Duration) -> Result<(), Failure> {
        let Some(open) = self.open.take() else { return Ok(()) };
        self.set_interrupt(None);
        // Otherwise the next run records them again.
        let _ = self.operators.settle(&open.connection);
        // Others may read; then the log stays and the next process moves it into the file.
        let moved = open
            .connection
            .busy_timeout(limit)
            .and_then(|()| open.connection.execute_batch("PRAGMA optimize; PRAGMA wal_checkpoint(PASSIVE)"));
        moved.map_err(|error| open.failed(&error).failure())?;
        let path = open.path.clone();
        open.connection
            .close()
            .map_err(|(_, error)| StoreError::of(&error, "close the store", &path).failure())
    }

    fn interrupter(&mut self) -> Option<Box<dyn Fn() + Send + Sync>> {
        let handle = Arc::clone(&self.interrupt);
        Some(Box::new(move || {
            if let Some(handle) = &*handle.lock().unwrap_or_else(PoisonError::into_inner) {
                handle.interrupt();
            }
        }))
    }
}
