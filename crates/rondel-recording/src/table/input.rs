//! Files of tables: bytes, separators and rows.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use csv::ByteRecord;

use super::TableOptions;
use super::columns::time_column;
use super::influx::{self, InfluxRows};
use super::long::{Form, InvalidRow, LongRows};
use crate::compressed;
use crate::reader::MAX_LINE;
use crate::recording::RecordingError;

/// Number of bytes read at a time.
const STEP: usize = 256 << 10;
/// Number of bytes searched for the separator.
const BEGINNING: usize = 64 << 10;

/// Whether a file is a table, by its name.
pub fn is_table(path: &Path) -> bool {
    matches!(compressed::content(path).as_deref(), Some("csv" | "tsv")) || is_parquet(path)
}

/// Whether a file is a Parquet table, by its name or its beginning.
pub(crate) fn is_parquet(path: &Path) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    let begins = || {
        let mut begin = [0; 4];
        path.is_file()
            && File::open(path).and_then(|mut file| file.read_exact(&mut begin)).is_ok()
            && begin == *b"PAR1"
    };
    matches!(ending.as_deref(), Some("parquet" | "pq")) || begins()
}

/// Whether a file is a table with a column of times, as recordings have; also true if its columns cannot be read, since
/// reading it reports the reason.
pub(crate) fn is_recording(path: &Path, options: &TableOptions<'_>) -> bool {
    let chosen = options.time.into_iter().flat_map(|names| [names].into_iter().chain(names.split(',')));
    let is_time =
        |name: &str| time_column(name).is_some() || chosen.clone().any(|chosen| chosen.trim() == name);
    let has_times = || {
        let mut rows = Source { path, columns: options.columns }.open().ok()?.rows;
        let mut header = ByteRecord::new();
        rows.read(&mut header).ok()?.then_some(())?;
        Some(header.iter().any(|cell| std::str::from_utf8(cell).is_ok_and(|name| is_time(name.trim()))))
    };
    is_table(path) && path.is_file() && has_times().unwrap_or(true)
}

/// Decompressed bytes of a table; limits the length of a row.
pub(crate) struct Input<R = Box<dyn Read>> {
    beginning: io::Cursor<Vec<u8>>,
    rest: R,
    /// Number of bytes read since the beginning of the row.
    of_row: Cell<usize>,
    end: End,
}

/// State of the end of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// There are more bytes.
    Ahead,
    /// A line break was added behind the last byte.
    Closed,
    /// A read after that found no bytes.
    Passed,
}

impl<R> Input<R> {
    /// Returns the bytes of a text.
    pub(super) fn of(rest: R) -> Input<R> {
        Input { beginning: io::Cursor::new(Vec::new()), rest, of_row: Cell::new(0), end: End::Ahead }
    }

    /// Marks the beginning of a row.
    pub(super) fn begin_row(&self) {
        self.of_row.set(0);
    }

    /// Whether the last row continues where the file ends. The added line break ends every row except one with an
    /// unclosed quoted cell.
    pub(super) fn is_open(&self) -> bool {
        self.end == End::Passed
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut read = self.beginning.read(buffer)?;
        if read == 0 {
            read = self.rest.read(buffer)?;
        }
        if read == 0
            && let Some(byte) = buffer.first_mut()
        {
            if self.end == End::Ahead {
                *byte = b'\n';
                self.end = End::Closed;
                return Ok(1);
            }
            self.end = End::Passed;
        }
        self.of_row.set(self.of_row.get() + read);
        if self.of_row.get() > MAX_LINE {
            let limit = MAX_LINE >> 20;
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("a row is longer than {limit} MiB; is a quotation mark not closed?"),
            ));
        }
        Ok(read)
    }
}

/// Rows of a table; the first one has the names of the columns.
pub(super) enum Rows {
    /// Rows of separated values, with the names of the columns if the file has none.
    Separated(Box<csv::Reader<Input>>, Option<ByteRecord>),
    /// Rows with one value each.
    Long(Box<LongRows>),
    /// Merged rows of the tables of InfluxDB.
    Influx(Box<InfluxRows>),
    /// Rows of a Parquet file.
    #[cfg(feature = "parquet")]
    Parquet(Box<super::parquet::ParquetRows>),
}

