//! The audit file: its lock, the check of its end, and appending.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::line::{Last, Line, is_cut_off, may_begin, sha256, text};
use super::verify::LONGEST;

/// Bytes at the end that are read first.
const TAIL: u64 = 1 << 16;

/// An audit file that is open and locked.
#[derive(Debug)]
pub struct AuditFile {
    path: PathBuf,
    file: File,
    /// Bytes that the file should have.
    size: u64,
    is_moved: bool,
}

/// The end of a file that a run continues.
#[derive(Debug)]
pub struct End {
    /// The last whole line.
    pub last: Last,
    /// Bytes to write first, which end an incomplete line.
    pub first: &'static [u8],
    /// Members of the record that reports an incomplete line at the end.
    pub partial: Option<Vec<u8>>,
    /// Bytes of an incomplete line at the end.
    pub half: u64,
}

impl AuditFile {
    /// Opens a file, which is created if there is none, locks it, and checks its last lines.
    ///
    /// # Errors
    /// The reason why it cannot be used, with the path.
    pub fn open(path: &Path) -> Result<(AuditFile, End), String> {
        let locked = || cannot_use(path, "another process writes it");
        AuditFile::open_unless_locked(path)?.ok_or_else(locked)
    }

    /// The same; `None` if another process has locked the file.
    ///
    /// # Errors
    /// The reason why it cannot be used, with the path.
    pub fn open_unless_locked(path: &Path) -> Result<Option<(AuditFile, End)>, String> {
        match AuditFile::try_open(path) {
            Ok(opened) => Ok(Some(opened)),
            Err(Refusal::Locked) => Ok(None),
            Err(Refusal::Io(error)) => Err(cannot_use(path, &error.to_string())),
            Err(Refusal::Broken(why)) => Err(cannot_use(path, &why)),
        }
    }

    fn try_open(path: &Path) -> Result<(AuditFile, End), Refusal> {
        // Opening a pipe would wait for its reader.
        if let Ok(metadata) = fs::metadata(path)
            && !metadata.is_file()
        {
            let kind = if metadata.is_dir() { "it is a folder" } else { "it is not a regular file" };
            return Err(Refusal::Broken(kind.to_owned()));
        }
        let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Refusal::Locked),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let size = file.metadata()?.len();
        if size == 0 {
            // A new name is durable once its folder is synchronised; some file systems cannot do that.
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
        }
        let end = end_of(&file, size)?;
        Ok((AuditFile { path: path.to_owned(), file, size, is_moved: false }, end))
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends bytes. Returns the number of bytes that were written, and the error that prevented the others.
    pub fn append(&mut self, bytes: &[u8]) -> (usize, io::Result<()>) {
        let mut written = 0;
        while written < bytes.len() {
            match self.file.write(&bytes[written..]) {
                Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
                Ok(count) => {
                    written += count;
                    self.size += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (written, Err(error)),
            }
        }
        (written, Ok(()))
    }

    /// Makes all lines durable.
    ///
    /// # Errors
    /// They may not survive a loss of power.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Returns what another program did to the file since the last call, if it did anything.
    pub fn interference(&mut self) -> Option<&'static str> {
        let own = self.file.metadata().ok()?;
        let same = |other: fs::Metadata| (other.dev(), other.ino()) == (own.dev(), own.ino());
        if !fs::metadata(&self.path).is_ok_and(same) && !std::mem::replace(&mut self.is_moved, true) {
            return Some("was removed, replaced or moved while it was written");
        }
        let expected = std::mem::replace(&mut self.size, own.len());
        (own.len() != expected).then_some("was changed by another program while it was written")
    }
}

fn cannot_use(path: &Path, why: &str) -> String {
    format!("cannot use the audit file {}: {why}", path.display())
}

/// Reason why a file is not continued.
enum Refusal {
    Io(io::Error),
    Broken(String),
    /// Another process has locked it.
    Locked,
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal::Io(error)
    }
}

