//! `latency` is the arrival of a message minus the time that it carries: unknown where that time is its arrival.

#![allow(clippy::unwrap_used)]

use rondel_event::{Path, TimeUnit, Timestamp, TopicId, Verdict};
use rondel_runtime::alignment::Policy;
use rondel_runtime::{Alignment, Emit, Input, Options, Session, SessionPlan, Stamp, TimeSource};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_nanos(seconds * 1_000_000_000)
}

fn plan(time: TimeSource, policy: Policy) -> SessionPlan {
    let text = "topic a { t: float, x: int } topic b { y: int } property quick = latency(a) <= 1 s";
    let spec = rondel_spec::parse(text).spec.unwrap();
    let inputs = vec![Input { time, ..Input::default() }, Input::default()];
    let options =
        Options { inputs, alignment: Alignment::new(policy), emit: Emit::Every, ..Options::default() };
    SessionPlan::new(&spec, options).unwrap()
}

fn verdicts(session: &mut Session) -> Vec<Verdict> {
    session.flush();
    session.finish();
    session.reports().map(|report| report.verdict()).collect()
}

/// The verdict about a message of these times, pushed or in a line.
fn verdict(time: &TimeSource, policy: Policy, source: Option<i64>, arrival: i64) -> [Vec<Verdict>; 2] {
    let plan = plan(time.clone(), policy);
    let mut pushed = plan.start().unwrap();
    let stamp = Stamp { source: source.map(at), arrival: Some(at(arrival)), ..Stamp::default() };
    let own = source.unwrap_or(arrival);
    pushed.push(TopicId(0), stamp, format!("{{\"t\": {own}, \"x\": 1}}").as_bytes()).unwrap();
    let mut lines = plan.start().unwrap();
    let recorded = source.map(|time| format!("\"time\": {time}, ")).unwrap_or_default();
    let line = format!(
        "{{\"topic\": \"a\", {recorded}\"arrival\": {arrival}, \"data\": {{\"t\": {own}, \"x\": 1}}}}\n"
    );
    let mut reader = lines.lines(TimeUnit::Seconds);
    let (mut from, end) = (0, line.len());
    while from < end {
        from = lines.push_lines(&mut reader, line.as_bytes(), from, end).unwrap();
    }
    [verdicts(&mut pushed), verdicts(&mut lines)]
}

#[test]
fn a_message_without_a_time_of_its_own_has_no_latency() {
    use Verdict::{Inconclusive, Satisfied, Violated};
    let field = TimeSource::Field(Path::keys(["t"]));
    for policy in [Policy::Arrival, Policy::EventTime] {
        for (time, source, arrival, expected) in [
            (TimeSource::Arrival, Some(5), 10, Inconclusive),
            (TimeSource::Arrival, None, 10, Inconclusive),
            (TimeSource::Source, Some(5), 10, Violated),
            (TimeSource::Source, Some(10), 11, Satisfied),
            // Recorders that do not know when a message was sent note the arrival twice.
            (TimeSource::Source, Some(10), 10, Inconclusive),
            (TimeSource::Source, None, 10, Inconclusive),
            (field.clone(), Some(5), 10, Violated),
            (field.clone(), Some(10), 10, Satisfied),
        ] {
            let found = verdict(&time, policy, source, arrival);
            let context = format!("{time:?} {policy:?} {source:?} {arrival}");
            assert_eq!(found[0], [expected], "pushed, {context}");
            // A line without a time has that of the line before.
            if source.is_some() {
                assert_eq!(found[1], [expected], "in a line, {context}");
            }
        }
    }
}

#[test]
fn a_latency_that_is_never_known_is_named() {
    let undecidable = |time| plan(time, Policy::Arrival).undecidable();
    assert!(undecidable(TimeSource::Source).is_empty());
    let sentences = undecidable(TimeSource::Arrival);
    assert_eq!(sentences.len(), 1);
    assert!(sentences[0].starts_with("`latency(a)` is unknown: "), "{sentences:?}");
    assert!(sentences[0].contains("--time-from"), "{sentences:?}");
}
