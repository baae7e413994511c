//! The declarations of the syntax tree.

use std::collections::HashMap;

use rondel_event::{Comparison, TopicEvent, Value, ValueType, Verdict};

use super::{Bound, Name, Node, NodeId};
use crate::definition::Definition;
use crate::diagnostic::Span;
use crate::spec::{ChainMeasure, Schema};

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
    /// The index of its `for each` in [`Ast::for_eaches`](super::Ast::for_eaches).
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
    /// The further bounds.
    pub(crate) bounds: Vec<ChainBound>,
}

/// A further bound of a [`Chain`], which becomes a property of its own.
#[derive(Debug)]
pub(crate) struct ChainBound {
    /// The name of the property.
    pub(crate) name: Name,
    pub(crate) measure: ChainMeasure,
    pub(crate) bound: Bound,
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

/// Demand of an [`Assert`].
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
    /// The publisher of an event that has one.
    pub(crate) publisher: Option<Content>,
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

impl Attribute {
    /// Returns the value; none for a bare `@name`.
    pub(crate) fn written(&self) -> Option<&str> {
        self.argument.map(|_| self.value.as_str())
    }
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
