//! Times that start over: each lap is checked like a recording of its own. Takes less than a second.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use rondel_event::{Path, TimeUnit, Timestamp, TopicId};
use rondel_runtime::alignment::Policy;
use rondel_runtime::{
    Alignment, Input, ManualClock, Options, Reason, Reset, ResetPolicy, Session, SessionPlan, Specification,
    Stamp, TimeSource,
};

/// `a` and `b` are alive if they come every 2 s.
const TEXT: &str = "topic a { t: time, x: int } topic b { t: time, x: int }
    property alive = age(b) <= 2 s
    property rises = previously once on(a) -> a.x > prev(a.x)";

fn plan(policy: Policy, reset: ResetPolicy) -> SessionPlan {
    plan_of(TEXT, policy, reset)
}

fn plan_of(text: &str, policy: Policy, reset: ResetPolicy) -> SessionPlan {
    let input = Input {
        time: TimeSource::Field(Path::keys(["t"])),
        time_unit: TimeUnit::Seconds,
        ..Input::default()
    };
    let options = Options {
        inputs: vec![input.clone(), input],
        alignment: Alignment { ahead: None, behind: None, ..Alignment::new(policy) },
        clock: Arc::new(ManualClock::default()),
        reset: Reset { policy: reset, after: None },
        ..Options::default()
    };
    SessionPlan::of(Specification::new(rondel_spec::parse(text).spec.unwrap()).unwrap(), options)
}

/// Topic, time in seconds and value.
type Message = (u32, i64, i64);

/// Two laps; in the second one `b` is silent from 2 s to 5 s.
const LAPS: [Message; 13] = [
    (0, 100, 1),
    (1, 100, 1),
    (0, 101, 2),
    (1, 101, 1),
    (0, 102, 3),
    (0, 1, 1),
    (1, 1, 1),
    (0, 2, 2),
    (1, 2, 1),
    (0, 3, 3),
    (0, 4, 4),
    (0, 5, 5),
    (1, 5, 1),
];

fn said(session: &mut Session) -> Vec<String> {
    let text = |report: rondel_runtime::Report<'_>| {
        let (name, verdict) = (&report.property().name, report.verdict().as_str());
        format!("{name} {verdict} {:.1} lap {}", report.time().as_nanos() as f64 / 1e9, report.lap())
    };
    session.reports().map(text).collect()
}

