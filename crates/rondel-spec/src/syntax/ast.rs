//! A specification as it is written: names are not looked up yet, nothing has a type.

use std::collections::HashMap;

use rondel_event::{Comparison, Segment, Value};

use crate::diagnostic::Span;
use crate::spec::{Aggregate, BinaryOp, Schema};

/// A node of [`Ast::nodes`].
///
/// Nodes are kept in one vector, operands before their operators. So no step after the parser needs
/// recursion, and neither does freeing them, however long a chain of operators is.
pub(crate) type NodeId = usize;

#[derive(Debug, Default)]
pub(crate) struct Ast {
    pub(crate) topics: Vec<Topic>,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) properties: Vec<Property>,
    /// The `for each` of properties and machines.
    pub(crate) eaches: Vec<Each>,
    pub(crate) nodes: Vec<Node>,
    /// The variables of quantifiers. The parser finds their uses by itself.
    pub(crate) variables: Vec<Name>,
    /// Whether a single formula was parsed: names are then fields of the one topic.
    pub(crate) single: bool,
}

/// A word and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) name: Name,
    pub(crate) address: Option<String>,
    pub(crate) type_name: Option<String>,
    pub(crate) schema: Option<Schema>,
    /// Where the types of the schema's fields stand; elements of arrays are written `field[]`.
    pub(crate) places: HashMap<String, Span>,
}

/// A `let` or a `const`.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) name: Name,
    pub(crate) constant: bool,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) struct Property {
    pub(crate) name: Name,
    pub(crate) attributes: Vec<Attribute>,
    /// Its `for each`, by its position.
    pub(crate) each: Option<usize>,
    pub(crate) body: Body,
}

/// `@name(value)`.
#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    pub(crate) name: Name,
    /// Empty for a bare `@name`.
    pub(crate) value: String,
    /// From the `@` to the end.
    pub(crate) span: Span,
}

/// `for each a in (t.x, u.y), b in … until p`
#[derive(Debug)]
pub(crate) struct Each {
    pub(crate) keys: Vec<EachKey>,
    pub(crate) until: Option<Body>,
}

/// One key of an [`Each`].
#[derive(Debug)]
pub(crate) struct EachKey {
    pub(crate) name: Name,
    /// Where the topics have it: nodes of their own, each a path.
    pub(crate) fields: Vec<NodeId>,
}

/// The expression of a declaration: its nodes are `first..=root`, and no other's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body {
    pub(crate) first: NodeId,
    /// Nothing where the expression could not be parsed; that has been reported then.
    pub(crate) root: Option<NodeId>,
}

impl Body {
    pub(crate) fn nodes(self) -> std::ops::Range<NodeId> {
        self.first..self.root.map_or(self.first, |root| root + 1)
    }
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) kind: NodeKind,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum NodeKind {
    Literal(Value),
    /// A name and the steps after it.
    Path(Name, Vec<(Segment, Span)>),
    On(Name),
    /// One of [`Ast::variables`], by its position.
    Variable(usize),
    Unary(Prefix, NodeId),
    Binary(Infix, NodeId, NodeId),
    Call(Function, Vec<NodeId>),
    If(NodeId, NodeId, NodeId),
    /// What a window is about, where that is a bare name: a topic, or something with a value.
    Samples(Name),
    Window {
        aggregate: Aggregate,
        operand: NodeId,
        over: Bound,
    },
    Measure(Measure, Name),
    /// A field of the topic of the atom that the node belongs to.
    AtomField(Name, Vec<(Segment, Span)>),
    /// `topic{…}`
    Atom {
        topic: Name,
        pairs: Vec<Pair>,
    },
    Quantified {
        all: bool,
        /// Positions in [`Ast::variables`].
        variables: Vec<usize>,
        body: NodeId,
    },
    Rye {
        topic: Option<Name>,
        body: Span,
    },
    /// What has been reported already and says nothing more.
    Broken,
}

impl NodeKind {
    /// The nodes that this one is made of, all of them before it.
    pub(crate) fn operands(&self) -> Vec<NodeId> {
        match self {
            NodeKind::Literal(_)
            | NodeKind::Path(..)
            | NodeKind::On(_)
            | NodeKind::Variable(_)
            | NodeKind::Samples(_)
            | NodeKind::Measure(..)
            | NodeKind::AtomField(..)
            | NodeKind::Rye { .. }
            | NodeKind::Broken => Vec::new(),
            NodeKind::Unary(_, a)
            | NodeKind::Window { operand: a, .. }
            | NodeKind::Quantified { body: a, .. } => vec![*a],
            NodeKind::Binary(_, a, b) => vec![*a, *b],
            NodeKind::If(a, b, c) => vec![*a, *b, *c],
            NodeKind::Call(_, arguments) => arguments.clone(),
            NodeKind::Atom { pairs, .. } => pairs
                .iter()
                .flat_map(|pair| match *pair {
                    Pair::Bind { field, variable } => [field, variable],
                    Pair::Where { field, condition } => [field, condition],
                })
                .collect(),
        }
    }

    /// The bounds of an operator, if the node is one that has them.
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

    /// All that says how far the node reaches in time.
    pub(crate) fn reaches(&self) -> impl Iterator<Item = &Bound> {
        let over = if let NodeKind::Window { over, .. } = self { Some(over) } else { None };
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
    Once(BoundsSyntax),
    Historically(BoundsSyntax),
    Next,
    Eventually(BoundsSyntax),
    Always(BoundsSyntax),
}

#[derive(Clone, Debug)]
pub(crate) enum Infix {
    Arithmetic(BinaryOp),
    Compare(Comparison),
    Iff,
    Implies,
    Or,
    And,
    Since(BoundsSyntax),
    Until(BoundsSyntax),
}

/// What an atom asks of one field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pair {
    /// `field: variable`
    Bind { field: NodeId, variable: NodeId },
    /// Something that is true or false of the field.
    Where { field: NodeId, condition: NodeId },
}

/// What is measured of the messages of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    Age,
    Latency,
    Jitter,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct BoundsSyntax {
    pub(crate) lower: Option<Bound>,
    pub(crate) upper: Option<Bound>,
    /// With the brackets; empty where there are none.
    pub(crate) span: Span,
}

/// How far something reaches in time.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) kind: BoundKind,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum BoundKind {
    /// A whole number without a unit.
    Whole(u64),
    /// A number with a fraction and without a unit; in nanoseconds, if it counts seconds.
    Fraction(i64),
    /// A number with a unit, in nanoseconds.
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
}

impl Function {
    pub(crate) const ALL: [(&'static str, Function); 8] = [
        ("abs", Function::Abs),
        ("min", Function::Min),
        ("max", Function::Max),
        ("starts_with", Function::StartsWith),
        ("prev", Function::Prev),
        ("changed", Function::Changed),
        ("rising", Function::Rising),
        ("falling", Function::Falling),
    ];

    pub(crate) fn named(name: &str) -> Option<Function> {
        Function::ALL.iter().find(|(n, _)| *n == name).map(|(_, f)| *f)
    }

    /// With how many arguments it is called.
    pub(crate) fn arity(self) -> usize {
        match self {
            Function::Min | Function::Max | Function::StartsWith => 2,
            _ => 1,
        }
    }
}
