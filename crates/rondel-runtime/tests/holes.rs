//! Recordings in which messages are missing: verdicts that depend on them are inconclusive, as in a live run.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use rondel_event::{Origin, TimeUnit, Timestamp, TopicId, Verdict};
use rondel_runtime::alignment::Policy;
use rondel_runtime::{Alignment, Blind, ManualClock, Options, Session, SessionPlan, Stamp};

const TEXT: &str = "topic a { x: int } topic b { y: int }
    property recent = once[0, 3 s] a.x > 5
    property alive = on(b) -> once[0, 1500 ms] on(a)
    property steps = once[0, 2] a.x > 5
    @time(dense) property dense = once[0, 2 s] on(a)
    property ahead = on(b) -> eventually[0, 2 s] on(a)
    property other = b.y < 5";

/// A second of the recording: content of its line on `a`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Line {
    Good,
    Missing,
    Broken,
    Undecodable,
    /// Its time is decades after that of the others.
    Refused,
}

fn plan(policy: Policy, blind: Blind) -> SessionPlan {
    let spec = rondel_spec::parse(TEXT).spec.unwrap();
    let clock = Arc::<ManualClock>::default();
    SessionPlan::new(&spec, Options { alignment: Alignment::new(policy), blind, clock, ..Options::default() })
        .unwrap()
}

fn session(policy: Policy, blind: Blind) -> Session {
    plan(policy, blind).start().unwrap()
}

type Emitted = Vec<(String, Verdict, Timestamp)>;

fn emitted(session: Session) -> Emitted {
    emitted_after(Vec::new(), session)
}

fn take(session: &mut Session) -> Emitted {
    let emitted = session.reports();
    emitted.map(|report| (report.property().name.clone(), report.verdict(), report.time())).collect()
}

fn emitted_after(mut emitted: Emitted, mut session: Session) -> Emitted {
    session.finish();
    emitted.extend(take(&mut session));
    // The order of the properties at one time is another matter.
    emitted.sort_by(|a, b| (a.2, &a.0).cmp(&(b.2, &b.0)));
    emitted
}

fn payload(topic: u32) -> &'static str {
    ["{\"x\":1}", "{\"y\":1}"][topic as usize]
}

/// Twenty seconds with both topics, of which `a` has these lines from the fifth on.
fn recording(odd: &[Line]) -> Vec<(u32, i64, Line)> {
    let line =
        |second: i64| odd.get((second - 5) as usize).copied().filter(|_| second >= 5).unwrap_or(Line::Good);
    (0..20).flat_map(|second| [(0, second, line(second)), (1, second, Line::Good)]).collect()
}

/// The recording as lines.
fn lines(odd: &[Line]) -> Vec<String> {
    let line = |(topic, second, line): (u32, i64, Line)| {
        let (name, data) = (["a", "b"][topic as usize], payload(topic));
        let origin = format!("{{\"publisher\":{},\"number\":{second}}}", topic + 1);
        let start = format!("{{\"topic\":\"{name}\",\"time\":{second},\"arrival\":{second}");
        match line {
            Line::Good => Some(format!("{start},\"origin\":{origin},\"data\":{data}}}\n")),
            Line::Missing => None,
            Line::Broken => Some(format!("{start},\"data\":\n")),
            Line::Undecodable => Some(format!("{start},\"origin\":{origin},\"payload\":\"no\"}}\n")),
            Line::Refused => {
                let start = format!("{{\"topic\":\"{name}\",\"time\":4000000000,\"arrival\":{second}");
                Some(format!("{start},\"origin\":{origin},\"data\":{data}}}\n"))
            }
        }
    };
    recording(odd).into_iter().filter_map(line).collect()
}

fn push(session: &mut Session, all: &[String], piece: usize) {
    let mut lines = session.lines(TimeUnit::Seconds).skip_errors(true);
    for part in all.chunks(piece) {
        let text = part.concat();
        let mut at = 0;
        while at < text.len() {
            at = session.push_lines(&mut lines, text.as_bytes(), at, text.len()).unwrap();
        }
    }
}

/// Verdicts of the recording as lines, in pieces of `piece` lines.
fn checked(odd: &[Line], policy: Policy, blind: Blind, piece: usize) -> Emitted {
    let mut session = session(policy, blind);
    push(&mut session, &lines(odd), piece);
    emitted(session)
}

/// The verdicts of two recordings, of which the second continues the first.
fn continued(odd: &[Line], policy: Policy, at: usize) -> Emitted {
    let plan = plan(policy, Blind::Inconclusive);
    let (mut first, all) = (plan.start().unwrap(), lines(odd));
    push(&mut first, &all[..at], 64);
    let snapshot = first.snapshot("");
    let emitted = take(&mut first);
    let mut second = plan.restore(&snapshot, "").unwrap();
    push(&mut second, &all[at..], 64);
    assert_eq!(second.summary().seam.is_some(), at > 0 && at < all.len());
    emitted_after(emitted, second)
}

