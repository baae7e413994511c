//! The acting thread, and the threads of programs and calls.

use std::io;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rondel_event::Value as EventValue;
use rondel_net::adapter::Publisher;
use rondel_net::calling::ServiceClient;
use rondel_runtime::{Clock, Emit, PropertyInfo};
use serde_json::{Map, Value, json};

use super::groups::Groups;
use super::program::{Ended, Invocation};
use super::queue::{Counters, Kind, Queue, Record};
use super::state::{ActionHandle, ActionSummary};
use super::{Act, ActionFeed, ActionSettings, CallAct, Facts, Form, Placeholder, PublishAct, RunAct};
use crate::schemas::written::write_message;
use crate::sinks::audit::Audit;
use crate::sinks::audit::line::time_text;
use crate::sinks::silenced::Silenced;
use crate::{say, warn};

/// Part of the time limit at the end that is reserved for ending programs.
const STOP: Duration = Duration::from_millis(800);
/// Minimum interval between two lines about an action.
const AGAIN: Duration = Duration::from_secs(10);

/// The target of an action.
pub enum Target {
    /// The publisher of a message.
    Publisher(Arc<dyn Publisher>),
    /// The client of a service.
    Service(Box<dyn ServiceClient>),
    /// A program, which needs nothing.
    Program,
}

/// Everything that actions need to start.
pub struct Start<'s> {
    /// The actions.
    pub settings: &'s [ActionSettings],
    /// The target of each.
    pub targets: Vec<Target>,
    /// The properties.
    pub properties: &'s [PropertyInfo],
    /// The verdicts that are emitted.
    pub emit: Emit,
    /// Clock of the limits.
    pub clock: Arc<dyn Clock>,
    /// Silences of operators.
    pub silenced: Silenced,
    /// The audit of the run.
    pub audit: Option<Arc<Audit>>,
    /// Maximum number of programs at once.
    pub programs: usize,
}

/// The actions of a run.
pub struct Actions {
    handle: ActionHandle,
    groups: Groups,
    thread: Option<JoinHandle<()>>,
    done: Receiver<()>,
}

impl Actions {
    /// Starts the acting thread, and returns the feed of the evaluating one.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(start: Start<'_>) -> io::Result<(Actions, ActionFeed)> {
        let Start { settings, targets, properties, emit, clock, silenced, audit, programs } = start;
        let queue = Arc::new(Queue::new(programs));
        let handle =
            ActionHandle::new(settings.iter().map(ActionSettings::name).collect(), Arc::clone(&queue));
        let feed = ActionFeed::new(settings, properties, emit, handle.clone(), clock, silenced);
        let ready = |(action, target): (&ActionSettings, Target)| Ready {
            name: action.name(),
            act: action.act.clone(),
            target,
            lines: Mutex::default(),
        };
        let groups = Groups::of_run();
        let acting = Arc::new(Acting {
            groups: groups.clone(),
            ready: settings.iter().zip(targets).map(ready).collect(),
            counters: handle.counters(),
            queue,
            audit,
        });
        let (finished, done) = mpsc::channel();
        let run = move || {
            acting.run();
            // The receiver is gone if the end took too long.
            _ = finished.send(());
        };
        let thread = thread::Builder::new().name("actions".into()).spawn(run)?;
        Ok((Actions { handle, groups, thread: Some(thread), done }, feed))
    }

    /// The account so far.
    pub fn handle(&self) -> ActionHandle {
        self.handle.clone()
    }

    /// Gives the actions that wait and last up to `limit` to be done, and ends the programs that still run then.
    pub fn end(mut self, limit: Duration) -> ActionSummary {
        let now = Instant::now();
        self.handle.queue().end_at(now + limit.saturating_sub(STOP));
        if self.done.recv_timeout(limit).is_ok()
            && let Some(thread) = self.thread.take()
        {
            // A panic of the thread has been reported.
            _ = thread.join();
        }
        // A program that was not ended in time.
        self.groups.end();
        self.handle.summary()
    }
}

impl Drop for Actions {
    /// Ends the thread also if the run does not start.
    fn drop(&mut self) {
        self.handle.queue().end_at(Instant::now());
    }
}

/// An action with its target.
struct Ready {
    name: String,
    act: Act,
    target: Target,
    lines: Mutex<Lines>,
}

/// Lines about an action: at most one in ten seconds.
#[derive(Debug, Default)]
struct Lines {
    last: Option<Instant>,
    suppressed: u64,
}

impl Lines {
    /// Returns the line with the number of suppressed ones, if it is time for one.
    fn line(&mut self, text: &str, now: Instant) -> Option<String> {
        if self.last.is_some_and(|last| now.duration_since(last) < AGAIN) {
            self.suppressed += 1;
            return None;
        }
        self.last = Some(now);
        Some(match std::mem::take(&mut self.suppressed) {
            0 => text.to_owned(),
            suppressed => format!("{text} (and {suppressed} times before)"),
        })
    }
}

