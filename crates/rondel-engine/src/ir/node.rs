//! The nodes of a program.

use rondel_event::{TopicId, ValueType};
use rondel_spec::{BinaryOp, FunctionId, UnaryOp};

use crate::ir::wire::{Halves, NodeId, Wire};

/// What properties ask of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ChainColumn {
    /// How long the stamp took that came out last.
    Latency,
    /// When the message came that the last output stems from.
    Origin,
    /// When the message came that waits longest for an output.
    Oldest,
}

/// The kinds of columns that hold values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// Integers and times.
    Int,
    Float,
    Text,
}

/// What a comparison computes; the others are its complement or its mirror image.
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

/// A constant; floats by their bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Constant {
    Int(i64),
    Float(u64),
    Text(Box<str>),
}

/// What is measured over a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Measure {
    Count,
    Sum,
    Least,
    Greatest,
    Distinct,
    /// The number of different floats; the column is one of integers.
    DistinctFloats,
    /// In millionths of all.
    Percentile(u32),
    Median,
    Deviation,
    First,
    Last,
    /// Per second, as the next.
    Derivative,
    Integral,
}

/// A field of the messages that is read, by its position in the table of fields.
pub(crate) type FieldId = u32;

/// One node. Every node computes a word; those with a [`kind`](Node::kind) compute a column of
/// values besides, and their word says in which rows that succeeded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    False,
    /// The rows of a topic.
    On(TopicId),
    /// The rows that carry the field.
    Carried(FieldId),
    /// Where the boolean field has this value, held.
    HeldBool(FieldId, bool),
    /// Where a straight line, by its number, is certainly below zero, zero, or above it (0, 1, 2), or one of these
    /// and nobody knows which (3): at the rows
    /// (side 0), or after them (side 1).
    Line {
        line: u32,
        sign: u8,
        half: u8,
    },
    And(Wire, Wire),
    /// The first operand since the second, unbounded.
    Since(Wire, Wire),
    /// The operand 1 to 63 positions before; false where there is none.
    Shift(Wire, u32),
    /// The operand held at one of the last so many positions, or holds now.
    Recently(Wire, u64),
    /// The operand 64 positions before or more. Meaningless from a row where the second operand
    /// holds on for as long, which lets it be forgotten.
    Delay {
        of: Wire,
        forget: Wire,
        by: u64,
    },
    /// The rows whose time is that of the row before.
    Together,
    /// The first operand has held, or holds, for at most so long ago; the second is its other side.
    TimedRecently {
        q: Halves,
        span: u64,
        /// Just so long ago does not count any more.
        open: bool,
    },
    /// `p since[lower, upper] q`, with a lower bound above 0.
    TimedSince {
        p: Halves,
        q: Halves,
        lower: u64,
        upper: Option<u64>,
    },
    /// Where this column is known and so long ago at most; it is a column of times.
    Lasting {
        from: NodeId,
        known: Wire,
        span: u64,
        /// Just so long ago does not count any more.
        open: bool,
    },
    /// A column of a chain, by its number; the word says where it is known.
    Chain(u32, ChainColumn),
    /// The truth of a timed operator on the spans that follow its rows.
    After(NodeId),
    Compare(ComparisonKind, NodeId, NodeId),
    Constant(Constant),
    /// The time of the row, in nanoseconds.
    Time,
    /// How much later than the time of the row it arrived; the word says where that is known.
    Latency,
    /// The value of the field, held; the word says where it is known.
    Held(Kind, FieldId),
    /// A key of the slice; the word says where it is known, which is in every instance.
    Key(Kind, u32),
    /// Where a boolean key of the slice has this value.
    KeyBool(u32, bool),
    ToFloat(NodeId),
    Unary(Kind, UnaryOp, NodeId),
    Binary(Kind, BinaryOp, NodeId, NodeId),
    /// A function of one or two columns; its word says where it is known, or of a truth where it is true.
    Call(FunctionId, NodeId, Option<NodeId>),
    Select(Kind, Wire, NodeId, NodeId),
    /// The state that a machine is in, by its number; its word says where it is ambiguous. It has these
    /// operands.
    Machine {
        machine: u32,
        operands: Box<[NodeId]>,
    },
    /// The same on the span after each row.
    MachineAfter(NodeId),
    /// A variable of a machine, at the rows (side 0) or after them (side 1); its word says where it is known.
    MachineValue {
        machine: NodeId,
        variable: u32,
        half: u8,
        kind: Kind,
    },
    /// Where a boolean variable of a machine has this value.
    MachineTruth {
        machine: NodeId,
        variable: u32,
        half: u8,
        value: bool,
    },
    /// A quantified formula, by its number; it has these operands, and reads these fields.
    Quantified {
        relation: u32,
        operands: Box<[NodeId]>,
        fields: Box<[FieldId]>,
    },
    /// A quantified formula that is evaluated by value, by its number: where some value makes it certainly hold.
    ByValue {
        number: u32,
        operands: Box<[NodeId]>,
        fields: Box<[FieldId]>,
    },
    /// Where some value possibly makes it hold.
    ByValuePossibly(NodeId),
    /// Of what is evaluated by value: a truth without variables, which comes from outside.
    Outer(u32),
    /// In rows of the clock the value at the position before, held in the others.
    Latch(Kind, NodeId, Wire),
    /// In rows of the clock the value, held in the others. Of integers.
    Sampled(NodeId, Wire),
    /// What the samples less than `over` old come to; in rows, or nanoseconds if it is `timed`. The word
    /// says where it is known.
    Window {
        measure: Measure,
        kind: Kind,
        /// Of everything but a count.
        x: NodeId,
        samples: Wire,
        known: Wire,
        over: u64,
        timed: bool,
    },
    /// By how much the first operand is less than the second, as a float: 0 if they are equal, minus
    /// infinity if one is NaN.
    Margin(Kind, NodeId, NodeId),
    /// The robustness of `once q`: the greatest of the floats within the bounds, in rows or nanoseconds.
    RobustOnce {
        x: NodeId,
        bounds: RobustReach,
    },
    /// The robustness of `p since q`.
    RobustSince {
        p: NodeId,
        q: NodeId,
        bounds: RobustReach,
    },
    /// The same in dense time, of operands with two sides; the second is its other side.
    RobustDense {
        p: [NodeId; 2],
        q: [NodeId; 2],
        bounds: RobustReach,
    },
    /// The column of such a node on the spans that follow its rows.
    AfterFloat(NodeId),
}

