//! Missed messages that a session knows of: verdicts that depend on them are inconclusive.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use rondel_event::{Origin, Timestamp, TopicId, Verdict};
use rondel_runtime::alignment::Policy;
use rondel_runtime::{Alignment, Blind, ManualClock, Options, Reason, Session, Stamp};

const TEXT: &str = "topic a { x: int } topic b { y: int }
    property recent = once[0, 3 s] a.x > 5
    property other = b.y < 5
    property ever = once a.x > 5";

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_nanos(seconds * 1_000_000_000)
}

fn session(blind: Blind, policy: Policy) -> (Session, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let spec = rondel_spec::parse(TEXT).spec.unwrap();
    let alignment = Alignment::new(policy);
    let options = Options { clock: clock.clone(), blind, alignment, ..Options::default() };
    (Session::new(&spec, options).unwrap(), clock)
}

fn push(session: &mut Session, clock: &ManualClock, topic: u32, seconds: i64, number: u64) {
    clock.set(at(seconds));
    let origin = Some(Origin { publisher: u64::from(topic), number });
    let stamp = Stamp { source: Some(at(seconds)), arrival: Some(at(seconds)), origin, ..Stamp::default() };
    let field = if topic == 0 { "x" } else { "y" };
    session.push(TopicId(topic), stamp, format!("{{\"{field}\": 1}}").as_bytes()).unwrap();
    session.flush();
}

/// The verdicts of a property and their times in seconds.
fn emitted(session: &mut Session, property: &str) -> Vec<(Verdict, i64)> {
    session.finish();
    let reports = session.reports().filter(|report| report.property().name == property);
    reports.map(|report| (report.verdict(), report.time().as_nanos() / 1_000_000_000)).collect()
}

fn with_a_gap(blind: Blind, policy: Policy) -> Session {
    let (mut session, clock) = session(blind, policy);
    for seconds in 0..20 {
        // The messages of 5 to 7 s are lost.
        if !(5..8).contains(&seconds) {
            push(&mut session, &clock, 0, seconds, seconds as u64);
        }
        push(&mut session, &clock, 1, seconds, seconds as u64);
    }
    session
}

#[test]
fn a_gap_in_the_numbers_makes_a_window_over_it_inconclusive() {
    for policy in [Policy::Arrival, Policy::EventTime] {
        let mut session = with_a_gap(Blind::Inconclusive, policy);
        let recent = emitted(&mut session, "recent");
        let after: Vec<&(Verdict, i64)> = recent.iter().filter(|(_, time)| *time >= 4).collect();
        let [(first, since), (second, until)] = after[..] else { panic!("{policy:?}: {recent:?}") };
        assert_eq!((*first, *second), (Verdict::Inconclusive, Verdict::Violated), "{policy:?}");
        assert!((4..=8).contains(since) && (11..=12).contains(until), "{policy:?}: {recent:?}");
        let summary = session.summary();
        assert!(summary.properties[0].blind.verdicts > 0 && summary.properties[1].blind.verdicts == 0);
        // A property that looks back without bound is never certain again, and the notice says so.
        let notices: Vec<_> = session.notices().filter(|notice| notice.kind == "blind").collect();
        let unbounded = notices.iter().any(|notice| notice.json()["unbounded"].to_string().contains("ever"));
        assert!(unbounded && summary.properties[2].open, "{policy:?}");
    }
}

#[test]
fn dropped_messages_of_a_topic_make_its_verdicts_inconclusive() {
    for policy in [Policy::Arrival, Policy::EventTime] {
        let (mut session, clock) = session(Blind::Inconclusive, policy);
        for seconds in 0..20 {
            if seconds == 5 {
                session.dropped(TopicId(0), 0, (at(5), at(5)), "nothing");
                session.dropped(TopicId(0), 7, (at(5), at(5)), "before the reload was complete");
            }
            push(&mut session, &clock, 0, seconds, seconds as u64);
            push(&mut session, &clock, 1, seconds, seconds as u64);
        }
        let recent = emitted(&mut session, "recent");
        assert!(
            recent.iter().any(|(verdict, _)| *verdict == Verdict::Inconclusive),
            "{policy:?}: {recent:?}"
        );
        let summary = session.summary();
        let omitted: Vec<_> =
            summary.omitted().iter().map(|own| (own.reason, own.topic, own.count)).collect();
        assert_eq!(omitted, [(Reason::Dropped, Some(TopicId(0)), 7)], "{policy:?}");
        assert!(summary.properties[1].blind.verdicts == 0, "{policy:?}");
    }
}

/// The last message came at 4 s, and those up to 9 s were dropped.
#[test]
fn dropped_messages_are_missed_until_the_last_one() {
    for policy in [Policy::Arrival, Policy::EventTime] {
        let (mut session, clock) = session(Blind::Inconclusive, policy);
        (0..5).for_each(|seconds| push(&mut session, &clock, 0, seconds, seconds as u64));
        clock.set(at(9));
        session.dropped(TopicId(0), 5, (at(5), at(9)), "before the reload was complete");
        // Their publisher has no numbers for them.
        (10..20).for_each(|seconds| push(&mut session, &clock, 0, seconds, seconds as u64 - 5));
        let recent = emitted(&mut session, "recent");
        let after: Vec<&(Verdict, i64)> = recent.iter().filter(|(_, time)| *time >= 10).collect();
        assert!(
            matches!(after[..], [.., (Verdict::Violated, 12..=14)]),
            "{policy:?}: a window that reaches back to 9 s is not certain: {recent:?}"
        );
    }
}

