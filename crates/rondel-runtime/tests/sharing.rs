//! Properties without `for each` over topics that many publishers share: which are reported, and which are not.

#![allow(clippy::unwrap_used, clippy::panic)] // the helpers are tests as well

use std::sync::Arc;

use rondel_event::{TimeUnit, Timestamp, TopicId};
use rondel_runtime::{ManualClock, Options, Session, SessionPlan, Specification, Stamp};
use rondel_testkit::Random;
use serde_json::{Value, json};

fn plan(text: &str) -> SessionPlan {
    let outcome = rondel_spec::parse(text);
    let spec = outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("spec", text, false)));
    SessionPlan::new(&spec, Options { clock: Arc::new(ManualClock::default()), ..Options::default() })
        .unwrap()
}

/// The fields that are named, with the properties and the clause.
fn named(session: &mut Session) -> Vec<(String, Vec<String>, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let notices = session.notices().filter(|notice| notice.kind == "shared").map(|notice| notice.json());
    let properties = |value: &Value| value.as_array().unwrap().iter().map(text).collect();
    notices
        .map(|json| (text(&json["field"]), properties(&json["properties"]), text(&json["clause"])))
        .collect()
}

fn pushed(text: &str, messages: impl IntoIterator<Item = Value>) -> Vec<(String, Vec<String>, String)> {
    let mut session = plan(text).start().unwrap();
    for (i, message) in (0..).zip(messages) {
        let stamp = Stamp::at(Timestamp::from_nanos(i * 100_000_000));
        session.push(TopicId(0), stamp, message.to_string().as_bytes()).unwrap();
    }
    session.finish();
    named(&mut session)
}

fn fields(text: &str, messages: impl IntoIterator<Item = Value>) -> Vec<String> {
    pushed(text, messages).into_iter().map(|(field, ..)| field).collect()
}

const CHANGED: &str = "topic pose property p = changed(pose.mode) -> pose.speed < 1";

/// Messages of robots in turn.
fn robots(count: u64) -> impl Iterator<Item = Value> {
    (0..count).map(|i| {
        let robot = format!("r{}", i % 3);
        json!({"robot": robot, "seq": i, "mode": (["idle", "drive"][(i / 40 % 2) as usize]), "speed": i as f64 * 0.1})
    })
}

#[test]
fn a_field_that_takes_turns_is_named() {
    let all = pushed(CHANGED, robots(100));
    let clause = "for each robot in pose.robot".to_owned();
    assert_eq!(all, [("robot".to_owned(), vec!["p".to_owned()], clause)]);
    // A machine remembers its state.
    let machine = "topic pose machine m { initial idle idle -> drive when pose.speed > 1 drive -> idle when pose.speed < 1 }";
    assert_eq!(fields(machine, robots(100)), ["robot"]);
    // With few messages at the end of the recording.
    assert_eq!(fields(CHANGED, robots(30)), ["robot"]);
    assert_eq!(fields(CHANGED, robots(15)), [""; 0]);
    // Once, however long it goes on, and for several properties together.
    let several = "topic pose { robot: string, mode: string, speed: float }
        property p = changed(pose.mode) -> pose.speed < 1
        property q = rising(pose.speed > 3) -> pose.mode == \"drive\"
        property r = pose.speed < 5 since pose.mode == \"idle\"
        property s for each id in pose.robot = changed(pose.mode) -> pose.speed < 1
        property t = pose.speed < 5
        property u = once[0, 1 s] pose.speed > 5";
    let [(field, properties, _)] = &pushed(several, robots(3_000))[..] else { panic!() };
    assert_eq!((field.as_str(), &properties[..]), ("robot", &["p", "q", "r"].map(str::to_owned)[..]));
}

#[test]
fn the_way_out_can_be_written() {
    let nested = (0..300).map(|i| json!({"header": {"pose": i % 4}, "mode": i % 2}));
    let [(field, _, clause)] = &pushed(
        "topic pose { header: { pose: int }, mode: int } property p = changed(pose.mode) -> pose.mode > 0",
        nested,
    )[..] else {
        panic!()
    };
    // A parameter cannot have the name of a topic.
    assert_eq!((field.as_str(), clause.as_str()), ("header.pose", "for each key in pose.header.pose"));
    let text = format!(
        "topic pose {{ header: {{ pose: int }}, mode: int }} property p {clause} = changed(pose.mode) -> true"
    );
    assert!(rondel_spec::parse(&text).spec.is_some());
}

