//! Errors of columns.

use std::fmt;

/// Reason why columns cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnsError {
    /// The kind, by which an interface chooses its exception and adds advice.
    pub kind: ErrorKind,
    /// The error in a sentence, with the name of the column.
    pub text: String,
}

/// The kind of a [`ColumnsError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A column that is read is missing, or a value is wrong.
    Value,
    /// The type of a column does not fit.
    Type,
    /// The column with the times is missing.
    NoTimes,
    /// The column with the times has integers of an unknown unit.
    IntegerTimes,
    /// The column with the times has another type.
    OtherTimes,
    /// The specification reads integers, and the column has other numbers.
    NoIntegers,
}

impl ColumnsError {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> ColumnsError {
        ColumnsError { kind, text: text.into() }
    }
}

impl fmt::Display for ColumnsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ColumnsError {}
