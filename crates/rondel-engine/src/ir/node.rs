//! Nodes of the graph.

use rondel_event::{TopicId, ValueType};
use rondel_spec::{BinaryOp, FunctionId, UnaryOp};

use crate::ir::wire::{Halves, NodeId, Wire};

/// A measurement of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ChainColumn {
    /// Time from the input to the latest output.
    Latency,
    /// Time of the message from which the latest output stems.
    Origin,
    /// Time of the oldest message without an output.
    Oldest,
}

/// Kinds of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// Integers and times.
    Int,
    Float,
    Text,
}

/// Comparisons; the others are complements or have swapped operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ComparisonKind {
    IntEqual,
    IntLess,
    FloatEqual,
    FloatLess,
    /// Not the complement of "greater", because of NaN.
    FloatLessOrEqual,
    TextEqual,
    TextStartsWith,
}

/// A constant; floats are compared by their bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Constant {
    Int(i64),
    Float(u64),
    Text(Box<str>),
}

/// Aggregates over a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Measure {
    Count,
    Sum,
    Least,
    Greatest,
    Distinct,
    /// Number of distinct floats; the column is one of integers.
    DistinctFloats,
    /// The percentile, in millionths.
    Percentile(u32),
    Median,
    Deviation,
    First,
    Last,
    /// Per second.
    Derivative,
    Integral,
}

/// Index of a field in the table of fields.
pub(crate) type FieldId = u32;

/// A node of the graph. Every node computes a word. Those with a [`kind`](Node::kind) also compute a column
/// of values, and their word marks the rows with a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    False,
    /// Rows with a message of the topic.
    On(TopicId),
    /// Rows whose message contains the field.
    Carried(FieldId),
    /// Rows in which the held value of a boolean field is known and equals this one.
    HeldBool(FieldId, bool),
    /// Sign of a linear form: rows in which it is certainly below zero, zero or above (`sign` 0, 1, 2), or
    /// unknown (3); at the rows (half 0) or after them (half 1).
    Line {
        line: u32,
        sign: u8,
        half: u8,
    },
    And(Wire, Wire),
    /// Unbounded `since`.
    Since(Wire, Wire),
    /// The operand 1 to 63 positions before; false where there is none.
    Shift(Wire, u32),
    /// True if the operand holds at this position or one of the given number of positions before.
    Recently(Wire, u64),
    /// The operand `by` positions before, 64 or more. A row in `forget` clears the queue: its users mask the
    /// output until `by` positions after it.
    Delay {
        of: Wire,
        forget: Wire,
        by: u64,
    },
    /// Rows with the time of the row before.
    SameTime,
    /// True while `q` has held at most `span` ago.
    TimedRecently {
        q: Halves,
        span: u64,
        /// Excludes exactly `span` ago.
        open: bool,
    },
    /// `p since[lower, upper] q`, with a lower bound above 0.
    TimedSince {
        p: Halves,
        q: Halves,
        lower: u64,
        upper: Option<u64>,
    },
    /// True while the time in a column is known and at most `span` ago.
    Lasting {
        from: NodeId,
        known: Wire,
        span: u64,
        /// Excludes exactly `span` ago.
        open: bool,
    },
    /// A measurement of a chain, by number. The word marks the rows with a value.
    Chain(u32, ChainColumn),
    /// The truth of a timed operator on the intervals after its rows.
    After(NodeId),
    Compare(ComparisonKind, NodeId, NodeId),
    Constant(Constant),
    /// The time of the row, in nanoseconds.
    Time,
    /// Arrival time minus the time of the row. The word marks the rows in which it is known.
    Latency,
    /// The held value of a field. The word marks the rows in which it is known.
    Held(Kind, FieldId),
    /// A parameter of the slice. The word marks the rows in which it is known: all rows of an instance.
    Key(Kind, u32),
    /// True if a boolean parameter of the slice has this value.
    KeyBool(u32, bool),
    ToFloat(NodeId),
    Unary(Kind, UnaryOp, NodeId),
    Binary(Kind, BinaryOp, NodeId, NodeId),
    /// A function of one or two columns. The word marks the rows with a result, or is the result of a boolean
    /// function.
    Call(FunctionId, NodeId, Option<NodeId>),
    Select(Kind, Wire, NodeId, NodeId),
    /// The number of a machine's state. The word marks the rows in which two transitions were enabled.
    Machine {
        machine: u32,
        operands: Box<[NodeId]>,
    },
    /// The state on the interval after each row.
    MachineAfter(NodeId),
    /// A variable of a machine, at the rows (half 0) or after them (half 1). The word marks the rows with a
    /// value.
    MachineValue {
        machine: NodeId,
        variable: u32,
        half: u8,
        kind: Kind,
    },
    /// True if a boolean variable of a machine has this value.
    MachineTruth {
        machine: NodeId,
        variable: u32,
        half: u8,
        value: bool,
    },
    /// The truth of a quantified formula, by number of the relation.
    Quantified {
        relation: u32,
        operands: Box<[NodeId]>,
        fields: Box<[FieldId]>,
    },
    /// The lower truth of a quantified formula that is evaluated by value: some value certainly satisfies it.
    ByValue {
        number: u32,
        operands: Box<[NodeId]>,
        fields: Box<[FieldId]>,
    },
    /// Its upper truth: some value possibly satisfies it.
    ByValuePossibly(NodeId),
    /// An input of an inner instance: a truth without variables.
    Outer(u32),
    /// Value at the position before each row of the clock, held until the next one.
    Latch(Kind, NodeId, Wire),
    /// Integer at each row of the clock, held until the next one.
    Sampled(NodeId, Wire),
    /// Aggregate of the samples less than `over` old, in rows, or in nanoseconds if `timed`. The word marks
    /// the rows in which it is known.
    Window {
        measure: Measure,
        kind: Kind,
        /// Node 0 for a count.
        x: NodeId,
        samples: Wire,
        known: Wire,
        over: u64,
        timed: bool,
    },
    /// Second operand minus the first, as a float: 0 if they are equal, minus infinity if one is NaN.
    Margin(Kind, NodeId, NodeId),
    /// Robustness of `once q`: the greatest float within the bounds.
    RobustOnce {
        x: NodeId,
        bounds: RobustReach,
    },
    /// Robustness of `p since q`.
    RobustSince {
        p: NodeId,
        q: NodeId,
        bounds: RobustReach,
    },
    /// Robustness of `p since q` in dense time. The operands have two halves.
    RobustDense {
        p: [NodeId; 2],
        q: [NodeId; 2],
        bounds: RobustReach,
    },
    /// The robustness of such a node on the intervals after its rows.
    AfterFloat(NodeId),
}

