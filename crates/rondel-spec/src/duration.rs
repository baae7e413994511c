//! Exact parsing of durations.

/// The units and their lengths in nanoseconds.
pub(crate) const UNITS: [(&str, i64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// The reason why a number with a unit is not a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DurationError {
    /// More than 292 years.
    TooLong,
    /// Not a whole number of nanoseconds.
    TooFine,
    /// The number is malformed.
    NotANumber,
}

/// Returns the length of a unit in nanoseconds.
pub(crate) fn unit(word: &str) -> Option<i64> {
    UNITS.iter().find(|(name, _)| *name == word).map(|(_, nanos)| *nanos)
}

/// Returns the unit for a synonym, such as `s` for `seconds`.
pub(crate) fn synonym(word: &str) -> Option<&'static str> {
    Some(match word {
        "nsec" | "nanosecond" | "nanoseconds" => "ns",
        "usec" | "microsecond" | "microseconds" | "µs" => "us",
        "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => "ms",
        "sec" | "secs" | "second" | "seconds" => "s",
        "mins" | "minute" | "minutes" => "min",
        "hr" | "hrs" | "hour" | "hours" => "h",
        "day" | "days" => "d",
        _ => return None,
    })
}

/// Converts a number with an optional fraction and exponent to nanoseconds, for a unit of `unit` nanoseconds.
pub(crate) fn nanos(number: &str, unit: i64) -> Result<i64, DurationError> {
    let (digits, exponent) = match number.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse().map_err(|_| DurationError::TooLong)?),
        None => (number, 0_i32),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    let mut scale = exponent.saturating_sub(i32::try_from(fraction.len()).unwrap_or(i32::MAX));
    let mut value = 0_i128;
    for digit in whole.chars().chain(fraction.chars()).filter(|c| *c != '_') {
        let digit = digit.to_digit(10).ok_or(DurationError::NotANumber)?;
        value =
            value.checked_mul(10).and_then(|v| v.checked_add(digit.into())).ok_or(DurationError::TooLong)?;
    }
    value = value.checked_mul(unit.into()).ok_or(DurationError::TooLong)?;
    while scale > 0 && value != 0 {
        value = value.checked_mul(10).ok_or(DurationError::TooLong)?;
        scale -= 1;
    }
    while scale < 0 && value != 0 {
        if value % 10 != 0 {
            return Err(DurationError::TooFine);
        }
        value /= 10;
        scale += 1;
    }
    i64::try_from(value).map_err(|_| DurationError::TooLong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units_are_exact() {
        for (number, word, expected) in [
            ("200", "ms", Ok(200_000_000)),
            ("1.5", "min", Ok(90_000_000_000)),
            ("0.1", "s", Ok(100_000_000)),
            ("1_000", "us", Ok(1_000_000)),
            ("2.50", "ns", Err(DurationError::TooFine)),
            ("1e3", "s", Ok(1_000_000_000_000)),
            ("15e-1", "s", Ok(1_500_000_000)),
            ("0e999999999", "s", Ok(0)),
            ("1e99999999999", "s", Err(DurationError::TooLong)),
            ("1e999999", "s", Err(DurationError::TooLong)),
            ("106751", "d", Ok(106_751 * 86_400_000_000_000)),
            ("106752", "d", Err(DurationError::TooLong)),
            ("9223372036854775807", "ns", Ok(i64::MAX)),
        ] {
            assert_eq!(nanos(number, unit(word).unwrap()), expected, "{number} {word}");
        }
        assert_eq!(unit("m"), None);
    }
}
