//! Inputs that properties need and that never come: reported after a time, and named in the summary.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use proptest::prelude::*;
use rondel_event::{Path, Timestamp, TopicId, Verdict};
use rondel_runtime::alignment::Policy;
use rondel_runtime::{
    Alignment, Emit, Input, ManualClock, Options, Session, SessionPlan, Stamp, TimeSource, VacuousKind,
};
use serde_json::json;

const TEXT: &str = "
topic a { t: time, v: float, w: bool }
topic b { t: time, n: int }
topic unused { t: time }
property both = a.v > 1 -> once[0, 1 s] b.n > 0
property other = not a.w
property keyed for each n in b.n = b.n == 7 -> once on(b)
";

const SECOND: i64 = 1_000_000_000;

fn plan(policy: Policy, clock: &Arc<ManualClock>) -> SessionPlan {
    let spec = rondel_spec::parse(TEXT).spec.unwrap();
    let input = Input { time: TimeSource::Field(Path::keys(["t"])), ..Input::default() };
    let options = Options {
        inputs: vec![input; 3],
        alignment: Alignment::new(policy),
        missing_after: Some(10 * SECOND),
        clock: Arc::clone(clock) as Arc<dyn rondel_runtime::Clock>,
        ..Options::default()
    };
    SessionPlan::new(&spec, options).unwrap()
}

/// Sets the clock and polls; returns the reports about missing input, and when to poll again.
fn poll(session: &mut Session, clock: &ManualClock, now: i64) -> (Vec<serde_json::Value>, Option<i64>) {
    clock.set(Timestamp::from_nanos(now));
    let due = session.poll();
    let missing = session.notices().filter(|notice| notice.kind == "missing");
    (missing.map(|notice| notice.json()).collect(), due)
}

