//! Expressions, by operator precedence.

use rondel_event::{Comparison, Segment, Value};

use super::ast::{Bound, BoundsSyntax, Function, Infix, Name, NodeId, NodeKind, Prefix};
use super::parser::{GivenUp, INFIX, Parsed, Parser, RESERVED};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lexer::TokenKind;
use crate::spec::BinaryOp;
use crate::suggest::{did_you_mean, nearest, translation};

/// How tightly operators bind, from loosest to tightest.
mod level {
    pub(super) const LOOSEST: u8 = 0;
    pub(super) const IFF: u8 = 1;
    pub(super) const IMPLIES: u8 = 2;
    pub(super) const OR: u8 = 3;
    pub(super) const AND: u8 = 4;
    pub(super) const SINCE: u8 = 5;
    pub(super) const UNARY: u8 = 6;
    pub(super) const COMPARE: u8 = 7;
    pub(super) const SUM: u8 = 8;
    pub(super) const PRODUCT: u8 = 9;
    pub(super) const NEGATE: u8 = 10;
}

/// The units of durations.
const UNITS: [&str; 7] = ["ns", "us", "ms", "s", "min", "h", "d"];

/// Functions over a window of time: known, but of a later version.
const WINDOWS: [&str; 8] = ["count", "sum", "mean", "rate", "age", "latency", "jitter", "any"];

/// An operator between two operands, before its bounds are read.
enum Between {
    Operator(Infix),
    Since,
    Until,
}

impl<'a> Parser<'a> {
    pub(super) fn expression(&mut self) -> Parsed<NodeId> {
        self.binary(level::LOOSEST)
    }

    /// An expression whose operators bind at least as tightly as `loosest`.
    fn binary(&mut self, loosest: u8) -> Parsed<NodeId> {
        self.deeper(|parser| {
            let mut left = parser.prefix(loosest)?;
            let mut previous = None;
            while let Some((between, level)) = parser.between() {
                if level < loosest {
                    break;
                }
                let span = parser.span();
                if matches!(level, level::COMPARE | level::SINCE) && previous == Some(level) {
                    return Err(parser.side_by_side(level, span));
                }
                previous = Some(level);
                parser.advance();
                let infix = match between {
                    Between::Operator(infix) => Some(infix),
                    Between::Since => Some(Infix::Since(parser.bounds()?)),
                    Between::Until => {
                        parser.not_in_this_version(span, "the future operator `until`");
                        parser.later_bounds()?;
                        None
                    }
                };
                // `->` groups to the right, all others to the left.
                let right = parser.binary(if level == level::IMPLIES { level } else { level + 1 })?;
                let span = parser.ast.nodes[left].span.to(parser.ast.nodes[right].span);
                let kind = infix.map_or(NodeKind::Broken, |infix| NodeKind::Binary(infix, left, right));
                left = parser.node(kind, span);
            }
            Ok(left)
        })
    }

    fn between(&mut self) -> Option<(Between, u8)> {
        use Between::Operator;
        use Infix::{And, Arithmetic, Compare, Iff, Implies, Or};
        let found = match (self.symbol(0), self.word(0)) {
            ("<->", _) => (Operator(Iff), level::IFF),
            ("->", _) => (Operator(Implies), level::IMPLIES),
            ("||", _) | (_, "or") => (Operator(Or), level::OR),
            ("&&", _) | (_, "and") => (Operator(And), level::AND),
            (_, "since") => (Between::Since, level::SINCE),
            (_, "until") => (Between::Until, level::SINCE),
            ("==", _) => (Operator(Compare(Comparison::Equal)), level::COMPARE),
            ("!=", _) => (Operator(Compare(Comparison::NotEqual)), level::COMPARE),
            ("<", _) => (Operator(Compare(Comparison::Less)), level::COMPARE),
            ("<=", _) => (Operator(Compare(Comparison::LessOrEqual)), level::COMPARE),
            (">", _) => (Operator(Compare(Comparison::Greater)), level::COMPARE),
            (">=", _) => (Operator(Compare(Comparison::GreaterOrEqual)), level::COMPARE),
            ("+", _) => (Operator(Arithmetic(BinaryOp::Add)), level::SUM),
            ("-", _) => (Operator(Arithmetic(BinaryOp::Subtract)), level::SUM),
            ("*", _) => (Operator(Arithmetic(BinaryOp::Multiply)), level::PRODUCT),
            ("/", _) => (Operator(Arithmetic(BinaryOp::Divide)), level::PRODUCT),
            ("%", _) => (Operator(Arithmetic(BinaryOp::Remainder)), level::PRODUCT),
            _ => return None,
        };
        Some(found)
    }

