//! Verdicts as messages of ROS 2, read by an independent reader: rosbags, in Python.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rondel_event::{Timestamp, TopicId};
use rondel_runtime::ros2::{DIAGNOSTICS, Diagnostics, MOST_STATUSES, VERDICT, write_verdict};
use rondel_runtime::{Emit, Options, Session, SessionPlan, Specification, Stamp};
use serde_json::{Value, json};

const SPECIFICATION: &str = "topic speed { value: float }
topic pump { id: int, on: bool }
@severity(critical) @requirement(\"SYS-1\") @requirement(\"SYS-2\")
property slow = speed.value < 10.0
@severity(warning)
property off for each i in pump.id = !pump.on
property never = once speed.value < 0.0 -> speed.value > 100.0
";

/// Returns the Python with an independent reader, if there is one.
fn python(test: &str) -> Option<PathBuf> {
    rondel_testkit::python(test, "rosbags")
}

/// Reads messages: returns the hash of their type, and each as JSON.
fn read(python: &Path, message_type: &str, definition: &str, messages: &[Vec<u8>]) -> (Value, Vec<Value>) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/independent/ros2_read.py");
    let mut command = Command::new(python);
    command.arg("-B").arg(script).args([message_type, definition]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let hex = |message: &Vec<u8>| message.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n";
    let text: String = messages.iter().map(hex).collect();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap().replace("NaN", "null");
    let mut lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let hash = lines.next().unwrap();
    (hash, lines.collect())
}

fn plan(options: Options) -> SessionPlan {
    let spec = rondel_spec::parse(SPECIFICATION).spec.unwrap();
    SessionPlan::of(Specification::new(spec).unwrap(), options)
}

fn at(seconds: f64) -> Timestamp {
    Timestamp::from_nanos((seconds * 1e9) as i64)
}

fn push(session: &mut Session, topic: u32, seconds: f64, payload: &str) {
    session.push(TopicId(topic), Stamp::at(at(seconds)), payload.as_bytes()).unwrap();
    session.flush();
}

#[test]
fn verdicts_are_read_by_rosbags() {
    let Some(python) = python("verdicts_are_read_by_rosbags") else { return };
    let plan = plan(Options { explain: true, ..Options::default() });
    let mut session = plan.start().unwrap();
    let mut messages = Vec::new();
    let mut take = |session: &mut Session| {
        for report in session.reports() {
            let mut message = vec![1];
            write_verdict(&report, &mut message);
            messages.push(message);
        }
    };
    push(&mut session, 0, 1.5, r#"{"value": 5}"#);
    take(&mut session);
    push(&mut session, 0, 2.25, r#"{"value": 12}"#);
    take(&mut session);
    push(&mut session, 1, 3.0, r#"{"id": 7, "on": true}"#);
    take(&mut session);
    let definition =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/ros2/rondel_msgs/msg/Verdict.msg");
    let (hash, read) = read(&python, VERDICT, &definition.to_string_lossy(), &messages);
    let library = rondel_decode::schema::Library::ros().unwrap();
    assert_eq!(hash, json!(library.schema(VERDICT).unwrap().rihs01()));
    let of = |property: &str, verdict: u8| {
        let found = read.iter().find(|read| read["property"] == property && read["verdict"] == verdict);
        found.unwrap_or_else(|| panic!("{property} {verdict}: {read:?}"))
    };
    let slow = of("slow", 1);
    assert_eq!((&slow["stamp"]["sec"], &slow["stamp"]["nanosec"]), (&json!(2), &json!(250_000_000)));
    assert_eq!((&slow["about"], &slow["step"]), (&slow["stamp"], &json!(1)));
    assert_eq!((&slow["severity"], &slow["requirement"]), (&json!("critical"), &json!("SYS-1, SYS-2")));
    assert_eq!((&slow["robustness"], &slow["latency"]), (&Value::Null, &Value::Null));
    let evidence: Value = serde_json::from_str(slow["evidence"].as_str().unwrap()).unwrap();
    assert_eq!(evidence[0]["values"]["speed.value"].as_f64(), Some(12.0), "{evidence}");
    assert_eq!(of("slow", 0)["evidence"], "");
    let off = of("off", 1);
    assert_eq!(off["parameters"][0]["key"], "i");
    assert_eq!(off["parameters"][0]["value"], "7");
}

/// Status with this name in an array.
fn status<'a>(array: &'a Value, name: &str) -> &'a Value {
    let statuses = array["status"].as_array().unwrap();
    statuses.iter().find(|status| status["name"] == name).unwrap_or_else(|| panic!("{name}: {array}"))
}

fn value<'a>(status: &'a Value, key: &str) -> Option<&'a str> {
    let values = status["values"].as_array().unwrap();
    values.iter().find(|value| value["key"] == key)?["value"].as_str()
}

