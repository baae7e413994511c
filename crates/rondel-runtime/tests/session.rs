//! A session gives the same reports however its messages are handed over: one by one or as lines, with or
//! without pauses, in one piece or continued from snapshots.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use proptest::prelude::*;
use rondel_event::{Path, TimeUnit, Timestamp, TopicId, Verdict};
use rondel_runtime::alignment::{Late, MaxWait, Policy, TopicAlignment};
use rondel_runtime::{
    Alignment, AlignmentClock, Emit, Input, ManualClock, Options, Reset, ResetPolicy, Session, SessionPlan,
    Specification, Stamp, TimeSource,
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
    plan_with(alignment, explain, Arc::new(ManualClock::default()))
}

/// Messages that step back are late: where they begin a new lap, verdicts by time at the end of the previous lap depend
/// on when the clock was read.
fn late_plan(alignment: &Alignment, clock: Arc<ManualClock>) -> SessionPlan {
    let reset = Reset { policy: ResetPolicy::Ignore, after: None };
    plan_of(Options { alignment: alignment.clone(), clock, reset, ..Options::default() })
}

fn plan_with(alignment: Alignment, explain: bool, clock: Arc<ManualClock>) -> SessionPlan {
    plan_of(Options { alignment, explain, clock, ..Options::default() })
}

fn plan_of(options: Options) -> SessionPlan {
    let input = || Input {
        time: TimeSource::Field(Path::keys(["t"])),
        time_unit: TimeUnit::Seconds,
        address: Some("net/a".to_owned()),
        ..Input::default()
    };
    let options =
        Options { inputs: vec![input(), Input { address: None, ..input() }], emit: Emit::Every, ..options };
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
        out[report.property().position as usize].push(String::from_utf8(json).unwrap());
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
            let topic =
                if message.1.is_multiple_of(3) && message.0 == 0 { "net/a" } else { NAMES[message.0] };
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
            // Explanations restart where a session is restored.
            if !explain {
                prop_assert_eq!(&one_by_one(&plan, &messages, &flushes, &snapshots), &whole);
            }
        }
    }
}

/// Waits end by the clock, and topics may be absent.
fn impatient(late: Late, clock: AlignmentClock, absent_after: Option<i64>) -> Alignment {
    let max_wait = MaxWait::Fixed(2_000_000_000);
    let topic = TopicAlignment { max_wait, absent_after, in_order: true, lower_bound: 0 };
    Alignment { topics: vec![topic; 2], late, clock, ..Alignment::new(Policy::EventTime) }
}

/// Output of a session about messages and their lateness.
#[derive(Debug, PartialEq)]
struct Said {
    reports: Vec<Vec<String>>,
    alignment: String,
}

/// A late message counts some nanoseconds after the verdict before it. How many depends on the evaluation, so they are
/// left out: `25.000000002` is `25`.
fn said(session: &Session, mut reports: Vec<Vec<String>>) -> Said {
    let cut = |text: &str| {
        let mut pieces = text.split(".00000000");
        let first = pieces.next().unwrap_or_default().to_owned();
        pieces
            .fold(first, |cut, piece| cut + piece.strip_prefix(|c: char| c.is_ascii_digit()).unwrap_or(piece))
    };
    reports.iter_mut().flatten().for_each(|report| *report = cut(report));
    let alignment = session.summary().alignment.unwrap().json();
    let of = |topic: &str| {
        let topic = &alignment["topics"][topic];
        format!("{} late, {} dropped", topic["late"], topic["dropped"])
    };
    Said { reports, alignment: NAMES.map(of).join("; ") }
}

/// Messages with the milliseconds at which they arrive. After each of some, everything is evaluated, and after that
/// the clock shows what time has brought some times before the next message.
fn arriving(
    plan: &SessionPlan,
    clock: &ManualClock,
    messages: &[(Message, i64)],
    flushes: &[bool],
    looks: usize,
) -> Said {
    let at = |ms: i64| Timestamp::from_nanos(ms * 1_000_000);
    let mut session = plan.start().unwrap();
    let mut out = vec![Vec::new(); plan.properties().len()];
    for (i, (message, arrival)) in messages.iter().enumerate() {
        clock.set(at(*arrival));
        let stamp = Stamp { arrival: Some(at(*arrival)), ..Stamp::default() };
        session.push(TopicId(message.0 as u32), stamp, payload(*message).as_bytes()).unwrap();
        if flushes[i % flushes.len()] {
            session.flush();
            let next = messages.get(i + 1).map_or(*arrival, |(_, next)| *next);
            for look in 1..=looks as i64 {
                clock.set(at(arrival + (next - arrival) * look / (looks as i64 + 1)));
                session.poll();
            }
        }
        take(&mut session, &mut out);
    }
    session.finish();
    take(&mut session, &mut out);
    said(&session, out)
}

