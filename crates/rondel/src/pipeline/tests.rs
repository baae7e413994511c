mod waiting;

use std::sync::{Arc, mpsc};
use std::thread;

use rondel_engine::Program;
use rondel_event::TimeUnit;
use rondel_net::adapter::PublishError;
use rondel_spec::{Bounds, Expr, ExprId, Property, Spec, TimeModel, Topic};

use super::*;
use crate::deployment::{Address, Encoding, TimeOfEvent};

/// A publisher whose payloads a test reads.
struct Told(mpsc::Sender<String>);

impl Publisher for Told {
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        self.0.send(String::from_utf8_lossy(payload).into_owned()).map_err(|_| PublishError::Closed)
    }
}

/// `once[0, 2 s] on(beat)`, with the time of an event in its field `t`.
fn alive(time: TimeModel, milliseconds: u64) -> (Pipeline, mpsc::Receiver<String>) {
    let bounds = Bounds { lower: 0, upper: Some(milliseconds * 1_000_000) };
    let topic = Topic { name: "beat".into(), address: "beat".into(), type_name: None, schema: None };
    let spec = Spec {
        topics: vec![topic],
        properties: vec![Property { time, ..Property::new("alive", ExprId(1)) }],
        nodes: vec![Expr::On(TopicId(0)), Expr::Once(bounds, ExprId(0))],
        ..Spec::default()
    };
    pipeline_of(spec)
}

fn pipeline_of(spec: Spec) -> (Pipeline, mpsc::Receiver<String>) {
    let program = Arc::new(Program::compile(&spec).unwrap());
    let specification =
        Specification { spec, program, is_formula: false, source: String::new(), text: String::new() };
    let binding = Binding {
        address: Address::Zenoh("beat".into(), Encoding::Json),
        time: TimeOfEvent::Field(rondel_event::Path::keys(["t"])),
        time_unit: TimeUnit::Seconds,
    };
    let (published, told) = mpsc::channel();
    let bindings = [binding];
    let pipeline = Pipeline::new(Parts {
        specification: &specification,
        bindings: &bindings,
        alignment: &Alignment::by_default(&bindings),
        synchronized: None,
        reports: Vec::new(),
        emit: Emit::Change,
        sinks: vec![vec![Sink::Network(Box::new(Told(published)))]],
        batching: false,
        format: Format::Json,
        colour: false,
        witness: None,
        resumed: None,
        goes_on: false,
        stop_after: None,
        stop: mpsc::channel().0,
    });
    let pipeline = pipeline.unwrap();
    (pipeline, told)
}

fn beat(pipeline: &Pipeline, payload: &str) {
    pipeline.receive(TopicId(0), &[Sample::new(payload.as_bytes(), None, None)]);
    pipeline.idle();
}

const ALIVE: &str = r#"{"property":"alive","time":5,"step":0,"verdict":"satisfied"}"#;
const SILENT: &str = r#"{"property":"alive","time":7,"verdict":"violated"}"#;

#[test]
fn time_brings_what_no_message_brings() {
    let (pipeline, told) = alive(TimeModel::Dense, 2000);
    assert!(pipeline.is_timed());
    let pass = |at| pipeline.state().pass(at);
    assert_eq!(pass(Instant::now()), None, "before the first event there is no time");
    let before = Instant::now();
    beat(&pipeline, r#"{"t": 5}"#);
    assert_eq!(told.recv(), Ok(ALIVE.into()));
    let due = pass(Instant::now()).unwrap();
    assert!(due >= before + Duration::from_secs(2) && due <= Instant::now() + Duration::from_secs(3));
    assert_eq!(pass(due - Duration::from_millis(1)), Some(due));
    assert!(told.try_recv().is_err(), "nothing is certain yet");
    assert_eq!(pass(due), None);
    assert_eq!(told.try_recv(), Ok(SILENT.into()));
    assert!(pipeline.end(Duration::ZERO).is_some());
}

#[test]
fn the_keeper_wakes_by_itself_and_ends_with_the_pipeline() {
    let (pipeline, told) = alive(TimeModel::Dense, 50);
    let pipeline = Arc::new(pipeline);
    let kept = Arc::clone(&pipeline);
    let keeper = thread::spawn(move || kept.keep_time());
    beat(&pipeline, r#"{"t": 5}"#);
    assert_eq!(told.recv(), Ok(ALIVE.into()));
    let brought = told.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(brought, r#"{"property":"alive","time":5.05,"verdict":"violated"}"#);
    assert!(pipeline.end(Duration::from_secs(60)).is_some());
    keeper.join().unwrap();
}

#[test]
fn it_is_known_when_messages_arrived() {
    let text = "topic beat property quick = latency(beat) <= 1 s";
    let (pipeline, told) = pipeline_of(rondel_spec::parse(text).spec.unwrap());
    let arrive = |payload: &str, seconds: i64| {
        let arrival = Some(Timestamp::from_nanos(seconds * 1_000_000_000));
        pipeline.receive(TopicId(0), &[Sample::new(payload.as_bytes(), None, arrival)]);
        pipeline.idle();
    };
    arrive(r#"{"t": 5}"#, 6);
    assert_eq!(told.recv(), Ok(r#"{"property":"quick","time":5,"step":0,"verdict":"satisfied"}"#.into()));
    arrive(r#"{"t": 7}"#, 9);
    assert_eq!(told.recv(), Ok(r#"{"property":"quick","time":7,"step":1,"verdict":"violated"}"#.into()));
}

#[test]
fn in_steps_nobody_keeps_time() {
    assert!(!alive(TimeModel::Steps, 2000).0.is_timed());
}
