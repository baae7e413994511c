//! Exceptions.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use rondel_columns::{ColumnsError, ErrorKind};
use rondel_runtime::Specification;
use rondel_spec::{Diagnostic, Severity, Spec};

create_exception!(rondel, RondelError, PyException, "Base class of the errors of this package.");
create_exception!(
    rondel,
    SpecificationError,
    RondelError,
    "A specification has mistakes. The text shows each with its place; `diagnostics` lists them."
);
create_exception!(
    rondel,
    MessageError,
    RondelError,
    "A message cannot be read. It is counted; verdicts that depend on it are inconclusive."
);
create_exception!(
    rondel,
    SnapshotError,
    RondelError,
    "A snapshot is damaged, of another version, or of another specification."
);

/// Adds the exceptions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("RondelError", py.get_type::<RondelError>())?;
    let specification_error = py.get_type::<SpecificationError>();
    // Of errors without places.
    specification_error.setattr("diagnostics", PyList::empty(py))?;
    module.add("SpecificationError", specification_error)?;
    module.add("MessageError", py.get_type::<MessageError>())?;
    module.add("SnapshotError", py.get_type::<SnapshotError>())
}

/// The exception for a specification with mistakes. `name` names its source.
pub(crate) fn specification(py: Python<'_>, name: &str, text: &str, found: &[Diagnostic]) -> PyErr {
    let shown: Vec<String> = found.iter().map(|found| found.render(name, text, false)).collect();
    let error = SpecificationError::new_err(shown.join("\n"));
    let all = found.iter().filter(|found| found.severity == Severity::Error);
    // Python counts characters.
    let index = |byte: usize| text.get(..byte).map_or(byte, |before| before.chars().count());
    let entries = all.map(|found| {
        let (start, end) = (index(found.span.start), index(found.span.end));
        (found.code.to_string(), found.message.clone(), start, end, found.help.clone())
    });
    // The text is there in any case.
    if let Ok(list) = PyList::new(py, entries.collect::<Vec<_>>()) {
        let _ = error.value(py).setattr("diagnostics", list);
    }
    error
}

/// The exception for a specification with properties that cannot be monitored, where parsing has found these diagnostics.
pub(crate) fn refused(py: Python<'_>, name: &str, text: &str, spec: &Spec, found: &[Diagnostic]) -> PyErr {
    let mut found = found.to_vec();
    let mut further = Vec::new();
    for refusal in Specification::refusals(spec) {
        match refusal.diagnose(spec) {
            Some(diagnostic) if found.contains(&diagnostic) => {}
            Some(diagnostic) => found.push(diagnostic),
            None => further.push(refusal.to_string()),
        }
    }
    if !found.iter().any(Diagnostic::is_error) {
        return SpecificationError::new_err(further.join("\n"));
    }
    found.sort_by_key(|diagnostic| diagnostic.span);
    specification(py, name, text, &found)
}

/// The exception for a specification without a property, with the text of the command.
pub(crate) fn unchecked(name: &str, text: &str, found: &[Diagnostic]) -> PyErr {
    let mut shown: Vec<String> =
        found.iter().map(|found| found.render(name, text, false).trim_end().to_owned()).collect();
    shown.push("error: the specification has no property, so there is nothing to check".to_owned());
    SpecificationError::new_err(shown.join("\n"))
}

/// The exception for a wrong argument.
pub(crate) fn value(text: impl Into<String>) -> PyErr {
    PyValueError::new_err(text.into())
}

/// The exception for columns that cannot be read.
pub(crate) fn columns(error: ColumnsError) -> PyErr {
    let ColumnsError { kind, text } = error;
    match kind {
        ErrorKind::Value => value(text),
        ErrorKind::NoTimes => value(format!("{text}: name it by `time` or `time_ns`")),
        ErrorKind::Type => PyTypeError::new_err(text),
        ErrorKind::IntegerTimes => {
            PyTypeError::new_err(format!("{text}: convert it to float seconds, or name it by `time_ns`"))
        }
        ErrorKind::OtherTimes => PyTypeError::new_err(format!(
            "{text}: use float seconds, timestamps, or 64-bit integers of nanoseconds by `time_ns`"
        )),
        ErrorKind::NoIntegers => {
            PyTypeError::new_err(format!("{text}: convert it to integers, in pandas by `astype(\"Int64\")`"))
        }
    }
}

/// The exception for a monitor that was closed.
pub(crate) fn closed() -> PyErr {
    value("the monitor is closed: make a new one, or restore one from a snapshot")
}

/// The exception for a monitor in which a call has panicked.
pub(crate) fn broken() -> PyErr {
    PyRuntimeError::new_err(
        "an earlier call ended by an internal error (a panic), and the state is incomplete: make a new monitor, or \
         restore one from a snapshot",
    )
}

/// The exception for a monitor whose trace has ended.
pub(crate) fn finished() -> PyErr {
    value("the monitor is finished: make a new one; `summary` and `notices` still work")
}