    fn side_by_side(&mut self, level: u8, span: Span) -> GivenUp {
        let (message, help) = if level == level::COMPARE {
            ("comparisons cannot be chained", "compare twice: write `a < x and x < b` for `a < x < b`")
        } else {
            (
                "`since` beside `since` needs parentheses",
                "write `(a since b) since c` or `a since (b since c)`",
            )
        };
        self.report(Diagnostic::new(Code::NeedsParentheses, span, message).help(help))
    }

    /// An operand, with the operators before it.
    fn prefix(&mut self, loosest: u8) -> Parsed<NodeId> {
        let start = self.span();
        if self.symbol(0) == "-" {
            return self.negative(start);
        }
        let word = self.word(0);
        let temporal =
            matches!(word, "previously" | "once" | "historically" | "eventually" | "always" | "next");
        if !(temporal || word == "not" || self.symbol(0) == "!") {
            return self.primary();
        }
        if loosest > level::UNARY {
            let found = self.found();
            let message = format!("{found} after this operator needs parentheses");
            return Err(self.report(
                Diagnostic::new(Code::NeedsParentheses, start, message)
                    .help(format!("{found} reaches as far as a comparison does; put it in parentheses")),
            ));
        }
        self.advance();
        let prefix = match word {
            "previously" => {
                if self.symbol(0) == "[" {
                    return Err(self.report(
                        Diagnostic::new(Code::InvalidBounds, self.span(), "`previously` has no bounds")
                            .help("write `once[2,2] p` for what held two steps ago"),
                    ));
                }
                Some(Prefix::Previously)
            }
            "once" => Some(Prefix::Once(self.bounds()?)),
            "historically" => Some(Prefix::Historically(self.bounds()?)),
            "eventually" | "always" | "next" => {
                self.not_in_this_version(start, &format!("the future operator `{word}`"));
                self.later_bounds()?;
                None
            }
            _ => Some(Prefix::Not),
        };
        let operand = self.binary(level::UNARY)?;
        let span = start.to(self.ast.nodes[operand].span);
        let kind = prefix.map_or(NodeKind::Broken, |prefix| NodeKind::Unary(prefix, operand));
        Ok(self.node(kind, span))
    }

    fn negative(&mut self, start: Span) -> Parsed<NodeId> {
        self.advance();
        if let TokenKind::Int(digits) = *self.peek()
            && digits == i64::MIN.unsigned_abs()
        {
            // The one number that is too large before its sign is read.
            let span = start.to(self.span());
            self.advance();
            return Ok(self.node(NodeKind::Literal(Value::Int(i64::MIN)), span));
        }
        let operand = self.binary(level::NEGATE)?;
        let span = start.to(self.ast.nodes[operand].span);
        Ok(self.node(NodeKind::Unary(Prefix::Negate, operand), span))
    }

