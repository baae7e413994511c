//! Times in tables: numbers in a unit, or dates.

use std::borrow::Cow;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rondel_event::TimeUnit;

/// How the times of a table are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// The decimal places between the unit and a nanosecond.
    places: u32,
    /// Whether numbers may have a decimal comma.
    has_comma: bool,
}

impl Times {
    /// Times in this unit; otherwise in the one that makes the first time one of this century, or in seconds.
    pub(super) fn new(unit: Option<TimeUnit>, first: Option<&[u8]>, has_comma: bool) -> Times {
        let places = match unit {
            Some(unit) => u32::from(unit.nanos_exponent()),
            None => {
                let number = first
                    .and_then(|cell| point(std::str::from_utf8(cell).ok()?.trim(), has_comma).parse().ok());
                // More than 292 years in seconds is no time.
                match number.map(f64::abs) {
                    Some(number) if number >= 1e16 => 0,
                    Some(number) if number >= 1e13 => 3,
                    Some(number) if number >= 1e10 => 6,
                    _ => 9,
                }
            }
        };
        Times { places, has_comma }
    }

    /// The time in a cell, in nanoseconds.
    #[inline]
    pub(super) fn time(&self, cell: &[u8]) -> Option<i64> {
        let cell = cell.trim_ascii();
        self.decimal(cell).or_else(|| self.other(cell))
    }

    /// A plain decimal number, exactly; places below the nanosecond are cut off.
    #[inline]
    fn decimal(&self, cell: &[u8]) -> Option<i64> {
        let (is_negative, digits) = match cell {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, cell),
        };
        let (mut nanos, mut places, mut seen, mut is_fraction) = (0_i64, self.places, 0, false);
        for byte in digits {
            match byte {
                b'0'..=b'9' if is_fraction && places == 0 => {}
                b'0'..=b'9' => {
                    nanos = nanos.checked_mul(10)?.checked_add(i64::from(byte - b'0'))?;
                    places -= u32::from(is_fraction);
                    seen += 1;
                }
                b'.' if !is_fraction => is_fraction = true,
                b',' if self.has_comma && !is_fraction => is_fraction = true,
                _ => return None,
            }
        }
        if seen == 0 {
            return None;
        }
        let nanos = nanos.checked_mul(10_i64.checked_pow(places)?)?;
        Some(if is_negative { -nanos } else { nanos })
    }

    /// A number with an exponent, or a date and time.
    #[cold]
    fn other(&self, cell: &[u8]) -> Option<i64> {
        let text = std::str::from_utf8(cell).ok()?;
        if let Ok(number) = point(text, self.has_comma).parse::<f64>() {
            let nanos = (number * 10_f64.powi(self.places as i32)).round();
            return (nanos.abs() < 9.2e18).then_some(nanos as i64);
        }
        let time = text.parse::<jiff::Timestamp>().ok();
        // Without an offset it is in UTC.
        let time = time.or_else(|| {
            let local: DateTime = text.parse().ok()?;
            Some(local.to_zoned(TimeZone::UTC).ok()?.timestamp())
        });
        i64::try_from(time?.as_nanosecond()).ok()
    }
}

/// A number with a point in the place of its decimal comma, if it may have one.
fn point(text: &str, has_comma: bool) -> Cow<'_, str> {
    if has_comma && text.matches([',', '.']).count() == 1 {
        Cow::Owned(text.replace(',', "."))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_their_units() {
        let of = |unit, cell: &str| Times::new(unit, Some(cell.as_bytes()), false).time(cell.as_bytes());
        let cases = [
            ("12.5", Some(12_500_000_000)),
            ("-0.25", Some(-250_000_000)),
            ("1700000000.123456789", Some(1_700_000_000_123_456_789)),
            ("1700000000.1234567891", Some(1_700_000_000_123_456_789)),
            ("1700000000123", Some(1_700_000_000_123_000_000)),
            ("1700000000123456", Some(1_700_000_000_123_456_000)),
            ("1700000000123456789", Some(1_700_000_000_123_456_789)),
            ("1e3", Some(1_000_000_000_000)),
            ("2026-11-22T18:16:04.5Z", Some(1_795_371_364_500_000_000)),
            ("2026-11-22T19:16:04.5+01:00", Some(1_795_371_364_500_000_000)),
            ("2026-11-22 18:16:04.5", Some(1_795_371_364_500_000_000)),
            (" 7 ", Some(7_000_000_000)),
            ("", None),
            (".", None),
            ("-", None),
            ("now", None),
            ("1e99", None),
            ("nan", None),
        ];
        for (cell, expected) in cases {
            assert_eq!(of(None, cell), expected, "{cell}");
        }
        assert_eq!(of(Some(TimeUnit::Nanoseconds), "12"), Some(12));
        assert_eq!(of(Some(TimeUnit::Milliseconds), "12.5"), Some(12_500_000));
        let of_comma = |cell: &str| Times::new(None, Some(cell.as_bytes()), true).time(cell.as_bytes());
        for (cell, expected) in [
            ("0,5", Some(500_000_000)),
            ("0.5", Some(500_000_000)),
            ("1700000000123,5", Some(1_700_000_000_123_500_000)),
            ("1,5e3", Some(1_500_000_000_000)),
            ("1,5,0", None),
            ("1.000,5", None),
        ] {
            assert_eq!(of_comma(cell), expected, "{cell}");
        }
        assert_eq!(of(None, "0,5"), None);
        for cut in 0..20 {
            let _ = of(None, &"2026-11-22T18:16:04.5Z"[..cut]);
        }
    }
}
