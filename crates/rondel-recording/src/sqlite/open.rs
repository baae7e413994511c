//! Opens a database without changing any of its files.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use rusqlite::{Connection, OpenFlags};

use crate::recording::RecordingError;
use crate::temporary::{Space, Temporary};

/// The first bytes of every database.
const MAGIC: &[u8] = b"SQLite format 3\0";
/// Size of the header, in bytes.
const HEADER: usize = 100;
/// The first bytes of the journal of an unfinished transaction.
const JOURNAL: &[u8] = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";
/// Offset and length of SQLite's lock bytes PENDING and RESERVED, locked while a file is being written.
const LOCKS: (i64, i64) = (0x4000_0000, 2);
/// Number of steps of SQLite's virtual machine between two checks of the limit.
const STEPS: i32 = 1000;
/// Number of steps allowed for any database, and for each of its bytes: a hundred times the usual number.
const ALLOWED: (u64, u64) = (10_000_000, 100);

/// Interrupts SQLite when the reader is dropped, or after more steps than any valid database of this size needs.
#[derive(Debug, Default)]
pub(super) struct Limit {
    pub(super) is_stopped: AtomicBool,
    left: AtomicU64,
}

impl Limit {
    fn new(size: u64) -> Limit {
        let left = ALLOWED.0.saturating_add(size.saturating_mul(ALLOWED.1));
        Limit { is_stopped: AtomicBool::new(false), left: AtomicU64::new(left) }
    }

    /// Counts the steps since the last call; returns whether to interrupt.
    fn ends(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed).saturating_sub(STEPS as u64);
        self.left.store(left, Ordering::Relaxed);
        left == 0 || self.is_stopped.load(Ordering::Relaxed)
    }
}

/// An opened database.
pub(super) struct Opened {
    pub(super) database: Connection,
    /// The file that the user named.
    pub(super) file: File,
    pub(super) stop: Arc<Limit>,
    pub(super) faults: Vec<RecordingError>,
    pub(super) cut: Option<RecordingError>,
    /// Disk space of a copy.
    pub(super) space: Option<Space>,
}

/// Opens the database at `place`; errors name `path`.
pub(super) fn open(path: &Path, place: &Path) -> Result<Opened, RecordingError> {
    let failed = |source| RecordingError::Open { path: path.to_owned(), source };
    let refused = |reason: String| RecordingError::Form { path: path.to_owned(), reason };
    let mut file = File::open(place).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")));
    }
    let mut header = Vec::new();
    (&mut file).take(HEADER as u64).read_to_end(&mut header).map_err(failed)?;
    let log = beside(place, "-wal");
    let has_log = log.metadata().is_ok_and(|log| log.is_file() && log.len() > 32);
    if !has_log {
        if !header.starts_with(&MAGIC[..MAGIC.len().min(header.len())]) {
            return Err(refused("it is no SQLite database: it does not begin as one".to_owned()));
        }
        if header.len() < HEADER {
            let reason =
                format!("of the header of an SQLite database {} bytes are missing", HEADER - header.len());
            let (path, offset) = (path.to_owned(), header.len() as u64);
            return Err(RecordingError::Cut { path, offset, reason, is_damaged: false });
        }
    }
    let mut faults = Vec::new();
    if is_being_written(&file) {
        let reason = "another program is writing it (it is locked); what is there now is read".to_owned();
        faults.push(RecordingError::Damage { path: path.to_owned(), offset: 0, reason, topics: Vec::new() });
    }
    let journal = beside(place, "-journal");
    let is_hot = begins_with(&journal, JOURNAL);
    let mut size = metadata.len();
    let page = page_size(&header);
    let claimed = claimed(&header).unwrap_or(0);
    let is_copied = has_log || is_hot;
    let missing = page.filter(|page| !is_copied && (claimed * page > size || size % page != 0));
    let (mut database, space) = if is_copied {
        let (beside, ending) = if has_log { (&*log, "-wal") } else { (&*journal, "-journal") };
        let (copy, space) = copied(path, place, beside, ending)?;
        size = size.saturating_add(space.1);
        (copy, Some(space.0))
    } else if let Some(page) = missing.filter(|page| size % page != 0) {
        // SQLite would read the missing part of a page as zeros.
        let (whole, space) = whole_pages(path, place, size - size % page)?;
        (whole, Some(space))
    } else {
        (immutable(place).map_err(|error| refused(error.to_string()))?, None)
    };
    let stop = Arc::new(Limit::new(size));
    let limit = Arc::clone(&stop);
    let mut cut = None;
    let set = |database: &mut Connection| {
        database.progress_handler(STEPS, Some(move || limit.ends()))?;
        // No code of the database's schema is executed.
        database.pragma_update(None, "trusted_schema", false)?;
        database.pragma_update(None, "query_only", true)
    };
    set(&mut database).map_err(|error| refused(error.to_string()))?;
    if let Some(page) = missing {
        // Otherwise SQLite refuses a damaged schema as a whole.
        let tolerant = database.pragma_update(None, "writable_schema", true);
        tolerant.map_err(|error| refused(error.to_string()))?;
        let reason = match claimed.checked_sub(size / page) {
            Some(missing @ 1..) => format!("{missing} of its {claimed} pages are missing"),
            _ => "its last page is not whole".to_owned(),
        };
        cut = Some(RecordingError::Cut { path: path.to_owned(), offset: size, reason, is_damaged: false });
    }
    Ok(Opened { database, file, stop, faults, cut, space })
}

