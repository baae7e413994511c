//! What the front ends say about a text: codes, messages, places.

use std::fmt::{self, Write as _};

/// A range of bytes of the text that was parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

impl Span {
    /// The bytes `start..end`.
    pub const fn new(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    /// The smallest range with both in it.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The words themselves.
    pub(crate) fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or("")
    }
}

/// Whether a specification can be used in spite of a [`Diagnostic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// It cannot.
    Error,
    /// It can, but it hardly says what its writer meant.
    Warning,
}

/// What kind of thing is wrong. Every code has a section in `docs/reference/diagnostics.md`; a code
/// that has been published is not used for anything else later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Code {
    /// A character that no word begins with.
    UnexpectedCharacter,
    /// Something else was expected here.
    UnexpectedToken,
    /// A text in quotes has no end.
    UnclosedText,
    /// An unknown escape in a text.
    InvalidEscape,
    /// A number that does not fit or is not written as one.
    InvalidNumber,
    /// Expressions nested too deeply.
    TooDeep,
    /// Operators side by side whose order nobody can be sure of.
    NeedsParentheses,
    /// Bounds of an operator that are not written as bounds.
    InvalidBounds,
    /// A construct of the language that this version does not have.
    NotInThisVersion,
    /// An attribute before something other than a property.
    MisplacedAttribute,
    /// An operator of the future without an end.
    UnboundedFuture,
    /// A name that nothing was declared with.
    UnknownName,
    /// A topic that was not declared.
    UnknownTopic,
    /// A function that does not exist.
    UnknownFunction,
    /// Two declarations of one name.
    DuplicateName,
    /// A definition that refers to itself.
    CyclicDefinition,
    /// A `const` or a bound that is not a constant.
    NotConstant,
    /// A topic where a value belongs.
    TopicIsNotAValue,
    /// A field of something that is not a topic.
    NoFields,
    /// An embedded formula whose topic is not clear.
    UnclearTopic,
    /// A variable that nothing gives values to.
    UnboundVariable,
    /// A field that the schema does not have.
    UnknownField,
    /// An object or array where a single value belongs.
    NotASingleValue,
    /// A value of another type than its place asks for.
    TypeMismatch,
    /// Two uses of one field that ask for different types.
    ConflictingUse,
    /// A type that does not exist.
    UnknownType,
    /// A function with too few or too many arguments.
    WrongArguments,
    /// Arithmetic that has no result.
    NoResult,
    /// `changed` of something that no message changes.
    NeverUpdated,
    /// Some bounds with a unit of time, others without, in one property.
    MixedUnits,
    /// Something that the time model of the property does not have.
    WrongTimeModel,
    /// An operator of the future where its answer cannot be waited for.
    FutureInside,
    /// Something that does not run straight, in a property with linear interpolation.
    NotStraight,
    /// A key that is not at one place in each topic that has keys.
    KeyTopics,
    /// A key of a type that keys cannot have.
    KeyType,
    /// An attribute of the language that is not written as it has to be.
    InvalidAttribute,
    /// A machine that begins in no state, or in several.
    InitialState,
    /// A state that the machine does not have.
    UnknownState,
    /// A transition that nothing says when to take.
    Unconditional,
    /// A chain whose topics and fields do not go together.
    ChainTopics,
    /// A property that was not declared.
    UnknownProperty,
    /// Values of keys that do not fit the keys of the property.
    WrongKeys,
    /// A machine that is divided by other keys, or measures time otherwise.
    ForeignMachine,
    /// A chain that is measured where events are divided by key.
    DividedChain,
    /// A formula with variables that cannot be monitored, or not in bounded memory.
    NotMonitorable,
    /// Something that the engine cannot monitor.
    Unsupported,
    /// Bounds with nothing between them.
    EmptyInterval,
    /// A comparison whose result never changes.
    ConstantComparison,
    /// A property that is never violated, or never satisfied.
    ConstantProperty,
    /// A definition that nothing uses.
    Unused,
    /// An integer compared with a number that no integer equals.
    ImpossibleEquality,
    /// A field whose type had to be guessed.
    GuessedType,
    /// A specification without properties.
    NoProperty,
    /// An integer that no float equals, compared with a float.
    InexactNumber,
    /// A name that hides another.
    Shadowed,
    /// A property that is divided by a key and does not depend on it.
    IdleKey,
    /// A robustness that is asked for where no numbers are compared.
    NothingToMeasure,
    /// A state that a machine never enters.
    UnreachableState,
    /// A message of a test that comes earlier than the one before.
    UnorderedTest,
    /// A message of a test that lacks the key of a property.
    MissingKey,
    /// A test that expects nothing.
    EmptyTest,
    /// An attribute that means nothing, and is like one that does.
    UnknownAttribute,
    /// An instant is asked for where something changes just after instants.
    NoInstant,
}

