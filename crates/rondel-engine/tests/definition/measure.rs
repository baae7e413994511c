//! Measurements: windows, age, latency, jitter.

use rondel_event::{Comparison, TopicId, Value, ValueType};
use rondel_spec::{Aggregate, BinaryOp, Expr, ExprId, TimeModel};

use super::Timed;
use super::arithmetic::{binary, compare, whole};
use super::evaluate::Evaluator;
use super::quantity;
use super::timeline::{Clock, age_and_constant};
use super::truth::{Datum, Seen, Truth};

fn duration(ns: i128) -> Value {
    // Longer durations are clamped.
    Value::Duration(ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
}

fn messages(events: &[Timed], topic: TopicId) -> impl Iterator<Item = &Timed> {
    events.iter().rev().filter(move |timed| timed.event.topic == topic.0)
}

fn span(from: &Timed, to: &Timed) -> i128 {
    i128::from(to.time) - i128::from(from.time)
}

/// The age at the last event.
pub fn age(evaluator: &Evaluator<'_>, topic: TopicId, k: usize) -> Datum {
    let events = &evaluator.timeline.trace[..=evaluator.timeline.samples[k].latest];
    let now = &events[events.len() - 1];
    Datum::of(messages(events, topic).next().map(|message| duration(span(message, now))))
}

/// The comparison of an age, exact at every time.
pub fn compare_age(evaluator: &Evaluator<'_>, op: Comparison, x: ExprId, y: ExprId, k: usize) -> Datum {
    if evaluator.timeline.model != TimeModel::Dense {
        return match (evaluator.datum(x, k).value(), evaluator.datum(y, k).value()) {
            (Some(x), Some(y)) => Datum::of(Some(Value::Bool(compare(op, x, y)))),
            _ => Datum::Unknown,
        };
    }
    let (topic, constant) = age_and_constant(evaluator.spec, x, y).unwrap();
    let sample = evaluator.timeline.samples[k];
    let events = &evaluator.timeline.trace[..=sample.latest];
    let Some(message) = messages(events, TopicId(topic as u32)).next() else { return Datum::Unknown };
    let age = sample.at() - 2 * Clock::from(message.time);
    let constant = 2 * Clock::from(constant);
    let swapped = matches!(evaluator.spec.nodes[x.index()], rondel_spec::Expr::Literal(_));
    let (x, y) = if swapped { (constant, age) } else { (age, constant) };
    Datum::of(Some(Value::Bool(op.holds(x, y))))
}

pub fn latency(events: &[Timed], topic: TopicId) -> Datum {
    let latency = |message: &Timed| {
        let arrival = message.arrival?;
        Some(duration(i128::from(arrival) - i128::from(message.time)))
    };
    Datum::of(messages(events, topic).next().and_then(latency))
}

pub fn jitter(events: &[Timed], topic: TopicId) -> Datum {
    let last: Vec<&Timed> = messages(events, topic).take(3).collect();
    Datum::of(match last[..] {
        [c, b, a] => Some(duration((span(b, c) - span(a, b)).abs())),
        _ => None,
    })
}

pub fn window(
    evaluator: &Evaluator<'_>,
    aggregate: Aggregate,
    over: u64,
    operand: Option<ExprId>,
    topics: &[TopicId],
    k: usize,
) -> Datum {
    let timeline = evaluator.timeline;
    let now = timeline.samples[k].at();
    let samples: Vec<usize> = timeline
        .events()
        .take_while(|&j| j <= k)
        .filter(|&j| {
            let topic = timeline.trace[timeline.samples[j].latest].event.topic;
            topics.contains(&TopicId(topic)) && now - timeline.samples[j].at() < 2 * Clock::from(over)
        })
        .collect();
    let rate = |count: usize| Value::Float(count as f64 * 1e9 / over as f64);
    match (aggregate, operand) {
        (Aggregate::Rate, _) => Datum::of(Some(rate(samples.len()))),
        (Aggregate::Count, None) => Datum::of(Some(Value::Int(samples.len() as i64))),
        (Aggregate::Count, Some(x)) => {
            let certain = samples.iter().filter(|&&j| evaluator.datum(x, j).truth() == Truth::TRUE);
            Datum::of(Some(Value::Int(certain.count() as i64)))
        }
        (_, None) => panic!("{aggregate:?} of nothing"),
        (_, Some(x)) => {
            let mut values = Vec::new();
            let mut pending = false;
            for &j in &samples {
                if aggregate.leaves_out_nan() && is_nan(evaluator, x, j) {
                    continue;
                }
                match evaluator.datum(x, j).see() {
                    Seen::Value(value) => values.push(value),
                    // The aggregate of an unknown sample is unknown.
                    Seen::Unknown => return Datum::Unknown,
                    Seen::Pending => pending = true,
                }
            }
            if pending {
                Datum::Pending
            } else {
                let times: Vec<i128> = samples.iter().map(|&j| timeline.samples[j].at() / 2).collect();
                Datum::of(match quantity::of(aggregate, &values, &times) {
                    quantity::Answer::Value(value) => value,
                    quantity::Answer::Other => of_values(aggregate, evaluator.spec.value_type(x), values),
                })
            }
        }
    }
}

/// Whether an operand is NaN at a sample: itself, or a float field that it reads, which then has no value.
fn is_nan(evaluator: &Evaluator<'_>, x: ExprId, j: usize) -> bool {
    if let Seen::Value(Value::Float(value)) = evaluator.datum(x, j).see()
        && value.is_nan()
    {
        return true;
    }
    let node = &evaluator.spec.nodes[x.index()];
    if let Expr::Field { topic, path, value_type: ValueType::Float } = node {
        let flag = Expr::IsNan { topic: *topic, path: path.clone() };
        return evaluator.at(&flag, j).truth() == Truth::TRUE;
    }
    node.operands().any(|operand| is_nan(evaluator, operand, j))
}

fn of_values(aggregate: Aggregate, value_type: ValueType, values: Vec<Value>) -> Option<Value> {
    let count = values.len() as f64;
    match aggregate {
        Aggregate::Sum => sum(value_type, &values),
        Aggregate::Mean if values.is_empty() => None,
        Aggregate::Mean => {
            let wide = |value: &Value| match value {
                Value::Float(x) => *x,
                Value::Int(x) | Value::Time(x) | Value::Duration(x) => *x as f64,
                other => panic!("no mean of {other:?}"),
            };
            Some(Value::Float(values.iter().map(wide).fold(0.0, |x, y| x + y) / count))
        }
        Aggregate::Min => values.into_iter().reduce(|x, y| binary(BinaryOp::Min, x, y).unwrap()),
        Aggregate::Max => values.into_iter().reduce(|x, y| binary(BinaryOp::Max, x, y).unwrap()),
        other => unreachable!("{other:?}"),
    }
}

fn sum(value_type: ValueType, values: &[Value]) -> Option<Value> {
    if value_type == ValueType::Float {
        let numbers = values.iter().map(|value| match value {
            Value::Float(x) => *x,
            other => panic!("{other:?} is no float"),
        });
        return Some(Value::Float(numbers.fold(0.0, |x, y| x + y)));
    }
    let numbers = values.iter().map(|value| match value {
        Value::Int(x) | Value::Duration(x) => i128::from(*x),
        other => panic!("no sum of {other:?}"),
    });
    whole(value_type, numbers.sum())
}