/// The state that the acting thread shares with those of programs and calls.
struct Acting {
    ready: Vec<Ready>,
    counters: Arc<[Counters]>,
    queue: Arc<Queue>,
    groups: Groups,
    audit: Option<Arc<Audit>>,
}

/// A place among the actions that last, given back on drop.
struct Slot {
    queue: Arc<Queue>,
    kind: Kind,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.queue.done(self.kind);
    }
}

/// The facts of a record.
struct RecordFacts<'r> {
    record: &'r Record,
    property: &'r PropertyInfo,
    paths: &'r [String],
}

impl Facts for RecordFacts<'_> {
    fn value(&self, of: &Placeholder) -> Value {
        // Before a fact of this name, which the parameter hides.
        self.parameter(of.name()).map_or_else(|| self.fact(of), json_of)
    }
}

impl RecordFacts<'_> {
    /// The value of a parameter.
    fn parameter(&self, name: &str) -> Option<&EventValue> {
        let position = self.property.parameters.iter().position(|own| own == name)?;
        self.record.parameters.get(position)
    }

    /// The value of a fact of the verdict, or of the explanation.
    fn fact(&self, of: &Placeholder) -> Value {
        let RecordFacts { record, property, paths } = self;
        match of {
            Placeholder::Property => json!(property.name),
            Placeholder::Verdict => json!(record.verdict.as_str()),
            Placeholder::Time => json!(time_text(record.time)),
            Placeholder::Severity => json!(property.severity),
            Placeholder::Robustness => json!(record.robustness),
            Placeholder::Id if record.id.is_empty() => Value::Null,
            Placeholder::Id => json!(String::from_utf8_lossy(&record.id)),
            Placeholder::Named(name) => {
                let path = paths.iter().position(|own| own == name);
                let value = path.and_then(|path| record.values.get(path)?.as_ref());
                value.map_or(Value::Null, json_of)
            }
        }
    }
}

/// Returns a value in JSON; times and durations in seconds.
fn json_of(value: &EventValue) -> Value {
    match value {
        EventValue::Bool(value) => json!(value),
        EventValue::Int(value) => json!(value),
        EventValue::Float(value) => json!(value),
        EventValue::Time(nanos) | EventValue::Duration(nanos) => json!(*nanos as f64 / 1e9),
        EventValue::String(text) => json!(text),
    }
}

impl Acting {
    /// Acts until the run ends.
    fn run(self: Arc<Acting>) {
        while let Some((kind, record)) = self.queue.next() {
            let slot = Slot { queue: Arc::clone(&self.queue), kind };
            if kind == Kind::Publish {
                self.act(&record);
                continue;
            }
            let (acting, record) = (Arc::clone(&self), Arc::new(record));
            let own = Arc::clone(&record);
            let run = move || {
                // Given back also if the thread cannot be started, or panics.
                let _slot = slot;
                acting.act(&own);
            };
            if let Err(error) = thread::Builder::new().name("action".into()).spawn(run) {
                self.ended(&record, Err(format!("cannot start a thread: {error}")));
            }
        }
        for record in self.queue.take_all() {
            Counters::add(&self.counters[record.action as usize].dropped);
        }
        self.queue.wait_idle(Instant::now() + STOP);
    }

    /// Carries out an action, and counts, records and shows its outcome.
    fn act(&self, record: &Record) {
        let ready = &self.ready[record.action as usize];
        let facts = Acting::facts(record);
        let outcome = match (&ready.act, &ready.target) {
            (Act::Publish(act), Target::Publisher(publisher)) => publish(act, &**publisher, &facts),
            (Act::Run(act), _) => self.run_program(act, &facts),
            (Act::Call(act), Target::Service(client)) => self.call(act, &**client, &facts),
            _ => Err("it has no target".to_owned()),
        };
        self.ended(record, outcome);
    }