/// Returns the size of the pages by the header.
fn page_size(header: &[u8]) -> Option<u64> {
    let size = u64::from(u16::from_be_bytes(*header.get(16..)?.first_chunk()?));
    let size = if size == 1 { 65536 } else { size };
    (size >= 512 && size.is_power_of_two()).then_some(size)
}

/// Returns the number of pages by the header.
fn claimed(header: &[u8]) -> Option<u64> {
    let word = |at: usize| Some(u32::from_be_bytes(*header.get(at..)?.first_chunk()?));
    // The number is valid only if the program that wrote the file last maintained it.
    if word(24)? == word(92)? { word(28).map(u64::from) } else { None }
}

/// Returns the path of a file beside a database.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn begins_with(path: &Path, beginning: &[u8]) -> bool {
    let mut bytes = Vec::new();
    path.is_file()
        && File::open(path)
            .and_then(|file| file.take(beginning.len() as u64).read_to_end(&mut bytes))
            .is_ok_and(|_| bytes == beginning)
}

/// Opens a database without locks and without looking for files beside it.
fn immutable(path: &Path) -> rusqlite::Result<Connection> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut uri = String::from("file:");
    for byte in absolute.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => uri.push(*byte as char),
            other => uri.push_str(&format!("%{other:02x}")),
        }
    }
    uri.push_str("?immutable=1");
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(uri, flags)
}

/// Copies a database and its write-ahead log or journal, and merges both in the copy.
fn copied(
    path: &Path,
    place: &Path,
    log: &Path,
    ending: &str,
) -> Result<(Connection, (Space, u64)), RecordingError> {
    let failed = |source| RecordingError::Open { path: path.to_owned(), source };
    let refused = |error: rusqlite::Error| RecordingError::Form {
        path: path.to_owned(),
        reason: format!("what is in {} cannot be brought into the database: {error}", log.display()),
    };
    let mut temporary = Temporary::new().map_err(failed)?;
    let mut size = 0;
    for (from, name) in [(place, "content".to_owned()), (log, format!("content{ending}"))] {
        let file = File::open(from).map_err(failed)?;
        size += file.metadata().map_err(failed)?.len();
        let (_, error) = temporary.write(&name, file).map_err(failed)?;
        error.map_or(Ok(()), |error| Err(failed(error)))?;
    }
    let copy = temporary.path("content");
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(&copy, flags).map_err(refused)?;
    // Reading the schema rolls back unfinished transactions.
    database.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).map_err(refused)?;
    database.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).map_err(refused)?;
    database.close().map_err(|(_, error)| refused(error))?;
    let database = immutable(&copy).map_err(refused)?;
    // SQLite has opened the file by now; its name is no longer needed.
    database.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).map_err(refused)?;
    Ok((database, (std::mem::take(&mut temporary.space), size)))
}

/// Opens a copy of the first bytes of a database.
fn whole_pages(path: &Path, place: &Path, size: u64) -> Result<(Connection, Space), RecordingError> {
    let failed = |source| RecordingError::Open { path: path.to_owned(), source };
    let mut temporary = Temporary::new().map_err(failed)?;
    let file = File::open(place).map_err(failed)?;
    let (copy, error) = temporary.write("content", file.take(size)).map_err(failed)?;
    error.map_or(Ok(()), |error| Err(failed(error)))?;
    let database = immutable(&copy)
        .map_err(|error| RecordingError::Form { path: path.to_owned(), reason: error.to_string() })?;
    Ok((database, std::mem::take(&mut temporary.space)))
}

/// Whether another program has begun to write a database.
fn is_being_written(file: &File) -> bool {
    let mut lock = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: LOCKS.0,
        l_len: LOCKS.1,
        l_pid: 0,
    };
    let queried = fcntl(file.as_fd(), FcntlArg::F_GETLK(&mut lock));
    queried.is_ok() && lock.l_type != libc::F_UNLCK as libc::c_short
}

/// Returns the columns of some tables; none for views, virtual tables and tables with computed columns.
pub(super) fn columns(database: &Connection, tables: &[&str]) -> rusqlite::Result<Vec<Vec<String>>> {
    let mut found = Vec::new();
    for table in tables {
        let query = "SELECT type FROM pragma_table_list(?1) WHERE schema = 'main'";
        let kind = database.query_row(query, [table], |row| row.get::<_, String>(0));
        let mut names = Vec::new();
        // A view or a virtual table could execute anything.
        if matches!(kind.as_deref(), Ok("table")) {
            let mut statement = database.prepare("SELECT name, hidden FROM pragma_table_xinfo(?1)")?;
            let mut rows = statement.query([table])?;
            while let Some(row) = rows.next()? {
                if row.get::<_, i64>(1)? == 0 {
                    names.push(row.get(0)?);
                }
            }
        } else if let Err(error) = kind
            && !matches!(error, rusqlite::Error::QueryReturnedNoRows)
        {
            return Err(error);
        }
        found.push(names);
    }
    Ok(found)
}