#[test]
fn publishers_of_other_rates_are_seen() {
    let mut numbers = Random::new(1);
    // Five robots, each with its period and some jitter.
    let mut all: Vec<(u64, u64)> = Vec::new();
    for robot in 0..5 {
        let period = 90 + 40 * robot;
        all.extend((1..200).map(|i| (i * period + numbers.below(period / 4), robot)));
    }
    all.sort_unstable();
    let messages = || all.iter().map(|(time, robot)| json!({"id": robot, "x": time, "mode": time / 5_000}));
    assert_eq!(
        fields("topic pose property p = changed(pose.mode) -> true and pose.x > 0", messages()),
        ["id"]
    );
    let text = "topic pose property p = prev(pose.x) <= pose.x";
    assert_eq!(fields(text, messages()), ["id"]);
}

#[test]
fn lines_are_looked_at() {
    let plan = plan("topic pose topic stop property p = on(stop) -> (not on(pose) since on(stop))");
    let mut session = plan.start().unwrap();
    let mut lines = session.lines(TimeUnit::Seconds);
    let line = |i: u64| {
        let topic = if i.is_multiple_of(7) { "stop" } else { "pose" };
        json!({"topic": topic, "time": i, "data": {"robot": format!("r{}", i % 3)}}).to_string() + "\n"
    };
    let text: String = (0..300).map(line).collect();
    let mut at = 0;
    while at < text.len() {
        at = session.push_lines(&mut lines, text.as_bytes(), at, text.len()).unwrap();
    }
    session.finish();
    let all: Vec<String> = named(&mut session).into_iter().map(|(.., clause)| clause).collect();
    assert_eq!(all, ["for each robot in pose.robot", "for each robot in stop.robot"]);
}

#[test]
fn slow_or_never_returning_values_are_no_names() {
    let modes = ["idle", "drive", "charge", "error"];
    let mut numbers = Random::new(7);
    // A mode that changes every twenty messages, a counter, an order, and one of two values.
    let messages = (0..2_000).map(|i: u64| {
        json!({
            "mode": (modes[(i / 20 % 4) as usize]), "state": (modes[(i / 20 % 4) as usize]), "seq": i,
            "order": format!("o{}", i / 3), "side": (["left", "right"][(i % 2) as usize]), "speed": 0.5, "ok": i.is_multiple_of(3),
            "stamp": {"sec": i % 3, "nanosec": 0}, "robot": format!("r{}", numbers.below(1_000)),
        })
    });
    assert_eq!(fields(CHANGED, messages), [""; 0]);
}

#[test]
fn noisy_integers_are_no_names() {
    let text = "topic pose property p = rising(pose.x > 0) -> pose.x < 10 property q = changed(pose.x) -> pose.x < 5";
    for seed in rondel_testkit::seeds("sharing", 400) {
        let numbers = &mut Random::new(seed);
        let (spread, walks) = (3 + numbers.below(15), numbers.below(2) == 0);
        let mut level = 50;
        let messages: Vec<Value> = (0..400)
            .map(|_| {
                let noise = numbers.below(spread) as i64;
                level = if walks { level + noise - spread as i64 / 2 } else { noise };
                // Others may be more frequent.
                let skewed = numbers.below(spread).min(numbers.below(spread));
                json!({"x": level, "temperature": level, "skewed": skewed})
            })
            .collect();
        assert_eq!(fields(text, messages), [""; 0], "seed {seed}");
    }
}

#[test]
fn a_property_that_keeps_them_apart_is_not_named() {
    for text in [
        "topic pose property p for each robot in pose.robot = changed(pose.mode) -> pose.speed < 1",
        "topic pose property p = pose.speed < 1",
        "topic pose property p = changed(pose.robot) -> pose.speed < 1",
        "topic pose property p = forall r. pose{robot: r} -> (pose{robot: r} since[0, 5 s] pose{robot: r, mode: \"idle\"})",
        "topic pose property p = once[0, 1 s] pose.speed > 1",
        "topic pose topic other property p = changed(other.mode) -> pose.speed < 1",
        // That is said before the first message.
        "topic pose \"fleet/+/pose\" property p = changed(pose.mode) -> pose.speed < 1",
    ] {
        assert_eq!(fields(text, robots(200)), [""; 0], "{text}");
    }
    // A bare formula cannot have `for each`.
    let spec =
        rondel_spec::parse("topic pose property p = changed(pose.mode) -> pose.speed < 1").spec.unwrap();
    let formula = Specification { is_formula: true, ..Specification::new(spec).unwrap() };
    let mut session = SessionPlan::of(formula, Options::default()).start().unwrap();
    for message in robots(200) {
        session.push(TopicId(0), Stamp::default(), message.to_string().as_bytes()).unwrap();
    }
    session.finish();
    assert_eq!(named(&mut session), []);
}
