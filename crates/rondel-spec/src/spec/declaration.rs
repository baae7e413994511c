//! The declarations of a specification: properties, `for each` clauses, machines, chains and tests.

use rondel_event::{Path, Timestamp, TopicId, Value, ValueType, Verdict};

use super::{ExprId, SliceId, TimeModel};
use crate::attributes::CAUSE;
use crate::criterion::Criterion;

/// A property: a named formula that must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    /// The name, unique in the specification.
    pub name: String,
    /// The attributes `@name(value)` in order; the value is empty for a bare `@name`.
    pub attributes: Vec<(String, String)>,
    /// The formula: a boolean node.
    pub formula: ExprId,
    /// The time model.
    pub time: TimeModel,
    /// The `for each` clause, if there is one.
    pub slice: Option<SliceId>,
    /// Whether the robustness is computed too.
    pub robust: bool,
    /// Whether numbers are interpolated linearly. Between two messages at `t0 < t1` with the values `v0` and `v1`, a field
    /// of type `Int` or `Float` has the value `v0 + (v1 - v0) * (t - t0) / (t1 - t0)` at the time `t`. It is unknown
    /// before the first message, after the last one, and next to a message without a finite number. Integers and their
    /// arithmetic count as real numbers. A comparison is unknown if one of its fields is. It changes where its sides
    /// cross: at that time, if it is a whole nanosecond, otherwise at the next one. A comparison of a field with its
    /// [`Expr::Prev`](super::Expr::Prev) uses the values of the messages. Only for properties in dense time without `for each`.
    pub linear: bool,
    /// The premises of the implications that the formula is made of: `p` of `p -> q`, where the property demands
    /// that this holds throughout. None of them has future operators.
    pub premises: Vec<ExprId>,
    /// With `for each`, the topics that the text mentions only in parts which constants decide. Their messages are steps of
    /// every instance, too: a constant does not change what a step is.
    pub mentions: Vec<TopicId>,
    /// Demand of an `assert` on the formula over a whole recording; none for a property. Asserts follow all
    /// properties.
    pub criterion: Option<Criterion>,
    /// Number of its start: 0 with the first message of the monitor, greater if it joined a monitor that already had
    /// state. Properties of different generations share no state, as they have seen different messages.
    pub generation: u32,
}

impl Property {
    /// Returns a property that counts steps, without `for each`.
    pub fn new(name: impl Into<String>, formula: ExprId) -> Property {
        Property {
            name: name.into(),
            attributes: Vec::new(),
            formula,
            time: TimeModel::Steps,
            slice: None,
            robust: false,
            linear: false,
            premises: Vec::new(),
            mentions: Vec::new(),
            criterion: None,
            generation: 0,
        }
    }

    /// The name of the property whose violations mute those of this one: the value of `@because_of`.
    pub fn because_of(&self) -> Option<&str> {
        let mut own = self.attributes.iter().rev().filter(|(name, _)| name == CAUSE);
        own.next().map(|(_, value)| value.as_str())
    }
}

/// A `for each` clause: one instance of each property for each combination of parameter values.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// The parameters, at least one.
    pub keys: Vec<Key>,
    /// The condition that ends an instance after the time point at which it is true: a boolean node.
    pub until: Option<ExprId>,
    /// The maximum number of simultaneous instances, if the specification sets one.
    pub limit: Option<u64>,
}

/// A parameter of a [`Slice`].
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// The name of the parameter.
    pub name: String,
    /// The type: `Bool`, `Int`, `Time`, `Duration` or `String`.
    pub value_type: ValueType,
    /// The field of the parameter in each topic, at most one per topic. All parameters of a slice have the same topics.
    /// Events of other topics affect every instance.
    pub fields: Vec<(TopicId, Path)>,
}

