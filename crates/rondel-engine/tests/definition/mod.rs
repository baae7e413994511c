//! Reference semantics: every node at every position straight from its definition, without optimisation. The
//! engine must agree.

// Each test crate uses a part of this module.
#![allow(dead_code, unreachable_pub, clippy::panic, clippy::print_stdout)]

mod arithmetic;
pub mod build;
pub mod drive;
pub mod evaluate;
pub mod floor;
pub mod functions;
pub mod levels;
pub mod linear;
mod machine;
pub mod machines;
mod measure;
pub mod operators;
pub mod outcome;
pub mod quantity;
pub mod random;
pub mod slice;
pub mod timed;
pub mod timeline;
pub mod truth;

use rondel_event::{
    Block, Condition, Countable, Path, Projection, Quantifier, Read, Slot, Test, Timestamp, TopicId, Value,
    ValueType, Verdict,
};
use rondel_spec::{Expr, ExprId, Property, Spec, TimeModel, Topic};

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub topic: u32,
    pub fields: Vec<(&'static str, Content)>,
}

/// A message with its times.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed {
    pub time: i64,
    /// Arrival by the clock of the receiver, if known.
    pub arrival: Option<i64>,
    pub event: Event,
}

/// The content of a message at a path.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Null,
    /// A float NaN as decoders deliver it: the field has no value.
    NotANumber,
    Value(Value),
    Array(Vec<Value>),
}

impl Event {
    fn get(&self, topic: TopicId, path: &Path) -> Option<&Content> {
        let name = path.to_string();
        let carried = self.fields.iter().find(|(key, _)| *key == name);
        carried.filter(|_| self.topic == topic.0).map(|(_, content)| content)
    }
}

/// The value of a field; none if it is invalid.
fn decode(content: &Content, read: &Read) -> Option<Value> {
    match (read, content) {
        (Read::Presence, _) => Some(Value::Bool(true)),
        (Read::Value(ValueType::Float), Content::Value(Value::Int(x))) => Some(Value::Float(*x as f64)),
        (Read::Value(value_type), Content::Value(value)) if value.value_type() == *value_type => {
            Some(value.clone())
        }
        (Read::Elements(quantifier, _), Content::Array(elements)) if quantifier.is_measure() => {
            measure(*quantifier, elements).map(Value::Float)
        }
        (Read::Elements(quantifier, conditions), Content::Array(elements)) => {
            let mut meets = elements.iter().map(|element| meets(conditions, element));
            Some(match quantifier {
                Quantifier::Any => Value::Bool(meets.any(|m| m)),
                Quantifier::All => Value::Bool(meets.all(|m| m)),
                _ => Value::Int(meets.filter(|m| *m).count() as i64),
            })
        }
        (Read::Number(_), Content::Value(Value::String(text))) => {
            text.trim().parse().ok().filter(|x: &f64| x.is_finite()).map(Value::Float)
        }
        (Read::Number(value_type), content) => decode(content, &Read::Value(*value_type)),
        (Read::IsNan, Content::NotANumber) => Some(Value::Bool(true)),
        (Read::IsNan, Content::Value(Value::Int(_))) => Some(Value::Bool(false)),
        (Read::IsNan, Content::Value(Value::Float(x))) => Some(Value::Bool(x.is_nan())),
        (Read::Length | Read::LengthOf(Countable::Array), Content::Array(elements)) => {
            Some(Value::Int(elements.len() as i64))
        }
        (Read::Length | Read::LengthOf(Countable::Text), Content::Value(Value::String(text))) => {
            Some(Value::Int(text.chars().count() as i64))
        }
        _ => None,
    }
}

/// Minimum, maximum, sum or mean of numbers; none without numbers, or with anything else among them.
fn measure(quantifier: Quantifier, elements: &[Value]) -> Option<f64> {
    let numbers = elements.iter().map(|element| match element {
        Value::Int(x) => Some(*x as f64),
        Value::Float(x) => Some(*x).filter(|x| !x.is_nan()),
        _ => None,
    });
    let numbers: Vec<f64> =
        numbers.collect::<Option<_>>().filter(|numbers: &Vec<f64>| !numbers.is_empty())?;
    let sum = numbers.iter().fold(0.0, |sum, x| sum + x);
    let found = match quantifier {
        Quantifier::Min => numbers.into_iter().fold(f64::INFINITY, f64::min),
        Quantifier::Max => numbers.into_iter().fold(f64::NEG_INFINITY, f64::max),
        Quantifier::Sum => sum,
        _ => sum / numbers.len() as f64,
    };
    Some(found).filter(|found| !found.is_nan())
}

