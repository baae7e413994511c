//! Parser of expressions, by operator precedence.

use rondel_event::{Comparison, Value};

use super::ast::{BoundsSyntax, Function, Infix, NodeId, NodeKind, Prefix};
use super::data::MEASUREMENTS;
use super::parser::{INFIX, Parsed, Parser, Reported};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lexer::TokenKind;
use crate::spec::BinaryOp;
use crate::suggest::{hint, nearest, translation};

/// Operator precedences, from loosest to tightest.
pub(super) mod level {
    pub(in crate::syntax) const LOOSEST: u8 = 0;
    pub(in crate::syntax) const IFF: u8 = 1;
    pub(in crate::syntax) const IMPLIES: u8 = 2;
    pub(in crate::syntax) const OR: u8 = 3;
    pub(in crate::syntax) const AND: u8 = 4;
    pub(in crate::syntax) const SINCE: u8 = 5;
    pub(in crate::syntax) const UNARY: u8 = 6;
    pub(in crate::syntax) const COMPARE: u8 = 7;
    pub(in crate::syntax) const SUM: u8 = 8;
    pub(in crate::syntax) const PRODUCT: u8 = 9;
    pub(in crate::syntax) const NEGATE: u8 = 10;
}

/// An infix operator, before its bounds are parsed.
enum InfixToken {
    Operator(Infix),
    Since,
    Until,
    /// `in` or `not in`.
    Member {
        negated: bool,
    },
}

impl<'a> Parser<'a> {
    pub(super) fn expression(&mut self) -> Parsed<NodeId> {
        self.binary(level::LOOSEST)
    }

