//! The syntax tree of a specification, before names are resolved and types inferred.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use rondel_event::{Comparison, Segment, TopicEvent, Value, ValueType, Verdict};

pub(crate) use super::elements::{ElementTest, ElementsSyntax};
use crate::definition::Definition;
use crate::diagnostic::Span;
use crate::functions::FunctionId;
use crate::modules::Modules;
use crate::operators::Operator;
use crate::spec::{Aggregate, BinaryOp, ChainMeasure, Schema};

/// The index of a node in [`Ast::nodes`].
///
/// All nodes are in one vector, operands before their operators, so that neither later passes nor dropping the tree
/// need recursion, however deep an expression is.
pub(crate) type NodeId = usize;

#[derive(Debug, Default)]
pub(crate) struct Ast {
    pub(crate) topics: Vec<Topic>,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) properties: Vec<Property>,
    pub(crate) machines: Vec<Machine>,
    pub(crate) chains: Vec<Chain>,
    pub(crate) asserts: Vec<Assert>,
    pub(crate) tests: Vec<Test>,
    /// The declarations that become properties, in order.
    pub(crate) property_sources: Vec<PropertySource>,
    /// The `for each` of properties and machines, and the stamps of chains.
    pub(crate) for_eaches: Vec<ForEach>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) definitions: Vec<DefinitionSyntax>,
    /// The names of definitions with parameters where they are used.
    pub(crate) calls: Vec<Name>,
    /// The names of their parameters, in the body and before arguments, each with the name of the definition.
    pub(crate) parameter_uses: Vec<(String, Name)>,
    /// The nodes that were written in a definition with parameters: names of their declaration do not concern them.
    pub(crate) expanded: HashSet<NodeId>,
    /// The arguments of which fields are read in definitions.
    pub(crate) given: HashMap<NodeId, Span>,
    /// The variables of quantifiers; the parser resolves their uses.
    pub(crate) variables: Vec<Name>,
    /// The offset at which the imported files end: what is declared before it may be unused.
    pub(crate) imported: usize,
    /// The name spaces of the files.
    pub(crate) modules: Rc<Modules>,
    /// The aliases of imports, with their uses.
    pub(crate) aliases: Vec<(Name, Vec<Span>)>,
    /// Whether this is a single formula, whose names are fields of its only topic.
    pub(crate) single: bool,
}

impl Ast {
    /// Returns the expression that a node stands for: where it is the use of a parameter, the argument.
    pub(crate) fn given(&self, mut node: NodeId) -> NodeId {
        while let NodeKind::Same(inner) | NodeKind::Argument(inner, ..) = self.nodes[node].kind {
            node = inner;
        }
        node
    }

    /// Returns the name of the property that a declaration becomes.
    pub(crate) fn source_name(&self, source: PropertySource) -> &Name {
        match source {
            PropertySource::Property(i) => &self.properties[i].name,
            PropertySource::Machine(i) => &self.machines[i].name,
            PropertySource::Chain(i) => &self.chains[i].name,
            PropertySource::ChainBound(i, bound) => &self.chains[i].bounds[bound].0,
        }
    }
}

/// A word and its location. The names of declarations are full: `limits.near` for `near` in a file that is imported as
/// `limits`.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) name: Name,
    pub(crate) address: Option<String>,
    /// The parameters of the address.
    pub(crate) parameters: Vec<Name>,
    pub(crate) type_name: Option<Name>,
    pub(crate) schema: Option<Schema>,
    /// The locations of the types of the schema's fields; array elements are named `field[]`.
    pub(crate) places: HashMap<String, Span>,
    /// The definition of the type, if the schema comes from it.
    pub(crate) definition: Option<Definition>,
}

/// A definition with parameters: `let near(a: float, d: float) = …`. Its uses are expanded while they are parsed.
#[derive(Debug)]
pub(crate) struct DefinitionSyntax {
    pub(crate) name: Name,
    /// The call, for messages: `near(a, d)`.
    pub(crate) call: String,
    pub(crate) used: bool,
    /// The nodes of its body as it is declared, in which parameters are invalid.
    pub(crate) nodes: Vec<Node>,
    pub(crate) parameters: Vec<Name>,
}

/// A `let` or a `const` declaration.
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
    /// The index of its `for each` in [`Ast::for_eaches`].
    pub(crate) each: Option<usize>,
    pub(crate) body: Body,
}

/// A declaration that becomes a property, by its index among the declarations of its kind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PropertySource {
    Property(usize),
    Machine(usize),
    Chain(usize),
    /// A further bound of a chain: the index of the chain, and of the bound.
    ChainBound(usize, usize),
}

/// A `machine` declaration.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) name: Name,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) each: Option<usize>,
    pub(crate) initial: Option<Name>,
    /// The states declared with `state`.
    pub(crate) states: Vec<Name>,
    pub(crate) variables: Vec<MachineVariable>,
    pub(crate) transitions: Vec<Transition>,
    pub(crate) errors: Vec<ErrorState>,
    pub(crate) finals: Vec<Name>,
    /// Whether the whole declaration was parsed.
    pub(crate) complete: bool,
}

impl Machine {
    /// Returns the expressions of the machine, except for the initial values of its variables.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = Body> + '_ {
        let transitions = self
            .transitions
            .iter()
            .flat_map(|t| t.guard.into_iter().chain(t.assignments.iter().map(|(_, value)| *value)));
        transitions.chain(self.errors.iter().filter_map(|error| error.condition))
    }

    /// Whether a state is one that may last for ever.
    pub(crate) fn marks(&self, state: &str) -> bool {
        let errors = self.errors.iter().flat_map(|error| &error.states);
        errors.chain(&self.finals).any(|name| name.text == state)
    }

    /// Returns the time bounds of the machine.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = &Bound> {
        let transitions = self.transitions.iter().flat_map(|t| t.within.iter().chain(&t.after));
        transitions.chain(self.errors.iter().filter_map(|error| error.lasting.as_ref()))
    }
}

