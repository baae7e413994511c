//! Every message counts once across a snapshot, and a verdict that is reported again has the id that it had.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::HashSet;
use std::sync::Arc;

use rondel_event::{Origin, Path, TimeUnit, Timestamp, TopicId};
use rondel_runtime::{
    Emit, Input, ManualClock, Options, Session, SessionPlan, Specification, Stamp, TimeSource,
};

const TEXT: &str = "topic a { t: time, id: int, v: bool, w: bool }
    property past = once[0, 2 s] a.v
    property soon = a.v -> eventually[0, 3 s] a.w
    property apart for each id in a.id = a.v or previously a.w";

fn plan(text: &str, times: TimeSource, exactly: bool) -> (SessionPlan, Arc<ManualClock>) {
    let specification = Specification::new(rondel_spec::parse(text).spec.unwrap()).unwrap();
    let clock = Arc::new(ManualClock::default());
    let inputs = vec![Input { time: times, time_unit: TimeUnit::Seconds, ..Input::default() }];
    let options = Options {
        inputs,
        emit: Emit::Every,
        ids: true,
        exactly,
        clock: Arc::clone(&clock) as _,
        ..Options::default()
    };
    (SessionPlan::of(specification, options), clock)
}

fn field() -> TimeSource {
    TimeSource::Field(Path::keys(["t"]))
}

/// Pushes messages and returns the lines of their verdicts.
fn lines(session: &mut Session, messages: std::ops::Range<u64>) -> Vec<String> {
    let mut lines = Vec::new();
    for i in messages {
        let payload =
            format!("{{\"t\":{},\"id\":{},\"v\":{},\"w\":{}}}", i / 2, i % 3, i % 4 == 1, i % 7 == 2);
        let origin = Some(Origin { publisher: 9, number: i });
        session.push(TopicId(0), Stamp { origin, ..Stamp::default() }, payload.as_bytes()).unwrap();
        session.flush();
        for report in session.reports() {
            let mut line = Vec::new();
            report.json(&mut line);
            lines.push(String::from_utf8(line).unwrap());
        }
    }
    lines
}

/// The id, at the end of a line.
fn id(line: &str) -> &str {
    let (_, id) = line.split_once(",\"id\":\"").unwrap_or_else(|| panic!("no id in {line}"));
    assert!(id.len() == 34 && id.ends_with("\"}"), "{line}");
    &id[..32]
}

#[test]
fn verdicts_after_a_snapshot_have_the_ids_of_the_run_that_crashed() {
    let (plan, _) = plan(TEXT, field(), true);
    let mut whole = plan.start().unwrap();
    let mut expected = lines(&mut whole, 0..20);
    let snapshot = whole.snapshot("");
    let lost = lines(&mut whole, 20..40);
    expected.extend(lost.clone());
    let ids: HashSet<&str> = expected.iter().map(|line| id(line)).collect();
    assert_eq!(ids.len(), expected.len(), "ids are not unique");
    let mut again = plan.restore(&snapshot, "").unwrap();
    assert_eq!(lines(&mut again, 20..40), lost);
}

#[test]
fn ids_without_times_in_messages_do_not_depend_on_the_times_of_arrival() {
    let text = "topic a { v: bool, w: bool, id: int } property p = a.v or previously a.w";
    let (plan, clock) = plan(text, TimeSource::Arrival, true);
    let run = |start: i64| {
        clock.set(Timestamp::from_nanos(start));
        let mut session = plan.start().unwrap();
        let lines = lines(&mut session, 0..20);
        lines.iter().map(|line| id(line).to_owned()).collect::<Vec<_>>()
    };
    let first = run(1_000);
    assert_eq!(first, run(5_000_000_000));
    assert_eq!(first.iter().collect::<HashSet<_>>().len(), 20);
}

#[test]
fn an_edit_changes_the_ids_of_edited_properties_only() {
    let other = TEXT.replace("2 s", "1 s");
    let ids = |text: &str, is_past: bool| -> HashSet<String> {
        let mut session = plan(text, field(), false).0.start().unwrap();
        let lines = lines(&mut session, 0..40);
        let of = lines.iter().filter(|line| line.contains("\"property\":\"past\"") == is_past);
        of.map(|line| id(line).to_owned()).collect()
    };
    assert!(ids(TEXT, true).is_disjoint(&ids(&other, true)));
    assert_eq!(ids(TEXT, false), ids(&other, false));
    let renamed = TEXT.replace("past", "last");
    assert!(ids(TEXT, true).is_disjoint(&ids(&renamed, false)));
}

#[test]
fn without_ids_there_is_no_member() {
    let specification = Specification::new(rondel_spec::parse(TEXT).spec.unwrap()).unwrap();
    let mut session = SessionPlan::of(specification, Options::default()).start().unwrap();
    assert!(lines(&mut session, 0..3).iter().all(|line| !line.contains(",\"id\":\"")));
}

#[test]
fn repeats_are_dropped_and_losses_reported_across_a_snapshot() {
    let (plan, clock) = plan(TEXT, field(), true);
    clock.set(Timestamp::from_nanos(1_000));
    let mut session = plan.start().unwrap();
    session.attach(vec![1, 2, 3]);
    lines(&mut session, 0..20);
    let snapshot = session.snapshot("");
    let mut again = plan.restore(&snapshot, "").unwrap();
    assert_eq!(again.attachment(), [1, 2, 3]);
    assert_eq!(again.expected(TopicId(0)), [Origin { publisher: 9, number: 20 }]);
    assert_eq!(lines(&mut again, 15..20), [""; 0]);
    assert_eq!(again.losses().len(), 0);
    clock.set(Timestamp::from_nanos(2_000));
    lines(&mut again, 25..30);
    let account = again.summary().accounts.remove(0);
    assert_eq!((account.duplicated, account.lost), (5, 5));
    let between = (Timestamp::from_nanos(1_000), Timestamp::from_nanos(2_000));
    assert_eq!(account.lost_between, Some(between));
    assert_eq!(again.losses().len(), 1);
    // Messages missed between two runs are lost with every durability.
    let (other, _) = self::plan(TEXT, field(), false);
    let mut other = other.restore(&snapshot, "").unwrap();
    lines(&mut other, 25..30);
    assert_eq!(other.summary().accounts.remove(0).lost, 5);
}

#[test]
fn sessions_that_began_at_different_messages_give_equal_ids_by_time() {
    let specification = |text| Specification::new(rondel_spec::parse(text).spec.unwrap()).unwrap();
    let ids = |ids_by_time: bool, time: TimeSource, messages: std::ops::Range<u64>| -> Vec<String> {
        let inputs = vec![Input { time, time_unit: TimeUnit::Seconds, ..Input::default() }];
        let clock = Arc::new(ManualClock::default());
        let options =
            Options { inputs, emit: Emit::Every, ids: true, ids_by_time, clock, ..Options::default() };
        let text = "topic a { t: time, id: int, v: bool, w: bool }\nproperty p = a.v";
        let mut session = SessionPlan::of(specification(text), options).start().unwrap();
        lines(&mut session, messages).iter().map(|line| id(line).to_owned()).collect()
    };
    let last = |all: Vec<String>| all[all.len() - 20..].to_vec();
    assert_eq!(ids(true, field(), 20..40), last(ids(true, field(), 0..40)));
    // Steps count from the beginning, and are all that is known of a message without a time of its own.
    assert_ne!(ids(false, field(), 20..40), last(ids(false, field(), 0..40)));
    assert_ne!(ids(true, TimeSource::Arrival, 20..40), last(ids(true, TimeSource::Arrival, 0..40)));
}
