//! Words of the language that stand for several nodes.

use rondel_event::Comparison;
use rondel_spec::{Call, Expr, ExprId, Spec};

use super::DEEPEST;

/// A word of the language that stands for several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word: `changed`, `rising`, `falling`, `known`, `is_nan`, `finite`.
    pub word: &'static str,
    /// The operand.
    pub operand: ExprId,
}

/// The word for a node and its operands, if there is one.
pub fn word(spec: &Spec, id: ExprId) -> Option<Word> {
    if let Some(Call { word: word @ ("known" | "is_nan" | "finite"), operands, .. }) = spec.places.call(id) {
        return Some(Word { word, operand: *operands.first()? });
    }
    let node = |id: ExprId| &spec.nodes[id.index()];
    let Expr::And(a, b) = *node(id) else { return None };
    match (node(a), node(b)) {
        (_, Expr::Compare(Comparison::NotEqual, x, before)) if is_update(spec, a) => {
            (*node(*before) == Expr::Prev(*x)).then_some(Word { word: "changed", operand: *x })
        }
        (_, Expr::Not(before)) if *node(*before) == Expr::Previously(a) => {
            Some(Word { word: "rising", operand: a })
        }
        (Expr::Not(x), Expr::Previously(y)) if x == y => Some(Word { word: "falling", operand: *x }),
        _ => None,
    }
}

/// Whether a node is true at the messages of some topics, and only there.
fn is_update(spec: &Spec, id: ExprId) -> bool {
    let (mut id, mut steps) = (id, 0);
    loop {
        match spec.nodes[id.index()] {
            Expr::On(_) => return true,
            Expr::Or(a, b) if matches!(spec.nodes[b.index()], Expr::On(_)) && steps < DEEPEST => {
                (id, steps) = (a, steps + 1);
            }
            _ => return false,
        }
    }
}
