//! The store of verdicts, a file of SQLite: its settings, and the check of its file before anything starts.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
#[cfg(feature = "sqlite")]
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::{AccessFlags, access};
use rondel_sinks::Sink;

use crate::output::folder::check_writable;
use crate::sinks::origin::host;
use crate::sinks::silenced::Silenced;
use crate::sinks::spool::SpoolSettings;

/// Whether this program can use stores.
pub const IS_AVAILABLE: bool = cfg!(feature = "sqlite");
/// Why it cannot.
pub const UNAVAILABLE: &str = "this Rondel is built without SQLite, which a store of verdicts needs: build it with the feature `sqlite`";
/// Default time without progress for which a full queue is waited for.
pub const WAIT: Duration = Duration::from_secs(1);
/// Time limit for locks when a store is checked or opened.
#[cfg(feature = "sqlite")]
const PROBE: Duration = Duration::from_secs(1);
/// The same where a run begins, which evaluates messages meanwhile.
#[cfg(feature = "sqlite")]
const LOCKED: Duration = Duration::from_millis(200);
/// The same where nothing is written before the store is open.
#[cfg(feature = "sqlite")]
const REFUSED: Duration = Duration::from_secs(5);

/// Settings of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// The file.
    pub path: PathBuf,
    /// Name of the series of runs; by default that of machine and deployment.
    pub series: Option<String>,
    /// Age from which rows are removed.
    pub age: Option<Duration>,
    /// Size of the file in bytes from which rows are removed.
    pub bytes: Option<u64>,
    /// Whether each batch waits for the disk.
    pub sync: bool,
    /// Time without progress for which a full queue is waited for; `None` to drop at once.
    pub wait: Option<Duration>,
    /// File for entries that the store does not accept in time; `None` where these are dropped.
    pub spool: Option<SpoolSettings>,
}

/// Reaction to a store that cannot be written when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtStart {
    /// Write it later: messages must not be missed meanwhile.
    Retry,
    /// Refuse it, unless another process holds its lock.
    Refuse,
}

impl StoreSettings {
    /// Returns the settings of a file, with the defaults of the others.
    pub fn of(path: PathBuf) -> StoreSettings {
        let (series, age, bytes, spool) = (None, None, None, None);
        StoreSettings { path, series, age, bytes, sync: false, wait: Some(WAIT), spool }
    }

    /// Checks whether the file is a store that can be written, or can be created. Creates nothing.
    ///
    /// # Errors
    /// The reason why not.
    pub fn check(&self) -> Result<(), String> {
        let refused = |why: &str| Err(format!("cannot store verdicts in {}: {why}", self.path.display()));
        if !IS_AVAILABLE {
            return Err(UNAVAILABLE.to_owned());
        }
        let found = fs::metadata(&self.path).ok();
        if self.path.is_dir() {
            return refused("it is a folder; name a file in it");
        }
        // Opening a pipe would wait for another process.
        if found.as_ref().is_some_and(|found| !found.is_file()) {
            return refused("it is not a regular file, but a device or a pipe; name another file");
        }
        if found.is_some()
            && let Err(error) = access(&self.path, AccessFlags::R_OK | AccessFlags::W_OK)
        {
            return refused(&format!("the file is not writable: {}", error.desc()));
        }
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        if !folder.is_dir() {
            return refused(&format!("there is no folder {}; create it", folder.display()));
        }
        if let Err(why) = check_writable(folder) {
            return refused(&why);
        }
        check_content(&self.path)
    }

    /// Reserves a series for this process, until the returned file is closed.
    ///
    /// # Errors
    /// Another run of the series is in progress, or the file of the lock cannot be written.
    pub(super) fn lock(&self, series: &str) -> Result<File, String> {
        let mut name = self.path.clone().into_os_string();
        name.push(format!("-{:08x}.lock", crc32fast::hash(series.as_bytes())));
        let name = PathBuf::from(name);
        let unwritten = |error: io::Error| format!("cannot write {}: {error}", name.display());
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&name);
        let file = file.map_err(unwritten)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(format!(
                "another run of the series '{series}' writes to the store {}: end it, or give this run another name with \
                 `series` in the section `store:` of its deployment, or another file",
                self.path.display()
            )),
            Err(TryLockError::Error(error)) => Err(unwritten(error)),
        }
    }
}

/// The name of the series of a deployment without one: its machine and its path, or that of its specification.
pub fn default_series(deployment: &Path) -> String {
    let path = std::path::absolute(deployment).unwrap_or_else(|_| deployment.to_owned());
    format!("{}:{}", host().unwrap_or_default(), path.display())
}

