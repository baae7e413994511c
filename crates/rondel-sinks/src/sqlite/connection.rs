//! Opening a store: pragmas, version, migrations.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::StoreOptions;
use super::error::{StoreError, StoreErrorKind};
use super::read::{VIEWS, View};

/// `application_id` of a store: "Rndl".
const APPLICATION: i32 = 0x526e_646c;
/// Statements that make each version from the one before. Never change one that was released; append.
const MIGRATIONS: &[&str] = &[include_str!("schema.sql"), include_str!("version2.sql")];
/// Statements that make the views of this release, after migrations.
const MAKE_VIEWS: &str = include_str!("views.sql");
/// Version of the schema.
pub const VERSION: u32 = MIGRATIONS.len() as u32;
/// Memory of a connection for pages, in KiB.
const CACHE: i64 = 64 << 10;
/// Bytes of a page.
const PAGE: i64 = 4 << 10;
/// Bytes of the write-ahead log after which its pages are moved into the file, and to which it shrinks.
const LOG: i64 = 64 << 20;
/// Least bytes of the write-ahead log.
const LEAST_LOG: i64 = 1 << 20;

/// A connection that writes.
#[derive(Debug)]
pub(crate) struct Writable {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    /// Device and inode, to notice that the file was replaced.
    identity: Option<(u64, u64)>,
    /// Device and inode of the write-ahead log, once it exists.
    log: Option<(u64, u64)>,
}

impl Writable {
    /// Opens a store, creates it if it does not exist, and brings an earlier version up to date.
    pub(crate) fn open(path: &Path, options: &StoreOptions, limit: Duration) -> Result<Writable, StoreError> {
        let failed = |error: rusqlite::Error| StoreError::of(&error, "open the store", path);
        let wrong = match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => Some("it is a folder; name a file in it"),
            Ok(found) if !found.is_file() => Some("it is not a regular file; name another"),
            _ => None,
        };
        if let Some(why) = wrong {
            let message = format!("cannot open the store {}: {why}", path.display());
            return Err(StoreError::new(StoreErrorKind::CannotOpen, message));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_EXRESCODE;
        let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(limit).map_err(failed)?;
        check_version(&connection, path, Access::Write)?;
        // Has an effect on a new file only; before the log.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(failed)?;
        let mode: String = connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
            .map_err(failed)?;
        if mode != "wal" {
            let message = format!(
                "cannot open the store {}: its file system has no shared memory for a write-ahead log; choose a local disk",
                path.display()
            );
            return Err(StoreError::new(StoreErrorKind::CannotOpen, message));
        }
        let synchronous = if options.survives_power_loss { "FULL" } else { "NORMAL" };
        connection.pragma_update(None, "synchronous", synchronous).map_err(failed)?;
        connection.pragma_update(None, "cache_size", -CACHE).map_err(failed)?;
        // The log of a store with a limit is small beside it.
        let log = options.retention.bytes.and_then(|bytes| i64::try_from(bytes / 8).ok());
        let log = log.map_or(LOG, |log| log.clamp(LEAST_LOG, LOG));
        connection.pragma_update(None, "wal_autocheckpoint", log / PAGE).map_err(failed)?;
        connection.pragma_update(None, "journal_size_limit", log).map_err(failed)?;
        migrate(&mut connection, MIGRATIONS, MAKE_VIEWS, path)?;
        if let Some(bytes) = options.hard_limit {
            let size: i64 =
                connection.pragma_query_value(None, "page_size", |row| row.get(0)).map_err(failed)?;
            let pages = (i64::try_from(bytes).unwrap_or(i64::MAX) / size.max(1)).max(1);
            let set = connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()));
            set.map_err(failed)?;
        }
        Ok(Writable { connection, path: path.to_owned(), identity: identity(path), log: None })
    }

    /// Whether the path still names the open file.
    pub(crate) fn is_in_place(&self) -> bool {
        self.identity.is_some() && identity(&self.path) == self.identity
    }

    /// Notes which file is the log, after a write.
    pub(crate) fn note_log(&mut self) {
        if self.log.is_none() {
            self.log = identity(&log_path(&self.path));
        }
    }

    /// Closes the store after its file was removed or replaced, and removes its log: SQLite would apply the log to the file
    /// that has the path now.
    pub(crate) fn abandon(self) {
        let Writable { connection, path, log, .. } = self;
        drop(connection);
        let of_log = log_path(&path);
        if log.is_some() && identity(&of_log) == log {
            // Without it, the new file is opened as it is; an error shows then.
            let _ = std::fs::remove_file(of_log);
        }
    }

    pub(crate) fn failed(&self, error: &rusqlite::Error) -> StoreError {
        StoreError::of(error, "write the store", &self.path)
    }
}

