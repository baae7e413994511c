//! Reads lines of a trace in pieces, from a file or standard input, compressed or not.

use std::fs::File;
use std::io::{self, Read};
use std::ops::{ControlFlow, Range};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use memchr::memrchr;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Maximum length of a line: 256 MiB.
pub const MAX_LINE: usize = 256 << 20;

/// Some programs write it before UTF-8 text; RFC 8259 allows readers to ignore it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

use crate::compressed;
use crate::recording::shown;

/// Number of bytes read at a time: enough to make system calls rare, and few enough to stay in the second-level cache
/// between reading and decoding.
const CHUNK: usize = 256 << 10;

/// A buffer larger than this was used for a long line, and is released.
const LARGE: usize = 4 * CHUNK;

/// Interval in milliseconds at which [`TraceReader::lines_unless`] calls back while no input arrives.
const PAUSE: u16 = 100;

/// A trace that is being read.
pub struct TraceReader {
    name: PathBuf,
    input: Box<dyn Read + Send>,
    /// The unused bytes are `start..end`; after `end` there is always room for a line break.
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
    /// The input, if reading it may block and no decompressor buffers its bytes.
    waits: Option<OwnedFd>,
}

/// Complete lines of a trace: `text[start..end]`.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'r> {
    /// The buffer, with other bytes before and after them.
    pub text: &'r [u8],
    /// Offset of the first line.
    pub start: usize,
    /// Offset behind the line break of the last line.
    pub end: usize,
}

/// Reason why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The trace cannot be opened.
    #[error("cannot open {}: {source}", shown(path))]
    Open {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Reading failed, or the compression is damaged.
    #[error("cannot read {}: {source}", shown(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A line is longer than [`MAX_LINE`].
    #[error("{}: a line is longer than {} MiB; is this a file of JSON lines?", shown(path), MAX_LINE >> 20)]
    LineTooLong {
        /// The file.
        path: PathBuf,
    },
}

impl ReadError {
    /// Whether the input ends too early or is damaged, so that the lines read before are all there are.
    pub fn is_cut(&self) -> bool {
        match self {
            ReadError::Read { source, .. } => compressed::ends(source),
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
        let (file, size) = if path == Path::new("-") {
            (io::stdin().as_fd().try_clone_to_owned().map(File::from).map_err(failed)?, None)
        } else {
            let file = File::open(path).map_err(failed)?;
            let metadata = file.metadata().map_err(failed)?;
            if metadata.is_dir() {
                return Err(failed(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")));
            }
            (file, metadata.is_file().then_some(metadata.len()))
        };
        let waits =
            (!compressed::is_packed(path) && size.is_none()).then(|| file.as_fd().try_clone_to_owned());
        let waits = waits.transpose().map_err(failed)?;
        let input = compressed::read(path, file, &consumed).map_err(failed)?;
        Ok(TraceReader { consumed, size, waits, ..TraceReader::of(path, input) })
    }

    /// Reads a trace in memory; `name` stands for it in errors.
    pub fn of_lines(name: &Path, lines: Vec<u8>) -> TraceReader {
        let size = Some(lines.len() as u64);
        TraceReader { size, ..TraceReader::of(name, Box::new(io::Cursor::new(lines))) }
    }

    /// Creates a reader of an input at its beginning.
    fn of(name: &Path, input: Box<dyn Read + Send>) -> TraceReader {
        TraceReader {
            name: name.to_owned(),
            input,
            buffer: vec![0; CHUNK + 1],
            start: 0,
            end: 0,
            lines_end: 0,
            begun: false,
            filled: false,
            ended: false,
            consumed: Arc::default(),
            size: None,
            waits: None,
        }
    }

    /// Returns the unused lines; `None` at the end of the trace. A last line without a line break gets one.
    ///
    /// # Errors
    /// [`ReadError::Read`], [`ReadError::LineTooLong`].
    pub fn lines(&mut self) -> Result<Option<Piece<'_>>, ReadError> {
        self.lines_unless(|| ControlFlow::Break(false))
    }

    /// Like [`TraceReader::lines`], but calls `idle` before reading would block, and again every 100 ms while no input
    /// arrives. `idle` may break, with `true` to end the trace here; otherwise reading blocks as long as it takes. It
    /// is not called for compressed inputs.
    ///
    /// # Errors
    /// As [`TraceReader::lines`].
    pub fn lines_unless(
        &mut self,
        mut idle: impl FnMut() -> ControlFlow<bool>,
    ) -> Result<Option<Piece<'_>>, ReadError> {
        while self.lines_end <= self.start {
            if self.ended {
                return Ok(None);
            }
            let mut pause = 0;
            while self.would_wait(pause) {
                pause = PAUSE;
                match idle() {
                    ControlFlow::Continue(()) => {}
                    ControlFlow::Break(false) => break,
                    ControlFlow::Break(true) => return Ok(None),
                }
            }
            self.read_on()?;
        }
        Ok(Some(Piece { text: &self.buffer, start: self.start, end: self.lines_end }))
    }

    /// Returns the lines in a buffer exchanged for the reader's, so that the next lines can be read while these are
    /// decoded. The range gives the lines within it; they count as used.
    ///
    /// # Errors
    /// As [`TraceReader::lines`].
    pub fn take_lines(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Range<usize>>, ReadError> {
        let Some(Piece { start, end, .. }) = self.lines()? else { return Ok(None) };
        let begun = self.end - end;
        let size = self.size_for(begun);
        if buffer.capacity() > LARGE {
            *buffer = Vec::new();
        }
        buffer.resize(size, 0);
        buffer[..begun].copy_from_slice(&self.buffer[end..self.end]);
        std::mem::swap(&mut self.buffer, buffer);
        (self.start, self.end, self.lines_end) = (0, begun, 0);
        Ok(Some(start..end))
    }

    /// Marks the lines up to `at` as used.
    pub fn used(&mut self, at: usize) {
        self.start = at.min(self.lines_end);
    }

    /// Whether no input arrives within `millis` milliseconds.
    fn would_wait(&self, millis: u16) -> bool {
        let Some(input) = &self.waits else { return false };
        // Reading reports other errors.
        matches!(
            poll(&mut [PollFd::new(input.as_fd(), PollFlags::POLLIN)], PollTimeout::from(millis)),
            Ok(0) | Err(Errno::EINTR)
        )
    }

    /// Returns the size of the buffer once all lines are used and `begun` bytes of a further one were read. After a
    /// long line it is small again, so that the pieces do not depend on which thread holds the buffers.
    fn size_for(&self, begun: usize) -> usize {
        if begun < CHUNK { CHUNK + 1 } else { self.buffer.len() }
    }

    fn read_on(&mut self) -> Result<(), ReadError> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            self.lines_end = 0;
            self.buffer.truncate(self.size_for(self.end));
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

    /// Returns the number of bytes read so far (for a compressed file: compressed ones), shared with other threads.
    pub fn consumed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.consumed)
    }

    /// Whether further input may arrive at any time, so that lines already read should not wait for it: the input is no
    /// file, and the last read did not fill the buffer.
    pub fn is_live(&self) -> bool {
        self.size.is_none() && !self.filled
    }

    /// Returns the size in bytes if the input is a file.
    pub fn size(&self) -> Option<u64> {
        self.size
    }
}
