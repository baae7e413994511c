//! A pipeline that waits for a consumer does not take that time for silence.

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
fn the_wait_for_a_consumer_is_no_silence() {
    let clock = Arc::new(ManualClock::default());
    let options = Options {
        inputs: vec![input()],
        clock: clock.clone(),
        paused_after: Some(500_000_000),
        ..Options::default()
    };
    let plan = SessionPlan::of(Specification::new(alive(TimeModel::Dense, 2000)).unwrap(), options);
    let (published, told) = mpsc::channel();
    let (reported, notices) = mpsc::channel();
    let sinks = vec![vec![Sink::Network(Arc::new(Slow(Published(published), Arc::clone(&clock))))]];
    let writer = VerdictWriter::new(plan.properties(), Format::Json, false);
    let pipeline = Pipeline::new(Parts {
        names: Vec::new(),
        session: plan.start().unwrap(),
        clock: clock.clone(),
        simulated: None,
        topics: vec!["beat".into()],
        sinks: Sinks::new(sinks, writer, Console::new(Duration::from_secs(3), None)),
        released: Vec::new(),
        notices: vec![Sink::Network(Arc::new(Published(reported)))],
        recorder: None,
        batching: false,
        stop_after: None,
        stop: mpsc::channel().0,
    });
    pipeline.alive();
    beat(&pipeline, r#"{"t": 5}"#);
    assert_eq!(told.try_recv(), Ok(ALIVE.into()));
    // Three seconds have passed, and the message that was sent meanwhile waits in the network's buffer.
    assert!(clock.now().as_nanos() >= 3_000_000_000);
    pipeline.state().poll();
    assert!(told.try_recv().is_err());
    assert_eq!(
        notices.try_recv(),
        Ok(r#"{"cause":"stopped","from":0.0,"report":"paused","until":3.0}"#.into())
    );
    beat(&pipeline, r#"{"t": 6}"#);
    // From here on nothing comes, and nobody is waited for.
    for _ in 0..30 {
        clock.set(Timestamp::from_nanos(clock.now().as_nanos() + 100_000_000));
        pipeline.alive();
        pipeline.state().poll();
    }
    assert_eq!(told.try_recv(), Ok(SILENT.replace('7', "8")));
    assert_eq!(pipeline.summary().0.pauses.len(), 2, "the last verdict was waited for, too");
}

#[test]
fn notices_that_recur_are_shown_again_and_counted() {
    let (sinks, held) = (Vec::new(), VecDeque::new());
    let mut notices = Notices { sinks, reported: HashMap::new(), held, since: None };
    let start = Instant::now();
    let mut shown = |seconds| {
        let mut notice = Notice::outage("mqtt", None, Timestamp::ZERO, None);
        let is_shown = notices.is_shown(&mut notice, start + Duration::from_secs(seconds));
        is_shown.then(|| sentence(&notice))
    };
    let texts = [0, 3, 9, 12, 13, 40].map(&mut shown);
    let first = "mqtt: the connection was lost from 0 s and is not restored".to_owned();
    let after = |count: &str| Some(format!("{first}; {count} before it"));
    let [two, one] = [after("2 such reports"), after("1 such report")];
    assert_eq!(texts, [Some(first), None, None, two, None, one]);
}
