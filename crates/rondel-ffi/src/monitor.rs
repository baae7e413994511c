//! Monitors: opening, messages, time, the summary.

use std::ffi::{c_char, c_void};
use std::sync::{Mutex, MutexGuard};

use rondel_event::{NameId, Timestamp, TopicId};
use rondel_runtime::{Session, SessionPlan, Stamp, StartError, Target, Targets};
use serde_json::json;

use crate::arguments::{Out, payload, reference, slice, text};
use crate::options::{self, Options};
use crate::reports::{Notices, Reports};
use crate::specification::Specification;
use crate::status::{
    Failure, RONDEL_END, RONDEL_ERROR_FINISHED, RONDEL_ERROR_MESSAGE, RONDEL_ERROR_SPECIFICATION, RONDEL_OK,
    Status, guard,
};
use crate::text::{Text, terminated};

/// [`Topic::name`] of a topic whose address has no parameters.
pub const RONDEL_NO_NAME: u32 = u32::MAX;

/// A topic of a monitor, from [`rondel_monitor_topic`].
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Its position in the specification.
    pub index: u32,
    /// The number of the name, where the address of the topic has parameters; otherwise [`RONDEL_NO_NAME`].
    pub name: u32,
}

/// A message of a batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Its time in nanoseconds.
    pub time: i64,
    /// Its payload.
    pub payload: *const c_void,
    /// The length of the payload in bytes, or [`RONDEL_NUL_TERMINATED`](crate::RONDEL_NUL_TERMINATED).
    pub length: usize,
    /// Its topic.
    pub topic: Topic,
}

/// A text with a NUL at its end, as C reads it.
type CText = Box<[u8]>;

/// Checks messages against a specification. Several threads may use it; their calls take turns.
pub struct Monitor {
    pub(crate) plan: SessionPlan,
    targets: Targets,
    /// The names and severities of the properties.
    pub(crate) names: Vec<(CText, CText)>,
    state: Mutex<State>,
}

/// The session of a monitor, and what C reads of it.
pub(crate) struct State {
    pub(crate) session: Session,
    is_finished: bool,
    pub(crate) reports: Reports,
    pub(crate) notices: Notices,
    /// Space for a row of columns.
    pub(crate) row: Vec<u8>,
    /// The summary that was returned last.
    summary: Box<[u8]>,
}

impl State {
    /// The state, before the end of the trace.
    ///
    /// # Errors
    /// The trace has ended.
    pub(crate) fn running(&mut self) -> Result<&mut State, Failure> {
        if self.is_finished {
            let text =
                "the monitor is finished: open a new one; reports, notices and the summary are still there";
            return Err(Failure::new(RONDEL_ERROR_FINISHED, text));
        }
        Ok(self)
    }
}

/// Returns the stamp of a message, which arrives at the time at which it is sent.
pub(crate) fn stamp(target: Target, time: i64) -> Stamp {
    let time = Timestamp::from_nanos(time);
    Stamp { arrival: Some(time), ..target.stamp(time) }
}

impl Monitor {
    /// Opens a monitor with a session that `start` starts.
    ///
    /// # Safety
    /// See [pointers](crate#pointers).
    pub(crate) unsafe fn open(
        specification: *const Specification,
        options: *const Options,
        start: impl FnOnce(&SessionPlan) -> Result<Session, Failure>,
    ) -> Result<*mut Monitor, Failure> {
        // SAFETY: the contract of this function.
        let spec = unsafe { reference("specification", specification)? }.spec()?;
        // SAFETY: the contract of this function.
        let options = unsafe { options::read(spec, options)? };
        let plan = SessionPlan::new(spec, options);
        let plan = plan.map_err(|error| Failure::new(RONDEL_ERROR_SPECIFICATION, error.to_string()))?;
        let session = start(&plan)?;
        let names = plan.properties().iter().map(|property| {
            (terminated(&property.name), terminated(property.severity.as_deref().unwrap_or_default()))
        });
        let monitor = Monitor {
            names: names.collect(),
            targets: Targets::new(&plan),
            plan,
            state: Mutex::new(State {
                session,
                is_finished: false,
                reports: Reports::default(),
                notices: Notices::default(),
                row: Vec::new(),
                summary: Box::default(),
            }),
        };
        Ok(Box::into_raw(Box::new(monitor)))
    }

    /// Waits for the calls of other threads.
    ///
    /// # Errors
    /// An earlier call has panicked while it held the state.
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, State>, Failure> {
        self.state.lock().map_err(|_| Failure::poisoned())
    }

    /// Checks a topic.
    ///
    /// # Errors
    /// The topic is not one of this monitor.
    pub(crate) fn target(&self, topic: Topic) -> Result<Target, Failure> {
        let id = TopicId(topic.index);
        let is_there = self.plan.input(id).is_some();
        match (self.plan.names(id).is_some(), topic.name) {
            (false, RONDEL_NO_NAME) if is_there => Ok(Target { topic: id, name: None }),
            (true, name) if is_there && name != RONDEL_NO_NAME => {
                Ok(Target { topic: id, name: Some(NameId(name)) })
            }
            _ => Err(Failure::argument("`topic` is not of this monitor: take it from rondel_monitor_topic")),
        }
    }
}

