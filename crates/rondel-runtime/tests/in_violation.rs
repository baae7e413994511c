//! Durations of violations against a naive evaluator: it reads the verdicts one by one, and knows from the messages
//! where some are missing and where instances end. Where nothing is missing, the same figures are computed from the
//! values alone.
//!
//! `RONDEL_SEED=17 cargo test -p rondel-runtime --test suite in_violation` runs one seed alone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use std::collections::BTreeMap;
use std::sync::Arc;

use rondel_event::{Origin, Timestamp, TopicId, Value, Verdict};
use rondel_runtime::{Blind, InViolation, ManualClock, Options, Session, SessionPlan, Stamp, Summary};
use rondel_testkit::Random;

const SECOND: i64 = 1_000_000_000;

/// A message: its time in nanoseconds, its key, its value, if it is not null, and how many messages before it are missing.
#[derive(Clone, Copy, Debug)]
struct Message {
    time: i64,
    key: i64,
    value: Option<i64>,
    missing: u64,
}

/// The properties, in this order.
const STEPS: usize = 0;
const DENSE: usize = 1;
const KEYED: usize = 2;
const LATER: usize = 5;
const BY_STEPS: [usize; 3] = [STEPS, 3, 7];

const SPECIFICATION: &str = "
    topic t { k: int, x: int, y: float }
    @time(steps) property steps = t.x < 3
    @time(dense) property dense = not once[0, 2 s] t.x >= 3
    @time(steps) property keyed for each k in t.k until t.x == 4 = t.x < 3
    @robust @time(steps) property margin = t.y < 3.0
    @robust @time(steps) property margins for each k in t.k = t.y < 3.0
    property later = t.x >= 3 -> eventually[0, 1 s] t.x < 3
    @time(dense) property lasting for each k in t.k until t.x == 4 = historically[0, 1 s] t.x < 4
    @time(steps) property back = t.x < 3 or not previously t.x < 3
";

fn messages(numbers: &mut Random, has_gaps: bool) -> Vec<Message> {
    let mut time = numbers.below(5) as i64 * SECOND;
    let count = 1 + numbers.below(40);
    let mut all = Vec::new();
    for i in 0..count {
        let missing = u64::from(has_gaps && i > 0 && numbers.below(8) == 0);
        let value = (numbers.below(10) > 0).then(|| numbers.below(6) as i64);
        all.push(Message { time, key: numbers.below(3) as i64, value, missing });
        time += (1 + numbers.below(30)) as i64 * SECOND / 10;
    }
    all
}

fn push(session: &mut Session, message: &Message, number: u64) {
    let value = message.value.map_or("null".to_owned(), |value| value.to_string());
    let json = format!("{{\"k\": {}, \"x\": {value}, \"y\": {value}}}", message.key);
    let origin = Some(Origin { publisher: 1, number });
    let stamp = Stamp { origin, ..Stamp::at(Timestamp::from_nanos(message.time)) };
    session.push(TopicId(0), stamp, json.as_bytes()).unwrap();
}

/// Event of a property or of one of its instances.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Happening {
    Violated,
    Other,
    /// Messages are missing, or the instance ends.
    Cut,
}

/// Events by property and instance, with time and step.
type Happenings = BTreeMap<(usize, String), Vec<(i64, u64, Happening)>>;

/// Checks the messages one by one.
fn happenings(plan: &SessionPlan, messages: &[Message]) -> (Happenings, Summary) {
    let mut session = plan.start().unwrap();
    let mut all = Happenings::new();
    let mut number = 0;
    let names = ["keyed", "lasting"];
    for (i, message) in messages.iter().enumerate() {
        if message.missing > 0 {
            let last = messages[i - 1].time;
            all.values_mut().for_each(|happenings| happenings.push((last, i as u64, Happening::Cut)));
        }
        number += 1 + message.missing;
        push(&mut session, message, number);
        session.flush();
        note(&mut session, &mut all);
        if message.value == Some(4) {
            for ((property, instance), happenings) in &mut all {
                let is_meant = names.contains(&&*plan.properties()[*property].name);
                if is_meant && *instance == format!("[{}]", message.key) {
                    happenings.push((message.time, i as u64, Happening::Cut));
                }
            }
        }
    }
    session.finish();
    note(&mut session, &mut all);
    (all, session.summary())
}

