//! Values without parts, and the numbers among them.

use crate::elements::Witness;
use crate::error::MessageErrorKind;

const NS_PER_S: i64 = 1_000_000_000;

/// A value without parts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scalar<'m> {
    /// Present, without a value.
    Null,
    Bool(bool),
    Int(i64),
    /// An integer beyond the signed 64-bit range, as the nearest double.
    Large(f64),
    Float(f64),
    /// Text, which need not be UTF-8 yet.
    Text(&'m [u8]),
    /// A number of bytes.
    Bytes(u64),
    /// A point in time or a duration, in nanoseconds.
    Instant(i64),
    Span(i64),
    /// A point in time or a duration beyond 64 bits of nanoseconds.
    Beyond,
    /// A value of an unsupported type.
    Other,
}

pub(super) fn is_null(value: Scalar<'_>) -> bool {
    matches!(value, Scalar::Null)
}

/// Whether a value counts as an integer.
pub(super) fn is_of_integer(value: Scalar<'_>) -> bool {
    match value {
        Scalar::Int(_) => true,
        Scalar::Float(value) => is_integer(value),
        _ => false,
    }
}

/// Whether a double is an integer, and an exact one.
pub(crate) fn is_integer(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0
}

/// Whether a double represents an integer exactly.
pub(crate) fn is_exact(value: i64) -> bool {
    i128::from(value) == value as f64 as i128
}

/// Returns a number of units of `unit_ns` nanoseconds, rounded to the nearest nanosecond.
pub(crate) fn float_nanos(value: f64, unit_ns: i64) -> Result<i64, MessageErrorKind> {
    let nanos = (value * unit_ns as f64).round();
    if nanos.is_nan() {
        Err(MessageErrorKind::NotATime)
    } else if (i64::MIN as f64..-(i64::MIN as f64)).contains(&nanos) {
        // The bounds are powers of two; the upper one is excluded.
        Ok(nanos as i64)
    } else {
        Err(MessageErrorKind::TimeOutOfRange)
    }
}

/// Returns a time of seconds and nanoseconds.
pub(crate) fn sum(seconds: i64, nanos: i64) -> Result<i64, MessageErrorKind> {
    if !(0..NS_PER_S).contains(&nanos) {
        return Err(MessageErrorKind::NotATime);
    }
    // Their sum may be in range although the seconds alone are not.
    i64::try_from(i128::from(seconds) * i128::from(NS_PER_S) + i128::from(nanos))
        .map_err(|_| MessageErrorKind::TimeOutOfRange)
}

/// Returns nanoseconds, or the reason why a value has none, as a value.
#[inline(always)]
pub(crate) fn span(nanos: Result<i64, MessageErrorKind>) -> Scalar<'static> {
    match nanos {
        Ok(nanos) => Scalar::Span(nanos),
        Err(MessageErrorKind::TimeOutOfRange) => Scalar::Beyond,
        Err(_) => Scalar::Other,
    }
}

/// Returns nanoseconds since 1970, or the reason why a value has none, as a value.
#[inline(always)]
pub(crate) fn instant(nanos: Result<i64, MessageErrorKind>) -> Scalar<'static> {
    match span(nanos) {
        Scalar::Span(nanos) => Scalar::Instant(nanos),
        other => other,
    }
}

/// Returns a value of an element as text for users.
pub(super) fn shown(value: Scalar<'_>) -> String {
    match value {
        Scalar::Bool(value) => value.to_string(),
        Scalar::Int(value) => value.to_string(),
        Scalar::Float(value) | Scalar::Large(value) => value.to_string(),
        Scalar::Text(text) => Witness::quoted(&String::from_utf8_lossy(text)),
        Scalar::Null => "null".to_owned(),
        _ => "…".to_owned(),
    }
}
