//! Temporary files: decompressed recordings, which are read with random access, and copies of databases that their
//! recorder did not close.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::compressed::Decompressing;
use crate::recording::RecordingError;

/// Limit of the disk space of all temporary files of this process, in bytes.
const MOST: u64 = 32 << 30;
/// Number of bytes written at a time.
const STEP: usize = 256 << 10;

/// Disk space of all temporary files, in bytes.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// Disk space reserved for a temporary file, in bytes, until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Space(u64);

impl Space {
    /// Reserves further bytes.
    ///
    /// # Errors
    /// The temporary files together would exceed the limit.
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

/// A folder for temporary files, removed when it is dropped. Open files stay readable.
#[derive(Debug)]
pub struct Temporary {
    folder: PathBuf,
    /// Disk space of its files.
    pub(crate) space: Space,
}

impl Temporary {
    /// Creates a folder in `TMPDIR` that only its owner can read.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn new() -> io::Result<Temporary> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut tries = 0;
        loop {
            let name = format!("rondel-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let folder = std::env::temp_dir().join(name);
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => return Ok(Temporary { folder, space: Space::default() }),
                // The folder of a killed process.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < 1000 => tries += 1,
                Err(error) => return Err(within(&folder, &error)),
            }
        }
    }

    /// Returns the path of a file of this name.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file; a read error is returned in the result, and the file has the bytes before it.
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
        // A folder that cannot be removed stays in the system's folder for temporary files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns an error with its path, which the user did not name.
fn within(path: &Path, error: &io::Error) -> io::Error {
    let way_out = match error.kind() {
        io::ErrorKind::StorageFull => "a folder with more room",
        _ => "a folder that can be written to",
    };
    let reason =
        format!("a temporary file cannot be written to {}: {error}; set TMPDIR to {way_out}", path.display());
    io::Error::new(error.kind(), reason)
}

/// Decompresses a file; a fault of the compression is returned with the content before it.
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
    let decoder = Decompressing(zstd::Decoder::new(file).map_err(failed)?);
    let mut temporary = Temporary::new().map_err(failed)?;
    let (content, error) = temporary.write("content", decoder).map_err(failed)?;
    let fault = error.map(|error| RecordingError::Damage {
        path: path.to_owned(),
        offset: 0,
        reason: format!("{error}; what comes before that is read"),
        topics: Vec::new(),
    });
    Ok((temporary, content, fault))
}
