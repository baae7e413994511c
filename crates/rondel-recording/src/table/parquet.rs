//! Rows of Parquet tables: a column for each leaf of the schema, with texts as cells as in other tables.
//!
//! Row groups are read in order, only the needed columns of each, and a limited number of rows at a time.

mod chunks;
mod columns;
mod pages;
mod thrift;
mod values;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use csv::ByteRecord;
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader as _, SerializedFileReader};

use crate::recording::{RecordingError, WantedField};
use chunks::Chunks;
use columns::Column;
use pages::Pages;
use values::Cells;

/// Maximum number of rows read at a time.
const ROWS: usize = 1024;
/// Approximate number of bytes read at a time if rows are large.
const BATCH: usize = 16 << 20;

/// The rows of a Parquet table. The first one has the names of the columns.
pub(super) struct ParquetRows {
    path: PathBuf,
    file: SerializedFileReader<Chunks>,
    /// Size of the file, in bytes.
    size: i64,
    columns: Vec<Column>,
    /// The columns to read; all others have empty cells.
    needed: Vec<bool>,
    is_header: bool,
    /// Index of the next row group.
    next_group: usize,
    /// Readers of the columns of the current row group, and the number of its remaining rows.
    readers: Vec<Option<ColumnReader>>,
    rows_left: usize,
    /// Number of list elements in the pages read for a column and some rows.
    elements: Arc<AtomicU64>,
    /// Number of rows read at a time.
    step: usize,
    /// Cells of the rows already read, by column.
    cells: Vec<Cells>,
    /// Index of the next of these rows.
    next_row: usize,
    /// Number of these rows.
    rows: usize,
    /// Number of the row, from 1.
    number: u64,
}

impl ParquetRows {
    /// Opens a table.
    ///
    /// # Errors
    /// [`RecordingError`] if it cannot be read at all.
    pub(super) fn open(
        path: &Path,
        file: std::fs::File,
        consumed: &Arc<AtomicU64>,
    ) -> Result<ParquetRows, RecordingError> {
        let refused = |reason: String| RecordingError::Form { path: path.to_owned(), reason };
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        let has_pages = Arc::new(AtomicBool::new(false));
        let chunks = Chunks::new(file, Arc::clone(consumed), Arc::clone(&has_pages));
        let file = guarded(|| SerializedFileReader::new(chunks)).map_err(|error| {
            refused(format!(
                "its list of columns and row groups, at its end, cannot be read: {}",
                plain_message(&error)
            ))
        })?;
        has_pages.store(true, Ordering::Relaxed);
        let columns = columns::of(file.metadata().file_metadata().schema_descr());
        if columns.is_empty() {
            return Err(refused("this table has no columns".to_owned()));
        }
        let needed = columns.iter().map(|column| column.is_read).collect();
        let cells = columns.iter().map(|_| Cells::default()).collect();
        Ok(ParquetRows {
            path: path.to_owned(),
            readers: Vec::new(),
            file,
            size,
            columns,
            needed,
            is_header: true,
            next_group: 0,
            rows_left: 0,
            elements: Arc::default(),
            step: ROWS,
            cells,
            next_row: 0,
            rows: 0,
            number: 0,
        })
    }

    /// Returns the forms of the columns.
    pub(super) fn forms(&self) -> Vec<super::layout::Form> {
        self.columns.iter().map(|column| column.form).collect()
    }

    /// Reads the times in a column as numbers, in nanoseconds if the table states their unit; returns whether it does.
    pub(super) fn take_times(&mut self, column: usize) -> bool {
        self.columns.get_mut(column).is_some_and(Column::as_time)
    }

    /// Reads the texts in a column without a mark.
    pub(super) fn take_names(&mut self, column: usize) {
        if let Some(column) = self.columns.get_mut(column) {
            column.is_marked = false;
        }
    }

    /// Reads only these columns.
    pub(super) fn only(&mut self, is_needed: impl Fn(usize) -> bool) {
        for (i, column) in self.columns.iter().enumerate() {
            self.needed[i] = column.is_read && is_needed(i);
        }
        // A row group is counted by the rows of a column.
        if !self.needed.contains(&true)
            && let Some(first) = self.columns.iter().position(|column| column.is_read)
        {
            self.needed[first] = true;
        }
    }

