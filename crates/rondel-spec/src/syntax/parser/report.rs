//! Errors at the position of the parser.

use super::{Parsed, Parser, Reported};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lexer::{Token, TokenKind};

impl Parser<'_> {
    pub(in crate::syntax) fn report(&mut self, mut diagnostic: Diagnostic) -> Reported {
        // The end of the text is often an empty line after an incomplete declaration.
        let at = self.tokens.partition_point(|token| token.span.start < diagnostic.span.start);
        let is_end = |token: &Token| token.kind == TokenKind::End;
        if let [last, end] = self.tokens.get(at.saturating_sub(1)..=at).unwrap_or(&[])
            && (is_end(end) && !is_end(last) && diagnostic.span == end.span)
        {
            diagnostic.span = Span::new(last.span.end, last.span.end);
        }
        self.diagnostics.push(diagnostic);
        Reported
    }

    /// Returns how many diagnostics there are.
    pub(in crate::syntax) fn reported(&self) -> usize {
        self.diagnostics.len()
    }

    /// Takes back the diagnostics after so many.
    pub(in crate::syntax) fn forget_after(&mut self, reported: usize) {
        self.diagnostics.truncate(reported);
    }

    /// Returns the last reported diagnostic.
    pub(in crate::syntax) fn last_diagnostic(&mut self) -> Option<&mut Diagnostic> {
        self.diagnostics.last_mut()
    }

    /// Returns the current token for a message.
    pub(in crate::syntax) fn found(&self) -> String {
        match self.peek() {
            TokenKind::End => "end of input".to_owned(),
            TokenKind::Text(_) => "a string".to_owned(),
            TokenKind::Rye { .. } => "a formula in Reelay's format".to_owned(),
            _ => format!("`{}`", self.span().of(self.text)),
        }
    }

    pub(in crate::syntax) fn expected(&mut self, what: &str) -> Reported {
        if *self.peek() == TokenKind::Unknown {
            return Reported;
        }
        let message = format!("expected {what}, found {}", self.found());
        self.report(Diagnostic::new(Code::UnexpectedToken, self.span(), message))
    }

    /// Sets the advice of the last reported diagnostic.
    pub(in crate::syntax) fn help_last(&mut self, help: impl Into<String>) {
        if let Some(last) = self.diagnostics.last_mut() {
            last.help = Some(help.into());
        }
    }

    pub(in crate::syntax) fn expect(&mut self, symbol: &str) -> Parsed<()> {
        if self.eat(symbol) { Ok(()) } else { Err(self.expected(&format!("`{symbol}`"))) }
    }

    /// Skips the rest of a body with `open` open braces, so that its content is not parsed as declarations.
    pub(in crate::syntax) fn leave_body(&mut self, mut open: usize) -> Reported {
        let from = self.at;
        while open > 0 {
            match self.symbol(0) {
                "{" => open += 1,
                "}" => open -= 1,
                _ if *self.peek() == TokenKind::End => {
                    // The braces do not match; continue with the next declaration instead of the end of the text.
                    self.at = from;
                    break;
                }
                _ => {}
            }
            self.advance();
        }
        Reported
    }
}
