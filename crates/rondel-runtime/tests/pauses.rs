//! Machines that move by themselves, in a session: pauses are bounded work, said at once, and interruptible.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use rondel_event::{Path, Timestamp, TopicId};
use rondel_runtime::alignment::{MaxWait, Policy, TopicAlignment};
use rondel_runtime::{
    Alignment, Input, ManualClock, Options, Session, SessionPlan, Specification, Stamp, TimeSource,
};

const BLINKER: &str =
    "topic a { t: time } machine m { initial off off -> on after 1 ms on -> off after 1 ms error on }";
const HEARTBEAT: &str = "topic a { t: time } topic beat { t: time }
    machine m { initial waiting waiting -> waiting after 100 ms waiting -> hit when on(beat) error hit }";

fn plan(text: &str, alignment: Alignment, clock: &Arc<ManualClock>) -> SessionPlan {
    let specification = Specification::new(rondel_spec::parse(text).spec.unwrap()).unwrap();
    let input = Input { time: TimeSource::Field(Path::keys(["t"])), ..Input::default() };
    let inputs = vec![input; specification.spec.topics.len()];
    SessionPlan::of(
        specification,
        Options { inputs, alignment, clock: Arc::clone(clock) as _, ..Options::default() },
    )
}

fn push(session: &mut Session, topic: u32, seconds: u64) {
    let payload = format!("{{\"t\":{seconds}}}");
    session.push(TopicId(topic), Stamp::default(), payload.as_bytes()).unwrap();
}

/// The kinds of the notices since the last call.
fn notices(session: &mut Session) -> Vec<&'static str> {
    session.notices().map(|notice| notice.kind).collect()
}

#[test]
fn a_leap_is_reported_at_once_and_in_the_summary() {
    let clock = Arc::new(ManualClock::default());
    let ordered = {
        let topic = TopicAlignment {
            max_wait: MaxWait::Unlimited,
            absent_after: None,
            in_order: true,
            lower_bound: 0,
        };
        Alignment { topics: vec![topic], ahead: None, behind: None, ..Alignment::new(Policy::EventTime) }
    };
    for alignment in [Alignment::new(Policy::Arrival), ordered] {
        let mut session = plan(BLINKER, alignment, &clock).start().unwrap();
        push(&mut session, 0, 1);
        push(&mut session, 0, 21_601);
        session.flush();
        assert_eq!(notices(&mut session), ["leap"]);
        assert!(session.reports().count() < 40_000);
        session.finish();
        let omissions = session.summary().omissions;
        assert_eq!(omissions.len(), 1, "{omissions:?}");
        assert!(omissions[0].starts_with("1 time a machine"), "{omissions:?}");
    }
}

#[test]
fn a_jump_from_zero_to_the_epoch_costs_a_heartbeat_nothing() {
    let clock = Arc::new(ManualClock::default());
    let mut session = plan(HEARTBEAT, Alignment::new(Policy::Arrival), &clock).start().unwrap();
    push(&mut session, 0, 1);
    session.flush();
    push(&mut session, 1, 1_732_250_000);
    session.flush();
    assert_eq!(session.reports().count(), 2);
    assert_eq!(notices(&mut session), ["jump"]);
    assert_eq!(session.deadline(), None);
}

#[test]
fn catching_up_with_the_clock_is_done_in_portions() {
    let clock = Arc::new(ManualClock::default());
    let mut session = plan(BLINKER, Alignment::new(Policy::Arrival), &clock).start().unwrap();
    push(&mut session, 0, 1);
    session.flush();
    clock.set(Timestamp::from_nanos(60_000_000_000));
    let mut calls = 0;
    let mut reports = 0;
    loop {
        let due = session.poll();
        calls += 1;
        let came = session.reports().count();
        assert!(came <= 2_000, "{came}");
        reports += came;
        // The clock stands still: once all is done, the next deadline is beyond it.
        if due.is_none_or(|due| due > 60_000_000_000) || calls > 1_000 {
            break;
        }
    }
    assert!((30..1_000).contains(&calls), "{calls}");
    // Time that passes with the clock is followed, however long.
    assert!(reports >= 59_990, "{reports}");
    assert_eq!(notices(&mut session), [""; 0]);
}
