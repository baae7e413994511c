//! The checked specification: the output of the front ends and the input of the engine.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::criterion::Criterion;
use crate::functions::FunctionId;
use crate::places::Places;
use rondel_event::{
    AddressPattern, Comparison, Condition, Countable, Path, Quantifier, Timestamp, TopicId, Value, ValueType,
    Verdict,
};

/// A parsed, resolved and typed specification: topics, and properties as nodes of one graph.
///
/// Each use of a `let` or `const` is a reference to a shared node. Nodes refer only to earlier nodes, so a single pass
/// in order visits all operands first and needs no recursion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// The topics in order of declaration, indexed by [`TopicId`]. The topics of [`events`](Spec::events) follow them.
    pub topics: Vec<Topic>,
    /// For each of the last topics the declared topic whose [events](TopicEvent) it carries: see [`Spec::events_of`].
    pub events: Vec<TopicId>,
    /// For each topic behind those the topic whose messages it carries element by element. A front end adds none; the engine
    /// gives them to the instances of a `for each` over the elements of an array.
    pub elements: Vec<TopicId>,
    /// The properties in order of declaration.
    pub properties: Vec<Property>,
    /// All nodes, indexed by [`ExprId`].
    pub nodes: Vec<Expr>,
    /// The `for each` clauses of properties and machines, indexed by [`SliceId`].
    pub slices: Vec<Slice>,
    /// The machines, indexed by [`MachineId`]. Each also has a property of its name.
    pub machines: Vec<Machine>,
    /// The chains, indexed by [`ChainId`]. Each also has a property of its name.
    pub chains: Vec<Chain>,
    /// The tests of the specification.
    pub tests: Vec<Test>,
    /// The source locations of the nodes.
    pub places: Places,
}

/// The time model of a property: how it measures time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TimeModel {
    /// Each event is one step; bounds count steps.
    #[default]
    Steps,
    /// Bounds are nanoseconds between events; formulas have a value only at events.
    Points,
    /// Bounds are nanoseconds; a field holds its value until the next message, the arrival of a message lasts for one
    /// instant, and formulas have a value at every time point, including between events.
    Dense,
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

/// The index of a [`Slice`] in a [`Spec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SliceId(pub u32);

/// The index of a [`Machine`] in a [`Spec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MachineId(pub u32);

/// The index of a [`Chain`] in a [`Spec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChainId(pub u32);

/// The identifier of a quantifier variable, unique in the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VariableId(pub u32);

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

/// A topic of a specification.
#[derive(Clone, Debug, PartialEq)]
pub struct Topic {
    /// The name in formulas.
    pub name: String,
    /// The name on the network, by default the same as `name`.
    pub address: String,
    /// The name of the message type, if the specification declares it.
    pub type_name: Option<String>,
    /// The schema, if the specification declares it. Without a schema, the types of fields are inferred from their uses.
    pub schema: Option<Schema>,
}

impl Topic {
    /// The address, if it has parameters. They are fields of the topic: strings that the name of a message's topic
    /// gives.
    ///
    /// ```
    /// let spec = rondel_spec::parse("topic pose \"fleet/{robot}/pose\" property p = pose.robot != \"r1\"").spec.unwrap();
    /// let pattern = spec.topics[0].pattern().unwrap();
    /// assert_eq!(pattern.captures("fleet/r7/pose"), Some(vec!["r7"]));
    /// ```
    pub fn pattern(&self) -> Option<AddressPattern> {
        AddressPattern::parse(&self.address).ok().flatten()
    }
}

/// The fields of an object, in order of declaration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// The names and types.
    pub fields: Vec<(String, SchemaType)>,
}

/// The type of a field in a schema.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaType {
    /// A single value.
    Value(ValueType),
    /// An object with fields of its own.
    Object(Schema),
    /// An array whose elements all have one type, and their number where the type fixes it.
    Array(Box<SchemaType>, Option<u32>),
    /// A time or duration that is an object of seconds and nanoseconds: it can be read as one, or by its fields.
    Stamp(ValueType, Schema),
    /// Something whose fields are not listed: its uses decide their types.
    Open,
}

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
    /// [`Expr::Prev`] uses the values of the messages. Only for properties in dense time without `for each`.
    pub linear: bool,
    /// The premises of the implications that the formula is made of: `p` of `p -> q`, where the property asks that
    /// this holds throughout. None of them has future operators.
    pub premises: Vec<ExprId>,
    /// With `for each`, the topics that the text mentions only in parts which constants decide. Their messages are steps of
    /// every instance, too: a constant does not change what a step is.
    pub mentions: Vec<TopicId>,
    /// What an `assert` demands of the formula over a whole recording; none for a property. Asserts follow all
    /// properties.
    pub criterion: Option<Criterion>,
    /// When it began, as a number: 0 with the first message of the monitor, a greater one where it joined a monitor that
    /// had state already. Properties of different generations share no state, as they have seen different messages.
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
}

