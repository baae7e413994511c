//! Projections: the fields that a program reads.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::{Comparison, Path, Table, Value, ValueType};

/// Column of a [`Block`](crate::Block) for the values of a field: its kind, and its index among the
/// columns of that kind.
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
/// A decoder compiles it once into its own plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Projection {
    /// The fields, in no particular order. A path may occur several times with different [`Read`]s.
    pub fields: Vec<Field>,
}

impl Projection {
    /// Returns the projection that also accepts texts for the numbers that it reads, if they are numbers.
    pub fn with_number_texts(&self) -> Projection {
        let mut projection = self.clone();
        for field in &mut projection.fields {
            if let Read::Value(value_type @ (ValueType::Int | ValueType::Float)) = field.read {
                field.read = Read::Number(value_type);
            }
        }
        projection
    }
}

/// A field to read.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Field {
    /// Path of the field in the message.
    pub path: Path,
    /// Value to read at the path.
    pub read: Read,
    /// Column to write the value to.
    pub slot: Slot,
    /// Whether an integer that a `Float` cannot hold exactly is written as invalid and counted, rather than rounded.
    pub exact: bool,
}

/// Value to read at a path.
#[derive(Clone, Debug, PartialEq, Hash)]
pub enum Read {
    /// The value, if it has this type. An `Int` in the message is accepted for a `Float`; nothing
    /// else is converted. A value of another type (or null) is written as invalid and counted.
    Value(ValueType),
    /// The number, `Int` or `Float`: like [`Read::Value`], but a text that is a number counts as well. A decimal number with
    /// an optional sign, fraction and exponent, and white space around it, is one.
    Number(ValueType),
    /// The presence of the field: `true`, as a boolean.
    Presence,
    /// Measure of the elements of an array: any or all elements meet the [conditions](Condition), as a boolean; the
    /// number of those that do, as an integer; or a measure without conditions, as a float. A value that is not an
    /// array is written as invalid. So is a measure of no element, of an element that is null or not a number, and of
    /// an element of another type, which counts as a value of another type.
    Elements(Quantifier, Vec<Condition>),
    /// The element that decides such conditions or such a measure, as a text for people: `[3] 0.2`, or with the fields
    /// that are tested `[3] class "person", score 0.9`. Of `any` it is the first that meets the conditions, of `all` the
    /// first that does not, of `min` and `max` the first that is the least or the greatest, by its position. Written as
    /// invalid where there is none.
    Witness(Quantifier, Vec<Condition>),
    /// Length, as an integer: the number of elements of an array, of entries of a map with a schema, of
    /// characters (Unicode scalar values) of a text, or of bytes. Any other value is written as invalid.
    Length,
    /// Length of a value of this kind, or of bytes; a text is written as invalid where an array is read, and an array where
    /// a text is.
    LengthOf(Countable),
    /// Test for NaN, as a boolean; null or another type is written as invalid. Decoders of JSON, which has no NaN,
    /// write nothing.
    IsNan,
    /// The elements of the array of names at the path, as a [`Table`] in a text. Nothing is written if the message does not
    /// carry the array.
    Table(Arc<Table>),
}

impl Read {
    /// Reads a length, of a value of a certain kind if one is given.
    pub fn length(of: Option<Countable>) -> Read {
        of.map_or(Read::Length, Read::LengthOf)
    }
}

/// Kind of a value that has a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Countable {
    /// An array, or a map with a schema: its elements are counted.
    Array,
    /// A text: its characters are counted.
    Text,
}

/// Quantifier over the elements of an array, or a measure of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quantifier {
    /// At least one element; false on an empty array.
    Any,
    /// Every element; true on an empty array.
    All,
    /// The number of elements, an integer.
    Count,
    /// The least element.
    Min,
    /// The greatest element.
    Max,
    /// The sum of the elements, added in their order.
    Sum,
    /// Their sum divided by their number.
    Mean,
}

impl Quantifier {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Quantifier::Any => "any",
            Quantifier::All => "all",
            Quantifier::Count => "count",
            Quantifier::Min => "min",
            Quantifier::Max => "max",
            Quantifier::Sum => "sum",
            Quantifier::Mean => "mean",
        }
    }

    /// The type of its result.
    pub fn value_type(self) -> ValueType {
        match self {
            Quantifier::Any | Quantifier::All => ValueType::Bool,
            Quantifier::Count => ValueType::Int,
            Quantifier::Min | Quantifier::Max | Quantifier::Sum | Quantifier::Mean => ValueType::Float,
        }
    }

    /// Whether it is a measure of the elements themselves, without conditions.
    pub fn is_measure(self) -> bool {
        self.value_type() == ValueType::Float
    }
}

/// Condition on one element of an array.
///
/// In a list of conditions, those of one alternative are adjacent, and alternatives count upwards from 0. An element
/// meets the list if it meets all conditions of at least one alternative; it meets an empty list.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Condition {
    /// The alternative that it belongs to.
    pub alternative: u32,
    /// Path in the element.
    pub path: Path,
    /// Test of the value; false if the field is missing or has another type.
    pub test: Test,
}

/// Test of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// The field is present, with any value.
    Present,
    /// The field equals this boolean, number (compared as double) or string.
    Equals(Value),
    /// The field is a string, and not this one.
    OtherText(Box<str>),
    /// The field is a number for which the comparison with this constant holds. NaN meets none: it is unknown.
    Number(Comparison, f64),
    /// The field is an integer for which the comparison with this constant holds. Any other value but null has another
    /// type; of such elements the array counts as one.
    Integer(Comparison, f64),
}

/// A double by its bits, as in [`Value`].
impl Hash for Test {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Test::Present => {}
            Test::Equals(value) => value.hash(state),
            Test::OtherText(text) => text.hash(state),
            Test::Number(comparison, number) | Test::Integer(comparison, number) => {
                (comparison, number.to_bits()).hash(state)
            }
        }
    }
}
