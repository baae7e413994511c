//! Events of topics in sessions: what a network says beside messages, across snapshots and in alignment.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use rondel_event::{Timestamp, TopicEvent, TopicId, Verdict};
use rondel_runtime::alignment::Policy;
use rondel_runtime::{Alignment, ManualClock, Options, Session, SessionPlan, Stamp};

const GEAR: TopicId = TopicId(0);
const TEXT: &str = "topic gear { report: int } topic speed { v: float }
    property lives = alive(gear)
    property kept = not missed_deadline(gear)";

fn plan(alignment: Alignment) -> SessionPlan {
    let spec = rondel_spec::parse(TEXT).spec.unwrap();
    let clock = Arc::new(ManualClock::default());
    SessionPlan::new(&spec, Options { live: true, clock, alignment, ..Options::default() }).unwrap()
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_nanos(seconds * 1_000_000_000)
}

/// The changes of the verdicts of the first property since the last call.
fn lives(session: &mut Session) -> Vec<Verdict> {
    session.flush();
    session.reports().filter(|r| r.property().position == 0 && r.changed()).map(|r| r.verdict()).collect()
}

fn gear(session: &mut Session, seconds: i64) {
    session.push(GEAR, Stamp::at(at(seconds)), b"{\"report\": 1}").unwrap();
}

#[test]
fn what_was_said_before_a_restart_counts_no_more() {
    use Verdict::{Inconclusive, Satisfied, Violated};
    let plan = plan(Alignment::new(Policy::Arrival));
    let mut session = plan.start().unwrap();
    gear(&mut session, 0);
    assert!(session.event(GEAR, TopicEvent::Alive, true, at(1)));
    assert_eq!(lives(&mut session), [Inconclusive, Satisfied]);
    let bytes = session.snapshot("");
    let mut session = plan.restore(&bytes, "").unwrap();
    gear(&mut session, 9);
    assert_eq!(lives(&mut session), [Inconclusive]);
    assert!(session.event(GEAR, TopicEvent::Alive, false, at(10)));
    assert_eq!(lives(&mut session), [Violated]);
}

#[test]
fn events_of_topics_that_nothing_reads_change_nothing() {
    let mut session = plan(Alignment::new(Policy::Arrival)).start().unwrap();
    assert!(!session.event(TopicId(1), TopicEvent::Alive, true, at(1)));
    assert_eq!((lives(&mut session).len(), session.summary().topics.len()), (0, 2));
}

#[test]
fn an_event_waits_for_earlier_messages_and_nothing_waits_for_it() {
    use Verdict::{Inconclusive, Satisfied};
    let mut session = plan(Alignment::new(Policy::EventTime)).start().unwrap();
    assert!(session.event(GEAR, TopicEvent::Alive, true, at(2)));
    gear(&mut session, 1);
    // The message comes first, whatever else may come of the event's topic.
    assert_eq!(lives(&mut session), [Inconclusive]);
    session.finish();
    assert_eq!(lives(&mut session), [Satisfied]);
}

#[test]
fn sets_of_messages_have_no_events() {
    let error = plan(Alignment::new(Policy::Latest)).start().err().unwrap();
    assert!(error.to_string().starts_with("events of topics, such as `missed_deadline(topic)`"), "{error}");
}
