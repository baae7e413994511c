//! Values, their types and comparisons.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// Type of the value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// True or false.
    Bool,
    /// A signed 64-bit integer.
    Int,
    /// A double-precision number.
    Float,
    /// A time point in nanoseconds, like [`Timestamp`](crate::Timestamp).
    Time,
    /// A duration in nanoseconds.
    Duration,
    /// UTF-8 text.
    String,
}

impl ValueType {
    /// Whether the type is numeric, so that arithmetic is defined on it.
    pub fn is_number(self) -> bool {
        matches!(self, ValueType::Int | ValueType::Float)
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ValueType::Bool => "bool",
            ValueType::Int => "int",
            ValueType::Float => "float",
            ValueType::Time => "time",
            ValueType::Duration => "duration",
            ValueType::String => "string",
        })
    }
}

/// A value, for constants, tests and reports. The values of messages are in the typed columns of a
/// [`Block`](crate::Block).
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// True or false.
    Bool(bool),
    /// A signed 64-bit integer.
    Int(i64),
    /// A double-precision number.
    Float(f64),
    /// A time point in nanoseconds.
    Time(i64),
    /// A duration in nanoseconds.
    Duration(i64),
    /// UTF-8 text.
    String(Box<str>),
}

impl Value {
    /// Returns the type of the value.
    pub fn value_type(&self) -> ValueType {
        match self {
            Value::Bool(_) => ValueType::Bool,
            Value::Int(_) => ValueType::Int,
            Value::Float(_) => ValueType::Float,
            Value::Time(_) => ValueType::Time,
            Value::Duration(_) => ValueType::Duration,
            Value::String(_) => ValueType::String,
        }
    }
}

/// A double by its bits: those of the two zeros differ, although these are equal.
impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Value::Bool(b) => b.hash(state),
            Value::Int(i) | Value::Time(i) | Value::Duration(i) => i.hash(state),
            Value::Float(x) => x.to_bits().hash(state),
            Value::String(text) => text.hash(state),
        }
    }
}

/// Comparison of two values of an ordered type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// Returns the result of the comparison. As in IEEE 754, NaN is unequal to and unordered with every
    /// number.
    #[inline(always)]
    pub fn holds<T: PartialOrd>(self, left: T, right: T) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
        }
    }

    /// Returns whether two numbers are known and the comparison holds: with NaN it does not, not even `!=`.
    #[inline(always)]
    pub fn is_met(self, left: f64, right: f64) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left.partial_cmp(&right).is_some_and(Ordering::is_ne),
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
        }
    }

    /// Returns the operator.
    pub fn as_str(self) -> &'static str {
        match self {
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}
