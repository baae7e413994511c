//! The nodes of a specification: expressions over fields, time and machines.

use rondel_event::{Comparison, Condition, Countable, Path, Quantifier, TopicId, Value, ValueType};

use super::{Aggregate, BinaryOp, ChainId, ChainMeasure, MachineId, UnaryOp, VariableId, binary_type};
use crate::functions::FunctionId;

/// The index of a node in a [`Spec`](super::Spec).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExprId(pub u32);

impl ExprId {
    /// Returns the index as a `usize`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The bounds `lower..=upper` of a temporal operator, as distances from the present in steps or nanoseconds, depending
/// on the [`TimeModel`](super::TimeModel). Without `upper`, a past operator reaches back to the beginning; future operators always have
/// an upper bound. If `lower > upper`, the interval is empty: `once` is false and `historically` is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// The smallest distance.
    pub lower: u64,
    /// The largest distance; none for an unbounded past.
    pub upper: Option<u64>,
}

impl Bounds {
    /// The whole past with the present.
    pub const ALL: Bounds = Bounds { lower: 0, upper: None };
}

/// An expression. Its value is one of Kleene's three truth values (true, false, unknown), or a value or unknown.
///
/// Types are resolved: both operands of arithmetic are `Int` or both are `Float` (with an explicit
/// [`Expr::ToFloat`]), and both operands of a comparison have the same type. A position (step) is one event on any
/// topic.
#[derive(Clone, Debug, PartialEq, Hash)]
pub enum Expr {
    /// A constant.
    Literal(Value),
    /// The current value of a field: the value in the last message of the topic that carried it. Unknown before the
    /// first such message, and while the last one had null or another type there.
    Field {
        /// The topic.
        topic: TopicId,
        /// The path in the message.
        path: Path,
        /// The type.
        value_type: ValueType,
    },
    /// True at the positions whose own message carries the field. Never unknown.
    Carried {
        /// The topic.
        topic: TopicId,
        /// The path in the message.
        path: Path,
    },
    /// A quantifier, count or measure over the elements of an array that meet the conditions; the value holds like that
    /// of a field.
    Elements {
        /// The topic.
        topic: TopicId,
        /// The path of the array in the message.
        path: Path,
        /// The quantifier, count or measure.
        quantifier: Quantifier,
        /// The conditions.
        conditions: Vec<Condition>,
    },
    /// The length of an array or a string, as an `Int`: the number of elements or of characters; the value holds like
    /// that of a field.
    Length {
        /// The topic.
        topic: TopicId,
        /// The path in the message.
        path: Path,
        /// The kind that the field is declared with, if it is.
        of: Option<Countable>,
    },
    /// A number that may be written as a text, as a `Float`; the value holds like that of a field. Unknown if the value is
    /// neither a number nor a text that is one.
    Number {
        /// The topic.
        topic: TopicId,
        /// The path in the message.
        path: Path,
    },
    /// True while a number is NaN; the value holds like that of a field, which is unknown where it is NaN. Unknown before
    /// the first message with a number, and while the last one had null or another type there.
    IsNan {
        /// The topic.
        topic: TopicId,
        /// The path in the message.
        path: Path,
    },
    /// True at the positions whose message is on this topic. Never unknown.
    On(TopicId),
    /// An `Int` converted to `Float`.
    ToFloat(ExprId),
    /// Arithmetic on one number. Unknown on `Int` overflow.
    Unary(UnaryOp, ExprId),
    /// Arithmetic on two numbers of one type. Unknown on `Int` overflow and on division of an `Int` by zero; `Float`
    /// follows IEEE 754.
    Binary(BinaryOp, ExprId, ExprId),
    /// A comparison of two operands of one type. Only `Equal` and `NotEqual` compare `Bool` and `String`. Unknown if an
    /// operand is unknown.
    Compare(Comparison, ExprId, ExprId),
    /// True if the first string starts with the second.
    StartsWith(ExprId, ExprId),
    /// A function of the table [`FUNCTIONS`](crate::FUNCTIONS), with its one or two arguments.
    Call(FunctionId, ExprId, Option<ExprId>),
    /// `if condition then a else b`, with branches of one type. Unknown if the condition is unknown.
    If(ExprId, ExprId, ExprId),
    /// The value of the operand just before the last message on any topic that it mentions (at the position before that
    /// message); unknown before the second such message. An operand that mentions no topic keeps its value.
    Prev(ExprId),
    /// Negation.
    Not(ExprId),
    /// Conjunction.
    And(ExprId, ExprId),
    /// Disjunction.
    Or(ExprId, ExprId),
    /// True if the operand is true; false if it is false *or unknown*. Converts to the two-valued logic of Reelay, where
    /// a pair is false if its field was never received.
    Definitely(ExprId),
    /// The operand at the previous position; false at the first position.
    Previously(ExprId),
    /// True if the operand held at some position within the bounds.
    Once(Bounds, ExprId),
    /// True if the operand held at every position within the bounds, also if there is no such position.
    Historically(Bounds, ExprId),
    /// True if the second operand held at some position within the bounds, and the first at every position after it, up
    /// to and including the present.
    Since(Bounds, ExprId, ExprId),
    /// The operand at the next position, in steps and points only. After the last position there is none.
    Next(ExprId),
    /// True if the operand holds at some position within the bounds ahead.
    Eventually(Bounds, ExprId),
    /// True if the operand holds at every position within the bounds ahead.
    Always(Bounds, ExprId),
    /// True if the second operand holds at some position within the bounds ahead, and the first at every position from
    /// the present until then, exclusive.
    Until(Bounds, ExprId, ExprId),
    /// An aggregate of the samples of a window: the events on one of `topics` less than `over` steps or nanoseconds ago
    /// (the far end is exclusive).
    Window {
        /// The aggregate function.
        aggregate: Aggregate,
        /// The length of the window, at least 1.
        over: u64,
        /// The operand: a boolean for `Count`, which counts samples where it is certainly true, otherwise a number. None for
        /// `Rate` and for `Count` of the samples themselves.
        operand: Option<ExprId>,
        /// The topics of the samples, in order: those that the operand mentions, if there is an operand.
        topics: Vec<TopicId>,
    },
    /// The time since the last message of the topic, as a `Duration`; unknown before the first. Exact at every time point
    /// in a comparison with a constant; otherwise the value at the last event.
    Age(TopicId),
    /// The arrival time minus the source time of the last message of the topic, as a `Duration`; unknown before the first
    /// message, and if the arrival time is unknown.
    Latency(TopicId),
    /// The difference between the last two periods of the topic, as a `Duration`; unknown before the third message.
    Jitter(TopicId),
    /// A measurement of a chain, as a `Duration`. In a comparison with a constant, age and reaction are exact at every time
    /// point; otherwise they have the value at the last event. Not allowed in a property with a slice.
    Chain(ChainId, ChainMeasure),
    /// The value of the `n`-th parameter of the slice.
    Key(u32, ValueType),
    /// The value of a quantifier variable.
    Variable(VariableId, ValueType),
    /// True at the positions whose message is on the topic and has the value of the variable at every path.
    Bind {
        /// The topic.
        topic: TopicId,
        /// The paths in the message, with the variables and their types.
        fields: Vec<(Path, VariableId, ValueType)>,
    },
    /// True if the operand holds for some value of the variable.
    Exists(VariableId, ExprId),
    /// True if the operand holds for every value of the variable.
    ForAll(VariableId, ExprId),
    /// True if the machine is in one of these states after the transition at this time point.
    InState(MachineId, Vec<u32>),
    /// True if two transitions of the machine were possible at once, now or earlier.
    Ambiguous(MachineId),
    /// The value of a variable of the machine before the transition at this time point.
    MachineVariable(MachineId, u32, ValueType),
    // New variants follow here: hashes of properties in snapshots contain the positions of the others.
    /// The last truth that the operand has had without a break for this long, in steps or nanoseconds; false before the
    /// first. It has lasted if it held at every position from one at least so far back up to the present.
    Debounce(u64, ExprId),
}

