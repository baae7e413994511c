//! The summary of a session.

use pyo3::prelude::*;
use rondel_event::Verdict;
use rondel_runtime::{PropertyStatistics, Session};

use crate::time::seconds;

/// Counts of messages, and the verdicts of each property.
#[pyclass(frozen, module = "rondel")]
pub(crate) struct Summary {
    summary: rondel_runtime::Summary,
    /// The messages that were evaluated, those before a snapshot included.
    checked: u64,
    /// The names of the properties.
    names: Vec<String>,
}

impl Summary {
    /// The summary of a session of properties with these names.
    pub(crate) fn of(session: &Session, names: Vec<String>) -> Summary {
        Summary { summary: session.summary(), checked: session.events(), names }
    }

    fn all(&self) -> impl Iterator<Item = (&String, &PropertyStatistics)> {
        self.names.iter().zip(&self.summary.properties)
    }
}

#[pymethods]
impl Summary {
    /// The properties, in the order of the specification.
    #[getter]
    fn properties(&self) -> Vec<PropertySummary> {
        self.all().map(|(name, property)| PropertySummary::of(name, property)).collect()
    }

    /// The number of messages that were evaluated.
    #[getter]
    fn checked(&self) -> u64 {
        self.checked
    }

    /// The number of messages with an earlier time than the one before them.
    #[getter]
    fn out_of_order(&self) -> u64 {
        self.summary.backwards
    }

    /// Sentences about messages that were not evaluated, with the reason and the first one.
    #[getter]
    fn not_evaluated(&self) -> Vec<String> {
        let omitted = self.summary.omitted();
        omitted.iter().map(|omission| omission.sentence(&mut |time| format!("{} s", seconds(time)))).collect()
    }

    /// Whether a property was violated.
    #[getter]
    fn is_violated(&self) -> bool {
        self.summary.is_violated()
    }

    /// Whether a verdict is inconclusive at the end.
    #[getter]
    fn is_inconclusive(&self) -> bool {
        self.summary.is_inconclusive(false)
    }

    fn __repr__(&self) -> String {
        let all = self
            .all()
            .map(|(name, property)| format!("{name}: {}", verdict(property).unwrap_or("no verdict")));
        let all: Vec<String> = all.collect();
        format!("<Summary of {} messages: {}>", self.checked, all.join(", "))
    }

    /// A table, for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("rondel._page")?.call_method1("summary", (slf,))
    }
}

/// The verdicts of a property.
#[pyclass(frozen, module = "rondel")]
pub(crate) struct PropertySummary {
    name: String,
    verdict: Option<&'static str>,
    violations: u64,
    first_violation: Option<f64>,
    least_robustness: Option<f64>,
}

fn verdict(property: &PropertyStatistics) -> Option<&'static str> {
    property.verdict().map(Verdict::as_str)
}

impl PropertySummary {
    fn of(name: &str, property: &PropertyStatistics) -> PropertySummary {
        PropertySummary {
            name: name.to_owned(),
            verdict: verdict(property),
            violations: property.violations,
            first_violation: property.first.as_ref().map(|first| seconds(first.time)),
            least_robustness: property.least_robustness,
        }
    }
}

#[pymethods]
impl PropertySummary {
    /// The name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The verdict at the end; `None` if there was none.
    #[getter]
    fn verdict(&self) -> Option<&'static str> {
        self.verdict
    }

    /// The number of times that it became violated.
    #[getter]
    fn violations(&self) -> u64 {
        self.violations
    }

    /// The time in seconds that the first violation is about; `None` without one.
    #[getter]
    fn first_violation(&self) -> Option<f64> {
        self.first_violation
    }

    /// The least robustness; `None` where it is not requested by `@robust`.
    #[getter]
    fn least_robustness(&self) -> Option<f64> {
        self.least_robustness
    }

    fn __repr__(&self) -> String {
        format!(
            "<{}: {}, violated {} times>",
            self.name,
            self.verdict.unwrap_or("no verdict"),
            self.violations
        )
    }
}
