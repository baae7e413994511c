//! The checked specification: what the front ends produce and the engine compiles.

use std::collections::{BTreeSet, HashSet};

use rondel_event::{Comparison, Condition, Path, Quantifier, TopicId, Value, ValueType};

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

/// Bounds of a past operator, in steps back from the present: `lower..=upper`.
/// `upper: None` reaches back to the beginning. `lower > upper` is an empty interval: nothing is
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
        let operands = match *self {
            Expr::Literal(_)
            | Expr::Field { .. }
            | Expr::Carried { .. }
            | Expr::Elements { .. }
            | Expr::On(_) => [None; 3],
            Expr::ToFloat(a)
            | Expr::Unary(_, a)
            | Expr::Prev(a)
            | Expr::Not(a)
            | Expr::Definitely(a)
            | Expr::Previously(a)
            | Expr::Once(_, a)
            | Expr::Historically(_, a) => [Some(a), None, None],
            Expr::Binary(_, a, b)
            | Expr::Compare(_, a, b)
            | Expr::StartsWith(a, b)
            | Expr::And(a, b)
            | Expr::Or(a, b)
            | Expr::Since(_, a, b) => [Some(a), Some(b), None],
            Expr::If(a, b, c) => [Some(a), Some(b), Some(c)],
        };
        operands.into_iter().flatten()
    }

    pub(crate) fn operands_mut(&mut self) -> impl Iterator<Item = &mut ExprId> {
        let operands = match self {
            Expr::Literal(_)
            | Expr::Field { .. }
            | Expr::Carried { .. }
            | Expr::Elements { .. }
            | Expr::On(_) => [None, None, None],
            Expr::ToFloat(a)
            | Expr::Unary(_, a)
            | Expr::Prev(a)
            | Expr::Not(a)
            | Expr::Definitely(a)
            | Expr::Previously(a)
            | Expr::Once(_, a)
            | Expr::Historically(_, a) => [Some(a), None, None],
            Expr::Binary(_, a, b)
            | Expr::Compare(_, a, b)
            | Expr::StartsWith(a, b)
            | Expr::And(a, b)
            | Expr::Or(a, b)
            | Expr::Since(_, a, b) => [Some(a), Some(b), None],
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
            | Expr::On(topic) => Some(*topic),
            _ => None,
        }
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
            open.extend(node.operands().filter(|o| seen.insert(*o)));
        }
        topics.into_iter().collect()
    }

    /// The type of a node's values.
    pub fn value_type(&self, id: ExprId) -> ValueType {
        self.type_of(&self.nodes[id.index()])
    }

    /// The type of a node that need not be in the graph yet; its operands must be.
    pub(crate) fn type_of(&self, expr: &Expr) -> ValueType {
        let mut expr = expr;
        loop {
            // A node with the type of its operands: those come before it, so this ends.
            let operand = match expr {
                Expr::Literal(value) => return value.value_type(),
                Expr::Field { value_type, .. } => return *value_type,
                Expr::ToFloat(_) => return ValueType::Float,
                Expr::Unary(_, a) | Expr::Binary(_, a, _) | Expr::Prev(a) => *a,
                Expr::If(_, a, _) => *a,
                _ => return ValueType::Bool,
            };
            expr = &self.nodes[operand.index()];
        }
    }
}
