//! The nodes of expressions in the syntax tree.

use rondel_event::{Comparison, Segment, TopicEvent, Value, ValueType};

use super::{ElementsSyntax, Name, NodeId};
use crate::diagnostic::Span;
use crate::functions::FunctionId;
use crate::operators::Operator;
use crate::spec::{Aggregate, BinaryOp, ChainMeasure};

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) kind: NodeKind,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum NodeKind {
    Literal(Value),
    /// A name and the steps after it: `name.field[0]`.
    Path(Name, Vec<(Segment, Span)>),
    On(Name),
    /// The length of a field: `len(name.field)`.
    Length(Name, Vec<(Segment, Span)>),
    /// A field that may be a number as a text: `number(name.field)`.
    Number(Name, Vec<(Segment, Span)>),
    /// Conditions on the elements of an array: `any r in name.field: r < 0.2`.
    Elements(Box<ElementsSyntax>),
    /// A quantifier variable, by its index in [`Ast::variables`](super::Ast::variables).
    Variable(usize),
    /// `in(machine, state, …)`
    In(Name, Vec<Name>),
    Unary(Prefix, NodeId),
    Binary(Infix, NodeId, NodeId),
    Call(Function, Vec<NodeId>),
    /// An operator that combines others, with the duration that follows its operands: `stable(p) for 2 s`.
    Operator {
        operator: &'static Operator,
        operands: Vec<NodeId>,
        lasting: Option<Box<Bound>>,
    },
    If(NodeId, NodeId, NodeId),
    /// Another node: the expansion of a definition at its use, or the use of a parameter in it.
    Same(NodeId),
    /// An argument of a definition with parameters, with the type and the location of its parameter.
    Argument(NodeId, ValueType, Span),
    /// `x in (a, b)`, `x not in [a, b)`
    Member {
        operand: NodeId,
        /// The values, or the two ends of the interval.
        members: Vec<NodeId>,
        /// For an interval, whether its lower and its upper end belong to it.
        interval: Option<[bool; 2]>,
        negated: bool,
    },
    /// The operand of a window that is a bare name: a topic, or a name of a value.
    Samples(Name),
    Window {
        aggregate: Aggregate,
        operand: NodeId,
        /// The second argument of `percentile`.
        percentage: Option<NodeId>,
        over: Box<Bound>,
        /// Whether it is unknown until the window is full: `over full 1 s`.
        full: bool,
    },
    Measure(Measure, Name),
    /// An event of a topic: `missed_deadline(topic)`.
    Event(TopicEvent, Name),
    /// A field of the topic of the enclosing atom.
    AtomField(Name, Vec<(Segment, Span)>),
    /// An atom: `topic{…}`.
    Atom {
        topic: Name,
        pairs: Vec<Pair>,
    },
    Quantified {
        all: bool,
        /// Indices in [`Ast::variables`](super::Ast::variables).
        variables: Vec<usize>,
        body: NodeId,
    },
    Rye {
        topic: Option<Name>,
        body: Span,
    },
    /// An invalid expression that has been reported.
    Invalid,
}

impl NodeKind {
    /// Returns the topic and the path of a field that the node reads.
    pub(crate) fn field(&self) -> Option<(&Name, &[(Segment, Span)])> {
        match self {
            NodeKind::Path(name, steps)
            | NodeKind::Length(name, steps)
            | NodeKind::Number(name, steps)
            | NodeKind::AtomField(name, steps) => Some((name, steps)),
            NodeKind::Elements(syntax) => Some((&syntax.array, &syntax.steps)),
            _ => None,
        }
    }

    /// Returns the operands of the node, all of which precede it.
    pub(crate) fn operands(&self) -> Vec<NodeId> {
        match self {
            NodeKind::Literal(_)
            | NodeKind::Path(..)
            | NodeKind::Length(..)
            | NodeKind::Number(..)
            | NodeKind::On(_)
            | NodeKind::In(..)
            | NodeKind::Variable(_)
            | NodeKind::Samples(_)
            | NodeKind::Measure(..)
            | NodeKind::Event(..)
            | NodeKind::AtomField(..)
            | NodeKind::Rye { .. }
            | NodeKind::Invalid => Vec::new(),
            NodeKind::Unary(_, a)
            | NodeKind::Same(a)
            | NodeKind::Argument(a, ..)
            | NodeKind::Window { operand: a, .. }
            | NodeKind::Quantified { body: a, .. } => vec![*a],
            NodeKind::Binary(_, a, b) => vec![*a, *b],
            NodeKind::Elements(elements) => elements.tests.iter().map(|test| test.value).collect(),
            NodeKind::If(a, b, c) => vec![*a, *b, *c],
            NodeKind::Call(_, operands) | NodeKind::Operator { operands, .. } => operands.clone(),
            NodeKind::Member { operand, members, .. } => [&[*operand], &members[..]].concat(),
            NodeKind::Atom { pairs, .. } => pairs
                .iter()
                .flat_map(|pair| match *pair {
                    Pair::Bind { field, variable } => [field, variable],
                    Pair::Where { field, condition } => [field, condition],
                })
                .collect(),
        }
    }