/// The same messages, one by one.
fn live(odd: &[Line], policy: Policy) -> Emitted {
    let mut session = session(policy, Blind::Inconclusive);
    for (topic, second, line) in recording(odd) {
        let time = Some(Timestamp::from_nanos(second * 1_000_000_000));
        let origin = Some(Origin { publisher: u64::from(topic) + 1, number: second as u64 });
        let stamp = Stamp { source: time, arrival: time, origin, ..Stamp::default() };
        let text = if line == Line::Undecodable { "no" } else { payload(topic) };
        if line == Line::Good || line == Line::Undecodable {
            let _ = session.push(TopicId(topic), stamp, text.as_bytes());
        }
    }
    emitted(session)
}

const GAP: [Line; 3] = [Line::Missing; 3];
const BROKEN: [Line; 3] = [Line::Good, Line::Broken, Line::Good];
const UNDECODABLE: [Line; 3] = [Line::Good, Line::Undecodable, Line::Good];
const REFUSED: [Line; 3] = [Line::Good, Line::Refused, Line::Good];

#[test]
fn missing_messages_make_verdicts_inconclusive() {
    for policy in [Policy::Arrival, Policy::EventTime] {
        for (odd, accused) in [(&GAP, "dense"), (&BROKEN, "recent"), (&UNDECODABLE, "recent")] {
            let case = format!("{odd:?} {policy:?}");
            let emitted = checked(odd, policy, Blind::Inconclusive, 64);
            let of = |property: &str| -> Vec<(Verdict, i64)> {
                let its = emitted.iter().filter(|(name, ..)| name == property);
                its.map(|(_, verdict, time)| (*verdict, time.as_nanos() / 1_000_000_000)).collect()
            };
            let is_open = |(verdict, time): &(Verdict, i64)| {
                *verdict == Verdict::Inconclusive && (3..=9).contains(time)
            };
            for property in [accused, "recent", "steps"] {
                assert!(of(property).iter().any(is_open), "{case}: {property} {emitted:?}");
                assert!(
                    of(property).last().is_some_and(|(verdict, _)| *verdict != Verdict::Inconclusive),
                    "{case}"
                );
            }
            // Verdicts reported before the gap was noticed stay.
            let accuses = |(verdict, time): &(Verdict, i64)| *verdict == Verdict::Violated && *time >= 8;
            assert!(!of("alive").iter().any(accuses), "{case}: {emitted:?}");
            if odd != &BROKEN {
                // Inconclusive before the first message, then satisfied.
                assert_eq!(of("other").len(), 2, "{case}: {emitted:?}");
            }
        }
        let silent = checked(&GAP, policy, Blind::Report, 64);
        assert!(silent.iter().any(|(name, verdict, _)| name == "alive" && *verdict == Verdict::Violated));
    }
}

#[test]
fn the_cut_into_pieces_makes_no_difference() {
    for policy in [Policy::Arrival, Policy::EventTime] {
        for odd in [&GAP, &BROKEN, &UNDECODABLE] {
            let whole = checked(odd, policy, Blind::Inconclusive, 64);
            for piece in 1..12 {
                let pieces = checked(odd, policy, Blind::Inconclusive, piece);
                assert_eq!(pieces, whole, "{policy:?} {odd:?} {piece}");
            }
        }
    }
}

#[test]
fn the_cut_into_pieces_makes_no_difference_to_a_message_that_is_refused() {
    for has_arrivals in [true, false] {
        let arrival = |second: i64| format!(",\"arrival\":{second}");
        let without =
            |line: String| (0..20).rev().fold(line, |line, second| line.replace(&arrival(second), ""));
        let all: Vec<String> = lines(&REFUSED);
        let all = if has_arrivals { all } else { all.into_iter().map(without).collect() };
        let said = |piece: usize| {
            let mut session = session(Policy::EventTime, Blind::Inconclusive);
            push(&mut session, &all, piece);
            assert_eq!(session.summary().counts.refused, 1, "{has_arrivals} {piece}");
            emitted(session)
        };
        let single = said(1);
        let is_of = |emitted: &&(String, Verdict, Timestamp)| emitted.0 == "steps";
        // The verdicts before it stay, and those behind it are certain again.
        let steps: Vec<Verdict> = single.iter().filter(is_of).map(|emitted| emitted.1).collect();
        assert_eq!(steps, [Verdict::Violated, Verdict::Inconclusive, Verdict::Violated], "{single:?}");
        for piece in 2..64 {
            assert_eq!(said(piece), single, "{has_arrivals} {piece}");
        }
    }
}

