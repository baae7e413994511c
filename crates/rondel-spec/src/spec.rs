//! The checked specification: what the front ends produce and the engine compiles.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::places::Places;
use rondel_event::{Comparison, Condition, Path, Quantifier, Timestamp, TopicId, Value, ValueType, Verdict};

/// A specification that has been parsed, resolved and typed: topics, and properties as nodes of
/// one graph.
///
/// Names are gone: every `let` and `const` stands where it was used, as a reference to one shared
/// node. Nodes refer only to nodes before them, so that whoever walks them in order has seen all
/// operands and needs no recursion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// The topics in order of declaration; a [`TopicId`] is an index into this.
    pub topics: Vec<Topic>,
    /// The properties in order of declaration.
    pub properties: Vec<Property>,
    /// All nodes; an [`ExprId`] is an index into this.
    pub nodes: Vec<Expr>,
    /// The ways in which properties and machines are divided by key; a [`SliceId`] is an index into
    /// this.
    pub slices: Vec<Slice>,
    /// The machines; a [`MachineId`] is an index into this. Each also has a property of its name.
    pub machines: Vec<Machine>,
    /// The chains; a [`ChainId`] is an index into this. Each also has a property of its name.
    pub chains: Vec<Chain>,
    /// The tests written in the specification.
    pub tests: Vec<Test>,
    /// Where the nodes come from.
    pub places: Places,
}

/// How a property measures time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TimeModel {
    /// Every event is one step; bounds count steps.
    #[default]
    Steps,
    /// Bounds are nanoseconds between the times of events; there is truth only at events.
    Points,
    /// Bounds are nanoseconds; a field holds its value until the next, an update is an instant, and
    /// there is truth at every time, also between events.
    Dense,
}

/// A way to divide events by key: one instance of every property in it for each combination of
/// values of the keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// The keys, at least one.
    pub keys: Vec<Key>,
    /// An instance ends after the moment at which this is true: a node of boolean type.
    pub until: Option<ExprId>,
    /// How many instances there may be at a time; nothing where the specification does not say.
    pub limit: Option<u64>,
}

/// One key of a [`Slice`].
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// The name of its variable.
    pub name: String,
    /// `Bool`, `Int`, `Time`, `Duration` or `String`.
    pub value_type: ValueType,
    /// Where each topic has it: at most one place for a topic. All keys of a slice have the same
    /// topics. Events of other topics concern every instance.
    pub fields: Vec<(TopicId, Path)>,
}

/// A [`Slice`] of a [`Spec`], by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SliceId(pub u32);

/// A [`Machine`] of a [`Spec`], by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MachineId(pub u32);

/// A [`Chain`] of a [`Spec`], by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChainId(pub u32);

/// A variable that a quantifier binds, unique in the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VariableId(pub u32);

/// A state machine. It takes at most one transition at a moment (an event, or a deadline of its
/// own): the one whose conditions are met. Two that are met at once are an error of the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The name, unique among properties.
    pub name: String,
    /// The states; at least one.
    pub states: Vec<State>,
    /// The position of the state that it begins in.
    pub initial: u32,
    /// Its data.
    pub variables: Vec<Variable>,
    /// The transitions, in order of declaration.
    pub transitions: Vec<Transition>,
    /// How it measures time.
    pub time: TimeModel,
    /// How it is divided by key.
    pub slice: Option<SliceId>,
}

/// A state of a [`Machine`].
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The name, unique in the machine.
    pub name: String,
    /// Whether the trace may end in it. Where no state is final, it may end in any.
    pub is_final: bool,
}

/// Data of a [`Machine`].
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// The name, unique in the machine.
    pub name: String,
    /// The value that it begins with; its type is that of the variable.
    pub initial: Value,
}