    fn primary(&mut self) -> Parsed<NodeId> {
        let span = self.span();
        match self.peek().clone() {
            TokenKind::Int(digits) => {
                self.advance();
                let value = i64::try_from(digits).map_err(|_| {
                    self.report(Diagnostic::new(Code::InvalidNumber, span, "this number is too large").help(
                        "an integer has 64 bits; write a fraction, such as `1.0e30`, for a larger number",
                    ))
                })?;
                self.no_unit(span)?;
                Ok(self.node(NodeKind::Literal(Value::Int(value)), span))
            }
            TokenKind::Float(value) => {
                self.advance();
                self.no_unit(span)?;
                Ok(self.node(NodeKind::Literal(Value::Float(value)), span))
            }
            TokenKind::Duration => {
                let unit = span.of(self.text).trim_start_matches(|c: char| !c.is_alphabetic());
                if UNITS.contains(&unit) {
                    return Err(self.not_in_this_version(span, "a duration"));
                }
                Err(self.report(Diagnostic::new(Code::InvalidNumber, span, "this is no number")))
            }
            TokenKind::Text(text) => {
                self.advance();
                Ok(self.node(NodeKind::Literal(Value::String(text.into())), span))
            }
            TokenKind::Rye { topic, body } => {
                self.advance();
                let topic = topic.map(|span| Name { text: span.of(self.text).to_owned(), span });
                Ok(self.node(NodeKind::Rye { topic, body }, span))
            }
            TokenKind::Symbol("(") => {
                self.advance();
                let inner = self.expression()?;
                if self.symbol(0) != ")" {
                    return Err(self.after_expression(&[], "an operator or `)`"));
                }
                self.advance();
                Ok(inner)
            }
            TokenKind::Word => self.worded(span),
            _ => Err(self.expected("an expression")),
        }
    }

    /// Refuses `3 s`: a number with a unit behind it.
    fn no_unit(&mut self, number: Span) -> Parsed<()> {
        if UNITS.contains(&self.word(0)) {
            let span = number.to(self.span());
            return Err(self.not_in_this_version(span, "a duration"));
        }
        Ok(())
    }

    fn worded(&mut self, span: Span) -> Parsed<NodeId> {
        let word = self.word(0);
        match word {
            "true" | "false" => {
                self.advance();
                return Ok(self.node(NodeKind::Literal(Value::Bool(word == "true")), span));
            }
            "if" => return self.condition(span),
            "exists" | "forall" => {
                return Err(self.not_in_this_version(span, &format!("the quantifier `{word}`")));
            }
            _ if RESERVED.contains(&word) || self.at_declaration() => {
                return Err(self.expected("an expression"));
            }
            _ => {}
        }
        if self.symbol(1) == "(" {
            return self.call(word, span);
        }
        if self.symbol(1) == "{" && !self.before_body {
            self.advance();
            return Err(self.not_in_this_version(span.to(self.span()), "an atom with data (`topic{…}`)"));
        }
        self.advance();
        self.path(Name { text: word.to_owned(), span })
    }

    fn condition(&mut self, start: Span) -> Parsed<NodeId> {
        self.advance();
        let condition = self.expression()?;
        if self.word(0) != "then" {
            return Err(self.expected("an operator or `then`"));
        }
        self.advance();
        let yes = self.expression()?;
        if self.word(0) != "else" {
            return Err(self.expected("an operator or `else`"));
        }
        self.advance();
        let no = self.expression()?;
        let span = start.to(self.ast.nodes[no].span);
        Ok(self.node(NodeKind::If(condition, yes, no), span))
    }

    pub(super) fn path(&mut self, name: Name) -> Parsed<NodeId> {
        let mut span = name.span;
        let mut segments = Vec::new();
        loop {
            match self.symbol(0) {
                "." => {
                    let dot = self.span();
                    self.advance();
                    let place = self.span();
                    // `topic.` at the end of a line: what follows is not the missing field.
                    let gap = Span::new(dot.end, place.start).of(self.text);
                    if gap.contains('\n') && self.at_declaration() {
                        return Err(self.expected("the name of a field"));
                    }
                    let key: Box<str> = match self.peek() {
                        TokenKind::Text(text) => text.as_str().into(),
                        TokenKind::Word => place.of(self.text).into(),
                        _ => return Err(self.expected("the name of a field")),
                    };
                    segments.push((Segment::Key(key), place));
                    self.advance();
                }
                "[" => {
                    self.advance();
                    let place = self.span();
                    let index = match *self.peek() {
                        TokenKind::Int(digits) => u32::try_from(digits).ok(),
                        _ => None,
                    };
                    let Some(index) = index else { return Err(self.bad_index(&name)) };
                    self.advance();
                    if self.symbol(0) != "]" {
                        return Err(self.bad_index(&name));
                    }
                    segments.push((Segment::Index(index), place));
                    self.advance();
                }
                _ => break,
            }
            span = span.to(self.last_span());
        }
        Ok(self.node(NodeKind::Path(name, segments), span))
    }

