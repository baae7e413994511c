//! Messages whose times are too far from the clock are refused on every route, and that is said.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use rondel_event::{Path, TimeUnit, Timestamp, TopicId};
use rondel_runtime::alignment::Policy;
use rondel_runtime::{
    Alignment, Emit, Input, ManualClock, Options, Session, SessionPlan, Specification, Stamp, TimeSource,
};

const SECOND: i64 = 1_000_000_000;
/// A time of day, and one in the year 2100.
const TODAY: i64 = 1_800_000_000;
const FAR: i64 = 4_102_444_800;

const ANSWERED: &str = "topic door { t: time, request: bool, answer: bool }
    @time(dense) property answered = rising(door.request) -> eventually[0, 2 s] door.answer";
const STEPS: &str = "topic door { t: time, request: bool, answer: bool }
    property asked = once[0, 2] door.request";

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_nanos(seconds * SECOND)
}

fn plan(text: &str, alignment: Alignment, live: bool, clock: &Arc<ManualClock>) -> SessionPlan {
    let input = Input {
        time: TimeSource::Field(Path::keys(["t"])),
        time_unit: TimeUnit::Seconds,
        ..Input::default()
    };
    let clock = Arc::clone(clock) as Arc<dyn rondel_runtime::Clock>;
    let options =
        Options { inputs: vec![input], alignment, emit: Emit::Change, clock, live, ..Options::default() };
    SessionPlan::of(Specification::new(rondel_spec::parse(text).spec.unwrap()).unwrap(), options)
}

fn direct() -> Alignment {
    Alignment::new(Policy::Arrival)
}

/// What a session says: its verdicts with their times, and its notices.
fn said(session: &mut Session) -> Vec<String> {
    let reports = session.reports().map(|report| format!("{} {}", report.verdict.as_str(), report.time));
    let mut said: Vec<String> = reports.collect();
    for notice in session.notices() {
        said.push(format!("{}: {}", notice.json(), notice.text(&mut |time| time.to_string())));
    }
    said
}

