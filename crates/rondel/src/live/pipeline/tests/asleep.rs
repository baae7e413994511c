//! Waiting for a consumer is not taken for silence of the topics.

use super::*;

/// A publisher that accepts each payload only after three seconds.
struct Slow(Published, Arc<ManualClock>);

impl Publisher for Slow {
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        self.1.set(Timestamp::from_nanos(self.1.now().as_nanos() + 3_000_000_000));
        self.0.publish(payload)
    }
}

#[test]
fn waiting_for_a_consumer_is_not_silence() {
    let clock = Arc::new(ManualClock::default());
    let options = Options {
        inputs: vec![input()],
        clock: clock.clone(),
        paused_after: Some(500_000_000),
        ..Options::default()
    };
    let plan = SessionPlan::of(Specification::new(alive(TimeModel::Dense, 2000)).unwrap(), options);
    let (published, verdicts) = mpsc::channel();
    let (reported, notices) = mpsc::channel();
    let sinks = vec![vec![Sink::Network(Arc::new(Slow(Published(published), Arc::clone(&clock))))]];
    let writer = VerdictWriter::new(plan.properties(), Format::Json, false);
    let pipeline = Pipeline::new(Parts {
        session: plan.start().unwrap(),
        clock: clock.clone(),
        simulated: None,
        topics: vec!["beat".into()],
        sinks: Sinks::new(sinks, writer, Console::new(Duration::from_secs(3), None)),
        released: Vec::new(),
        notices: vec![Sink::Network(Arc::new(Published(reported)))],
        gates: None,
        recorder: None,
        meter: None,
        tap: None,
        copies: None,
        batching: false,
        stop_after: None,
        stop: mpsc::channel().0,
    });
    pipeline.alive();
    beat(&pipeline, r#"{"t": 5}"#);
    assert_eq!(verdicts.try_recv(), Ok(ALIVE.into()));
    // Three seconds have passed, and the message that was sent meanwhile waits in the network's buffer.
    assert!(clock.now().as_nanos() >= 3_000_000_000);
    pipeline.state().poll();
    assert!(verdicts.try_recv().is_err());
    assert_eq!(
        notices.try_recv(),
        Ok(r#"{"cause":"stopped","from":0.0,"report":"paused","until":3.0}"#.into())
    );
    beat(&pipeline, r#"{"t": 6}"#);
    // From here on no message arrives, and no consumer delays the pipeline.
    for _ in 0..30 {
        clock.set(Timestamp::from_nanos(clock.now().as_nanos() + 100_000_000));
        pipeline.alive();
        pipeline.state().poll();
    }
    assert_eq!(verdicts.try_recv(), Ok(SILENT.replace('7', "8")));
    assert_eq!(pipeline.summary().0.pauses.len(), 2, "the last verdict was waited for, too");
}
