//! Gates in the pipeline: closed by messages of their own, and by time alone.

use rondel_net::networks::NetworkSettings;

use super::*;
use crate::deployment::{Address, GateSettings, Message, Substitute, WhenBlind};
use crate::live::gate::{GateGroup, Gates};
use crate::live::standby::election::MemberId;
use crate::live::standby::state::{GroupHandle, GroupState};
use crate::sinks::withheld::Permit;

fn plan(clock: &Arc<ManualClock>) -> SessionPlan {
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    let options = Options { inputs: vec![input()], clock, ..Options::default() };
    SessionPlan::of(Specification::new(alive(TimeModel::Dense, 2000)).unwrap(), options)
}

/// A pipeline with a gate that is closed unless a message came within two seconds, and what it passes on.
fn gated(clock: &Arc<ManualClock>) -> (Pipeline, mpsc::Receiver<String>) {
    gated_in(None, clock)
}

/// The same in a member of a group, if it is given.
fn gated_in(group: Option<GateGroup>, clock: &Arc<ManualClock>) -> (Pipeline, mpsc::Receiver<String>) {
    let injected = Arc::clone(clock) as Arc<dyn Clock>;
    let spec = alive(TimeModel::Dense, 2000);
    let plan = plan(clock);
    let mut session = plan.start().unwrap();
    let (sender, passed) = mpsc::channel();
    let publisher: Arc<dyn Publisher> = Arc::new(Published(sender));
    let gate = GateSettings {
        topic: TopicId(0),
        to: Address::parse("zenoh:out").unwrap(),
        schema: None,
        unless: vec![0],
        blind: WhenBlind::Closed,
        substitute: Substitute::Message(Message::of(b"stop".to_vec())),
        return_after: 0,
        return_when: None,
        ends_with_substitute: true,
    };
    let networks = NetworkSettings::default();
    let gates =
        Gates::with(&[gate], &spec, &networks, vec![publisher], &mut session, &injected, group.clone());
    let stdout = Console::new(Duration::from_secs(3), None);
    let writer = VerdictWriter::new(plan.properties(), Format::Json, false);
    let mut sinks = Sinks::new(vec![Vec::new()], writer, stdout);
    if let Some(group) = &group {
        sinks.join_group(Arc::clone(&group.permit), group.lease);
    }
    let pipeline = Pipeline::new(Parts {
        session,
        clock: injected,
        simulated: None,
        topics: vec!["beat".into()],
        sinks,
        released: Vec::new(),
        notices: Vec::new(),
        gates,
        recorder: None,
        meter: None,
        tap: None,
        copies: None,
        batching: false,
        stop_after: None,
        stop: mpsc::channel().0,
    });
    (pipeline, passed)
}