/// Bounds of a robust operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RobustReach {
    pub(crate) lower: u64,
    pub(crate) upper: Option<u64>,
    /// Bounds are in nanoseconds, not in rows.
    pub(crate) timed: bool,
    /// Bits of the result where the limit of values is exceeded.
    pub(crate) unknown: u64,
}

impl Node {
    /// The kind of its column, if it has one.
    pub(crate) fn kind(&self) -> Option<Kind> {
        match self {
            Node::Constant(Constant::Int(_))
            | Node::Time
            | Node::Latency
            | Node::Sampled(..)
            | Node::Chain(..)
            | Node::Machine { .. }
            | Node::MachineAfter(_) => Some(Kind::Int),
            Node::MachineValue { kind, .. } => Some(*kind),
            Node::Constant(Constant::Float(_))
            | Node::ToFloat(_)
            | Node::Margin(..)
            | Node::RobustOnce { .. }
            | Node::RobustSince { .. }
            | Node::RobustDense { .. }
            | Node::AfterFloat(_) => Some(Kind::Float),
            Node::Constant(Constant::Text(_)) => Some(Kind::Text),
            Node::Call(function, ..) => match function.result() {
                ValueType::Bool => None,
                ValueType::Float => Some(Kind::Float),
                ValueType::String => Some(Kind::Text),
                ValueType::Int | ValueType::Time | ValueType::Duration => Some(Kind::Int),
            },
            Node::Held(kind, ..)
            | Node::Key(kind, _)
            | Node::Unary(kind, ..)
            | Node::Binary(kind, ..)
            | Node::Select(kind, ..)
            | Node::Latch(kind, ..)
            | Node::Window { kind, .. } => Some(*kind),
            _ => None,
        }
    }