/// The same as recorded lines, with their times of arrival.
fn recorded(plan: &SessionPlan, messages: &[(Message, i64)]) -> Said {
    let mut session = plan.start().unwrap();
    let mut lines = session.lines(TimeUnit::Seconds);
    let mut out = vec![Vec::new(); plan.properties().len()];
    let line = |(message, arrival): &(Message, i64)| {
        let (topic, data) = (NAMES[message.0], payload(*message));
        format!("{{\"topic\":\"{topic}\",\"arrival\":{},\"data\":{data}}}\n", *arrival as f64 / 1000.0)
    };
    let text: String = messages.iter().map(line).collect();
    let mut at = 0;
    while at < text.len() {
        at = session.push_lines(&mut lines, text.as_bytes(), at, text.len()).unwrap();
        take(&mut session, &mut out);
    }
    session.finish();
    take(&mut session, &mut out);
    said(&session, out)
}

/// Messages in any order, some of them much later than others.
fn late_messages() -> impl Strategy<Value = Vec<(Message, i64)>> {
    let message =
        (0..2_usize, 0..3_u8, 0..5_u8, 0..3_u32, prop_oneof![3 => 0..2_u32, 1 => 0..9_u32], 0..2500_i64);
    proptest::collection::vec(message, 1..150).prop_map(|all| {
        let (mut now, mut arrival) = (20, 1_000_000);
        let timed = all.into_iter().map(|(topic, key, value, step, delay, pause)| {
            now += step;
            arrival += pause;
            ((topic, now - delay, key, value), arrival)
        });
        timed.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn late_messages_are_late_however_they_come(
        messages in late_messages(),
        flushes in proptest::collection::vec(any::<bool>(), 1..9),
        looks in 0..4_usize,
        late in prop_oneof![Just(Late::Late), Just(Late::Drop), Just(Late::Inconclusive)],
        absent_after in prop_oneof![Just(None), Just(Some(5_000_000_000))],
    ) {
        let clock = || Arc::new(ManualClock::default());
        let alignment = impatient(late, AlignmentClock::Messages, absent_after);
        let live = |flushes: &[bool], looks: usize| {
            let clock = clock();
            arriving(&late_plan(&alignment, Arc::clone(&clock)), &clock, &messages, flushes, looks)
        };
        let whole = recorded(&late_plan(&alignment, clock()), &messages);
        prop_assert_eq!(&live(&[false], 0), &whole);
        prop_assert_eq!(&live(&[true], 0), &whole);
        prop_assert_eq!(&live(&[true], looks), &whole);
        prop_assert_eq!(&live(&flushes, looks), &whole);
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
fn messages_of_one_time_are_together_within_a_millisecond() {
    use Verdict::{Satisfied, Violated};
    let text = "topic a { t: time, x: int } @time(dense) property low = not (on(a) and a.x > 5)";
    let specification = Specification::new(rondel_spec::parse(text).spec.unwrap()).unwrap();
    let changes = |pause_ns: Option<i64>| {
        let clock = Arc::new(ManualClock::default());
        let inputs = vec![Input { time: TimeSource::Field(Path::keys(["t"])), ..Input::default() }];
        let alignment = Alignment::new(Policy::Arrival);
        let options = Options { inputs, alignment, clock: Arc::clone(&clock) as _, ..Options::default() };
        let mut session = SessionPlan::of(specification.clone(), options).start().unwrap();
        for (i, payload) in [r#"{"t":1,"x":9}"#, r#"{"t":1,"x":9}"#, r#"{"t":2,"x":1}"#].iter().enumerate() {
            session.push(TopicId(0), Stamp::default(), payload.as_bytes()).unwrap();
            session.flush();
            if let Some(pause_ns) = pause_ns.filter(|_| i == 0) {
                clock.set(Timestamp::from_nanos(pause_ns));
                session.poll();
            }
        }
        session.finish();
        session.reports().map(|report| (report.time().as_nanos(), report.verdict())).collect::<Vec<_>>()
    };
    let together = vec![(1_000_000_000, Violated), (1_000_000_000, Satisfied)];
    assert_eq!(changes(None), together);
    assert_eq!(changes(Some(500_000)), together, "the clock was read between them");
    let apart = [together.clone(), vec![(1_000_000_001, Violated), (1_000_000_001, Satisfied)]].concat();
    assert_eq!(changes(Some(2_000_000)), apart, "the second message is late");
}

#[test]
fn a_change_after_the_last_message_comes_within_a_millisecond() {
    let text = "topic a { t: time, x: int } @time(dense) property low = not (on(a) and a.x > 5)";
    let specification = Specification::new(rondel_spec::parse(text).spec.unwrap()).unwrap();
    let clock = Arc::new(ManualClock::default());
    let inputs = vec![Input { time: TimeSource::Field(Path::keys(["t"])), ..Input::default() }];
    let alignment = Alignment::new(Policy::Arrival);
    let options = Options { inputs, alignment, clock: Arc::clone(&clock) as _, ..Options::default() };
    let mut session = SessionPlan::of(specification, options).start().unwrap();
    session.push(TopicId(0), Stamp::default(), br#"{"t":1,"x":9}"#).unwrap();
    let is_over = |session: &mut Session| session.reports().any(|of| of.verdict() == Verdict::Satisfied);
    let due = session.poll().unwrap();
    assert!((1_000_000..=1_000_001).contains(&due), "{due} ns");
    assert!(!is_over(&mut session));
    // No message follows.
    clock.set(Timestamp::from_nanos(due));
    session.poll();
    assert!(is_over(&mut session));
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
        let a = &summary.topics[0];
        assert!(a.never_stamped() && a.unstamped == 3 && summary.missing_topics() == ["b"]);
        assert!(summary.is_inconclusive(false));
    }
}

#[test]
fn untaken_notices_are_bounded() {
    let plan = plan(ordered(), false);
    let mut session = plan.start().unwrap();
    for _ in 0..10_000 {
        session.push(TopicId(0), Stamp::default(), b"{}").unwrap();
    }
    let notices: Vec<_> = session.notices().collect();
    let dropped = notices.iter().find(|notice| notice.kind == "unsaid").unwrap();
    assert!(notices.len() <= 4097 && dropped.json()["count"].as_u64().unwrap() >= 10_000 - 4096);
    session.finish();
    session.finish();
    assert_eq!(session.summary().topics[0].unstamped, 10_000);
}

#[test]
fn a_recording_names_lost_and_duplicate_messages_as_a_live_session_does() {
    use rondel_event::Origin;
    let plan = plan(ordered(), false);
    // Number 3 is lost, number 4 comes twice.
    let numbers = [u64::MAX - 3, 2, 4, 4, 5];
    let message = |i: usize| (0, i as u32, 0, 0);
    let kinds = |session: &mut Session| {
        session.notices().filter(|n| n.kind != "blind").map(|n| n.json().to_string()).collect::<Vec<_>>()
    };
    let mut live = plan.start().unwrap();
    let mut text = String::new();
    for (i, number) in numbers.into_iter().enumerate() {
        let publisher = if i == 0 { u64::MAX } else { 7 };
        let arrival = Timestamp::from_nanos(i as i64 * 1_000_000_000);
        let stamp =
            Stamp { arrival: Some(arrival), origin: Some(Origin { publisher, number }), ..Stamp::default() };
        live.push(TopicId(0), stamp, payload(message(i)).as_bytes()).unwrap();
        text += &format!(
            "{{\"topic\":\"a\",\"time\":{i},\"arrival\":{i},\"origin\":{{\"publisher\":{publisher},\
             \"number\":{number}}},\"data\":{}}}\n",
            payload(message(i))
        );
    }
    let mut recorded = plan.start().unwrap();
    let mut lines = recorded.lines(TimeUnit::Seconds);
    assert_eq!(recorded.push_lines(&mut lines, text.as_bytes(), 0, text.len()), Ok(text.len()));
    live.flush();
    let said = kinds(&mut live);
    assert_eq!(said.len(), 2, "{said:?}");
    assert_eq!(kinds(&mut recorded), said);
}
