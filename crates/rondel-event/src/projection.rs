use crate::{Comparison, Path, Value, ValueType};

/// Where a field's values go in a [`Block`](crate::Block): the kind of column and its index
/// among the columns of that kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Slot {
    /// A column of booleans.
    Bool(u32),
    /// A column of 64-bit integers; also holds times, in nanoseconds.
    Int(u32),
    /// A column of double-precision numbers.
    Float(u32),
    /// A column of text.
    String(u32),
}

/// The fields of one topic that a program reads. Everything else in a message is skipped.
///
/// A decoder turns this into its own plan once, at start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Projection {
    /// The fields, in no particular order. Paths may repeat with different ways of reading.
    pub fields: Vec<Field>,
}

/// One field to read and where to put it.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Where in the message.
    pub path: Path,
    /// What to read there.
    pub read: Read,
    /// Where to write it.
    pub slot: Slot,
}

/// What is read at a path.
#[derive(Clone, Debug, PartialEq)]
pub enum Read {
    /// The value, if it has this type. An `Int` in the message is accepted for a `Float`; nothing
    /// else is converted. A value of another type (or null) is written as invalid and counted.
    Value(ValueType),
    /// Whether the message carries the field at all: writes `true` into a boolean column.
    Presence,
    /// Whether some or all elements of the array there meet all the conditions: writes a boolean.
    /// A value that is no array is written as invalid.
    Elements(Quantifier, Vec<Condition>),
}

/// How many elements of an array must meet the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quantifier {
    /// At least one; false on an empty array.
    Any,
    /// Every one; true on an empty array.
    All,
}

/// A condition on one element of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// Where in the element.
    pub path: Path,
    /// What must hold there. A missing field or one of another type does not meet it.
    pub test: Test,
}

/// A test of one value against a constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// The field is there, whatever it is.
    Present,
    /// The field is this boolean, number (compared as double) or string.
    Equals(Value),
    /// The field is a number and compares so with this one.
    Number(Comparison, f64),
}
