//! A specification as it is written: names are not looked up yet, nothing has a type.

use std::collections::HashMap;

use rondel_event::{Comparison, Segment, Value};

use crate::diagnostic::Span;
use crate::spec::{BinaryOp, Schema};

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
    Unary(Prefix, NodeId),
    Binary(Infix, NodeId, NodeId),
    Call(Function, Vec<NodeId>),
    If(NodeId, NodeId, NodeId),
    Rye {
        topic: Option<Name>,
        body: Span,
    },
    /// What has been reported already and says nothing more.
    Broken,
}

#[derive(Clone, Debug)]
pub(crate) enum Prefix {
    Negate,
    Not,
    Previously,
    Once(BoundsSyntax),
    Historically(BoundsSyntax),
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
}

#[derive(Clone, Debug, Default)]
pub(crate) struct BoundsSyntax {
    pub(crate) lower: Option<Bound>,
    pub(crate) upper: Option<Bound>,
    /// With the brackets; empty where there are none.
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum Bound {
    Steps(u64),
    /// The name of a constant.
    Name(Name),
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