/// A transition of a [`Machine`].
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    /// The state that it leaves.
    pub from: u32,
    /// The state that it enters.
    pub to: u32,
    /// What must be true: a node of boolean type. Unknown is not true.
    pub guard: Option<ExprId>,
    /// Only so long after the state was entered (this long included), in steps or nanoseconds.
    pub within: Option<u64>,
    /// Only more than so long after the state was entered, in steps or nanoseconds. Without a guard
    /// it is taken by itself as soon as that is so.
    pub after: Option<u64>,
    /// New values of variables, computed from those before the transition.
    pub assignments: Vec<(u32, ExprId)>,
    /// The transition as it is written, for messages.
    pub text: String,
}

/// A chain of topics, through which data go that are told by a stamp.
///
/// A stamp *sets out* with the first message of the first topic that has it. It *reaches* another topic
/// with the first message there that has it, after it has reached the topic before; with the last topic
/// it has *come out*. A message of the last topic whose stamp has come out is an *output*; it stems from
/// the message with which the stamp set out. A stamp is forgotten [`wait`](Chain::wait) after it set out.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// The name, unique among properties.
    pub name: String,
    /// The topics in their order, at least two, and where the messages of each have the stamp.
    pub links: Vec<(TopicId, Path)>,
    /// The type of the stamp: that of a key.
    pub value_type: ValueType,
    /// In how many nanoseconds a stamp should come out; nothing where steps are counted.
    pub within: Option<u64>,
    /// How many nanoseconds after it set out a stamp is forgotten; without it only so many are kept.
    pub wait: Option<u64>,
}

/// What is measured of a [`Chain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChainMeasure {
    /// How long the stamp took that came out last; unknown before the first.
    Latency,
    /// How long the message waits that waits longest for an output that stems from it or from a later one;
    /// 0 where none waits.
    Reaction,
    /// How long ago the message was that the last output stems from; unknown before the first.
    Age,
}

/// A test written in a specification.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// What it is called.
    pub name: String,
    /// Where it begins in the text, as an offset in bytes.
    pub offset: usize,
    /// The messages, in order.
    pub messages: Vec<TestMessage>,
    /// The time up to which the trace goes on after the last message, if that is said.
    pub end: Option<Timestamp>,
    /// What must come out.
    pub expectations: Vec<Expectation>,
}

/// A message of a [`Test`].
#[derive(Clone, Debug, PartialEq)]
pub struct TestMessage {
    /// When it comes.
    pub time: Timestamp,
    /// On which topic.
    pub topic: TopicId,
    /// Its content, as a JSON object.
    pub json: String,
}

/// What a [`Test`] asks of a property.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The property, by its position.
    pub property: u32,
    /// The values of the keys, where it is divided by key and one instance is meant.
    pub keys: Vec<Value>,
    /// Whether this is expected not to happen.
    pub never: bool,
    /// The verdict.
    pub verdict: Verdict,
    /// The verdict at this time; without it, that of some time.
    pub at: Option<Timestamp>,
    /// Where it begins in the text, as an offset in bytes.
    pub offset: usize,
}

/// A topic that a specification reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Topic {
    /// The name that formulas use.
    pub name: String,
    /// The name on the network; the same as `name` where none is given.
    pub address: String,
    /// The name of the message type, where one is given.
    pub type_name: Option<String>,
    /// The schema, where one is written in place; fields of a topic without schema take the type
    /// that their use asks for.
    pub schema: Option<Schema>,
}

/// The fields of a message, in order of declaration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// Names and types.
    pub fields: Vec<(String, SchemaType)>,
}

/// The type of a field in a schema.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaType {
    /// A single value.
    Value(ValueType),
    /// An object with fields of its own.
    Object(Schema),
    /// An array whose elements all have one type.
    Array(Box<SchemaType>),
}

