//! Advice for conditions on the elements of an array that cannot be written as they are: a chain of comparisons,
//! arithmetic, a larger formula around them. It can be copied where there is one answer.

use rondel_event::Quantifier;

use super::ast::Name;
use super::elements::Conditions;
use super::parser::{Parser, Reported};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lexer::TokenKind;

/// Head of a quantifier over elements, which the advice repeats.
pub(super) struct ElementHead {
    pub(super) quantifier: Quantifier,
    /// The name of the element.
    pub(super) element: Name,
    /// Start of the quantifier.
    pub(super) start: Span,
}

const COMPARISONS: [&str; 6] = ["==", "!=", "<", ">=", ">", "<="];

impl Parser<'_> {
    /// Returns the text from a position to here, with spaces around comparisons.
    fn conditions_from(&self, from: usize) -> String {
        let mut out = String::new();
        let mut end = None;
        for token in &self.tokens()[from..self.place()] {
            let text = token.span.of(self.text);
            let is_comparison = COMPARISONS.contains(&text);
            let is_behind_comparison = COMPARISONS.iter().any(|symbol| out.ends_with(symbol));
            if end.is_some_and(|end| end < token.span.start || is_comparison || is_behind_comparison) {
                out.push(' ');
            }
            out.push_str(text);
            end = Some(token.span.end);
        }
        out
    }

    /// Passes the operand of a logical operator. Returns whether it names the element.
    fn pass_operand(&mut self, element: &str) -> bool {
        let (mut open, mut is_about) = (0_usize, false);
        while !self.at_end() && (open > 0 || !self.at_declaration()) {
            let next = if self.word(0).is_empty() { self.symbol(0) } else { self.word(0) };
            match next {
                "(" | "[" | "{" => open += 1,
                ")" | "]" | "}" if open == 0 => break,
                ")" | "]" | "}" => open -= 1,
                "and" | "&&" | "or" | "||" | "->" | "<->" | "since" | "until" | "between" | "while" | ";"
                | ","
                    if open == 0 =>
                {
                    break;
                }
                _ => {}
            }
            is_about |= next == element && self.symbol_before(1) != ".";
            self.advance();
        }
        is_about
    }

    /// Returns whether the operand that begins here names the element.
    pub(super) fn is_about(&mut self, element: &str) -> bool {
        let at = self.place();
        let is_about = self.pass_operand(element);
        self.go_to(at);
        is_about
    }

    /// Returns whether the parentheses that begin here name the element. Those of a constant do not.
    pub(super) fn holds_element(&self, element: &str) -> bool {
        let (from, mut open) = (self.place(), 0_usize);
        for (at, token) in self.tokens().iter().enumerate().skip(from) {
            match token.kind {
                TokenKind::Symbol("(") => open += 1,
                TokenKind::Symbol(")") => open -= 1,
                TokenKind::End => return false,
                TokenKind::Word
                    if token.span.of(self.text) == element
                        && self.tokens()[at - 1].kind != TokenKind::Symbol(".") =>
                {
                    return true;
                }
                _ => {}
            }
            if open == 0 {
                return false;
            }
        }
        false
    }

    /// Reports what follows a condition and cannot join it.
    pub(super) fn cannot_follow(&mut self, conditions: &Conditions) -> Reported {
        let ElementHead { quantifier, element, start } = &conditions.head;
        let (element, span) = (element.text.as_str(), start.to(self.last_span()));
        let (word, is_inside) = (quantifier.as_str(), conditions.open > 0);
        let last = self.conditions_from(conditions.last);
        let is_negated = matches!(self.tokens()[conditions.last - 1].span.of(self.text), "not" | "!");
        let is_compared = COMPARISONS.iter().any(|symbol| last.contains(symbol));
        let is_count = *quantifier == Quantifier::Count && !is_inside;
        let operator = if self.word(0).is_empty() { self.symbol(0) } else { self.word(0) };
        let is_equality = matches!(operator, "==" | "!=") && !is_inside;
        let at = self.place();
        self.advance();
        let operand = self.place();
        let is_about = self.pass_operand(element);
        let parentheses = |message: String| Diagnostic::new(Code::NeedsParentheses, span, message);
        let diagnostic = match operator {
            "<" | "<=" | ">" | ">=" | "==" | "!="
                if is_compared && !is_count && !is_equality || last.ends_with(&format!(" {element}")) =>
            {
                let is_element = |word: &&str| *word == element || word.starts_with(&format!("{element}."));
                let compared = last.split(' ').find(is_element).unwrap_or(element);
                let pair = format!("{last} and {compared} {operator} {}", self.conditions_from(operand));
                let pair = if is_negated { format!("({pair})") } else { pair };
                parentheses("comparisons cannot be chained".to_owned()).help(format!("write `{pair}`"))
            }
            "+" | "-" | "*" | "/" | "%" if is_about || !is_count || last == element => {
                let message = format!(
                    "a condition on '{element}' compares '{element}', or a field of it, with a constant"
                );
                let compared = if is_compared { element } else { &last };
                Diagnostic::new(Code::NotInThisVersion, span, message).help(format!(
                    "compare `{compared}` with a constant, without arithmetic: `{compared} < 0.2`"
                ))
            }
            "<->" | "since" | "until" if is_about || is_inside => parentheses(format!(
                "conditions on '{element}' cannot be joined by `{operator}`"
            ))
            .help("join them by `and`, `or`, `not` and `->`, or write a formula for each, in parentheses"),
            _ if is_inside => {
                self.go_to(at);
                return self.expected("`and`, `or`, `->` or `)`");
            }
            _ => parentheses(format!("`{word}` before `{operator}` needs parentheses"))
                .help(format!("write `({}) {operator} …`", span.of(self.text))),
        };
        self.report(diagnostic)
    }

    /// Reports conditions with more tests than a decoder makes.
    pub(super) fn too_many(&mut self, head: &ElementHead) -> Reported {
        let span = head.start.to(self.last_span());
        let message = format!("the conditions on '{}' amount to more than 64 comparisons", head.element.text);
        let word = head.quantifier.as_str();
        let help = match head.quantifier {
            Quantifier::Any => "join several formulas by `or`",
            Quantifier::All => "join several formulas by `and`",
            _ => "count with fewer comparisons",
        };
        let help = format!("{help}: `a and (b or c)` amounts to the four of `a and b or a and c`");
        let help = match head.quantifier {
            Quantifier::Count => help,
            _ => help.replacen("formulas", &format!("formulas with `{word}`"), 1),
        };
        self.report(Diagnostic::new(Code::NotInThisVersion, span, message).help(help))
    }
}
