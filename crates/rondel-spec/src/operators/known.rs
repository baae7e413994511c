//! `known(x)`, `is_nan(x)` and `finite(x)`: whether an expression has a value, and whether this value is NaN or a finite
//! number.
//!
//! | | |
//! |---|---|
//! | `known(x)` | true where `x` has a value: received, of the right type, not null; NaN is a value |
//! | `is_nan(x)` | true where the value of `x` is known and NaN |
//! | `finite(x)` | true where the value of `x` is known and neither NaN nor infinite |
//! | unknown | never: false where `x` is unknown |
//! | types | `known`: any; `is_nan`, `finite`: a number; the result is a truth |
//! | lowering | `known`: whether `x` certainly equals or certainly differs from itself; `is_nan`: whether it certainly differs from itself; `finite`: whether it is certainly between the infinities. A field that is NaN has no value in other expressions, so for fields the flag [`Expr::IsNan`] is read besides |
//! | robustness | infinite |
//! | state | none besides that of `x` |

use rondel_event::{Comparison, ValueType};

use super::{OperandKind, Operator, Refused};
use crate::graph::Graph;
use crate::spec::{Expr, ExprId};

pub(super) const KNOWN: Operator = Operator {
    name: "known",
    call: "`known(x)`",
    doc: "`x` has a value now",
    arity: 1,
    operands: OperandKind::Any,
    lasts: false,
    inside: "`known`",
    example: "known(x)",
    build: known,
};

pub(super) const IS_NAN: Operator = Operator {
    name: "is_nan",
    call: "`is_nan(x)`",
    doc: "the value of `x` is NaN",
    arity: 1,
    operands: OperandKind::Number,
    lasts: false,
    inside: "`is_nan`",
    example: "is_nan(x)",
    build: is_nan,
};

pub(super) const FINITE: Operator = Operator {
    name: "finite",
    call: "`finite(x)`",
    doc: "the value of `x` is a number, and neither infinite nor NaN",
    arity: 1,
    operands: OperandKind::Number,
    lasts: false,
    inside: "`finite`",
    example: "finite(x)",
    build: finite,
};

fn known(graph: &mut Graph, operands: &[ExprId], _: u64) -> Result<ExprId, Refused> {
    let [x] = *operands else { return Ok(graph.unknown()) };
    let known = match graph.value_type(x) {
        ValueType::Bool => {
            let not = graph.not(x);
            graph.or(x, not)
        }
        ValueType::Float => {
            let equal = graph.compare(Comparison::Equal, x, x);
            let different = differs(graph, x);
            graph.or(equal, different)
        }
        _ => graph.compare(Comparison::Equal, x, x),
    };
    Ok(decided(graph, known))
}

fn is_nan(graph: &mut Graph, operands: &[ExprId], _: u64) -> Result<ExprId, Refused> {
    let [x] = *operands else { return Ok(graph.unknown()) };
    let is_nan = differs(graph, x);
    Ok(decided(graph, is_nan))
}

fn finite(graph: &mut Graph, operands: &[ExprId], _: u64) -> Result<ExprId, Refused> {
    let [x] = *operands else { return Ok(graph.unknown()) };
    let is_finite = match graph.value_type(x) {
        ValueType::Float => {
            let (least, greatest) = (graph.float(f64::NEG_INFINITY), graph.float(f64::INFINITY));
            let above = graph.compare(Comparison::Greater, x, least);
            let below = graph.compare(Comparison::Less, x, greatest);
            graph.and(above, below)
        }
        _ => graph.compare(Comparison::Equal, x, x),
    };
    Ok(decided(graph, is_finite))
}

/// Adds a truth that is certain where a number is NaN.
fn differs(graph: &mut Graph, x: ExprId) -> ExprId {
    let different = graph.compare(Comparison::NotEqual, x, x);
    match graph.spec().nodes[x.index()].clone() {
        Expr::Field { topic, path, value_type: ValueType::Float } | Expr::Number { topic, path } => {
            let flag = graph.add(Expr::IsNan { topic, path });
            graph.or(flag, different)
        }
        _ => different,
    }
}

/// Adds a truth that is false where `p` is unknown. The choice between constants gives it an infinite robustness.
fn decided(graph: &mut Graph, p: ExprId) -> ExprId {
    let certain = graph.definitely(p);
    let (yes, no) = (graph.bool(true), graph.bool(false));
    graph.choice(certain, yes, no)
}