fn pushed(plan: &SessionPlan, messages: &[Message]) -> (Vec<String>, Session) {
    let (mut session, mut all) = (plan.start().unwrap(), Vec::new());
    for (topic, time, x) in messages {
        let payload = format!(r#"{{"t":{time},"x":{x}}}"#);
        session.push(TopicId(*topic), Stamp::default(), payload.as_bytes()).unwrap();
        session.flush();
        all.extend(said(&mut session));
    }
    session.finish();
    all.extend(said(&mut session));
    (all, session)
}

fn in_lines(plan: &SessionPlan, messages: &[Message]) -> (Vec<String>, Session) {
    let (mut session, mut all) = (plan.start().unwrap(), Vec::new());
    let mut lines = session.lines(TimeUnit::Seconds);
    let line = |(topic, time, x): &Message| {
        let name = ["a", "b"][*topic as usize];
        format!("{{\"topic\":\"{name}\",\"time\":{time},\"data\":{{\"t\":{time},\"x\":{x}}}}}\n")
    };
    let text: String = messages.iter().map(line).collect();
    let mut at = 0;
    while at < text.len() {
        at = session.push_lines(&mut lines, text.as_bytes(), at, text.len()).unwrap();
        all.extend(said(&mut session));
    }
    session.finish();
    all.extend(said(&mut session));
    (all, session)
}

#[test]
fn messages_before_a_lap_keep_their_texts() {
    let text = "topic a { t: time, s: string } topic b { t: time }
        property whole = a.s == \"some\" or a.s == \"another\"";
    for policy in [Policy::Arrival, Policy::EventTime] {
        let mut session = plan_of(text, policy, ResetPolicy::Restart).start().unwrap();
        for (time, s) in [(1000, "some"), (1001, "another"), (1002, "some"), (1, "another"), (2, "some")] {
            let payload = format!(r#"{{"t":{time},"s":"{s}"}}"#);
            session.push(TopicId(0), Stamp::default(), payload.as_bytes()).unwrap();
        }
        session.finish();
        let all = said(&mut session);
        assert!(all.first().is_some_and(|line| line.starts_with("whole satisfied")), "{policy:?}: {all:?}");
        assert!(!all.iter().any(|line| line.starts_with("whole violated")), "{policy:?}: {all:?}");
    }
}

#[test]
fn each_lap_is_checked_like_a_recording_of_its_own() {
    for policy in [Policy::Arrival, Policy::EventTime] {
        let plan = plan(policy, ResetPolicy::Restart);
        let (alone, _) = pushed(&plan, &LAPS[5..]);
        for (all, mut session) in [pushed(&plan, &LAPS), in_lines(&plan, &LAPS)] {
            let second: Vec<String> = all
                .iter()
                .filter_map(|line| Some(line.strip_suffix(" lap 2")?.to_owned() + " lap 1"))
                .collect();
            assert_eq!(second, alone, "{policy:?}");
            assert!(second.iter().any(|line| line.starts_with("alive violated 4.0")), "{second:?}");
            assert!(!all.iter().any(|line| line.starts_with("rises violated")), "{all:?}");
            let notices: Vec<String> = session.notices().map(|notice| notice.json().to_string()).collect();
            let reset = r#"{"from":102.0,"lap":2,"report":"reset","time":1.0}"#;
            assert!(notices.iter().any(|notice| notice == reset), "{notices:?}");
            let summary = session.summary();
            assert_eq!((summary.counts.received, summary.counts.checked), (13, 13), "{policy:?}");
            assert_eq!((summary.backwards, summary.properties[0].violations), (0, 1), "{policy:?}");
        }
    }
}

#[test]
fn without_a_restart_verdicts_are_inconclusive_or_messages_late() {
    for policy in [Policy::Arrival, Policy::EventTime] {
        let (_, session) = pushed(&plan(policy, ResetPolicy::Inconclusive), &LAPS);
        assert!(session.summary().is_inconclusive(false), "{policy:?}");
        let (all, mut session) = pushed(&plan(policy, ResetPolicy::Ignore), &LAPS);
        assert!(all.iter().all(|line| line.ends_with("lap 1")), "{all:?}");
        assert!(!session.notices().any(|notice| notice.kind == "reset"));
    }
}

#[test]
fn a_topic_that_steps_back_alone_is_late() {
    let messages = [(0, 100, 1), (1, 100, 1), (0, 50, 2), (1, 101, 1), (0, 51, 3), (1, 102, 1)];
    for policy in [Policy::Arrival, Policy::EventTime] {
        let (all, mut session) = pushed(&plan(policy, ResetPolicy::Restart), &messages);
        assert!(all.iter().all(|line| line.ends_with("lap 1")), "{all:?}");
        assert!(!session.notices().any(|notice| notice.kind == "reset"));
        assert_eq!(session.summary().counts.checked, 6, "{policy:?}");
    }
}

#[test]
fn a_new_lap_continues_after_a_snapshot() {
    let plan = plan(Policy::Arrival, ResetPolicy::Restart);
    let whole = pushed(&plan, &LAPS).0;
    for cut in 1..LAPS.len() {
        // Where a message waits, it is late in the snapshot.
        if cut == 6 {
            continue;
        }
        let (mut session, mut all) = (plan.start().unwrap(), Vec::new());
        for (at, (topic, time, x)) in LAPS.iter().enumerate() {
            if at == cut {
                let bytes = session.snapshot("");
                all.extend(said(&mut session));
                session = plan.restore(&bytes, "").unwrap();
            }
            let payload = format!(r#"{{"t":{time},"x":{x}}}"#);
            session.push(TopicId(*topic), Stamp::default(), payload.as_bytes()).unwrap();
            session.flush();
            all.extend(said(&mut session));
        }
        session.finish();
        all.extend(said(&mut session));
        assert_eq!(all, whole, "cut at {cut}");
    }
}

#[test]
fn messages_not_evaluated_before_a_lap_are_counted_after_a_snapshot() {
    let plan = plan(Policy::Arrival, ResetPolicy::Restart);
    let undecodable = |cuts: &[usize]| {
        let mut session = plan.start().unwrap();
        for (at, (topic, time, x)) in LAPS.iter().enumerate() {
            if cuts.contains(&at) {
                let bytes = session.snapshot("");
                session = plan.restore(&bytes, "").unwrap();
            }
            // One in each lap.
            if [2, 10].contains(&at) {
                session.push(TopicId(0), Stamp::default(), b"{").unwrap_err();
            }
            let payload = format!(r#"{{"t":{time},"x":{x}}}"#);
            session.push(TopicId(*topic), Stamp::default(), payload.as_bytes()).unwrap();
            session.flush();
        }
        session.finish();
        let omitted = session.summary().omitted();
        let own = omitted.iter().filter(|omission| omission.reason == Reason::Undecodable);
        own.map(|omission| (omission.topic, omission.count)).collect::<Vec<_>>()
    };
    let expected = [(Some(TopicId(0)), 2)];
    assert_eq!(undecodable(&[]), expected);
    for cuts in [[1, 4], [3, 8], [4, 11], [8, 12]] {
        assert_eq!(undecodable(&cuts), expected, "{cuts:?}");
    }
}

#[test]
fn a_single_waiting_message_begins_a_lap_after_a_while() {
    let clock = Arc::new(ManualClock::default());
    let mut plan = plan(Policy::Arrival, ResetPolicy::Restart);
    plan.set_clock(clock.clone());
    let mut session = plan.start().unwrap();
    for (topic, time, x) in &LAPS[..6] {
        let payload = format!(r#"{{"t":{time},"x":{x}}}"#);
        session.push(TopicId(*topic), Stamp::default(), payload.as_bytes()).unwrap();
    }
    session.flush();
    assert!(session.notices().next().is_none());
    let due = session.poll().unwrap();
    clock.set(Timestamp::from_nanos(due));
    session.poll();
    assert!(session.notices().any(|notice| notice.kind == "reset"));
}

#[test]
fn a_jump_by_years_is_reported_once() {
    // Before the first message on /clock the times are 0.
    let messages: [Message; 7] = [
        (0, 0, 1),
        (1, 0, 1),
        (0, 1_649_138_879, 2),
        (1, 1_649_138_879, 1),
        (0, 1_649_138_880, 3),
        (0, 1_809_138_880, 4),
        (1, 1_809_138_880, 4),
    ];
    for policy in [Policy::Arrival, Policy::EventTime] {
        let plan = plan(policy, ResetPolicy::Restart);
        for ((_, mut session), advice) in
            [(pushed(&plan, &messages), "`--from`"), (in_lines(&plan, &messages), "delete the lines")]
        {
            let jumps: Vec<_> = session.notices().filter(|notice| notice.kind == "jump").collect();
            assert_eq!(jumps.len(), 1, "{policy:?}");
            assert_eq!(
                jumps[0].json().to_string(),
                r#"{"from":0.0,"report":"jump","time":1649138879.0,"topic":"a"}"#
            );
            let text = jumps[0].text(&mut |time| format!("{} s", time.as_nanos() / 1_000_000_000));
            let expected = format!("times jump from 0 s to 1649138879 s; {advice}");
            assert!(text.starts_with(&expected), "{text}");
        }
    }
}