fn note(session: &mut Session, all: &mut Happenings) {
    for report in session.reports() {
        let instance = match report.parameters() {
            [] => String::new(),
            [Value::Int(key)] => format!("[{key}]"),
            other => panic!("{other:?}"),
        };
        let what = if report.verdict() == Verdict::Violated { Happening::Violated } else { Happening::Other };
        let property = report.property().position as usize;
        let time = report.about().unwrap_or(report.time()).as_nanos();
        let step = report.step().unwrap_or(0);
        all.entry((property, instance)).or_default().push((time, step, what));
    }
}

/// The violations of a property: the instance, the beginning, and how long each lasted in nanoseconds and steps.
fn violations(all: &Happenings, of: usize, end: (i64, u64)) -> Vec<(String, i64, u64, u64)> {
    let mut found = Vec::new();
    for ((_, instance), happenings) in all.iter().filter(|((property, _), _)| *property == of) {
        let mut i = 0;
        while i < happenings.len() {
            let (begin, step, what) = happenings[i];
            i += 1;
            if what != Happening::Violated {
                continue;
            }
            while i < happenings.len() && happenings[i].2 == Happening::Violated {
                i += 1;
            }
            let (until, last) = happenings.get(i).map_or(end, |(time, step, _)| (*time, *step));
            let steps = if BY_STEPS.contains(&of) { last - step } else { 0 };
            found.push((instance.clone(), begin, (until - begin).max(0) as u64, steps));
        }
    }
    found
}

/// The total and the longest of violations.
fn figures(violations: &[(String, i64, u64, u64)]) -> (u64, u64, Option<(u64, u64)>) {
    let longest = violations.iter().map(|violation| (violation.2, violation.3)).max();
    let sum = |part: fn(&(String, i64, u64, u64)) -> u64| violations.iter().map(part).sum::<u64>();
    (sum(|violation| violation.2), sum(|violation| violation.3), longest)
}

fn found(violated: &InViolation) -> (u64, u64, Option<(u64, u64)>) {
    let longest = violated.longest.as_ref().map(|longest| (longest.extent.nanos, longest.extent.steps));
    (violated.total.nanos, violated.total.steps, longest)
}

/// The violations of `t.x < 3`, by the values alone.
fn of_values(messages: &[Message], key: Option<i64>, ends_at: Option<i64>) -> u64 {
    let end = messages.last().unwrap().time;
    let own: Vec<&Message> =
        messages.iter().filter(|message| key.is_none_or(|key| message.key == key)).collect();
    let mut total = 0;
    for (i, message) in own.iter().enumerate() {
        let ends = message.value.is_some() && message.value == ends_at;
        if message.value.is_some_and(|value| value >= 3) && !ends {
            total += own.get(i + 1).map_or(end, |next| next.time) - message.time;
        }
    }
    total as u64
}

/// The violations of `not once[0, 2 s] t.x >= 3` in dense time, by the values alone: their number and how long they are.
fn of_dense_values(messages: &[Message]) -> (u64, u64) {
    let end = messages.last().unwrap().time;
    let mut spans: Vec<(i64, i64)> = Vec::new();
    for (i, message) in messages.iter().enumerate() {
        if message.value.is_some_and(|value| value >= 3) {
            let until = messages.get(i + 1).map_or(end, |next| next.time).saturating_add(2 * SECOND).min(end);
            match spans.last_mut() {
                Some(last) if last.1 >= message.time => last.1 = until,
                _ => spans.push((message.time, until)),
            }
        }
    }
    let lengths = || spans.iter().map(|(begin, end)| (end - begin) as u64);
    (lengths().sum(), lengths().max().unwrap_or(0))
}

