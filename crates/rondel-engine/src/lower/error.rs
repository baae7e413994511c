use rondel_event::{TopicId, ValueType};
use rondel_spec::{Code, Diagnostic, ExprId, Spec, VariableId};

/// The reason why a [`Spec`] cannot be compiled. [`CompileError::diagnose`] turns it into a diagnostic; an
/// error without one comes from code that built an invalid [`Spec`], since the front ends report mistakes in
/// a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// A node refers to an operand that does not precede it.
    #[error("node {} refers to node {}, which does not precede it", node.0, operand.0)]
    ForwardReference {
        /// The node.
        node: ExprId,
        /// The operand.
        operand: ExprId,
    },
    /// A node mentions a topic that the specification does not have.
    #[error("node {} mentions topic {}, but there are only {topics}", node.0, topic.0)]
    UnknownTopic {
        /// The node.
        node: ExprId,
        /// The topic.
        topic: TopicId,
        /// The number of topics of the specification.
        topics: usize,
    },
    /// The engine cannot monitor an expression.
    #[error("node {}: cannot monitor {what}", node.0)]
    Unsupported {
        /// The node.
        node: ExprId,
        /// The expression, as a noun phrase.
        what: &'static str,
    },
    /// A formula with variables cannot be monitored in bounded memory.
    #[error("node {}: {}{why}", node.0, variable.map(|v| format!("variable {}: ", v.0)).unwrap_or_default())]
    NotMonitorable {
        /// The part that cannot be monitored.
        node: ExprId,
        /// The variable concerned, if there is one.
        variable: Option<VariableId>,
        /// The reason.
        why: &'static str,
        /// The suggested change of the specification.
        help: &'static str,
    },
    /// An operand has a type that the node does not accept.
    #[error("node {}: expected an operand of type {expected}, found {found}", node.0)]
    WrongType {
        /// The node.
        node: ExprId,
        /// The types that the node accepts.
        expected: &'static str,
        /// The type of the operand.
        found: ValueType,
    },
    /// The two operands of a node have different types.
    #[error("node {}: operands have different types, {left} and {right}", node.0)]
    MixedTypes {
        /// The node.
        node: ExprId,
        /// The type of one operand.
        left: ValueType,
        /// The type of the other.
        right: ValueType,
    },
    /// The formula of a property is not a node of the specification.
    #[error("property {property}: there is no node {}", formula.0)]
    UnknownFormula {
        /// The name of the property.
        property: String,
        /// The missing node.
        formula: ExprId,
    },
    /// The formula of a property is not a boolean.
    #[error("property {property}: the formula has type {found}, not bool")]
    NotAFormula {
        /// The name of the property.
        property: String,
        /// The type of the formula.
        found: ValueType,
    },
    /// A chain has fewer than two topics, an undeclared topic, or a stamp of type float.
    #[error("chain {chain}: invalid topics or stamp")]
    InvalidChain {
        /// The name of the chain.
        chain: String,
    },
    /// The specification needs more instructions than a program can have.
    #[error("the specification needs more than {limit} instructions")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

impl CompileError {
    /// The diagnostic for the text that the specification was parsed from; none for an error in code that
    /// built the specification.
    ///
    /// ```
    /// use rondel_engine::Program;
    /// let text = "topic a { id: int } property p = exists x. not a{id: x}";
    /// let spec = rondel_spec::parse(text).spec.unwrap();
    /// let diagnostic = Program::compile(&spec).unwrap_err().diagnose(&spec).unwrap();
    /// assert_eq!(&text[diagnostic.span.start..diagnostic.span.end], "a{id: x}");
    /// assert!(diagnostic.message.starts_with("cannot monitor variable 'x'"));
    /// ```
    pub fn diagnose(&self, spec: &Spec) -> Option<Diagnostic> {
        match self {
            CompileError::NotMonitorable { node, variable, why, help } => {
                let name = variable.and_then(|variable| spec.places.variable(variable));
                let message = match name {
                    Some(name) => format!("cannot monitor variable '{name}': {why}"),
                    None => format!("cannot monitor this formula: {why}"),
                };
                spec.refuse(Code::NotMonitorable, *node, message, Some(help))
            }
            CompileError::Unsupported { node, what } => {
                spec.refuse(Code::Unsupported, *node, format!("cannot monitor {what}"), advice(what))
            }
            _ => None,
        }
    }
}

/// The fix for an expression that the engine does not support.
fn advice(what: &str) -> Option<&'static str> {
    Some(match what {
        ROBUST_QUANTIFIER => "remove `@robust`",
        ROBUST_OPERATOR => "remove `@robust`, or move this operator to a property without it",
        MACHINE_CYCLE => "use the state of one machine only under `previously`",
        MACHINE_TIME => "give both the same time model with `@time`",
        MACHINE_OPERATOR => {
            "apply it to fields of messages, or store its operand in a variable of the machine"
        }
        KEYED_FUTURE_END => "use a condition on the past in `until`",
        NOT_PIECEWISE_LINEAR => "remove `@interpolate(linear)`, or split the property",
        FUTURE_INSIDE => "put the future operator outside, under `and`, `or`, `not` or `->`",
        TOO_MANY_FUTURES | MACHINE_DEPTH => "split the formula into several properties",
        _ => return None,
    })
}

pub(crate) const ARGUMENTS: &str = "a function with so many arguments";
pub(crate) const PATTERN: &str = "a regular expression that is not a constant, or not valid";
pub(crate) const ROBUST_QUANTIFIER: &str = "the robustness of a quantifier";
pub(crate) const ROBUST_OPERATOR: &str = "the robustness of this operator";
pub(crate) const MACHINE_CYCLE: &str = "a machine that depends on itself";
pub(crate) const MACHINE_TIME: &str = "a machine with another time model than the property";
pub(crate) const MACHINE_OPERATOR: &str = "a temporal operator on a variable of the same machine in a guard";
pub(crate) const MACHINE_DEPTH: &str = "a machine expression that is nested so deeply";
pub(crate) const NOT_PIECEWISE_LINEAR: &str =
    "an expression that is not piecewise linear in a property with linear interpolation";
pub(crate) const KEYED_FUTURE_END: &str = "a future operator in the `until` of a `for each`";
pub(crate) const FUTURE_INSIDE: &str = "a future operator inside this operator";
pub(crate) const TOO_MANY_FUTURES: &str = "a formula with so many future operators";
