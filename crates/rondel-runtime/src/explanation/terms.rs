//! The terms of a formula whose values are shown: the sides of comparisons, and what they measure.

use rondel_event::ValueType;
use rondel_spec::{ChainMeasure, Expr, ExprId, Spec};

use crate::formula::word;

/// How the value of a term goes on between the time points at which it is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// It stays the same.
    Held,
    /// It grows as time does.
    Growing,
    /// It is known only where it is evaluated.
    Moving,
}

impl Course {
    /// That of a term.
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
        // They take values at messages.
        Expr::Window { .. } | Expr::Prev(_) => false,
        node => depth > DEEPEST || node.operands().any(|operand| moves(spec, operand, depth + 1)),
    }
}

/// Whether a node is a term with a state of its own: its value is worth showing wherever it stands.
pub(super) fn is_measured(spec: &Spec, id: ExprId) -> bool {
    let has_state = matches!(
        spec.nodes[id.index()],
        Expr::Window { .. }
            | Expr::Age(_)
            | Expr::Latency(_)
            | Expr::Jitter(_)
            | Expr::Chain(..)
            | Expr::Prev(_)
            | Expr::MachineVariable(..)
    );
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
    let mut side = operand;
    while let Expr::ToFloat(inner) = spec.nodes[side.index()] {
        side = inner;
    }
    let is_shown = match &spec.nodes[side.index()] {
        Expr::Literal(_) | Expr::Key(..) | Expr::Variable(..) => false,
        Expr::Field { .. } | Expr::Elements { .. } | Expr::Length { .. } | Expr::Number { .. } => false,
        _ => spec.value_type(side) != ValueType::Bool && !spec.is_unknown(side),
    };
    (is_test && is_shown).then_some(side)
}