/// The operands of an expression from left to right, as references of its own kind.
macro_rules! operands {
    ($expression:expr) => {
        match $expression {
            Expr::Literal(_)
            | Expr::Field { .. }
            | Expr::Carried { .. }
            | Expr::Elements { .. }
            | Expr::Length { .. }
            | Expr::Number { .. }
            | Expr::IsNan { .. }
            | Expr::On(_)
            | Expr::Window { operand: None, .. }
            | Expr::Age(_)
            | Expr::Latency(_)
            | Expr::Jitter(_)
            | Expr::Chain(..)
            | Expr::Key(..)
            | Expr::Variable(..)
            | Expr::Bind { .. }
            | Expr::InState(..)
            | Expr::Ambiguous(_)
            | Expr::MachineVariable(..) => [None, None, None],
            Expr::ToFloat(a)
            | Expr::Unary(_, a)
            | Expr::Prev(a)
            | Expr::Not(a)
            | Expr::Definitely(a)
            | Expr::Previously(a)
            | Expr::Once(_, a)
            | Expr::Historically(_, a)
            | Expr::Debounce(_, a)
            | Expr::Next(a)
            | Expr::Eventually(_, a)
            | Expr::Always(_, a)
            | Expr::Exists(_, a)
            | Expr::ForAll(_, a)
            | Expr::Window { operand: Some(a), .. } => [Some(a), None, None],
            Expr::Binary(_, a, b)
            | Expr::Compare(_, a, b)
            | Expr::StartsWith(a, b)
            | Expr::And(a, b)
            | Expr::Or(a, b)
            | Expr::Since(_, a, b)
            | Expr::Until(_, a, b) => [Some(a), Some(b), None],
            Expr::Call(_, a, b) => [Some(a), b.into(), None],
            Expr::If(a, b, c) => [Some(a), Some(b), Some(c)],
        }
    };
}

