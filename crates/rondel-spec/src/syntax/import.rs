//! Parser of imports: `use "topics.rondel"`, `use "limits.rondel" as limits`, `use std.patterns`. The file has been found and read before; see [`crate::Sources`].

use super::parser::{Parsed, Parser};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// Returns whether an import starts here.
    pub(super) fn at_import(&self) -> bool {
        self.word(0) == "use" && (matches!(self.token(1).kind, TokenKind::Text(_)) || self.names_library())
    }

    /// Whether a library is named after this word.
    fn names_library(&self) -> bool {
        let is_next = self.token(2).span.end == self.token(3).span.start;
        self.word(1) == "std" && self.symbol(2) == "." && !self.word(3).is_empty() && is_next
    }

    /// Parses an import.
    pub(super) fn import(&mut self) -> Parsed<()> {
        let start = self.span();
        let tokens = if self.names_library() { 4 } else { 2 };
        (0..tokens).for_each(|_| self.advance());
        if !self.is_in_head {
            let message = "`use` stands before all other declarations of its file";
            let diagnostic = Diagnostic::new(Code::InvalidImport, start.to(self.last_span()), message);
            self.report(diagnostic.help("move it to the top of the file"));
        }
        if self.word(0) == "as" {
            self.advance();
            if let Err(reported) = self.name("an import") {
                self.help_last("write `use \"limits.rondel\" as limits`, and then `limits.near` for each name of the file");
                return Err(reported);
            }
        }
        self.end_of_declaration()
    }
}