/// Reason why a row cannot be read.
pub(super) enum Unreadable {
    /// The text cannot be read further.
    Text(csv::Error),
    /// A row cannot be used, with its line; the next call continues behind it.
    Row(u64, String),
    /// A part of the table cannot be read; the next call continues behind it.
    #[cfg(feature = "parquet")]
    Part(RecordingError),
}

impl Unreadable {
    /// Returns the error at an offset.
    pub(super) fn at(self, path: &Path, offset: u64) -> RecordingError {
        match self {
            Unreadable::Text(error) => failed(path, offset, error),
            Unreadable::Row(line, reason) => {
                RecordingError::Row { path: path.to_owned(), line, reason, topics: Vec::new() }
            }
            #[cfg(feature = "parquet")]
            Unreadable::Part(error) => error,
        }
    }
}

impl Rows {
    /// Reads the next row; returns whether there was one.
    #[inline]
    pub(super) fn read(&mut self, row: &mut ByteRecord) -> Result<bool, Unreadable> {
        match self {
            Rows::Separated(rows, header) => {
                if let Some(header) = header.take() {
                    *row = header;
                    return Ok(true);
                }
                rows.get_ref().begin_row();
                rows.read_byte_record(row).map_err(Unreadable::Text)
            }
            Rows::Long(rows) => match rows.read(row) {
                Ok(Ok(is_there)) => Ok(is_there),
                Ok(Err(InvalidRow(line, reason))) => Err(Unreadable::Row(line, reason)),
                Err(error) => Err(Unreadable::Text(error)),
            },
            Rows::Influx(rows) => match rows.read(row) {
                Ok(Ok(is_there)) => Ok(is_there),
                Ok(Err(InvalidRow(line, reason))) => Err(Unreadable::Row(line, reason)),
                Err(error) => Err(Unreadable::Text(error)),
            },
            #[cfg(feature = "parquet")]
            Rows::Parquet(rows) => rows.read(row).map_err(Unreadable::Part),
        }
    }

    /// Whether the last row continues where the file ends.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Rows::Separated(rows, _) => rows.get_ref().is_open(),
            Rows::Long(rows) => rows.is_open(),
            // Such a row is an error.
            Rows::Influx(_) => false,
            #[cfg(feature = "parquet")]
            Rows::Parquet(_) => false,
        }
    }

    /// Restricts reading to this column.
    pub(super) fn only(&mut self, column: usize) {
        match self {
            Rows::Separated(..) | Rows::Long(_) | Rows::Influx(_) => _ = column,
            #[cfg(feature = "parquet")]
            Rows::Parquet(rows) => rows.only(|own| own == column),
        }
    }
}

/// An opened file.
pub(super) struct Opened {
    pub(super) rows: Rows,
    pub(super) separator: u8,
    pub(super) consumed: Arc<AtomicU64>,
    pub(super) size: u64,
}

/// A table to open.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) path: &'a Path,
    /// Names of the columns, if the file has none.
    pub(super) columns: &'a [String],
}

impl Source<'_> {
    /// Opens the table. The first row has the names of the columns.
    pub(super) fn open(&self) -> Result<Opened, RecordingError> {
        let path = self.path;
        let refused = |reason: String| RecordingError::Form { path: path.to_owned(), reason };
        let file =
            File::open(path).map_err(|source| RecordingError::Open { path: path.to_owned(), source })?;
        if is_parquet(path) {
            if !self.columns.is_empty() {
                let reason = "a Parquet table has the names of its columns: leave out --columns";
                return Err(refused(reason.to_owned()));
            }
            let size = file.metadata().map_or(0, |metadata| metadata.len());
            return parquet(path, file, Arc::new(AtomicU64::new(0)), size);
        }
        let Separated { mut rows, separator, consumed, size } = separated(path)?;
        let mut header = ByteRecord::new();
        let is_there = matches!(rows.read_byte_record(&mut header), Ok(true));
        if is_there && self.columns.is_empty() && influx::is_form(&header) {
            let (rows, consumed) = influx::open(path, separator)?;
            return Ok(Opened { rows: Rows::Influx(Box::new(rows)), separator, consumed, size });
        }
        let given = (!self.columns.is_empty()).then(|| {
            // Columns beyond the given ones have no name.
            let unnamed = header.len().saturating_sub(self.columns.len());
            let names = self.columns.iter().map(String::as_str);
            names.chain(std::iter::repeat_n("", unnamed)).collect::<ByteRecord>()
        });
        let form = if is_there { Form::of(given.as_ref().unwrap_or(&header)) } else { None };
        let Some(form) = form else {
            // The first row is read again.
            let Separated { rows, separator, consumed, size } = separated(path)?;
            return Ok(Opened { rows: Rows::Separated(Box::new(rows), given), separator, consumed, size });
        };
        let rows = match given {
            None => LongRows::new(&header, form, rows, separated(path)?.rows),
            Some(given) => {
                let Separated { rows, .. } = separated(path)?;
                LongRows::without_header(&given, form, rows, separated(path)?.rows)
            }
        };
        let rows = Rows::Long(Box::new(rows.map_err(refused)?));
        Ok(Opened { rows, separator, consumed, size })
    }
}

