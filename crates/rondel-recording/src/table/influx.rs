//! Tables of InfluxDB: annotated CSV, and the CSV of its command without annotations.
//!
//! A file has several tables, each with its own header, usually one for each field of each series. Their rows are
//! merged by time; rows with one field each (`_field`, `_value`) that agree in time, measurement and tags become one
//! row with all these fields. A table is read in *runs*, parts with non-decreasing times, each at its own position in
//! the file.

mod scan;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use csv::ByteRecord;
use rondel_event::ValueType;

use super::input;
use super::long::InvalidRow;
use super::times::Times;
use crate::compressed;
use crate::reader::MAX_LINE;
use crate::recording::RecordingError;
use crate::temporary::Temporary;
use scan::{Scan, Stopped};

/// Maximum number of rows of one time that are merged.
const TOGETHER: usize = 1 << 14;
/// Column of the times in the merged rows.
const TIME: usize = 0;
/// Column of the measurements in the merged rows.
pub(super) const MEASUREMENT: usize = 1;

/// The first bytes of annotations; clients write a space and the first cell after them, as in `#datatype tag`.
const ANNOTATIONS: [&[u8]; 4] = [b"#group", b"#datatype", b"#default", b"#constant"];

/// Whether a first row belongs to a table of InfluxDB.
pub(super) fn is_form(first: &ByteRecord) -> bool {
    let has = |name: &[u8]| first.iter().any(|cell| cell.trim_ascii() == name);
    let annotation = first.get(0).unwrap_or_default();
    ANNOTATIONS.iter().any(|name| annotation.starts_with(name))
        || has(b"_time") && (has(b"_field") && has(b"_value") || has(b"result") && has(b"table"))
}

/// Role of a column in one table.
#[derive(Clone, Debug, PartialEq)]
enum Role {
    /// Not part of a message.
    Ignored,
    Time,
    Measurement,
    /// Name of a field.
    Field,
    /// Value of the field that the row names.
    Value(Option<ValueType>),
    /// A field or a tag, in this column of the merged rows.
    Own(usize),
}

/// A table of a file, or several with the same columns.
#[derive(Debug)]
struct Block {
    roles: Vec<Role>,
    /// Default values of empty cells.
    defaults: Vec<Vec<u8>>,
    /// Measurement of all rows.
    measurement: Option<Vec<u8>>,
    /// Whether a row has one field, so that rows are merged.
    is_long: bool,
}

/// A part of the file with non-decreasing times.
#[derive(Clone, Copy, Debug)]
struct Run {
    block: usize,
    begin: u64,
    end: u64,
    line: u64,
}

/// A part of a file with its own read position.
struct Section {
    file: Arc<File>,
    at: u64,
    end: u64,
    of_row: usize,
    consumed: Arc<AtomicU64>,
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += read as u64;
        self.of_row += read;
        self.consumed.fetch_add(read as u64, Ordering::Relaxed);
        if self.of_row > MAX_LINE {
            // The file was changed meanwhile: rows were shorter when they were counted.
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "a row is too long"));
        }
        Ok(read)
    }
}

/// A run that is being read.
struct Cursor {
    rows: csv::Reader<Section>,
    run: Run,
    row: ByteRecord,
    time: i64,
}

/// Fields of one time, measurement and set of tags.
struct Message {
    cells: Vec<(usize, Vec<u8>)>,
    line: u64,
}

/// The rows of all tables of a file, merged. The first one names the columns.
pub(super) struct InfluxRows {
    header: Option<ByteRecord>,
    pub(super) kinds: Vec<Option<ValueType>>,
    /// Whether rows name their measurement.
    pub(super) has_measurements: bool,
    blocks: Vec<Block>,
    places: HashMap<Vec<u8>, usize>,
    cursors: Vec<Cursor>,
    /// The runs by the times of their next rows.
    next: BinaryHeap<Reverse<(i64, usize)>>,
    times: Times,
    last: Option<Vec<u8>>,
    /// The messages of one time.
    ready: VecDeque<Message>,
    faults: VecDeque<(u64, String)>,
    width: usize,
    /// Folder of the decompressed file, kept while it is read.
    _temporary: Option<Temporary>,
}

