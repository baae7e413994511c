//! The present state of properties that a caller watches.

#![allow(clippy::unwrap_used)] // a test

use rondel_event::{Origin, Timestamp, TopicId, Verdict};
use rondel_runtime::{Options, Session, SessionPlan, Specification, Stamp, Standing};

const SPEC: &str = "topic state { v: int, id: int }
    property low = state.v < 10
    property each_low for each id in state.id = state.v < 10";

fn session() -> Session {
    let spec = rondel_spec::parse(SPEC).spec.unwrap();
    let plan = SessionPlan::of(Specification::new(spec).unwrap(), Options::default());
    let mut session = plan.start().unwrap();
    assert_eq!(session.standing(0), None, "it is not watched");
    session.watch_properties(&[1, 0]);
    session
}

fn push(session: &mut Session, seconds: i64, v: i64, id: i64) {
    let stamp = Stamp::at(Timestamp::from_nanos(seconds * 1_000_000_000));
    let payload = format!("{{\"v\":{v},\"id\":{id}}}");
    session.push(TopicId(0), stamp, payload.as_bytes()).unwrap();
}

/// The verdict and the number of violations of each property.
fn standings(session: &Session) -> [(Verdict, u64); 2] {
    [0, 1].map(|property| {
        let Standing { verdict, violations } = session.standing(property).unwrap();
        (verdict, violations)
    })
}

#[test]
fn states_follow_the_evaluation() {
    use Verdict::{Inconclusive, Satisfied, Violated};
    let mut session = session();
    assert_eq!(
        standings(&session),
        [(Inconclusive, 0), (Satisfied, 0)],
        "without messages there are no instances"
    );
    push(&mut session, 1, 5, 1);
    assert_eq!(standings(&session)[0], (Inconclusive, 0), "it is not evaluated yet");
    session.flush();
    assert_eq!(standings(&session), [(Satisfied, 0), (Satisfied, 0)]);
    push(&mut session, 2, 12, 1);
    push(&mut session, 3, 13, 2);
    push(&mut session, 4, 5, 2);
    session.flush();
    assert_eq!(standings(&session), [(Satisfied, 1), (Violated, 2)], "instance 1 is violated still");
    push(&mut session, 5, 5, 1);
    session.flush();
    assert_eq!(standings(&session), [(Satisfied, 1), (Satisfied, 2)]);
}

#[test]
fn missing_messages_make_states_inconclusive() {
    let mut session = session();
    let numbered = |number: u64, seconds: i64| Stamp {
        origin: Some(Origin { publisher: 1, number }),
        ..Stamp::at(Timestamp::from_nanos(seconds * 1_000_000_000))
    };
    let payload = br#"{"v":5,"id":1}"#;
    session.push(TopicId(0), numbered(1, 1), payload).unwrap();
    session.flush();
    assert_eq!(standings(&session).map(|(verdict, _)| verdict), [Verdict::Satisfied; 2]);
    session.cut_off(&[TopicId(0)], Timestamp::from_nanos(1_500_000_000), None);
    assert_eq!(standings(&session).map(|(verdict, _)| verdict), [Verdict::Inconclusive; 2]);
}

#[test]
fn states_continue_from_a_snapshot() {
    let spec = rondel_spec::parse(SPEC).spec.unwrap();
    let plan = SessionPlan::of(Specification::new(spec).unwrap(), Options::default());
    let mut before = plan.start().unwrap();
    push(&mut before, 1, 12, 1);
    let snapshot = before.snapshot("");
    let mut session = plan.restore(&snapshot, "").unwrap();
    session.watch_properties(&[0, 1]);
    let states = standings(&session).map(|(verdict, _)| verdict);
    assert_eq!(states, [Verdict::Violated; 2]);
}