/// The index of a node in a [`Spec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExprId(pub u32);

impl ExprId {
    /// Returns the index as a `usize`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The bounds `lower..=upper` of a temporal operator, as distances from the present in steps or nanoseconds, depending
/// on the [`TimeModel`]. Without `upper`, a past operator reaches back to the beginning; future operators always have
/// an upper bound. If `lower > upper`, the interval is empty: `once` is false and `historically` is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// The smallest distance.
    pub lower: u64,
    /// The largest distance; none for an unbounded past.
    pub upper: Option<u64>,
}

impl Bounds {
    /// The whole past with the present.
    pub const ALL: Bounds = Bounds { lower: 0, upper: None };
}

/// An expression. Its value is one of Kleene's three truth values (true, false, unknown), or a value or unknown.
///
/// Types are resolved: both operands of arithmetic are `Int` or both are `Float` (with an explicit
/// [`Expr::ToFloat`]), and both operands of a comparison have the same type. A position (step) is one event on any
/// topic.
#[derive(Clone, Debug, PartialEq, Hash)]
pub enum Expr {
    /// A constant.
    Literal(Value),
    /// The current value of a field: the value in the last message of the topic that carried it. Unknown before the
    /// first such message, and while the last one had null or another type there.
    Field {
        /// The topic.
        topic: TopicId,
        /// The path in the message.
        path: Path,
        /// The type.
        value_type: ValueType,
    },
    /// True at the positions whose own message carries the field. Never unknown.
    Carried {
        /// The topic.
        topic: TopicId,
        /// The path in the message.
        path: Path,
    },
    /// Whether any or all elements of an array meet the conditions, or how many do, or a measure of the elements; the
    /// value holds like that of a field.
    Elements {
        /// The topic.
        topic: TopicId,
        /// The path of the array in the message.
        path: Path,
        /// Whether any or all elements must meet the conditions, or their number is wanted.
        quantifier: Quantifier,
        /// The conditions.
        conditions: Vec<Condition>,
    },
    /// The length of an array or a string, as an `Int`: the number of elements or of characters; the value holds like
    /// that of a field.
    Length {
        /// The topic.
        topic: TopicId,
        /// The path in the message.
        path: Path,
        /// The kind that the field is declared with, if it is.
        of: Option<Countable>,
    },
    /// A number that may be written as a text, as a `Float`; the value holds like that of a field. Unknown if the value is
    /// neither a number nor a text that is one.
    Number {
        /// The topic.
        topic: TopicId,
        /// The path in the message.
        path: Path,
    },
    /// Whether a number is NaN; the value holds like that of a field, which is unknown where it is NaN. Unknown before
    /// the first message with a number, and while the last one had null or another type there.
    IsNan {
        /// The topic.
        topic: TopicId,
        /// The path in the message.
        path: Path,
    },
    /// True at the positions whose message is on this topic. Never unknown.
    On(TopicId),
    /// An `Int` converted to `Float`.
    ToFloat(ExprId),
    /// Arithmetic on one number. Unknown on `Int` overflow.
    Unary(UnaryOp, ExprId),
    /// Arithmetic on two numbers of one type. Unknown on `Int` overflow and on division of an `Int` by zero; `Float`
    /// follows IEEE 754.
    Binary(BinaryOp, ExprId, ExprId),
    /// A comparison of two operands of one type. Only `Equal` and `NotEqual` compare `Bool` and `String`. Unknown if an
    /// operand is unknown.
    Compare(Comparison, ExprId, ExprId),
    /// Whether the first string starts with the second.
    StartsWith(ExprId, ExprId),
    /// A function of the table [`FUNCTIONS`](crate::FUNCTIONS), with its one or two arguments.
    Call(FunctionId, ExprId, Option<ExprId>),
    /// `if condition then a else b`, with branches of one type. Unknown if the condition is unknown.
    If(ExprId, ExprId, ExprId),
    /// The value of the operand just before the last message on any topic that it mentions (at the position before that
    /// message); unknown before the second such message. An operand that mentions no topic keeps its value.
    Prev(ExprId),
    /// Negation.
    Not(ExprId),
    /// Conjunction.
    And(ExprId, ExprId),
    /// Disjunction.
    Or(ExprId, ExprId),
    /// True if the operand is true; false if it is false *or unknown*. Converts to the two-valued logic of Reelay, where
    /// a pair is false if its field was never received.
    Definitely(ExprId),
    /// The operand at the previous position; false at the first position.
    Previously(ExprId),
    /// Whether the operand held at some position within the bounds.
    Once(Bounds, ExprId),
    /// Whether the operand held at every position within the bounds; true if there is no such position.
    Historically(Bounds, ExprId),
    /// Whether the second operand held at some position within the bounds, and the first at every position after it, up
    /// to and including the present.
    Since(Bounds, ExprId, ExprId),
    /// The operand at the next position, in steps and points only. After the last position there is none.
    Next(ExprId),
    /// Whether the operand holds at some position within the bounds ahead.
    Eventually(Bounds, ExprId),
    /// Whether the operand holds at every position within the bounds ahead.
    Always(Bounds, ExprId),
    /// Whether the second operand holds at some position within the bounds ahead, and the first at every position from
    /// the present until then, exclusive.
    Until(Bounds, ExprId, ExprId),
    /// An aggregate of the samples of a window: the events on one of `topics` less than `over` steps or nanoseconds ago
    /// (the far end is exclusive).
    Window {
        /// The aggregate function.
        aggregate: Aggregate,
        /// The length of the window, at least 1.
        over: u64,
        /// The operand: a boolean for `Count`, which counts samples where it is certainly true, otherwise a number. None for
        /// `Rate` and for `Count` of the samples themselves.
        operand: Option<ExprId>,
        /// The topics of the samples, in order: those that the operand mentions, if there is an operand.
        topics: Vec<TopicId>,
    },
    /// The time since the last message of the topic, as a `Duration`; unknown before the first. Exact at every time point
    /// in a comparison with a constant; otherwise the value at the last event.
    Age(TopicId),
    /// The arrival time minus the source time of the last message of the topic, as a `Duration`; unknown before the first
    /// message, and if the arrival time is unknown.
    Latency(TopicId),
    /// The difference between the last two periods of the topic, as a `Duration`; unknown before the third message.
    Jitter(TopicId),
    /// A measurement of a chain, as a `Duration`. In a comparison with a constant, age and reaction are exact at every time
    /// point; otherwise they have the value at the last event. Not allowed in a property with a slice.
    Chain(ChainId, ChainMeasure),
    /// The value of the `n`-th parameter of the slice.
    Key(u32, ValueType),
    /// The value of a quantifier variable.
    Variable(VariableId, ValueType),
    /// True at the positions whose message is on the topic and has the value of the variable at every path.
    Bind {
        /// The topic.
        topic: TopicId,
        /// The paths in the message, with the variables and their types.
        fields: Vec<(Path, VariableId, ValueType)>,
    },
    /// Whether the operand holds for some value of the variable.
    Exists(VariableId, ExprId),
    /// Whether the operand holds for every value of the variable.
    ForAll(VariableId, ExprId),
    /// Whether the machine is in one of these states after the transition at this time point.
    InState(MachineId, Vec<u32>),
    /// Whether two transitions of the machine were possible at once, now or earlier.
    Ambiguous(MachineId),
    /// The value of a variable of the machine before the transition at this time point.
    MachineVariable(MachineId, u32, ValueType),
}