/// The path of the write-ahead log of a store.
fn log_path(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    PathBuf::from(log)
}

/// Versions of stores that an access accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Earlier ones, which are brought up to date, and new files.
    Write,
    /// The version of this release.
    Read,
    /// This version and earlier ones.
    ReadEarlier,
}

/// Opens a store for reading.
pub(crate) fn open_read(path: &Path, limit: Duration, access: Access) -> Result<Connection, StoreError> {
    let refuse = |kind: StoreErrorKind, why: &str| {
        Err(StoreError::new(kind, format!("cannot read the store {}: {why}", path.display())))
    };
    // Opening a pipe would wait for its writer.
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return refuse(StoreErrorKind::Missing, "no such file");
        }
        Ok(found) if found.is_dir() => return refuse(StoreErrorKind::CannotOpen, "it is a folder"),
        Ok(found) if !found.is_file() => {
            return refuse(StoreErrorKind::CannotOpen, "it is not a regular file, but a device or a pipe");
        }
        _ => {}
    }
    match open_for_reading(path, limit, access, false) {
        // A log cannot be made in a folder that is not writable; without one, no process writes.
        Err(error)
            if matches!(error.kind, StoreErrorKind::CannotOpen | StoreErrorKind::ReadOnly)
                && is_without_log(path) =>
        {
            open_for_reading(path, limit, access, true)
        }
        opened => opened,
    }
}

/// Opens a store for reading. `is_immutable`: nothing writes to it meanwhile, so that it needs no log and no locks.
fn open_for_reading(
    path: &Path,
    limit: Duration,
    access: Access,
    is_immutable: bool,
) -> Result<Connection, StoreError> {
    let failed = |error: rusqlite::Error| StoreError::of(&error, "read the store", path);
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = match is_immutable {
        true => Connection::open_with_flags(immutable(path), flags | OpenFlags::SQLITE_OPEN_URI),
        false => Connection::open_with_flags(path, flags),
    };
    let connection = connection.map_err(failed)?;
    connection.busy_timeout(limit).map_err(failed)?;
    connection.pragma_update(None, "query_only", true).map_err(failed)?;
    check_version(&connection, path, access)?;
    check_tables(&connection, path)?;
    Ok(connection)
}

/// Whether a store has no write-ahead log: no process has it open.
fn is_without_log(path: &Path) -> bool {
    ["-wal", "-shm"].iter().all(|end| {
        let mut beside = path.as_os_str().to_owned();
        beside.push(end);
        !Path::new(&beside).exists()
    })
}

/// Returns the URI of a store to which nothing writes.
fn immutable(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(*byte))
            }
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri + "?immutable=1"
}

/// Checks that a database has the tables of a store.
fn check_tables(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('runs', 'properties', 'verdicts')";
    let count: i64 = connection
        .query_row(sql, [], |row| row.get(0))
        .map_err(|error| StoreError::of(&error, "read the store", path))?;
    if count == 3 {
        return Ok(());
    }
    let message = format!(
        "{} is not a store of Rondel: it has no tables of verdicts; choose another file",
        path.display()
    );
    Err(StoreError::new(StoreErrorKind::NotAStore, message))
}

