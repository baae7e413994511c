//! Classes of expressions: the ways in which a value depends on messages and operands.
//!
//! An analysis of expressions names the operators that it treats specially, and takes all others by their class, bounds,
//! topics or operands. An operator of an existing class therefore needs no place in the analyses: its row in
//! [`Expr::class`] describes it.

use rondel_event::{Path, Read, TopicId, ValueType};

use super::{BinaryOp, Bounds, ChainMeasure, Expr, ExprId, MachineId, UnaryOp};

/// The class of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The same at every time point: a constant, a parameter, a quantifier variable.
    Constant,
    /// Read from a message, with the value held until the next message of the topic.
    Held,
    /// True at messages of a topic and nowhere else.
    Event,
    /// A measurement of messages: an age, a window, a chain.
    Measure,
    /// The state of a machine.
    Machine,
    /// Computed from the values of the operands at the same time point.
    Function,
    /// A truth computed from truths at the same time point.
    Connective,
    /// The operand for the values of a variable.
    Quantifier,
    /// Depends on the operands at the same and earlier time points.
    Past,
    /// Depends on the operands at the same and later time points.
    Future,
}

/// `once`, `historically` and `since`, or `eventually`, `always` and `until`, in one form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Temporal {
    /// The bounds.
    pub bounds: Bounds,
    /// True if the operand must hold at every time point within the bounds, false if at some.
    pub all: bool,
    /// The operand that must hold between that time point and the present: the first of `since` and `until`.
    pub guard: Option<ExprId>,
    /// The operand within the bounds.
    pub operand: ExprId,
}

impl Temporal {
    /// Returns whether time points at which the operands have these truths, guard first, change nothing.
    pub(crate) fn ignores(&self, truths: &[Option<bool>]) -> bool {
        let guard = self.guard.map(|_| Some(true));
        truths.iter().copied().eq(guard.into_iter().chain([Some(self.all)]))
    }
}

/// The topics that a node itself reads, as references of its own kind.
macro_rules! topics {
    ($expression:expr, $one:path) => {
        match $expression {
            Expr::Field { topic, .. }
            | Expr::Carried { topic, .. }
            | Expr::Elements { topic, .. }
            | Expr::Length { topic, .. }
            | Expr::Number { topic, .. }
            | Expr::IsNan { topic, .. }
            | Expr::On(topic)
            | Expr::Age(topic)
            | Expr::Latency(topic)
            | Expr::Jitter(topic)
            | Expr::Bind { topic, .. } => $one(topic),
            Expr::Window { topics, .. } => topics,
            _ => Default::default(),
        }
    };
}

impl Expr {
    /// Returns the class.
    #[must_use]
    pub fn class(&self) -> Class {
        self.described().0
    }

