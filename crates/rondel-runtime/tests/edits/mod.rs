//! Random edits of a specification, and messages for it.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)] // each test uses some of it

use std::sync::Arc;

use rondel_event::{Path, TimeUnit, TopicId};
use rondel_runtime::alignment::{MaxWait, Policy, TopicAlignment};
use rondel_runtime::{
    Alignment, Emit, Input, ManualClock, Options, Report, Session, SessionPlan, Specification, Stamp,
    TimeSource,
};
use rondel_testkit::Random;

pub const TOPICS: [&str; 3] = [
    "topic a { t: time, k: int, x: float, s: string, n: [string], v: [float], w: [float] }",
    "topic b { t: time, k: int, ok: bool }",
    "topic c { t: time, k: int, y: float }",
];

pub const PROPERTIES: [&str; 15] = [
    "@time(steps) property steps = once[0, 2] a.x > 1.0",
    "@severity(critical) @time(dense) property dense = on(a) -> eventually[0, 3 s] on(b)",
    "@time(dense) property dense_past = on(a) -> once[0, 3 s] b.ok",
    "@time(points) property points = b.ok -> once[0, 2 s] a.x > 0.5",
    "property each for each k in (a.k, b.k) = on(a) -> once[0, 3 s] b.ok",
    "property each_ahead for each k in (a.k, b.k) = on(a) -> eventually[0, 2 s] b.ok",
    "@time(dense) property quantified = forall i. a{k: i} -> once[0, 4 s] b{k: i}",
    "machine m { initial p p -> q when on(a) q -> p when on(b) within 2 s error q for 3 s }",
    "@time(dense) property ever = once (a.x > 2 and b.ok)",
    "@time(dense) property texts = prev(a.s) == a.s or a.s == 'v1'",
    "@time(dense) property of_a = a.x < 5 since[0, 4 s] a.x > 1",
    "property element for each j in a.n = once[0, 3 s] (a.v[n == j] > 1 or b.ok)",
    "property other_element for each j in a.n = once[0, 3 s] a.w[n == j] > 1 or b.ok and a.x > 2",
    "property element_ahead for each j in a.n = a.v[n == j] > 2 -> eventually[0, 2 s] (b.ok or a.v[n == j] < 1)",
    "machine of_element for each j in a.n { initial p p -> q when a.v[n == j] > 2 and not b.ok q -> p when a.v[n == j] < 1
        error q for 3 s }",
];

/// A message: the name of its topic, and its content.
pub type Message = (&'static str, String);

pub fn message(random: &mut Random, time: &mut u64) -> Message {
    *time += random.next() % 3 * 500;
    // Those of one topic are ahead of the others: messages wait to be put in order.
    let topic = random.index(2);
    let (t, k, value) = ((*time + 800 * topic as u64) as f64 / 1000.0, random.index(3), random.index(6));
    match topic {
        0 => {
            let count = random.index(4);
            let names: Vec<&str> =
                (0..count).map(|_| ["i", "j", "a long name of an element"][random.index(3)]).collect();
            let mut values = || (0..count).map(|_| random.index(4) as f64).collect::<Vec<f64>>();
            let (x, v, w) = (value as f64 / 2.0, values(), values());
            ("a", format!(r#"{{"t":{t},"k":{k},"x":{x},"s":"v{value}","n":{names:?},"v":{v:?},"w":{w:?}}}"#))
        }
        _ => ("b", format!(r#"{{"t":{t},"k":{k},"ok":{}}}"#, value % 2 == 0)),
    }
}

pub fn plan(topics: &[&str], properties: &[String], aligned: bool, explain: bool, live: bool) -> SessionPlan {
    let text = [topics.join("\n"), properties.join("\n")].join("\n");
    let outcome = rondel_spec::parse(&text);
    let spec = outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("", &text, false)));
    let input = Input {
        time: TimeSource::Field(Path::keys(["t"])),
        time_unit: TimeUnit::Seconds,
        ..Input::default()
    };
    let topic =
        TopicAlignment { max_wait: MaxWait::Unlimited, absent_after: None, in_order: true, lower_bound: 0 };
    let ordered = Alignment {
        topics: vec![topic; topics.len()],
        ahead: None,
        behind: None,
        ..Alignment::new(Policy::EventTime)
    };
    let options = Options {
        inputs: vec![input; topics.len()],
        alignment: if aligned { ordered } else { Options::default().alignment },
        emit: Emit::Every,
        explain,
        live,
        clock: Arc::new(ManualClock::default()),
        ..Options::default()
    };
    SessionPlan::of(Specification::new(spec).unwrap(), options)
}

pub fn push(session: &mut Session, plan: &SessionPlan, (topic, content): &Message) {
    let spec = &plan.specification().spec;
    let at = spec.topics.iter().position(|own| own.name == *topic).unwrap();
    session.push(TopicId(at as u32), Stamp::default(), content.as_bytes()).unwrap();
}

/// A report as JSON.
pub fn json(report: &Report<'_>) -> String {
    let mut json = Vec::new();
    report.json(&mut json);
    String::from_utf8(json).unwrap()
}

/// All reports of a session as JSON.
pub fn reports(session: &mut Session) -> Vec<String> {
    session.reports().map(|report| json(&report)).collect()
}

pub fn name_of(declaration: &str) -> String {
    let mut words = declaration.split_whitespace();
    words.find(|word| ["property", "machine"].contains(word));
    words.next().unwrap().to_owned()
}

/// Edits a specification at random.
pub fn edit(random: &mut Random, topics: &mut Vec<&'static str>, properties: &mut Vec<String>) {
    let at = random.index(properties.len());
    match random.index(3) {
        0 => drop(properties.remove(at)),
        1 => properties[at] = properties[at].replace("[0, ", "[0, 1").replace("for 3 s", "for 4 s"),
        _ => properties.push("@time(dense) property further = once[0, 1 s] (a.x > 1 or b.ok)".into()),
    }
    if random.index(3) == 0 {
        topics.insert(random.index(3), TOPICS[2]);
        properties.push("@time(dense) property of_c = on(c) -> once[0, 1 s] a.x > 1".into());
    }
    for _ in 0..random.index(4) {
        let (i, j) = (random.index(properties.len()), random.index(properties.len()));
        properties.swap(i, j);
    }
}
