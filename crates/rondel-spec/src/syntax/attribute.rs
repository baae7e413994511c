//! Parser of attributes: `@severity(critical)`.

use super::ast::{Attribute, Name};
use super::parser::{Parsed, Parser, Reported};
use super::steady::{CONDITION, STEADY};
use crate::attributes::{CAUSE, attribute_forms};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::TokenKind;
use crate::modules::Role;
use crate::suggest::nearest;

impl Parser<'_> {
    pub(super) fn attribute(&mut self) -> Parsed<Attribute> {
        let start = self.span();
        self.expect("@")?;
        let name = Name { text: self.word(0).to_owned(), span: self.span() };
        if name.text.is_empty() {
            return Err(self.expected("the name of an attribute"));
        }
        self.advance();
        if let Some(reported) = self.bare_argument(&name) {
            return Err(reported);
        }
        let (mut value, mut argument, mut at) = (String::new(), None, 0);
        if self.eat("(") {
            let from = self.span();
            at = self.place();
            // A condition may begin with a sign.
            let minus = name.text != CONDITION && self.eat("-");
            if minus && STEADY.iter().any(|(steady, _)| *steady == name.text) {
                return Err(self.wrong_argument(&name, at));
            }
            let is_steady = STEADY.contains(&(name.text.as_str(), true));
            value = match self.peek() {
                _ if is_steady && !minus => self.steady_argument(),
                TokenKind::Text(text) if !minus => text.clone(),
                // Written in full, as its declaration is.
                TokenKind::Word if !minus && name.text == CAUSE => {
                    let written = self.span();
                    self.ast.modules.full(written.start, written.of(self.text), Role::Property)
                }
                TokenKind::Word if !minus => self.span().of(self.text).to_owned(),
                TokenKind::Int(_) | TokenKind::Float(_) | TokenKind::Duration => {
                    format!("{}{}", if minus { "-" } else { "" }, self.span().of(self.text))
                }
                _ => return Err(self.wrong_argument(&name, at)),
            };
            if !is_steady || minus {
                self.advance();
            }
            argument = Some(from.to(self.last_span()));
            if !self.eat(")") {
                return Err(self.wrong_argument(&name, at));
            }
        }
        let span = start.to(self.last_span());
        Ok(Attribute { name, value, argument, at, span })
    }

    /// Reports an argument without parentheses; none if the attribute has none.
    fn bare_argument(&mut self, name: &Name) -> Option<Reported> {
        let is_argument = match self.peek() {
            TokenKind::Symbol("=" | ":") => true,
            TokenKind::Word | TokenKind::Int(_) | TokenKind::Float(_) => !self.at_declaration(),
            TokenKind::Duration | TokenKind::Text(_) => true,
            _ => false,
        };
        if !is_argument || self.begins_line() {
            return None;
        }
        let message = format!("expected `(` after `@{}`, found {}", name.text, self.found());
        let diagnostic = Diagnostic::new(Code::UnexpectedToken, self.span(), message);
        if matches!(self.peek(), TokenKind::Symbol(_)) {
            self.advance();
        }
        let from = self.place();
        while !self.at_end() && !self.at_declaration() && (self.place() == from || !self.begins_line()) {
            self.advance();
        }
        let form = self.with_argument(&name.text, from);
        Some(self.report(diagnostic.help(format!("write `{form}`"))))
    }

    /// Returns an attribute with the argument between a position and here, in quotes if it needs them.
    fn with_argument(&self, name: &str, from: usize) -> String {
        let written = self.written(from);
        let is_one = self.place() == from + 1 || STEADY.contains(&(name, true));
        match is_one || written.contains('"') {
            true => format!("@{name}({written})"),
            false => format!("@{name}(\"{written}\")"),
        }
    }

    /// Reports the argument, which begins at `from`, of an attribute that does not take it.
    fn wrong_argument(&mut self, name: &Name, from: usize) -> Reported {
        let word = name.text.as_str();
        let reported_at = self.span();
        let found = self.found();
        self.go_to(from);
        let is_negative = self.symbol(0) == "-" && word != CONDITION && STEADY.contains(&(word, true));
        if is_negative {
            self.advance();
        }
        let argument = self.place();
        let is_empty = self.symbol(0) == ")";
        self.steady_argument();
        let meant = match word {
            "when" | "during" | "only_while" | "if" => Some("while"),
            _ => nearest(word, STEADY.iter().filter(|(_, takes)| *takes).map(|(steady, _)| *steady)),
        };
        let form = attribute_forms().find(|(known, _)| *known == word).map(|(_, form)| form);
        let (span, message, help) = match meant.filter(|_| form.is_none()) {
            _ if is_negative => {
                let message = format!("`@{word}` takes no negative time");
                (reported_at, message, format!("write `{}`", self.with_argument(word, argument)))
            }
            _ if STEADY.contains(&(word, true)) => {
                let help = format!("write `{}`", self.with_argument(word, argument));
                (reported_at, format!("expected `)`, found {found}"), help)
            }
            Some(meant) => {
                let message = format!("unknown attribute '{word}'; did you mean `@{meant}`?");
                (name.span, message, format!("write `{}`", self.with_argument(meant, argument)))
            }
            None if form.is_some() => {
                let help = format!("write {}", form.unwrap_or_default());
                (reported_at, format!("expected `)`, found {found}"), help)
            }
            None if is_empty => {
                let message = format!("expected a word, a number or a string, found {found}");
                (reported_at, message, format!("write `@{word}`, or a value between the parentheses"))
            }
            None => {
                let message = format!("expected a word, a number or a string, and `)`, found {found}");
                (reported_at, message, format!("write `{}`", self.with_argument(word, argument)))
            }
        };
        self.eat(")");
        self.report(Diagnostic::new(Code::UnexpectedToken, span, message).help(help))
    }

    /// Parses attributes behind the name of a property, and reports them.
    pub(super) fn late_attributes(&mut self, name: &str) -> Parsed<Vec<Attribute>> {
        let mut late = Vec::new();
        while self.symbol(0) == "@" {
            let attribute = self.attribute()?;
            let written = attribute.span.of(self.text);
            let message = "attributes stand before the property";
            let diagnostic = Diagnostic::new(Code::MisplacedAttribute, attribute.span, message);
            self.report(diagnostic.help(format!("write `{written} property {name} = …`")));
            late.push(attribute);
        }
        Ok(late)
    }
}
