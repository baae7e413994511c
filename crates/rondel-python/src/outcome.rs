//! The summary of a session.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use rondel_event::{Timestamp, Verdict};
use rondel_runtime::{PropertyInfo, Session, VacuousKind};

use crate::time::seconds;

/// Counts of messages, and the verdicts of each property.
#[pyclass(frozen, module = "rondel")]
pub(crate) struct Summary {
    summary: rondel_runtime::Summary,
    /// The messages that were evaluated, those before a snapshot included.
    checked: u64,
    properties: Vec<Py<PropertySummary>>,
    /// The properties that have not seen the messages before a snapshot.
    restarted: Vec<String>,
}

/// Keeps the names of the properties that restart because the specification was edited, also for later snapshots.
pub(crate) fn keep_restarted(session: &mut Session) {
    let Some(edited) = session.edited() else { return };
    let mut names = restarted(session);
    names.extend(edited.restarted.iter().map(|(name, _)| name.clone()));
    session.attach(names.join("\n").into_bytes());
}

/// The names that were kept; also of properties that are gone, and of some twice.
fn restarted(session: &Session) -> Vec<String> {
    String::from_utf8_lossy(session.attachment()).lines().map(str::to_owned).collect()
}

impl Summary {
    /// The summary of a session with these properties.
    pub(crate) fn of(py: Python<'_>, session: &Session, infos: &[PropertyInfo]) -> PyResult<Summary> {
        let summary = session.summary();
        let all = infos.iter().enumerate();
        let all = all.filter_map(|(i, info)| PropertySummary::of(&summary, i, info));
        let properties = all.map(|property| Py::new(py, property)).collect::<PyResult<Vec<_>>>()?;
        let kept = restarted(session);
        let restarted =
            infos.iter().map(|info| &info.name).filter(|name| kept.contains(name)).cloned().collect();
        Ok(Summary { summary, checked: session.events(), properties, restarted })
    }
}

#[pymethods]
impl Summary {
    /// The properties, in the order of the specification.
    #[getter]
    fn properties(&self, py: Python<'_>) -> Vec<Py<PropertySummary>> {
        self.properties.iter().map(|property| property.clone_ref(py)).collect()
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

    /// The names of the properties that began at a snapshot, because the specification was edited: without the messages
    /// before it, and without their violations.
    #[getter]
    fn restarted(&self) -> Vec<String> {
        self.restarted.clone()
    }

    /// Whether a property was violated.
    #[getter]
    fn is_violated(&self) -> bool {
        self.summary.is_violated()
    }

    /// Whether no property was violated, but one is not decided, or has restarted.
    #[getter]
    fn is_inconclusive(&self) -> bool {
        // A violation before the restart is not known any more.
        !self.is_violated() && (self.summary.is_inconclusive(false) || !self.restarted.is_empty())
    }

    /// Whether every property was decided about all messages, and none violated.
    #[getter]
    fn is_satisfied(&self) -> bool {
        !self.is_violated() && !self.is_inconclusive()
    }

    fn __repr__(&self) -> String {
        let all = self.properties.iter().map(Py::get);
        let all: Vec<String> =
            all.map(|property| format!("{}: {}", property.name, property.verdict)).collect();
        let restarted = if self.restarted.is_empty() {
            String::new()
        } else {
            format!("; restarted: {}", self.restarted.join(", "))
        };
        format!("<Summary of {} messages: {}{restarted}>", self.checked, all.join(", "))
    }

    /// Neither "there is a summary" nor "no violation" would be a safe reading.
    fn __bool__(&self) -> PyResult<bool> {
        Err(PyTypeError::new_err(
            "a summary has no truth value: use is_satisfied, is_violated or is_inconclusive",
        ))
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
    verdict: Verdict,
    violations: u64,
    first_violation: Option<Timestamp>,
    least_robustness: Option<f64>,
    is_asserted: bool,
    is_inconclusive: bool,
    vacuous: Vec<String>,
    requirements: Vec<String>,
}

impl PropertySummary {
    /// The verdicts of the property at this position.
    fn of(
        summary: &rondel_runtime::Summary,
        position: usize,
        info: &PropertyInfo,
    ) -> Option<PropertySummary> {
        let property = summary.properties.get(position)?;
        let verdict = property.outcome();
        let vacuous = summary.vacuous(position);
        let is_idle = vacuous.iter().any(|reason| reason.kind != VacuousKind::Premise);
        let requirements =
            info.attributes.iter().filter(|(name, value)| name == "requirement" && !value.is_empty());
        Some(PropertySummary {
            name: info.name.clone(),
            verdict,
            violations: property.violations,
            first_violation: property.first.as_ref().map(|first| first.time),
            least_robustness: property.least_robustness,
            is_asserted: property.is_asserted,
            is_inconclusive: !property.is_asserted && (verdict == Verdict::Inconclusive || is_idle),
            vacuous: vacuous.into_iter().map(|reason| reason.text).collect(),
            requirements: requirements.map(|(_, value)| value.clone()).collect(),
        })
    }
}

#[pymethods]
impl PropertySummary {
    /// The name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The verdict of all so far: violated if it was once.
    #[getter]
    fn verdict(&self) -> &'static str {
        self.verdict.as_str()
    }

    /// The number of times that it became violated.
    #[getter]
    fn violations(&self) -> u64 {
        self.violations
    }

    /// The time in seconds that the first violation is about; `None` without one.
    #[getter]
    fn first_violation(&self) -> Option<f64> {
        self.first_violation.map(seconds)
    }

    /// The same in nanoseconds.
    #[getter]
    fn first_violation_ns(&self) -> Option<i64> {
        self.first_violation.map(Timestamp::as_nanos)
    }

    /// The least robustness; `None` where it is not requested by `@robust`.
    #[getter]
    fn least_robustness(&self) -> Option<f64> {
        self.least_robustness
    }

    /// Whether asserts decide instead of it.
    #[getter]
    fn is_asserted(&self) -> bool {
        self.is_asserted
    }

    /// Whether it is not decided: its verdict is inconclusive, or a message that it needs never came.
    #[getter]
    fn is_inconclusive(&self) -> bool {
        self.is_inconclusive
    }

    /// Reasons why the verdict would be the same without the system, as sentences; empty if it is meaningful.
    #[getter]
    fn vacuous(&self) -> Vec<String> {
        self.vacuous.clone()
    }

    /// The values of its attributes `@requirement`.
    #[getter]
    fn requirements(&self) -> Vec<String> {
        self.requirements.clone()
    }

    fn __repr__(&self) -> String {
        let vacuous = if self.vacuous.is_empty() { "" } else { ", vacuous" };
        format!("<{}: {}{vacuous}, violated {} times>", self.name, self.verdict, self.violations)
    }
}
