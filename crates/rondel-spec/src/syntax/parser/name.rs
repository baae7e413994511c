//! Names: declared, local, and those of imported files.

use super::{DECLARATIONS, Parsed, Parser, RESERVED};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::TokenKind;
use crate::modules::Role;
use crate::syntax::ast::Name;
use crate::syntax::forms::NO_QUOTES;

impl Parser<'_> {
    /// Parses a name that is declared or local, without that of an import.
    pub(in crate::syntax) fn name(&mut self, what: &str) -> Parsed<Name> {
        if self.word(0).contains('.') {
            let reported = self.expected(&format!("the name of {what}"));
            self.help_last("names consist of letters, digits and `_`");
            return Err(reported);
        }
        let name = self.any_name(what)?;
        if matches!(what, "a parameter" | "a variable" | "an element") {
            self.refuse_alias(&name);
        }
        Ok(name)
    }

    /// Reports a local name that is that of an import of its file.
    pub(in crate::syntax) fn refuse_alias(&mut self, name: &Name) {
        if !self.ast.modules.is_alias(name.span.start, &name.text) {
            return;
        }
        let before = self
            .ast
            .aliases
            .iter()
            .rev()
            .find(|(alias, _)| alias.text == name.text && alias.span < name.span);
        let Some(first) = before.map(|(alias, _)| alias.span) else { return };
        let message = format!("'{}' is declared twice", name.text);
        let diagnostic = Diagnostic::new(Code::DuplicateName, name.span, message);
        self.report(diagnostic.label(first, "first declared here"));
    }

    /// Parses the name that a declaration gives.
    pub(in crate::syntax) fn declared_name(&mut self, what: &str) -> Parsed<Name> {
        let mut name = self.name(what)?;
        name.text.insert_str(0, self.ast.modules.prefix(name.span.start));
        Ok(name)
    }

    /// Parses the name of something that is declared elsewhere, also `limits.near`.
    pub(in crate::syntax) fn used_name(&mut self, what: &str, role: Role) -> Parsed<Name> {
        let name = self.any_name(what)?;
        Ok(self.full(name, role))
    }

    /// Returns a name as its declaration gives it.
    pub(in crate::syntax) fn full(&self, mut name: Name, role: Role) -> Name {
        name.text = self.ast.modules.full(name.span.start, &name.text, role);
        name
    }

    fn any_name(&mut self, what: &str) -> Parsed<Name> {
        let word = self.word(0);
        let reserved = RESERVED.contains(&word) || DECLARATIONS[..4].contains(&word);
        if word.is_empty() || reserved {
            let reported = self.expected(&format!("the name of {what}"));
            if reserved && !self.at_declaration() {
                self.help_last(format!("`{word}` is a keyword and cannot be a name"));
            }
            if matches!(self.peek(), TokenKind::Text(_)) {
                self.help_last(NO_QUOTES);
            }
            return Err(reported);
        }
        let name = Name { text: word.to_owned(), span: self.span() };
        self.advance();
        Ok(name)
    }
}