#[test]
fn silence_closes_a_gate_without_a_message() {
    let clock = Arc::new(ManualClock::default());
    let (pipeline, passed) = gated(&clock);
    let set = |milliseconds: i64| clock.set(Timestamp::from_nanos(milliseconds * 1_000_000));
    set(10);
    beat(&pipeline, r#"{"t": 5}"#);
    assert_eq!(passed.try_recv(), Ok(r#"{"t": 5}"#.into()));
    set(2_011);
    pipeline.state().poll();
    assert_eq!(passed.try_recv(), Ok("stop".into()));
    let cause = pipeline.gates().remove(0).cause;
    assert_eq!(cause, Some(("alive".to_owned(), rondel_event::Verdict::Violated)));
    beat(&pipeline, r#"{"t": 8}"#);
    assert_eq!(passed.try_recv(), Ok(r#"{"t": 8}"#.into()), "it is evaluated first");
    assert!(pipeline.end(None, Duration::ZERO).is_some());
    assert_eq!(passed.try_recv(), Ok("stop".into()), "at the end");
    beat(&pipeline, r#"{"t": 9}"#);
    assert!(passed.try_recv().is_err(), "nothing passes afterwards");
    assert_eq!(pipeline.gates()[0].counts.forwarded, 2);
}

#[test]
fn unread_message_does_not_pass() {
    let clock = Arc::new(ManualClock::default());
    let (pipeline, passed) = gated(&clock);
    beat(&pipeline, r#"{"t": 5}"#);
    assert_eq!(passed.try_recv(), Ok(r#"{"t": 5}"#.into()));
    beat(&pipeline, "no JSON");
    assert_eq!(passed.try_iter().collect::<Vec<_>>(), ["stop"]);
}

fn group() -> (GateGroup, Arc<Permit>) {
    let permit = Arc::new(Permit::simulated(0));
    let handle = GroupHandle::new(GroupState::new("g".to_owned(), MemberId(1), 0));
    (GateGroup { permit: Arc::clone(&permit), lease: 90, handle }, permit)
}

#[test]
fn member_of_a_group_passes_messages_on_while_it_is_active() {
    let clock = Arc::new(ManualClock::default());
    let (group, permit) = group();
    let (pipeline, passed) = gated_in(Some(group), &clock);
    let all = || passed.try_iter().collect::<Vec<_>>();
    beat(&pipeline, r#"{"t": 5}"#);
    assert!(all().is_empty(), "it is no member's turn yet");
    permit.extend(1_000);
    assert!(pipeline.begin_publishing(2, Duration::ZERO).is_some());
    beat(&pipeline, r#"{"t": 6}"#);
    assert!(all().is_empty());
    permit.set_now(90);
    beat(&pipeline, r#"{"t": 7}"#);
    assert_eq!(all(), [r#"{"t": 7}"#]);
    assert!(pipeline.stop_publishing(Duration::ZERO));
    beat(&pipeline, r#"{"t": 8}"#);
    clock.set(Timestamp::from_nanos(2_500_000_000));
    pipeline.state().poll();
    assert!(all().is_empty(), "neither a message nor the substitute for silence");
    permit.set_now(200);
    assert!(pipeline.begin_publishing(3, Duration::ZERO).is_some());
    assert_eq!(all(), ["stop"], "it was closed while another member was active");
    permit.set_now(1_000);
    beat(&pipeline, r#"{"t": 20}"#);
    assert!(all().is_empty() && permit.take_lapsed(), "the permission has ended");
    let counts = pipeline.gates()[0].counts;
    assert_eq!((counts.forwarded, counts.withheld), (1, 4));
}

#[test]
fn gate_of_a_late_member_begins_with_a_record_without_a_name() {
    let clock = Arc::new(ManualClock::default());
    let (group, permit) = group();
    group.handle.change(|state| state.is_late = true);
    let (pipeline, passed) = gated_in(Some(group), &clock);
    permit.extend(1_000);
    assert!(pipeline.begin_publishing(1, Duration::ZERO).is_some());
    assert!(pipeline.receive_unnamed(TopicId(0), Sample::new(b"{}", None, None), "the key is missing"));
    permit.set_now(90);
    beat(&pipeline, r#"{"t": 5}"#);
    assert_eq!(passed.try_iter().last(), Some(r#"{"t": 5}"#.into()));
}

#[test]
fn gate_of_a_late_member_has_the_state_that_it_takes() {
    let clock = Arc::new(ManualClock::default());
    let set = |milliseconds: i64| clock.set(Timestamp::from_nanos(milliseconds * 1_000_000));
    let (plan, limit) = (plan(&clock), Duration::from_secs(60));
    let (group, permit) = group();
    let ((active, _of_active), (late, passed)) = (gated(&clock), gated_in(Some(group), &clock));
    set(10);
    beat(&active, r#"{"t": 5}"#);
    beat(&late, r#"{"t": 5}"#);
    assert!(late.begin_keeping(&plan, limit) && active.note_identities(&plan, limit));
    assert!(late.copy_messages(limit));
    set(2_011);
    active.state().poll();
    let state = active.state_for_member().unwrap();
    let closed = Some(("alive".to_owned(), rondel_event::Verdict::Violated));
    assert_eq!((&active.gates()[0].cause, &late.gates()[0].cause), (&closed, &None));
    assert!(late.join_state(&plan, &state.identities, &state.snapshot).is_ok());
    assert_eq!(late.gates()[0].cause, closed);
    permit.extend(1_000);
    assert!(late.begin_publishing(2, limit).is_some());
    assert_eq!(passed.try_recv(), Ok("stop".into()));
    permit.set_now(90);
    beat(&late, r#"{"t": 8}"#);
    assert_eq!(passed.try_recv(), Ok(r#"{"t": 8}"#.into()));
}
