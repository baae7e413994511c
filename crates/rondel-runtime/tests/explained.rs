//! Every value in an explanation is that of its term by the definitions: random formulas over all kinds of terms, in
//! every model of time. A failure prints its seed; `RONDEL_SEED=17` repeats it alone, `RONDEL_CASES=10` runs ten times
//! as many.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../../rondel-engine/tests/definition/mod.rs"]
mod definition;

use std::collections::BTreeSet;

use definition::evaluate::Evaluator;
use definition::timeline::{Sample, Timeline, critical};
use definition::truth::Seen;
use definition::{Content, Event, Timed};
use rondel_event::{Timestamp, TopicId, Value, ValueType, Verdict};
use rondel_runtime::{Explanation, Options, Session, Stamp, formula};
use rondel_spec::{ExprId, Spec, TimeModel};
use rondel_testkit::Random;

const SECOND: i64 = 1_000_000_000;

/// Terms by type; `W` is the length of a window.
const NUMBERS: [&str; 28] = [
    "a.i",
    "b.x",
    "len(a.s)",
    "count(a) over W",
    "count(a.f > 1) over W",
    "sum(a.i) over W",
    "mean(a.f) over W",
    "mean(a.f) over full W",
    "min(a.f) over W",
    "max(a.i + b.n) over W",
    "median(a.f) over W",
    "stddev(a.f) over W",
    "percentile(a.f, 90) over W",
    "first(a.i) over W",
    "last(a.f) over W",
    "distinct(a.i) over W",
    "prev(a.i)",
    "prev(a.f + b.x)",
    "abs(a.i - 2)",
    "-a.i",
    "a.i + b.n",
    "a.f * b.x - 1",
    "min(a.f, b.x)",
    "if a.i > 1 then a.f else b.x",
    "sqrt(a.f)",
    "a.i % 2",
    "a.f / b.x",
    "max(mean(a.f) over W, b.x)",
];
const TIMED_NUMBERS: [&str; 3] = ["rate(a) over W", "derivative(a.f) over W", "integral(a.f) over W"];
const DURATIONS: [&str; 5] = ["age(a)", "age(b)", "jitter(a)", "latency(b)", "age(a) - age(b)"];
const TEXTS: [&str; 3] = ["lower(a.s)", "prev(a.s)", "a.s"];

fn comparison(random: &mut Random, model: TimeModel) -> String {
    let window = if model == TimeModel::Steps { ["1", "3", "6"] } else { ["1 s", "2 s", "4 s"] };
    let window = random.pick(&window);
    let operator = random.pick(&["<", "<=", ">", ">=", "==", "!="]);
    let timed = model != TimeModel::Steps;
    let (left, right) = match random.index(8) {
        // In dense time an age is exact in comparisons with constants.
        0 | 1 if model == TimeModel::Dense => {
            (random.pick(&DURATIONS[..4]), random.pick(&["1 s", "0 s", "2 s"]))
        }
        0 | 1 if timed => (random.pick(&DURATIONS), random.pick(&["1 s", "0 s", "2 s", "age(b)"])),
        2 if timed => (random.pick(&TIMED_NUMBERS), random.pick(&["1.5", "0", "b.x"])),
        3 => {
            let text = random.pick(&TEXTS);
            return match random.index(2) {
                0 => format!("{text} == \"v1\""),
                _ => format!("starts_with({text}, \"V\")"),
            };
        }
        _ => (random.pick(&NUMBERS), if random.index(2) == 0 { random.pick(&NUMBERS) } else { "2" }),
    };
    format!("{left} {operator} {right}").replace('W', window)
}

fn formula_of(random: &mut Random, model: TimeModel) -> String {
    let [c, d] = [comparison(random, model), comparison(random, model)];
    let bounds = if model == TimeModel::Steps { "[0, 2]" } else { "[0, 2 s]" };
    match random.index(10) {
        0 | 1 => c,
        2 => format!("not ({c})"),
        3 => format!("({c}) and ({d})"),
        4 => format!("({c}) or ({d})"),
        5 => format!("({c}) -> once{bounds} ({d})"),
        6 => format!("historically{bounds} ({c})"),
        7 => format!("({c}) since ({d})"),
        8 => format!("on(b) -> eventually{bounds} ({c})"),
        _ => format!("not (rising({c}))"),
    }
}

/// Messages of two topics, whole seconds and halves apart, some at the same time.
fn trace(random: &mut Random) -> Vec<Timed> {
    let mut time = 0;
    let count = 3 + random.index(25);
    let message = |_| {
        time += [0, SECOND / 2, SECOND, SECOND, 3 * SECOND][random.index(5)];
        let int = |random: &mut Random| Value::Int(random.index(5) as i64 - 1);
        let float = |random: &mut Random| Value::Float(random.index(9) as f64 / 4.0 - 0.5);
        let mut fields: Vec<(&'static str, Value)> = match random.index(2) {
            0 => {
                let text = Value::String(random.pick(&["v1", "V2", "other"]).into());
                vec![("i", int(random)), ("f", float(random)), ("s", text)]
            }
            _ => vec![("n", int(random)), ("x", float(random))],
        };
        let topic = u32::from(fields.len() == 2);
        if random.index(5) == 0 {
            fields.remove(random.index(fields.len()));
        }
        let fields = fields.into_iter().map(|(name, value)| (name, Content::Value(value))).collect();
        // Without an arrival, the session would read its clock; one at the message's own time is none.
        let arrival = Some(time + SECOND / 4 + random.index(4) as i64 * SECOND / 2);
        Timed { time, arrival, event: Event { topic, fields } }
    };
    (0..count).map(message).collect()
}