    /// Parses an expression whose infix operators bind at least as tightly as `loosest`.
    pub(super) fn binary(&mut self, loosest: u8) -> Parsed<NodeId> {
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
                    InfixToken::Member { negated } => {
                        left = parser.member(left, negated)?;
                        continue;
                    }
                    InfixToken::Operator(infix) => infix,
                    InfixToken::Since => Infix::Since(parser.bounds()?),
                    InfixToken::Until => {
                        let bounds = parser.bounds()?;
                        parser.ahead("until", span, &bounds);
                        Infix::Until(bounds)
                    }
                };
                // `->` associates to the right, all others to the left.
                let right = parser.binary(if level == level::IMPLIES { level } else { level + 1 })?;
                let span = parser.ast.nodes[left].span.to(parser.ast.nodes[right].span);
                left = parser.node(NodeKind::Binary(infix, left, right), span);
            }
            Ok(left)
        })
    }

    fn between(&mut self) -> Option<(InfixToken, u8)> {
        use Infix::{And, Arithmetic, Compare, Iff, Implies, Or};
        use InfixToken::Operator;
        let found = match (self.symbol(0), self.word(0)) {
            ("<->", _) => (Operator(Iff), level::IFF),
            ("->", _) => (Operator(Implies), level::IMPLIES),
            ("||", _) | (_, "or") => (Operator(Or), level::OR),
            ("&&", _) | (_, "and") => (Operator(And), level::AND),
            (_, "since") => (InfixToken::Since, level::SINCE),
            (_, "until") => (InfixToken::Until, level::SINCE),
            (_, "in") => (InfixToken::Member { negated: false }, level::COMPARE),
            (_, "not") if self.word(1) == "in" => (InfixToken::Member { negated: true }, level::COMPARE),
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

    /// Parses what `in` is followed by: the values `(a, b)`, or an interval, of which a round bracket excludes an end.
    fn member(&mut self, operand: NodeId, negated: bool) -> Parsed<NodeId> {
        if negated {
            self.advance();
        }
        let open = self.symbol(0);
        if !matches!(open, "(" | "[") {
            let is_path = !self.word(0).is_empty();
            let reported = self.expected("`(` or `[` after `in`");
            self.help_last(match is_path {
                true => {
                    "write `x in (20, 21)` for values, `x in [0, 10]` for an interval; for the elements of an array \
                     `any x in scan.ranges: x < 0.2`, `(count x in scan.ranges: x < 0.2)`"
                }
                false => "write `x in (20, 21)` for values, `x in [0, 10]` for an interval",
            });
            return Err(reported);
        }
        let start = self.span();
        self.advance();
        let mut members = Vec::new();
        while !matches!(self.symbol(0), ")" | "]") {
            members.push(self.expression()?);
            if !self.eat(",") && !matches!(self.symbol(0), ")" | "]") {
                return Err(self.after_expression(&[], "an operator, `,`, `)` or `]`"));
            }
        }
        let close = self.symbol(0);
        let is_interval = open == "[" || close == "]";
        self.advance();
        let brackets = start.to(self.last_span());
        let is_string =
            |member: &NodeId| matches!(self.ast.nodes[*member].kind, NodeKind::Literal(Value::String(_)));
        let of_strings = is_interval && !members.is_empty() && members.iter().all(is_string);
        if members.is_empty() || is_interval && members.len() != 2 || of_strings {
            let inside = Span::new(start.end, self.last_span().start).of(self.text).trim();
            let listed = || format!("write `{} in ({inside})`", self.ast.nodes[operand].span.of(self.text));
            let diagnostic = match is_interval {
                true if of_strings => {
                    Diagnostic::new(Code::WrongArguments, brackets, "an interval has no strings")
                        .help(listed())
                }
                true => Diagnostic::new(Code::WrongArguments, brackets, "an interval has two ends")
                    .help("write `x in [0, 10]` for an interval, `x in (20, 21, 22)` for values"),
                false => Diagnostic::new(Code::WrongArguments, brackets, "`in` needs at least one value")
                    .help("write `x in (20, 21)`"),
            };
            self.report(diagnostic);
            members.push(operand);
            self.silence(&members);
            return Ok(self.node(NodeKind::Invalid, brackets));
        }
        let interval = is_interval.then_some([open == "[", close == "]"]);
        let span = self.ast.nodes[operand].span.to(brackets);
        Ok(self.node(NodeKind::Member { operand, members, interval, negated }, span))
    }

    fn side_by_side(&mut self, level: u8, span: Span) -> Reported {
        let (message, help) = if level == level::COMPARE {
            ("comparisons cannot be chained", "write `a < x and x < b` instead of `a < x < b`")
        } else {
            (
                "chained `since` and `until` need parentheses",
                "write `(a since b) since c` or `a since (b since c)`",
            )
        };
        self.report(Diagnostic::new(Code::NeedsParentheses, span, message).help(help))
    }

    /// Parses an operand with its prefix operators.
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
        let prefix = self.operator_before(word, start, loosest)?;
        let operand = self.binary(level::UNARY)?;
        let span = start.to(self.ast.nodes[operand].span);
        Ok(self.node(NodeKind::Unary(prefix, operand), span))
    }

    /// Parses a prefix operator with its bounds. Separate from the recursive functions, to keep their frames small.
    fn operator_before(&mut self, word: &str, start: Span, loosest: u8) -> Parsed<Prefix> {
        if loosest > level::UNARY {
            let found = self.found();
            let message = format!("{found} after this operator needs parentheses");
            return Err(self.report(
                Diagnostic::new(Code::NeedsParentheses, start, message)
                    .help(format!("put {found} and its operand in parentheses")),
            ));
        }
        self.advance();
        Ok(match word {
            "previously" => {
                if self.symbol(0) == "[" {
                    return Err(self.report(
                        Diagnostic::new(Code::InvalidBounds, self.span(), "`previously` takes no bounds")
                            .help("write `once[2,2] p` for the value of `p` two steps ago"),
                    ));
                }
                Prefix::Previously
            }
            "once" => Prefix::Once(self.bounds()?),
            "historically" => Prefix::Historically(self.bounds()?),
            "next" => {
                if self.symbol(0) == "[" {
                    return Err(self.report(
                        Diagnostic::new(Code::InvalidBounds, self.span(), "`next` takes no bounds")
                            .help("write `eventually[2,2] p` for the value of `p` two steps ahead"),
                    ));
                }
                Prefix::Next
            }
            "eventually" | "always" => {
                let bounds = self.bounds()?;
                self.ahead(word, start, &bounds);
                if word == "always" { Prefix::Always(bounds) } else { Prefix::Eventually(bounds) }
            }
            _ => Prefix::Not,
        })
    }

    /// Reports a future operator without an upper bound: it might never have a verdict.
    fn ahead(&mut self, operator: &str, place: Span, bounds: &BoundsSyntax) {
        // Bounds in parentheses are reported where they are read as an operand.
        if bounds.upper.is_some() || self.symbol(0) == "(" && self.has_comma_in_parentheses() {
            return;
        }
        let (message, help) = match operator {
            "eventually" => (
                "`eventually` without an upper bound can never be violated",
                "add an upper bound: `eventually[,5] p` in steps, `eventually[0, 2 s] p` in time",
            ),
            "always" => (
                "`always` without an upper bound can never be satisfied",
                "remove `always`, as a property is checked at every time point, or add an upper bound: `always[0, 2 s] p`",
            ),
            _ => (
                "`until` without an upper bound may never be decided",
                "add an upper bound: `p until[,5] q` in steps, `p until[0, 2 s] q` in time",
            ),
        };
        self.report(Diagnostic::new(Code::UnboundedFuture, place, message).help(help));
    }

    fn has_comma_in_parentheses(&self) -> bool {
        let mut open = 0_usize;
        for token in &self.tokens()[self.place()..] {
            match token.kind {
                TokenKind::Symbol("(" | "[" | "{") => open += 1,
                TokenKind::Symbol(")" | "]" | "}") if open <= 1 => return false,
                TokenKind::Symbol(")" | "]" | "}") => open -= 1,
                TokenKind::Symbol(",") if open == 1 => return true,
                TokenKind::End => return false,
                _ => {}
            }
        }
        false
    }

    /// Returns the distance to the open parenthesis, if it is the operand of a temporal operator.
    pub(super) fn after_operator(&self) -> Option<usize> {
        let mut open = 0_usize;
        for ahead in 1..=self.place() {
            match self.symbol_before(ahead) {
                ")" | "]" => open += 1,
                "[" => open = open.saturating_sub(1),
                "(" if open == 0 => {
                    let word = self.word_before(ahead + 1);
                    let temporal =
                        ["once", "historically", "eventually", "always", "since", "until", "previously"];
                    return temporal.contains(&word).then_some(ahead);
                }
                "(" => open -= 1,
                _ => {}
            }
        }
        None
    }

    /// Returns advice for bounds that start with `(`, as half-open intervals do elsewhere; none for other arguments.
    fn inclusive_from(&self, open: usize) -> Option<String> {
        let close = (1..=3).find(|ahead| self.symbol(*ahead) == "]")?;
        let end = self.token(close).span.start;
        let from = Span::new(self.token_before(open).span.end, self.span().start).of(self.text).trim();
        let to = Span::new(self.span().end, end).of(self.text).trim();
        let has_unit = |bound: &str| bound.contains(char::is_alphabetic);
        let above = match from.parse::<u64>() {
            Ok(0) if has_unit(to) => Some("1 ns".to_owned()),
            Ok(steps) if !has_unit(to) => steps.checked_add(1).map(|steps| steps.to_string()),
            _ => None,
        };
        let space = if has_unit(from) || has_unit(to) { " " } else { "" };
        let exclusive = above.map(|above| format!(", or `[{above},{space}{to}]` to exclude `{from}`"));
        Some(format!(
            "bounds include both ends: write `[{from},{space}{to}]`{}",
            exclusive.unwrap_or_default()
        ))
    }

    fn negative(&mut self, start: Span) -> Parsed<NodeId> {
        self.advance();
        if let TokenKind::Int(digits) = *self.peek()
            && digits == i64::MIN.unsigned_abs()
        {
            // This number is in range only with its sign.
            let span = start.to(self.span());
            self.advance();
            return Ok(self.node(NodeKind::Literal(Value::Int(i64::MIN)), span));
        }
        let operand = self.binary(level::NEGATE)?;
        let span = start.to(self.ast.nodes[operand].span);
        Ok(self.node(NodeKind::Unary(Prefix::Negate, operand), span))
    }

    /// Reports an unexpected token after an expression.
    pub(super) fn after_expression(&mut self, further: &[&str], what: &str) -> Reported {
        let (word, span) = (self.word(0), self.span());
        let last = self.last_span().of(self.text);
        if word == "over" {
            let message = "expected an operator, found `over`";
            let help = "write `over` after `count`, `sum`, `mean`, `min`, `max` or `rate` with one argument";
            return self.report(Diagnostic::new(Code::UnexpectedToken, span, message).help(help));
        }
        if *self.peek() == TokenKind::Unknown {
            return Reported;
        }
        if let Some(reported) = self.foreign_operator() {
            return reported;
        }
        let may_declare = self.begins_line() && further.contains(&"property");
        let is_near = !further.contains(&word) && nearest(word, further.iter().copied()).is_some();
        if may_declare && let Some(reported) = self.malformed_declaration() {
            return reported;
        }
        if may_declare && !is_near && self.foreign_declaration().is_some() {
            return self.expected_declaration(what);
        }
        if let Some(reported) = self.translated_operator() {
            return reported;
        }
        if let Some(reported) = self.operator_as_name(further) {
            return reported;
        }
        let reported = self.expected(what);
        if self.symbol(0) == "[" {
            self.help_last("write bounds between the operator and its operand: `once[0, 5 s] p`");
        }
        if self.symbol(0) == ","
            && let Some(open) = self.after_operator()
        {
            let help = "write bounds in brackets between the operator and its operand: `once[0, 5 s] p`";
            self.help_last(self.inclusive_from(open).unwrap_or_else(|| help.to_owned()));
        }
        let at_word = matches!(self.peek(), TokenKind::Word);
        if at_word && last.starts_with(|c: char| c.is_ascii_digit()) {
            self.help_last(
                "only times have units (ns, us, ms, s, min, h, d); write other numbers without a unit",
            );
        }
        reported
    }

    /// Reports a token that is an operator of another language.
    fn translated_operator(&mut self) -> Option<Reported> {
        let (word, span) = (self.word(0), self.span());
        let found = match (self.symbol(0), self.symbol(1)) {
            ("~", ">") => "~>",
            ("|", "->") => "|->",
            ("|", "=>") => "|=>",
            _ => span.of(self.text),
        };
        let is_pair = found.len() > span.end - span.start;
        if let Some(help) = hint(found).filter(|_| is_pair) {
            let message = format!("expected an operator, found `{found}`");
            let span = span.to(self.token(1).span);
            return Some(self.report(Diagnostic::new(Code::UnexpectedToken, span, message).help(help)));
        }
        if let Some(meant) = translation(found) {
            let help = match meant {
                "==" => "use `==` for equality".to_owned(),
                _ => format!("write `{meant}`"),
            };
            let message = format!("expected an operator, found `{found}`");
            return Some(self.report(Diagnostic::new(Code::UnexpectedToken, span, message).help(help)));
        }
        let at_word = matches!(self.peek(), TokenKind::Word);
        let for_each = (word, self.word(1)) == ("for", "each");
        if let Some(help) = hint(if for_each { "foreach" } else { found }).filter(|_| at_word) {
            let message = format!("expected an operator, found `{found}`");
            return Some(self.report(Diagnostic::new(Code::UnexpectedToken, span, message).help(help)));
        }
        None
    }

    /// Reports an operator that was misspelt or parsed as a name, and a function without parentheses.
    fn operator_as_name(&mut self, further: &[&str]) -> Option<Reported> {
        let (word, span) = (self.word(0), self.span());
        let last = self.last_span().of(self.text);
        // `globally p`: the operator of another language was parsed as a name.
        if let Some(help) = hint(last) {
            let message = format!("unknown operator '{last}'");
            return Some(
                self.report(Diagnostic::new(Code::UnexpectedToken, self.last_span(), message).help(help)),
            );
        }
        let operators = INFIX.iter().take(4).copied();
        let prefixes = [
            "not",
            "previously",
            "once",
            "historically",
            "rye",
            "if",
            "next",
            "eventually",
            "always",
            "exists",
            "forall",
        ];
        let is_call =
            self.symbol_before(2) != "." && (MEASUREMENTS.contains(&last) || Function::named(last).is_some());
        if word_follows(self.peek()) && is_call {
            let message = format!("expected `(` after '{last}', found {}", self.found());
            let diagnostic = Diagnostic::new(Code::UnexpectedToken, span, message);
            let help = format!("put the argument of `{last}` in parentheses: `{last}(…)`");
            return Some(self.report(diagnostic.help(help)));
        }
        if let Some(meant) = nearest(word, operators.chain(further.iter().copied())) {
            let message = format!("expected an operator, found `{word}`; did you mean '{meant}'?");
            return Some(self.report(Diagnostic::new(Code::UnexpectedToken, span, message)));
        }
        // `previusly p`: the misspelt operator was parsed as a name.
        let may_be_operand = !matches!(self.symbol(0), "," | ")" | "]" | "}" | ":");
        if let Some(meant) = nearest(last, prefixes).or_else(|| translation(last)).filter(|_| may_be_operand)
        {
            let message = format!("unknown operator '{last}'; did you mean '{meant}'?");
            return Some(self.report(Diagnostic::new(Code::UnexpectedToken, self.last_span(), message)));
        }
        None
    }
}

/// Returns whether an operand can start here.
fn word_follows(kind: &TokenKind) -> bool {
    !matches!(kind, TokenKind::Symbol(_) | TokenKind::End)
}