/// Opens a file with tables of InfluxDB.
pub(super) fn open(path: &Path, separator: u8) -> Result<(InfluxRows, Arc<AtomicU64>), RecordingError> {
    let failed = |source| RecordingError::Open { path: path.to_owned(), source };
    let consumed = Arc::new(AtomicU64::new(0));
    let is_packed = compressed::is_packed(path);
    let (mut file, mut temporary, mut fault) = (File::open(path).map_err(failed)?, None, None);
    if is_packed {
        let mut folder = Temporary::new().map_err(failed)?;
        let (text, _) = input::text(path, &Arc::new(AtomicU64::new(0)))?;
        let (content, error) = folder.write("content", text).map_err(failed)?;
        file = File::open(content).map_err(failed)?;
        fault = error.map(|error| error.to_string());
        temporary = Some(folder);
    }
    let mut scan = Scan::new();
    scan.read(&file, separator).map_err(|error| match error {
        Stopped::Reading(source) => RecordingError::Read { path: path.to_owned(), offset: scan.at, source },
        Stopped::Refused(reason) => RecordingError::Form { path: path.to_owned(), reason },
    })?;
    scan.faults.extend(fault.map(|fault| (scan.line, fault)));
    Ok((scan.into_rows(Arc::new(file), separator, &consumed, temporary), consumed))
}

fn reader<R: Read>(separator: u8, capacity: usize, from: R) -> csv::Reader<R> {
    csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(separator)
        .buffer_capacity(capacity)
        .from_reader(from)
}

impl Block {
    /// Returns a cell of a row, or the default if it is empty.
    fn cell<'r>(&'r self, row: &'r ByteRecord, column: usize) -> &'r [u8] {
        match row.get(column).unwrap_or_default().trim_ascii() {
            b"" => self.defaults.get(column).map_or(&b""[..], |cell| cell),
            cell => cell,
        }
    }
}

impl InfluxRows {
    /// Returns the cell with the last time.
    pub(super) fn last(&self) -> Option<&[u8]> {
        self.last.as_deref()
    }

    /// Reads the rows of the next message; returns whether there were any.
    ///
    /// # Errors
    /// An error of the file, or a row that cannot be used; the next call continues behind it.
    pub(super) fn read(&mut self, out: &mut ByteRecord) -> Result<Result<bool, InvalidRow>, csv::Error> {
        out.clear();
        if let Some(header) = self.header.take() {
            *out = header;
            return Ok(Ok(true));
        }
        loop {
            if let Some((line, reason)) = self.faults.pop_front() {
                return Ok(Err(InvalidRow(line, reason)));
            }
            if let Some(message) = self.ready.pop_front() {
                self.write(message, out);
                return Ok(Ok(true));
            }
            if !self.gather()? {
                return Ok(Ok(false));
            }
        }
    }

    fn write(&self, Message { mut cells, line }: Message, out: &mut ByteRecord) {
        cells.sort_by_key(|(place, _)| *place);
        let mut cells = cells.into_iter().peekable();
        for place in 0..self.width {
            let cell = cells.next_if(|(own, _)| *own == place).map(|(_, cell)| cell);
            out.push_field(&cell.unwrap_or_default());
        }
        let mut position = csv::Position::new();
        position.set_line(line);
        out.set_position(Some(position));
    }