/// Verdicts by property, with their times to the microsecond. When an alignment has just begun to wait, it notices a gap before the
/// verdict at the time of a message, and otherwise between that and the verdict right after it: both are right.
fn rounded(emitted: Emitted) -> Emitted {
    let to_microseconds = |time: Timestamp| Timestamp::from_nanos(time.as_nanos() / 1_000 * 1_000);
    let rounded =
        emitted.into_iter().map(|(property, verdict, time)| (property, verdict, to_microseconds(time)));
    let mut rounded: Emitted = rounded.collect();
    rounded.sort_by(|a, b| (&a.0, a.2).cmp(&(&b.0, b.2)));
    // A message may make a verdict certain before the gap is noticed that withholds it again: only lasting verdicts
    // count.
    let lasting = |at: usize| match rounded.get(at + 1) {
        Some(next) => (&next.0, next.2) != (&rounded[at].0, rounded[at].2),
        None => true,
    };
    let lasting: Vec<bool> = (0..rounded.len()).map(lasting).collect();
    let mut lasting = lasting.into_iter();
    rounded.retain(|_| lasting.next().unwrap_or(true));
    rounded.dedup_by(|next, before| (&next.0, next.1) == (&before.0, before.1));
    rounded
}

#[test]
fn the_cut_into_recordings_makes_no_difference() {
    for policy in [Policy::Arrival, Policy::EventTime] {
        for odd in [&GAP, &BROKEN, &UNDECODABLE] {
            let whole = rounded(checked(odd, policy, Blind::Inconclusive, 64));
            for at in 0..lines(odd).len() {
                assert_eq!(rounded(continued(odd, policy, at)), whole, "{policy:?} {odd:?} {at}");
            }
        }
    }
}

#[test]
fn a_gap_in_a_recording_counts_as_one_in_a_run() {
    for odd in [&GAP, &UNDECODABLE] {
        let emitted = checked(odd, Policy::Arrival, Blind::Inconclusive, 64);
        assert_eq!(emitted, live(odd, Policy::Arrival), "{odd:?}");
    }
}

#[test]
fn a_message_that_cannot_be_decoded_is_not_missing() {
    let mut session = session(Policy::EventTime, Blind::Inconclusive);
    for (number, text) in [(0, "{\"x\":1}"), (1, "no"), (2, "{\"x\":1}"), (4, "{\"x\":1}")] {
        let time = Some(Timestamp::from_nanos(number as i64 * 1_000_000_000));
        let stamp = Stamp {
            source: time,
            arrival: time,
            origin: Some(Origin { publisher: 1, number }),
            ..Stamp::default()
        };
        assert_eq!(session.push(TopicId(0), stamp, text.as_bytes()).is_err(), text == "no");
    }
    session.finish();
    let summary = session.summary();
    assert_eq!(summary.alignment.unwrap().json()["topics"]["a"]["missing"], 1);
}

#[test]
fn verdict_within_a_gap_is_not_final() {
    let text = "topic a topic b property steady = historically (on(b) -> once[0, 1500 ms] on(a))";
    let spec = rondel_spec::parse(text).spec.unwrap();
    for (missing, last) in [(5..8, Verdict::Inconclusive), (5..5, Verdict::Satisfied)] {
        let mut session = Session::new(&spec, Options::default()).unwrap();
        let mut lines = session.lines(TimeUnit::Seconds);
        let line = |name: &str, second: i64| {
            let origin = format!("{{\"publisher\":1,\"number\":{second}}}");
            format!("{{\"topic\":\"{name}\",\"time\":{second},\"origin\":{origin},\"data\":{{}}}}\n")
        };
        let pair = |second: i64| {
            let a = if missing.contains(&second) { String::new() } else { line("a", second) };
            a + &line("b", second)
        };
        let text: String = (0..20).map(pair).collect();
        let mut at = 0;
        while at < text.len() {
            at = session.push_lines(&mut lines, text.as_bytes(), at, text.len()).unwrap();
        }
        assert_eq!(emitted(session).last().map(|(_, verdict, _)| *verdict), Some(last));
    }
}

/// The last message cannot be read: an earlier verdict of a property does not answer for the end.
#[test]
fn no_property_is_satisfied_at_the_end_by_messages_before_an_unreadable_one() {
    let text = "topic a { x: int } property low = historically a.x < 5";
    let spec = rondel_spec::parse(text).spec.unwrap();
    for (last, open) in [(&b"{\"x\":2}"[..], false), (b"nonsense", true)] {
        let mut session = Session::new(&spec, Options { live: true, ..Options::default() }).unwrap();
        let at = |seconds: i64| Stamp::at(Timestamp::from_nanos(seconds * 1_000_000_000));
        session.push(TopicId(0), at(1), b"{\"x\":1}").unwrap();
        assert_eq!(session.push(TopicId(0), at(2), last).is_err(), open);
        session.finish();
        let summary = session.summary();
        assert_eq!(summary.properties[0].open, open);
        assert_eq!(summary.properties[0].blind.verdicts, u64::from(open));
    }
}
