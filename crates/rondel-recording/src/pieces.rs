//! A file with random access, read through a window that grows in sequential reading.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crate::recording::RecordingError;
use crate::temporary::Space;

/// Initial size of the window, and its maximum in sequential reading.
const SMALL: usize = 4 << 10;
const LARGE: usize = 256 << 10;

/// A file and a window of it.
pub(crate) struct Pieces {
    path: PathBuf,
    file: File,
    size: u64,
    window: Vec<u8>,
    /// Offset of the window.
    start: u64,
    /// Size of the next window, in bytes.
    next: usize,
    bytes_read: u64,
    /// Disk space of a temporary file, until it is closed.
    _space: Option<Space>,
}

impl Pieces {
    /// Opens a file. For a temporary one, `content` is its path, and errors name `path`.
    pub(crate) fn open(path: &Path, content: Option<(&Path, Space)>) -> Result<Pieces, RecordingError> {
        let failed = |source| RecordingError::Open { path: path.to_owned(), source };
        let (place, space) = content.map_or((path, None), |(place, space)| (place, Some(space)));
        let file = File::open(place).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")));
        }
        let size = metadata.len();
        Ok(Pieces {
            path: path.to_owned(),
            file,
            size,
            window: Vec::new(),
            start: 0,
            next: SMALL,
            bytes_read: 0,
            _space: space,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Returns up to `length` bytes at an offset: less at the end of the file.
    pub(crate) fn at(&mut self, offset: u64, length: usize) -> Result<&[u8], RecordingError> {
        let wanted = length.min(usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX));
        let end = self.start + self.window.len() as u64;
        if offset < self.start || offset + wanted as u64 > end {
            // Sequential reading uses larger windows.
            self.next = if offset >= self.start && offset <= end && !self.window.is_empty() {
                (self.next * 2).min(LARGE)
            } else {
                SMALL
            };
            let mut window = std::mem::take(&mut self.window);
            let read = self.read(offset, wanted.max(self.next), &mut window);
            (self.window, self.start) = (window, offset);
            read?;
        }
        let from = (offset - self.start) as usize;
        Ok(&self.window[from.min(self.window.len())..(from + wanted).min(self.window.len())])
    }

    /// Reads up to `length` bytes at an offset into a buffer, which is cleared first.
    pub(crate) fn read(
        &mut self,
        offset: u64,
        length: usize,
        into: &mut Vec<u8>,
    ) -> Result<(), RecordingError> {
        let length = length.min(usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX));
        // A buffer is reused: only what it grows by is set to zero.
        into.resize(length, 0);
        let read = self.file.seek(SeekFrom::Start(offset)).and_then(|_| fill(&mut self.file, into));
        into.truncate(*read.as_ref().unwrap_or(&0));
        self.bytes_read += into.len() as u64;
        let path = || self.path.clone();
        read.map(drop).map_err(|source| RecordingError::Read { path: path(), offset, source })
    }
}

/// Reads until `into` is full or the file ends; returns the number of bytes read.
fn fill(file: &mut File, into: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match file.read(&mut into[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
