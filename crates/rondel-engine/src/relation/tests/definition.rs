//! Semantics of formulas with variables, straight from the definitions: a quantifier tries every value of the
//! trace and of the formula, and one that is in neither.

use std::collections::HashMap;

use rondel_event::{Comparison, Path, TopicId, Value, ValueType};
use rondel_spec::{BinaryOp, Bounds, Expr, ExprId, Spec, TimeModel, VariableId};

/// Message.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) topic: u32,
    pub(super) time: i64,
    pub(super) fields: Vec<(&'static str, Value)>,
}

impl Message {
    pub(super) fn get(&self, topic: TopicId, path: &Path, value_type: ValueType) -> Option<Value> {
        let name = path.to_string();
        let field = self.fields.iter().find(|(key, _)| *key == name).filter(|_| self.topic == topic.0);
        field.map(|(_, value)| value.clone()).filter(|value| value.value_type() == value_type)
    }
}

pub(super) struct Definition<'a> {
    pub(super) spec: &'a Spec,
    pub(super) trace: &'a [Message],
    pub(super) model: TimeModel,
    domain: Vec<Value>,
    pub(super) positions: Vec<Position>,
}

/// Position with a truth: a message, or in dense time an instant or the open interval after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    /// A step, a time, or in dense time twice the time, plus one on the open interval after it.
    pub(super) place: i64,
    pub(super) message: Option<usize>,
    /// Number of messages up to this position.
    pub(super) seen: usize,
}

fn positions(trace: &[Message], model: TimeModel) -> Vec<Position> {
    let of_message = |(i, m): (usize, &Message)| {
        let place = if model == TimeModel::Steps { i as i64 } else { m.time };
        Position { place, message: Some(i), seen: i + 1 }
    };
    if model != TimeModel::Dense {
        return trace.iter().enumerate().map(of_message).collect();
    }
    let mut out: Vec<Position> = Vec::new();
    let mut seen = 0;
    for time in trace[0].time..=trace[trace.len() - 1].time + 6 {
        let before = seen;
        while trace.get(seen).is_some_and(|m| m.time == time) {
            seen += 1;
            out.push(Position { place: 2 * time, message: Some(seen - 1), seen });
        }
        if before == seen {
            out.push(Position { place: 2 * time, message: None, seen });
        }
        out.push(Position { place: 2 * time + 1, message: None, seen });
    }
    out
}

pub(super) type Valuation = HashMap<VariableId, Value>;

