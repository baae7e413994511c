//! Reading a trace piece by piece, from a file or standard input, compressed or not.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memchr::memrchr;

/// The longest line that is read: 256 MiB.
pub const MAX_LINE: usize = 256 << 20;

/// What some programs write before UTF-8 text; RFC 8259 allows to pass over it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How much is read at a time: enough to make system calls rare, little enough to stay in the
/// second-level cache between reading and decoding.
const CHUNK: usize = 256 << 10;

/// A trace that is being read.
pub struct TraceReader {
    name: PathBuf,
    input: Box<dyn Read>,
    /// `start..end` is read and not used; after `end` there is always room for a line break.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The end of the last line break in `start..end`.
    lines_end: usize,
    begun: bool,
    /// Whether the last read filled the buffer.
    filled: bool,
    ended: bool,
    consumed: Arc<AtomicU64>,
    size: Option<u64>,
}

/// Some whole lines of a trace: `text[start..end]`.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'r> {
    /// What they stand in, with other bytes around them.
    pub text: &'r [u8],
    /// Where the first line begins.
    pub start: usize,
    /// Where the last line ends, behind its line break.
    pub end: usize,
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be opened.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It cannot be read on, or its compression is damaged.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A line is longer than [`MAX_LINE`].
    #[error("{}: a line is longer than {} MiB; is this a file of JSON lines?", path.display(), MAX_LINE >> 20)]
    LineTooLong {
        /// The file.
        path: PathBuf,
    },
}

impl ReadError {
    /// Whether the input ends too early or is damaged, so that what was read before is all that there is.
    pub fn is_cut(&self) -> bool {
        use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
        match self {
            ReadError::Read { source, .. } => {
                // zstd reports damage as an error of no kind.
                matches!(source.kind(), UnexpectedEof | InvalidData | InvalidInput | io::ErrorKind::Other)
            }
            ReadError::Open { .. } | ReadError::LineTooLong { .. } => false,
        }
    }
}

impl TraceReader {
    /// Opens a trace: `-` is standard input; names that end in `.gz` or `.zst` are decompressed.
    ///
    /// # Errors
    /// [`ReadError::Open`].
    pub fn open(path: &Path) -> Result<TraceReader, ReadError> {
        let consumed = Arc::new(AtomicU64::new(0));
        let failed = |source| ReadError::Open { path: path.to_owned(), source };
        let (raw, size): (Box<dyn Read>, _) = if path == Path::new("-") {
            (Box::new(io::stdin().lock()), None)
        } else {
            let file = File::open(path).map_err(failed)?;
            let metadata = file.metadata().map_err(failed)?;
            if metadata.is_dir() {
                return Err(failed(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")));
            }
            (Box::new(file), metadata.is_file().then_some(metadata.len()))
        };
        let counted = Counted { input: raw, consumed: Arc::clone(&consumed) };
        let input: Box<dyn Read> = match path.extension().and_then(|e| e.to_str()) {
            Some("gz") => Box::new(flate2::read::MultiGzDecoder::new(counted)),
            Some("zst") => Box::new(zstd::Decoder::new(counted).map_err(failed)?),
            _ => Box::new(counted),
        };
        Ok(TraceReader {
            name: path.to_owned(),
            input,
            buffer: vec![0; CHUNK + 1],
            start: 0,
            end: 0,
            lines_end: 0,
            begun: false,
            filled: false,
            ended: false,
            consumed,
            size,
        })
    }

    /// The lines that are read and not used yet; `None` at the end of the trace. A last line without a
    /// line break gets one.
    ///
    /// # Errors
    /// [`ReadError::Read`], [`ReadError::LineTooLong`].
    pub fn lines(&mut self) -> Result<Option<Piece<'_>>, ReadError> {
        while self.lines_end <= self.start {
            if self.ended {
                return Ok(None);
            }
            self.read_on()?;
        }
        Ok(Some(Piece { text: &self.buffer, start: self.start, end: self.lines_end }))
    }

    /// Says that the lines up to `at` are used.
    pub fn used(&mut self, at: usize) {
        self.start = at.min(self.lines_end);
    }

    fn read_on(&mut self) -> Result<(), ReadError> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            self.lines_end = 0;
        }
        if self.end + 1 >= self.buffer.len() {
            if self.end >= MAX_LINE {
                return Err(ReadError::LineTooLong { path: self.name.clone() });
            }
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let room = self.buffer.len() - 1;
        let read = loop {
            match self.input.read(&mut self.buffer[self.end..room]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => {
                    break other.map_err(|source| ReadError::Read { path: self.name.clone(), source })?;
                }
            }
        };
        let before = self.end;
        self.end += read;
        self.filled = self.end == room;
        if !self.begun && self.end >= BYTE_ORDER_MARK.len() {
            self.begun = true;
            if self.buffer[..self.end].starts_with(BYTE_ORDER_MARK) {
                self.start = BYTE_ORDER_MARK.len();
            }
        }
        if read == 0 {
            self.ended = true;
            if self.end > 0 && self.buffer[self.end - 1] != b'\n' {
                self.buffer[self.end] = b'\n';
                self.end += 1;
            }
            self.lines_end = self.end;
        } else if let Some(last) = memrchr(b'\n', &self.buffer[before..self.end]) {
            self.lines_end = before + last + 1;
        }
        Ok(())
    }

    /// Bytes read so far (of a compressed file: compressed), to be looked at from elsewhere.
    pub fn consumed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.consumed)
    }

    /// Whether more may come at any time, so that what was read should not wait for it: it is no
    /// file, and the last read did not fill the buffer.
    pub fn is_live(&self) -> bool {
        self.size.is_none() && !self.filled
    }

    /// The size of the file in bytes, where it is a file.
    pub fn size(&self) -> Option<u64> {
        self.size
    }
}

struct Counted {
    input: Box<dyn Read>,
    consumed: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.consumed.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}