/// Reads the end of a file.
fn end_of(file: &File, size: u64) -> Result<End, Refusal> {
    let (mut window, mut bytes) = (TAIL, Vec::new());
    loop {
        let from = size.saturating_sub(window);
        bytes.resize((size - from) as usize, 0);
        file.read_exact_at(&mut bytes, from)?;
        match end_in(&bytes, from == 0).map_err(|why| Refusal::Broken(why.to_owned()))? {
            Some(end) => return Ok(end),
            None if window > 4 * LONGEST => return Err(Refusal::Broken(FOREIGN.to_owned())),
            None => window *= 8,
        }
    }
}

const FOREIGN: &str = "it is not an audit file: it does not end in lines of one; name another file";
const CHANGED: &str = "one of its last lines was changed since it was written: `rondel audit verify` shows which; keep the \
                       file, and name another one";

/// Finds the end of a chain in the last bytes of a file, which are the whole file if `is_all`. Returns `None` if more
/// bytes are needed.
fn end_in(bytes: &[u8], is_all: bool) -> Result<Option<End>, &'static str> {
    if bytes.is_empty() {
        return Ok(Some(half_line(Last::NONE, bytes)));
    }
    // Lines that begin in these bytes, from the last one.
    let mut end = bytes.len();
    if bytes.last() == Some(&b'\n') {
        end -= 1;
    }
    let mut later: Option<(Line<'_>, usize)> = None;
    loop {
        let begin = bytes[..end].iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
        let begin = match begin {
            None if is_all => 0,
            // Its beginning is not in these bytes, and the line after it may do.
            None => break,
            Some(begin) => begin,
        };
        let line = Line::parse(&bytes[begin..end]);
        if line.is_some_and(|line| !line.is_intact()) {
            return Err(CHANGED);
        }
        match (line, later) {
            // The line before the last one.
            (Some(line), Some((last, _))) => {
                let continues = last.before == line.hash && last.number == line.number + 1;
                if !continues {
                    return Err(CHANGED);
                }
                break;
            }
            // Lines before the first one were removed.
            (Some(line), None) if begin == 0 && (line.before, line.number) != (Last::NONE.hash, 1) => {
                return Err(CHANGED);
            }
            (Some(line), None) => later = Some((line, end)),
            // A line that was half written, which the last line reports.
            (None, Some((last, _))) if last.record == "partial" => break,
            (None, Some(_)) => return Err(CHANGED),
            (None, None) => {}
        }
        if begin == 0 {
            break;
        }
        end = begin - 1;
    }
    match later {
        Some((line, end)) => after(line.as_last(), &bytes[end..]).map(Some),
        None if !is_all => Ok(None),
        None if may_begin(bytes) && is_cut_off(bytes, &Last::NONE) => Ok(Some(half_line(Last::NONE, bytes))),
        None => Err(FOREIGN),
    }
}

/// The end of a file whose last line is followed by these bytes.
fn after(last: Last, bytes: &[u8]) -> Result<End, &'static str> {
    match bytes.strip_prefix(b"\n") {
        // The line break alone is missing.
        None => Ok(End { last, first: b"\n", partial: None, half: 0 }),
        Some(half) if half.is_empty() || is_cut_off(half, &last) => Ok(half_line(last, half)),
        Some(_) => Err(CHANGED),
    }
}

/// The end of a file whose last line is followed by an incomplete line.
fn half_line(last: Last, bytes: &[u8]) -> End {
    if bytes.is_empty() {
        return End { last, first: b"", partial: None, half: 0 };
    }
    let first: &'static [u8] = if bytes.ends_with(b"\n") { b"" } else { b"\n" };
    let whole = [bytes, first].concat();
    let hash = sha256(&whole);
    let partial = format!("\"record\":\"partial\",\"bytes\":{},\"sha256\":\"{}\"", whole.len(), text(&hash))
        .into_bytes();
    End { last, first, partial: Some(partial), half: bytes.len() as u64 }
}
