//! Diagnostics: codes, messages and source locations.

use std::fmt::{self, Write as _};

use crate::sources::Sources;

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

    /// Returns the diagnostic with the source lines it refers to. `text` is the parsed text, `source_name` its name for
    /// the reader; `colour` adds the escape sequences of terminals.
    ///
    /// ```
    /// let text = "property p = )";
    /// let outcome = rondel_spec::parse(text);
    /// let shown = outcome.diagnostics[0].render("p.rondel", text, false);
    /// assert_eq!(shown, "\
    /// error[E0102]: expected an expression, found `)`
    ///  --> p.rondel:1:14
    ///   |
    /// 1 | property p = )
    ///   |              ^
    /// ");
    /// ```
    pub fn render(&self, source_name: &str, text: &str, colour: bool) -> String {
        self.shown(&|_| (source_name, text, 0), colour)
    }

    /// Returns the diagnostic with the source lines it refers to, for a specification of several files. A location in
    /// another file than the first one is shown below a line with `:::` and the name of its file.
    pub fn render_in(&self, sources: &Sources, colour: bool) -> String {
        self.shown(&|offset| sources.file_at(offset), colour)
    }

    /// `file` returns for an offset the name of its file, the text, and the offset at which it begins.
    fn shown<'a>(&'a self, file: &dyn Fn(usize) -> (&'a str, &'a str, usize), colour: bool) -> String {
        let paint = Paint { colour };
        let heading = match self.severity {
            Severity::Error => ("error", "1;31"),
            Severity::Warning => ("warning", "1;33"),
        };
        let mut underlines = vec![Underline::new(self.span, "", true, file(self.span.start))];
        let labels = self.labels.iter();
        underlines.extend(labels.map(|l| Underline::new(l.span, &l.text, false, file(l.span.start))));
        let Underline { line, column, file: (source_name, mut begin), .. } = underlines[0];
        let margin = underlines.iter().map(|s| s.line.to_string().len()).max().unwrap_or(1);
        // Stable: on its line, the primary location comes first. Its file comes first, too.
        underlines.sort_by_key(|s| (s.file.1 != begin, s.file.1, s.line));

        let mut out = String::new();
        // Writing to a String does not fail.
        let _ = writeln!(
            out,
            "{}{}",
            paint.with(heading.1, &format!("{}[{}]", heading.0, self.code)),
            paint.with("1", &format!(": {}", self.message)),
        );
        let bar = paint.with("1;34", &format!("{:margin$} |", ""));
        let _ =
            writeln!(out, "{:margin$}{} {source_name}:{line}:{}", "", paint.with("1;34", "-->"), column + 1);
        let _ = writeln!(out, "{bar}");
        let mut previous = None;
        let mut window = Window { from: 0 };
        for underline in &underlines {
            if underline.file.1 != begin {
                begin = underline.file.1;
                let mark = paint.with("1;34", ":::");
                let place = format!("{}:{}:{}", underline.file.0, underline.line, underline.column + 1);
                let _ = writeln!(out, "{bar}\n{:margin$}{mark} {place}\n{bar}", "");
                previous = None;
            }
            if previous != Some(underline.line) {
                if previous.is_some_and(|p| p + 1 < underline.line) {
                    let _ = writeln!(out, "{}", paint.with("1;34", &format!("{:margin$} ⋮", "")));
                }
                let number = paint.with("1;34", &format!("{:>margin$} |", underline.line));
                window = Window::around(underline);
                let _ =
                    writeln!(out, "{}", format!("{number} {}", window.cut(underline.line_text)).trim_end());
                previous = Some(underline.line);
            }
            let (indent, width) = window.mark(underline);
            let mark = if underline.primary { "^" } else { "-" }.repeat(width);
            let mark = format!("{mark} {}", underline.label);
            let colour = if underline.primary { heading.1 } else { "1;34" };
            let _ = writeln!(out, "{bar} {:indent$}{}", "", paint.with(colour, mark.trim_end()));
        }
        if let Some(help) = &self.help {
            let _ = writeln!(out, "{bar}");
            for (i, part) in help.lines().enumerate() {
                let lead = if i == 0 { "= help:" } else { "       " };
                let _ = writeln!(out, "{:margin$} {} {part}", "", paint.with("1;34", lead));
            }
        }
        out
    }
}

