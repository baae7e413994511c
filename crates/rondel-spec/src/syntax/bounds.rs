//! Parser of bounds and durations.

use rondel_event::Timestamp;

use super::ast::{Bound, BoundKind, BoundsSyntax};
use super::parser::{INFIX, Parsed, Parser, Reported};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::duration::{DurationError, UNITS, nanos, synonym, unit};
use crate::lexer::TokenKind;
use crate::modules::Role;
use crate::suggest::did_you_mean;

/// Advice for a bound that is no constant.
const CONSTANT: &str =
    "write a duration such as `200 ms`, a number of steps such as `5`, or the name of a `const`";

impl Parser<'_> {
    /// Parses optional bounds after an operator.
    pub(super) fn bounds(&mut self) -> Parsed<Box<BoundsSyntax>> {
        let start = self.span();
        if let comparison @ ("<" | "<=" | ">" | ">=" | "==") = self.symbol(0) {
            let message = format!("expected bounds in brackets, found `{comparison}`");
            let help = match comparison {
                "<" | "<=" => "write `[0, 5 s]` for up to 5 s from the present",
                ">" | ">=" => "write `[5 s,]` for at least 5 s from the present",
                _ => "write `[5,5]` for exactly 5 steps from the present",
            };
            return Err(self.report(Diagnostic::new(Code::InvalidBounds, start, message).help(help)));
        }
        if self.symbol(0) != "[" && self.is_bare_bound() {
            let message = format!("expected bounds in brackets, found {}", self.found());
            let help = "write `[0, 5 s]` for up to 5 s from the present, `[0,5]` for up to 5 steps";
            return Err(self.report(Diagnostic::new(Code::InvalidBounds, start, message).help(help)));
        }
        if !self.eat("[") {
            let span = Span::new(start.start, start.start);
            return Ok(Box::new(BoundsSyntax { span, ..Default::default() }));
        }
        let lower = self.optional_bound()?;
        if self.symbol(0) != "," {
            let span = start.to(self.span());
            let help = match self.symbol(0) {
                "]" => "write `[a,a]` for exactly a, `[,a]` for at most a",
                _ => "write `[a,b]`, `[a,]` or `[,b]`; bounds are distances from the present",
            };
            let message = format!("expected `,` between the bounds, found {}", self.found());
            return Err(self.report(Diagnostic::new(Code::InvalidBounds, span, message).help(help)));
        }
        self.advance();
        let upper = self.optional_bound()?;
        if !self.eat("]") {
            let is_half_open = self.symbol(0) == ")";
            let duration = self.duration_advice();
            let reported = self.expected("`]`");
            if let Some(help) = duration {
                self.help_last(help);
            }
            if is_half_open {
                self.help_last(self.inclusive(lower.as_ref(), upper.as_ref()));
            }
            return Err(reported);
        }
        Ok(Box::new(BoundsSyntax { lower, upper, span: start.to(self.last_span()) }))
    }

    /// Returns advice for bounds that end with `)`, as half-open intervals do elsewhere.
    fn inclusive(&self, lower: Option<&Bound>, upper: Option<&Bound>) -> String {
        let written = |bound: Option<&Bound>| bound.map_or("", |bound| bound.span.of(self.text));
        let (from, to) = (written(lower), written(upper));
        let below = upper.and_then(|upper| match upper.kind {
            BoundKind::Whole(steps) => Some(steps.checked_sub(1)?.to_string()),
            BoundKind::Duration(nanos) if nanos > 0 => {
                Some(format!("{} s", Timestamp::from_nanos(nanos - 1)))
            }
            _ => None,
        });
        let space =
            if from.is_empty() || !from.contains(char::is_alphabetic) && !to.contains(char::is_alphabetic) {
                ""
            } else {
                " "
            };
        let exclusive = below.map(|below| format!(", or `[{from},{space}{below}]` to exclude `{to}`"));
        format!("bounds include both ends: write `[{from},{space}{to}]`{}", exclusive.unwrap_or_default())
    }

    /// Returns whether a number is followed directly by an operand.
    fn is_bare_bound(&self) -> bool {
        let next = match self.peek() {
            TokenKind::Duration => 1,
            TokenKind::Int(_) | TokenKind::Float(_) => {
                if unit(self.word(1)).or(synonym(self.word(1)).map(|_| 1)).is_some() { 2 } else { 1 }
            }
            _ => return false,
        };
        // `3 in (a, b)`, `3 not in [a, b]`
        let is_member = self.word(next) == "in" || self.word(next) == "not" && self.word(next + 1) == "in";
        let is_infix = is_member || INFIX.contains(&self.word(next)) || self.word(next) == "over";
        self.symbol(next) == "(" || !self.word(next).is_empty() && !is_infix
    }

    fn optional_bound(&mut self) -> Parsed<Option<Bound>> {
        if matches!(self.symbol(0), "," | "]" | ")") { Ok(None) } else { self.bound().map(Some) }
    }

    /// Parses one bound: a number with or without a unit, or the name of a constant.
    pub(super) fn bound(&mut self) -> Parsed<Bound> {
        let span = self.span();
        if let Some((nanos, span)) = self.quantity()? {
            return Ok(Bound { kind: BoundKind::Duration(nanos), span });
        }
        let kind = match *self.peek() {
            TokenKind::Int(whole) => BoundKind::Whole(whole),
            TokenKind::Float(_) => {
                let nanos = nanos(span.of(self.text), 1_000_000_000);
                BoundKind::Fraction(nanos.map_err(|why| self.duration_error(span, why))?)
            }
            TokenKind::Word if matches!(self.symbol(1), "." | "(") && !self.at_declaration() => {
                return Err(self.variable_bound());
            }
            TokenKind::Word if !self.at_declaration() => {
                let name = self.word(0);
                if let Some((kind, span)) = self.parameter_bound(name, span)? {
                    self.advance();
                    return Ok(Bound { kind, span });
                }
                BoundKind::Name(self.ast.modules.full(span.start, name, Role::Value))
            }
            _ => {
                let message = format!("expected a number of steps or a duration, found {}", self.found());
                return Err(self.report(
                    Diagnostic::new(Code::InvalidBounds, span, message)
                        .help("write a non-negative number of steps, or a duration such as `200 ms`"),
                ));
            }
        };
        self.advance();
        Ok(Bound { kind, span })
    }

    /// Reports a field or a call where a constant must stand.
    fn variable_bound(&mut self) -> Reported {
        let start = self.span();
        self.advance();
        while self.symbol(0) == "."
            && (!self.word(1).is_empty() || matches!(self.token(1).kind, TokenKind::Text(_)))
        {
            self.advance();
            self.advance();
        }
        let span = start.to(self.last_span());
        let found = span.of(self.text);
        let call = if self.symbol(0) == "(" { "(…)" } else { "" };
        let message = format!("a bound is a constant, found `{found}{call}`");
        self.report(Diagnostic::new(Code::NotConstant, span, message).help(CONSTANT))
    }

    /// Parses an optional number with a unit of time; returns nanoseconds.
    pub(super) fn quantity(&mut self) -> Parsed<Option<(i64, Span)>> {
        let mut span = self.span();
        let text = span.of(self.text);
        let (number, word) = match self.peek() {
            TokenKind::Duration => {
                let digits = text.trim_end_matches(char::is_alphabetic);
                (digits, &text[digits.len()..])
            }
            TokenKind::Int(_) | TokenKind::Float(_)
                if unit(self.word(1)).is_some() || synonym(self.word(1)).is_some() =>
            {
                (text, self.word(1))
            }
            _ => return Ok(None),
        };
        let Some(unit) = unit(word) else {
            if *self.peek() != TokenKind::Duration {
                span = span.to(self.token(1).span);
            }
            if let Some(help) = number_advice(text, word) {
                let message = format!("`{text}` is no number");
                return Err(self.report(Diagnostic::new(Code::InvalidNumber, span, message).help(help)));
            }
            let message = match synonym(word) {
                Some(meant) => format!("unknown unit '{word}'; did you mean '{meant}'?"),
                None => {
                    let suggestion = did_you_mean(word, UNITS.iter().map(|(name, _)| *name));
                    format!("invalid number: unknown unit '{word}'{suggestion}")
                }
            };
            return Err(self.report(
                Diagnostic::new(Code::InvalidNumber, span, message)
                    .help("the units of time are ns, us, ms, s, min, h and d"),
            ));
        };
        let result = nanos(number, unit);
        if *self.peek() != TokenKind::Duration {
            self.advance();
            span = span.to(self.span());
        }
        self.advance();
        match result {
            Ok(nanos) => Ok(Some((nanos, span))),
            Err(why) => Err(self.duration_error(span, why)),
        }
    }

    fn duration_error(&mut self, span: Span, why: DurationError) -> Reported {
        let (message, help) = match why {
            DurationError::TooLong => {
                ("duration is too long", "durations are limited to 292 years (64-bit nanoseconds)")
            }
            DurationError::TooFine => {
                ("duration is finer than a nanosecond", "write a whole number of nanoseconds")
            }
            DurationError::NotANumber => ("invalid number", "write a duration as in `200 ms`"),
        };
        self.report(Diagnostic::new(Code::InvalidNumber, span, message).help(help))
    }
}

/// Returns advice for a number that other languages write so, or that is not whole; `word` are the letters at its end.
fn number_advice(text: &str, word: &str) -> Option<String> {
    let radix = match text.get(..2) {
        Some("0x" | "0X") => Some((16, "hexadecimal")),
        Some("0b" | "0B") => Some((2, "binary")),
        Some("0o" | "0O") => Some((8, "octal")),
        _ => None,
    };
    if let Some((radix, name)) = radix {
        let number = i64::from_str_radix(&text[2..].replace('_', ""), radix).ok()?;
        return Some(format!("write `{number}`: there are no {name} numbers"));
    }
    match word {
        "e" | "E" => Some(format!("write digits after `{word}`, as in `{text}3`")),
        "f" | "F" | "L" | "u" | "U" | "l" => Some(format!("write `{}`", text.strip_suffix(word)?)),
        _ => None,
    }
}