fn plan() -> SessionPlan {
    let outcome = rondel_spec::parse(SPECIFICATION);
    let spec =
        outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("spec", SPECIFICATION, false)));
    let clock = Arc::new(ManualClock::default());
    SessionPlan::new(&spec, Options { clock, blind: Blind::Inconclusive, ..Options::default() }).unwrap()
}

#[test]
fn violations_last_from_verdict_to_verdict() {
    let plan = plan();
    let (mut compared, mut cut, mut by_values, mut restored) = (0, 0, 0, 0);
    for seed in rondel_testkit::seeds("in_violation", 400) {
        let numbers = &mut Random::new(seed);
        let has_gaps = numbers.below(2) == 0;
        let messages = messages(numbers, has_gaps);
        let (all, summary) = happenings(&plan, &messages);
        let end = (messages.last().unwrap().time, messages.len() as u64);
        for (i, statistics) in summary.properties.iter().enumerate() {
            let name = &plan.properties()[i].name;
            let context = || format!("seed {seed}, {name}: {messages:#?}\n{all:#?}\n{statistics:#?}");
            let Some(violated) = statistics.in_violation() else {
                assert_eq!(i, LATER, "{}", context());
                continue;
            };
            let expected = violations(&all, i, end);
            assert_eq!(found(&violated), figures(&expected), "{}", context());
            if let Some(longest) = &violated.longest {
                let own = (
                    longest.parameters.clone(),
                    longest.begin.as_nanos(),
                    longest.extent.nanos,
                    longest.extent.steps,
                );
                assert!(expected.contains(&own), "{}", context());
                compared += 1;
            }
            let is_cut = violated.is_at_least;
            assert!(!is_cut || has_gaps, "{}", context());
            cut += u32::from(is_cut);
        }
        // Only complete recordings can be computed from the values.
        if messages.iter().all(|message| message.missing == 0) {
            let total = |property: usize| summary.properties[property].in_violation().unwrap().total.nanos;
            assert_eq!(total(STEPS), of_values(&messages, None, None), "seed {seed}: {messages:#?}");
            let keyed: u64 = (0..3).map(|key| of_values(&messages, Some(key), Some(4))).sum();
            assert_eq!(total(KEYED), keyed, "seed {seed}: {messages:#?}");
            if messages.iter().all(|message| message.value.is_some()) {
                let dense = summary.properties[DENSE].in_violation().unwrap();
                let longest = dense.longest.as_ref().map_or(0, |longest| longest.extent.nanos);
                assert_eq!(
                    (dense.total.nanos, longest),
                    of_dense_values(&messages),
                    "seed {seed}: {messages:#?}"
                );
            }
            let least =
                messages.iter().filter_map(|message| message.value).max().map(|most| 3.0 - most as f64);
            assert_eq!(summary.properties[3].least_robustness, least, "seed {seed}: {messages:#?}");
            assert_eq!(summary.properties[4].least_robustness, least, "seed {seed}: {messages:#?}");
            by_values += 1;
        }
        // Neither blocks nor snapshots change anything.
        let mut session = plan.start().unwrap();
        let mut number = 0;
        for message in &messages {
            number += 1 + message.missing;
            push(&mut session, message, number);
            match numbers.below(6) {
                0 => session.flush(),
                1 => {
                    let bytes = session.snapshot("");
                    session = plan.restore(&bytes, "").unwrap();
                    restored += 1;
                }
                _ => {}
            }
        }
        session.finish();
        for (other, own) in session.summary().properties.iter().zip(&summary.properties) {
            assert_eq!(other.in_violation(), own.in_violation(), "seed {seed}: {messages:#?}");
            assert_eq!(other.least_robustness, own.least_robustness, "seed {seed}: {messages:#?}");
        }
    }
    println!("{compared} properties with violations, {cut} of them cut; {by_values} recordings without gaps");
    if !rondel_testkit::is_replay() {
        assert!(compared > 1_700 && cut > 280 && by_values > 160 && restored > 600, "too few were compared");
    }
}

