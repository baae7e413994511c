//! Checks of recordings by the library, with the verdicts of `rondel check --format json`, but without a process.

use std::path::Path;
use std::sync::Arc;

use rondel_event::{TimeUnit, TopicId};
use rondel_recording::{TableOptions, open_messages_with};
use rondel_runtime::{
    Emit, Input, ManualClock, Options, Session, SessionPlan, Specification, Stamp, TimeSource,
};

/// Returns the plan of a specification; none if it has errors or cannot be monitored.
pub fn plan(specification: &str, emit: Emit, explain: bool) -> Option<SessionPlan> {
    let specification = Specification::new(rondel_spec::parse(specification).spec?).ok()?;
    let input = Input { time: TimeSource::Source, ..Input::default() };
    let options = Options {
        inputs: vec![input; specification.spec.declared().len()],
        emit,
        explain,
        // The times in the trace set the clock.
        clock: Arc::new(ManualClock::default()),
        largest_message: usize::MAX,
        ..Options::default()
    };
    Some(SessionPlan::of(specification, options))
}

/// Returns the verdicts on a whole trace as JSON lines.
pub fn check(plan: &SessionPlan, trace: &str) -> String {
    let mut session = plan.start().unwrap();
    let mut out = push(&mut session, trace);
    out += &end(session);
    out
}

/// Returns the verdicts on a trace in two parts: the second one is checked by a session that continues from a snapshot.
pub fn check_cut(plan: &SessionPlan, before: &str, after: &str) -> String {
    let mut session = plan.start().unwrap();
    let mut out = push(&mut session, before);
    let mut session = plan.restore(&session.snapshot(""), "").unwrap();
    out += &push(&mut session, after);
    out += &end(session);
    out
}

/// Reads a recording of messages to its end, past all that cannot be read or decoded. Returns the verdicts on the messages
/// that are JSON, as those of tables are, and the errors of reading.
pub fn read(plan: &SessionPlan, path: &str, table: &TableOptions<'_>) -> (String, Vec<String>) {
    let mut recording = match open_messages_with(Path::new(path), table) {
        Ok(Some(recording)) => recording,
        Ok(None) => return (String::new(), vec!["not a recording of messages".to_owned()]),
        Err(error) => return (String::new(), vec![error.to_string()]),
    };
    let topics: Vec<Option<TopicId>> =
        recording.topics().iter().map(|topic| plan.topic_in_recording(&topic.name)).collect();
    let (mut session, mut out, mut errors) = (plan.start().unwrap(), String::new(), Vec::new());
    loop {
        match recording.next() {
            Ok(Some(message)) => {
                if let Some(topic) = topics[message.topic] {
                    // An undecodable message is counted by the session.
                    let _ = session.push(topic, Stamp::at(message.log_time), message.payload);
                }
            }
            Ok(None) => break,
            Err(error) => errors.push(error.to_string()),
        }
        assert!(errors.len() < 1000, "reading does not end: {}", errors[0]);
    }
    session.flush();
    take(&mut session, &mut out);
    out += &end(session);
    (out, errors)
}

/// Evaluates whole lines, and returns the verdicts.
fn push(session: &mut Session, trace: &str) -> String {
    let mut lines = session.lines(TimeUnit::default());
    let (mut out, mut at) = (String::new(), 0);
    while at < trace.len() {
        at = session.push_lines(&mut lines, trace.as_bytes(), at, trace.len()).unwrap();
        take(session, &mut out);
    }
    session.flush();
    take(session, &mut out);
    out
}

/// Ends a session, and returns the last verdicts.
fn end(mut session: Session) -> String {
    let mut out = String::new();
    session.finish();
    take(&mut session, &mut out);
    out
}

fn take(session: &mut Session, out: &mut String) {
    for report in session.reports() {
        let mut json = Vec::new();
        report.json(&mut json);
        out.push_str(std::str::from_utf8(&json).unwrap());
        out.push('\n');
    }
}
