//! Layout of expressions: the loosest operators are broken first.

use super::Formatter;
use super::doc::{Doc, all, group, indent, text};
use crate::lexer::TokenKind;
use crate::syntax::{BEFORE_PARENTHESIS, PREFIX};

/// Returns the precedence of an infix operator.
fn level(word: &str) -> Option<u8> {
    Some(match word {
        "<->" => 0,
        "->" => 1,
        "||" | "or" => 2,
        "&&" | "and" => 3,
        "since" | "until" => 4,
        "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" => 5,
        "+" | "-" => 6,
        "*" | "/" | "%" => 7,
        _ => return None,
    })
}

/// The precedence of an operator, its position, and the position of its right operand.
type Operator = (u8, usize, usize);

impl Formatter<'_> {
    /// Lays out the expression `from..to`.
    pub(super) fn expression(&mut self, from: usize, to: usize) -> Doc {
        let Some((loosest, operators)) = self.operators(from, to) else { return self.operand(from, to) };
        let mut parts = Vec::new();
        let mut begin = from;
        for operator in operators.into_iter().filter(|(l, ..)| *l == loosest) {
            let (_, at, after) = operator;
            parts.push(self.part_of_chain(begin, at, begin == from));
            parts.push(Doc::Line);
            parts.push(self.tight(at, after));
            parts.push(text(" "));
            begin = after;
        }
        parts.push(self.part_of_chain(begin, to, false));
        group(all(parts))
    }

    /// Lays out an operand of a chain of operators; if it has operators itself, it is indented.
    fn part_of_chain(&mut self, from: usize, to: usize, first: bool) -> Doc {
        let chain = self.operators(from, to).is_some();
        let operand = self.expression(from, to);
        if chain && !first { indent(operand) } else { operand }
    }

    /// Returns the infix operators at the outermost level and the precedence of the loosest.
    fn operators(&self, from: usize, to: usize) -> Option<(u8, Vec<Operator>)> {
        let mut found = Vec::new();
        let mut operand = true;
        let mut at = from;
        while at < to {
            let word = self.word(at);
            let quoted = matches!(self.lexemes[at].kind, TokenKind::Text(_) | TokenKind::Rye { .. });
            if quoted {
                operand = false;
                at += 1;
            } else if word == "." {
                operand = false;
                at += 2;
            } else if self.lexemes[at].closing().is_some() {
                operand = false;
                at = self.matching(at, to) + 1;
            } else if operand && !self.roomy && matches!(word, "if" | "exists" | "forall") {
                // These extend as far to the right as possible.
                break;
            } else if let Some(level) = level(word).filter(|_| !operand) {
                let after = if word == "in" { at + 1 } else { self.after_bounds(at + 1, to) };
                found.push((level, at, after));
                operand = true;
                at = after;
            } else if operand && (PREFIX.contains(&word) || matches!(word, "!" | "-")) {
                at = self.after_bounds(at + 1, to);
            } else {
                operand = matches!(word, "," | ":");
                at += 1;
            }
        }
        let loosest = found.iter().map(|(level, ..)| *level).min()?;
        Some((loosest, found))
    }

    fn after_bounds(&self, at: usize, to: usize) -> usize {
        if at < to && self.word(at) == "[" { self.matching(at, to) + 1 } else { at }
    }

    /// Returns the position of the matching bracket, or the last position.
    pub(super) fn matching(&self, open: usize, to: usize) -> usize {
        let mut depth = 0_usize;
        for at in open..to {
            if self.lexemes[at].closing().is_some() {
                depth += 1;
            } else if matches!(self.lexemes[at].kind, TokenKind::Symbol(")" | "]" | "}")) {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
        }
        to.saturating_sub(1).max(open)
    }

    /// Lays out an expression without infix operators at its outermost level.
    fn operand(&mut self, from: usize, to: usize) -> Doc {
        let mut parts = Vec::new();
        let mut at = from;
        while at < to {
            if at > from && self.spaced(at, from) {
                parts.push(text(" "));
            }
            let word = self.word(at).to_owned();
            let begins = at == from || self.before_operand(at, from);
            let begins = begins && !self.roomy && self.lexemes[at].is_word();
            if begins && word == "if" {
                parts.push(self.condition(at, to));
                break;
            }
            if begins && matches!(word.as_str(), "exists" | "forall") {
                parts.push(self.quantified(at, to));
                break;
            }
            match word.as_str() {
                "(" | "{" => {
                    let close = self.matching(at, to);
                    let edge = if self.roomy { Doc::Line } else { Doc::Soft };
                    parts.push(self.listed(at, close, edge));
                    at = close + 1;
                }
                "[" => {
                    let close = self.matching(at, to);
                    let array = self.roomy || at == from && at > 0 && self.word(at - 1) == "in";
                    let listed =
                        if array { self.listed(at, close, Doc::Soft) } else { self.bounds(at, close + 1) };
                    parts.push(listed);
                    at = close + 1;
                }
                _ => {
                    parts.push(self.lexeme(at));
                    at += 1;
                }
            }
        }
        all(parts)
    }

    /// Returns whether an operand can start here.
    fn before_operand(&self, at: usize, from: usize) -> bool {
        if at == from {
            return true;
        }
        let before = self.word(at - 1);
        if before == "]" {
            return at - 1 > from;
        }
        let field = at >= from + 2 && self.word(at - 2) == ".";
        !field && (PREFIX.contains(&before) || matches!(before, "!" | "-" | ":"))
    }

    /// Returns whether a space separates this lexeme from the one before it.
    fn spaced(&self, at: usize, from: usize) -> bool {
        let (before, word) = (self.word(at - 1), self.word(at));
        let name = |i: usize| {
            self.lexemes[i].is_word()
                && !(self.header && matches!(self.word(i), "in" | "by"))
                && (i > from && self.word(i - 1) == "."
                    || !PREFIX.contains(&self.word(i)) && !BEFORE_PARENTHESIS.contains(&self.word(i)))
        };
        match (before, word) {
            (":", "[") => true,
            (".", _) | (_, "." | "," | ":" | ")" | "]" | "}") => false,
            ("!" | "-" | "(" | "[" | "{" | "@", _) => false,
            (_, "(" | "{") => !name(at - 1),
            (_, "[") => false,
            _ => true,
        }
    }

    /// Lays out a bracketed list.
    pub(super) fn listed(&mut self, open: usize, close: usize, edge: Doc) -> Doc {
        let opening = self.lexeme(open);
        let mut items = Vec::new();
        let mut begin = open + 1;
        for comma in self.commas(open + 1, close) {
            items.push(self.expression(begin, comma));
            items.push(self.lexeme(comma));
            items.push(Doc::Line);
            begin = comma + 1;
        }
        items.push(self.expression(begin, close));
        let items = all(items);
        let closing = self.lexeme(close);
        if items.is_nothing() {
            return all(vec![opening, closing]);
        }
        group(all(vec![opening, indent(all(vec![edge.clone(), items])), edge, closing]))
    }

    /// Returns the positions of the commas at the outermost level.
    pub(super) fn commas(&self, from: usize, to: usize) -> Vec<usize> {
        let mut commas = Vec::new();
        let mut at = from;
        while at < to {
            if self.lexemes[at].closing().is_some() {
                at = self.matching(at, to);
            } else if self.lexemes[at].kind == TokenKind::Symbol(",") {
                commas.push(at);
            }
            at += 1;
        }
        commas
    }

    /// Lays out `[a,b]`, with a space after the comma if a bound has a unit.
    fn bounds(&mut self, from: usize, to: usize) -> Doc {
        let wide = (from + 1..to).any(|at| {
            at + 1 < to && !matches!(self.word(at), "," | "[") && !matches!(self.word(at + 1), "," | "]")
        });
        let mut parts = Vec::new();
        for at in from..to {
            let before = if at > from { self.word(at - 1).to_owned() } else { String::new() };
            let word = self.word(at);
            let space = match before.as_str() {
                // A sign stands before an index from the end, `[-1]`.
                "" | "[" | "-" => false,
                "," => wide && word != "]",
                _ => !matches!(word, "," | "]"),
            };
            if space {
                parts.push(text(" "));
            }
            parts.push(self.lexeme(at));
        }
        all(parts)
    }

    /// Lays out an operator with its bounds.
    fn tight(&mut self, from: usize, to: usize) -> Doc {
        let operator = self.lexeme(from);
        let bounds = if from + 1 < to { self.bounds(from + 1, to) } else { all(Vec::new()) };
        all(vec![operator, bounds])
    }

    /// Lays out `if a then b else c`.
    fn condition(&mut self, from: usize, to: usize) -> Doc {
        let mut nested = 0_usize;
        let (mut then, mut otherwise) = (None, None);
        let mut at = from + 1;
        while at < to {
            match self.word(at) {
                "." => at += 1,
                _ if self.lexemes[at].closing().is_some() => at = self.matching(at, to),
                "if" => nested += 1,
                "then" if nested == 0 && then.is_none() => then = Some(at),
                "else" if nested == 0 && otherwise.is_none() => otherwise = Some(at),
                "else" => nested = nested.saturating_sub(1),
                _ => {}
            }
            at += 1;
        }
        let (Some(then), Some(otherwise)) = (then, otherwise) else { return self.plain(from, to) };
        let mut parts = vec![self.lexeme(from), text(" ")];
        parts.push(self.expression(from + 1, then));
        for (word, end) in [(then, otherwise), (otherwise, to)] {
            let keyword = self.lexeme(word);
            let value = self.expression(word + 1, end);
            parts.push(indent(all(vec![Doc::Line, keyword, text(" "), value])));
        }
        group(all(parts))
    }

    /// Lays out `exists x, y. p`.
    fn quantified(&mut self, from: usize, to: usize) -> Doc {
        let dot = (from..to).find(|at| self.word(*at) == ".").unwrap_or(to - 1);
        let head = self.plain(from, dot + 1);
        let body = self.expression(dot + 1, to);
        group(all(vec![head, indent(all(vec![Doc::Line, body]))]))
    }

    /// Lays out lexemes on one line.
    pub(super) fn plain(&mut self, from: usize, to: usize) -> Doc {
        let mut parts = Vec::new();
        for at in from..to {
            if at > from && self.spaced(at, from) {
                parts.push(text(" "));
            }
            parts.push(self.lexeme(at));
        }
        all(parts)
    }
}
