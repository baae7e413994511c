//! Tables: batches of columns by the Arrow C stream interface, or from a dict of columns, and their rows as messages.

mod columns;

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyDict};
use rondel_columns::check;
pub(crate) use rondel_columns::{Batch, Reads, TimeColumn};

use crate::error::{self, value};

/// The name of a capsule with a stream.
const STREAM: &std::ffi::CStr = c"arrow_array_stream";

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
        let borrowed: Vec<&str> = names.iter().map(|name| &**name).collect();
        check(&borrowed, &time, reads).map_err(error::columns)?;
        let batch = columns::read(dict, |name| name == time.name || reads.includes(name))?;
        let batch = Batch::new(&batch, &time, reads, 0).map_err(error::columns);
        return Ok(Box::new(std::iter::once(batch)));
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
        Batch::new(&batch, &time, reads, start).map_err(error::columns)
    })))
}