    /// Returns the name of the operator in the language; of an expression without operator, a name for messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.described().1
    }

    /// Returns the class and the name.
    fn described(&self) -> (Class, &'static str) {
        use Class::{
            Connective, Constant, Event, Function, Future, Held, Machine, Measure, Past, Quantifier,
        };
        match self {
            Expr::Literal(_) => (Constant, "constant"),
            Expr::Key(..) => (Constant, "key"),
            Expr::Variable(..) => (Constant, "variable"),
            Expr::Field { .. } => (Held, "field"),
            Expr::Elements { quantifier, .. } => (Held, quantifier.as_str()),
            Expr::Length { .. } => (Held, "len"),
            Expr::Number { .. } => (Held, "number"),
            Expr::IsNan { .. } => (Held, "is_nan"),
            Expr::Carried { .. } => (Event, "carried"),
            Expr::On(_) => (Event, "on"),
            Expr::Bind { .. } => (Event, "bind"),
            Expr::Window { aggregate, .. } => (Measure, aggregate.name()),
            Expr::Age(_) => (Measure, "age"),
            Expr::Latency(_) => (Measure, "latency"),
            Expr::Jitter(_) => (Measure, "jitter"),
            Expr::Chain(_, ChainMeasure::Latency) => (Measure, "latency"),
            Expr::Chain(_, ChainMeasure::Reaction) => (Measure, "reaction"),
            Expr::Chain(_, ChainMeasure::Age) => (Measure, "age"),
            Expr::InState(..) => (Machine, "in"),
            Expr::Ambiguous(_) => (Machine, "ambiguous"),
            Expr::MachineVariable(..) => (Machine, "variable"),
            Expr::ToFloat(_) => (Function, "float"),
            Expr::Unary(UnaryOp::Negate, _) => (Function, "-"),
            Expr::Unary(UnaryOp::Abs, _) => (Function, "abs"),
            Expr::Binary(BinaryOp::Add, ..) => (Function, "+"),
            Expr::Binary(BinaryOp::Subtract, ..) => (Function, "-"),
            Expr::Binary(BinaryOp::Multiply, ..) => (Function, "*"),
            Expr::Binary(BinaryOp::Divide, ..) => (Function, "/"),
            Expr::Binary(BinaryOp::Remainder, ..) => (Function, "%"),
            Expr::Binary(BinaryOp::Min, ..) => (Function, "min"),
            Expr::Binary(BinaryOp::Max, ..) => (Function, "max"),
            Expr::Compare(comparison, ..) => (Function, comparison.as_str()),
            Expr::StartsWith(..) => (Function, "starts_with"),
            Expr::Call(function, ..) => (Function, function.name()),
            Expr::If(..) => (Function, "if"),
            Expr::Not(_) => (Connective, "not"),
            Expr::And(..) => (Connective, "and"),
            Expr::Or(..) => (Connective, "or"),
            Expr::Definitely(_) => (Connective, "definitely"),
            Expr::Exists(..) => (Quantifier, "exists"),
            Expr::ForAll(..) => (Quantifier, "forall"),
            Expr::Prev(_) => (Past, "prev"),
            Expr::Previously(_) => (Past, "previously"),
            Expr::Once(..) => (Past, "once"),
            Expr::Historically(..) => (Past, "historically"),
            Expr::Since(..) => (Past, "since"),
            Expr::Debounce(..) => (Past, "debounce"),
            Expr::Next(_) => (Future, "next"),
            Expr::Eventually(..) => (Future, "eventually"),
            Expr::Always(..) => (Future, "always"),
            Expr::Until(..) => (Future, "until"),
        }
    }

    /// Returns the common form of an operator that looks for a time point within bounds.
    #[must_use]
    pub fn temporal(&self) -> Option<Temporal> {
        let (bounds, all, guard, operand) = match *self {
            Expr::Once(bounds, x) | Expr::Eventually(bounds, x) => (bounds, false, None, x),
            Expr::Historically(bounds, x) | Expr::Always(bounds, x) => (bounds, true, None, x),
            Expr::Since(bounds, p, x) | Expr::Until(bounds, p, x) => (bounds, false, Some(p), x),
            _ => return None,
        };
        Some(Temporal { bounds, all, guard, operand })
    }

    /// Returns the common form of `once`, `historically` and `since`.
    #[must_use]
    pub fn past(&self) -> Option<Temporal> {
        self.temporal().filter(|_| self.class() == Class::Past)
    }

    /// Returns the common form of `eventually`, `always` and `until`.
    #[must_use]
    pub fn future(&self) -> Option<Temporal> {
        self.temporal().filter(|_| self.class() == Class::Future)
    }

    /// Returns the bounds of an operator on earlier or later time points, if it has some.
    #[must_use]
    pub fn bounds(&self) -> Option<Bounds> {
        match *self {
            Expr::Debounce(lasting, _) => Some(Bounds { lower: lasting, upper: None }),
            _ => self.temporal().map(|temporal| temporal.bounds),
        }
    }

    /// Returns the field that the node itself reads, and how it reads it.
    #[must_use]
    pub fn field(&self) -> Option<(TopicId, &Path, Read)> {
        Some(match self {
            Expr::Field { topic, path, value_type } => (*topic, path, Read::Value(*value_type)),
            Expr::Carried { topic, path } => (*topic, path, Read::Presence),
            Expr::Elements { topic, path, quantifier, conditions } => {
                (*topic, path, Read::Elements(*quantifier, conditions.clone()))
            }
            Expr::Length { topic, path, of } => (*topic, path, Read::length(*of)),
            Expr::Number { topic, path } => (*topic, path, Read::Number(ValueType::Float)),
            Expr::IsNan { topic, path } => (*topic, path, Read::IsNan),
            _ => return None,
        })
    }

    /// Returns the topics that the node itself reads.
    pub fn topics(&self) -> &[TopicId] {
        topics!(self, std::slice::from_ref)
    }

    /// Returns the topics that the node itself reads, to be replaced.
    pub fn topics_mut(&mut self) -> &mut [TopicId] {
        topics!(self, std::slice::from_mut)
    }

    /// Returns the topic that the node itself reads, unless it measures a window.
    pub fn topic(&self) -> Option<TopicId> {
        self.topics().first().copied().filter(|_| !matches!(self, Expr::Window { .. }))
    }

    /// Returns the machine that the node reads.
    #[must_use]
    pub fn machine(&self) -> Option<MachineId> {
        match self {
            Expr::InState(machine, _) | Expr::Ambiguous(machine) | Expr::MachineVariable(machine, ..) => {
                Some(*machine)
            }
            _ => None,
        }
    }
}
