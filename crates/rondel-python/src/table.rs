//! Tables: batches of columns by the Arrow C stream interface, or from a dict of columns, and their rows as messages.

mod cells;
mod columns;
mod reads;
mod times;

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{ArrayRef, RecordBatch, StructArray};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyDict};
use rondel_event::Timestamp;

use crate::error::value;
use cells::Fields;
pub(crate) use reads::Reads;
use times::Times;

/// The name of a capsule with a stream.
const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// The column with the times of the rows.
#[derive(Clone, Debug)]
pub(crate) struct TimeColumn {
    /// Its name.
    pub(crate) name: String,
    /// Whether it contains nanoseconds as integers.
    pub(crate) is_nanoseconds: bool,
}

/// A batch of rows, each with a time.
pub(crate) struct Batch {
    times: Times,
    fields: Fields,
    /// The number of its first row.
    first: u64,
}

/// Returns the batches of a table, with the columns that are read.
///
/// # Errors
/// `TypeError` for an object that is no table.
pub(crate) fn read<'r>(
    table: &Bound<'_, PyAny>,
    time: TimeColumn,
    reads: &'r Reads<'_>,
) -> PyResult<Box<dyn Iterator<Item = PyResult<Batch>> + 'r>> {
    if let Ok(dict) = table.cast::<PyDict>() {
        let names = columns::names(dict)?;
        check(&names.iter().map(|name| &**name).collect::<Vec<_>>(), &time, reads)?;
        let batch = columns::read(dict, |name| name == time.name || reads.includes(name))?;
        return Ok(Box::new(std::iter::once(Batch::new(&batch, &time, reads, 0))));
    }
    if !table.hasattr("__arrow_c_stream__")? {
        return Err(PyTypeError::new_err(format!(
            "a {} is no table: give a table of PyArrow, Polars or pandas (2.2 or newer), or a dict of columns",
            table.get_type().name()?
        )));
    }
    let capsule = table.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(STREAM))?;
    // SAFETY: a capsule of this name contains a valid stream, which is moved out of it: its release callback is cleared.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.cast().as_ptr()) };
    let reader = RecordBatchStreamReader::try_new(stream).map_err(|error| value(error.to_string()))?;
    let mut first = 0;
    Ok(Box::new(reader.map(move |batch| {
        let batch = batch.map_err(|error| value(format!("the table cannot be read: {error}")))?;
        let start = first;
        first += batch.num_rows() as u64;
        Batch::new(&batch, &time, reads, start)
    })))
}

impl Batch {
    /// Prepares a batch whose first row has this number.
    fn new(batch: &RecordBatch, time: &TimeColumn, reads: &Reads<'_>, first: u64) -> PyResult<Batch> {
        let schema = batch.schema();
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let index = check(&names, time, reads)?;
        let field = schema.field(index);
        let times = Times::new(batch.column(index), field.data_type(), time, first)?;
        for (name, field) in names.iter().zip(schema.fields()) {
            reads.check_type(name, field.data_type())?;
        }
        let columns = names.into_iter().zip(batch.columns());
        let fields = Fields::new(columns.filter(|(name, _)| reads.includes(name)))?;
        Ok(Batch { times, fields, first })
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.times.len()
    }

    /// The number in the table of the row at `i`, from 0.
    pub(crate) fn number(&self, i: usize) -> u64 {
        self.first + i as u64
    }

    /// The time of the row at `i`.
    #[inline]
    pub(crate) fn time(&self, i: usize) -> Timestamp {
        self.times.get(i)
    }

    /// Appends the row at `i` as a message.
    #[inline]
    pub(crate) fn write(&self, i: usize, out: &mut Vec<u8>) {
        self.fields.write(i, out);
    }
}

/// Checks that the columns that are read are there, and returns the position of the one with the times.
///
/// # Errors
/// `ValueError` names the first column that is missing.
fn check(columns: &[&str], time: &TimeColumn, reads: &Reads<'_>) -> PyResult<usize> {
    let Some(index) = columns.iter().position(|column| *column == time.name) else {
        return Err(value(format!(
            "the table has no column '{}' with the times; it has {}: name it by `time` or `time_ns`",
            time.name,
            listed(columns)
        )));
    };
    reads.check(columns)?;
    Ok(index)
}

/// Names of columns in a sentence.
fn listed(columns: &[&str]) -> String {
    if columns.is_empty() { "none".to_owned() } else { columns.join(", ") }
}

/// The columns of a structure with their names.
fn members(array: &StructArray) -> impl Iterator<Item = (&str, &ArrayRef)> {
    array.fields().iter().map(|field| field.name().as_str()).zip(array.columns())
}