/// An aggregate function over a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aggregate {
    /// The number of samples: an `Int`.
    Count,
    /// The sum, of the type of the operand; 0 if there are no samples.
    Sum,
    /// The mean: a `Float`; unknown if there are no samples.
    Mean,
    /// The minimum, of the type of the operand; unknown if there are no samples.
    Min,
    /// The maximum, of the type of the operand; unknown if there are no samples.
    Max,
    /// The number of samples per second: a `Float`; not available in steps.
    Rate,
    /// The number of different values: an `Int`.
    Distinct,
    /// The quantile, in millionths of all samples: a `Float`; unknown if there are no samples.
    Percentile(u32),
    /// The quantile of a half: a `Float`; unknown if there are no samples.
    Median,
    /// The standard deviation of the population: a `Float`; unknown if there are no samples.
    Stddev,
    /// The value of the oldest sample, of the type of the operand; unknown if there are no samples.
    First,
    /// The value of the newest sample, of the type of the operand; unknown if there are no samples.
    Last,
    /// The difference between the newest and the oldest sample by the seconds between them: a `Float`; unknown if they
    /// are of one time. Not available in steps.
    Derivative,
    /// The area below the lines between the samples, in seconds: a `Float`; 0 if there are no samples. Not available in
    /// steps.
    Integral,
}

