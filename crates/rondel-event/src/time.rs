use std::fmt;

/// A point in time or a span of it: signed 64-bit nanoseconds. What zero means is up to the
/// source (the Unix epoch on a network, the start of the recording in a trace).
///
/// Converted to and from other units only where messages enter and verdicts leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

const NS_PER_S: i64 = 1_000_000_000;

impl Timestamp {
    /// Time zero.
    pub const ZERO: Timestamp = Timestamp(0);

    /// From nanoseconds.
    #[inline(always)]
    pub const fn from_nanos(ns: i64) -> Timestamp {
        Timestamp(ns)
    }

    /// As nanoseconds.
    #[inline(always)]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Reads a JSON number as a time in `unit`. Decimal places finer than a nanosecond are cut off;
    /// exponents are accepted.
    ///
    /// # Errors
    /// [`ParseTimeError`] when the text is no number or the time does not fit (beyond 292 years
    /// from zero).
    ///
    /// ```
    /// use rondel_event::{TimeUnit, Timestamp};
    /// let t = Timestamp::parse(b"3.25", TimeUnit::Seconds).unwrap();
    /// assert_eq!(t.as_nanos(), 3_250_000_000);
    /// assert_eq!(t.to_string(), "3.25");
    /// ```
    pub fn parse(text: &[u8], unit: TimeUnit) -> Result<Timestamp, ParseTimeError> {
        let (negative, digits) = match text {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        let mut scale = i32::from(unit.nanos_exponent());
        let mut mantissa: i128 = 0;
        let mut seen_point = false;
        let mut any = false;
        let mut rest = digits;
        while let [byte, tail @ ..] = rest {
            match byte {
                b'0'..=b'9' => {
                    any = true;
                    // Digits far below a nanosecond cannot matter; neither can a number this large.
                    if mantissa < i128::from(i64::MAX) * 1_000_000_000 {
                        mantissa = mantissa * 10 + i128::from(byte - b'0');
                        scale -= i32::from(seen_point);
                    } else if !seen_point {
                        return Err(ParseTimeError::OutOfRange);
                    }
                }
                b'.' if any && !seen_point => seen_point = true,
                b'e' | b'E' if any => {
                    let exponent = std::str::from_utf8(tail)
                        .ok()
                        .and_then(|t| t.parse::<i32>().ok())
                        .ok_or(ParseTimeError::NotANumber)?;
                    scale = scale.saturating_add(exponent);
                    break;
                }
                _ => return Err(ParseTimeError::NotANumber),
            }
            rest = tail;
        }
        if !any {
            return Err(ParseTimeError::NotANumber);
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

/// Seconds, exactly, without trailing zeros: what stands in the `time` of a verdict.
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

/// The unit in which a source writes its times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Seconds, with decimal places where needed.
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
    /// The power of ten that turns a number in this unit into nanoseconds.
    pub const fn nanos_exponent(self) -> u8 {
        match self {
            TimeUnit::Seconds => 9,
            TimeUnit::Milliseconds => 6,
            TimeUnit::Microseconds => 3,
            TimeUnit::Nanoseconds => 0,
        }
    }
}

/// Why a text is not a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseTimeError {
    /// It is no number.
    NotANumber,
    /// It is a number, but more than 292 years from zero in this unit.
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
    fn reads_and_writes_decimals_exactly() {
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
        for bad in ["", "-", ".5", "x", "1x", "--1", "1e", "NaN"] {
            assert_eq!(parse(bad, TimeUnit::Seconds), Err(ParseTimeError::NotANumber), "{bad}");
        }
    }
}
