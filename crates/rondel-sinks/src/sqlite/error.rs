//! Errors of a store, with what to do about them.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::sink::{Failure, FailureKind};

/// Error of a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    /// Kind.
    pub kind: StoreErrorKind,
    /// Sentence with the file, the reason and the way out.
    pub message: String,
}

/// Kind of an error of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreErrorKind {
    /// The file does not exist.
    Missing,
    /// The file or its folder cannot be opened.
    CannotOpen,
    /// Another process holds its lock.
    Busy,
    /// The disk, or the limit of the file, is full.
    Full,
    /// The file cannot be written.
    ReadOnly,
    /// The file is damaged.
    Corrupt,
    /// The file is a database of another program, or no database.
    NotAStore,
    /// A later release has written it.
    Newer,
    /// An earlier release has written it, and it was opened for reading.
    Older,
    /// The operating system reports an error.
    Io,
    /// A call was ended from another thread.
    Interrupted,
    /// A value cannot be stored.
    Rejected,
    /// A query, or an action of an operator, is wrong.
    Query,
    /// Another error.
    Other,
}

impl StoreError {
    pub(crate) fn new(kind: StoreErrorKind, message: impl Into<String>) -> StoreError {
        StoreError { kind, message: message.into() }
    }

    /// Names an error of SQLite that occurred while doing something with a file.
    pub(crate) fn of(error: &rusqlite::Error, doing: &str, path: &Path) -> StoreError {
        let kind = kind(error);
        let reason = match error {
            rusqlite::Error::SqliteFailure(_, Some(text)) => text.clone(),
            other => other.to_string(),
        };
        let path = path.display();
        let advice = match kind {
            StoreErrorKind::Busy => "; another process holds its lock",
            StoreErrorKind::Full => "; free space on its disk, or set a retention by size",
            StoreErrorKind::ReadOnly => "; make the file and its folder writable for this user",
            StoreErrorKind::Corrupt => {
                "; move it away to begin a new one, and save what is readable by `sqlite3 FILE .recover`"
            }
            StoreErrorKind::NotAStore => "; choose another file",
            StoreErrorKind::CannotOpen => "; check that its folder exists and is writable for this user",
            _ => "",
        };
        StoreError { kind, message: format!("cannot {doing} {path}: {reason}{advice}") }
    }

    /// Returns the failure that a driver understands.
    pub(crate) fn failure(self) -> Failure {
        let kind = match self.kind {
            StoreErrorKind::Missing
            | StoreErrorKind::CannotOpen
            | StoreErrorKind::Busy
            | StoreErrorKind::Full
            | StoreErrorKind::ReadOnly
            | StoreErrorKind::Io
            | StoreErrorKind::Interrupted => FailureKind::Unavailable,
            StoreErrorKind::Rejected => FailureKind::Rejected,
            StoreErrorKind::Corrupt
            | StoreErrorKind::NotAStore
            | StoreErrorKind::Newer
            | StoreErrorKind::Older
            | StoreErrorKind::Query
            | StoreErrorKind::Other => FailureKind::Broken,
        };
        Failure { kind, message: self.message }
    }

    /// Whether the connection may have failed, so that a new one can help.
    pub(crate) fn needs_reopening(&self) -> bool {
        !matches!(self.kind, StoreErrorKind::Busy | StoreErrorKind::Full | StoreErrorKind::Rejected)
    }
}

/// Returns the kind of an error of SQLite.
fn kind(error: &rusqlite::Error) -> StoreErrorKind {
    let rusqlite::Error::SqliteFailure(failure, _) = error else {
        return match error {
            rusqlite::Error::ToSqlConversionFailure(_) => StoreErrorKind::Rejected,
            _ => StoreErrorKind::Other,
        };
    };
    match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
            StoreErrorKind::Busy
        }
        ErrorCode::DiskFull => StoreErrorKind::Full,
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => StoreErrorKind::ReadOnly,
        ErrorCode::DatabaseCorrupt => StoreErrorKind::Corrupt,
        ErrorCode::NotADatabase => StoreErrorKind::NotAStore,
        ErrorCode::CannotOpen => StoreErrorKind::CannotOpen,
        ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory => StoreErrorKind::Io,
        ErrorCode::OperationInterrupted => StoreErrorKind::Interrupted,
        ErrorCode::TooBig | ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch => {
            StoreErrorKind::Rejected
        }
        _ => StoreErrorKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn errors_are_named_and_tried_again_where_it_helps() {
        let cases = [
            (ffi::SQLITE_BUSY, StoreErrorKind::Busy, FailureKind::Unavailable, "another process"),
            (ffi::SQLITE_FULL, StoreErrorKind::Full, FailureKind::Unavailable, "free space"),
            (
                ffi::SQLITE_READONLY,
                StoreErrorKind::ReadOnly,
                FailureKind::Unavailable,
                "writable for this user",
            ),
            (ffi::SQLITE_IOERR, StoreErrorKind::Io, FailureKind::Unavailable, "I/O error"),
            (ffi::SQLITE_INTERRUPT, StoreErrorKind::Interrupted, FailureKind::Unavailable, "interrupt"),
            (ffi::SQLITE_CORRUPT, StoreErrorKind::Corrupt, FailureKind::Broken, "move it away"),
            (ffi::SQLITE_NOTADB, StoreErrorKind::NotAStore, FailureKind::Broken, "another file"),
            (ffi::SQLITE_TOOBIG, StoreErrorKind::Rejected, FailureKind::Rejected, "too big"),
        ];
        for (code, kind, failure, part) in cases {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let error = StoreError::of(&error, "write the store", Path::new("verdicts.db"));
            assert!(error.kind == kind && error.message.contains(part), "{code}: {error}");
            assert!(error.message.starts_with("cannot write the store verdicts.db: "), "{error}");
            assert_eq!(error.failure().kind, failure);
        }
    }
}