/// Opens a monitor of a specification without mistakes.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_monitor_open(
    specification: *const Specification,
    options: *const Options,
    out: *mut *mut Monitor,
) -> Status {
    guard(|| {
        // SAFETY: the contract of this function.
        let out = unsafe { Out::new("out", out)? };
        out.set(std::ptr::null_mut());
        let start = |plan: &SessionPlan| plan.start().map_err(|error| not_started(&error));
        // SAFETY: the contract of this function.
        out.set(unsafe { Monitor::open(specification, options, start)? });
        Ok(RONDEL_OK)
    })
}

/// The error of a specification that cannot be monitored.
pub(crate) fn not_started(error: &StartError) -> Failure {
    Failure::new(RONDEL_ERROR_SPECIFICATION, error.to_string())
}

/// Frees a monitor. Null is allowed.
///
/// # Safety
/// See [pointers](crate#pointers). No other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_monitor_free(monitor: *mut Monitor) {
    guard(|| {
        if !monitor.is_null() {
            // SAFETY: the contract of this function: it comes from `Box::into_raw`.
            drop(unsafe { Box::from_raw(monitor) });
        }
        Ok(RONDEL_OK)
    });
}

/// Finds a topic by its name or address, or by a name that matches an address with parameters.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_monitor_topic(
    monitor: *const Monitor,
    name: *const c_char,
    length: usize,
    out: *mut Topic,
) -> Status {
    guard(|| {
        // SAFETY: the contract of this function.
        let (monitor, name, out) =
            unsafe { (reference("monitor", monitor)?, text("name", name, length)?, Out::new("out", out)?) };
        let found = monitor.targets.find(&monitor.plan, name);
        let Target { topic, name } = found.map_err(|error| Failure::argument(error.to_string()))?;
        out.set(Topic { index: topic.0, name: name.map_or(RONDEL_NO_NAME, |name| name.0) });
        Ok(RONDEL_OK)
    })
}

/// Evaluates a message.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_monitor_push(
    monitor: *const Monitor,
    topic: Topic,
    time: i64,
    message: *const c_void,
    length: usize,
) -> Status {
    guard(|| {
        // SAFETY: the contract of this function.
        let (monitor, message) =
            unsafe { (reference("monitor", monitor)?, payload("message", message, length)?) };
        let target = monitor.target(topic)?;
        let mut state = monitor.lock()?;
        let session = &mut state.running()?.session;
        let pushed = session.push(target.topic, stamp(target, time), message);
        session.flush();
        pushed.map_err(|error| Failure::new(RONDEL_ERROR_MESSAGE, error.to_string()))?;
        Ok(RONDEL_OK)
    })
}

/// Evaluates messages in order. Those that cannot be read are counted in `refused`, which may be null; the others are
/// evaluated.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_monitor_push_batch(
    monitor: *const Monitor,
    messages: *const Message,
    count: usize,
    refused: *mut usize,
) -> Status {
    guard(|| {
        // SAFETY: the contract of this function.
        let mut refusals = unsafe { Refusals::new(refused)? };
        // SAFETY: the contract of this function.
        let (monitor, messages) =
            unsafe { (reference("monitor", monitor)?, slice("messages", messages, count)?) };
        let read = |message: &Message| {
            // SAFETY: the contract of this function.
            let bytes = unsafe { payload("payload", message.payload, message.length)? };
            Ok::<_, Failure>((monitor.target(message.topic)?, bytes))
        };
        // A wrong argument must not leave half a batch behind.
        for (i, message) in messages.iter().enumerate() {
            read(message).map_err(|error| Failure::argument(format!("message {i}: {}", error.text)))?;
        }
        let mut state = monitor.lock()?;
        let session = &mut state.running()?.session;
        for (i, message) in messages.iter().enumerate() {
            let (target, bytes) = read(message)?;
            if let Err(error) = session.push(target.topic, stamp(target, message.time), bytes) {
                refusals.add(|| format!("message {i}: {error}"));
            }
        }
        session.flush();
        refusals.status()
    })
}

/// Messages of a batch that cannot be read.
pub(crate) struct Refusals {
    count: usize,
    first: Option<String>,
    out: Option<Out<usize>>,
}

impl Refusals {
    /// Counts into this place, unless it is null.
    ///
    /// # Safety
    /// See [pointers](crate#pointers).
    pub(crate) unsafe fn new(out: *mut usize) -> Result<Refusals, Failure> {
        // SAFETY: the contract of this function.
        let out = if out.is_null() { None } else { Some(unsafe { Out::new("refused", out)? }) };
        if let Some(out) = &out {
            out.set(0);
        }
        Ok(Refusals { count: 0, first: None, out })
    }

    /// Adds a message, with the sentence about the first one.
    pub(crate) fn add(&mut self, sentence: impl FnOnce() -> String) {
        self.count += 1;
        self.first.get_or_insert_with(sentence);
    }