/// One property: a name and the formula that must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    /// The name, unique in the specification.
    pub name: String,
    /// `@name(value)` before the property, in order; the value is empty for a bare `@name`.
    pub attributes: Vec<(String, String)>,
    /// The formula: a node of boolean type.
    pub formula: ExprId,
    /// How its bounds are measured.
    pub time: TimeModel,
    /// How it is divided by key.
    pub slice: Option<SliceId>,
    /// Whether its robustness is asked for too.
    pub robust: bool,
    /// Whether numbers run straight: a field of type `Int` or `Float` has, between two messages that carry it, at
    /// `t0 < t1` with the values `v0` and `v1`, at the time `t` the value `v0 + (v1 - v0) * (t - t0) / (t1 - t0)`.
    /// It is unknown before the first such message, after the last one, and between two of which one had no finite
    /// number there. Integers count as real numbers, and so does their arithmetic. A comparison is unknown where one
    /// of its fields is. It changes where its sides cross: just then, if that is at a whole nanosecond, and else at
    /// the next one. Of a `Compare` of a field with [`Expr::Prev`] of it the values are those of the messages.
    /// Only of dense properties that are not divided.
    pub linear: bool,
}

impl Property {
    /// A property in steps, undivided.
    pub fn new(name: impl Into<String>, formula: ExprId) -> Property {
        Property {
            name: name.into(),
            attributes: Vec::new(),
            formula,
            time: TimeModel::Steps,
            slice: None,
            robust: false,
            linear: false,
        }
    }
}

/// A node of a [`Spec`], by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExprId(pub u32);

impl ExprId {
    /// The position as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Bounds of a temporal operator, in steps or nanoseconds from the present, as the property's
/// [`TimeModel`] says: `lower..=upper`. `upper: None` reaches back to the beginning; operators of the
/// future always have an upper bound. `lower > upper` is an empty interval: nothing is
/// in it, `once` over it is false and `historically` true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// The nearest step that counts.
    pub lower: u64,
    /// The farthest step that counts.
    pub upper: Option<u64>,
}

impl Bounds {
    /// From the present back to the beginning.
    pub const ALL: Bounds = Bounds { lower: 0, upper: None };
}