/// A violated `historically` is older than messages that were lost later, and than a later outage.
#[test]
fn a_final_verdict_is_kept_over_losses_and_outages() {
    let text = "topic a { x: int } topic b { y: int } @time(steps) property low = historically a.x < 1";
    let spec = rondel_spec::parse(text).spec.unwrap();
    let start = || {
        let (clock, alignment) = (Arc::new(ManualClock::default()), Alignment::new(Policy::Arrival));
        let options = Options { clock: clock.clone(), alignment, ..Options::default() };
        (Session::new(&spec, options).unwrap(), clock)
    };
    let (mut session, clock) = start();
    for number in [0, 1, 4] {
        push(&mut session, &clock, 0, number as i64, number);
    }
    assert_eq!(emitted(&mut session, "low"), [(Verdict::Violated, 0)]);
    for (from, verdict) in [(2, Verdict::Violated), (0, Verdict::Inconclusive)] {
        let (mut session, clock) = start();
        session.losses();
        push(&mut session, &clock, 0, 1, 1);
        session.losses();
        session.cut_off(&[TopicId(0)], at(from), Some(at(5)));
        // A message of the other topic: one of its own would decide again.
        push(&mut session, &clock, 1, 6, 2);
        assert_eq!(emitted(&mut session, "low").last().unwrap().0, verdict, "{from}");
    }
}

/// Properties over other topics wait for other messages, each alignment group separately.
#[test]
fn one_notice_names_every_affected_property() {
    for policy in [Policy::Arrival, Policy::EventTime] {
        let (mut session, clock) = session(Blind::Inconclusive, policy);
        (0..5).for_each(|n| (0..2).for_each(|topic| push(&mut session, &clock, topic, n, n as u64)));
        session.cut_off(&[TopicId(0), TopicId(1)], at(5), Some(at(6)));
        let notices: Vec<_> = session.notices().filter(|notice| notice.kind == "blind").collect();
        let [notice] = &notices[..] else { panic!("{policy:?}: {notices:?}") };
        let json = notice.json();
        let mut names: Vec<&str> =
            json["properties"].as_array().unwrap().iter().filter_map(|name| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["ever", "other", "recent"], "{policy:?}");
        assert_eq!(json["unbounded"].to_string(), "[\"ever\"]", "{policy:?}");
    }
}

#[test]
fn losses_are_only_reported_if_that_is_chosen() {
    let mut session = with_a_gap(Blind::Report, Policy::Arrival);
    assert!(emitted(&mut session, "recent").iter().all(|(verdict, _)| *verdict == Verdict::Violated));
    assert_eq!(session.summary().properties[0].blind.verdicts, 0);
}

#[test]
fn a_network_that_was_cut_off_makes_its_topics_inconclusive() {
    let (mut session, clock) = session(Blind::Inconclusive, Policy::Arrival);
    (0..5).for_each(|seconds| push(&mut session, &clock, 0, seconds, seconds as u64));
    session.cut_off(&[TopicId(0)], at(5), None);
    push(&mut session, &clock, 1, 8, 0);
    session.cut_off(&[TopicId(0)], at(5), Some(at(9)));
    (10..20).for_each(|seconds| push(&mut session, &clock, 0, seconds, seconds as u64));
    let recent = emitted(&mut session, "recent");
    let [.., (first, since), (second, until)] = recent[..] else { panic!("{recent:?}") };
    assert_eq!((first, second), (Verdict::Inconclusive, Verdict::Violated), "{recent:?}");
    assert!((4..=8).contains(&since) && (13..=14).contains(&until), "{recent:?}");
}

#[test]
fn time_violates_no_property_while_a_network_is_disconnected() {
    let clock = Arc::new(ManualClock::default());
    let spec = rondel_spec::parse("topic a @time(dense) property alive = once[0, 2 s] on(a)").spec.unwrap();
    let mut session = Session::new(&spec, Options { clock: clock.clone(), ..Options::default() }).unwrap();
    let mut emitted = Vec::new();
    for seconds in 0..40 {
        clock.set(at(seconds));
        match seconds {
            // The loss is known with the first poll after it.
            10 => session.cut_off(&[TopicId(0)], at(9), None),
            20 => session.cut_off(&[TopicId(0)], at(9), Some(at(20))),
            _ => {}
        }
        if !(10..20).contains(&seconds) && seconds < 30 {
            session.push(TopicId(0), Stamp::at(at(seconds)), b"{}").unwrap();
            session.flush();
        }
        session.poll();
        let verdicts = session.reports().map(|report| (report.verdict(), seconds));
        emitted.extend(verdicts);
    }
    use Verdict::{Inconclusive, Satisfied, Violated};
    let [(Satisfied, 0), (Inconclusive, 10..=13), (Satisfied, 20..=23), (Violated, 31..=33)] = emitted[..]
    else {
        panic!("{emitted:?}")
    };
}

#[test]
fn a_loss_begins_with_the_last_message_despite_polls() {
    let (mut session, clock) = session(Blind::Inconclusive, Policy::Arrival);
    (0..5).for_each(|seconds| push(&mut session, &clock, 0, seconds, seconds as u64));
    clock.set(at(7));
    session.flush();
    push(&mut session, &clock, 0, 9, 9);
    assert_eq!(session.summary().accounts[0].lost_between, Some((at(4), at(9))));
}
