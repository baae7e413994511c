//! Warnings about constant formulas and comparisons.

use rondel_event::{Comparison, Value, ValueType};

use crate::diagnostic::{Code, Diagnostic, Span};
use crate::graph::Graph;
use crate::spec::ExprId;

/// Returns a warning if a property can never be violated or never be satisfied.
pub(crate) fn constant_property(
    graph: &Graph,
    formula: ExprId,
    name: &str,
    span: Span,
) -> Option<Diagnostic> {
    let possible = graph.possible_values(formula);
    let never = match (possible.can_be_true, possible.can_be_false) {
        (true, true) => return None,
        (false, _) => "satisfied",
        (true, false) => "violated",
    };
    let message = match graph.constant(formula) {
        Some(Value::Bool(value)) => {
            format!("property '{name}' is always {value} and can never be {never}")
        }
        _ => format!("property '{name}' can never be {never}"),
    };
    Some(Diagnostic::new(Code::ConstantProperty, span, message))
}

/// Returns a warning about a comparison that is probably a mistake.
pub(super) fn comparison(
    graph: &Graph,
    op: Comparison,
    a: ExprId,
    b: ExprId,
    id: ExprId,
    span: Span,
) -> Option<Diagnostic> {
    if let Some(Value::Bool(value)) = graph.constant(id) {
        let message = format!("this comparison of constants is always {value}");
        return Some(Diagnostic::new(Code::ConstantComparison, span, message));
    }
    let possible = graph.possible_values(id);
    if !(possible.can_be_true && possible.can_be_false) {
        let never = if possible.can_be_true { "false" } else { "true" };
        let message = format!("both sides are the same expression, so the comparison is never {never}");
        return Some(Diagnostic::new(Code::ConstantComparison, span, message));
    }
    let fraction = |x: ExprId, i: ExprId| {
        graph.value_type(i) == ValueType::Int
            && matches!(graph.constant(x), Some(Value::Float(x)) if x.fract() != 0.0)
    };
    let equality = matches!(op, Comparison::Equal | Comparison::NotEqual);
    if equality && (fraction(a, b) || fraction(b, a)) {
        let always = op != Comparison::Equal;
        let message =
            format!("an integer never equals a number with a fraction, so the comparison is always {always}");
        return Some(Diagnostic::new(Code::ImpossibleEquality, span, message));
    }
    let rounded = |i: ExprId, x: ExprId| match graph.constant(i) {
        Some(Value::Int(i)) if graph.value_type(x) == ValueType::Float => {
            let float = *i as f64;
            if float as i128 == i128::from(*i) { None } else { Some((*i, float)) }
        }
        _ => None,
    };
    let (int, float) = rounded(a, b).or_else(|| rounded(b, a))?;
    let message = format!("{int} has no exact float value and is compared as {float:.0}");
    Some(
        Diagnostic::new(Code::InexactNumber, span, message)
            .help("declare the field as `int` in the schema of its topic"),
    )
}

/// Returns a warning if the quotient of two constant integers loses its fraction.
pub(super) fn quotient(graph: &Graph, a: ExprId, b: ExprId, span: Span) -> Option<Diagnostic> {
    let (Some(Value::Int(a)), Some(Value::Int(b))) = (graph.constant(a), graph.constant(b)) else {
        return None;
    };
    let quotient = a.checked_div(*b).filter(|quotient| quotient * b != *a)?;
    let message = format!("a quotient of integers is an integer: {a} / {b} is {quotient}");
    let help = format!("write `{a}.0 / {b}` to keep the fraction");
    Some(Diagnostic::new(Code::LostFraction, span, message).help(help))
}