impl<'a> Definition<'a> {
    pub(super) fn new(spec: &'a Spec, trace: &'a [Message], model: TimeModel) -> Definition<'a> {
        let mut domain: Vec<Value> = vec![
            Value::Bool(false),
            Value::Bool(true),
            Value::Int(987_654),
            Value::Float(0.125),
            Value::String("unseen".into()),
        ];
        let of_trace = trace.iter().flat_map(|m| m.fields.iter().map(|(_, value)| value.clone()));
        let of_spec = spec.nodes.iter().filter_map(|node| match node {
            Expr::Literal(value) => Some(value.clone()),
            _ => None,
        });
        for value in of_trace.chain(of_spec) {
            if !domain.contains(&value) {
                domain.push(value);
            }
        }
        Definition { spec, trace, model, domain, positions: positions(trace, model) }
    }

    fn at(&self, i: usize) -> i64 {
        self.positions[i].place
    }

    pub(super) fn is_span(&self, i: usize) -> bool {
        self.model == TimeModel::Dense && self.positions[i].place % 2 != 0
    }

    fn within(&self, bounds: Bounds, now: usize) -> Vec<usize> {
        let unit = if self.model == TimeModel::Dense { 2 } else { 1 };
        let Bounds { lower, upper } = bounds;
        let bounds = Bounds { lower: unit * lower, upper: upper.map(|upper| unit * upper) };
        let ago = |i: usize| (self.at(now) - self.at(i)) as u64;
        let inside = |i: &usize| ago(*i) >= bounds.lower && bounds.upper.is_none_or(|upper| ago(*i) <= upper);
        (0..=now).filter(inside).collect()
    }

    pub(super) fn truth(&self, node: ExprId, variables: &Valuation, now: usize) -> Option<bool> {
        self.value(node, variables, now).map(|value| match value {
            Value::Bool(x) => x,
            other => panic!("{other:?} is no truth"),
        })
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each operator")]
    pub(super) fn value(&self, node: ExprId, variables: &Valuation, now: usize) -> Option<Value> {
        let truth = |x: ExprId, i: usize| self.truth(x, variables, i);
        let value = |x: ExprId| self.value(x, variables, now);
        let any = |truths: &mut dyn Iterator<Item = Option<bool>>| {
            let mut found = Some(false);
            for truth in truths {
                found = or(found, truth);
                if found == Some(true) {
                    break;
                }
            }
            found
        };
        let bool = |x: Option<bool>| x.map(Value::Bool);
        match &self.spec.nodes[node.index()] {
            Expr::Literal(value) => Some(value.clone()),
            Expr::Variable(variable, _) => Some(variables[variable].clone()),
            Expr::Field { topic, path, value_type } => {
                let carries = |m: &&Message| {
                    m.topic == topic.0 && m.fields.iter().any(|(key, _)| *key == path.to_string())
                };
                let last = self.trace[..self.positions[now].seen].iter().rev().find(carries)?;
                last.get(*topic, path, *value_type)
            }
            Expr::On(topic) => {
                let message = self.positions[now].message;
                Some(Value::Bool(message.is_some_and(|i| self.trace[i].topic == topic.0)))
            }
            Expr::Bind { topic, fields } => {
                let Some(message) = self.positions[now].message else { return Some(Value::Bool(false)) };
                let message = &self.trace[message];
                let has = |(path, variable, value_type): &(Path, VariableId, ValueType)| {
                    message.get(*topic, path, *value_type).is_some_and(|value| value == variables[variable])
                };
                Some(Value::Bool(message.topic == topic.0 && fields.iter().all(has)))
            }
            Expr::Binary(BinaryOp::Add, x, y) => match (value(*x)?, value(*y)?) {
                (Value::Int(x), Value::Int(y)) => x.checked_add(y).map(Value::Int),
                other => panic!("no sum of {other:?}"),
            },
            Expr::Compare(comparison, x, y) => {
                let order = match (value(*x)?, value(*y)?) {
                    (Value::Int(x), Value::Int(y)) => Some(x.cmp(&y)),
                    (Value::Float(x), Value::Float(y)) => x.partial_cmp(&y),
                    (Value::String(x), Value::String(y)) => Some(x.cmp(&y)),
                    (Value::Bool(x), Value::Bool(y)) => Some(x.cmp(&y)),
                    other => panic!("no comparison of {other:?}"),
                };
                Some(Value::Bool(match comparison {
                    Comparison::Equal => order.is_some_and(|o| o.is_eq()),
                    Comparison::NotEqual => order.is_none_or(|o| o.is_ne()),
                    Comparison::Less => order.is_some_and(|o| o.is_lt()),
                    Comparison::LessOrEqual => order.is_some_and(|o| o.is_le()),
                    Comparison::Greater => order.is_some_and(|o| o.is_gt()),
                    Comparison::GreaterOrEqual => order.is_some_and(|o| o.is_ge()),
                }))
            }
            Expr::StartsWith(x, y) => match (value(*x)?, value(*y)?) {
                (Value::String(x), Value::String(y)) => Some(Value::Bool(x.starts_with(&*y))),
                other => panic!("no texts: {other:?}"),
            },
            Expr::Not(x) => bool(truth(*x, now).map(|x| !x)),
            Expr::And(x, y) => bool(and(truth(*x, now), truth(*y, now))),
            Expr::Or(x, y) => bool(or(truth(*x, now), truth(*y, now))),
            Expr::Definitely(x) => Some(Value::Bool(truth(*x, now) == Some(true))),
            Expr::Previously(x) if self.is_span(now) => value(*x),
            Expr::Previously(x) => bool(if now == 0 { Some(false) } else { truth(*x, now - 1) }),
            Expr::Once(bounds, x) => {
                bool(any(&mut self.within(*bounds, now).into_iter().map(|i| truth(*x, i))))
            }
            Expr::Historically(bounds, x) => {
                let fails = any(&mut self.within(*bounds, now).into_iter().map(|i| truth(*x, i).map(|x| !x)));
                bool(fails.map(|x| !x))
            }
            Expr::Since(bounds, p, q) => {
                let holds = |i: usize| {
                    // Part of the open interval remains after a witness in it.
                    let first = if self.is_span(i) && i < now { i } else { i + 1 };
                    let since = (first..=now).map(|j| truth(*p, j)).fold(Some(true), and);
                    and(truth(*q, i), since)
                };
                // Up to the end of an open interval, with `p` from there on.
                let ended = |i: usize| {
                    let since = (i + 1..=now).map(|j| truth(*p, j)).fold(Some(true), and);
                    and(truth(*q, i), since)
                };
                let far = |i: &usize| {
                    let distance = self.positions[now].place - self.positions[i + 1].place;
                    let from = i64::try_from(bounds.lower).map_or(i64::MAX, |lower| lower.saturating_mul(2));
                    let to = bounds.upper.and_then(|upper| i64::try_from(upper).ok());
                    distance >= from && to.is_none_or(|upper| distance < upper.saturating_mul(2))
                };
                let spans = (0..now).filter(|i| self.is_span(*i)).filter(far);
                let within = self.within(*bounds, now).into_iter().map(holds);
                bool(any(&mut within.chain(spans.map(ended))))
            }
            Expr::Exists(variable, x) => bool(any(&mut self.tried(*variable, *x, variables, now))),
            Expr::ForAll(variable, x) => {
                let tried = self.tried(*variable, *x, variables, now);
                bool(any(&mut tried.map(|truth| truth.map(|x| !x))).map(|x| !x))
            }
            other => panic!("no definition here of {other:?}"),
        }
    }

    /// Returns the truth for every value of the variable.
    fn tried<'b>(
        &'b self,
        variable: VariableId,
        x: ExprId,
        variables: &'b Valuation,
        now: usize,
    ) -> impl Iterator<Item = Option<bool>> + 'b {
        self.values_of(variable).map(move |value| {
            let mut variables = variables.clone();
            variables.insert(variable, value.clone());
            self.truth(x, &variables, now)
        })
    }

    /// Returns the values that a variable is tried with.
    pub(super) fn values_of(&self, variable: VariableId) -> impl Iterator<Item = &Value> {
        let value_type = self.spec.nodes.iter().find_map(|node| match node {
            Expr::Variable(other, value_type) if *other == variable => Some(*value_type),
            Expr::Bind { fields, .. } => {
                fields.iter().find(|(_, other, _)| *other == variable).map(|(_, _, value_type)| *value_type)
            }
            _ => None,
        });
        self.domain.iter().filter(move |v| value_type.is_none_or(|t| v.value_type() == t))
    }
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