#[test]
fn times_at_the_ends_of_the_range_do_not_overflow() {
    let plan = plan();
    let mut session = plan.start().unwrap();
    for (number, time) in [i64::MIN + 1, 0, i64::MAX, i64::MIN + 1].into_iter().enumerate() {
        let message = Message { time, key: 0, value: Some(5), missing: 0 };
        push(&mut session, &message, number as u64);
    }
    session.finish();
    let summary = session.summary();
    let violated = summary.properties[STEPS].in_violation().unwrap();
    // The last message goes back: no time has passed by then.
    assert_eq!((violated.total.nanos, violated.total.steps), (0, 4));
}

const ALIVE: &str = "topic t { k: int, x: int, y: float } property alive = age(t) < 1 s";

fn live(text: &str, blind: Blind) -> (SessionPlan, Arc<ManualClock>) {
    let spec = rondel_spec::parse(text).spec.unwrap();
    let clock = Arc::new(ManualClock::default());
    let options = Options { clock: clock.clone(), blind, live: true, ..Options::default() };
    (SessionPlan::new(&spec, options).unwrap(), clock)
}

#[test]
fn a_violation_by_time_alone_lasts_to_the_end_of_the_run() {
    let (plan, clock) = live(ALIVE, Blind::Inconclusive);
    let mut session = plan.start().unwrap();
    clock.set(Timestamp::from_nanos(SECOND));
    push(&mut session, &Message { time: SECOND, key: 0, value: None, missing: 0 }, 1);
    session.poll();
    for seconds in 2..=20 {
        clock.set(Timestamp::from_nanos(seconds * SECOND));
        session.poll();
    }
    // Also before the end, for destinations that account for it meanwhile.
    assert_eq!(session.summary().reached, Some(Timestamp::from_nanos(20 * SECOND)));
    session.finish();
    let summary = session.summary();
    let violated = summary.properties[0].in_violation().unwrap();
    let longest = violated.longest.unwrap();
    assert_eq!(
        (longest.begin, longest.extent.nanos),
        (Timestamp::from_nanos(2 * SECOND), 18 * SECOND as u64)
    );
    assert_eq!(summary.reached, Some(Timestamp::from_nanos(20 * SECOND)));
    assert_eq!(summary.span.map(|(_, last)| last), Some(Timestamp::from_nanos(SECOND)));
}

#[test]
fn time_of_an_absence_does_not_count_as_violation() {
    for blind in [Blind::Inconclusive, Blind::Report] {
        let (plan, clock) = live(SPECIFICATION, blind);
        let mut session = plan.start().unwrap();
        let message =
            |seconds: i64, value| Message { time: seconds * SECOND, key: 0, value: Some(value), missing: 0 };
        let mut number = 0;
        let mut push = |session: &mut Session, message: Message| {
            number += 1;
            clock.set(Timestamp::from_nanos(message.time));
            push(session, &message, number);
        };
        push(&mut session, message(1, 0));
        push(&mut session, message(2, 5));
        push(&mut session, message(4, 5));
        let bytes = session.snapshot("");
        clock.set(Timestamp::from_nanos(50 * SECOND));
        let mut session = plan.restore(&bytes, "").unwrap();
        session.resumed(&[]);
        push(&mut session, message(51, 5));
        push(&mut session, message(52, 0));
        push(&mut session, message(53, 5));
        push(&mut session, message(56, 0));
        session.finish();
        let summary = session.summary();
        for property in [STEPS, KEYED] {
            let violated = summary.properties[property].in_violation().unwrap();
            let longest = violated.longest.as_ref().unwrap();
            // From 2 s to 4 s, and from 53 s to 56 s; a message missed at 51 s may have begun a violation at any time.
            assert!(violated.total.nanos <= 6 * SECOND as u64, "{blind:?}: {violated:?}");
            assert_eq!(longest.extent.nanos, 3 * SECOND as u64, "{blind:?}: {violated:?}");
            assert!(violated.is_at_least, "{blind:?}: {violated:?}");
        }
    }
}
