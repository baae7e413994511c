mod asleep;
mod divided;
mod gated;
mod joining;
mod simulated;
mod waiting;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, mpsc};
use std::thread;

use rondel_event::Path;
use rondel_net::adapter::{PublishError, Receiver, Sample};
use rondel_runtime::{Input, ManualClock, Options, SessionPlan, Specification, SystemClock, TimeSource};
use rondel_spec::{Bounds, Expr, ExprId, Property, Spec, TimeModel, Topic};

use super::*;
use crate::live::watchdog::{Names, Watchdog};
use crate::output::{Format, VerdictWriter};
use crate::sinks::console::Console;

/// A publisher whose payloads a test reads.
struct Published(mpsc::Sender<String>);

impl Publisher for Published {
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        self.0.send(String::from_utf8_lossy(payload).into_owned()).map_err(|_| PublishError::Closed)
    }
}

/// `once[0, milliseconds] on(beat)`.
fn alive(time: TimeModel, milliseconds: u64) -> Spec {
    let bounds = Bounds { lower: 0, upper: Some(milliseconds * 1_000_000) };
    let topic = Topic { name: "beat".into(), address: "beat".into(), type_name: None, schema: None };
    Spec {
        topics: vec![topic],
        properties: vec![Property { time, ..Property::new("alive", ExprId(1)) }],
        nodes: vec![Expr::On(TopicId(0)), Expr::Once(bounds, ExprId(0))],
        ..Spec::default()
    }
}

/// Input of messages with the time in the field `t`.
fn input() -> Input {
    Input { time: TimeSource::Field(Path::keys(["t"])), ..Input::default() }
}

fn pipeline_of(spec: Spec, clock: Arc<dyn Clock>) -> (Pipeline, mpsc::Receiver<String>) {
    let (published, verdicts) = mpsc::channel();
    (pipeline_to(spec, clock, Sink::Network(Arc::new(Published(published)))), verdicts)
}

fn pipeline_to(spec: Spec, clock: Arc<dyn Clock>, sink: Sink) -> Pipeline {
    let options = Options { inputs: vec![input()], clock: Arc::clone(&clock), ..Options::default() };
    let plan = SessionPlan::of(Specification::new(spec).unwrap(), options);
    let sinks = vec![vec![sink]];
    let stdout = Console::new(Duration::from_secs(3), None);
    Pipeline::new(Parts {
        session: plan.start().unwrap(),
        clock,
        simulated: None,
        topics: vec!["beat".into()],
        sinks: Sinks::new(sinks, VerdictWriter::new(plan.properties(), Format::Json, false), stdout),
        released: Vec::new(),
        notices: Vec::new(),
        gates: None,
        recorder: None,
        meter: None,
        tap: None,
        copies: None,
        batching: false,
        stop_after: None,
        stop: mpsc::channel().0,
    })
}

fn beat(pipeline: &Pipeline, payload: &str) {
    pipeline.receive(TopicId(0), &[Sample::new(payload.as_bytes(), None, None)]);
    pipeline.idle();
}

const ALIVE: &str = r#"{"property":"alive","time":5,"step":0,"verdict":"satisfied"}"#;
const SILENT: &str = r#"{"property":"alive","time":7,"verdict":"violated"}"#;