/// Checks that a file is a store that this release knows, or new.
fn check_version(connection: &Connection, path: &Path, access: Access) -> Result<(), StoreError> {
    let writes = access == Access::Write;
    let failed = |error: rusqlite::Error| StoreError::of(&error, "open the store", path);
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let (application, version) =
        (number("application_id").map_err(failed)?, number("user_version").map_err(failed)?);
    let shown = path.display();
    let is_empty = || {
        let tables = "SELECT count(*) FROM sqlite_schema";
        connection.query_row(tables, [], |row| row.get::<_, i64>(0)).map(|count| count == 0)
    };
    if application != APPLICATION {
        if writes && application == 0 && is_empty().map_err(failed)? {
            return Ok(());
        }
        let what =
            if writes { "a database of another program" } else { "empty, or a database of another program" };
        let message = format!("{shown} is not a store of Rondel: it is {what}; choose another file");
        return Err(StoreError::new(StoreErrorKind::NotAStore, message));
    }
    let known = VERSION as i32;
    if version > known {
        let message = format!(
            "the store {shown} has version {version}, and this release knows versions up to {known}; use the release \
             that wrote it, or a new file"
        );
        return Err(StoreError::new(StoreErrorKind::Newer, message));
    }
    if version < known && access == Access::Read {
        let message = format!(
            "the store {shown} has version {version}, and this release reads version {known}; open it once for \
             writing, which brings it up to date"
        );
        return Err(StoreError::new(StoreErrorKind::Older, message));
    }
    Ok(())
}

/// Applies the migrations that a store does not have, and then makes its views again, all or none.
fn migrate(
    connection: &mut Connection,
    migrations: &[&str],
    views: &str,
    path: &Path,
) -> Result<(), StoreError> {
    let failed = |error: rusqlite::Error| StoreError::of(&error, "bring the store up to date", path);
    let version = |connection: &Connection| {
        connection.pragma_query_value(None, "user_version", |row| {
            row.get::<_, u32>(0).map(|version| version as usize)
        })
    };
    if version(connection).map_err(failed)? >= migrations.len() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    // Another process may have been faster.
    let version = version(&transaction).map_err(failed)?;
    if version < migrations.len() {
        // Views of others stay.
        for View { name, .. } in VIEWS {
            transaction.execute_batch(&format!("DROP VIEW IF EXISTS {name}")).map_err(failed)?;
        }
        for migration in migrations.iter().skip(version) {
            transaction.execute_batch(migration).map_err(failed)?;
        }
        transaction.execute_batch(views).map_err(failed)?;
    }
    let version = version.max(migrations.len()) as i64;
    transaction.pragma_update(None, "user_version", version).map_err(failed)?;
    transaction.pragma_update(None, "application_id", APPLICATION).map_err(failed)?;
    transaction.commit().map_err(failed)
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> Option<(u64, u64)> {
    path.exists().then_some((0, 0))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn migrations_apply_once_and_in_order() {
        let mut connection = Connection::open_in_memory().unwrap();
        let path = Path::new("test");
        let first = "CREATE TABLE a (x INTEGER); INSERT INTO a VALUES (1);";
        let second = "ALTER TABLE a ADD COLUMN y INTEGER; UPDATE a SET y = x + 1;";
        migrate(&mut connection, &[first], "", path).unwrap();
        migrate(&mut connection, &[first], "", path).unwrap();
        // The second one fails half way: nothing of it stays.
        let broken = format!("{second} INSERT INTO none VALUES (1);");
        assert!(migrate(&mut connection, &[first, &broken], "", path).is_err());
        for _ in 0..2 {
            let views = "CREATE VIEW state AS SELECT y FROM a";
            migrate(&mut connection, &[first, second], views, path).unwrap();
        }
        let rows: (i64, i64, i64) = connection
            .query_row("SELECT x, y, (SELECT user_version FROM pragma_user_version) FROM a", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .unwrap();
        assert_eq!(rows, (1, 2, 2));
    }
}