/// One node. The truth values are Kleene's three: true, false, unknown.
///
/// Types are settled: operands of arithmetic are both `Int` or both `Float` ([`Expr::ToFloat`] is
/// written out), those of a comparison have one and the same type. A position (step) is one event,
/// whatever its topic.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A constant.
    Literal(Value),
    /// The value that the field has now: that of the last message of the topic that carried it.
    /// Unknown before the first, and while the last one had null or another type there.
    Field {
        /// The topic.
        topic: TopicId,
        /// Where in the message.
        path: Path,
        /// Its type.
        value_type: ValueType,
    },
    /// True exactly at the positions whose own message carries the field. Never unknown.
    Carried {
        /// The topic.
        topic: TopicId,
        /// Where in the message.
        path: Path,
    },
    /// Whether any or all elements of an array meet all conditions; held like a field.
    Elements {
        /// The topic.
        topic: TopicId,
        /// Where in the message the array is.
        path: Path,
        /// Any or all.
        quantifier: Quantifier,
        /// The conditions.
        conditions: Vec<Condition>,
    },
    /// True exactly at the positions whose message came on this topic. Never unknown.
    On(TopicId),
    /// An `Int` as `Float`.
    ToFloat(ExprId),
    /// Arithmetic on one number. `Int` overflow is unknown.
    Unary(UnaryOp, ExprId),
    /// Arithmetic on two numbers of one type. `Int` overflow and division of an `Int` by zero are
    /// unknown; `Float` follows IEEE 754.
    Binary(BinaryOp, ExprId, ExprId),
    /// A comparison of two operands of one type. `Bool` and `String` are compared only with
    /// `Equal` and `NotEqual`. Unknown when an operand is.
    Compare(Comparison, ExprId, ExprId),
    /// Whether the first text begins with the second.
    StartsWith(ExprId, ExprId),
    /// `if condition then a else b`: both of one type. Unknown when the condition is.
    If(ExprId, ExprId, ExprId),
    /// The value that the operand had just before the most recent message on any of the topics
    /// that it mentions (at the position before that message); unknown before the second such
    /// message. Of an operand that mentions no topic: the operand itself. Keeps the type.
    Prev(ExprId),
    /// Negation.
    Not(ExprId),
    /// Conjunction.
    And(ExprId, ExprId),
    /// Disjunction.
    Or(ExprId, ExprId),
    /// True when the operand is true; false when it is false *or unknown*. Turns Kleene's logic
    /// into the two-valued one of Reelay, where a field never seen makes its pair false.
    Definitely(ExprId),
    /// The operand at the position before; false at the first position.
    Previously(ExprId),
    /// At some position within the bounds the operand held.
    Once(Bounds, ExprId),
    /// At every position within the bounds the operand held; true where there is none.
    Historically(Bounds, ExprId),
    /// At some position within the bounds the second operand held, and at every position after
    /// that one, up to and with the present, the first did.
    Since(Bounds, ExprId, ExprId),
    /// The operand at the position after; in steps and points only. There is none after the last.
    Next(ExprId),
    /// At some position within the bounds ahead the operand will hold.
    Eventually(Bounds, ExprId),
    /// At every position within the bounds ahead the operand will hold.
    Always(Bounds, ExprId),
    /// At some position within the bounds ahead the second operand will hold, and at every position
    /// before that one, from the present on, the first.
    Until(Bounds, ExprId, ExprId),
    /// A measurement over the samples of the last `over` steps or nanoseconds: the events on one of
    /// `topics` that are less than so long ago (the interval is open at its far end).
    Window {
        /// What is measured.
        aggregate: Aggregate,
        /// How long the window is; at least 1.
        over: u64,
        /// Of `Count` a truth that is counted where it is certainly true, of the others but `Rate` a
        /// number. Without it the samples themselves are counted.
        operand: Option<ExprId>,
        /// Where the samples come from, in order; the topics that the operand mentions, if there is one.
        topics: Vec<TopicId>,
    },
    /// How long ago the last message of the topic was, as a `Duration`; unknown before the first.
    /// Compared with a constant it is exact at every time, otherwise it is that of the last moment.
    Age(TopicId),
    /// Arrival minus source time of the last message of the topic, as a `Duration`; unknown before the
    /// first, and where the arrival is not known.
    Latency(TopicId),
    /// How much the last two periods of the topic differ, as a `Duration`; unknown before the third
    /// message.
    Jitter(TopicId),
    /// A measurement of a chain, as a `Duration`. Age and reaction compared with a constant are exact at
    /// every time, otherwise they are those of the last moment. Not under a slice.
    Chain(ChainId, ChainMeasure),
    /// The value of the `n`-th key of the slice.
    Key(u32, ValueType),
    /// The value of a variable that a quantifier binds.
    Variable(VariableId, ValueType),
    /// True at the positions whose message came on the topic and has, at every path, the value of the
    /// variable.
    Bind {
        /// The topic.
        topic: TopicId,
        /// Where in the message, and the variable, with its type.
        fields: Vec<(Path, VariableId, ValueType)>,
    },
    /// For some value of the variable the operand holds.
    Exists(VariableId, ExprId),
    /// For every value of the variable the operand holds.
    ForAll(VariableId, ExprId),
    /// The machine is in one of these states, after the transition of this moment.
    InState(MachineId, Vec<u32>),
    /// Two transitions of the machine were possible at this moment, or one before.
    Ambiguous(MachineId),
    /// The value of a variable of the machine, before the transition of this moment.
    MachineVariable(MachineId, u32, ValueType),
}

/// What a window measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aggregate {
    /// How many samples: an `Int`.
    Count,
    /// Their sum: of the type of the operand; 0 of none.
    Sum,
    /// Their mean: a `Float`; unknown of none.
    Mean,
    /// The least: of the type of the operand; unknown of none.
    Min,
    /// The greatest, likewise.
    Max,
    /// How many per second: a `Float`; not in steps.
    Rate,
}

/// Arithmetic on one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-x`
    Negate,
    /// `abs(x)`
    Abs,
}

/// Arithmetic on two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `a + b`
    Add,
    /// `a - b`
    Subtract,
    /// `a * b`
    Multiply,
    /// `a / b`; of integers rounded towards zero
    Divide,
    /// `a % b`, with the sign of `a`
    Remainder,
    /// `min(a, b)`; NaN when an operand is
    Min,
    /// `max(a, b)`; NaN when an operand is
    Max,
}

