//! Errors in definitions of types.

use std::fmt;

/// Position in a text; both numbers count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// Error in a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// Name of the included file or message with the error, if there are several texts.
    pub text: Option<Box<str>>,
    /// Position, unless the error concerns definitions as a whole.
    pub place: Option<Place>,
    /// The reason.
    pub message: Box<str>,
}

impl SchemaError {
    pub(crate) fn new(message: impl Into<Box<str>>) -> SchemaError {
        SchemaError { text: None, place: None, message: message.into() }
    }

    pub(crate) fn at(place: Place, message: impl Into<Box<str>>) -> SchemaError {
        SchemaError { text: None, place: Some(place), message: message.into() }
    }

    pub(crate) fn in_text(mut self, text: &str) -> SchemaError {
        self.text.get_or_insert_with(|| text.into());
        self
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.text {
            write!(f, "{text}: ")?;
        }
        if let Some(Place { line, column }) = self.place {
            write!(f, "line {line}, column {column}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for SchemaError {}
