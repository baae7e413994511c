//! The extension module `rondel._native`: monitors for Python, as a thin layer over `rondel-runtime`.
//!
//! Nothing is evaluated in Python. A message that is a `dict` of numbers is read field by field; any other is written as
//! JSON and decoded. Columns of a table are written row by row without the interpreter.

mod error;
mod json;
mod monitor;
mod notice;
mod outcome;
mod report;
mod state;
mod table;
mod time;
mod values;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// Refuses interpreters beside the main one: classes and exceptions of this module exist once in a process.
fn check_interpreter() -> PyResult<()> {
    // SAFETY: this thread is attached to an interpreter, which imports the module.
    let interpreter = unsafe { pyo3::ffi::PyInterpreterState_GetID(pyo3::ffi::PyInterpreterState_Get()) };
    if interpreter == 0 {
        return Ok(());
    }
    Err(PyImportError::new_err("rondel does not support subinterpreters: import it in the main interpreter"))
}

/// The classes and functions of the package.
#[pymodule(gil_used = true)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    check_interpreter()?;
    module.add_class::<monitor::Monitor>()?;
    module.add_class::<report::Report>()?;
    module.add_class::<outcome::Summary>()?;
    module.add_class::<outcome::PropertySummary>()?;
    module.add_class::<notice::Notice>()?;
    error::register(module)?;
    state::register(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
