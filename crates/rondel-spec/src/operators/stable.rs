//! `stable(p) for d`: a truth without its short changes.
//!
//! | | |
//! |---|---|
//! | meaning | the last truth that `p` has had without a break for `d`: at every time point of the last `d`, both ends included |
//! | unknown | until `p` has lasted so long for the first time; after a time at which `p` is unknown, the truth before it stays until another has lasted, and is unknown once `p` may have lasted otherwise |
//! | types | a truth; the result is a truth |
//! | duration | above zero: a duration, or a number of steps |
//! | lowering | two times `since[d,]`: `p since[d,] p`, and the same of `not p` |
//! | robustness | where it is true that of `(p since[d,] p)` since it last held, where it is false that of the same of `not p`, negated |
//! | explanation | the time during which `p` lasted |
//! | state | that of two `since[d,]` and of two `since` without bounds |

use super::{OperandKind, Operator, Refused, latch};
use crate::graph::Graph;
use crate::spec::{Bounds, ExprId};

pub(super) const STABLE: Operator = Operator {
    name: "stable",
    call: "`stable(p) for d`",
    doc: "the last truth of `p` that lasted for `d`",
    arity: 1,
    operands: OperandKind::Truth,
    lasts: true,
    inside: "`stable`",
    example: "stable(p) for 2 s",
    build,
};

fn build(graph: &mut Graph, operands: &[ExprId], lasting: u64) -> Result<ExprId, Refused> {
    let [p] = *operands else { return Ok(graph.unknown()) };
    let bounds = Bounds { lower: lasting, upper: None };
    let not = graph.not(p);
    let (on, off) = (graph.since(bounds, p, p), graph.since(bounds, not, not));
    Ok(latch(graph, on, off))
}