    /// Gathers the messages of the next time; returns whether there are any.
    fn gather(&mut self) -> Result<bool, csv::Error> {
        let mut at = None;
        // Messages that may get further fields, by measurement and tags.
        let mut waiting: HashMap<Vec<u8>, usize> = HashMap::new();
        let (mut rows, mut size) = (0, 0);
        while let Some(Reverse((time, cursor))) = self.next.peek().copied() {
            let is_begun = time != i64::MIN;
            if self.faults.len() >= TOGETHER {
                break;
            }
            if is_begun && (at.is_some_and(|at| at != time) || rows >= TOGETHER || size >= MAX_LINE) {
                break;
            }
            self.next.pop();
            if is_begun {
                at = Some(time);
                size += self.cursors[cursor].row.as_slice().len();
                rows += 1;
                self.add(cursor, &mut waiting);
            }
            self.step(cursor)?;
        }
        Ok(at.is_some() || !self.faults.is_empty())
    }

    /// Moves a run to its next usable row.
    fn step(&mut self, index: usize) -> Result<(), csv::Error> {
        let Cursor { rows, run, row, time } = &mut self.cursors[index];
        let block = &self.blocks[run.block];
        loop {
            rows.get_mut().of_row = 0;
            if !rows.read_byte_record(row)? {
                return Ok(());
            }
            let line = run.line + row.position().map_or(0, |place| place.line().saturating_sub(1));
            let (own, expected) = (row.len(), block.roles.len());
            if own != expected {
                let cells = if own == 1 { "cell" } else { "cells" };
                self.faults
                    .push_back((line, format!("the row has {own} {cells}, and the header {expected}")));
            } else if let Some(column) = block.roles.iter().position(|role| *role == Role::Time) {
                let cell = block.cell(row, column);
                if let Some(found) = self.times.time(cell) {
                    *time = found.max(i64::MIN + 1);
                    self.next.push(Reverse((*time, index)));
                    return Ok(());
                }
                self.faults.push_back((line, self.times.refused(cell, "_time")));
            }
            if self.faults.len() >= TOGETHER {
                // Faults are reported first.
                self.next.push(Reverse((i64::MIN, index)));
                return Ok(());
            }
        }
    }

    /// Adds the row of a run to the message of its measurement and tags, or as a new message.
    fn add(&mut self, index: usize, waiting: &mut HashMap<Vec<u8>, usize>) {
        let Cursor { run, row, .. } = &self.cursors[index];
        let block = &self.blocks[run.block];
        let line = run.line + row.position().map_or(0, |place| place.line().saturating_sub(1));
        let (mut cells, mut key) = (Vec::new(), Vec::new());
        let (mut field, mut value) = (None, None);
        if let Some(measurement) = &block.measurement {
            cells.push((MEASUREMENT, measurement.clone()));
        }
        for (column, role) in block.roles.iter().enumerate() {
            let cell = block.cell(row, column);
            match role {
                Role::Ignored => {}
                Role::Time => cells.push((TIME, cell.to_vec())),
                Role::Measurement => cells.push((MEASUREMENT, cell.to_vec())),
                Role::Field => field = self.places.get(cell).copied(),
                Role::Value(_) => value = Some(cell.to_vec()),
                Role::Own(place) => cells.push((*place, cell.to_vec())),
            }
        }
        let Some((field, value)) = field.zip(value) else {
            self.ready.push_back(Message { cells, line });
            return;
        };
        // A measurement has its tags in the same columns, or at least under the same names.
        cells.sort_by_key(|(place, _)| *place);
        for (place, cell) in cells.iter().filter(|(place, _)| *place != TIME) {
            key.extend_from_slice(&place.to_le_bytes());
            key.extend_from_slice(&cell.len().to_le_bytes());
            key.extend_from_slice(cell);
        }
        if let Some(message) = waiting.get(&key).and_then(|place| self.ready.get_mut(*place))
            && message.cells.iter().all(|(place, _)| *place != field)
        {
            message.cells.push((field, value));
            return;
        }
        cells.push((field, value));
        waiting.insert(key, self.ready.len());
        self.ready.push_back(Message { cells, line });
    }
}