impl Aggregate {
    /// Returns the name in the language.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Aggregate::Count => "count",
            Aggregate::Sum => "sum",
            Aggregate::Mean => "mean",
            Aggregate::Min => "min",
            Aggregate::Max => "max",
            Aggregate::Rate => "rate",
            Aggregate::Distinct => "distinct",
            Aggregate::Percentile(_) => "percentile",
            Aggregate::Median => "median",
            Aggregate::Stddev => "stddev",
            Aggregate::First => "first",
            Aggregate::Last => "last",
            Aggregate::Derivative => "derivative",
            Aggregate::Integral => "integral",
        }
    }

    /// Returns the percentage, as it is written after the operand.
    #[must_use]
    pub fn percentage(self) -> Option<f64> {
        match self {
            // Of a whole number of millionths, so that few digits stay few.
            Aggregate::Percentile(part) => Some(f64::from(part) / 10_000.0),
            _ => None,
        }
    }

    /// Whether samples that are NaN are left out. Of the others a sample that is missing makes another value.
    pub fn leaves_out_nan(self) -> bool {
        use Aggregate::{Max, Mean, Median, Min, Percentile, Stddev};
        matches!(self, Min | Max | Mean | Median | Percentile(_) | Stddev)
    }

    /// Returns whether it is computed from floats, whatever the type of its operand is.
    pub(crate) fn is_of_floats(self) -> bool {
        matches!(
            self,
            Aggregate::Mean
                | Aggregate::Percentile(_)
                | Aggregate::Median
                | Aggregate::Stddev
                | Aggregate::Derivative
                | Aggregate::Integral
        )
    }

    /// Returns whether it is per second or of seconds, so that it has no meaning in steps.
    pub(crate) fn needs_time(self) -> bool {
        matches!(self, Aggregate::Rate | Aggregate::Derivative | Aggregate::Integral)
    }
}

/// An arithmetic operator on one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-x`
    Negate,
    /// `abs(x)`
    Abs,
}

/// An arithmetic operator on two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `a + b`
    Add,
    /// `a - b`
    Subtract,
    /// `a * b`
    Multiply,
    /// `a / b`; integer division truncates towards zero
    Divide,
    /// `a % b`, with the sign of `a`
    Remainder,
    /// `min(a, b)`; NaN if an operand is NaN
    Min,
    /// `max(a, b)`; NaN if an operand is NaN
    Max,
}

/// The operands of an expression from left to right, as references of its own kind.
macro_rules! operands {
    ($expression:expr) => {
        match $expression {
            Expr::Literal(_)
            | Expr::Field { .. }
            | Expr::Carried { .. }
            | Expr::Elements { .. }
            | Expr::Length { .. }
            | Expr::Number { .. }
            | Expr::IsNan { .. }
            | Expr::On(_)
            | Expr::Window { operand: None, .. }
            | Expr::Age(_)
            | Expr::Latency(_)
            | Expr::Jitter(_)
            | Expr::Chain(..)
            | Expr::Key(..)
            | Expr::Variable(..)
            | Expr::Bind { .. }
            | Expr::InState(..)
            | Expr::Ambiguous(_)
            | Expr::MachineVariable(..) => [None, None, None],
            Expr::ToFloat(a)
            | Expr::Unary(_, a)
            | Expr::Prev(a)
            | Expr::Not(a)
            | Expr::Definitely(a)
            | Expr::Previously(a)
            | Expr::Once(_, a)
            | Expr::Historically(_, a)
            | Expr::Next(a)
            | Expr::Eventually(_, a)
            | Expr::Always(_, a)
            | Expr::Exists(_, a)
            | Expr::ForAll(_, a)
            | Expr::Window { operand: Some(a), .. } => [Some(a), None, None],
            Expr::Binary(_, a, b)
            | Expr::Compare(_, a, b)
            | Expr::StartsWith(a, b)
            | Expr::And(a, b)
            | Expr::Or(a, b)
            | Expr::Since(_, a, b)
            | Expr::Until(_, a, b) => [Some(a), Some(b), None],
            Expr::Call(_, a, b) => [Some(a), b.into(), None],
            Expr::If(a, b, c) => [Some(a), Some(b), Some(c)],
        }
    };
}

