//! Values of a `dict` for the fields that are read, without text: where these are numbers and booleans, each message takes
//! the same short way.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use rondel_event::TopicId;
use rondel_runtime::{FieldValue, MessageValues, Session, ValueField};

/// Maximum length of the fields of a message that are not read, in bytes. With longer ones, its text may exceed the largest
/// payload, also by escapes.
const UNREAD: usize = 1 << 16;
/// Length that a number is counted with, and the signs around a name and a value.
const SHORT: usize = 32;

/// The fields that are read of the messages of a topic.
pub(crate) struct Fields(Vec<(Py<PyString>, ValueField)>);

impl Fields {
    /// The fields of a topic; `None` where messages must be written as text.
    pub(crate) fn of(py: Python<'_>, session: &Session, topic: TopicId) -> Option<Fields> {
        let fields = session.value_fields(topic)?;
        // Names in a program are interned: each exists once.
        let named = |field: ValueField| (PyString::intern(py, field.name()).unbind(), field);
        Some(Fields(fields.into_iter().map(named).collect()))
    }

    /// Reads the values of a message. Returns whether these are all: otherwise it must be written as text. Nothing of Python
    /// is called, since all objects have the types of the interpreter.
    pub(crate) fn read(&self, message: &Bound<'_, PyDict>, values: &mut MessageValues) -> bool {
        values.clear();
        let (mut expected, mut unread) = (0, 0);
        for (name, value) in message.iter() {
            let Ok(name) = name.cast_exact::<PyString>() else { return false };
            let found = match self.0.get(expected) {
                // Messages mostly name their fields in one order.
                Some((own, _)) if own.as_ptr() == name.as_ptr() => Some(expected),
                _ => match self.find(name) {
                    Ok(found) => found,
                    Err(_) => return false,
                },
            };
            let is_taken = match found {
                Some(found) => {
                    expected = found + 1;
                    read(&value).is_some_and(|value| values.add(&self.0[found].1, value))
                }
                None => match (name.to_str(), length(&value)) {
                    (Ok(name), Some(length)) => {
                        unread += name.len() + length;
                        unread <= UNREAD
                    }
                    _ => false,
                },
            };
            if !is_taken {
                return false;
            }
        }
        true
    }

    /// The position of the field with this name.
    ///
    /// # Errors
    /// A name that is no valid text.
    fn find(&self, name: &Bound<'_, PyString>) -> PyResult<Option<usize>> {
        if let Some(found) = self.0.iter().position(|(own, _)| own.as_ptr() == name.as_ptr()) {
            return Ok(Some(found));
        }
        let name = name.to_str()?;
        Ok(self.0.iter().position(|(_, field)| field.name() == name))
    }
}

/// The value of an object that is exactly a number or a boolean.
#[inline]
fn read(value: &Bound<'_, PyAny>) -> Option<FieldValue> {
    if let Ok(number) = value.cast_exact::<PyFloat>() {
        Some(FieldValue::Float(number.value()))
    } else if let Ok(flag) = value.cast_exact::<PyBool>() {
        Some(FieldValue::Bool(flag.is_true()))
    } else if let Ok(number) = value.cast_exact::<PyInt>() {
        number.extract::<i64>().ok().map(FieldValue::Int)
    } else {
        None
    }
}

/// The approximate length of a value that is not read; `None` if only its text shows whether it has a form.
#[inline]
fn length(value: &Bound<'_, PyAny>) -> Option<usize> {
    if let Ok(text) = value.cast_exact::<PyString>() {
        return text.to_str().ok().map(|text| SHORT + text.len());
    }
    let has_form = value.cast_exact::<PyFloat>().is_ok()
        || value.cast_exact::<PyBool>().is_ok()
        // The interpreter refuses to write integers of many digits.
        || value.cast_exact::<PyInt>().is_ok_and(|number| number.extract::<i64>().is_ok())
        || value.is_none();
    has_form.then_some(SHORT)
}
