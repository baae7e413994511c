//! `hysteresis(x, low, high)`: a limit with two thresholds.
//!
//! | | |
//! |---|---|
//! | meaning | true from when `x > high` until `x < low`, false from when `x < low` until `x > high` |
//! | unknown | until `x` has certainly been outside for the first time; where `x`, `low` or `high` is unknown, until it is outside again |
//! | types | three numbers, times or durations of one type; the result is a truth |
//! | thresholds | may vary; where `x` exceeds `high` and is also below `low`, it counts as below. Constants with `low > high` are refused |
//! | lowering | two `since` without bounds: not below since above, and not above since below |
//! | robustness | where it is true that of `not x < low since x > high`, where it is false that of the negated `not x > high since x < low` |
//! | explanation | the message at which `x` left the thresholds last |
//! | state | that of two `since` without bounds: four bits at most |

use rondel_event::{Comparison, Value};

use super::{OperandKind, Operator, Refused, latch};
use crate::diagnostic::Code;
use crate::graph::Graph;
use crate::spec::ExprId;

pub(super) const HYSTERESIS: Operator = Operator {
    name: "hysteresis",
    call: "`hysteresis(x, a, b)`",
    doc: "true from `x > b` until `x < a`",
    arity: 3,
    operands: OperandKind::Ordered,
    lasts: false,
    inside: "`hysteresis`",
    example: "hysteresis(x, 20, 25)",
    build,
};

fn build(graph: &mut Graph, operands: &[ExprId], _: u64) -> Result<ExprId, Refused> {
    let [x, low, high] = *operands else { return Ok(graph.unknown()) };
    let inverted = graph.compare(Comparison::Greater, low, high);
    let order = graph.constant(inverted).cloned();
    if order == Some(Value::Bool(true)) {
        return Err(Refused {
            code: Code::WrongArguments,
            message: "the lower threshold of `hysteresis` is above the upper one".to_owned(),
            help: "write the lower threshold first: `hysteresis(x, low, high)`",
        });
    }
    let (above, below) =
        (graph.compare(Comparison::Greater, x, high), graph.compare(Comparison::Less, x, low));
    let on = match order {
        // Both cannot hold at once.
        Some(_) => above,
        None => {
            let not_below = graph.not(below);
            graph.and(above, not_below)
        }
    };
    Ok(latch(graph, on, below))
}
