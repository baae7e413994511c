//! Operators that combine others. The file of an operator states everything about it: its name, its operands, what it
//! means, and the nodes that it becomes. Parser, formatter, type inference, advice, engine and explanation follow from
//! that: an operator here needs no code elsewhere.

mod debounce;
mod full;
mod hysteresis;
mod known;
mod stable;

pub(crate) use full::full_window;

use crate::diagnostic::Code;
use crate::graph::Graph;
use crate::spec::{Bounds, ExprId};

/// All operators. The order is that of lists in messages.
pub(crate) const OPERATORS: [&Operator; 6] = [
    &hysteresis::HYSTERESIS,
    &stable::STABLE,
    &debounce::DEBOUNCE,
    &known::KNOWN,
    &known::IS_NAN,
    &known::FINITE,
];

/// An operator that combines others, with a truth as its result.
#[derive(Debug)]
pub(crate) struct Operator {
    pub(crate) name: &'static str,
    /// Its use, as the operator table of the reference shows it.
    pub(crate) call: &'static str,
    /// Its description there.
    pub(crate) doc: &'static str,
    /// The number of operands, all of one type.
    pub(crate) arity: usize,
    pub(crate) operands: OperandKind,
    /// Whether a duration or a number of steps above zero follows the operands: `for 2 s`.
    pub(crate) lasts: bool,
    /// Its name in advice: an operator with memory cannot contain future operators.
    pub(crate) inside: &'static str,
    /// A use of the operator, for advice.
    pub(crate) example: &'static str,
    /// Adds the nodes for these operands and, if it `lasts`, this number of steps or nanoseconds.
    pub(crate) build: fn(&mut Graph, &[ExprId], u64) -> Result<ExprId, Refused>,
}

/// The type of all operands of an [`Operator`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperandKind {
    /// Truths.
    Truth,
    /// Numbers, times or durations.
    Ordered,
    /// Numbers.
    Number,
    /// Values of any type.
    Any,
}

/// Why an operator cannot have these operands.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) help: &'static str,
}

impl Operator {
    pub(crate) fn named(name: &str) -> Option<&'static Operator> {
        OPERATORS.into_iter().find(|operator| operator.name == name)
    }
}

/// Adds a truth that is true from when `on` holds and false from when `off` holds, until the other holds. It is
/// unknown before one of the two has certainly held, and again where the later of the two is unknown. They must never
/// hold at once.
fn latch(graph: &mut Graph, on: ExprId, off: ExprId) -> ExprId {
    let (not_on, not_off) = (graph.not(on), graph.not(off));
    let is_on = graph.since(Bounds::ALL, not_off, on);
    let is_off = graph.since(Bounds::ALL, not_on, off);
    let not_off = graph.not(is_off);
    // Where neither is certain: not true, as `is_on` is not, and not false, as `is_off` is not.
    let unknown = graph.unknown();
    let open = graph.and(not_off, unknown);
    let known = graph.or(is_on, open);
    // The truth is that of `known`. The choice gives the robustness of the `since` that decides.
    graph.choice(known, is_on, not_off)
}
