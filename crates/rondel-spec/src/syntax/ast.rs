//! A specification as it is written: names are not looked up yet, nothing has a type.

use std::collections::HashMap;

use rondel_event::{Comparison, Segment, Value, ValueType, Verdict};

use crate::diagnostic::Span;
use crate::spec::{Aggregate, BinaryOp, ChainMeasure, Schema};

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
    pub(crate) machines: Vec<Machine>,
    pub(crate) chains: Vec<Chain>,
    pub(crate) tests: Vec<Test>,
    /// What becomes a property, in order.
    pub(crate) property_sources: Vec<PropertySource>,
    /// The `for each` of properties and machines, and the keys of chains.
    pub(crate) for_eaches: Vec<ForEach>,
    pub(crate) nodes: Vec<Node>,
    /// The variables of quantifiers. The parser finds their uses by itself.
    pub(crate) variables: Vec<Name>,
    /// Whether a single formula was parsed: names are then fields of the one topic.
    pub(crate) single: bool,
}

impl Ast {
    /// The name of the property that a declaration becomes.
    pub(crate) fn source_name(&self, source: PropertySource) -> &Name {
        match source {
            PropertySource::Property(i) => &self.properties[i].name,
            PropertySource::Machine(i) => &self.machines[i].name,
            PropertySource::Chain(i) => &self.chains[i].name,
            PropertySource::ChainBound(i, bound) => &self.chains[i].bounds[bound].0,
        }
    }
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

/// A declaration that becomes a property, by its position among those of its kind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PropertySource {
    Property(usize),
    Machine(usize),
    Chain(usize),
    /// A further bound of a chain.
    ChainBound(usize, usize),
}

/// A `machine`.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) name: Name,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) each: Option<usize>,
    pub(crate) initial: Option<Name>,
    /// States that are declared by themselves.
    pub(crate) states: Vec<Name>,
    pub(crate) variables: Vec<MachineVariable>,
    pub(crate) transitions: Vec<Transition>,
    pub(crate) errors: Vec<ErrorState>,
    pub(crate) finals: Vec<Name>,
    /// Whether all of it could be read.
    pub(crate) complete: bool,
}

impl Machine {
    /// The expressions in it, but for what its variables begin with.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = Body> + '_ {
        let transitions = self
            .transitions
            .iter()
            .flat_map(|t| t.guard.into_iter().chain(t.assignments.iter().map(|(_, value)| *value)));
        transitions.chain(self.errors.iter().filter_map(|error| error.condition))
    }

    /// The distances in time in it.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = &Bound> {
        let transitions = self.transitions.iter().flat_map(|t| t.within.iter().chain(&t.after));
        transitions.chain(self.errors.iter().filter_map(|error| error.lasting.as_ref()))
    }
}

/// `var name: type = value`
#[derive(Debug)]
pub(crate) struct MachineVariable {
    pub(crate) name: Name,
    pub(crate) value_type: Option<ValueType>,
    pub(crate) initial: Body,
}

/// `from -> to when guard within d after d do name := value, …`
#[derive(Debug)]
pub(crate) struct Transition {
    pub(crate) from: Name,
    pub(crate) to: Name,
    pub(crate) guard: Option<Body>,
    pub(crate) within: Option<Bound>,
    pub(crate) after: Option<Bound>,
    pub(crate) assignments: Vec<(Name, Body)>,
    /// As it is written, on one line.
    pub(crate) text: String,
    pub(crate) span: Span,
}

/// `error state while condition for d`
#[derive(Debug)]
pub(crate) struct ErrorState {
    pub(crate) states: Vec<Name>,
    pub(crate) condition: Option<Body>,
    pub(crate) lasting: Option<Bound>,
}

/// A `chain`: the fields of its key are those of its topics, in their order.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) name: Name,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) topics: Vec<Name>,
    pub(crate) each: usize,
    pub(crate) within: Bound,
    /// What else must stay below a bound, under the names of properties of their own.
    pub(crate) bounds: Vec<(Name, ChainMeasure, Bound)>,
}

/// A `test`.
#[derive(Debug)]
pub(crate) struct Test {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) messages: Vec<Message>,
    /// In nanoseconds.
    pub(crate) end: Option<(i64, Span)>,
    pub(crate) expectations: Vec<Expect>,
    /// Whether all of it could be read.
    pub(crate) complete: bool,
}

/// `at time topic { … }`
#[derive(Debug)]
pub(crate) struct Message {
    /// In nanoseconds.
    pub(crate) time: i64,
    pub(crate) time_span: Span,
    pub(crate) topic: Name,
    pub(crate) content: Content,
}

/// `expect property[keys] never violated at time`
#[derive(Debug)]
pub(crate) struct Expect {
    pub(crate) property: Name,
    pub(crate) keys: Vec<Content>,
    pub(crate) never: bool,
    pub(crate) verdict: Verdict,
    /// In nanoseconds.
    pub(crate) at: Option<i64>,
    pub(crate) span: Span,
}

/// A part of a message in a test.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) kind: ContentKind,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum ContentKind {
    Null,
    Value(Value),
    /// The name of a constant.
    Name(String),
    Array(Vec<Content>),
    Object(Vec<(Name, Content)>),
}

/// `@name(value)`.
#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    pub(crate) name: Name,
    /// Empty for a bare `@name`.
    pub(crate) value: String,
    /// Where the value stands, if there is one.
    pub(crate) argument: Option<Span>,
    /// From the `@` to the end.
    pub(crate) span: Span,
}

/// `for each a in (t.x, u.y), b in … until p`
#[derive(Debug)]
pub(crate) struct ForEach {
    pub(crate) keys: Vec<Parameter>,
    pub(crate) until: Option<Body>,
    /// Whether it is the key of a chain: a time, where nothing else is said.
    pub(crate) chain: bool,
}

/// One key of an [`ForEach`].
#[derive(Debug)]
pub(crate) struct Parameter {
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
    /// `in(machine, state, …)`
    In(Name, Vec<Name>),
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
            | NodeKind::In(..)
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

/// What is measured of the messages of a topic, or of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    Age,
    Latency,
    Jitter,
    /// Of a chain only.
    Reaction,
}

impl Measure {
    /// What it is of a chain, if a chain has it.
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