/// The end of a file whose first bytes could not be read further.
struct Failed(Option<io::Error>);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// An opened file with separated values.
struct Separated {
    rows: csv::Reader<Input>,
    separator: u8,
    consumed: Arc<AtomicU64>,
    size: u64,
}

/// Opens a file; returns its decompressed text and its size.
pub(super) fn text(path: &Path, consumed: &Arc<AtomicU64>) -> Result<(Box<dyn Read>, u64), RecordingError> {
    let failed = |source| RecordingError::Open { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")));
    }
    let text: Box<dyn Read> = compressed::read(path, file, consumed).map_err(failed)?;
    Ok((text, metadata.len()))
}

fn separated(path: &Path) -> Result<Separated, RecordingError> {
    let failed = |source| RecordingError::Open { path: path.to_owned(), source };
    let consumed = Arc::new(AtomicU64::new(0));
    let (mut rest, size) = text(path, &consumed)?;
    let mut beginning = Vec::new();
    if let Err(error) = (&mut rest).take(BEGINNING as u64).read_to_end(&mut beginning) {
        if beginning.is_empty() {
            return Err(failed(error));
        }
        // It is reported when the bytes before it have been read. A decompressor returns an error only once.
        rest = Box::new(Failed(Some(error)));
    }
    if beginning.starts_with(b"\xef\xbb\xbf") {
        beginning.drain(..3);
    }
    let separator = separator(&beginning);
    let input = Input { beginning: io::Cursor::new(beginning), rest, of_row: Cell::new(0), end: End::Ahead };
    let rows = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(separator)
        .buffer_capacity(STEP)
        .from_reader(input);
    Ok(Separated { rows, separator, consumed, size })
}

#[cfg(feature = "parquet")]
fn parquet(path: &Path, file: File, consumed: Arc<AtomicU64>, size: u64) -> Result<Opened, RecordingError> {
    let rows = super::parquet::ParquetRows::open(path, file, &consumed)?;
    Ok(Opened { rows: Rows::Parquet(Box::new(rows)), separator: b',', consumed, size })
}

#[cfg(not(feature = "parquet"))]
fn parquet(path: &Path, _: File, _: Arc<AtomicU64>, _: u64) -> Result<Opened, RecordingError> {
    Err(RecordingError::Form {
        path: path.to_owned(),
        reason: "this is a Parquet table, which this build of Rondel does not read; build it with its feature `parquet`, \
                 or convert the table to CSV"
            .to_owned(),
    })
}

/// Returns the most frequent separator of the first line: a comma, a semicolon or a tab.
fn separator(beginning: &[u8]) -> u8 {
    let (mut counts, mut is_quoted) = ([0_usize; 3], false);
    for byte in beginning {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'\n' | b'\r' if !is_quoted => break,
            b',' if !is_quoted => counts[0] += 1,
            b';' if !is_quoted => counts[1] += 1,
            b'\t' if !is_quoted => counts[2] += 1,
            _ => {}
        }
    }
    let most = counts.iter().max().copied().unwrap_or(0);
    counts.iter().position(|count| *count == most).map_or(b',', |at| b",;\t"[at])
}

/// Returns a reading error at an offset.
fn failed(path: &Path, offset: u64, error: csv::Error) -> RecordingError {
    let path = path.to_owned();
    match error.into_kind() {
        csv::ErrorKind::Io(source) if compressed::ends(&source) => {
            RecordingError::of_compression(path, offset, &source)
        }
        csv::ErrorKind::Io(source) => RecordingError::Read { path, offset, source },
        other => RecordingError::Form { path, reason: format!("it cannot be read as a table: {other:?}") },
    }
}