/// How far a robustness reaches back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RobustReach {
    pub(crate) lower: u64,
    pub(crate) upper: Option<u64>,
    /// In nanoseconds, not in rows.
    pub(crate) timed: bool,
    /// What it gives where there are too many values within the bounds: the bits of a float.
    pub(crate) unknown: u64,
}

impl Node {
    /// What kind of column it computes, if any.
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
            | Node::Together
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

    /// The same node with operands that are elsewhere.
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
            | Node::Together
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

    /// Whether its output depends on nothing but its operands in the same row.
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

    /// Whether its output is a text that no message and no constant has.
    pub(crate) fn makes_text(&self) -> bool {
        matches!(self, Node::Call(function, ..) if function.result() == ValueType::String)
    }

    /// Whether it changes only at events if its operands do: time alone does nothing to it.
    pub(crate) fn changes_at_events(&self) -> bool {
        self.is_pointwise()
            || matches!(
                self,
                Node::On(_)
                    | Node::Carried(_)
                    | Node::HeldBool(..)
                    // Its crossings stand among the events.
                    | Node::Line { .. }
                    | Node::Since(..)
                    | Node::Shift(..)
                    | Node::Together
                    | Node::Held(..)
                    | Node::Chain(..)
                    | Node::Latch(..)
            )
    }

    /// A number for the sort of node, to put equal sorts together.
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
            Node::Together => 46,
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

    /// One more than the largest [`sort`](Node::sort).
    pub(crate) const SORTS: usize = 74;
}
