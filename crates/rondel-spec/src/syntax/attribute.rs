//! Parser of attributes: `@severity(critical)`.

use super::ast::{Attribute, Name};
use super::parser::{Parsed, Parser};
use super::steady::STEADY;
use crate::lexer::TokenKind;

impl Parser<'_> {
    pub(super) fn attribute(&mut self) -> Parsed<Attribute> {
        let start = self.span();
        self.expect("@")?;
        let name = Name { text: self.word(0).to_owned(), span: self.span() };
        if name.text.is_empty() {
            return Err(self.expected("the name of an attribute"));
        }
        self.advance();
        let (mut value, mut argument, mut at) = (String::new(), None, 0);
        if self.eat("(") {
            let from = self.span();
            at = self.place();
            let minus = self.eat("-");
            let is_steady = STEADY.contains(&(name.text.as_str(), true));
            value = match self.peek() {
                _ if is_steady && !minus => self.steady_argument(),
                TokenKind::Text(text) if !minus => text.clone(),
                TokenKind::Word if !minus => self.span().of(self.text).to_owned(),
                TokenKind::Int(_) | TokenKind::Float(_) | TokenKind::Duration => {
                    format!("{}{}", if minus { "-" } else { "" }, self.span().of(self.text))
                }
                _ => return Err(self.expected("a word, a number or a string")),
            };
            if !is_steady || minus {
                self.advance();
            }
            argument = Some(from.to(self.last_span()));
            if !self.eat(")") {
                let reported = self.expected("`)`");
                self.help_last("an attribute takes one value: a word, a number or a quoted string");
                return Err(reported);
            }
        }
        let span = start.to(self.last_span());
        Ok(Attribute { name, value, argument, at, span })
    }
}
