//! Temporary files: recordings that were compressed as a whole and are read at any place, and copies of databases that
//! their recorder did not close.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::recording::RecordingError;

/// The most that temporary files of this process take together, in bytes.
const MOST: u64 = 32 << 30;
/// How much is written at a time.
const STEP: usize = 256 << 10;

/// What temporary files take.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// What a temporary file takes of the limit, until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Space(u64);

impl Space {
    /// Takes more.
    ///
    /// # Errors
    /// Where all temporary files together would be beyond the limit.
    fn add(&mut self, bytes: u64) -> io::Result<()> {
        if TAKEN.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > MOST {
            TAKEN.fetch_sub(bytes, Ordering::Relaxed);
            let limit = MOST >> 30;
            return Err(io::Error::other(format!("temporary files would take more than {limit} GiB")));
        }
        self.0 += bytes;
        Ok(())
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        TAKEN.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// A folder for temporary files, which is removed when it is dropped. Files that are open then stay readable.
#[derive(Debug)]
pub(crate) struct Temporary {
    folder: PathBuf,
    /// What its files take.
    pub(crate) space: Space,
}

impl Temporary {
    /// A new folder where `TMPDIR` says, which only its owner can read.
    pub(crate) fn new() -> io::Result<Temporary> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut tries = 0;
        loop {
            let name = format!("rondel-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let folder = std::env::temp_dir().join(name);
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => return Ok(Temporary { folder, space: Space::default() }),
                // Of a process that was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < 1000 => tries += 1,
                Err(error) => return Err(within(&folder, &error)),
            }
        }
    }

    /// Where a file of this name is.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file; what fails in reading is returned beside it, and the file then has what came before.
    pub(crate) fn write(
        &mut self,
        name: &str,
        mut from: impl Read,
    ) -> io::Result<(PathBuf, Option<io::Error>)> {
        let path = self.path(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let mut step = vec![0; STEP];
        loop {
            match from.read(&mut step) {
                Ok(0) => return Ok((path, None)),
                Ok(read) => {
                    self.space.add(read as u64)?;
                    file.write_all(&step[..read]).map_err(|error| within(&path, &error))?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Ok((path, Some(error))),
            }
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // What cannot be removed is in a folder for temporary files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// An error with the place at which it happened, which the user did not name.
fn within(path: &Path, error: &io::Error) -> io::Error {
    let way_out = match error.kind() {
        io::ErrorKind::StorageFull => "a folder with more room",
        _ => "a folder that can be written to",
    };
    let reason =
        format!("a temporary file cannot be written to {}: {error}; set TMPDIR to {way_out}", path.display());
    io::Error::new(error.kind(), reason)
}

/// Decompresses a file; what is wrong with the compression is returned beside what could be decompressed.
///
/// # Errors
/// [`RecordingError::Open`].
pub(crate) fn decompress(
    path: &Path,
) -> Result<(Temporary, PathBuf, Option<RecordingError>), RecordingError> {
    let failed = |source| RecordingError::Open { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")));
    }
    let decoder = zstd::Decoder::new(file).map_err(failed)?;
    let mut temporary = Temporary::new().map_err(failed)?;
    let (content, error) = temporary.write("content", decoder).map_err(failed)?;
    let fault = error.map(|error| RecordingError::Damage {
        path: path.to_owned(),
        offset: 0,
        reason: format!("its compression is cut off or damaged ({error}); what comes before that is read"),
        topics: Vec::new(),
    });
    Ok((temporary, content, fault))
}
