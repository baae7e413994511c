//! Values of Python as JSON text, as the decoder of rows of tables reads them: a number may be `NaN`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use rondel_columns::json::{write_float, write_int, write_text};

/// The largest depth of a message.
const DEPTH: u32 = 64;

/// Appends a message: a `dict`, or any other value for payloads of one value.
///
/// # Errors
/// `TypeError` names the field whose value has no JSON form; `ValueError` for a depth above 64.
pub(crate) fn write(message: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<()> {
    if let Ok(dict) = message.cast::<PyDict>() {
        return write_dict(dict, out, 0);
    }
    write_value(message, out, 0)
}

fn write_dict(dict: &Bound<'_, PyDict>, out: &mut Vec<u8>, depth: u32) -> PyResult<()> {
    if depth > DEPTH {
        return Err(PyValueError::new_err(format!("the message has more than {DEPTH} levels")));
    }
    out.push(b'{');
    let mut is_first = true;
    for (name, value) in dict.iter() {
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        let name = name
            .cast::<PyString>()
            .map_err(|_| PyTypeError::new_err("the name of a field is not a string"))?;
        let name = name.to_str()?;
        write_text(name, out);
        out.push(b':');
        write_value(&value, out, depth).map_err(|error| within(dict.py(), name, error))?;
    }
    out.push(b'}');
    Ok(())
}

/// Adds the name of the field to an error of this module.
fn within(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(py) {
        return error;
    }
    let text = error.value(py).to_string();
    let text = match text.strip_prefix("field '") {
        Some(rest) => format!("field '{name}.{rest}"),
        None => format!("field '{name}': {text}"),
    };
    PyTypeError::new_err(text)
}

fn write_value(value: &Bound<'_, PyAny>, out: &mut Vec<u8>, depth: u32) -> PyResult<()> {
    if let Ok(number) = value.cast_exact::<PyFloat>() {
        write_float(number.value(), out);
    } else if let Ok(flag) = value.cast_exact::<PyBool>() {
        out.extend_from_slice(if flag.is_true() { b"true" } else { b"false" });
    } else if let Ok(number) = value.cast_exact::<PyInt>() {
        write_integer(number.as_any(), out)?;
    } else if let Ok(text) = value.cast::<PyString>() {
        write_text(text.to_str()?, out);
    } else if value.is_none() {
        out.extend_from_slice(b"null");
    } else if let Ok(dict) = value.cast::<PyDict>() {
        write_dict(dict, out, depth + 1)?;
    } else if let Ok(list) = value.cast::<PyList>() {
        write_all(list.iter(), out, depth)?;
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        write_all(tuple.iter(), out, depth)?;
    } else {
        write_other(value, out, depth)?;
    }
    Ok(())
}

/// Writes subclasses of numbers, and scalars and arrays of NumPy by their method `tolist`.
fn write_other(value: &Bound<'_, PyAny>, out: &mut Vec<u8>, depth: u32) -> PyResult<()> {
    if value.is_instance_of::<PyInt>() {
        return write_integer(value, out);
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        write_float(number.value(), out);
        return Ok(());
    }
    if depth <= DEPTH && value.hasattr("tolist")? {
        return write_value(&value.call_method0("tolist")?, out, depth + 1);
    }
    Err(PyTypeError::new_err(format!(
        "a {} has no form in a message; use bool, int, float, str, None, list or dict",
        value.get_type().name()?
    )))
}

fn write_all<'py>(
    values: impl Iterator<Item = Bound<'py, PyAny>>,
    out: &mut Vec<u8>,
    depth: u32,
) -> PyResult<()> {
    if depth > DEPTH {
        return Err(PyValueError::new_err(format!("the message has more than {DEPTH} levels")));
    }
    out.push(b'[');
    let mut is_first = true;
    for value in values {
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        write_value(&value, out, depth + 1)?;
    }
    out.push(b']');
    Ok(())
}

/// Writes an integer of any size: the decoder counts those that it cannot hold.
fn write_integer(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<()> {
    match value.extract::<i64>() {
        Ok(number) => write_int(number, out),
        Err(_) => out.extend_from_slice(value.call_method0("__index__")?.str()?.to_str()?.as_bytes()),
    }
    Ok(())
}
