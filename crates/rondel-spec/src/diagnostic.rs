//! Diagnostics: codes, messages and source locations.

use std::fmt;

/// A range of bytes in the parsed text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The start, inclusive.
    pub start: usize,
    /// The end, exclusive.
    pub end: usize,
}

impl Span {
    /// Returns the span `start..end`.
    pub const fn new(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    /// Returns the smallest span that contains both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Returns the text of the span.
    pub(crate) fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or("")
    }
}

/// The severity of a [`Diagnostic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The specification cannot be used.
    Error,
    /// The specification can be used, but part of it is probably not what the author meant.
    Warning,
}

/// The kind of a diagnostic. Every code has a section in `docs/reference/diagnostics.md`. A published code never
/// changes its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Code {
    /// A character that starts no token.
    UnexpectedCharacter,
    /// A token that the grammar does not allow here.
    UnexpectedToken,
    /// An unterminated string or embedded formula.
    UnclosedText,
    /// An unknown escape in a string.
    InvalidEscape,
    /// A malformed or too large number.
    InvalidNumber,
    /// An expression that is nested too deeply.
    TooDeep,
    /// Adjacent operators with an ambiguous order.
    NeedsParentheses,
    /// Malformed bounds of an operator.
    InvalidBounds,
    /// A construct of Reelay's format that is not supported.
    NotInThisVersion,
    /// An attribute before something other than a property, a machine or a chain.
    MisplacedAttribute,
    /// A future operator without an upper bound.
    UnboundedFuture,
    /// An address of a topic with a wrong parameter, or with parameters, which are not supported.
    InvalidAddress,
    /// An import that cannot be followed, or in the wrong place.
    InvalidImport,
    /// An undeclared name.
    UnknownName,
    /// An undeclared topic.
    UnknownTopic,
    /// An unknown function.
    UnknownFunction,
    /// A duplicate declaration.
    DuplicateName,
    /// A cyclic definition.
    CyclicDefinition,
    /// An expression that must be constant and is not.
    NotConstant,
    /// A topic used as a value.
    TopicIsNotAValue,
    /// A field access on something other than a topic.
    NoFields,
    /// An embedded formula without a topic.
    UnclearTopic,
    /// A quantifier variable that no atom binds.
    UnboundVariable,
    /// A definition with parameters that uses itself.
    RecursiveDefinition,
    /// A field that the schema does not declare.
    UnknownField,
    /// An object or an array used as a single value.
    NotASingleValue,
    /// A value of the wrong type.
    TypeMismatch,
    /// Uses of one field or variable with different types.
    ConflictingUse,
    /// An unknown type.
    UnknownType,
    /// A function with the wrong arguments.
    WrongArguments,
    /// Constant arithmetic without a result.
    NoResult,
    /// `changed` or a window of an expression that mentions no topic.
    NeverUpdated,
    /// Bounds with and without a unit in one property.
    MixedUnits,
    /// A construct that the time model of the property does not support.
    WrongTimeModel,
    /// A future operator inside an operator that needs its value at once.
    FutureInside,
    /// An expression that cannot be combined with linear interpolation.
    NotStraight,
    /// A regular expression that is malformed, too large, or not a constant.
    InvalidPattern,
    /// A wrong number of arguments of a definition.
    ArgumentCount,
    /// An argument of a definition that is not of the type of its parameter.
    ArgumentType,
    /// A parameter of `for each` that is not read from exactly one field of each topic.
    KeyTopics,
    /// A parameter of an unsuitable type.
    KeyType,
    /// An attribute with an invalid value or in the wrong place.
    InvalidAttribute,
    /// A machine with no initial state, or with several.
    InitialState,
    /// An unknown state of a machine.
    UnknownState,
    /// A transition with neither `when` nor `after`.
    Unconditional,
    /// A chain whose topics and fields do not match.
    ChainTopics,
    /// An unknown property in a test.
    UnknownProperty,
    /// Parameter values in a test that do not match the property.
    WrongKeys,
    /// The state of a machine with another `for each` or time model.
    ForeignMachine,
    /// A measurement of a chain in a property with `for each`.
    DividedChain,
    /// A quantified formula that cannot be monitored, or not in bounded memory.
    NotMonitorable,
    /// An expression that the engine does not support.
    Unsupported,
    /// Empty bounds.
    EmptyInterval,
    /// A comparison with a constant result.
    ConstantComparison,
    /// A property that can never be violated, or never be satisfied.
    ConstantProperty,
    /// An unused definition or variable.
    Unused,
    /// An integer compared for equality with a number that has a fraction.
    ImpossibleEquality,
    /// A field whose type could not be inferred.
    GuessedType,
    /// A specification without a property.
    NoProperty,
    /// An integer without an exact float value, compared with a float.
    InexactNumber,
    /// A name that shadows an outer declaration.
    Shadowed,
    /// A quotient of constant integers that loses its fraction.
    LostFraction,
    /// A number that is allowed, but probably a mistake.
    SuspiciousNumber,
    /// A property that does not depend on its parameters.
    IdleKey,
    /// A robustness of a property that compares no numbers.
    NothingToMeasure,
    /// An unreachable state of a machine.
    UnreachableState,
    /// Messages of a test that are out of order.
    UnorderedTest,
    /// A message of a test without the field of a parameter.
    MissingKey,
    /// A test without expectations.
    EmptyTest,
    /// An unknown attribute that resembles a known one.
    UnknownAttribute,
    /// An edge in dense time that is missed because the value changes just after a time point.
    NoInstant,
    /// A message type without a known definition.
    UndefinedType,
    /// An event in a test that no property reads.
    UnreadEvent,
    /// A state that a machine never leaves and whose name resembles that of another.
    LastingState,
}

