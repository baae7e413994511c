//! Parser of declarations, with error recovery.

use super::{DECLARATIONS, INFIX, Mark, Parsed, Parser};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::TokenKind;
use crate::suggest::did_you_mean;
use crate::syntax::ast::{Attribute, Binding, Body, NodeId, Property, PropertySource};

impl Parser<'_> {
    /// Returns whether a declaration starts here. Its keywords are not reserved: the next token decides, so that a
    /// field can be named `topic` or `test`.
    pub(in crate::syntax) fn at_declaration(&self) -> bool {
        let next = self.word(1);
        match self.word(0) {
            "topic" | "const" | "let" | "property" => !next.is_empty() && !INFIX.contains(&next),
            "machine" => !next.is_empty() && (self.symbol(2) == "{" || self.word(2) == "for"),
            "chain" => !next.is_empty() && matches!(self.symbol(2), "->" | "="),
            "test" => matches!(self.token(1).kind, TokenKind::Text(_)),
            "use" => self.at_import(),
            "assert" => !next.is_empty() && !INFIX.contains(&next),
            _ => self.symbol(0) == "@",
        }
    }

    pub(super) fn declarations(&mut self) {
        while *self.peek() != TokenKind::End {
            if self.eat(";") {
                continue;
            }
            let from = self.at;
            if self.declaration().is_err() {
                (self.depth, self.before_body) = (0, false);
                self.scope.clear();
                self.expansion.end();
                // Skip at least one token, so that the loop ends.
                if self.at == from {
                    self.advance();
                }
                while *self.peek() != TokenKind::End && !self.at_declaration() {
                    self.advance();
                }
            }
        }
    }

    fn declaration(&mut self) -> Parsed<()> {
        self.mark(Mark::Declaration);
        let attributes_from = self.span();
        let mut attributes = Vec::new();
        while self.symbol(0) == "@" {
            attributes.push(self.attribute()?);
        }
        let word = self.word(0);
        if !attributes.is_empty() && !matches!(word, "property" | "machine" | "chain" | "assert") {
            let span = attributes_from.to(self.last_span());
            let message = "attributes apply only to properties, machines, chains and asserts";
            self.report(Diagnostic::new(Code::MisplacedAttribute, span, message));
        }
        let start = self.span();
        if self.at_import() {
            return self.import();
        }
        self.is_in_head = false;
        if !self.at_declaration()
            && let Some(reported) = self.malformed_declaration()
        {
            return Err(reported);
        }
        match word {
            "topic" => self.topic(),
            "const" | "let" => self.binding(word == "const"),
            "property" => self.property(attributes),
            "machine" => self.machine(attributes),
            "chain" => self.chain(attributes),
            "assert" => self.assert(attributes),
            "test" => self.test(),
            _ => {
                let suggestion = did_you_mean(word, DECLARATIONS);
                let message = format!("expected a declaration, found {}{suggestion}", self.found());
                let help = self.foreign_declaration().filter(|_| suggestion.is_empty()).unwrap_or_else(|| {
                    "declarations start with `topic`, `const`, `let`, `property`, `assert`, `machine`, `chain`, `test` or `use`"
                        .to_owned()
                });
                Err(self.report(Diagnostic::new(Code::UnexpectedToken, start, message).help(help)))
            }
        }
    }

    fn binding(&mut self, constant: bool) -> Parsed<()> {
        let keyword = if constant { "const" } else { "let" };
        self.advance();
        let index_of_name = self.at;
        let name = self.declared_name(&format!("a `{keyword}`"))?;
        let index = self.ast.bindings.len();
        let first = self.ast.nodes.len();
        self.ast.bindings.push(Binding { name, constant, body: Body { first, root: None } });
        if !constant && self.symbol(0) == "(" {
            self.ast.bindings.pop();
            return self.definition(index_of_name);
        }
        if let sign @ (":" | "(") = self.symbol(0) {
            let reported = self.expected("`=`");
            self.help_last(match sign {
                "(" => "a `const` takes no parameters: write `let` instead".to_owned(),
                _ => format!("the type of a `{keyword}` is inferred: write `{keyword} name = …`"),
            });
            return Err(reported);
        }
        self.declared_as()?;
        let root = self.expression_to_end()?;
        self.ast.bindings[index].body.root = Some(root);
        if self.objects.contains_key(&self.ast.bindings[index].name.text) {
            // Its uses are checked, each with its fields.
            self.ast.bindings.truncate(index);
            self.ast.nodes.truncate(first);
        }
        Ok(())
    }

    fn property(&mut self, attributes: Vec<Attribute>) -> Parsed<()> {
        self.advance();
        let name = self.declared_name("a property")?;
        let index = self.ast.properties.len();
        let first = self.ast.nodes.len();
        let body = Body { first, root: None };
        self.ast.property_sources.push(PropertySource::Property(index));
        self.ast.properties.push(Property { name, attributes, each: None, body });
        if self.word(0) == "for" {
            self.ast.properties[index].each = Some(self.each()?);
        }
        let written = self.ast.properties[index].name.span.of(self.text).to_owned();
        let late = self.late_attributes(&written)?;
        self.ast.properties[index].attributes.extend(late);
        if matches!(self.symbol(0), ":" | "(" | ":=" | "{") || matches!(self.word(0), "foreach" | "per") {
            let reported = self.expected("`=`");
            self.help_last(
                "write `property p = …`, or `property p for each k in topic.field = …` for one instance per value of a field",
            );
            return Err(reported);
        }
        self.declared_as()?;
        let first = self.ast.nodes.len();
        let root = self.expression_to_end()?;
        let attributes = self.ast.properties[index].attributes.clone();
        let root = self.steadied(&attributes, root)?;
        self.ast.properties[index].body = Body { first, root: Some(root) };
        Ok(())
    }

    /// Parses the `=` of a declaration.
    pub(in crate::syntax) fn declared_as(&mut self) -> Parsed<()> {
        if self.eat("=") {
            return Ok(());
        }
        let is_cut = matches!(self.symbol(0), "-" | "." | "/");
        let reported = self.expected("`=`");
        if is_cut {
            self.help_last("names consist of letters, digits and `_`");
        }
        Err(reported)
    }

    /// Expects the next declaration or the end of the text.
    pub(in crate::syntax) fn end_of_declaration(&mut self) -> Parsed<()> {
        if *self.peek() == TokenKind::End || self.symbol(0) == ";" || self.at_declaration() {
            return Ok(());
        }
        Err(self.expected_declaration("a declaration"))
    }

    /// Parses an expression and expects the next declaration or the end of the text.
    pub(in crate::syntax) fn expression_to_end(&mut self) -> Parsed<NodeId> {
        self.mark(Mark::Formula);
        let root = self.expression()?;
        if *self.peek() == TokenKind::End || self.symbol(0) == ";" || self.at_declaration() {
            return Ok(root);
        }
        Err(self.after_expression(&DECLARATIONS, "an operator or a declaration"))
    }
}
