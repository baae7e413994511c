//! Conditions on the values of elements.

use rondel_event::{Test, Value};

use super::scalar::{Scalar, is_of_integer};

/// Whether a number compared by a condition is NaN or null.
pub(super) fn is_unknown(test: &Test, value: Scalar<'_>) -> bool {
    match value {
        Scalar::Null => is_of_number(test),
        // If an integer is declared, NaN has another type.
        Scalar::Float(value) => value.is_nan() && is_of_number(test) && !matches!(test, Test::Integer(..)),
        _ => false,
    }
}

/// Whether a value has another type than the number compared by a condition.
pub(super) fn is_other(test: &Test, value: Scalar<'_>) -> bool {
    match value {
        Scalar::Null => false,
        Scalar::Int(_) | Scalar::Float(_) | Scalar::Large(_) => {
            matches!(test, Test::Integer(..)) && !is_of_integer(value)
        }
        _ => true,
    }
}

/// Whether a condition compares a number.
pub(crate) fn is_of_number(test: &Test) -> bool {
    matches!(test, Test::Number(..) | Test::Integer(..) | Test::Equals(Value::Int(_) | Value::Float(_)))
}

#[inline(never)]
pub(super) fn is_one_of(values: &[i64], value: Scalar<'_>) -> bool {
    matches!(value, Scalar::Int(value) if values.binary_search(&value).is_ok())
}

/// Whether it is a text other than this one.
#[inline(never)]
fn is_other_text(other: &str, value: Scalar<'_>) -> bool {
    matches!(value, Scalar::Text(text) if text != other.as_bytes() && std::str::from_utf8(text).is_ok())
}

pub(super) fn holds(test: &Test, value: Scalar<'_>) -> bool {
    let number = match value {
        Scalar::Int(value) => Some(value as f64),
        Scalar::Large(value) | Scalar::Float(value) => Some(value),
        _ => None,
    };
    match test {
        Test::Present => true,
        Test::Number(comparison, bound) => number.is_some_and(|value| comparison.is_met(value, *bound)),
        Test::Integer(comparison, bound) => {
            is_of_integer(value) && number.is_some_and(|value| comparison.is_met(value, *bound))
        }
        Test::Equals(Value::Bool(wanted)) => matches!(value, Scalar::Bool(value) if value == *wanted),
        Test::Equals(Value::Float(wanted)) => number == Some(*wanted),
        Test::Equals(Value::Int(wanted)) => number == Some(*wanted as f64),
        Test::Equals(Value::String(wanted)) => {
            matches!(value, Scalar::Text(text) if text == wanted.as_bytes())
        }
        Test::OtherText(other) => is_other_text(other, value),
        Test::Equals(Value::Time(_) | Value::Duration(_)) => false,
    }
}