/// A variable of a machine: `var name: type = value`.
#[derive(Debug)]
pub(crate) struct MachineVariable {
    pub(crate) name: Name,
    pub(crate) value_type: Option<ValueType>,
    pub(crate) initial: Body,
}

/// A transition: `from -> to when guard within d after d do name := value, …`.
#[derive(Debug)]
pub(crate) struct Transition {
    pub(crate) from: Name,
    pub(crate) to: Name,
    pub(crate) guard: Option<Body>,
    pub(crate) within: Option<Bound>,
    pub(crate) after: Option<Bound>,
    pub(crate) assignments: Vec<(Name, Body)>,
    /// The source text, on one line.
    pub(crate) text: String,
    pub(crate) span: Span,
}

/// Error states: `error state while condition for d`.
#[derive(Debug)]
pub(crate) struct ErrorState {
    pub(crate) states: Vec<Name>,
    pub(crate) condition: Option<Body>,
    pub(crate) lasting: Option<Bound>,
}

/// A `chain` declaration; the fields of its stamp are in the order of its topics.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) name: Name,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) topics: Vec<Name>,
    pub(crate) each: usize,
    pub(crate) within: Bound,
    /// The further bounds, each with the name of its own property.
    pub(crate) bounds: Vec<(Name, ChainMeasure, Bound)>,
}

/// An `assert` declaration: `assert share(p) >= 0.95 between 10 s and 60 s while q`.
#[derive(Debug)]
pub(crate) struct Assert {
    /// Its own name, or the source text behind the keyword, on one line.
    pub(crate) name: Name,
    /// Whether it has a name of its own.
    pub(crate) is_named: bool,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) demand: Demanded,
    /// The formula, or the name of a property.
    pub(crate) body: Body,
    pub(crate) span: Option<(Bound, Bound)>,
    pub(crate) mode: Option<Body>,
}

/// What an [`Assert`] demands.
#[derive(Debug)]
pub(crate) enum Demanded {
    Always,
    Ever,
    Share(Comparison, f64),
    Longest(Comparison, Bound),
    /// The number, and whether it is that of violations.
    Count(Comparison, u64, bool),
}

/// A `test` declaration.
#[derive(Debug)]
pub(crate) struct Test {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) messages: Vec<Message>,
    /// The end of the trace, in nanoseconds.
    pub(crate) end: Option<(i64, Span)>,
    pub(crate) expectations: Vec<Expect>,
    /// Whether the whole declaration was parsed.
    pub(crate) complete: bool,
}

/// A message of a test, `at time topic { … }`, or an event, `at time missed_deadline(topic)`.
#[derive(Debug)]
pub(crate) struct Message {
    /// The time, in nanoseconds.
    pub(crate) time: i64,
    pub(crate) time_span: Span,
    pub(crate) topic: Name,
    /// The content of a message, or the key of an event of an instance; an empty object where there is none.
    pub(crate) content: Content,
    /// The event, and whether it holds: `not alive(topic)` does not.
    pub(crate) event: Option<(TopicEvent, bool)>,
}

/// An expectation of a test: `expect property[values] never violated at time`.
#[derive(Debug)]
pub(crate) struct Expect {
    pub(crate) property: Name,
    pub(crate) values: Vec<Content>,
    pub(crate) never: bool,
    pub(crate) verdict: Verdict,
    /// The time of the verdict, in nanoseconds.
    pub(crate) at: Option<i64>,
    pub(crate) span: Span,
}

/// A value in a message of a test.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) kind: ContentKind,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum ContentKind {
    Null,
    Value(Value),
    /// The name of a `const`.
    Name(String),
    /// A constant of a message type: `Type.NAME` or `topic.NAME`.
    Constant(Name, Name),
    Array(Vec<Content>),
    Object(Vec<(Name, Content)>),
}

/// An attribute: `@name(value)`.
#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    pub(crate) name: Name,
    /// The value; empty for a bare `@name`.
    pub(crate) value: String,
    /// The location of the value, if there is one.
    pub(crate) argument: Option<Span>,
    /// The position of its value among the tokens.
    pub(crate) at: usize,
    /// The location of the whole attribute.
    pub(crate) span: Span,
}

/// A `for each` clause: `for each a in (t.x, u.y), b in … until p`.
#[derive(Debug)]
pub(crate) struct ForEach {
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) until: Option<Body>,
    /// Whether this is the stamp of a chain, whose type is a time by default.
    pub(crate) chain: bool,
}

/// A parameter of a [`ForEach`].
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: Name,
    /// The paths to its field in each topic.
    pub(crate) fields: Vec<NodeId>,
}

/// The expression of a declaration, with the nodes `first..=root`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body {
    pub(crate) first: NodeId,
    /// The root; none if the expression could not be parsed, which has been reported.
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
    /// A name and the steps after it: `name.field[0]`.
    Path(Name, Vec<(Segment, Span)>),
    On(Name),
    /// The length of a field: `len(name.field)`.
    Length(Name, Vec<(Segment, Span)>),
    /// A field that may be a number as a text: `number(name.field)`.
    Number(Name, Vec<(Segment, Span)>),
    /// Conditions on the elements of an array: `any r in name.field: r < 0.2`.
    Elements(Box<ElementsSyntax>),
    /// A quantifier variable, by its index in [`Ast::variables`].
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
        /// Of an interval, whether its lower and its upper end belong to it.
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
        /// Indices in [`Ast::variables`].
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
