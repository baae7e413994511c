use rondel_event::{TopicId, ValueType};
use rondel_spec::{Code, Diagnostic, ExprId, Spec, VariableId};

/// Why a [`Spec`] is refused. [`CompileError::diagnose`] says it at its place; what it has no place for is a
/// mistake of whoever built the specification, since the front ends report the mistakes of a writer
/// themselves.
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
        /// What to write instead.
        help: &'static str,
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
    /// A chain has fewer than two topics, one that is not there, or a float for a stamp.
    #[error("chain {chain}: no chain has these topics and this stamp")]
    InvalidChain {
        /// Its name.
        chain: String,
    },
    /// The specification needs more instructions than can be numbered.
    #[error("the specification needs more than {limit} instructions")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

impl CompileError {
    /// What it says about the text that the specification comes from; nothing where that is a mistake of
    /// whoever built the specification.
    ///
    /// ```
    /// use rondel_engine::Program;
    /// let text = "topic a { id: int } property p = exists x. not a{id: x}";
    /// let spec = rondel_spec::parse(text).spec.unwrap();
    /// let diagnostic = Program::compile(&spec).unwrap_err().diagnose(&spec).unwrap();
    /// assert_eq!(&text[diagnostic.span.start..diagnostic.span.end], "a{id: x}");
    /// assert!(diagnostic.message.starts_with("the variable 'x' cannot be followed"));
    /// ```
    pub fn diagnose(&self, spec: &Spec) -> Option<Diagnostic> {
        match self {
            CompileError::NotMonitorable { node, variable, why, help } => {
                let name = variable.and_then(|variable| spec.places.variable(variable));
                let message = match name {
                    Some(name) => format!("the variable '{name}' cannot be followed here: {why}"),
                    None => format!("this cannot be monitored: {why}"),
                };
                spec.refuse(Code::NotMonitorable, *node, message, Some(help))
            }
            CompileError::Unsupported { node, what } => {
                spec.refuse(Code::Unsupported, *node, format!("{what} cannot be monitored"), way_out(what))
            }
            _ => None,
        }
    }
}

/// What to write instead of something that the engine does not have.
fn way_out(what: &str) -> Option<&'static str> {
    Some(match what {
        ROBUST_QUANTIFIER => "leave `@robust` out",
        MACHINE_CYCLE => "let one of the machines look at `previously` of the other",
        MACHINE_TIME => "give both one model of time with `@time`",
        MACHINE_OPERATOR => {
            "use it on fields of messages, or keep what it needs in a variable of the machine"
        }
        KEYED_FUTURE_END => "end the instance by what has happened",
        NOT_STRAIGHT => "leave `@interpolate(linear)` out, or divide the property",
        FUTURE_INSIDE => "use the operator of the future outside of it, with `and`, `or`, `not` or `->`",
        TOO_MANY_FUTURES | MACHINE_DEPTH => "divide the formula into several properties",
        _ => return None,
    })
}

pub(crate) const ROBUST_QUANTIFIER: &str = "the robustness of a quantifier";
pub(crate) const MACHINE_CYCLE: &str = "a machine that depends on itself";
pub(crate) const MACHINE_TIME: &str = "a machine beside a property with another model of time";
pub(crate) const MACHINE_OPERATOR: &str = "an operator over time of a machine's own data in its guards";
pub(crate) const MACHINE_DEPTH: &str = "an expression of a machine that nests so deeply";
pub(crate) const NOT_STRAIGHT: &str =
    "what does not run straight between messages, in a property with linear interpolation,";
pub(crate) const KEYED_FUTURE_END: &str = "an operator of the future in the condition that ends an instance";
pub(crate) const FUTURE_INSIDE: &str = "an operator of the future inside this operator";
pub(crate) const TOO_MANY_FUTURES: &str = "a formula with so many operators of the future";