#[test]
fn diagnostics_are_read_by_rosbags_and_levels_stay_for_a_period() {
    let Some(python) = python("diagnostics_are_read_by_rosbags") else { return };
    let plan = plan(Options { explain: true, emit: Emit::Change, ..Options::default() });
    let mut session = plan.start().unwrap();
    let mut diagnostics = Diagnostics::new(plan.properties(), vec![true, true, false]);
    let mut messages = Vec::new();
    // Hidden verdicts are not passed on.
    let take = |session: &mut Session, diagnostics: &mut Diagnostics, now: f64, messages: &mut Vec<_>| {
        let mut published = 0;
        for report in session.reports().filter(|report| report.property().name != "never") {
            let mut message = Vec::new();
            if diagnostics.take(&report, at(now), &mut message) {
                messages.push(message);
                published += 1;
            }
        }
        published
    };
    let tick = |diagnostics: &mut Diagnostics, now: f64, ends: bool, messages: &mut Vec<_>| {
        let mut message = Vec::new();
        let is_due = diagnostics.tick(at(now), ends, Vec::new, &mut message);
        if is_due {
            messages.push(message);
        }
        is_due
    };
    assert!(tick(&mut diagnostics, 100.0, false, &mut messages)); // 0: nothing is known
    assert!(!tick(&mut diagnostics, 100.9, false, &mut messages));
    push(&mut session, 0, 1.0, r#"{"value": 5}"#);
    assert_eq!(take(&mut session, &mut diagnostics, 100.1, &mut messages), 1); // 1: it is slow
    push(&mut session, 0, 2.0, r#"{"value": 12}"#);
    assert_eq!(take(&mut session, &mut diagnostics, 100.2, &mut messages), 1); // 2: it is not
    for (turn, payload) in [r#"{"value": 5}"#, r#"{"value": 12}"#, r#"{"value": 5}"#].iter().enumerate() {
        // Nothing more is said while the level stays.
        push(&mut session, 0, 3.0 + turn as f64, payload);
        assert_eq!(take(&mut session, &mut diagnostics, 100.3, &mut messages), 0);
    }
    push(&mut session, 1, 9.0, r#"{"id": 7, "on": true}"#);
    assert_eq!(take(&mut session, &mut diagnostics, 100.4, &mut messages), 1); // 3: a warning
    assert!(tick(&mut diagnostics, 101.0, false, &mut messages)); // 4: still visible
    assert!(tick(&mut diagnostics, 102.0, false, &mut messages)); // 5: no longer
    assert!(tick(&mut diagnostics, 102.1, true, &mut messages)); // 6: the last one
    // The clock was set back.
    assert!(tick(&mut diagnostics, 50.0, false, &mut messages)); // 7
    let (_, read) = read(&python, DIAGNOSTICS, "-", &messages);
    assert_eq!(read.len(), 8);
    let (ok, warn, error, stale) = (json!(0), json!(1), json!(2), json!(3));
    let slow = |i: usize| status(&read[i], "rondel: slow");
    assert_eq!((&slow(0)["level"], &slow(0)["message"]), (&stale, &json!("no verdict yet")));
    assert_eq!(read[0]["status"].as_array().unwrap().len(), 2, "{}", read[0]);
    assert_eq!(status(&read[0], "rondel")["message"], "checking 2 properties");
    assert_eq!((&slow(1)["level"], &slow(1)["message"]), (&ok, &json!("satisfied")));
    assert_eq!((&slow(2)["level"], &slow(2)["message"]), (&error, &json!("violated")));
    assert_eq!(value(slow(2), "requirement"), Some("SYS-1, SYS-2"));
    assert_eq!((value(slow(2), "time"), value(slow(2), "step")), (Some("2"), Some("1")));
    assert_eq!(value(slow(2), "speed.value (2 s)"), Some("12"), "{}", slow(2));
    assert_eq!(slow(2)["hardware_id"], "rondel");
    let off = status(&read[3], "rondel: off[7]");
    assert_eq!((&off["level"], value(off, "i")), (&warn, Some("7")));
    assert_eq!(slow(4)["level"], error);
    assert_eq!(slow(4)["message"], "was violated within the last second");
    assert_eq!(value(slow(4), "time"), Some("4"));
    assert_eq!(slow(5)["level"], ok);
    assert_eq!(status(&read[5], "rondel: off[7]")["level"], warn);
    assert_eq!(status(&read[6], "rondel")["level"], stale);
    assert_eq!(read[7]["header"]["stamp"]["sec"], 50);
}

#[test]
fn instances_are_limited_and_violated_ones_come_first() {
    let Some(python) = python("instances_are_limited") else { return };
    let plan = plan(Options::default());
    let mut session = plan.start().unwrap();
    let mut diagnostics = Diagnostics::new(plan.properties(), vec![false, true, false]);
    let mut push_all = |diagnostics: &mut Diagnostics, ids: std::ops::Range<usize>, on: bool| {
        let mut message = Vec::new();
        for id in ids {
            push(&mut session, 1, id as f64, &format!(r#"{{"id": {id}, "on": {on}}}"#));
            for report in session.reports().filter(|report| report.property().name == "off") {
                diagnostics.take(&report, at(100.0), &mut message);
            }
        }
    };
    let mut arrays = vec![Vec::new(), Vec::new()];
    push_all(&mut diagnostics, 0..MOST_STATUSES + 5, false);
    push_all(&mut diagnostics, 5000..5003, true);
    diagnostics.tick(at(101.0), false, Vec::new, &mut arrays[0]);
    push_all(&mut diagnostics, 6000..6000 + MOST_STATUSES, true);
    diagnostics.tick(at(103.0), false, Vec::new, &mut arrays[1]);
    let (_, read) = read(&python, DIAGNOSTICS, "-", &arrays);
    assert_eq!(read[0]["status"].as_array().unwrap().len(), MOST_STATUSES + 1);
    for id in 5000..5003 {
        assert_eq!(status(&read[0], &format!("rondel: off[{id}]"))["level"], 1);
    }
    let own = status(&read[0], "rondel");
    assert_eq!((&own["level"], value(own, "verdicts not shown")), (&json!(1), Some("8")));
    assert_eq!(read[1]["status"].as_array().unwrap().len(), MOST_STATUSES + 1);
    assert_eq!(status(&read[1], "rondel")["level"], 2);
}