impl Expr {
    /// Returns the operands from left to right.
    pub fn operands(&self) -> impl Iterator<Item = ExprId> + use<> {
        operands!(self).map(|operand| operand.copied()).into_iter().flatten()
    }

    /// Returns the operands, to be replaced.
    pub fn operands_mut(&mut self) -> impl Iterator<Item = &mut ExprId> {
        operands!(self).into_iter().flatten()
    }
}

impl Expr {
    /// Returns the operands that determine the type.
    pub(super) fn typed_by(&self) -> impl Iterator<Item = ExprId> + use<> {
        let operands = match self {
            Expr::Binary(_, a, b) => [Some(*a), Some(*b)],
            Expr::Unary(_, a)
            | Expr::Prev(a)
            | Expr::If(_, a, _)
            | Expr::Window {
                aggregate:
                    Aggregate::Sum | Aggregate::Min | Aggregate::Max | Aggregate::First | Aggregate::Last,
                operand: Some(a),
                ..
            } => [Some(*a), None],
            _ => [None, None],
        };
        operands.into_iter().flatten()
    }

    /// Returns the type, given the types of the operands.
    pub(crate) fn type_with(&self, of: impl Fn(ExprId) -> ValueType) -> ValueType {
        match self {
            Expr::Literal(value) => value.value_type(),
            Expr::Field { value_type, .. }
            | Expr::Key(_, value_type)
            | Expr::Variable(_, value_type)
            | Expr::MachineVariable(_, _, value_type) => *value_type,
            Expr::ToFloat(_) | Expr::Number { .. } | Expr::Window { aggregate: Aggregate::Rate, .. } => {
                ValueType::Float
            }
            Expr::Window { aggregate, .. } if aggregate.is_of_floats() => ValueType::Float,
            Expr::Elements { quantifier, .. } => quantifier.value_type(),
            Expr::Length { .. }
            | Expr::Window { aggregate: Aggregate::Count | Aggregate::Distinct, .. }
            | Expr::Window { operand: None, .. } => ValueType::Int,
            Expr::Age(_) | Expr::Latency(_) | Expr::Jitter(_) | Expr::Chain(..) => ValueType::Duration,
            Expr::Binary(op, a, b) => binary_type(*op, of(*a), of(*b)).unwrap_or(of(*a)),
            Expr::Call(function, ..) => function.result(),
            Expr::Unary(_, a) | Expr::Prev(a) | Expr::If(_, a, _) | Expr::Window { operand: Some(a), .. } => {
                of(*a)
            }
            _ => ValueType::Bool,
        }
    }
}