/// Checks that a file that exists is a store of a version that this program knows.
#[cfg(feature = "sqlite")]
fn check_content(path: &Path) -> Result<(), String> {
    use rondel_sinks::sqlite::{Reader, StoreErrorKind};
    let is_empty = fs::metadata(path).is_ok_and(|metadata| metadata.len() == 0);
    if !path.exists() || is_empty {
        return Ok(());
    }
    match Reader::open(path, PROBE) {
        Err(error)
            if matches!(
                error.kind,
                StoreErrorKind::NotAStore | StoreErrorKind::Newer | StoreErrorKind::Corrupt
            ) =>
        {
            Err(error.to_string())
        }
        // Locks and older versions are no obstacle to a run.
        _ => Ok(()),
    }
}

#[cfg(not(feature = "sqlite"))]
fn check_content(_: &Path) -> Result<(), String> {
    Ok(())
}

/// The operators of a store: their actions and silences. Nothing for other destinations.
#[derive(Default)]
pub(super) struct Operators {
    /// Place for the recorder of their actions.
    #[cfg(feature = "sqlite")]
    pub(super) actions: Option<Arc<rondel_sinks::sqlite::ActionSlot>>,
    pub(super) silenced: Silenced,
}

/// A sink that writes a store.
#[cfg_attr(not(feature = "sqlite"), allow(dead_code))]
pub(super) struct OpenSink {
    pub(super) sink: Box<dyn Sink>,
    pub(super) operators: Operators,
}

/// Opens the file of a store. One that is locked at present is opened later; one that is full, if a run may wait for it.
#[cfg(feature = "sqlite")]
pub(super) fn sink(settings: &StoreSettings, start: AtStart) -> Result<OpenSink, String> {
    use rondel_sinks::sqlite::{Retention, SqliteSink, StoreErrorKind, StoreOptions};
    let StoreSettings { path, age, bytes, sync, .. } = settings;
    let options = StoreOptions {
        survives_power_loss: *sync,
        hard_limit: None,
        retention: Retention { age: *age, bytes: *bytes },
    };
    let limit = if start == AtStart::Retry { LOCKED } else { REFUSED };
    let mut opened = SqliteSink::open_within(path, options.clone(), limit);
    if start == AtStart::Refuse
        && let Ok(sink) = &mut opened
        && let Err(error) = sink.probe(PROBE)
        && error.kind != StoreErrorKind::Busy
    {
        return Err(error.to_string());
    }
    let may_wait = |kind: StoreErrorKind| match kind {
        StoreErrorKind::Busy => true,
        StoreErrorKind::Full | StoreErrorKind::Io => start == AtStart::Retry,
        _ => false,
    };
    let open = |sink: SqliteSink| OpenSink {
        operators: Operators {
            actions: Some(sink.actions()),
            silenced: Silenced { silences: Some(sink.silences()) },
        },
        sink: Box::new(sink),
    };
    match opened {
        Ok(sink) => Ok(open(sink)),
        Err(error) if may_wait(error.kind) => {
            let place = if settings.spool.is_some() { "in memory and in a file" } else { "in memory" };
            crate::warn(&format!("{error}; verdicts wait {place}, and writing is tried again"));
            let sink = SqliteSink::new(path, options);
            // Before the first verdict. The end of a silence counts when it is queried.
            if let Err(error) = sink.read_silences(i64::MIN, LOCKED) {
                crate::warn(&format!(
                    "silences of {} cannot be read, and silenced violations are notified until they can: {error}",
                    path.display()
                ));
            }
            Ok(open(sink))
        }
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(not(feature = "sqlite"))]
pub(super) fn sink(_: &StoreSettings, _: AtStart) -> Result<OpenSink, String> {
    Err(UNAVAILABLE.to_owned())
}

/// Whether two paths name the same file, which need not exist.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let parent = path.parent().and_then(|folder| fs::canonicalize(folder).ok());
        fs::canonicalize(&path).ok().or_else(|| Some(parent?.join(path.file_name()?))).unwrap_or(path)
    };
    whole(one) == whole(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_one_file_are_the_same() {
        assert!(is_same_file(Path::new("a.db"), Path::new("./a.db")));
        assert!(is_same_file(Path::new("src/../a.db"), Path::new("a.db")));
        assert!(!is_same_file(Path::new("a.db"), Path::new("b.db")));
    }
}