/// A state machine. At each time point (an event, or a deadline of its own) it takes at most one transition, the one
/// whose conditions hold. If two transitions are possible at once, the machine is ambiguous, which is an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The name, unique among properties.
    pub name: String,
    /// The states, at least one.
    pub states: Vec<State>,
    /// The index of the initial state.
    pub initial: u32,
    /// The variables.
    pub variables: Vec<Variable>,
    /// The transitions, in order of declaration.
    pub transitions: Vec<Transition>,
    /// The time model.
    pub time: TimeModel,
    /// The `for each` clause, if there is one.
    pub slice: Option<SliceId>,
}

impl Machine {
    /// Returns the guards of all transitions and the assigned values.
    pub fn conditions(&self) -> impl Iterator<Item = ExprId> + '_ {
        self.transitions
            .iter()
            .flat_map(|t| t.guard.into_iter().chain(t.assignments.iter().map(|(_, value)| *value)))
    }
}

/// A state of a [`Machine`].
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The name, unique in the machine.
    pub name: String,
    /// Whether the trace may end in this state. If no state is final, it may end in any state.
    pub is_final: bool,
}

/// A variable of a [`Machine`].
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// The name, unique in the machine.
    pub name: String,
    /// The initial value, whose type is the type of the variable.
    pub initial: Value,
}

/// A transition of a [`Machine`].
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    /// The source state.
    pub from: u32,
    /// The target state.
    pub to: u32,
    /// The guard: a boolean node, which must be true. Unknown does not count as true.
    pub guard: Option<ExprId>,
    /// The longest time since the state was entered, inclusive, in steps or nanoseconds.
    pub within: Option<u64>,
    /// The shortest time since the state was entered, exclusive, in steps or nanoseconds. Without a guard, the
    /// transition is taken as soon as this time has passed.
    pub after: Option<u64>,
    /// The assignments to variables, computed from the values before the transition.
    pub assignments: Vec<(u32, ExprId)>,
    /// The source text of the transition, for messages.
    pub text: String,
}

/// A chain of topics through which data flow, identified by a stamp.
///
/// A stamp *starts* with the first message of the first topic that carries it. It *reaches* each following topic with
/// the first message there that carries it, after it has reached the topic before; with the last topic it is
/// *complete*. A message of the last topic with a complete stamp is an *output* of the message that started the stamp.
/// A stamp is forgotten [`wait`](Chain::wait) after it starts.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// The name, unique among properties.
    pub name: String,
    /// The topics in order, at least two, with the field of the stamp in each.
    pub links: Vec<(TopicId, Path)>,
    /// The type of the stamp.
    pub value_type: ValueType,
    /// The latency bound in nanoseconds; none if the chain counts steps.
    pub within: Option<u64>,
    /// The time in nanoseconds after which a stamp is forgotten; if none, only the number of stamps is limited.
    pub wait: Option<u64>,
}

/// A measurement of a [`Chain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChainMeasure {
    /// The time from start to completion of the last complete stamp; unknown before the first.
    Latency,
    /// The longest time for which a message of the first topic has waited for an output of itself or of a later message;
    /// 0 if none waits.
    Reaction,
    /// The time since the message of which the last output is; unknown before the first output.
    Age,
}

/// A test of a specification.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// The name.
    pub name: String,
    /// The byte offset of the test in the text.
    pub offset: usize,
    /// The messages, in order of time.
    pub messages: Vec<TestMessage>,
    /// The end of the trace after the last message, if the test sets one.
    pub end: Option<Timestamp>,
    /// The expected verdicts.
    pub expectations: Vec<Expectation>,
}

/// A message of a [`Test`].
#[derive(Clone, Debug, PartialEq)]
pub struct TestMessage {
    /// The time of the message.
    pub time: Timestamp,
    /// The topic of the message.
    pub topic: TopicId,
    /// The content, as a JSON object.
    pub json: String,
}

/// An expectation of a [`Test`].
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The index of the property.
    pub property: u32,
    /// The parameter values of the instance; empty for any instance.
    pub keys: Vec<Value>,
    /// Whether the verdict must not occur.
    pub never: bool,
    /// The verdict.
    pub verdict: Verdict,
    /// The time of the verdict; if none, any time.
    pub at: Option<Timestamp>,
    /// The byte offset of the expectation in the text.
    pub offset: usize,
}
