//! The terms of a formula whose values are shown: the sides of comparisons, and what they measure.

use std::collections::HashMap;

use rondel_event::{Condition, Quantifier, Test, Value, ValueType};
use rondel_spec::{ChainMeasure, Class, Expr, ExprId, Spec};

use crate::specification::formula::word;

/// Course of a term's value between the time points at which it is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// The value stays the same.
    Held,
    /// The value grows with time.
    Growing,
    /// The value is known only where it is evaluated.
    Moving,
}

impl Course {
    /// Determines the course of a term.
    pub(super) fn of(spec: &Spec, term: ExprId) -> Course {
        match &spec.nodes[term.index()] {
            Expr::Age(_) | Expr::Chain(_, ChainMeasure::Age) => Course::Growing,
            _ if moves(spec, term, 0) => Course::Moving,
            _ => Course::Held,
        }
    }
}

/// The depth to which a term is looked into.
const DEEPEST: u32 = 200;

/// Whether the value of a term changes between the time points at which something happens.
fn moves(spec: &Spec, term: ExprId, depth: u32) -> bool {
    match &spec.nodes[term.index()] {
        Expr::Age(_) | Expr::Chain(_, ChainMeasure::Age | ChainMeasure::Reaction) => true,
        // Windows and `prev` change at messages only.
        Expr::Window { .. } | Expr::Prev(_) => false,
        node => depth > DEEPEST || node.operands().any(|operand| moves(spec, operand, depth + 1)),
    }
}

/// Whether a node is a term with a state of its own: its value is worth showing wherever it stands.
pub(super) fn is_measured(spec: &Spec, id: ExprId) -> bool {
    let has_state = matches!(spec.nodes[id.index()].class(), Class::Measure | Class::Past | Class::Machine);
    has_state && spec.value_type(id) != ValueType::Bool && word(spec, id).is_none()
}

/// The term that an operand of a comparison or another test is, if it is neither a constant nor shown as a field.
pub(super) fn shown_side(spec: &Spec, test: ExprId, operand: ExprId) -> Option<ExprId> {
    let is_test = !spec.is_unknown(test)
        && match &spec.nodes[test.index()] {
            Expr::Compare(..) | Expr::StartsWith(..) => true,
            Expr::Call(function, ..) => function.result() == ValueType::Bool,
            _ => word(spec, test).is_some(),
        };
    let side = unconverted(spec, operand);
    let is_shown = match spec.nodes[side.index()].class() {
        Class::Constant | Class::Held => false,
        _ => spec.value_type(side) != ValueType::Bool && !spec.is_unknown(side),
    };
    (is_test && is_shown).then_some(side)
}

/// A node without conversions around it.
fn unconverted(spec: &Spec, id: ExprId) -> ExprId {
    let mut inner = id;
    while let Expr::ToFloat(of) = spec.nodes[inner.index()] {
        inner = of;
    }
    inner
}

/// The numbers that fields, terms and elements of arrays below a formula are compared with; times in seconds.
pub(super) fn thresholds(spec: &Spec, formula: ExprId) -> HashMap<ExprId, Vec<f64>> {
    let mut found: HashMap<ExprId, Vec<f64>> = HashMap::new();
    let mut add = |id: ExprId, threshold: f64| {
        let all = found.entry(id).or_default();
        if threshold.is_finite() && !all.contains(&threshold) {
            all.push(threshold);
        }
    };
    for (id, node) in spec.below(formula) {
        match node {
            Expr::Compare(_, x, y) => {
                for (side, other) in [(*x, *y), (*y, *x)] {
                    if let Expr::Literal(value) = &spec.nodes[unconverted(spec, other).index()] {
                        number(value).into_iter().for_each(|value| add(unconverted(spec, side), value));
                    }
                }
            }
            Expr::Elements { conditions, .. } => {
                let of_element = conditions.iter().filter(|condition| condition.path.0.is_empty());
                of_element.filter_map(|condition| bound(&condition.test)).for_each(|bound| add(id, bound));
            }
            _ => {}
        }
    }
    found
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(x) => Some(*x as f64),
        Value::Float(x) => Some(*x),
        Value::Time(nanos) | Value::Duration(nanos) => Some(*nanos as f64 / 1e9),
        Value::Bool(_) | Value::String(_) => None,
    }
}

fn bound(test: &Test) -> Option<f64> {
    match test {
        Test::Number(_, bound) | Test::Integer(_, bound) => Some(*bound),
        _ => None,
    }
}

/// Whether the elements of an array are numbers that a quantifier compares, so that they are drawn as a band.
pub(super) fn compares_numbers(quantifier: Quantifier, conditions: &[Condition]) -> bool {
    let compares = |condition: &Condition| condition.path.0.is_empty() && bound(&condition.test).is_some();
    !quantifier.is_measure() && !conditions.is_empty() && conditions.iter().all(compares)
}
