//! Time points and their units.

use std::fmt;

/// A time point or a duration: signed 64-bit nanoseconds. The source defines zero: the Unix epoch on a
/// network, the start of the recording in a trace.
///
/// Other units are converted only where messages are decoded and verdicts are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

const NS_PER_S: i64 = 1_000_000_000;

impl Timestamp {
    /// Time zero.
    pub const ZERO: Timestamp = Timestamp(0);

    /// Creates a timestamp from nanoseconds.
    #[inline(always)]
    pub const fn from_nanos(ns: i64) -> Timestamp {
        Timestamp(ns)
    }

    /// Returns the nanoseconds.
    #[inline(always)]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Parses a JSON number as a time in `unit`. Fractions of a nanosecond are truncated.
    ///
    /// # Errors
    /// [`ParseTimeError`] if the text is not a number, or the time is more than 292 years from zero.
    ///
    /// ```
    /// use rondel_event::{TimeUnit, Timestamp};
    /// let t = Timestamp::parse(b"3.25", TimeUnit::Seconds).unwrap();
    /// assert_eq!(t.as_nanos(), 3_250_000_000);
    /// assert_eq!(t.to_string(), "3.25");
    /// ```
    pub fn parse(text: &[u8], unit: TimeUnit) -> Result<Timestamp, ParseTimeError> {
        Timestamp::parse_scaled(text, 1, i32::from(unit.nanos_exponent()))
    }

    /// Parses a JSON number as a time in a unit of `factor` times ten to the `exponent` nanoseconds, such as 6 and 10 for
    /// minutes. The factor is less than a million.
    ///
    /// # Errors
    /// As [`Timestamp::parse`].
    pub fn parse_scaled(text: &[u8], factor: i128, exponent: i32) -> Result<Timestamp, ParseTimeError> {
        let (negative, digits) = match text {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        let mut scale = exponent;
        let mut mantissa: i128 = 0;
        let mut seen_point = false;
        let mut any = false;
        let mut rest = digits;
        while let [byte, tail @ ..] = rest {
            match byte {
                b'0'..=b'9' => {
                    any = true;
                    // Further fraction digits are below a nanosecond; further integer digits overflow, unless an
                    // exponent moves the point.
                    if mantissa < i128::from(i64::MAX) * 1_000_000_000 {
                        mantissa = mantissa * 10 + i128::from(byte - b'0');
                        scale -= i32::from(seen_point);
                    } else if !seen_point {
                        scale = scale.saturating_add(1);
                    }
                }
                b'.' if any && !seen_point => seen_point = true,
                b'e' | b'E' if any => {
                    scale = scale.saturating_add(power(tail).ok_or(ParseTimeError::NotANumber)?);
                    break;
                }
                _ => return Err(ParseTimeError::NotANumber),
            }
            rest = tail;
        }
        if !any {
            return Err(ParseTimeError::NotANumber);
        }
        if factor != 1 {
            mantissa *= factor;
        }
        while scale < 0 && mantissa != 0 {
            mantissa /= 10;
            scale += 1;
        }
        while scale > 0 && mantissa != 0 {
            mantissa = mantissa.checked_mul(10).ok_or(ParseTimeError::OutOfRange)?;
            scale -= 1;
        }
        let ns = i64::try_from(if negative { -mantissa } else { mantissa });
        ns.map(Timestamp).map_err(|_| ParseTimeError::OutOfRange)
    }
}

/// Parses the exponent of a number. Beyond the range of an integer, it counts as infinite.
fn power(text: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let limit = if text.starts_with('-') { i32::MIN } else { i32::MAX };
    is_number.then(|| text.parse().unwrap_or(limit))
}

/// Writes seconds without rounding or trailing zeros, the format of `time` in verdicts.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0 / NS_PER_S, (self.0 % NS_PER_S).unsigned_abs());
        if self.0 < 0 && seconds == 0 {
            f.write_str("-")?;
        }
        write!(f, "{seconds}")?;
        if nanos != 0 {
            let digits = format!("{nanos:09}");
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        Ok(())
    }
}

/// Unit of the times of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Seconds.
    #[default]
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
}

impl TimeUnit {
    /// Returns the exponent of the power of ten that converts this unit to nanoseconds.
    pub const fn nanos_exponent(self) -> u8 {
        match self {
            TimeUnit::Seconds => 9,
            TimeUnit::Milliseconds => 6,
            TimeUnit::Microseconds => 3,
            TimeUnit::Nanoseconds => 0,
        }
    }
}

/// Error of parsing a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseTimeError {
    /// The text is not a number.
    NotANumber,
    /// The time is more than 292 years from zero in this unit.
    OutOfRange,
}

impl fmt::Display for ParseTimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ParseTimeError::NotANumber => "not a number",
            ParseTimeError::OutOfRange => {
                "more than 292 years from zero in this unit; is the unit of time right (s, ms, us, ns)?"
            }
        })
    }
}

impl std::error::Error for ParseTimeError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_parsed_and_written_exactly() {
        for (text, ns) in [
            ("0", 0),
            ("12", 12_000_000_000),
            ("-0.5", -500_000_000),
            ("1.000000001", 1_000_000_001),
            ("-3.25", -3_250_000_000),
            ("9223372036.854775807", i64::MAX),
        ] {
            let t = Timestamp::parse(text.as_bytes(), TimeUnit::Seconds).unwrap();
            assert_eq!(t.as_nanos(), ns, "{text}");
            assert_eq!(t.to_string(), text);
        }
        let parse = |t: &str, u| Timestamp::parse(t.as_bytes(), u).map(Timestamp::as_nanos);
        assert_eq!(parse("1e3", TimeUnit::Milliseconds), Ok(1_000_000_000));
        assert_eq!(parse("1.5E-3", TimeUnit::Seconds), Ok(1_500_000));
        assert_eq!(parse("0.0000000001", TimeUnit::Seconds), Ok(0));
        assert_eq!(parse("1700000000000", TimeUnit::Seconds), Err(ParseTimeError::OutOfRange));
        assert_eq!(parse("1e999999999", TimeUnit::Seconds), Err(ParseTimeError::OutOfRange));
        assert_eq!(parse("0e999999999", TimeUnit::Seconds), Ok(0));
        assert_eq!(parse("1e99999999999", TimeUnit::Seconds), Err(ParseTimeError::OutOfRange));
        assert_eq!(parse("1e-99999999999", TimeUnit::Seconds), Ok(0));
        assert_eq!(parse("0e99999999999", TimeUnit::Seconds), Ok(0));
        let digits = "1".repeat(60);
        assert_eq!(parse(&digits, TimeUnit::Nanoseconds), Err(ParseTimeError::OutOfRange));
        assert_eq!(parse(&format!("{digits}e-45"), TimeUnit::Nanoseconds), Ok(111_111_111_111_111));
        let minutes = |text: &str| Timestamp::parse_scaled(text.as_bytes(), 6, 10).map(Timestamp::as_nanos);
        assert_eq!((minutes("1.5"), minutes("0.0000000001")), (Ok(90_000_000_000), Ok(6)));
        for bad in ["", "-", ".5", "x", "1x", "--1", "1e", "1e+-3", "1e5.5", "1-2", "+5", "NaN"] {
            assert_eq!(parse(bad, TimeUnit::Seconds), Err(ParseTimeError::NotANumber), "{bad}");
        }
    }
}