    /// Calls `f` with every operand.
    pub(crate) fn for_each_operand(&self, mut f: impl FnMut(NodeId)) {
        match *self {
            Node::False
            | Node::On(_)
            | Node::Carried(_)
            | Node::HeldBool(..)
            | Node::Line { .. }
            | Node::Constant(_)
            | Node::Time
            | Node::Latency
            | Node::Chain(..)
            | Node::SameTime
            | Node::Key(..)
            | Node::KeyBool(..)
            | Node::Outer(_)
            | Node::Held(..) => {}
            Node::TimedRecently { q, .. } => {
                f(q.at.node());
                f(q.after.node());
            }
            Node::TimedSince { p, q, .. } => {
                [p.at, p.after, q.at, q.after].map(Wire::node).into_iter().for_each(f)
            }
            Node::Lasting { from, known, .. } => {
                f(from);
                f(known.node());
            }
            Node::RobustOnce { x, .. } => f(x),
            Node::RobustSince { p, q, .. } | Node::Margin(_, p, q) => {
                f(p);
                f(q);
            }
            Node::RobustDense { p, q, .. } => p.into_iter().chain(q).for_each(f),
            Node::After(of)
            | Node::AfterFloat(of)
            | Node::ByValuePossibly(of)
            | Node::MachineAfter(of)
            | Node::MachineValue { machine: of, .. }
            | Node::MachineTruth { machine: of, .. } => f(of),
            Node::Machine { ref operands, .. }
            | Node::Quantified { ref operands, .. }
            | Node::ByValue { ref operands, .. } => operands.iter().copied().for_each(f),
            Node::Shift(x, _) | Node::Recently(x, _) => f(x.node()),
            Node::And(x, y) | Node::Since(x, y) | Node::Delay { of: x, forget: y, .. } => {
                f(x.node());
                f(y.node());
            }
            Node::ToFloat(x) | Node::Unary(_, _, x) => f(x),
            Node::Compare(_, x, y) | Node::Binary(_, _, x, y) => {
                f(x);
                f(y);
            }
            Node::Call(_, x, y) => {
                f(x);
                y.into_iter().for_each(f);
            }
            Node::Select(_, condition, x, y) => {
                f(condition.node());
                f(x);
                f(y);
            }
            Node::Latch(_, x, clock) | Node::Sampled(x, clock) => {
                f(x);
                f(clock.node());
            }
            Node::Window { x, samples, known, .. } => {
                f(x);
                f(samples.node());
                f(known.node());
            }
        }
    }

    /// The node with replaced operands.
    pub(crate) fn moved(&self, wire: impl Fn(Wire) -> Wire, id: impl Fn(NodeId) -> NodeId) -> Node {
        let mut node = self.clone();
        let halves = |Halves { at, after }: Halves| Halves { at: wire(at), after: wire(after) };
        match &mut node {
            Node::False
            | Node::On(_)
            | Node::Carried(_)
            | Node::HeldBool(..)
            | Node::Line { .. }
            | Node::Constant(_)
            | Node::Time
            | Node::Latency
            | Node::Chain(..)
            | Node::SameTime
            | Node::Key(..)
            | Node::KeyBool(..)
            | Node::Outer(_)
            | Node::Held(..) => {}
            Node::And(x, y) | Node::Since(x, y) | Node::Delay { of: x, forget: y, .. } => {
                (*x, *y) = (wire(*x), wire(*y));
            }
            Node::Shift(x, _) | Node::Recently(x, _) => *x = wire(*x),
            Node::TimedRecently { q, .. } => *q = halves(*q),
            Node::TimedSince { p, q, .. } => (*p, *q) = (halves(*p), halves(*q)),
            Node::Lasting { from, known, .. } => (*from, *known) = (id(*from), wire(*known)),
            Node::After(x)
            | Node::AfterFloat(x)
            | Node::ByValuePossibly(x)
            | Node::MachineAfter(x)
            | Node::MachineValue { machine: x, .. }
            | Node::MachineTruth { machine: x, .. }
            | Node::ToFloat(x)
            | Node::Unary(_, _, x)
            | Node::RobustOnce { x, .. } => *x = id(*x),
            Node::Compare(_, x, y)
            | Node::Binary(_, _, x, y)
            | Node::Margin(_, x, y)
            | Node::RobustSince { p: x, q: y, .. } => (*x, *y) = (id(*x), id(*y)),
            Node::Call(_, x, y) => (*x, *y) = (id(*x), y.map(&id)),
            Node::Select(_, condition, x, y) => {
                (*condition, *x, *y) = (wire(*condition), id(*x), id(*y));
            }
            Node::Machine { operands, .. }
            | Node::Quantified { operands, .. }
            | Node::ByValue { operands, .. } => operands.iter_mut().for_each(|x| *x = id(*x)),
            Node::Latch(_, x, clock) | Node::Sampled(x, clock) => (*x, *clock) = (id(*x), wire(*clock)),
            Node::Window { x, samples, known, .. } => {
                (*x, *samples, *known) = (id(*x), wire(*samples), wire(*known));
            }
            Node::RobustDense { p, q, .. } => (*p, *q) = (p.map(&id), q.map(&id)),
        }
        node
    }