impl Expr {
    /// Returns the operands from left to right.
    pub fn operands(&self) -> impl Iterator<Item = ExprId> + use<> {
        operands!(self).map(|operand| operand.copied()).into_iter().flatten()
    }

    /// Returns the operands, to be replaced.
    pub fn operands_mut(&mut self) -> impl Iterator<Item = &mut ExprId> {
        operands!(self).into_iter().flatten()
    }

    /// Returns the topic that the node itself reads.
    pub fn topic(&self) -> Option<TopicId> {
        match self {
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
            | Expr::Bind { topic, .. } => Some(*topic),
            _ => None,
        }
    }
}

impl Machine {
    /// Returns the guards of all transitions and the assigned values.
    pub fn conditions(&self) -> impl Iterator<Item = ExprId> + '_ {
        self.transitions
            .iter()
            .flat_map(|t| t.guard.into_iter().chain(t.assignments.iter().map(|(_, value)| *value)))
    }
}

impl Spec {
    /// Returns for each property the name that stands in addresses on networks: its own; of an assert whose name is
    /// its text, `assert_1` and so on by its place among the asserts.
    ///
    /// ```
    /// let text = "topic a property p = a.v > 0 assert always p assert mostly = share(p) >= 0.9 assert ever p";
    /// let spec = rondel_spec::parse(text).spec.unwrap();
    /// assert_eq!(spec.address_names(), ["p", "assert_1", "mostly", "assert_3"]);
    /// ```
    pub fn address_names(&self) -> Vec<String> {
        let mut number = 0;
        let name = |property: &Property| {
            if property.criterion.is_none() {
                return property.name.clone();
            }
            number += 1;
            // A text has spaces or parentheses.
            if property.name.chars().all(|c| c.is_alphanumeric() || c == '_') {
                return property.name.clone();
            }
            let mut name = format!("assert_{number}");
            while self.properties.iter().any(|other| other.name == name) {
                name.push('_');
            }
            name
        };
        self.properties.iter().map(name).collect()
    }

    /// Returns the topics that a property mentions: in its formula, in the `until` of its `for each`, and in parts of both
    /// that constants decide.
    pub fn topics_of_property(&self, property: &Property) -> Vec<TopicId> {
        let until = property.slice.and_then(|slice| self.slices.get(slice.0 as usize)?.until);
        let roots = [Some(property.formula), until].into_iter().flatten();
        let mut topics: Vec<TopicId> = roots.flat_map(|root| self.topics_of(root)).collect();
        topics.extend(property.mentions.iter().filter(|topic| topic.index() < self.topics.len()));
        topics.sort_unstable();
        topics.dedup();
        topics
    }

    /// Returns the topics that a node mentions, directly or through its operands, in order of declaration.
    ///
    /// ```
    /// let text = "topic a topic b let x = a.v + b.v property p = x > 0 and on(b)";
    /// let spec = rondel_spec::parse(text).spec.unwrap();
    /// let topics = spec.topics_of(spec.properties[0].formula);
    /// assert_eq!(topics.len(), 2);
    /// ```
    pub fn topics_of(&self, id: ExprId) -> Vec<TopicId> {
        let mut seen = HashSet::from([id]);
        let mut open = vec![id];
        let mut topics = BTreeSet::new();
        while let Some(id) = open.pop() {
            let node = &self.nodes[id.index()];
            topics.extend(node.topic());
            if let Expr::Window { topics: samples, .. } = node {
                topics.extend(samples);
            }
            if let Expr::Chain(chain, _) = node {
                let chain = self.chains.get(chain.0 as usize);
                topics.extend(chain.into_iter().flat_map(|c| &c.links).map(|(topic, _)| *topic));
            }
            if let Expr::InState(machine, _) | Expr::Ambiguous(machine) | Expr::MachineVariable(machine, ..) =
                node
            {
                let machine = self.machines.get(machine.0 as usize);
                let parts = machine.into_iter().flat_map(Machine::conditions);
                open.extend(parts.filter(|part| seen.insert(*part)));
            }
            open.extend(node.operands().filter(|o| seen.insert(*o)));
        }
        topics.into_iter().collect()
    }

