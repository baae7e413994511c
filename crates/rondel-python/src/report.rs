//! A verdict.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rondel_event::{Timestamp, Value, Verdict};

use crate::time::seconds;

/// A verdict on a property, copied from its session.
#[pyclass(frozen, module = "rondel")]
pub(crate) struct Report {
    property: String,
    parameters: Vec<(String, Value)>,
    verdict: Verdict,
    time: Timestamp,
    about: Option<Timestamp>,
    is_after: bool,
    step: Option<u64>,
    robustness: Option<f64>,
    severity: Option<String>,
    explanation: Option<String>,
    json: String,
}

impl Report {
    /// Copies a report.
    pub(crate) fn of(report: &rondel_runtime::Report<'_>) -> Report {
        let info = report.property();
        let mut json = Vec::new();
        report.json(&mut json);
        let explanation = report.explanation().map(|found| {
            let mut text = Vec::new();
            found.json(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Report {
            property: info.name.clone(),
            parameters: info.parameters.iter().cloned().zip(report.parameters().iter().cloned()).collect(),
            verdict: report.verdict(),
            time: report.time(),
            about: report.about(),
            is_after: report.is_after(),
            step: report.step(),
            robustness: report.robustness(),
            severity: info.severity.clone(),
            explanation,
            json: String::from_utf8_lossy(&json).into_owned(),
        }
    }
}

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

#[pymethods]
impl Report {
    /// The name of the property.
    #[getter]
    fn property(&self) -> &str {
        &self.property
    }

    /// The parameters of the instance by name; empty without any.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (name, value) in &self.parameters {
            all.set_item(name, object(py, value)?)?;
        }
        Ok(all)
    }

    /// `"satisfied"`, `"violated"` or `"inconclusive"`.
    #[getter]
    fn verdict(&self) -> &'static str {
        self.verdict.as_str()
    }

    /// The time in seconds at which the verdict became certain.
    #[getter]
    fn time(&self) -> f64 {
        seconds(self.time)
    }

    /// The same in nanoseconds.
    #[getter]
    fn time_ns(&self) -> i64 {
        self.time.as_nanos()
    }

    /// The time in seconds that the verdict is about, where that differs; otherwise `None`.
    #[getter]
    fn about(&self) -> Option<f64> {
        self.about.map(seconds)
    }

    /// Whether the verdict is about the open interval after its time.
    #[getter]
    fn is_after(&self) -> bool {
        self.is_after
    }

    /// The number of the message at which it became certain, from 0; `None` if time alone decided it.
    #[getter]
    fn step(&self) -> Option<u64> {
        self.step
    }

    /// The robustness, where it is known.
    #[getter]
    fn robustness(&self) -> Option<f64> {
        self.robustness
    }

    /// The value of the attribute `@severity`.
    #[getter]
    fn severity(&self) -> Option<&str> {
        self.severity.as_deref()
    }

    /// The explanation of a violation: a list of the time points with the values that caused it; `None` without one.
    #[getter]
    fn explanation<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(text) = &self.explanation else { return Ok(None) };
        py.import("json")?.call_method1("loads", (text,)).map(Some)
    }

    /// The verdict as networks publish it.
    fn json(&self) -> &str {
        &self.json
    }

    fn __repr__(&self) -> String {
        format!("<Report {}>", self.json)
    }
}