    /// Whether its output depends on its operands in the same row only.
    pub(crate) fn is_pointwise(&self) -> bool {
        matches!(
            self,
            Node::False
                | Node::And(..)
                | Node::Compare(..)
                | Node::Constant(_)
                | Node::ToFloat(_)
                | Node::Unary(..)
                | Node::Binary(..)
                | Node::Call(..)
                | Node::Select(..)
                | Node::Margin(..)
        )
    }

    /// Whether its output is a computed text.
    pub(crate) fn makes_text(&self) -> bool {
        matches!(self, Node::Call(function, ..) if function.result() == ValueType::String)
    }

    /// Whether it changes at events only, provided that its operands do.
    pub(crate) fn changes_at_events(&self) -> bool {
        self.is_pointwise()
            || matches!(
                self,
                Node::On(_)
                    | Node::Carried(_)
                    | Node::HeldBool(..)
                    // Crossings are rows of their own.
                    | Node::Line { .. }
                    | Node::Since(..)
                    | Node::Shift(..)
                    | Node::SameTime
                    | Node::Held(..)
                    | Node::Chain(..)
                    | Node::Latch(..)
            )
    }

    /// Number of the node's sort, by which schedules group nodes.
    pub(crate) fn sort(&self) -> usize {
        match self {
            Node::False => 0,
            Node::On(_) => 1,
            Node::Carried(_) => 2,
            Node::HeldBool(..) => 3,
            Node::And(..) => 4,
            Node::Since(..) => 5,
            Node::Shift(..) => 6,
            Node::Recently(..) => 7,
            Node::Delay { .. } => 8,
            Node::Constant(_) => 9,
            Node::ToFloat(_) => 10,
            Node::Held(kind, ..) => 11 + *kind as usize,
            Node::Select(kind, ..) => 14 + *kind as usize,
            Node::Latch(kind, ..) => 17 + *kind as usize,
            Node::Compare(relation, ..) => 20 + *relation as usize,
            Node::Unary(kind, op, _) => 27 + 2 * (*kind as usize) + *op as usize,
            Node::Binary(kind, op, ..) => 31 + 7 * (*kind as usize) + *op as usize,
            Node::Time => 45,
            Node::SameTime => 46,
            Node::TimedRecently { .. } => 47,
            Node::TimedSince { .. } => 48,
            Node::After(_) => 49,
            Node::Machine { .. } => 50,
            Node::MachineAfter(_) => 51,
            Node::MachineValue { .. } => 52,
            Node::MachineTruth { .. } => 53,
            Node::Latency => 54,
            Node::Sampled(..) => 55,
            Node::Window { .. } => 56,
            Node::Margin(..) => 57,
            Node::RobustOnce { .. } => 58,
            Node::RobustSince { .. } => 59,
            Node::RobustDense { .. } => 60,
            Node::AfterFloat(_) => 61,
            Node::Quantified { .. } => 62,
            Node::Key(kind, _) => 63 + *kind as usize,
            Node::KeyBool(..) => 66,
            Node::Lasting { .. } => 67,
            Node::Chain(..) => 68,
            Node::ByValue { .. } => 69,
            Node::ByValuePossibly(_) => 70,
            Node::Outer(_) => 71,
            Node::Line { .. } => 72,
            Node::Call(..) => 73,
        }
    }

    /// Number of sorts.
    pub(crate) const SORTS: usize = 74;
}
