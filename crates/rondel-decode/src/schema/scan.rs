//! Common lexical parts of the languages of definitions: positions, blank space and comments.

use super::{Place, SchemaError};

/// The unread part of a text.
pub(crate) struct Cursor<'t> {
    pub(crate) rest: &'t str,
    pub(crate) place: Place,
}

impl<'t> Cursor<'t> {
    pub(crate) fn new(text: &'t str) -> Cursor<'t> {
        Cursor { rest: text, place: Place { line: 1, column: 1 } }
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(crate) fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        if c == '\n' {
            self.place = Place { line: self.place.line + 1, column: 1 };
        } else {
            self.place.column += 1;
        }
        Some(c)
    }

    pub(crate) fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !accept(c)).unwrap_or(self.rest.len());
        let taken = &self.rest[..end];
        for _ in taken.chars() {
            self.bump();
        }
        taken
    }

    /// Skips blank space and comments (`//`, `/* */`); returns the first character after them.
    ///
    /// # Errors
    /// A comment that does not end.
    pub(crate) fn skip_blank(&mut self) -> Result<Option<char>, SchemaError> {
        loop {
            let place = self.place;
            if self.rest.starts_with("//") {
                self.take_while(|c| c != '\n');
            } else if self.rest.starts_with("/*") {
                let end = self.rest[2..].find("*/");
                let length = end.ok_or_else(|| SchemaError::at(place, "this comment does not end"))? + 4;
                let end = self.rest.len() - length;
                while self.rest.len() > end {
                    self.bump();
                }
            } else {
                match self.peek() {
                    Some(c) if c.is_whitespace() => self.bump(),
                    next => return Ok(next),
                };
            }
        }
    }
}