    /// Returns the type of a node.
    pub fn value_type(&self, id: ExprId) -> ValueType {
        // The type of arithmetic depends on both operands, so they are collected first and typed in order.
        let mut needed = BTreeSet::from([id]);
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            let node = &self.nodes[id.index()];
            open.extend(node.typed_by().filter(|operand| needed.insert(*operand)));
        }
        let mut types = HashMap::new();
        for id in needed {
            let value_type = self.nodes[id.index()].type_with(|operand| types[&operand]);
            types.insert(id, value_type);
        }
        types[&id]
    }
}

impl Expr {
    /// Returns the operands that determine the type.
    fn typed_by(&self) -> impl Iterator<Item = ExprId> + use<> {
        let operands = match self {
            Expr::Binary(_, a, b) => [Some(*a), Some(*b)],
            Expr::Unary(_, a)
            | Expr::Prev(a)
            | Expr::If(_, a, _)
            | Expr::Window {
                aggregate:
                    Aggregate::Sum | Aggregate::Min | Aggregate::Max | Aggregate::First | Aggregate::Last,
                operand: Some(a),
                ..
            } => [Some(*a), None],
            _ => [None, None],
        };
        operands.into_iter().flatten()
    }

    /// Returns the type, given the types of the operands.
    pub(crate) fn type_with(&self, of: impl Fn(ExprId) -> ValueType) -> ValueType {
        match self {
            Expr::Literal(value) => value.value_type(),
            Expr::Field { value_type, .. }
            | Expr::Key(_, value_type)
            | Expr::Variable(_, value_type)
            | Expr::MachineVariable(_, _, value_type) => *value_type,
            Expr::ToFloat(_) | Expr::Number { .. } | Expr::Window { aggregate: Aggregate::Rate, .. } => {
                ValueType::Float
            }
            Expr::Window { aggregate, .. } if aggregate.is_of_floats() => ValueType::Float,
            Expr::Elements { quantifier, .. } => quantifier.value_type(),
            Expr::Length { .. }
            | Expr::Window { aggregate: Aggregate::Count | Aggregate::Distinct, .. }
            | Expr::Window { operand: None, .. } => ValueType::Int,
            Expr::Age(_) | Expr::Latency(_) | Expr::Jitter(_) | Expr::Chain(..) => ValueType::Duration,
            Expr::Binary(op, a, b) => binary_type(*op, of(*a), of(*b)).unwrap_or(of(*a)),
            Expr::Call(function, ..) => function.result(),
            Expr::Unary(_, a) | Expr::Prev(a) | Expr::If(_, a, _) | Expr::Window { operand: Some(a), .. } => {
                of(*a)
            }
            _ => ValueType::Bool,
        }
    }
}

/// Returns the type of arithmetic on two values, if it is defined: on two numbers of one type, and on times and
/// durations as their units allow. A duration is multiplied and divided by an `Int`; the quotient of two durations is a
/// `Float`.
pub fn binary_type(op: BinaryOp, left: ValueType, right: ValueType) -> Option<ValueType> {
    use BinaryOp::{Add, Divide, Max, Min, Multiply, Remainder, Subtract};
    use ValueType::{Duration, Float, Int, Time};
    Some(match (op, left, right) {
        (_, Int, Int) => Int,
        (_, Float, Float) => Float,
        (Subtract, Time, Time) => Duration,
        (Add | Subtract, Time, Duration) | (Add, Duration, Time) => Time,
        (Add | Subtract | Remainder | Min | Max, Duration, Duration) => Duration,
        (Min | Max, Time, Time) => Time,
        (Divide, Duration, Duration) => Float,
        (Multiply | Divide, Duration, Int) | (Multiply, Int, Duration) => Duration,
        _ => return None,
    })
}
