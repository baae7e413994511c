//! Gates in the pipeline: closed by messages of their own, and by time alone.

use rondel_net::networks::NetworkSettings;

use super::*;
use crate::deployment::{Address, GateSettings, Message, Substitute, WhenBlind};
use crate::live::gate::Gates;

/// A pipeline with a gate that is closed unless a message came within two seconds, and what it passes on.
fn gated(clock: &Arc<ManualClock>) -> (Pipeline, mpsc::Receiver<String>) {
    let injected = Arc::clone(clock) as Arc<dyn Clock>;
    let spec = alive(TimeModel::Dense, 2000);
    let options = Options { inputs: vec![input()], clock: Arc::clone(&injected), ..Options::default() };
    let plan = SessionPlan::of(Specification::new(spec.clone()).unwrap(), options);
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
    let gates = Gates::with(&[gate], &spec, &networks, vec![publisher], &mut session, &injected);
    let stdout = Console::new(Duration::from_secs(3), None);
    let writer = VerdictWriter::new(plan.properties(), Format::Json, false);
    let pipeline = Pipeline::new(Parts {
        session,
        clock: injected,
        simulated: None,
        topics: vec!["beat".into()],
        sinks: Sinks::new(vec![Vec::new()], writer, stdout),
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