    /// Returns the columns with lists of structures or of lists that contain one of these fields.
    pub(super) fn unread(&self, wanted: &[WantedField]) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for column in self.columns.iter().filter(|column| !column.is_read) {
            let is_in = |field: &WantedField| super::layout::begins_alike(&field.path, &column.name);
            if wanted.iter().any(is_in) && !names.contains(&column.name) {
                names.push(column.name.clone());
            }
        }
        names
    }

    /// Returns the number of the last row read, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the last cell of a column in the last row group.
    pub(super) fn last(&mut self, column: usize) -> Option<Vec<u8>> {
        let group = self.file.num_row_groups().checked_sub(1)?;
        self.only(|own| own == column);
        self.next_group = group;
        self.open_group().ok()?;
        let before = self.rows_left.checked_sub(1)?;
        let reader = self.readers.get_mut(column)?.as_mut()?;
        let skipped = guarded(|| match reader {
            ColumnReader::Int64ColumnReader(reader) => reader.skip_records(before),
            ColumnReader::DoubleColumnReader(reader) => reader.skip_records(before),
            ColumnReader::Int96ColumnReader(reader) => reader.skip_records(before),
            _ => Ok(0),
        });
        (skipped.ok()? == before).then_some(())?;
        self.rows_left = 1;
        self.fill().ok()?;
        self.cells.get(column)?.get(0).map(<[u8]>::to_vec)
    }

    /// Reads the next row; returns whether there was one.
    ///
    /// # Errors
    /// [`RecordingError::Damage`]: the next call continues with the next row group.
    pub(super) fn read(&mut self, row: &mut ByteRecord) -> Result<bool, RecordingError> {
        row.clear();
        if self.is_header {
            self.is_header = false;
            for column in &self.columns {
                row.push_field(if column.is_read { column.name.as_bytes() } else { b"" });
            }
            return Ok(true);
        }
        while self.next_row >= self.rows {
            if self.rows_left == 0 {
                if self.next_group >= self.file.num_row_groups() {
                    return Ok(false);
                }
                self.open_group().map_err(|(column, error)| self.damage(column, &error))?;
            }
            if self.rows_left > 0 {
                self.fill().map_err(|(column, error)| self.damage(column, &error))?;
            }
        }
        for (column, cells) in self.cells.iter().enumerate() {
            row.push_field(if self.needed[column] {
                cells.get(self.next_row).unwrap_or_default()
            } else {
                b""
            });
        }
        self.next_row += 1;
        self.number += 1;
        Ok(true)
    }

    /// Opens the columns of the next row group.
    fn open_group(&mut self) -> Result<(), (usize, String)> {
        let at = self.next_group;
        self.next_group += 1;
        self.readers.clear();
        let failed = |column: usize, error: ParquetError| (column, plain_message(&error));
        let own = self.file.metadata().row_group(at);
        if own.num_columns() != self.columns.len() {
            return Err((0, "it has other columns than the table".to_owned()));
        }
        // The library does not check these.
        for (column, place) in own.columns().iter().enumerate().filter(|(column, _)| self.needed[*column]) {
            let numbers = [
                place.data_page_offset(),
                place.dictionary_page_offset().unwrap_or(0),
                place.compressed_size(),
            ];
            if numbers.iter().any(|number| !(0..=self.size).contains(number)) || place.num_values() < 0 {
                return Err((column, "its place is not in the file".to_owned()));
            }
        }
        let group = self.file.get_row_group(at).map_err(|error| failed(0, error))?;
        let rows = usize::try_from(group.metadata().num_rows());
        let rows = rows.map_err(|_| (0, "its number of rows is negative".to_owned()))?;
        let mut size: u64 = 0;
        for column in 0..self.columns.len() {
            let reader = if self.needed[column] {
                let place = group.metadata().column(column);
                let descriptor = place.column_descr_ptr();
                // List elements may take no bytes, but their levels take memory when they are read.
                let levels = if descriptor.max_rep_level() > 0 { place.num_values() } else { 0 };
                let claimed = place.uncompressed_size().saturating_add(levels.saturating_mul(4));
                size = size.saturating_add(u64::try_from(claimed).unwrap_or(0));
                let pages = guarded(|| group.get_column_page_reader(column));
                let pages = pages.map_err(|error| failed(column, error))?;
                let pages = Pages::new(pages, &descriptor, &self.elements);
                Some(get_column_reader(descriptor, Box::new(pages)))
            } else {
                None
            };
            self.readers.push(reader);
        }
        let of_row = usize::try_from(size / (rows.max(1) as u64)).unwrap_or(usize::MAX).max(1);
        self.step = (BATCH / of_row).clamp(1, ROWS);
        self.rows_left = rows;
        Ok(())
    }

    /// Reads the next rows.
    fn fill(&mut self) -> Result<(), (usize, String)> {
        let most = self.rows_left.min(self.step);
        for (i, reader) in self.readers.iter_mut().enumerate() {
            let Some(reader) = reader else { continue };
            self.elements.store(0, Ordering::Relaxed);
            let read = guarded(|| self.cells[i].fill(reader, &self.columns[i], most))
                .map_err(|error| (i, plain_message(&error)))?;
            if read != most {
                let more = self.rows_left - read.min(most);
                return Err((i, format!("its pages end {more} rows before the end of the row group")));
            }
        }
        self.rows_left -= most;
        (self.rows, self.next_row) = (most, 0);
        Ok(())
    }

    /// Returns the error that the rest of a row group cannot be used.
    fn damage(&mut self, column: usize, reason: &str) -> RecordingError {
        let group = self.next_group.saturating_sub(1);
        let place =
            self.file.metadata().row_groups().get(group).and_then(|group| group.columns().get(column));
        let offset = place.map_or(0, |place| {
            let offset = place.dictionary_page_offset().unwrap_or(place.data_page_offset());
            u64::try_from(offset).unwrap_or(0)
        });
        let name = self.columns.get(column).map_or("", |column| &column.name);
        let lost = self.rows_left;
        self.number += lost as u64;
        (self.rows_left, self.rows, self.next_row) = (0, 0, 0);
        self.readers.clear();
        let rows = match lost {
            0 => "nothing of it is read".to_owned(),
            1 => "the last row of it is not read".to_owned(),
            lost => format!("the last {lost} rows of it are not read"),
        };
        RecordingError::Damage {
            path: self.path.clone(),
            offset,
            reason: format!(
                "row group {} of {}, column `{name}`: {reason}; {rows}",
                group + 1,
                self.file.num_row_groups()
            ),
            topics: Vec::new(),
        }
    }
}

/// Calls the library and catches its panics on damaged input, which count as damage.
fn guarded<T>(call: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        Err(ParquetError::General(
            "it is damaged in a way that the library for Parquet does not expect".to_owned(),
        ))
    })
}

/// Returns an error without the common prefix.
fn plain_message(error: &ParquetError) -> String {
    match error {
        ParquetError::General(text) | ParquetError::EOF(text) | ParquetError::NYI(text) => text.clone(),
        other => other.to_string(),
    }
}