    /// After a name comes `[`, but no index: bounds, perhaps, after a misspelt operator.
    fn bad_index(&mut self, name: &Name) -> GivenUp {
        let operators = ["once", "historically", "since"];
        if let Some(operator) = nearest(&name.text, operators) {
            let message = format!("no operator '{}'; did you mean '{operator}'?", name.text);
            return self.report(Diagnostic::new(Code::UnexpectedToken, name.span, message));
        }
        self.expected("the index of an element, such as `[0]`")
    }

    fn call(&mut self, word: &'a str, span: Span) -> Parsed<NodeId> {
        if word == "on" {
            return self.on(span);
        }
        let function = Function::named(word);
        if function.is_none() && WINDOWS.contains(&word) {
            let what = format!("the measurement `{word}`");
            return Err(self.not_in_this_version(span, &what));
        }
        self.advance();
        self.advance();
        let mut arguments = Vec::new();
        while self.symbol(0) != ")" {
            arguments.push(self.expression()?);
            if !self.eat(",") && self.symbol(0) != ")" {
                return Err(self.after_expression(&[], "an operator, `,` or `)`"));
            }
        }
        self.advance();
        let whole = span.to(self.last_span());
        if self.word(0) == "over" {
            return Err(self.not_in_this_version(self.span(), "a measurement over a window (`over`)"));
        }
        let Some(function) = function else {
            let names = Function::ALL.iter().map(|(name, _)| *name).chain(["on"]);
            let suggestion = match translation(word) {
                Some(meant) => format!("; did you mean '{meant}'?"),
                None => did_you_mean(word, names),
            };
            let message = format!("no function '{word}'{suggestion}");
            self.report(Diagnostic::new(Code::UnknownFunction, span, message));
            return Ok(self.node(NodeKind::Broken, whole));
        };
        if arguments.len() != function.arity() {
            let plural = if function.arity() == 1 { "argument" } else { "arguments" };
            let message =
                format!("`{word}` takes {} {plural}, here it has {}", function.arity(), arguments.len());
            self.report(Diagnostic::new(Code::WrongArguments, whole, message));
            return Ok(self.node(NodeKind::Broken, whole));
        }
        Ok(self.node(NodeKind::Call(function, arguments), whole))
    }

    fn on(&mut self, start: Span) -> Parsed<NodeId> {
        self.advance();
        self.advance();
        let span = self.span();
        let word = self.word(0);
        if word.is_empty() || RESERVED.contains(&word) {
            return Err(self.expected("the name of a topic"));
        }
        self.advance();
        if self.symbol(0) == "." {
            return Err(self.report(
                Diagnostic::new(Code::UnexpectedToken, self.span(), "`on` takes a topic, not a field of one")
                    .help(format!("write `on({word})`, or `changed(…)` for a change of the field")),
            ));
        }
        self.expect(")")?;
        let whole = start.to(self.last_span());
        Ok(self.node(NodeKind::On(Name { text: word.to_owned(), span }), whole))
    }

    /// Bounds after an operator, if there are any.
    fn bounds(&mut self) -> Parsed<BoundsSyntax> {
        let start = self.span();
        if !self.eat("[") {
            return Ok(BoundsSyntax { span: Span::new(start.start, start.start), ..Default::default() });
        }
        let lower = self.bound()?;
        if self.symbol(0) != "," {
            let span = start.to(self.span());
            let help = match self.symbol(0) {
                "]" => "write `[a,a]` for exactly a steps back, `[,a]` for at most a",
                _ => "bounds are written `[a,b]`, `[a,]` or `[,b]`, in steps back from the present",
            };
            let message = format!("expected `,` between two bounds, found {}", self.found());
            return Err(self.report(Diagnostic::new(Code::InvalidBounds, span, message).help(help)));
        }
        self.advance();
        let upper = self.bound()?;
        self.expect("]")?;
        Ok(BoundsSyntax { lower, upper, span: start.to(self.last_span()) })
    }

