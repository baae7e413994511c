//! The checked specification: what the front ends produce and the engine compiles.

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