#[test]
fn deadline_fires_without_message() {
    let clock = Arc::new(ManualClock::default());
    let (pipeline, verdicts) =
        pipeline_of(alive(TimeModel::Dense, 2000), Arc::clone(&clock) as Arc<dyn Clock>);
    assert!(pipeline.is_timed());
    let poll = |milliseconds: i64| {
        clock.set(Timestamp::from_nanos(milliseconds * 1_000_000));
        pipeline.state().poll()
    };
    assert_eq!(poll(10), None, "before the first event there is no time");
    beat(&pipeline, r#"{"t": 5}"#);
    assert_eq!(verdicts.recv(), Ok(ALIVE.into()));
    let due = 2_010_000_001;
    assert_eq!(poll(10), Some(due));
    assert_eq!(poll(2_009), Some(due));
    assert!(verdicts.try_recv().is_err(), "nothing is certain yet");
    assert_eq!(poll(2_011), None);
    assert_eq!(verdicts.try_recv(), Ok(SILENT.into()));
    assert!(pipeline.end(None, Duration::ZERO).is_some());
}

#[test]
fn time_keeping_thread_wakes_by_itself_and_ends_with_the_pipeline() {
    let clock = Arc::new(SystemClock);
    let (pipeline, verdicts) = pipeline_of(alive(TimeModel::Dense, 50), clock);
    let pipeline = Arc::new(pipeline);
    let kept = Arc::clone(&pipeline);
    let keeper = thread::spawn(move || kept.keep_time(|| false));
    beat(&pipeline, r#"{"t": 5}"#);
    assert_eq!(verdicts.recv(), Ok(ALIVE.into()));
    let brought = verdicts.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(brought, r#"{"property":"alive","time":5.05,"verdict":"violated"}"#);
    assert!(pipeline.end(None, Duration::from_secs(60)).is_some());
    keeper.join().unwrap();
}

#[test]
fn silence_decides_nothing_while_a_network_is_unsure_of_missing_messages() {
    let clock = Arc::new(SystemClock);
    let (pipeline, verdicts) = pipeline_of(alive(TimeModel::Dense, 50), clock);
    let pipeline = Arc::new(pipeline);
    let (kept, queries) = (Arc::clone(&pipeline), Arc::new(AtomicU64::new(0)));
    let counter = Arc::clone(&queries);
    let keeper = thread::spawn(move || kept.keep_time(|| counter.fetch_add(1, Ordering::Relaxed) < 3));
    beat(&pipeline, r#"{"t": 5}"#);
    assert_eq!(verdicts.recv(), Ok(ALIVE.into()));
    assert!(verdicts.recv_timeout(Duration::from_secs(60)).unwrap().contains("violated"));
    assert!(queries.load(Ordering::Relaxed) > 3);
    assert!(pipeline.end(None, Duration::from_secs(60)).is_some());
    keeper.join().unwrap();
}

#[test]
fn latency_uses_the_arrival_of_messages() {
    let text = "topic beat property quick = latency(beat) <= 1 s";
    let spec = rondel_spec::parse(text).spec.unwrap();
    let (pipeline, verdicts) = pipeline_of(spec, Arc::new(ManualClock::default()));
    let arrive = |payload: &str, seconds: i64| {
        let arrival = Some(Timestamp::from_nanos(seconds * 1_000_000_000));
        pipeline.receive(TopicId(0), &[Sample::new(payload.as_bytes(), None, arrival)]);
        pipeline.idle();
    };
    arrive(r#"{"t": 5}"#, 6);
    assert_eq!(verdicts.recv(), Ok(r#"{"property":"quick","time":5,"step":0,"verdict":"satisfied"}"#.into()));
    arrive(r#"{"t": 7}"#, 9);
    assert_eq!(verdicts.recv(), Ok(r#"{"property":"quick","time":7,"step":1,"verdict":"violated"}"#.into()));
}

/// A publisher that blocks until a test lets it go on.
struct Blocking(Mutex<mpsc::Receiver<()>>);

impl Publisher for Blocking {
    fn publish(&self, _: &[u8]) -> Result<(), PublishError> {
        self.0.lock().unwrap().recv().map_err(|_| PublishError::Closed)
    }
}

#[test]
fn blocked_sink_is_reported() {
    let (go_on, blocked) = mpsc::channel();
    let sink = Sink::Network(Arc::new(Blocking(Mutex::new(blocked))));
    let pipeline = Arc::new(pipeline_to(alive(TimeModel::Steps, 1), Arc::new(ManualClock::default()), sink));
    let (published, reports) = mpsc::channel();
    let notices = vec![Sink::Network(Arc::new(Published(published)))];
    let names = Names::of(vec!["zenoh:slow".to_owned()]);
    let watchdog = Watchdog::start(Arc::downgrade(&pipeline), names, notices).unwrap();
    let evaluating = Arc::clone(&pipeline);
    let evaluates = thread::spawn(move || beat(&evaluating, r#"{"t": 5}"#));
    let expect_report = |is_over: bool| {
        let report = reports.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(report.contains(r#""report":"stalled""#), "{report}");
        assert!(report.contains(r#""place":"publishing on zenoh:slow""#), "{report}");
        assert!(report.contains(&format!(r#""over":{is_over}"#)), "{report}");
    };
    expect_report(false);
    go_on.send(()).unwrap();
    expect_report(true);
    evaluates.join().unwrap();
    watchdog.end();
}

#[test]
fn step_properties_need_no_time_keeping() {
    let clock = Arc::new(ManualClock::default());
    assert!(!pipeline_of(alive(TimeModel::Steps, 2000), clock).0.is_timed());
}