/// Whether an element meets all conditions of an alternative.
fn meets(conditions: &[Condition], element: &Value) -> bool {
    let of = |alternative| conditions.iter().filter(move |condition| condition.alternative == alternative);
    let last = conditions.iter().map(|condition| condition.alternative).max().unwrap_or(0);
    (0..=last).any(|alternative| of(alternative).all(|condition| meets_condition(condition, element)))
}

fn meets_condition(condition: &Condition, element: &Value) -> bool {
    let number = match element {
        Value::Int(x) => Some(*x as f64),
        Value::Float(x) => Some(*x),
        _ => None,
    };
    match &condition.test {
        Test::Present => true,
        Test::Equals(value) => element == value,
        Test::OtherText(text) => matches!(element, Value::String(found) if *found != *text),
        Test::Number(comparison, constant) => {
            number.is_some_and(|x| !x.is_nan() && comparison.holds(x, *constant))
        }
        Test::Integer(comparison, constant) => {
            number.is_some_and(|x| x.fract() == 0.0 && comparison.holds(x, *constant))
        }
    }
}

/// Writes an event to a block as a decoder does.
pub fn write(block: &mut Block, projections: &[Projection], event: &Event, time: i64) {
    let topic = TopicId(event.topic);
    let row = block.push(topic, Timestamp::from_nanos(time));
    for field in &projections[topic.index()].fields {
        let Some(content) = event.get(topic, &field.path) else { continue };
        match (decode(content, &field.read), field.slot) {
            (Some(Value::Bool(x)), Slot::Bool(i)) => block.set_bool(i, row, x),
            (Some(Value::Int(x) | Value::Time(x) | Value::Duration(x)), Slot::Int(i)) => {
                block.set_int(i, row, x)
            }
            (Some(Value::Float(x)), Slot::Float(i)) => block.set_float(i, row, x),
            (Some(Value::String(x)), Slot::String(i)) => block.set_string(i, row, &x),
            (None, slot) => block.set_invalid(slot, row),
            (value, slot) => panic!("{value:?} does not go into {slot:?}"),
        }
    }
}

/// A specification with topics `t0`, `t1` …, and a property for every formula.
pub fn spec(topics: u32, nodes: Vec<Expr>, formulas: impl IntoIterator<Item = ExprId>) -> Spec {
    let topic = |i| format!("t{i}");
    let property = |formula| Property::new(format!("p{formula:?}"), formula);
    Spec {
        topics: (0..topics)
            .map(|i| Topic { name: topic(i), address: topic(i), type_name: None, schema: None })
            .collect(),
        properties: formulas.into_iter().map(property).collect(),
        nodes,
        ..Spec::default()
    }
}

/// Verdicts of every property at every position, in discrete time.
pub fn verdicts(spec: &Spec, trace: &[Event]) -> Vec<Vec<Verdict>> {
    let timed = |event: &Event| Timed { time: 0, arrival: None, event: event.clone() };
    let trace: Vec<Timed> = trace.iter().map(timed).collect();
    assert!(spec.properties.iter().all(|p| p.time == TimeModel::Steps && p.slice.is_none()));
    let verdict = |spot: &outcome::Spot| spot.verdict.unwrap_or(Verdict::Inconclusive);
    let outcomes = outcome::outcomes(spec, &trace, 0);
    outcomes.iter().map(|spots| spots.iter().map(verdict).collect()).collect()
}

/// Values of every node at every position, in discrete time; none while unknown.
pub fn values(spec: &Spec, trace: &[Event]) -> Vec<Vec<Option<Value>>> {
    let timed = |event: &Event| Timed { time: 0, arrival: None, event: event.clone() };
    let trace: Vec<Timed> = trace.iter().map(timed).collect();
    let timeline = timeline::Timeline::new(TimeModel::Steps, &trace, 0, &Default::default());
    let mut evaluator = evaluate::Evaluator::new(spec, &timeline, &[]);
    let nodes = (0..spec.nodes.len() as u32).map(ExprId);
    nodes.map(|id| evaluator.column(id).iter().map(truth::Datum::value).collect()).collect()
}

/// Writes an event with its times.
pub fn write_timed(block: &mut Block, projections: &[Projection], timed: &Timed) {
    write(block, projections, &timed.event, timed.time);
    if let Some(arrival) = timed.arrival {
        block.set_arrival(block.len() - 1, Timestamp::from_nanos(arrival));
    }
}