/// A location to underline within one line.
struct Underline<'a> {
    /// The name of the file, and the offset at which it begins.
    file: (&'a str, usize),
    line: usize,
    column: usize,
    line_text: &'a str,
    indent: usize,
    width: usize,
    label: &'a str,
    primary: bool,
}

impl<'a> Underline<'a> {
    fn new(
        span: Span,
        label: &'a str,
        primary: bool,
        (name, text, begin): (&'a str, &'a str, usize),
    ) -> Underline<'a> {
        let start = floor(text, span.start.saturating_sub(begin));
        let end = floor(text, span.end.saturating_sub(begin)).max(start);
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |i| start + i);
        // Only the first line of a location is shown.
        let marked = &text[start..end.min(line_end)];
        Underline {
            file: (name, begin),
            line: before.matches('\n').count() + 1,
            column: text[line_start..start].chars().count(),
            line_text: text[line_start..line_end].trim_end_matches('\r'),
            indent: visible(&text[line_start..start]).chars().count(),
            width: visible(marked.trim_end()).chars().count().max(1),
            label,
            primary,
        }
    }
}

/// The part of a long line that is shown around a location.
struct Window {
    from: usize,
}

impl Window {
    const WIDTH: usize = 240;

    fn around(underline: &Underline<'_>) -> Window {
        let room = Window::WIDTH.saturating_sub(underline.width) / 2;
        let long = visible(underline.line_text).chars().nth(Window::WIDTH).is_some();
        Window { from: if long { underline.indent.saturating_sub(room) } else { 0 } }
    }

    fn cut(&self, line: &str) -> String {
        let line = visible(line);
        let mut rest = line.chars().skip(self.from);
        let mut shown: String = rest.by_ref().take(Window::WIDTH).collect();
        if self.from > 0 {
            // The ellipsis replaces a character, so that the marks stay aligned.
            shown = format!("…{}", shown.chars().skip(1).collect::<String>());
        }
        if rest.next().is_some() {
            shown.push('…');
        }
        shown
    }

    /// Returns the column and the width of a mark in the window.
    fn mark(&self, underline: &Underline<'_>) -> (usize, usize) {
        let indent = underline.indent.saturating_sub(self.from).min(Window::WIDTH);
        let end = (underline.indent + underline.width).saturating_sub(self.from).min(Window::WIDTH);
        (indent, end.saturating_sub(indent).max(1))
    }
}

/// Returns the last character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Returns the text with tabs as spaces and without other control characters, which would move the cursor of a
/// terminal.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push_str("    "),
            c if c.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}

struct Paint {
    colour: bool,
}

impl Paint {
    fn with(&self, style: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
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

    #[test]
    fn labels_are_aligned_with_their_spans() {
        let text = "let a = 1\n\n\tlet ä = a\n";
        let d = Diagnostic::new(Code::DuplicateName, Span::new(16, 18), "twice")
            .label(Span::new(4, 5), "first")
            .label(Span::new(21, 22), "used")
            .help("rename\none of them");
        assert_eq!(
            d.render("x", text, false),
            "error[E0204]: twice\n --> x:3:6\n  |\n1 | let a = 1\n  |     - first\n  ⋮\n3 |     let ä = a\n  \
             |         ^\n  |             - used\n  |\n  = help: rename\n          one of them\n"
        );
        assert!(d.render("x", text, true).contains("\x1b[1;31merror[E0204]\x1b[0m"));
    }

    #[test]
    fn long_lines_are_truncated_around_the_span() {
        let text = format!("{}here{}", "a".repeat(1000), "b".repeat(1000));
        let d = Diagnostic::new(Code::TooDeep, Span::new(1000, 1004), "m").label(Span::new(0, 2000), "l");
        let shown = d.render("x", &text, false);
        let lines: Vec<_> = shown.lines().collect();
        let place = lines[3].find("here").unwrap() - "…".len() + 1;
        assert_eq!(lines[4].find("^^^^"), Some(place), "{shown}");
        assert!(lines.iter().all(|l| l.chars().count() < 260));
    }

    #[test]
    fn spans_outside_the_text_do_not_panic() {
        for span in [Span::new(9, 2), Span::new(1, 2), Span::new(50, 60), Span::default()] {
            Diagnostic::new(Code::TooDeep, span, "m").label(span, "l").render("x", "ä\r\n\x07", false);
            Diagnostic::new(Code::TooDeep, span, "m").render("x", "", true);
        }
    }
}