#[test]
fn missing_input_is_reported_once_after_a_time() {
    for policy in [Policy::Arrival, Policy::EventTime] {
        let clock = Arc::new(ManualClock::default());
        let mut session = plan(policy, &clock).start().unwrap();
        assert!(session.is_timed());
        let start = 3 * SECOND;
        let (missing, due) = poll(&mut session, &clock, start);
        assert_eq!((missing.len(), due), (0, Some(13 * SECOND)), "{policy:?}");
        session.push(TopicId(0), Stamp::default(), br#"{"t": 1, "v": 0.5}"#).unwrap();
        session.flush();
        assert!(session.due().is_some_and(|due| due <= 13 * SECOND));
        assert_eq!(poll(&mut session, &clock, 13 * SECOND - 1).0, [] as [serde_json::Value; 0]);
        let (missing, _) = poll(&mut session, &clock, 13 * SECOND);
        assert_eq!(
            missing,
            [
                json!({"report": "missing", "topic": "a", "after": 10.0, "properties": ["other"], "fields": ["w"]}),
                json!({"report": "missing", "topic": "b", "after": 10.0, "properties": ["both", "keyed"]}),
            ],
            "{policy:?}"
        );
        assert_eq!(poll(&mut session, &clock, 99 * SECOND).0, [] as [serde_json::Value; 0]);
        session.finish();
        let texts = |property: usize| {
            let reasons = session.summary().vacuous(property);
            reasons.into_iter().map(|reason| reason.text).collect::<Vec<_>>()
        };
        assert_eq!(texts(0), ["no message came on `b`", "the premise `a.v > 1` was never true"]);
        assert_eq!(texts(1), ["no message on `a` had a value for `w`"]);
        assert_eq!(texts(2), ["no message came on `b`"]);
    }
}

#[test]
fn nothing_is_reported_once_all_has_come() {
    for policy in [Policy::Arrival, Policy::EventTime] {
        let clock = Arc::new(ManualClock::default());
        let mut session = plan(policy, &clock).start().unwrap();
        poll(&mut session, &clock, 0);
        session.push(TopicId(1), Stamp::default(), br#"{"t": 1, "n": 7}"#).unwrap();
        session.push(TopicId(0), Stamp::default(), br#"{"t": 2, "v": 2, "w": false}"#).unwrap();
        // The third topic is needed by no property.
        assert_eq!(poll(&mut session, &clock, 20 * SECOND).0, [] as [serde_json::Value; 0], "{policy:?}");
        session.finish();
        let summary = session.summary();
        assert_eq!(summary.missing_topics(), ["unused"]);
        assert!((0..3).all(|property| summary.vacuous(property).is_empty()), "{policy:?}");
    }
}

#[test]
fn a_snapshot_keeps_which_topics_were_received() {
    for policy in [Policy::Arrival, Policy::EventTime] {
        let clock = Arc::new(ManualClock::default());
        let plan = plan(policy, &clock);
        let mut session = plan.start().unwrap();
        // The contents of full blocks are recorded.
        session.push(TopicId(0), Stamp::default(), br#"{"t": 1, "v": 2}"#).unwrap();
        session.flush();
        for i in 0..200 {
            let message = format!("{{\"t\": {}, \"n\": 1}}", 2 + i);
            session.push(TopicId(1), Stamp::default(), message.as_bytes()).unwrap();
        }
        let bytes = session.snapshot("");
        for mut session in [session, plan.restore(&bytes, "").unwrap()] {
            session.finish();
            let summary = session.summary();
            let kinds = |property| summary.vacuous(property).into_iter().map(|r| r.kind).collect::<Vec<_>>();
            assert_eq!(kinds(0), [], "{policy:?}");
            assert_eq!(kinds(1), [VacuousKind::Field]);
            assert_eq!(kinds(2), [VacuousKind::Premise]);
            assert!(summary.is_inconclusive(false));
        }
    }
}

#[test]
fn a_snapshot_knows_that_a_field_came_without_a_value() {
    for policy in [Policy::Arrival, Policy::EventTime] {
        let clock = Arc::new(ManualClock::default());
        let plan = plan(policy, &clock);
        let mut session = plan.start().unwrap();
        session.push(TopicId(0), Stamp::default(), br#"{"t": 1, "v": 2, "w": null}"#).unwrap();
        session.flush();
        let bytes = session.snapshot("");
        let texts = [session, plan.restore(&bytes, "").unwrap()].map(|mut session| {
            session.finish();
            session.summary().vacuous(1).into_iter().map(|reason| reason.text).collect::<Vec<_>>()
        });
        assert!(texts[0][0].contains("that can be read: null, another type"), "{texts:?}");
        assert_eq!(texts[0], texts[1]);
    }
}

/// Premises over the first topic, the fields of which are known from the first message on.
const PREMISES: [&str; 16] = [
    "a.v == 3",
    "a.w",
    "not a.w",
    "on(b)",
    "not on(a)",
    "rising(a.w)",
    "previously a.w",
    "prev(a.v) == 2",
    "changed(a.v) and a.v == 3",
    "once[0, 2 s] a.v == 3",
    "historically[0, 3 s] a.w",
    "a.w since[1 s, 4 s] a.v == 3",
    "count(a) over 3 s >= 4",
    "age(a) > 3 s",
    "age(a) > 2 s and a.w",
    "exists x. b{n: x} and a.v == 3",
];

/// A message: its topic, the time since the one before, a value, a truth or null, a key.
type Message = (bool, i64, u8, Option<bool>, u8);

/// Messages; in a short trace, few premises are ever true.
fn trace(length: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Message>> {
    let message = (any::<bool>(), 0..3_i64, 0..4_u8, any::<Option<bool>>(), 0..2_u8);
    prop::collection::vec(message, length)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn a_premise_is_tried_where_its_negation_is_violated(
        premise in 0..PREMISES.len(),
        model in 0..3_usize,
        keyed in any::<bool>(),
        messages in prop_oneof![trace(0..8), trace(0..90)],
        flushes in prop::collection::vec(any::<bool>(), 91),
        snapshot in prop_oneof![0..8_usize, 0..90_usize],
    ) {
        let premise = match (PREMISES[premise], model) {
            (premise, 0) if premise.contains("age") => "a.w".to_owned(),
            (premise, 0) => premise.replace(" s]", "]").replace(" s,", ",").replace(" s >=", " >="),
            (premise, _) if premise.contains("exists") && keyed => "a.v == 3 and on(b)".to_owned(),
            (premise, _) => premise.to_owned(),
        };
        let premise = if keyed && premise.contains("exists") { "on(b)".to_owned() } else { premise };
        let time = ["steps", "points", "dense"][model];
        let each = if keyed { " for each id in (a.id, b.id)" } else { "" };
        let text = format!(
            "topic a {{ v: int, w: bool, id: int }} topic b {{ n: int, id: int }}
             @time({time}) property implies{each} = ({premise}) -> a.v < 9 or on(b)
             @time({time}) property not_the_premise{each} = not ({premise})"
        );
        let outcome = rondel_spec::parse(&text);
        let spec = outcome.spec.unwrap_or_else(|| panic!("{text}\n{:?}", outcome.diagnostics));
        let plan = SessionPlan::new(&spec, Options { emit: Emit::Every, ..Options::default() }).unwrap();
        let mut session = plan.start().unwrap();
        let mut tried = false;
        let mut take = |session: &mut Session| {
            let negations = session.reports().filter(|report| report.property().position == 1);
            tried |= negations.fold(false, |tried, report| tried | (report.verdict() == Verdict::Violated));
        };
        let mut now = 0;
        let begin: [Message; 2] = [(true, 0, 0, Some(false), 0), (false, 0, 0, None, 0)];
        let all = begin.iter().chain(&messages).zip(&flushes).enumerate();
        for (i, (&(is_a, after, value, truth, id), &flush)) in all {
            now += after * SECOND;
            let truth = truth.map_or("null".to_owned(), |truth| truth.to_string());
            let payload = match is_a {
                true => format!("{{\"v\":{value},\"w\":{truth},\"id\":{id}}}"),
                false => format!("{{\"n\":{value},\"id\":{id}}}"),
            };
            let topic = TopicId(u32::from(!is_a));
            session.push(topic, Stamp::at(Timestamp::from_nanos(now)), payload.as_bytes()).unwrap();
            if i == snapshot {
                let bytes = session.snapshot("");
                take(&mut session);
                session = plan.restore(&bytes, "").unwrap();
            } else if flush {
                session.flush();
                take(&mut session);
            }
        }
        session.finish();
        take(&mut session);
        let reasons = session.summary().vacuous(0);
        let unexercised = reasons.iter().any(|reason| reason.kind == VacuousKind::Premise);
        if keyed && model == 2 {
            // A span that turns out to be empty counts too.
            prop_assert!(!(unexercised && tried), "{}\n{:?}", text, reasons);
        } else {
            prop_assert_eq!(unexercised, !tried, "{}\n{:?}", text, reasons);
        }
    }
}

#[test]
fn a_premise_that_is_true_between_messages_only() {
    let text = "topic a { v: int } @time(dense) property p = age(a) > 3 s -> a.v < 9";
    let spec = rondel_spec::parse(text).spec.unwrap();
    let plan = SessionPlan::new(&spec, Options::default()).unwrap();
    for (gap, flushes, advances, expected) in [
        (3 * SECOND, true, false, true),
        (3 * SECOND + 1, true, false, false),
        (3 * SECOND + 1, false, false, false),
        (3 * SECOND, false, false, true),
        (3 * SECOND, true, true, true),
        (3 * SECOND + 1, true, true, false),
    ] {
        let mut session = plan.start().unwrap();
        for time in [0, gap] {
            let stamp = Stamp::at(Timestamp::from_nanos(time));
            match advances && time > 0 {
                true => session.advance(stamp.source.unwrap()),
                false => session.push(TopicId(0), stamp, br#"{"v": 1}"#).unwrap(),
            }
            if flushes {
                session.flush();
            }
        }
        session.flush();
        let unexercised = !session.summary().vacuous(0).is_empty();
        assert_eq!(unexercised, expected, "{gap} {flushes} {advances}");
    }
}

#[test]
fn messages_that_came_and_could_not_be_read() {
    let spec =
        rondel_spec::parse("topic a { v: bool } topic b { v: bool } property p = a.v and b.v").spec.unwrap();
    let plan = SessionPlan::new(&spec, Options::default()).unwrap();
    let mut session = plan.start().unwrap();
    let at = Stamp::at(Timestamp::from_nanos(1));
    for payload in [b"{".as_slice(), b"on"] {
        assert!(session.push(TopicId(0), at, payload).is_err());
    }
    session.flush();
    let texts: Vec<String> = session.summary().vacuous(0).into_iter().map(|reason| reason.text).collect();
    assert_eq!(texts, ["no message on `a` could be read, of 2 that came", "no message came on `b`"]);
}

#[test]
fn values_of_another_type_are_reported_once_for_each_topic() {
    let spec =
        rondel_spec::parse("topic a { v: int } topic b { v: int } property p = a.v > b.v").spec.unwrap();
    for policy in [Policy::Arrival, Policy::EventTime] {
        let options = Options { alignment: Alignment::new(policy), ..Options::default() };
        let mut session = SessionPlan::new(&spec, options).unwrap().start().unwrap();
        for i in 0..3 {
            session.push(TopicId(1), Stamp::at(Timestamp::from_nanos(i)), b"{\"v\":\"x\"}").unwrap();
        }
        let mut texts =
            || session.losses().iter().map(|notice| notice.json().to_string()).collect::<Vec<_>>();
        assert_eq!(
            texts(),
            ["{\"count\":3,\"field\":\"v\",\"report\":\"mistyped\",\"topic\":\"b\"}"],
            "{policy:?}"
        );
        assert!(texts().is_empty(), "{policy:?}");
    }
}