impl Code {
    /// Every code, in the order of their numbers.
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
        Code::IdleKey,
        Code::NothingToMeasure,
        Code::UnreachableState,
        Code::UnorderedTest,
        Code::MissingKey,
        Code::EmptyTest,
        Code::UnknownAttribute,
        Code::NoInstant,
    ];

    /// The code as it is printed.
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
            Code::IdleKey => "W0601",
            Code::NothingToMeasure => "W0602",
            Code::UnreachableState => "W0603",
            Code::UnorderedTest => "W0604",
            Code::MissingKey => "W0605",
            Code::EmptyTest => "W0606",
            Code::UnknownAttribute => "W0607",
            Code::NoInstant => "W0608",
        }
    }

    /// Whether it is an error or a warning.
    pub fn severity(self) -> Severity {
        if self.as_str().starts_with('W') { Severity::Warning } else { Severity::Error }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A second place that a [`Diagnostic`] points at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What is there.
    pub text: String,
}

/// One thing that is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What kind of thing.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in one sentence.
    pub message: String,
    /// The words that it is about.
    pub span: Span,
    /// Other places that explain it.
    pub labels: Vec<Label>,
    /// What to do about it, where that can be said.
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

    /// Whether this is an error, not a warning.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Writes the diagnostic with the lines that it is about. `text` is the text that was parsed,
    /// `source_name` what the reader knows it by; `colour` asks for the escape sequences of
    /// terminals.
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
        let paint = Paint { colour };
        let heading = match self.severity {
            Severity::Error => ("error", "1;31"),
            Severity::Warning => ("warning", "1;33"),
        };
        let mut underlines = vec![Underline::new(self.span, "", true, text)];
        underlines.extend(self.labels.iter().map(|l| Underline::new(l.span, &l.text, false, text)));
        let (line, column) = (underlines[0].line, underlines[0].column);
        let margin = underlines.iter().map(|s| s.line.to_string().len()).max().unwrap_or(1);
        // Stable: the primary place comes first among those of its line.
        underlines.sort_by_key(|s| s.line);

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

/// A place to underline within one line of the text.
struct Underline<'a> {
    line: usize,
    column: usize,
    line_text: &'a str,
    indent: usize,
    width: usize,
    label: &'a str,
    primary: bool,
}

impl<'a> Underline<'a> {
    fn new(span: Span, label: &'a str, primary: bool, text: &'a str) -> Underline<'a> {
        let start = floor(text, span.start);
        let end = floor(text, span.end).max(start);
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |i| start + i);
        // Of a place that spans several lines the first one is shown.
        let marked = &text[start..end.min(line_end)];
        Underline {
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

/// The part of a line that is shown: of lines that nobody reads whole, what is around the place.
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
            // In place of the first character, so that the marks stay below their words.
            shown = format!("…{}", shown.chars().skip(1).collect::<String>());
        }
        if rest.next().is_some() {
            shown.push('…');
        }
        shown
    }

    /// Where the mark of a place begins in the window and how wide it is.
    fn mark(&self, underline: &Underline<'_>) -> (usize, usize) {
        let indent = underline.indent.saturating_sub(self.from).min(Window::WIDTH);
        let end = (underline.indent + underline.width).saturating_sub(self.from).min(Window::WIDTH);
        (indent, end.saturating_sub(indent).max(1))
    }
}

/// The last character boundary that is not after `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The text with tabs as wide as they count for the underline, and without other control
/// characters, which would move the cursor of a terminal.
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
    fn labels_stand_under_their_words() {
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
    fn of_long_lines_a_part_is_shown() {
        let text = format!("{}here{}", "a".repeat(1000), "b".repeat(1000));
        let d = Diagnostic::new(Code::TooDeep, Span::new(1000, 1004), "m").label(Span::new(0, 2000), "l");
        let shown = d.render("x", &text, false);
        let lines: Vec<_> = shown.lines().collect();
        let place = lines[3].find("here").unwrap() - "…".len() + 1;
        assert_eq!(lines[4].find("^^^^"), Some(place), "{shown}");
        assert!(lines.iter().all(|l| l.chars().count() < 260));
    }

    #[test]
    fn places_outside_the_text_are_no_panic() {
        for span in [Span::new(9, 2), Span::new(1, 2), Span::new(50, 60), Span::default()] {
            Diagnostic::new(Code::TooDeep, span, "m").label(span, "l").render("x", "ä\r\n\x07", false);
            Diagnostic::new(Code::TooDeep, span, "m").render("x", "", true);
        }
    }
}