impl Expr {
    /// The nodes that this one refers to, from left to right.
    pub fn operands(&self) -> impl Iterator<Item = ExprId> + use<> {
        let operands = match self {
            Expr::Literal(_)
            | Expr::Field { .. }
            | Expr::Carried { .. }
            | Expr::Elements { .. }
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
            | Expr::Window { operand: Some(a), .. } => [Some(*a), None, None],
            Expr::Binary(_, a, b)
            | Expr::Compare(_, a, b)
            | Expr::StartsWith(a, b)
            | Expr::And(a, b)
            | Expr::Or(a, b)
            | Expr::Since(_, a, b)
            | Expr::Until(_, a, b) => [Some(*a), Some(*b), None],
            Expr::If(a, b, c) => [Some(*a), Some(*b), Some(*c)],
        };
        operands.into_iter().flatten()
    }

    pub(crate) fn operands_mut(&mut self) -> impl Iterator<Item = &mut ExprId> {
        let operands = match self {
            Expr::Literal(_)
            | Expr::Field { .. }
            | Expr::Carried { .. }
            | Expr::Elements { .. }
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
            Expr::If(a, b, c) => [Some(a), Some(b), Some(c)],
        };
        operands.into_iter().flatten()
    }

    /// The topic that this node itself reads.
    pub fn topic(&self) -> Option<TopicId> {
        match self {
            Expr::Field { topic, .. }
            | Expr::Carried { topic, .. }
            | Expr::Elements { topic, .. }
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
    /// The guards of all transitions, and the values that they assign.
    pub fn conditions(&self) -> impl Iterator<Item = ExprId> + '_ {
        self.transitions
            .iter()
            .flat_map(|t| t.guard.into_iter().chain(t.assignments.iter().map(|(_, value)| *value)))
    }
}

impl Spec {
    /// The topics that a node mentions, itself or through its operands, in order of declaration.
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

    /// The type of a node's values.
    pub fn value_type(&self, id: ExprId) -> ValueType {
        // The type of arithmetic is that of both its operands: first all of them, then in order.
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
    /// The operands that decide its type.
    fn typed_by(&self) -> impl Iterator<Item = ExprId> + use<> {
        let operands = match self {
            Expr::Binary(_, a, b) => [Some(*a), Some(*b)],
            Expr::Unary(_, a)
            | Expr::Prev(a)
            | Expr::If(_, a, _)
            | Expr::Window {
                aggregate: Aggregate::Sum | Aggregate::Min | Aggregate::Max,
                operand: Some(a),
                ..
            } => [Some(*a), None],
            _ => [None, None],
        };
        operands.into_iter().flatten()
    }

    /// Its type, given those of its operands.
    pub(crate) fn type_with(&self, of: impl Fn(ExprId) -> ValueType) -> ValueType {
        match self {
            Expr::Literal(value) => value.value_type(),
            Expr::Field { value_type, .. }
            | Expr::Key(_, value_type)
            | Expr::Variable(_, value_type)
            | Expr::MachineVariable(_, _, value_type) => *value_type,
            Expr::ToFloat(_) | Expr::Window { aggregate: Aggregate::Mean | Aggregate::Rate, .. } => {
                ValueType::Float
            }
            Expr::Window { aggregate: Aggregate::Count, .. } | Expr::Window { operand: None, .. } => {
                ValueType::Int
            }
            Expr::Age(_) | Expr::Latency(_) | Expr::Jitter(_) | Expr::Chain(..) => ValueType::Duration,
            Expr::Binary(op, a, b) => binary_type(*op, of(*a), of(*b)).unwrap_or(of(*a)),
            Expr::Unary(_, a) | Expr::Prev(a) | Expr::If(_, a, _) | Expr::Window { operand: Some(a), .. } => {
                of(*a)
            }
            _ => ValueType::Bool,
        }
    }
}

/// The type of arithmetic on two values, if there is such arithmetic: on two numbers of one type, and
/// on times and durations as their units allow. A duration is multiplied and divided by an `Int`; of
/// two durations the quotient is a `Float`.
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
