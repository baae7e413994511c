//! Parser of acceptance criteria.

use rondel_event::Comparison;

use super::ast::{Assert, Attribute, Body, Demanded, Name};
use super::parser::{BEFORE_PARENTHESIS, Mark, PREFIX, Parsed, Parser};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lexer::TokenKind;
use crate::suggest::did_you_mean;

/// The words that say what is demanded.
const DEMANDS: [&str; 5] = ["always", "ever", "share", "longest", "count"];

const FORMS: &str = "write `assert always p`, `assert ever p`, `assert share(p) >= 0.95`, `assert longest(p) <= 2 s` or \
                     `assert count(violated p) <= 3`";

/// Further words that a space follows before a parenthesis.
pub(super) const SPACED: [&str; 3] = ["ever", "while", "violated"];

fn is_spaced(word: &str) -> bool {
    SPACED.contains(&word) || PREFIX.contains(&word) || BEFORE_PARENTHESIS.contains(&word)
}

fn is_word(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Whether an operand ends with this token, so that a minus behind it is between two.
fn is_operand(token: &str) -> bool {
    let is_number = token.starts_with(|c: char| c.is_ascii_digit());
    is_number || matches!(token, ")" | "]") || is_word(token) && !is_spaced(token)
}

impl Parser<'_> {
    pub(super) fn assert(&mut self, attributes: Vec<Attribute>) -> Parsed<()> {
        self.advance();
        let own = match self.symbol(1) {
            "=" => {
                let own = self.declared_name("an assert")?;
                self.expect("=")?;
                Some(own)
            }
            _ => None,
        };
        let (from, start) = (self.place(), self.span());
        let word = self.word(0);
        if !DEMANDS.contains(&word) {
            // The nearest word to `never` is its opposite.
            let help = if word == "never" { self.always_not() } else { FORMS.to_owned() };
            let suggestion = if word == "never" { String::new() } else { did_you_mean(word, DEMANDS) };
            let message = format!("expected what the assert demands, found {}{suggestion}", self.found());
            return Err(self.report(Diagnostic::new(Code::UnexpectedToken, start, message).help(help)));
        }
        self.advance();
        let (demand, body) = match word {
            "always" => (Demanded::Always, self.asserted()?),
            "ever" => (Demanded::Ever, self.asserted()?),
            _ => self.measured(word)?,
        };
        let (mut span, mut mode) = (None, None);
        loop {
            match self.word(0) {
                "between" if span.is_none() => {
                    self.mark(Mark::Clause);
                    self.advance();
                    let begin = self.bound()?;
                    self.keyword_or("and", "write the span as in `between 10 s and 60 s`")?;
                    span = Some((begin, self.bound()?));
                }
                "while" if mode.is_none() => {
                    self.mark(Mark::Clause);
                    self.advance();
                    mode = Some(self.asserted()?);
                }
                _ => break,
            }
        }
        let is_named = own.is_some();
        let name = own.unwrap_or_else(|| {
            let text = format!("{}{}", self.ast.modules.prefix(start.start), self.spelled(from));
            Name { text, span: start.to(self.last_span()) }
        });
        self.ast.asserts.push(Assert { name, is_named, attributes, demand, body, span, mode });
        self.end_of_declaration()
    }

    /// Returns advice for `never p`.
    fn always_not(&mut self) -> String {
        let from = self.place();
        self.advance();
        let formula = self.place();
        while !self.at_end() && !self.at_declaration() && !matches!(self.word(0), "between" | "while") {
            self.advance();
        }
        let (written, length) = (self.written(formula), self.place() - formula);
        self.go_to(from);
        match length {
            0 => "write `assert always not p`".to_owned(),
            1 => format!("write `assert always not {written}`"),
            _ => format!("write `assert always not ({written})`"),
        }
    }

    /// Returns the text between a position and here as the name of the assert: the same however it is laid out.
    fn spelled(&self, from: usize) -> String {
        let words = self.words_since(from);
        let mut out = String::new();
        for (i, &word) in words.iter().enumerate() {
            let [first, before] = [2, 1].map(|back| i.checked_sub(back).map_or("", |i| words[i]));
            let is_field = first == ".";
            let is_sign = before == "-" && !is_operand(first);
            let is_glued = match (before, word) {
                ("" | "." | "(" | "[" | "{" | "!", _) | (_, "." | "," | ":" | ")" | "]" | "}" | "[") => true,
                (_, "(" | "{") => is_field || is_word(before) && !is_spaced(before),
                _ => is_sign,
            };
            out += if is_glued { "" } else { " " };
            out += word;
        }
        out
    }

    /// Parses a formula.
    fn asserted(&mut self) -> Parsed<Body> {
        let first = self.ast.nodes.len();
        self.mark(Mark::Formula);
        let root = self.expression()?;
        Ok(Body { first, root: Some(root) })
    }

    /// Parses `(p) >= 0.95`, behind the word.
    fn measured(&mut self, word: &str) -> Parsed<(Demanded, Body)> {
        self.expect("(")?;
        let violations = word == "count" && self.word(0) == "violated" && self.symbol(1) != ")";
        if violations {
            self.advance();
        }
        let body = self.asserted()?;
        self.expect(")")?;
        let operator = self.span();
        let comparison = self.demanded()?;
        let span = self.span();
        let demand = match word {
            "share" => {
                let share = match *self.peek() {
                    TokenKind::Int(whole) => whole as f64,
                    TokenKind::Float(share) => share,
                    _ => return Err(self.expected("a number from 0 to 1")),
                };
                self.advance();
                let is_percentage = self.eat("%");
                if is_percentage || !(0.0..=1.0).contains(&share) {
                    let place = span.to(self.last_span());
                    let diagnostic =
                        Diagnostic::new(Code::InvalidNumber, place, "a share is a number from 0 to 1");
                    let help = match (0.0..=100.0).contains(&share) && (is_percentage || share >= 2.0) {
                        // Rounded, because a division by 100 is not exact.
                        true => format!("write `{}` for {share} %", (share * 1e4).round() / 1e6),
                        false => "write `>= 0.95` for 95 %".to_owned(),
                    };
                    self.report(diagnostic.help(help));
                }
                self.warn_of_constant(comparison, share, 1.0, operator.to(span));
                Demanded::Share(comparison, share)
            }
            "count" => {
                let TokenKind::Int(count) = *self.peek() else { return Err(self.expected("a whole number")) };
                self.advance();
                self.warn_of_constant(comparison, count as f64, f64::INFINITY, operator.to(span));
                Demanded::Count(comparison, count, violations)
            }
            _ => Demanded::Longest(comparison, self.bound()?),
        };
        Ok((demand, body))
    }

    /// Warns about a demand that holds for all numbers from zero to the largest, or for none.
    fn warn_of_constant(&mut self, comparison: Comparison, limit: f64, largest: f64, span: Span) {
        let holds = |number: f64| match comparison {
            Comparison::Equal => number == limit,
            Comparison::NotEqual => number != limit,
            Comparison::Less => number < limit,
            Comparison::LessOrEqual => number <= limit,
            Comparison::Greater => number > limit,
            Comparison::GreaterOrEqual => number >= limit,
        };
        if !(0.0..=largest).contains(&limit) {
            return;
        }
        let message = match [0.0, limit, largest].map(holds) {
            [false, false, false] => "this assert can never hold",
            [true, true, true] => "this assert always holds",
            _ => return,
        };
        let help = match largest == 1.0 {
            true => "a share is a number from 0 to 1: write `>= 0.95`, or `assert always p` for all",
            false => "a count is zero or above: write `== 0`, or `<= 3`",
        };
        self.report(Diagnostic::new(Code::ConstantProperty, span, message).help(help));
    }

    fn demanded(&mut self) -> Parsed<Comparison> {
        let comparison = match self.symbol(0) {
            "==" => Comparison::Equal,
            "!=" => Comparison::NotEqual,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterOrEqual,
            _ => return Err(self.expected("`<=`, `>=` or another comparison")),
        };
        self.advance();
        Ok(comparison)
    }
}
