//! Parser of `for each`.

use super::ast::{Body, ForEach, Name, Parameter};
use super::parser::{Mark, Parsed, Parser, RESERVED};
use crate::diagnostic::{Code, Diagnostic};

impl Parser<'_> {
    /// Parses a `for each` clause and returns its index.
    pub(super) fn each(&mut self) -> Parsed<usize> {
        self.mark(Mark::ForEach);
        self.advance();
        self.keyword_or("each", "declare a parameter with `for each id in topic.id`")?;
        let mut parameters = vec![self.parameter()?];
        while self.eat(",") {
            parameters.push(self.parameter()?);
        }
        let mut until = None;
        if self.word(0) == "until" {
            self.mark(Mark::Until);
            self.advance();
            let first = self.ast.nodes.len();
            let root = self.expression()?;
            until = Some(Body { first, root: Some(root) });
        }
        self.ast.for_eaches.push(ForEach { parameters, until, chain: false });
        Ok(self.ast.for_eaches.len() - 1)
    }

    fn parameter(&mut self) -> Parsed<Parameter> {
        if self.symbol(0) == "(" {
            let message = "each parameter needs a name of its own";
            return Err(self.report(
                Diagnostic::new(Code::UnexpectedToken, self.span(), message)
                    .help("write `for each a in (t.a, u.x), b in (t.b, u.y)`"),
            ));
        }
        let name = self.name("a parameter")?;
        self.keyword_or(
            "in",
            "write a parameter as `name in topic.field`, or `name in (a.id, b.id)` for several topics",
        )?;
        let mut fields = Vec::new();
        if self.eat("(") {
            loop {
                fields.push(self.parameter_field()?);
                if !self.eat(",") {
                    break;
                }
            }
            self.expect(")")?;
        } else {
            fields.push(self.parameter_field()?);
        }
        Ok(Parameter { name, fields })
    }

    pub(super) fn parameter_field(&mut self) -> Parsed<usize> {
        let (word, span) = (self.word(0), self.span());
        if word.is_empty() || RESERVED.contains(&word) {
            return Err(self.expected("a field, such as `topic.id`"));
        }
        self.advance();
        self.path(Name { text: word.to_owned(), span })
    }

    /// Expects a keyword, with advice if it is missing.
    pub(super) fn keyword_or(&mut self, word: &str, help: &str) -> Parsed<()> {
        self.keyword(word).inspect_err(|_| self.help_last(help))
    }

    /// Expects a keyword.
    pub(super) fn keyword(&mut self, word: &str) -> Parsed<()> {
        if self.word(0) != word {
            return Err(self.expected(&format!("`{word}`")));
        }
        self.advance();
        Ok(())
    }
}
