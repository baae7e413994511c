use rondel_event::{TopicId, ValueType};
use rondel_spec::{ExprId, VariableId};

/// Why a [`Spec`](rondel_spec::Spec) is not one: a mistake of whoever built it, since the front
/// ends report the mistakes of a writer themselves.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// A node refers to one that does not stand before it.
    #[error("node {} refers to node {}, which does not stand before it", node.0, operand.0)]
    ForwardReference {
        /// The node.
        node: ExprId,
        /// The operand it asks for.
        operand: ExprId,
    },
    /// A node mentions a topic that the specification does not have.
    #[error("node {} mentions topic {}, but there are only {topics}", node.0, topic.0)]
    UnknownTopic {
        /// The node.
        node: ExprId,
        /// The topic it asks for.
        topic: TopicId,
        /// How many there are.
        topics: usize,
    },
    /// The engine cannot monitor this.
    #[error("node {}: {what} cannot be monitored yet", node.0)]
    Unsupported {
        /// The node.
        node: ExprId,
        /// What it is.
        what: &'static str,
    },
    /// A formula with variables cannot be monitored in bounded memory.
    #[error("node {}: {}{why}", node.0, variable.map(|v| format!("variable {}: ", v.0)).unwrap_or_default())]
    NotMonitorable {
        /// The part that cannot be.
        node: ExprId,
        /// The variable that it is about, if it is about one.
        variable: Option<VariableId>,
        /// Why.
        why: &'static str,
    },
    /// An operand has a type that the node cannot work on.
    #[error("node {}: an operand of type {found} where {expected} is needed", node.0)]
    WrongType {
        /// The node.
        node: ExprId,
        /// What it works on.
        expected: &'static str,
        /// What it was given.
        found: ValueType,
    },
    /// The two operands of a node must have the same type and have not.
    #[error("node {}: operands of types {left} and {right} where they must be the same", node.0)]
    MixedTypes {
        /// The node.
        node: ExprId,
        /// The type of one operand.
        left: ValueType,
        /// The type of the other.
        right: ValueType,
    },
    /// The formula of a property is no node of the specification.
    #[error("property {property}: there is no node {}", formula.0)]
    UnknownFormula {
        /// The name of the property.
        property: String,
        /// The node it asks for.
        formula: ExprId,
    },
    /// The formula of a property is not a boolean.
    #[error("property {property}: the formula has type {found}, not bool")]
    NotAFormula {
        /// The name of the property.
        property: String,
        /// The type that its formula has.
        found: ValueType,
    },
    /// The specification needs more instructions than can be numbered.
    #[error("the specification needs more than {limit} instructions")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}