impl Code {
    /// All codes, in order.
    pub const ALL: &'static [Code] = &[
        Code::UnexpectedCharacter,
        Code::UnexpectedToken,
        Code::UnclosedText,
        Code::InvalidEscape,
        Code::InvalidNumber,
        Code::TooDeep,
        Code::NeedsParentheses,
        Code::InvalidBounds,
        Code::NotInThisVersion,
        Code::MisplacedAttribute,
        Code::UnboundedFuture,
        Code::InvalidAddress,
        Code::InvalidImport,
        Code::UnknownName,
        Code::UnknownTopic,
        Code::UnknownFunction,
        Code::DuplicateName,
        Code::CyclicDefinition,
        Code::NotConstant,
        Code::TopicIsNotAValue,
        Code::NoFields,
        Code::UnclearTopic,
        Code::UnboundVariable,
        Code::RecursiveDefinition,
        Code::UnknownField,
        Code::NotASingleValue,
        Code::TypeMismatch,
        Code::ConflictingUse,
        Code::UnknownType,
        Code::WrongArguments,
        Code::NoResult,
        Code::NeverUpdated,
        Code::MixedUnits,
        Code::WrongTimeModel,
        Code::FutureInside,
        Code::NotStraight,
        Code::InvalidPattern,
        Code::ArgumentCount,
        Code::ArgumentType,
        Code::KeyTopics,
        Code::KeyType,
        Code::InvalidAttribute,
        Code::InitialState,
        Code::UnknownState,
        Code::Unconditional,
        Code::ChainTopics,
        Code::UnknownProperty,
        Code::WrongKeys,
        Code::ForeignMachine,
        Code::DividedChain,
        Code::NotMonitorable,
        Code::Unsupported,
        Code::EmptyInterval,
        Code::ConstantComparison,
        Code::ConstantProperty,
        Code::Unused,
        Code::ImpossibleEquality,
        Code::GuessedType,
        Code::NoProperty,
        Code::InexactNumber,
        Code::Shadowed,
        Code::LostFraction,
        Code::SuspiciousNumber,
        Code::IdleKey,
        Code::NothingToMeasure,
        Code::UnreachableState,
        Code::UnorderedTest,
        Code::MissingKey,
        Code::EmptyTest,
        Code::UnknownAttribute,
        Code::NoInstant,
        Code::UndefinedType,
        Code::UnreadEvent,
        Code::LastingState,
    ];

    /// Returns the code as text.
    ///
    /// ```
    /// assert_eq!(rondel_spec::Code::UnexpectedToken.as_str(), "E0102");
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            Code::UnexpectedCharacter => "E0101",
            Code::UnexpectedToken => "E0102",
            Code::UnclosedText => "E0103",
            Code::InvalidEscape => "E0104",
            Code::InvalidNumber => "E0105",
            Code::TooDeep => "E0106",
            Code::NeedsParentheses => "E0107",
            Code::InvalidBounds => "E0108",
            Code::NotInThisVersion => "E0109",
            Code::MisplacedAttribute => "E0110",
            Code::UnboundedFuture => "E0111",
            Code::InvalidAddress => "E0112",
            Code::InvalidImport => "E0113",
            Code::UnknownName => "E0201",
            Code::UnknownTopic => "E0202",
            Code::UnknownFunction => "E0203",
            Code::DuplicateName => "E0204",
            Code::CyclicDefinition => "E0205",
            Code::NotConstant => "E0206",
            Code::TopicIsNotAValue => "E0207",
            Code::NoFields => "E0208",
            Code::UnclearTopic => "E0209",
            Code::UnboundVariable => "E0210",
            Code::RecursiveDefinition => "E0211",
            Code::UnknownField => "E0301",
            Code::NotASingleValue => "E0302",
            Code::TypeMismatch => "E0303",
            Code::ConflictingUse => "E0304",
            Code::UnknownType => "E0305",
            Code::WrongArguments => "E0306",
            Code::NoResult => "E0307",
            Code::NeverUpdated => "E0308",
            Code::MixedUnits => "E0309",
            Code::WrongTimeModel => "E0310",
            Code::FutureInside => "E0311",
            Code::NotStraight => "E0312",
            Code::InvalidPattern => "E0313",
            Code::ArgumentCount => "E0314",
            Code::ArgumentType => "E0315",
            Code::KeyTopics => "E0501",
            Code::KeyType => "E0502",
            Code::InvalidAttribute => "E0503",
            Code::InitialState => "E0504",
            Code::UnknownState => "E0505",
            Code::Unconditional => "E0506",
            Code::ChainTopics => "E0507",
            Code::UnknownProperty => "E0508",
            Code::WrongKeys => "E0509",
            Code::ForeignMachine => "E0510",
            Code::DividedChain => "E0511",
            Code::NotMonitorable => "E0701",
            Code::Unsupported => "E0702",
            Code::EmptyInterval => "W0401",
            Code::ConstantComparison => "W0402",
            Code::ConstantProperty => "W0403",
            Code::Unused => "W0404",
            Code::ImpossibleEquality => "W0405",
            Code::GuessedType => "W0406",
            Code::NoProperty => "W0407",
            Code::InexactNumber => "W0408",
            Code::Shadowed => "W0409",
            Code::LostFraction => "W0410",
            Code::SuspiciousNumber => "W0411",
            Code::IdleKey => "W0601",
            Code::NothingToMeasure => "W0602",
            Code::UnreachableState => "W0603",
            Code::UnorderedTest => "W0604",
            Code::MissingKey => "W0605",
            Code::EmptyTest => "W0606",
            Code::UnknownAttribute => "W0607",
            Code::NoInstant => "W0608",
            Code::UndefinedType => "W0609",
            Code::UnreadEvent => "W0610",
            Code::LastingState => "W0611",
        }
    }

    /// Returns the severity of the code.
    pub fn severity(self) -> Severity {
        if self.as_str().starts_with('W') { Severity::Warning } else { Severity::Error }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A secondary location of a [`Diagnostic`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The location.
    pub span: Span,
    /// The text shown at the location.
    pub text: String,
}

/// One problem in a specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The kind of problem.
    pub code: Code,
    /// The severity.
    pub severity: Severity,
    /// The problem, in one sentence.
    pub message: String,
    /// The primary location.
    pub span: Span,
    /// The secondary locations.
    pub labels: Vec<Label>,
    /// The fix, if one is known.
    pub help: Option<String>,
}

impl Diagnostic {
    pub(crate) fn new(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: code.severity(),
            message: message.into(),
            span,
            labels: Vec::new(),
            help: None,
        }
    }

    /// Returns a warning about a name that shadows another.
    pub(crate) fn shadowing(name: &str, span: Span, hidden: Span) -> Diagnostic {
        let message = format!("'{name}' shadows an outer declaration");
        Diagnostic::new(Code::Shadowed, span, message).label(hidden, "outer declaration")
    }

    pub(crate) fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    pub(crate) fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help = Some(text.into());
        self
    }

    /// Returns whether this is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_in_order() {
        let names: Vec<_> = Code::ALL.iter().map(|c| c.as_str()).collect();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        assert!(Code::ALL.is_sorted_by(|a, b| a < b));
    }
}
