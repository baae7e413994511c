//! Columns from a dict of lists, of arrays of NumPy, or of anything with `tolist`.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, NullArray, RecordBatch, StringArray,
    TimestampNanosecondArray,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};

use rondel_event::Timestamp;

use crate::error::{self, value};
use crate::time;

/// The names of the columns.
///
/// # Errors
/// `TypeError` for a name that is no `str`.
pub(crate) fn names(dict: &Bound<'_, PyDict>) -> PyResult<Vec<String>> {
    let name = |name: Bound<'_, PyAny>| name.extract::<String>();
    let names = dict.keys().iter().map(name).collect::<PyResult<_>>();
    names.map_err(|_| PyTypeError::new_err("the name of a column is not a string"))
}

/// Reads the wanted columns of a dict, which have equal lengths.
///
/// # Errors
/// `TypeError` names the column and the row of a value without a form; `ValueError` for columns of different lengths.
pub(crate) fn read(dict: &Bound<'_, PyDict>, is_wanted: impl Fn(&str) -> bool) -> PyResult<RecordBatch> {
    let mut columns: Vec<(String, ArrayRef)> = Vec::with_capacity(dict.len());
    for (name, column) in dict.iter() {
        let name: String = name.extract()?;
        if !is_wanted(&name) {
            continue;
        }
        let list = list_of(&name, &column)?;
        let array = array(&name, &list)?;
        if let Some((first, other)) = columns.first().filter(|(_, other)| other.len() != array.len()) {
            return Err(value(format!(
                "the column '{name}' has {} rows, and '{first}' has {}",
                array.len(),
                other.len()
            )));
        }
        columns.push((name, array));
    }
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .map_err(|error| value(error.to_string()))
}

/// Returns a column as a list.
fn list_of<'py>(name: &str, column: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    if let Ok(list) = column.cast::<PyList>() {
        return Ok(list.clone());
    }
    let list = if column.hasattr("tolist")? {
        column.call_method0("tolist")?
    } else {
        column.py().get_type::<PyList>().call1((column,))?
    };
    list.cast_into::<PyList>()
        .map_err(|_| PyTypeError::new_err(format!("the column '{name}' is no list of values")))
}

/// The type of a column: that of its values, where integers among floats are floats.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Int,
    Float,
    Text,
    /// A `datetime` with a time zone.
    Time,
}

fn array(name: &str, list: &Bound<'_, PyList>) -> PyResult<ArrayRef> {
    let mut kind = None;
    for (row, value) in list.iter().enumerate() {
        if value.is_none() {
            continue;
        }
        let own = if value.is_instance_of::<PyBool>() {
            Kind::Bool
        } else if value.is_instance_of::<PyInt>() {
            Kind::Int
        } else if value.is_instance_of::<PyFloat>() {
            Kind::Float
        } else if value.is_instance_of::<PyString>() {
            Kind::Text
        } else if value.hasattr("tzinfo")? {
            Kind::Time
        } else {
            return Err(refused(name, row, &value)?);
        };
        kind = match (kind, own) {
            (None, own) => Some(own),
            (Some(kind), own) if kind == own => Some(kind),
            (Some(Kind::Int | Kind::Float), Kind::Int | Kind::Float) => Some(Kind::Float),
            _ => return Err(refused(name, row, &value)?),
        };
    }
    Ok(match kind {
        Some(Kind::Bool) => Arc::new(BooleanArray::from(values::<bool>(name, list)?)),
        Some(Kind::Int) => Arc::new(Int64Array::from(values::<i64>(name, list)?)),
        None => Arc::new(NullArray::new(list.len())),
        Some(Kind::Float) => Arc::new(Float64Array::from(values::<f64>(name, list)?)),
        Some(Kind::Text) => Arc::new(StringArray::from(values::<String>(name, list)?)),
        Some(Kind::Time) => {
            let at = |(row, value): (usize, Bound<'_, PyAny>)| match value.is_none() {
                true => Ok(None),
                false => time::read(Some(&value), None).map(|time| time.map(Timestamp::as_nanos)).map_err(
                    |error| {
                        error::value(format!("the column '{name}', row {row}: {}", error.value(list.py())))
                    },
                ),
            };
            let times = list.iter().enumerate().map(at).collect::<PyResult<Vec<Option<i64>>>>()?;
            Arc::new(TimestampNanosecondArray::from(times).with_timezone("UTC"))
        }
    })
}

/// The exception for a value that does not fit its column.
fn refused(name: &str, row: usize, value: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    Ok(PyTypeError::new_err(format!(
        "the column '{name}', row {row}: a {} does not fit; a column contains bool, numbers, str or datetime, and None",
        value.get_type().name()?
    )))
}

fn values<'py, T>(name: &str, list: &Bound<'py, PyList>) -> PyResult<Vec<Option<T>>>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    let read = |(row, item): (usize, Bound<'py, PyAny>)| {
        item.extract::<Option<T>>()
            .map_err(|_| value(format!("the column '{name}', row {row}: {item} is out of range")))
    };
    list.iter().enumerate().map(read).collect()
}