/// A request, a message from the year 2100, and four seconds without an answer.
fn unanswered(alignment: Alignment, first_is_far: bool) -> (Vec<String>, Session) {
    let clock = Arc::new(ManualClock::default());
    clock.set(at(TODAY));
    let mut session = plan(ANSWERED, alignment, true, &clock).start().unwrap();
    let far = format!(r#"{{"t":{FAR},"request":false,"answer":false}}"#);
    if first_is_far {
        session.push(TopicId(0), Stamp::default(), far.as_bytes()).unwrap();
    }
    for (t, request) in [(TODAY, false), (TODAY + 1, true)] {
        let message = format!(r#"{{"t":{t},"request":{request},"answer":false}}"#);
        session.push(TopicId(0), Stamp::default(), message.as_bytes()).unwrap();
    }
    session.push(TopicId(0), Stamp::default(), far.as_bytes()).unwrap();
    session.flush();
    let mut all = said(&mut session);
    clock.set(at(TODAY + 5));
    session.poll();
    all.extend(said(&mut session));
    (all, session)
}

#[test]
fn an_unanswered_request_is_violated_after_a_message_from_the_future() {
    for alignment in [
        direct(),
        Alignment { notices: true, ..direct() },
        Alignment::new(Policy::EventTime),
        Alignment { clock: rondel_runtime::AlignmentClock::System, ..Alignment::new(Policy::EventTime) },
    ] {
        for first_is_far in [false, true] {
            let (all, session) = unanswered(alignment.clone(), first_is_far);
            assert!(all.iter().any(|line| line.starts_with("violated")), "{alignment:?}: {all:?}");
            let notices = all.iter().filter(|line| line.contains(r#""report":"ahead""#));
            let count = 1 + usize::from(first_is_far);
            assert_eq!(notices.clone().count(), count, "{all:?}");
            for notice in notices {
                assert!(notice.contains("after the clock; the message was refused"), "{notice}");
                assert!(notice.contains(r#""topic":"door""#), "{notice}");
            }
            let summary = session.summary();
            assert_eq!((summary.counts.refused, summary.topics[0].refused), (count as u64, count as u64));
            assert_eq!((summary.counts.received, summary.counts.checked), (2 + count as u64, 2));
            if let Some(alignment) = summary.alignment {
                assert_eq!(alignment.json()["topics"]["door"]["refused"], count);
            }
        }
    }
}

#[test]
fn limits_can_be_turned_off() {
    for policy in [Policy::Arrival, Policy::EventTime] {
        let never = Alignment { ahead: None, behind: None, ..Alignment::new(policy) };
        let (all, session) = unanswered(never, false);
        assert!(!all.iter().any(|line| line.contains("refused")), "{all:?}");
        assert_eq!(session.summary().counts.refused, 0);
    }
}

#[test]
fn a_time_of_zero_in_between_was_never_set() {
    let clock = Arc::new(ManualClock::default());
    clock.set(at(TODAY));
    let mut session = plan(ANSWERED, direct(), true, &clock).start().unwrap();
    for t in [0, TODAY, 0, TODAY + 1, 5] {
        let message = format!(r#"{{"t":{t},"request":false,"answer":false}}"#);
        session.push(TopicId(0), Stamp::default(), message.as_bytes()).unwrap();
        session.flush();
    }
    let all = said(&mut session);
    let of = |kind: &str| all.iter().filter(|line| line.contains(&format!(r#""report":"{kind}""#))).count();
    assert_eq!((of("unstamped"), of("behind"), of("backwards")), (1, 1, 0), "{all:?}");
}

#[test]
fn where_nothing_measures_time_every_time_is_taken() {
    let clock = Arc::new(ManualClock::default());
    clock.set(at(TODAY));
    let mut session = plan(STEPS, direct(), true, &clock).start().unwrap();
    for t in [TODAY, FAR, 12, TODAY] {
        let message = format!(r#"{{"t":{t},"request":true}}"#);
        session.push(TopicId(0), Stamp::default(), message.as_bytes()).unwrap();
    }
    session.flush();
    assert_eq!(session.summary().counts.checked, 4);
}

#[test]
fn a_recording_is_held_to_limits_only_where_they_are_set() {
    let times = [TODAY, FAR, TODAY + 1, 7, TODAY + 2, TODAY + 3, FAR];
    for (limited, checked) in [(false, 7), (true, 4)] {
        let clock = Arc::new(ManualClock::default());
        let mut session = plan(ANSWERED, Alignment { limited, ..direct() }, false, &clock).start().unwrap();
        let mut lines = session.lines(TimeUnit::Seconds);
        let text: String = times
            .iter()
            .map(|t| format!("{{\"t\":{t},\"request\":{},\"answer\":false}}\n", *t == TODAY + 1))
            .collect();
        let text = text.replace("{\"t\"", "{\"topic\":\"door\",\"data\":{\"t\"").replace("}\n", "}}\n");
        let mut read = 0;
        while read < text.len() {
            read = session.push_lines(&mut lines, text.as_bytes(), read, text.len()).unwrap();
        }
        session.finish();
        let all = said(&mut session);
        let summary = session.summary();
        assert_eq!((summary.counts.checked, summary.counts.refused), (checked, 7 - checked), "{all:?}");
        assert_eq!(summary.backwards > 0, !limited, "{all:?}");
    }
}

/// A topic's last sign of life is its message, and that is at least as late as the message's own time.
#[test]
fn a_message_that_sets_the_clock_is_heard_at_its_own_time() {
    let text = "topic a { t: time, x: int } topic b { t: time, x: int }
        @time(dense) property p = on(a) -> once[0, 20 s] on(b)";
    for policy in [Policy::EventTime, Policy::Epsilon(SECOND)] {
        let clock = Arc::new(ManualClock::default());
        let input = Input {
            time: TimeSource::Field(Path::keys(["t"])),
            time_unit: TimeUnit::Seconds,
            ..Input::default()
        };
        let topic = rondel_runtime::alignment::TopicAlignment {
            absent_after: Some(10 * SECOND),
            ..rondel_runtime::alignment::TopicAlignment::new(&input)
        };
        let options = Options {
            inputs: vec![input; 2],
            alignment: Alignment { topics: vec![topic; 2], ..Alignment::new(policy) },
            clock: Arc::clone(&clock) as Arc<dyn rondel_runtime::Clock>,
            ..Options::default()
        };
        let specification = Specification::new(rondel_spec::parse(text).spec.unwrap()).unwrap();
        let mut session = SessionPlan::of(specification, options).start().unwrap();
        // The messages come much faster than their times go on.
        let mut absent = Vec::new();
        for (i, (topic, t)) in
            [(0, "1000"), (1, "1004"), (0, "1013.5"), (0, "1014.5")].into_iter().enumerate()
        {
            clock.set(Timestamp::from_nanos(300_000 * i as i64));
            let message = format!(r#"{{"t":{t},"x":1}}"#);
            session.push(TopicId(topic), Stamp::default(), message.as_bytes()).unwrap();
            session.flush();
            session.poll();
            let said = said(&mut session);
            absent.push(said.iter().filter(|line| line.contains(r#""report":"absent""#)).count());
        }
        // Topic b is silent for 9.5 s, and then for 10.5 s.
        assert_eq!(absent, [0, 0, 0, 1], "{policy:?}");
    }
}