    /// The status of the batch.
    pub(crate) fn status(self) -> Result<Status, Failure> {
        if let Some(out) = &self.out {
            out.set(self.count);
        }
        match (self.first, self.count) {
            (None, _) => Ok(RONDEL_OK),
            (Some(first), 1) => Err(Failure::new(RONDEL_ERROR_MESSAGE, first)),
            (Some(first), count) => {
                let text = format!("{count} messages cannot be read; the first is {first}");
                Err(Failure::new(RONDEL_ERROR_MESSAGE, text))
            }
        }
    }
}

/// Lets time pass without a message.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_monitor_advance(monitor: *const Monitor, time: i64) -> Status {
    guard(|| {
        // SAFETY: the contract of this function.
        let monitor = unsafe { reference("monitor", monitor)? };
        monitor.lock()?.running()?.session.advance(Timestamp::from_nanos(time));
        Ok(RONDEL_OK)
    })
}

/// Ends the trace. A second call does nothing.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_monitor_finish(monitor: *const Monitor) -> Status {
    guard(|| {
        // SAFETY: the contract of this function.
        let monitor = unsafe { reference("monitor", monitor)? };
        let mut state = monitor.lock()?;
        state.session.finish();
        state.is_finished = true;
        Ok(RONDEL_OK)
    })
}

/// Returns the time at which the next verdict may change without a message; [`RONDEL_END`] if none can.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_monitor_deadline(monitor: *const Monitor, out: *mut i64) -> Status {
    guard(|| {
        // SAFETY: the contract of this function.
        let (monitor, out) = unsafe { (reference("monitor", monitor)?, Out::new("out", out)?) };
        let state = monitor.lock()?;
        let Some(deadline) = state.session.deadline() else { return Ok(RONDEL_END) };
        out.set(deadline.as_nanos());
        Ok(RONDEL_OK)
    })
}

/// Returns the counts of messages and the verdicts of each property as a JSON object, valid until the next call with this
/// monitor.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_monitor_summary(monitor: *const Monitor, out: *mut Text) -> Status {
    guard(|| {
        // SAFETY: the contract of this function.
        let (monitor, out) = unsafe { (reference("monitor", monitor)?, Out::new("out", out)?) };
        let mut state = monitor.lock()?;
        state.summary = terminated(&summary(&monitor.plan, &state.session));
        out.set(Text::before_nul(&state.summary));
        Ok(RONDEL_OK)
    })
}

/// Times of the summary in seconds.
fn seconds(time: Timestamp) -> f64 {
    time.as_nanos() as f64 / 1e9
}

fn summary(plan: &SessionPlan, session: &Session) -> String {
    let summary = session.summary();
    let omitted = summary.omitted();
    let mut text = |time: Timestamp| format!("{} s", seconds(time));
    let omitted: Vec<String> = omitted.iter().map(|omission| omission.sentence(&mut text)).collect();
    let properties = plan.properties().iter().zip(&summary.properties).map(|(info, property)| {
        json!({
            "name": info.name,
            "verdict": property.outcome().as_str(),
            "violations": property.violations,
            "first_violation": property.first.as_ref().map(|first| seconds(first.time)),
            "least_robustness": property.least_robustness,
        })
    });
    let properties: Vec<serde_json::Value> = properties.collect();
    json!({
        "checked": session.events(),
        "out_of_order": summary.backwards,
        "is_violated": summary.is_violated(),
        "is_inconclusive": summary.is_inconclusive(false),
        "not_evaluated": omitted,
        "properties": properties,
    })
    .to_string()
}

#[cfg(test)]
#[allow(clippy::panic, clippy::unwrap_used)]
mod tests {
    use std::ptr::{null, null_mut};

    use super::*;
    use crate::specification::{rondel_specification_compile, rondel_specification_free};
    use crate::status::RONDEL_ERROR_PANIC;

    #[test]
    fn a_monitor_that_panicked_refuses_calls_and_can_be_freed() {
        let text = "topic t { x: int }  property p = t.x > 0";
        let (mut specification, mut monitor) = (null_mut(), null_mut());
        // SAFETY: valid arguments; each handle is freed once.
        unsafe {
            let compiled =
                rondel_specification_compile(text.as_ptr().cast(), text.len(), &raw mut specification);
            assert_eq!(compiled, RONDEL_OK);
            assert_eq!(rondel_monitor_open(specification, null(), &raw mut monitor), RONDEL_OK);
            rondel_specification_free(specification);
            let of: &Monitor = &*monitor;
            let panicked = guard(|| {
                let _state = of.lock()?;
                panic!("of a test");
            });
            assert_eq!(panicked, RONDEL_ERROR_PANIC);
            assert_eq!(rondel_monitor_advance(monitor, 1), RONDEL_ERROR_PANIC);
            assert_eq!(rondel_monitor_finish(monitor), RONDEL_ERROR_PANIC);
            rondel_monitor_free(monitor);
        }
    }
}
