//! `debounce(p) for d`: a truth that follows `p` with a delay and skips its short changes.
//!
//! | | |
//! |---|---|
//! | meaning | true once `p` has held without a break for `d`, false once `not p` has, and unchanged in between: at every time point of the last `d`, both ends included |
//! | at first | false until `p` has lasted for `d`, unlike `stable(p) for d`, which is unknown |
//! | unknown | where `p` may have lasted, but not certainly, since `not p` last did |
//! | types | a truth; the result is a truth |
//! | duration | above zero: a duration, or a number of steps |
//! | node | [`Expr::Debounce`], of the class of past operators |
//! | robustness | refused where `p` compares numbers |
//! | explanation | its own history and that of `p` |
//! | state | that of two `since[d,]` and of a `since` without bounds |

use super::{OperandKind, Operator, Refused};
use crate::graph::Graph;
use crate::spec::{Expr, ExprId};

pub(super) const DEBOUNCE: Operator = Operator {
    name: "debounce",
    call: "`debounce(p) for d`",
    doc: "`p`, once it has lasted for `d`; false at first",
    arity: 1,
    operands: OperandKind::Truth,
    lasts: true,
    inside: "`debounce`",
    example: "debounce(p) for 2 s",
    build,
};

fn build(graph: &mut Graph, operands: &[ExprId], lasting: u64) -> Result<ExprId, Refused> {
    let [p] = *operands else { return Ok(graph.unknown()) };
    Ok(graph.add(Expr::Debounce(lasting, p)))
}