    fn facts(record: &Record) -> RecordFacts<'_> {
        let Record { property, properties, .. } = record;
        RecordFacts { record, property: properties.property(*property), paths: properties.paths(*property) }
    }

    fn run_program(&self, act: &RunAct, facts: &RecordFacts<'_>) -> Result<Value, String> {
        let invocation = Invocation {
            program: &act.program,
            arguments: act.arguments.iter().map(|argument| argument.text(facts)).collect(),
            variables: variables(facts),
            timeout: act.timeout,
        };
        let finished = invocation.run(&self.groups, || self.queue.end());
        let finished = finished.map_err(|error| format!("the program cannot be started: {error}"))?;
        let how = match finished.how {
            Ended::Exited(status) if status.success() => return Ok(json!({"status": 0})),
            // Such as "exit status: 3" and "signal: 9 (SIGKILL)".
            Ended::Exited(status) => format!("it ended with {status}"),
            Ended::TimedOut => format!("it was ended after {} s", act.timeout.as_secs_f64()),
            Ended::Stopped => "it was ended with the run".to_owned(),
        };
        Err(match finished.output.as_str() {
            "" => how,
            output => format!("{how}; its output: {output}"),
        })
    }

    fn call(
        &self,
        act: &CallAct,
        client: &dyn ServiceClient,
        facts: &RecordFacts<'_>,
    ) -> Result<Value, String> {
        let data = match act.data.as_ref().map(|data| data.render(facts)) {
            None => false,
            Some(Value::Bool(data)) => data,
            Some(other) => return Err(format!("`data` is {other}, and should be true or false")),
        };
        let left = self.queue.end().map(|end| end.saturating_duration_since(Instant::now()));
        let limit = left.map_or(act.timeout, |left| left.min(act.timeout));
        let of = act.service.of;
        let answer = client.call(&of.request(data), limit).map_err(|error| error.to_string())?;
        let response = of.response(&answer).map_err(|why| format!("its response cannot be read: {why}"))?;
        match response.success {
            true => Ok(json!({"success": true, "message": response.message})),
            false => Err(format!("the server reports no success: {}", response.message)),
        }
    }

    /// Counts, records and shows the outcome of an action.
    fn ended(&self, record: &Record, outcome: Result<Value, String>) {
        let ready = &self.ready[record.action as usize];
        let (own, facts) = (&self.counters[record.action as usize], Acting::facts(record));
        Counters::add(if outcome.is_ok() { &own.done } else { &own.failed });
        if let Some(audit) = &self.audit {
            audit.record("action", &audited(ready, &facts, &outcome));
        }
        let property = &facts.property.name;
        let text = match &outcome {
            Ok(result) if matches!(ready.act, Act::Call(_)) => {
                let message = result["message"].as_str().unwrap_or_default();
                format!("{} on '{property}': the server reports success: {message}", ready.name)
            }
            Ok(_) => return,
            Err(error) => format!("{} on '{property}' failed: {error}", ready.name),
        };
        let line = ready.lines.lock().unwrap_or_else(PoisonError::into_inner).line(&text, Instant::now());
        match (line, outcome.is_ok()) {
            (None, _) => {}
            (Some(line), true) => say(&line),
            (Some(line), false) => warn(&line),
        }
    }
}

/// Publishes a message.
fn publish(act: &PublishAct, publisher: &dyn Publisher, facts: &RecordFacts<'_>) -> Result<Value, String> {
    let message = act.message.render(facts);
    let payload = match &act.form {
        Form::Json => message.to_string().into_bytes(),
        Form::Plain => match message {
            Value::String(text) => text.into_bytes(),
            other => other.to_string().into_bytes(),
        },
        Form::Cdr(schema) => {
            write_message(schema, &message).map_err(|error| format!("the message does not fit: {error}"))?
        }
    };
    publisher.publish(&payload).map_err(|error| error.to_string())?;
    Ok(json!({"bytes": payload.len()}))
}

/// Returns the variables of the environment of a program about a verdict.
fn variables(facts: &RecordFacts<'_>) -> Vec<(String, String)> {
    let text = |value: Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    };
    let mut all: Vec<(String, String)> = [
        ("RONDEL_PROPERTY", Placeholder::Property),
        ("RONDEL_VERDICT", Placeholder::Verdict),
        ("RONDEL_TIME", Placeholder::Time),
        ("RONDEL_SEVERITY", Placeholder::Severity),
        ("RONDEL_ROBUSTNESS", Placeholder::Robustness),
        ("RONDEL_ID", Placeholder::Id),
    ]
    .into_iter()
    .map(|(name, of)| (name.to_owned(), text(facts.fact(&of))))
    .collect();
    for name in &facts.property.parameters {
        let value = text(facts.parameter(name).map_or(Value::Null, json_of));
        all.push((format!("RONDEL_PARAMETER_{}", name.to_ascii_uppercase()), value));
    }
    all
}

/// Returns the members of the record of an action in an audit file.
fn audited(ready: &Ready, facts: &RecordFacts<'_>, outcome: &Result<Value, String>) -> Value {
    let RecordFacts { record, property, .. } = facts;
    let parameters = property.parameters.iter().cloned().zip(record.parameters.iter().map(json_of));
    let mut members = json!({
        "action": ready.name,
        "property": property.name,
        "verdict": record.verdict.as_str(),
        "verdict_time": time_text(record.time),
    });
    // Whether a consumer gets a message shows later, if at all.
    let done = if matches!(ready.act, Act::Publish(_)) { "handed_over" } else { "done" };
    members[done] = json!(outcome.is_ok());
    if !record.parameters.is_empty() {
        members["key"] = Value::Object(parameters.collect::<Map<_, _>>());
    }
    if !record.id.is_empty() {
        members["id"] = facts.fact(&Placeholder::Id);
    }
    match outcome {
        Ok(result) => members["result"] = result.clone(),
        Err(error) => members["error"] = json!(error),
    }
    members
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lines_about_an_action_are_rare() {
        let (mut lines, start) = (Lines::default(), Instant::now());
        let mut line = |seconds| lines.line("failed", start + Duration::from_secs(seconds));
        assert_eq!(line(0).unwrap(), "failed");
        assert_eq!((line(1), line(9)), (None, None));
        assert_eq!(line(10).unwrap(), "failed (and 2 times before)");
        assert_eq!(line(30).unwrap(), "failed");
    }
}