fn payload(event: &Event) -> String {
    let field = |(name, content): &(&str, Content)| match content {
        Content::Value(Value::String(text)) => format!("\"{name}\":\"{text}\""),
        Content::Value(Value::Float(x)) => format!("\"{name}\":{x:?}"),
        Content::Value(Value::Int(x)) => format!("\"{name}\":{x}"),
        other => panic!("{other:?}"),
    };
    format!("{{{}}}", event.fields.iter().map(field).collect::<Vec<_>>().join(","))
}

/// The explanations of all violations.
fn explanations(spec: &Spec, trace: &[Timed], now: i64) -> Vec<Explanation> {
    let mut session = Session::new(spec, Options { explain: true, ..Options::default() }).unwrap();
    let mut found = Vec::new();
    let mut take = |session: &mut Session| {
        let violated = session.reports().filter(|report| report.verdict() == Verdict::Violated);
        found.extend(violated.filter_map(|report| report.explanation().cloned()));
    };
    for Timed { time, arrival, event } in trace {
        let stamp = Stamp::at(Timestamp::from_nanos(*time));
        let stamp = Stamp { arrival: arrival.map(Timestamp::from_nanos), ..stamp };
        session.push(TopicId(event.topic), stamp, payload(event).as_bytes()).unwrap();
        take(&mut session);
    }
    session.flush();
    take(&mut session);
    session.advance(Timestamp::from_nanos(now));
    take(&mut session);
    session.finish();
    take(&mut session);
    found
}

/// The age of a topic at a time without a message; the definitions give it for comparisons as a whole.
fn age(trace: &[Timed], topic: u32, time: i64) -> Option<Value> {
    let last = trace.iter().rfind(|timed| timed.event.topic == topic && timed.time <= time);
    last.map(|last| Value::Duration(time - last.time))
}

fn is_same(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        // The definitions add and divide in another order.
        (Value::Float(x), Value::Float(y)) => {
            x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= 1e-12 * x.abs().max(1.0)
        }
        _ => found == expected,
    }
}

/// Compares all values in explanations of a random case, and returns the terms that were explained.
fn compare(seed: u64) -> BTreeSet<String> {
    let mut random = Random::new(seed);
    let (time, model) =
        [("steps", TimeModel::Steps), ("points", TimeModel::Points), ("dense", TimeModel::Dense)]
            [random.index(3)];
    let written = formula_of(&mut random, model);
    let text = format!(
        "topic a {{ i: int, f: float, s: string }} topic b {{ n: int, x: float }} \
         @time({time}) property p = {written}"
    );
    let Some(spec) = rondel_spec::parse(&text).spec.filter(|spec| !spec.properties.is_empty()) else {
        return BTreeSet::new();
    };
    let trace = trace(&mut random);
    let now = trace.last().unwrap().time + 5 * SECOND;
    let found = explanations(&spec, &trace, now);
    let timeline = Timeline::new(model, &trace, now, &critical(&spec, &trace, now));
    let property = &spec.properties[0];
    let mut evaluator = Evaluator::new(&spec, &timeline, &[]);
    let mut explained = BTreeSet::new();
    let nodes: Vec<ExprId> = (0..spec.nodes.len() as u32).map(ExprId).collect();
    for explanation in found {
        for (column, name) in explanation.names.iter().enumerate() {
            let node = nodes.iter().find(|id| formula::named(&spec, **id, property) == *name);
            let Some(&id) = node else { panic!("seed {seed}: {name} is not in {written}") };
            let values = evaluator.column(id);
            for point in &explanation.points {
                let clock = 2 * i128::from(point.time.as_nanos()) + i128::from(point.after);
                let is_here = |sample: &Sample| match point.step {
                    Some(step) => sample.event == Some(step as usize),
                    None if sample.is_span() => sample.from < clock && clock < sample.to,
                    None => sample.from == clock && sample.event.is_none(),
                };
                let Some(k) = timeline.samples.iter().position(is_here) else { continue };
                let expected = match values[k].see() {
                    _ if point.step.is_none() && ["age(a)", "age(b)"].contains(&name.as_str()) => {
                        age(&trace, u32::from(name == "age(b)"), point.time.as_nanos())
                    }
                    Seen::Value(value) => Some(value),
                    Seen::Unknown | Seen::Pending => None,
                };
                let value = &point.values[column];
                let is_right = match (value, &expected) {
                    (Some(value), Some(expected)) => is_same(value, expected),
                    // A truth may follow from others, and is not evaluated where it is irrelevant.
                    (_, None) if spec.value_type(id) == ValueType::Bool => true,
                    (None, Some(_)) if spec.value_type(id) == ValueType::Bool => true,
                    (None, None) => true,
                    _ => false,
                };
                assert!(
                    is_right,
                    "seed {seed}: {name} at {} (step {:?}, after {}) is {value:?} and not {expected:?} in {written} \
                     over {trace:?}",
                    point.time, point.step, point.after
                );
                if value.is_some() {
                    explained.insert(name.clone());
                }
            }
        }
    }
    explained
}

#[test]
fn explained_values_are_those_of_the_definitions() {
    let explained: BTreeSet<String> = rondel_testkit::seeds("explained", 1500).flat_map(compare).collect();
    if rondel_testkit::is_replay() {
        return;
    }
    // Every kind of term was explained.
    for term in NUMBERS.iter().chain(&TIMED_NUMBERS).chain(&DURATIONS).chain(&TEXTS) {
        let kind = term.split("over").next().unwrap().split("full").next().unwrap();
        assert!(explained.iter().any(|name| name.starts_with(kind)), "{term} was never explained");
    }
}
