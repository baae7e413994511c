//! A session gives the same reports however its messages are handed over: one by one or as lines, with or
//! without pauses, in one piece or continued from snapshots.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use proptest::prelude::*;
use rondel_event::{Path, TimeUnit, TopicId};
use rondel_runtime::alignment::{MaxWait, Policy, TopicAlignment};
use rondel_runtime::{
    Alignment, Emit, Input, ManualClock, Options, Session, SessionPlan, Specification, Stamp, TimeSource,
};

const TEXT: &str = "
    topic a { t: time, k: int, x: float, s: string } topic b { t: time, k: int, ok: bool }
    property steps = once[0, 2] a.x > 1.0
    @severity(critical) @time(dense) property dense = on(a) -> eventually[0, 3 s] on(b)
    @time(points) property points = b.ok -> once[0, 2 s] a.x > 0.5
    @requirement(\"SYS-7\") property each for each k in (a.k, b.k) = on(a) -> once[0, 3 s] b.ok
    property quantified = forall i. a{k: i} -> once[0, 4 s] b{k: i}
    machine m { initial p p -> q when on(a) q -> p when on(b) within 2 s error q for 3 s }
";
const NAMES: [&str; 2] = ["a", "b"];

/// A message: topic, seconds, key, value.
type Message = (usize, u32, u8, u8);

fn payload((topic, seconds, key, value): Message) -> String {
    match topic {
        0 => format!(r#"{{"t":{seconds},"k":{key},"x":{},"s":"v{value}"}}"#, f64::from(value) / 2.0),
        _ => format!(r#"{{"t":{seconds},"k":{key},"ok":{}}}"#, value % 2 == 0),
    }
}

fn plan(alignment: Alignment, explain: bool) -> SessionPlan {
    let input = || Input {
        time: TimeSource::Field(Path::keys(["t"])),
        time_unit: TimeUnit::Seconds,
        address: Some("net/a".to_owned()),
    };
    let options = Options {
        inputs: vec![input(), Input { address: None, ..input() }],
        alignment,
        emit: Emit::Every,
        explain,
        clock: Arc::new(ManualClock::default()),
        ..Options::default()
    };
    SessionPlan::of(Specification::new(rondel_spec::parse(TEXT).spec.unwrap()).unwrap(), options)
}

/// Messages wait until nothing earlier can come; no clock lets them go.
fn ordered() -> Alignment {
    let topic =
        TopicAlignment { max_wait: MaxWait::Unlimited, absent_after: None, in_order: true, lower_bound: 0 };
    Alignment { topics: vec![topic; 2], ahead: None, behind: None, ..Alignment::new(Policy::EventTime) }
}

/// The reports of each property, in order: those of properties that wait for different topics may come in
/// another order.
fn take(session: &mut Session, out: &mut [Vec<String>]) {
    for report in session.reports() {
        let mut json = Vec::new();
        report.json(&mut json);
        out[report.property.position as usize].push(String::from_utf8(json).unwrap());
    }
}

fn one_by_one(
    plan: &SessionPlan,
    messages: &[Message],
    flushes: &[bool],
    snapshots: &[bool],
) -> Vec<Vec<String>> {
    let mut session = plan.start().unwrap();
    let mut out = vec![Vec::new(); plan.properties().len()];
    for (i, message) in messages.iter().enumerate() {
        session.push(TopicId(message.0 as u32), Stamp::default(), payload(*message).as_bytes()).unwrap();
        if flushes[i % flushes.len()] {
            session.flush();
        }
        take(&mut session, &mut out);
        if snapshots[i % snapshots.len()] {
            let bytes = session.snapshot("note");
            take(&mut session, &mut out);
            session = plan.restore(&bytes, "note").unwrap();
        }
    }
    session.finish();
    take(&mut session, &mut out);
    assert_eq!(session.events(), messages.len() as u64);
    out
}

fn as_lines(plan: &SessionPlan, messages: &[Message], pieces: usize) -> Vec<Vec<String>> {
    let mut session = plan.start().unwrap();
    let mut lines = session.lines(TimeUnit::Seconds);
    let mut out = vec![Vec::new(); plan.properties().len()];
    for piece in messages.chunks(pieces.max(1)) {
        let line = |message: &Message| {
            let topic = if message.1 % 3 == 0 && message.0 == 0 { "net/a" } else { NAMES[message.0] };
            format!("{{\"topic\":\"{topic}\",\"data\":{}}}\n", payload(*message))
        };
        let text: String = piece.iter().map(line).collect();
        let mut at = 0;
        while at < text.len() {
            at = session.push_lines(&mut lines, text.as_bytes(), at, text.len()).unwrap();
            take(&mut session, &mut out);
        }
    }
    session.finish();
    take(&mut session, &mut out);
    out
}

/// Messages of two topics, each in the order of its times.
fn messages() -> impl Strategy<Value = Vec<Message>> {
    let message = (0..2_usize, 0..3_u32, 0..3_u8, 0..5_u8);
    proptest::collection::vec(message, 1..200).prop_map(|all| {
        let mut now = [0, 0];
        let timed = all.into_iter().map(|(topic, step, key, value)| {
            now[topic] += step;
            (topic, now[topic], key, value)
        });
        timed.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn reports_do_not_depend_on_how_messages_come(
        messages in messages(),
        flushes in proptest::collection::vec(any::<bool>(), 1..9),
        snapshots in proptest::collection::vec(proptest::bool::weighted(0.1), 1..60),
        pieces in 1..90_usize,
        explain in any::<bool>(),
    ) {
        for alignment in [ordered(), Alignment::new(Policy::Arrival)] {
            let plan = plan(alignment, explain);
            let whole = one_by_one(&plan, &messages, &[false], &[false]);
            prop_assert!(whole.iter().map(Vec::len).sum::<usize>() >= messages.len());
            prop_assert_eq!(&as_lines(&plan, &messages, pieces), &whole);
            prop_assert_eq!(&one_by_one(&plan, &messages, &flushes, &[false]), &whole);
            // Explanations begin anew where a session is restored.
            if !explain {
                prop_assert_eq!(&one_by_one(&plan, &messages, &flushes, &snapshots), &whole);
            }
        }
    }
}

#[test]
fn a_message_is_decoded_once_for_all_groups() {
    let plan = plan(ordered(), false);
    let mut session = plan.start().unwrap();
    // `x` is of another type, and read by properties that wait for different topics.
    session.push(TopicId(0), Stamp::default(), br#"{"t":1,"k":1,"x":"text","s":"v"}"#).unwrap();
    assert!(session.push(TopicId(1), Stamp::default(), b"no JSON").is_err());
    session.finish();
    let counts = session.summary().counts;
    assert_eq!((counts.received, counts.checked, counts.undecodable, counts.mistyped), (2, 1, 1, 1));
}

#[test]
fn a_time_that_never_comes_is_counted_and_named() {
    for alignment in [ordered(), Alignment::new(Policy::Arrival)] {
        let plan = plan(alignment, false);
        let mut session = plan.start().unwrap();
        for _ in 0..3 {
            session.push(TopicId(0), Stamp::default(), br#"{"stamp":1,"k":1}"#).unwrap();
        }
        session.flush();
        assert_eq!(session.notices().filter(|notice| notice.kind == "unstamped").count(), 3);
        session.finish();
        let summary = session.summary();
        let [a, b] = &summary.topics[..] else { panic!("two topics") };
        assert!(a.never_stamped() && a.unstamped == 3 && !a.missing && b.missing);
        assert!(summary.is_inconclusive());
    }
}

#[test]
fn what_nobody_takes_is_bounded() {
    let plan = plan(ordered(), false);
    let mut session = plan.start().unwrap();
    for _ in 0..10_000 {
        session.push(TopicId(0), Stamp::default(), b"{}").unwrap();
    }
    assert!(session.notices().count() <= 4096);
    session.finish();
    session.finish();
    assert_eq!(session.summary().topics[0].unstamped, 10_000);
}