    fn bound(&mut self) -> Parsed<Option<Bound>> {
        let span = self.span();
        let bound = match *self.peek() {
            TokenKind::Symbol("," | "]") => return Ok(None),
            TokenKind::Int(_) | TokenKind::Float(_) if UNITS.contains(&self.word(1)) => {
                return Err(self.not_in_this_version(span.to(self.token(1).span), "a bound in units of time"));
            }
            TokenKind::Duration => return Err(self.not_in_this_version(span, "a bound in units of time")),
            TokenKind::Int(steps) => Bound::Steps(steps),
            TokenKind::Word => Bound::Name(Name { text: self.word(0).to_owned(), span }),
            _ => {
                let message = format!("expected a number of steps, found {}", self.found());
                return Err(self.report(Diagnostic::new(Code::InvalidBounds, span, message).help(
                    "bounds are written `[a,b]`, `[a,]` or `[,b]`, in whole steps back from the present",
                )));
            }
        };
        self.advance();
        Ok(Some(bound))
    }

    /// The bounds of an operator that has been refused: whatever is in them.
    fn later_bounds(&mut self) -> Parsed<()> {
        if self.eat("[") {
            while self.symbol(0) != "]" {
                if *self.peek() == TokenKind::End || self.at_declaration() {
                    return Err(GivenUp);
                }
                self.advance();
            }
            self.advance();
        }
        Ok(())
    }

    /// An expression has ended, but what follows does not belong there.
    pub(super) fn after_expression(&mut self, further: &[&str], what: &str) -> GivenUp {
        let (word, span) = (self.word(0), self.span());
        let last = self.last_span().of(self.text);
        if word == "over" || word == "within" {
            return self.not_in_this_version(span, &format!("`{word}` with a duration"));
        }
        if UNITS.contains(&word) && last.starts_with(|c: char| c.is_ascii_digit()) {
            return self.not_in_this_version(span, "a duration");
        }
        if *self.peek() == TokenKind::Unknown {
            return GivenUp;
        }
        let found = span.of(self.text);
        if let Some(meant) = translation(found) {
            let help = match meant {
                "==" => "equality is written `==`".to_owned(),
                _ => format!("write `{meant}`"),
            };
            let message = format!("expected an operator, found `{found}`");
            return self.report(Diagnostic::new(Code::UnexpectedToken, span, message).help(help));
        }
        let operators = INFIX.iter().take(3).copied();
        let prefixes = ["not", "previously", "once", "historically", "rye", "if"];
        if let Some(meant) = nearest(word, operators.chain(further.iter().copied())) {
            let message = format!("expected an operator, found `{word}`; did you mean '{meant}'?");
            return self.report(Diagnostic::new(Code::UnexpectedToken, span, message));
        }
        if word_follows(self.peek()) && (last == "on" || Function::named(last).is_some()) {
            let message = format!("expected `(` after '{last}', found {}", self.found());
            return self.report(
                Diagnostic::new(Code::UnexpectedToken, span, message)
                    .help(format!("`{last}` takes what it is about in parentheses: `{last}(…)`")),
            );
        }
        // `previusly p`: the misspelt word was taken for a name, and what follows is too much.
        if let Some(meant) = nearest(last, prefixes).or_else(|| translation(last)) {
            let message = format!("no operator '{last}'; did you mean '{meant}'?");
            return self.report(Diagnostic::new(Code::UnexpectedToken, self.last_span(), message));
        }
        self.expected(what)
    }
}

/// Whether an operand could begin here.
fn word_follows(kind: &TokenKind) -> bool {
    !matches!(kind, TokenKind::Symbol(_) | TokenKind::End)
}