    /// Returns the bounds of a temporal operator.
    pub(crate) fn bounds(&self) -> Option<&BoundsSyntax> {
        match self {
            NodeKind::Unary(
                Prefix::Once(bounds)
                | Prefix::Historically(bounds)
                | Prefix::Eventually(bounds)
                | Prefix::Always(bounds),
                _,
            )
            | NodeKind::Binary(Infix::Since(bounds) | Infix::Until(bounds), ..) => Some(bounds),
            _ => None,
        }
    }

    /// Returns all bounds and window lengths of the node.
    pub(crate) fn reaches(&self) -> impl Iterator<Item = &Bound> {
        let over = match self {
            NodeKind::Window { over, .. } => Some(&**over),
            NodeKind::Operator { lasting, .. } => lasting.as_deref(),
            _ => None,
        };
        let bounds = self.bounds();
        let lower = bounds.and_then(|b| b.lower.as_ref());
        let upper = bounds.and_then(|b| b.upper.as_ref());
        [lower, upper, over].into_iter().flatten()
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Prefix {
    Negate,
    Not,
    Previously,
    Once(Box<BoundsSyntax>),
    Historically(Box<BoundsSyntax>),
    Next,
    Eventually(Box<BoundsSyntax>),
    Always(Box<BoundsSyntax>),
}

#[derive(Clone, Debug)]
pub(crate) enum Infix {
    Arithmetic(BinaryOp),
    Compare(Comparison),
    Iff,
    Implies,
    Or,
    And,
    Since(Box<BoundsSyntax>),
    Until(Box<BoundsSyntax>),
}

/// One pair of an atom.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pair {
    /// `field: variable`
    Bind { field: NodeId, variable: NodeId },
    /// A condition on the field.
    Where { field: NodeId, condition: NodeId },
}

/// A measurement of a topic or a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    Age,
    Latency,
    Jitter,
    /// Applies to chains only.
    Reaction,
}

impl Measure {
    /// Returns the corresponding measurement of a chain, if there is one.
    pub(crate) fn of_chain(self) -> Option<ChainMeasure> {
        match self {
            Measure::Age => Some(ChainMeasure::Age),
            Measure::Latency => Some(ChainMeasure::Latency),
            Measure::Reaction => Some(ChainMeasure::Reaction),
            Measure::Jitter => None,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct BoundsSyntax {
    pub(crate) lower: Option<Bound>,
    pub(crate) upper: Option<Bound>,
    /// The location with the brackets; empty if there are none.
    pub(crate) span: Span,
}

/// A bound, or the length of a window.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) kind: BoundKind,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum BoundKind {
    /// An integer without a unit.
    Whole(u64),
    /// A fraction without a unit, in nanoseconds for a value in seconds.
    Fraction(i64),
    /// A duration, in nanoseconds.
    Duration(i64),
    /// The name of a constant.
    Name(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Abs,
    Min,
    Max,
    StartsWith,
    Prev,
    Changed,
    Rising,
    Falling,
    Clamp,
    /// A function of the table of functions.
    Value(FunctionId),
}

impl Function {
    /// The functions that are not in the table of functions of values.
    const OWN: [(&'static str, Function); 9] = [
        ("abs", Function::Abs),
        ("min", Function::Min),
        ("max", Function::Max),
        ("starts_with", Function::StartsWith),
        ("prev", Function::Prev),
        ("changed", Function::Changed),
        ("rising", Function::Rising),
        ("falling", Function::Falling),
        ("clamp", Function::Clamp),
    ];

    /// Returns the names of all functions.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        let own = Function::OWN.iter().map(|(name, _)| *name);
        own.chain(FunctionId::all().map(FunctionId::name))
    }

    pub(crate) fn named(name: &str) -> Option<Function> {
        let own = Function::OWN.iter().find(|(n, _)| *n == name).map(|(_, f)| *f);
        own.or_else(|| FunctionId::named(name).map(Function::Value))
    }

    /// Returns the number of arguments.
    pub(crate) fn arity(self) -> usize {
        match self {
            Function::Min | Function::Max | Function::StartsWith => 2,
            Function::Clamp => 3,
            Function::Value(function) => function.parameters().len(),
            _ => 1,
        }
    }
}
