//! The class `Monitor`.

use std::cell::Cell;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use rondel_event::{Timestamp, TopicId};
use rondel_runtime::{Emit, Encoding, Input, Options, Session, SessionPlan, Target, Targets};
use rondel_spec::Spec;

use crate::error::{self, MessageError, SnapshotError};
use crate::notice::Notice;
use crate::outcome::{self, Summary};
use crate::report::Report;
use crate::state::{Shared, State};
use crate::table::{Batch, Reads, TimeColumn};
use crate::values::Fields;
use crate::{json, table, time};

/// The name of a specification that is given as text.
const TEXT: &str = "specification";

/// Rows of a table that are evaluated before signals are handled and other threads may use the monitor.
const ROWS: usize = 16_384;

/// The largest space for a text that a thread keeps.
const KEPT_BYTES: usize = 1 << 20;

thread_local! {
    /// Space for the JSON text of a message.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Checks messages against a specification.
///
/// Several threads may use a monitor; their calls take turns.
#[pyclass(frozen, module = "rondel")]
pub(crate) struct Monitor {
    plan: SessionPlan,
    topics: Targets,
    /// The fields of each topic, where messages need no text.
    fields: Vec<Option<Fields>>,
    names: Vec<String>,
    /// The text of the specification, for pickles.
    text: String,
    settings: Settings,
    state: Shared,
}

/// The settings beside the specification.
#[derive(Clone, Debug)]
struct Settings {
    emit: String,
    explain: bool,
}

impl Monitor {
    fn create(py: Python<'_>, text: &str, settings: Settings, snapshot: Option<&[u8]>) -> PyResult<Monitor> {
        let outcome = py.detach(|| rondel_spec::parse(text));
        let Some(spec) = &outcome.spec else {
            return Err(error::specification(py, TEXT, text, &outcome.diagnostics));
        };
        if spec.properties.is_empty() {
            return Err(error::unchecked(TEXT, text, &outcome.diagnostics));
        }
        let options = options(spec, &settings)?;
        let plan = py.detach(|| SessionPlan::new(spec, options));
        let plan = plan.map_err(|_| error::refused(py, TEXT, text, spec, &outcome.diagnostics))?;
        let mut session = py.detach(|| match snapshot {
            Some(bytes) => plan.restore(bytes, "").map_err(|error| SnapshotError::new_err(error.to_string())),
            None => plan.start().map_err(|error| error::SpecificationError::new_err(error.to_string())),
        })?;
        outcome::keep_restarted(&mut session);
        let topics = Targets::new(&plan);
        let all = (0..spec.topics.len() as u32).map(TopicId);
        let fields = all.map(|topic| Fields::of(py, &session, topic)).collect();
        let names = plan.properties().iter().map(|property| property.name.clone()).collect();
        let (text, state) = (text.to_owned(), Shared::new(session));
        Ok(Monitor { topics, fields, names, text, settings, state, plan })
    }

    /// Returns the topic with this name or address, and the number of the name where the address has parameters.
    #[inline]
    fn topic(&self, name: &str) -> PyResult<Target> {
        self.topics.find(&self.plan, name).map_err(|error| error::value(error.to_string()))
    }

    /// Calls `work` with the session, and returns the reports that are there then.
    fn with(&self, py: Python<'_>, work: impl FnOnce(&mut Session) -> PyResult<()>) -> PyResult<Vec<Report>> {
        let mut state = self.state.lock(py)?;
        work(state.running()?)?;
        Ok(state.take_reports())
    }

    /// Evaluates a message of numbers, and returns its reports; `None` if it must be written as text.
    ///
    /// Neither this nor the evaluation of any other single message releases the interpreter: that takes longer than most
    /// evaluations. Batches of rows release it.
    #[inline]
    fn push_values(
        &self,
        target: Target,
        time: Timestamp,
        message: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Vec<Report>>> {
        let Some(Some(fields)) = self.fields.get(target.topic.index()) else { return Ok(None) };
        let Ok(message) = message.cast_exact::<PyDict>() else { return Ok(None) };
        let mut state = self.state.lock(message.py())?;
        let (session, values) = state.running_with_values()?;
        if !fields.read(message, values) || !session.push_values(target.topic, target.stamp(time), values) {
            return Ok(None);
        }
        session.flush();
        Ok(Some(state.take_reports()))
    }

    /// Evaluates the rows of a batch, and keeps their reports in the state.
    fn push_batch(&self, py: Python<'_>, target: Target, batch: &Batch) -> PyResult<()> {
        let mut row = Vec::new();
        for start in (0..batch.rows()).step_by(ROWS) {
            let rows = start..batch.rows().min(start + ROWS);
            self.state.with_detached(py, |state: &mut State| {
                for i in rows {
                    row.clear();
                    batch.write(i, &mut row);
                    let session = state.running()?;
                    let pushed = session.push(target.topic, target.stamp(batch.time(i)), &row);
                    if session.has_reports() {
                        state.keep_reports();
                    }
                    pushed.map_err(|error| {
                        MessageError::new_err(format!("row {}: {error}", batch.number(i)))
                    })?;
                }
                Ok(())
            })?;
            py.check_signals()?;
        }
        Ok(())
    }
}

/// The options of a session: messages are rows, in which a number may be NaN, and each waits for nothing.
fn options(spec: &Spec, settings: &Settings) -> PyResult<Options> {
    let emit = match settings.emit.as_str() {
        "change" => Emit::Change,
        "every" => Emit::Every,
        "violations" => Emit::Violations,
        other => {
            return Err(error::value(format!(
                "`emit` is '{other}': write \"change\", \"every\" or \"violations\""
            )));
        }
    };
    let input = Input { encoding: Encoding::Row, ..Input::default() };
    Ok(Options {
        inputs: vec![input; spec.topics.len()],
        emit,
        explain: settings.explain,
        ..Options::immediate()
    })
}

#[pymethods]
impl Monitor {
    #[new]
    #[pyo3(signature = (specification, *, emit = "change", explain = false))]
    fn new(py: Python<'_>, specification: &str, emit: &str, explain: bool) -> PyResult<Monitor> {
        Monitor::create(py, specification, Settings { emit: emit.to_owned(), explain }, None)
    }

    /// Continues from a snapshot of a monitor with the same specification and settings.
    #[staticmethod]
    #[pyo3(signature = (specification, snapshot, *, emit = "change", explain = false))]
    fn restore(
        py: Python<'_>,
        specification: &str,
        snapshot: &[u8],
        emit: &str,
        explain: bool,
    ) -> PyResult<Monitor> {
        let snapshot = snapshot.to_vec();
        Monitor::create(py, specification, Settings { emit: emit.to_owned(), explain }, Some(&snapshot))
    }

    /// Evaluates a message, and returns the verdicts that it and the time that has passed decide.
    #[pyo3(signature = (topic, message, time = None, *, time_ns = None))]
    fn push(
        &self,
        py: Python<'_>,
        topic: &str,
        message: &Bound<'_, PyAny>,
        time: Option<&Bound<'_, PyAny>>,
        time_ns: Option<i64>,
    ) -> PyResult<Vec<Report>> {
        let target = self.topic(topic)?;
        let time = time::read(time, time_ns)?;
        let time = time.ok_or_else(|| error::value("give the time of the message: `time` or `time_ns`"))?;
        if let Some(reports) = self.push_values(target, time, message)? {
            return Ok(reports);
        }
        // Objects of Python may call back while they are written: no lock is held.
        let mut buffer = BUFFER.take();
        buffer.clear();
        if let Ok(text) = message.cast::<PyString>() {
            buffer.extend_from_slice(text.to_str()?.as_bytes());
        } else if let Ok(bytes) = message.cast::<PyBytes>() {
            buffer.extend_from_slice(bytes.as_bytes());
        } else {
            json::write(message, &mut buffer)?;
        }
        let reports = self.with(py, |session| {
            let pushed = session.push(target.topic, target.stamp(time), &buffer);
            session.flush();
            pushed.map_err(|error| MessageError::new_err(error.to_string()))
        });
        if buffer.capacity() <= KEPT_BYTES {
            BUFFER.set(buffer);
        }
        reports
    }

    /// Evaluates the rows of a table: anything with `__arrow_c_stream__`, such as tables of PyArrow, Polars and pandas, or
    /// a dict of columns. `time` names the column with the times in seconds or as timestamps, `time_ns` one with nanoseconds.
    #[pyo3(signature = (topic, table, *, time = None, time_ns = None))]
    fn push_many(
        &self,
        py: Python<'_>,
        topic: &str,
        table: &Bound<'_, PyAny>,
        time: Option<&str>,
        time_ns: Option<&str>,
    ) -> PyResult<Vec<Report>> {
        let target = self.topic(topic)?;
        let time = match (time, time_ns) {
            (Some(_), Some(_)) => return Err(error::value("give `time` or `time_ns`, not both")),
            (_, Some(name)) => TimeColumn { name: name.to_owned(), is_nanoseconds: true },
            (name, None) => TimeColumn { name: name.unwrap_or("time").to_owned(), is_nanoseconds: false },
        };
        let spec = self.plan.specification();
        let at = target.topic.index();
        let (topic, projection) = (&spec.spec.topics[at], &spec.program.projections()[at]);
        for batch in table::read(table, time, &Reads::new(topic, projection))? {
            // Reading it may call Python, and that this monitor: it is not locked.
            self.push_batch(py, target, &batch?)?;
        }
        self.with(py, |session| {
            session.flush();
            Ok(())
        })
    }

    /// Lets time pass without a message.
    #[pyo3(signature = (time = None, *, time_ns = None))]
    fn advance(
        &self,
        py: Python<'_>,
        time: Option<&Bound<'_, PyAny>>,
        time_ns: Option<i64>,
    ) -> PyResult<Vec<Report>> {
        let time = time::read(time, time_ns)?.ok_or_else(|| error::value("give `time` or `time_ns`"))?;
        self.with(py, |session| {
            session.advance(time);
            Ok(())
        })
    }

    /// Ends the trace: what only later messages could decide is inconclusive.
    fn finish(&self, py: Python<'_>) -> PyResult<Vec<Report>> {
        let mut state = self.state.lock(py)?;
        state.finish()?;
        Ok(state.take_reports())
    }

    /// The time in seconds at which the next verdict may change without a message; `None` if none can.
    #[getter]
    fn deadline(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        Ok(self.state.lock(py)?.session()?.deadline().map(time::seconds))
    }

    /// Counts of messages, and the verdicts of each property.
    fn summary(&self, py: Python<'_>) -> PyResult<Summary> {
        let mut state = self.state.lock(py)?;
        let session = state.session()?;
        session.flush();
        Summary::of(py, session, self.plan.properties())
    }

    /// Takes the notices since the last call: times that step back, limits that were reached, messages that were refused.
    fn notices(&self, py: Python<'_>) -> PyResult<Vec<Notice>> {
        let mut state = self.state.lock(py)?;
        let session = state.session()?;
        session.flush();
        let mut all: Vec<Notice> = session.losses().into_iter().map(Notice::of).collect();
        all.extend(session.notices().map(Notice::of));
        Ok(all)
    }

    /// The whole state as bytes. Take it before `finish`.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut state = self.state.lock(py)?;
        Ok(PyBytes::new(py, &state.running()?.snapshot("")))
    }

    /// Frees the state. Later calls raise `ValueError`.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.state.close(py)
    }

    /// The names of the properties.
    #[getter]
    fn properties(&self) -> Vec<String> {
        self.names.clone()
    }

    /// The names of the topics.
    #[getter]
    fn topics(&self) -> Vec<String> {
        self.plan.specification().spec.topics.iter().map(|topic| topic.name.clone()).collect()
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    /// Pickles and copies continue from a snapshot.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let py = slf.py();
        let monitor = slf.get();
        let call = py.import("rondel")?.getattr("_restore")?;
        let Settings { emit, explain } = &monitor.settings;
        let arguments = (monitor.text.as_str(), monitor.snapshot(py)?, emit.as_str(), *explain);
        Ok((call, arguments.into_pyobject(py)?.into_any()))
    }

    fn __repr__(&self) -> String {
        format!("<Monitor of {}>", self.names.join(", "))
    }
}
