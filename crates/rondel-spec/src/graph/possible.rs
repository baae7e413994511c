//! The truth values that a node can have, as far as its form determines.

use rondel_event::{Comparison, Value, ValueType};

use super::Graph;
use crate::spec::{Expr, ExprId, Temporal};

/// The truth values that a node can have, as far as its form determines; both for a node that is not a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PossibleValues {
    pub(crate) can_be_true: bool,
    pub(crate) can_be_false: bool,
}

impl PossibleValues {
    const BOTH: PossibleValues = PossibleValues { can_be_true: true, can_be_false: true };
}

impl Graph {
    /// Returns the truth values that a formula can have at any position of any trace.
    pub(crate) fn possible_values(&self, id: ExprId) -> PossibleValues {
        self.possible_values[id.index()]
    }

    pub(super) fn possible_values_of(&self, expr: &Expr) -> PossibleValues {
        let of = |id: &ExprId| self.possible_values[id.index()];
        match expr {
            Expr::Literal(Value::Bool(value)) => PossibleValues { can_be_true: *value, can_be_false: !value },
            Expr::Not(a) => {
                PossibleValues { can_be_true: of(a).can_be_false, can_be_false: of(a).can_be_true }
            }
            Expr::And(a, b) => PossibleValues {
                can_be_true: of(a).can_be_true && of(b).can_be_true && !self.opposite(*a, *b),
                can_be_false: of(a).can_be_false || of(b).can_be_false,
            },
            Expr::Or(a, b) => PossibleValues {
                can_be_true: of(a).can_be_true || of(b).can_be_true,
                can_be_false: of(a).can_be_false && of(b).can_be_false && !self.opposite(*a, *b),
            },
            Expr::If(_, a, b) => PossibleValues {
                can_be_true: of(a).can_be_true || of(b).can_be_true,
                can_be_false: of(a).can_be_false || of(b).can_be_false,
            },
            // An unknown value, and the value before the first position, become false.
            Expr::Definitely(a) | Expr::Previously(a) => {
                PossibleValues { can_be_true: of(a).can_be_true, can_be_false: true }
            }
            Expr::Exists(_, a) | Expr::ForAll(_, a) | Expr::Next(a) => of(a),
            Expr::Compare(comparison, a, b) if a == b => match comparison {
                Comparison::Less | Comparison::Greater => {
                    PossibleValues { can_be_true: false, can_be_false: true }
                }
                // NaN does not equal itself.
                _ if self.value_type(*a) == ValueType::Float => PossibleValues::BOTH,
                Comparison::NotEqual => PossibleValues { can_be_true: false, can_be_false: true },
                _ => PossibleValues { can_be_true: true, can_be_false: false },
            },
            _ => match expr.temporal() {
                // Before the lower bound there is no time point.
                Some(Temporal { bounds, all, operand, .. }) => PossibleValues {
                    can_be_true: of(&operand).can_be_true || all && bounds.lower > 0,
                    can_be_false: of(&operand).can_be_false || !all && bounds.lower > 0,
                },
                None => PossibleValues::BOTH,
            },
        }
    }

    /// Returns whether one node is the negation of the other.
    fn opposite(&self, a: ExprId, b: ExprId) -> bool {
        self.spec.nodes[a.index()] == Expr::Not(b) || self.spec.nodes[b.index()] == Expr::Not(a)
    }
}
