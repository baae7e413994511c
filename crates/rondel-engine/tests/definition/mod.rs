//! The meaning of specifications, straight from the definitions: every node at every position, with
//! no thought of speed. The engine must say the same.

// Each test crate uses its own part of this.
#![allow(dead_code, unreachable_pub, clippy::panic)]

pub mod random;

use rondel_event::{
    Block, Comparison, Condition, Path, Projection, Quantifier, Read, Slot, Test, Timestamp, TopicId, Value,
    ValueType, Verdict,
};
use rondel_spec::{BinaryOp, Bounds, Expr, ExprId, Property, Spec, Topic, UnaryOp};

/// A message.
#[derive(Clone, Debug)]
pub struct Event {
    pub topic: u32,
    pub fields: Vec<(&'static str, Content)>,
}

/// What a message has at a path.
#[derive(Clone, Debug)]
pub enum Content {
    Null,
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

/// What a field reads; none if it is invalid.
fn decode(content: &Content, read: &Read) -> Option<Value> {
    match (read, content) {
        (Read::Presence, _) => Some(Value::Bool(true)),
        (Read::Value(ValueType::Float), Content::Value(Value::Int(x))) => Some(Value::Float(*x as f64)),
        (Read::Value(value_type), Content::Value(value)) if value.value_type() == *value_type => {
            Some(value.clone())
        }
        (Read::Elements(quantifier, conditions), Content::Array(elements)) => {
            let mut meets = elements.iter().map(|e| conditions.iter().all(|c| meets_condition(c, e)));
            Some(Value::Bool(match quantifier {
                Quantifier::Any => meets.any(|m| m),
                Quantifier::All => meets.all(|m| m),
            }))
        }
        _ => None,
    }
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
        Test::Number(comparison, constant) => number.is_some_and(|x| comparison.holds(x, *constant)),
    }
}

/// Writes an event as a decoder does.
pub fn write(block: &mut Block, projections: &[Projection], event: &Event, time: i64) {
    let topic = TopicId(event.topic);
    let row = block.push(topic, Timestamp::from_nanos(time));
    for field in &projections[topic.index()].fields {
        let Some(content) = event.get(topic, &field.path) else { continue };
        match (decode(content, &field.read), field.slot) {
            (Some(Value::Bool(x)), Slot::Bool(i)) => block.set_bool(i, row, x),
            (Some(Value::Int(x) | Value::Time(x)), Slot::Int(i)) => block.set_int(i, row, x),
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

/// For every node its value at every position; none where it is unknown.
pub fn values(spec: &Spec, trace: &[Event]) -> Vec<Vec<Option<Value>>> {
    let mut values: Vec<Vec<Option<Value>>> = Vec::new();
    for expr in &spec.nodes {
        let column = (0..trace.len()).map(|i| value(spec, trace, &values, expr, i)).collect();
        values.push(column);
    }
    values
}

/// The verdicts of every property at every position.
pub fn verdicts(spec: &Spec, trace: &[Event]) -> Vec<Vec<Verdict>> {
    let values = values(spec, trace);
    let verdict = |value: &Option<Value>| match value {
        Some(Value::Bool(true)) => Verdict::Satisfied,
        Some(Value::Bool(false)) => Verdict::Violated,
        None => Verdict::Inconclusive,
        other => panic!("{other:?} is no verdict"),
    };
    spec.properties.iter().map(|p| values[p.formula.index()].iter().map(verdict).collect()).collect()
}

fn value(
    spec: &Spec,
    trace: &[Event],
    values: &[Vec<Option<Value>>],
    expr: &Expr,
    now: usize,
) -> Option<Value> {
    let at = |x: ExprId, i: usize| values[x.index()][i].clone();
    let truth = |x: ExprId, i: usize| {
        at(x, i).map(|value| match value {
            Value::Bool(x) => x,
            other => panic!("{other:?} is no truth"),
        })
    };
    let held = |topic: TopicId, path: &Path, read: Read| {
        let latest = trace[..=now].iter().rev().find_map(|event| event.get(topic, path))?;
        decode(latest, &read)
    };
    let bool = |x: Option<bool>| x.map(Value::Bool);
    match expr {
        Expr::Literal(value) => Some(value.clone()),
        Expr::Field { topic, path, value_type } => held(*topic, path, Read::Value(*value_type)),
        Expr::Elements { topic, path, quantifier, conditions } => {
            held(*topic, path, Read::Elements(*quantifier, conditions.clone()))
        }
        Expr::Carried { topic, path } => Some(Value::Bool(trace[now].get(*topic, path).is_some())),
        Expr::On(topic) => Some(Value::Bool(trace[now].topic == topic.0)),
        Expr::ToFloat(x) => match at(*x, now)? {
            Value::Int(x) => Some(Value::Float(x as f64)),
            other => panic!("{other:?} is no int"),
        },
        Expr::Unary(op, x) => unary(*op, at(*x, now)?),
        Expr::Binary(op, x, y) => binary(*op, at(*x, now)?, at(*y, now)?),
        Expr::Compare(comparison, x, y) => bool(Some(compare(*comparison, at(*x, now)?, at(*y, now)?))),
        Expr::StartsWith(x, y) => match (at(*x, now)?, at(*y, now)?) {
            (Value::String(x), Value::String(y)) => Some(Value::Bool(x.starts_with(&*y))),
            other => panic!("{other:?} are no texts"),
        },
        Expr::If(condition, x, y) => {
            if truth(*condition, now)? {
                at(*x, now)
            } else {
                at(*y, now)
            }
        }
        Expr::Prev(x) => {
            let mut topics = vec![false; spec.topics.len()];
            mentions(spec, *x, &mut topics);
            if topics.iter().all(|mentioned| !mentioned) {
                return at(*x, now);
            }
            let messages: Vec<usize> = (0..=now).filter(|&i| topics[trace[i].topic as usize]).collect();
            if messages.len() < 2 { None } else { at(*x, messages[messages.len() - 1] - 1) }
        }
        Expr::Not(x) => bool(truth(*x, now).map(|x| !x)),
        Expr::And(x, y) => bool(and(truth(*x, now), truth(*y, now))),
        Expr::Or(x, y) => bool(or(truth(*x, now), truth(*y, now))),
        Expr::Definitely(x) => bool(Some(truth(*x, now) == Some(true))),
        Expr::Previously(x) => match now {
            0 => Some(Value::Bool(false)),
            _ => at(*x, now - 1),
        },
        Expr::Once(bounds, x) => {
            bool(within(*bounds, now).map(|i| truth(*x, i)).reduce(or).unwrap_or(Some(false)))
        }
        Expr::Historically(bounds, x) => {
            bool(within(*bounds, now).map(|i| truth(*x, i)).reduce(and).unwrap_or(Some(true)))
        }
        Expr::Since(bounds, p, q) => {
            let mut holds = Some(false);
            // From the present backwards: whether the first operand held after position i.
            let mut after = Some(true);
            for i in (0..=now).rev() {
                if contains(*bounds, now - i) {
                    holds = or(holds, and(truth(*q, i), after));
                }
                after = and(after, truth(*p, i));
                if holds == Some(true) || after == Some(false) {
                    break;
                }
            }
            bool(holds)
        }
        other => panic!("no definition here of {other:?}"),
    }
}

fn contains(bounds: Bounds, steps: usize) -> bool {
    let steps = steps as u64;
    bounds.lower <= steps && bounds.upper.is_none_or(|upper| steps <= upper)
}

fn within(bounds: Bounds, now: usize) -> impl Iterator<Item = usize> {
    (0..=now).filter(move |i| contains(bounds, now - i))
}

fn and(x: Option<bool>, y: Option<bool>) -> Option<bool> {
    match (x, y) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn or(x: Option<bool>, y: Option<bool>) -> Option<bool> {
    and(x.map(|x| !x), y.map(|y| !y)).map(|z| !z)
}

fn mentions(spec: &Spec, x: ExprId, topics: &mut [bool]) {
    let expr = &spec.nodes[x.index()];
    match expr {
        Expr::Field { topic, .. }
        | Expr::Carried { topic, .. }
        | Expr::Elements { topic, .. }
        | Expr::On(topic) => topics[topic.index()] = true,
        _ => {}
    }
    for operand in expr.operands() {
        mentions(spec, operand, topics);
    }
}

fn unary(op: UnaryOp, x: Value) -> Option<Value> {
    match (op, x) {
        (UnaryOp::Negate, Value::Int(x)) => x.checked_neg().map(Value::Int),
        (UnaryOp::Abs, Value::Int(x)) => x.checked_abs().map(Value::Int),
        (UnaryOp::Negate, Value::Float(x)) => Some(Value::Float(-x)),
        (UnaryOp::Abs, Value::Float(x)) => Some(Value::Float(x.abs())),
        other => panic!("no arithmetic on {other:?}"),
    }
}

fn binary(op: BinaryOp, x: Value, y: Value) -> Option<Value> {
    match (x, y) {
        (Value::Int(x), Value::Int(y)) => {
            // In a wider type nothing overflows.
            let (x, y) = (i128::from(x), i128::from(y));
            let result = match op {
                BinaryOp::Add => x + y,
                BinaryOp::Subtract => x - y,
                BinaryOp::Multiply => x * y,
                BinaryOp::Divide | BinaryOp::Remainder if y == 0 => return None,
                BinaryOp::Divide => x / y,
                BinaryOp::Remainder => x % y,
                BinaryOp::Min => x.min(y),
                BinaryOp::Max => x.max(y),
            };
            i64::try_from(result).ok().map(Value::Int)
        }
        (Value::Float(x), Value::Float(y)) => {
            let nan = x.is_nan() || y.is_nan();
            let order = x.total_cmp(&y);
            Some(Value::Float(match op {
                BinaryOp::Add => x + y,
                BinaryOp::Subtract => x - y,
                BinaryOp::Multiply => x * y,
                BinaryOp::Divide => x / y,
                BinaryOp::Remainder => x % y,
                BinaryOp::Min | BinaryOp::Max if nan => f64::NAN,
                BinaryOp::Min => {
                    if order.is_lt() {
                        x
                    } else {
                        y
                    }
                }
                BinaryOp::Max => {
                    if order.is_gt() {
                        x
                    } else {
                        y
                    }
                }
            }))
        }
        other => panic!("no arithmetic on {other:?}"),
    }
}

fn compare(comparison: Comparison, x: Value, y: Value) -> bool {
    let order = match (x, y) {
        (Value::Int(x), Value::Int(y)) | (Value::Time(x), Value::Time(y)) => Some(x.cmp(&y)),
        (Value::Float(x), Value::Float(y)) => x.partial_cmp(&y),
        (Value::Bool(x), Value::Bool(y)) => Some(x.cmp(&y)),
        (Value::String(x), Value::String(y)) => Some(x.cmp(&y)),
        other => panic!("no comparison of {other:?}"),
    };
    match comparison {
        Comparison::Equal => order.is_some_and(|o| o.is_eq()),
        Comparison::NotEqual => order.is_none_or(|o| o.is_ne()),
        Comparison::Less => order.is_some_and(|o| o.is_lt()),
        Comparison::LessOrEqual => order.is_some_and(|o| o.is_le()),
        Comparison::Greater => order.is_some_and(|o| o.is_gt()),
        Comparison::GreaterOrEqual => order.is_some_and(|o| o.is_ge()),
    }
}
