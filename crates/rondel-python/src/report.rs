//! A verdict.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rondel_event::{Timestamp, Value};
use rondel_runtime::KeptReport;

use crate::time::seconds;

/// A verdict on a property, independent of its session. Its texts are made when they are read.
#[pyclass(frozen, module = "rondel")]
pub(crate) struct Report(pub(crate) KeptReport);

/// Returns a value as an object of Python; times and durations are seconds.
fn object(py: Python<'_>, value: &Value) -> PyResult<Py<PyAny>> {
    Ok(match value {
        Value::Bool(flag) => flag.into_pyobject(py)?.to_owned().into_any().unbind(),
        Value::Int(number) => number.into_pyobject(py)?.into_any().unbind(),
        Value::Float(number) => number.into_pyobject(py)?.into_any().unbind(),
        Value::Time(time) | Value::Duration(time) => {
            seconds(Timestamp::from_nanos(*time)).into_pyobject(py)?.into_any().unbind()
        }
        Value::String(text) => text.as_ref().into_pyobject(py)?.into_any().unbind(),
    })
}

/// Returns values by their names as a dict.
fn dict<'py, 'v>(
    py: Python<'py>,
    values: impl Iterator<Item = (&'v str, &'v Value)>,
) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for (name, value) in values {
        all.set_item(name, object(py, value)?)?;
    }
    Ok(all)
}

#[pymethods]
impl Report {
    /// The name of the property.
    #[getter]
    fn property(&self) -> &str {
        &self.0.report().property().name
    }

    /// The parameters of the instance by name; empty without any.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = self.0.report();
        dict(py, report.property().parameters.iter().map(String::as_str).zip(report.parameters()))
    }

    /// `"satisfied"`, `"violated"` or `"inconclusive"`.
    #[getter]
    fn verdict(&self) -> &'static str {
        self.0.report().verdict().as_str()
    }

    /// The time in seconds at which the verdict became certain.
    #[getter]
    fn time(&self) -> f64 {
        seconds(self.0.report().time())
    }

    /// The same in nanoseconds.
    #[getter]
    fn time_ns(&self) -> i64 {
        self.0.report().time().as_nanos()
    }

    /// The time in seconds that the verdict is about, where that differs; otherwise `None`.
    #[getter]
    fn about(&self) -> Option<f64> {
        self.0.report().about().map(seconds)
    }

    /// The same in nanoseconds.
    #[getter]
    fn about_ns(&self) -> Option<i64> {
        self.0.report().about().map(Timestamp::as_nanos)
    }

    /// Whether the verdict is about the open interval after its time.
    #[getter]
    fn is_after(&self) -> bool {
        self.0.report().is_after()
    }

    /// The number of the message at which it became certain, from 0; `None` if time alone decided it.
    #[getter]
    fn step(&self) -> Option<u64> {
        self.0.report().step()
    }

    /// The robustness, where it is known.
    #[getter]
    fn robustness(&self) -> Option<f64> {
        self.0.report().robustness()
    }

    /// The value of the attribute `@severity`.
    #[getter]
    fn severity(&self) -> Option<&str> {
        self.0.report().property().severity.as_deref()
    }

    /// The value of the attribute `@requirement`.
    #[getter]
    fn requirement(&self) -> Option<&str> {
        self.0.report().property().requirement.as_deref()
    }

    /// Values of quantified variables for which the property is violated; empty without any.
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        dict(py, self.0.report().values())
    }

    /// The property that mutes this one.
    #[getter]
    fn because_of(&self) -> Option<&str> {
        self.0.report().because_of()
    }

    /// The explanation of a violation: a list of the time points with the values that caused it; `None` without one.
    #[getter]
    fn explanation<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(explanation) = self.0.report().explanation() else { return Ok(None) };
        let mut text = Vec::new();
        explanation.json(&mut text);
        py.import("json")?.call_method1("loads", (String::from_utf8_lossy(&text),)).map(Some)
    }

    /// The verdict as networks publish it.
    fn json(&self) -> String {
        let mut text = Vec::new();
        self.0.report().json(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    }

    fn __repr__(&self) -> String {
        format!("<Report {}>", self.json())
    }
}
