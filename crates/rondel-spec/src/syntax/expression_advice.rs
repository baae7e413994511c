//! Advice for expressions as other languages write them, and for calls.

use rondel_event::ValueType;

use super::ast::{Function, NodeId, NodeKind};
use super::parser::{Parser, Reported};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::duration::{UNITS, nanos, unit};
use crate::foreign;
use crate::lexer::TokenKind;
use crate::operators::Operator;

/// The operators with bounds before their operand.
const TEMPORAL: [&str; 4] = ["once", "historically", "eventually", "always"];

/// Prefixes of library functions in other languages.
const LIBRARIES: [&str; 5] = ["math", "Math", "np", "numpy", "std"];

/// Returns a duration with the largest unit of which it is a whole number, at most seconds.
fn written_duration(nanos: i64) -> String {
    let units = UNITS.iter().rev().filter(|(_, length)| *length <= 1_000_000_000);
    let whole = units.clone().find(|(_, length)| nanos % length == 0);
    whole.map_or_else(String::new, |(unit, length)| format!("{} {unit}", nanos / length))
}

impl Parser<'_> {
    /// Reports what follows an operand, if it is known from other languages.
    pub(super) fn foreign_operator(&mut self) -> Option<Reported> {
        let (span, last) = (self.span(), self.last_span());
        let is_next = last.end == span.start;
        let beside = self.token(1).span;
        let pair = span.to(beside);
        let (span, help) = match self.symbol(0) {
            "=" if self.symbol(1) == "<" && span.end == beside.start => (pair, "write `<=`".to_owned()),
            "," if is_next
                && span.end == beside.start
                && self.is_whole_before()
                && self.is_whole(1)
                && self.after_operator().is_none() =>
            {
                (span, self.comma_advice())
            }
            "." if is_next && self.is_whole_before() && self.symbol(1) == "." && self.is_whole(2) => {
                let (low, high) = (last.of(self.text), self.token(2).span.of(self.text));
                (pair, format!("write `{low}, {high}`: `[{low}, {high}]` is an interval"))
            }
            "=" if self.symbol(1) == "~" && span.end == beside.start => {
                (pair, "write `matches(s, \"…\")` for a regular expression".to_owned())
            }
            "." if is_next && self.is_whole_before() => (span, format!("write `{}.0`", last.of(self.text))),
            _ if last.of(self.text) == ")" && self.bounds_in_parentheses().is_some() => {
                let (span, help) = self.bounds_in_parentheses()?;
                let diagnostic = Diagnostic::new(Code::UnexpectedToken, span, "bounds stand in brackets");
                return Some(self.report(diagnostic.help(help)));
            }
            "(" if is_next && self.symbol_before(2) == "." => (span, self.method_advice()?),
            _ if self.symbol_before(2) == "]" && unit(last.of(self.text)).is_some() => {
                (last, self.unit_behind_bounds()?)
            }
            _ if (self.word(0), self.word(2)) == ("each", "in") && last.of(self.text) == "for" => {
                let array = self.until_colon(3)?;
                let element = self.word(1);
                let help = format!(
                    "write `all {element} in {array}: …` for the elements of an array, `property p for each {element} in \
                     {array} = …` for one instance per value of a field"
                );
                (last.to(span), help)
            }
            _ => (span, self.duration_advice()?),
        };
        let message = format!("expected an operator, found `{}`", span.of(self.text));
        Some(self.report(Diagnostic::new(Code::UnexpectedToken, span, message).help(help)))
    }

    /// Returns advice for a comma in a number: before each three digits, as in `1,000`, or for a point.
    fn comma_advice(&self) -> String {
        let first = self.last_span().of(self.text);
        let mut number = first.to_owned();
        let mut at = 0;
        while self.symbol(at) == "," && self.is_whole(at + 1) {
            let (comma, group) = (self.token(at).span, self.token(at + 1).span);
            if comma.end != group.start || group.of(self.text).len() != 3 {
                break;
            }
            number += group.of(self.text);
            at += 2;
        }
        match at {
            _ if at > 0 && first != "0" => format!("write `{number}`, without commas"),
            _ => format!("write `{first}.{}`, with a point", self.token(1).span.of(self.text)),
        }
    }

    fn is_whole_before(&self) -> bool {
        matches!(self.token_before(1).kind, TokenKind::Int(_))
    }

    fn is_whole(&self, ahead: usize) -> bool {
        matches!(self.token(ahead).kind, TokenKind::Int(_))
    }

    /// Returns advice for what follows a duration or a number: the rest of a duration, or a unit of another language.
    pub(super) fn duration_advice(&self) -> Option<String> {
        let last = self.last_span().of(self.text);
        if self.word(0) == "m" && last.ends_with(|c: char| c.is_ascii_digit()) {
            return Some(format!("write `{last} min` for minutes; only times have units"));
        }
        let first = self.duration_at(match unit(last) {
            Some(_) => self.place().checked_sub(2)?,
            None => self.place().checked_sub(1)?,
        })?;
        let mut total = first.0;
        let (mut at, mut parts) = (self.place(), 0);
        while let Some((length, tokens)) = self.duration_at(at) {
            total = total.checked_add(length)?;
            at += tokens;
            parts += 1;
        }
        (parts > 0).then(|| format!("write `{}`", written_duration(total)))
    }

    /// Returns the duration that begins with a token, and the number of its tokens.
    fn duration_at(&self, at: usize) -> Option<(i64, usize)> {
        let text = |at: usize| self.tokens().get(at).map(|token| token.span.of(self.text));
        let number = text(at)?;
        let (number, word, tokens) = match self.tokens().get(at)?.kind {
            TokenKind::Int(_) | TokenKind::Float(_) => (number, text(at + 1)?, 2),
            TokenKind::Duration => {
                let digits = number.trim_end_matches(char::is_alphabetic).len();
                (&number[..digits], &number[digits..], 1)
            }
            _ => return None,
        };
        Some((nanos(number, unit(word)?).ok()?, tokens))
    }

    /// Returns advice for `odom.speed.abs()`.
    fn method_advice(&self) -> Option<String> {
        let method = self.word_before(1);
        if Function::named(method).is_none() && Operator::named(method).is_none() && method != "len" {
            return None;
        }
        // The dots and the names between them.
        let mut back = 3;
        while self.symbol_before(back + 1) == "." && !self.word_before(back + 2).is_empty() {
            back += 2;
        }
        let (first, end) = (self.token_before(back).span, self.token_before(3).span);
        let operand = first.to(end).of(self.text);
        let is_path = !self.word_before(back).is_empty() && !operand.contains(char::is_whitespace);
        if is_path && LIBRARIES.contains(&operand) {
            return Some(format!("write `{method}(…)`"));
        }
        let rest = if self.symbol(1) == ")" { "" } else { ", …" };
        is_path.then(|| format!("write `{method}({operand}{rest})`"))
    }

    /// Returns advice for `historically(5 s) p`.
    fn bounds_in_parentheses(&self) -> Option<(Span, String)> {
        let open = (3..5).find(|back| self.symbol_before(*back) == "(")?;
        let operator = self.word_before(open + 1);
        let whole = self.token_before(open).span.to(self.last_span());
        let inside = Span::new(whole.start + 1, whole.end - 1).of(self.text).trim();
        let is_number = inside.starts_with(|c: char| c.is_ascii_digit());
        let is_temporal = TEMPORAL.contains(&operator);
        (is_number && is_temporal).then(|| (whole, format!("write `{operator}[0, {inside}] p`")))
    }

    /// Returns advice for `once[0, 2] s p`.
    fn unit_behind_bounds(&self) -> Option<String> {
        let unit = self.word_before(1);
        let open = (3..8).find(|back| self.symbol_before(*back) == "[")?;
        let inside = Span::new(self.token_before(open).span.end, self.token_before(2).span.start);
        let inside = inside.of(self.text).trim_end();
        inside
            .ends_with(|c: char| c.is_ascii_digit())
            .then(|| format!("write the unit in the brackets: `[{inside} {unit}]`"))
    }

    /// Returns the text from a token ahead to a colon on the same line.
    fn until_colon(&self, ahead: usize) -> Option<String> {
        let from = self.token(ahead).span.start;
        let rest = Span::new(from, self.text.len()).of(self.text);
        let (array, _) = rest.lines().next()?.split_once(':')?;
        Some(array.trim().to_owned())
    }

    /// Returns advice for a call with too few or too many arguments.
    pub(super) fn call_advice(&self, word: &str, function: Function, arguments: &[NodeId]) -> String {
        let written: Vec<&str> =
            arguments.iter().map(|argument| self.ast.nodes[*argument].span.of(self.text)).collect();
        let call = match (function, &written[..]) {
            (Function::Min | Function::Max, [first, others @ ..]) if others.len() > 1 => {
                others.iter().fold((*first).to_owned(), |inner, other| format!("{word}({inner}, {other})"))
            }
            (_, [x, base]) if word == "log" => format!("log({x}) / log({base})"),
            _ => {
                let is_text = match function {
                    Function::StartsWith => true,
                    Function::Value(function) => function.parameters().contains(&ValueType::String),
                    _ => false,
                };
                let names = match function {
                    Function::Clamp => ["x", "low", "high"],
                    _ if is_text => ["s", "t", "u"],
                    _ => ["x", "y", "z"],
                };
                let arguments: Vec<&str> = names
                    .iter()
                    .take(function.arity())
                    .enumerate()
                    .map(|(i, name)| *written.get(i).unwrap_or(name))
                    .collect();
                format!("{word}({})", arguments.join(", "))
            }
        };
        format!("write `{call}`")
    }

    /// Returns advice for a call of another language, whose window may be ahead.
    pub(super) fn instead_of(&self, call: foreign::Call, arguments: &[NodeId]) -> String {
        let window = (self.word(0) == "over").then(|| self.written_bound(1)).flatten();
        let written = call.with(window.as_deref(), |index, place| {
            let argument = *arguments.get(index)?;
            match (place, &self.ast.nodes[argument].kind) {
                (foreign::Place::Topic, NodeKind::Path(name, _)) => Some(name.text.clone()),
                (foreign::Place::Alone, _) => Some(self.ast.nodes[argument].span.of(self.text).to_owned()),
                _ => Some(self.as_operand(argument)),
            }
        });
        match (call.renamed(), arguments.first()) {
            (Some(name @ ("mean" | "sum")), Some(argument)) if window.is_none() => {
                let array = self.ast.nodes[*argument].span.of(self.text);
                format!("write `{written}`, or `{name}({array})` for the elements of an array")
            }
            _ => format!("write `{written}`"),
        }
    }
}
