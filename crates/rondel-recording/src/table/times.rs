//! Times in tables: numbers in a unit, dates, times of day, or times in a given format.

use std::borrow::Cow;

use jiff::civil::Time;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use rondel_event::{TimeUnit, Timestamp, calendar};

use super::cells;

/// Format of the times of a table.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    /// Number of decimal places between the unit and a nanosecond.
    places: u32,
    /// Whether numbers may have a decimal comma.
    has_comma: bool,
    /// Format of the times, as in `strptime`; cells in another format are no times.
    format: Option<String>,
}

impl Times {
    /// Returns times in this unit; without one, in the unit by which the first time is in this century, or in seconds.
    pub(crate) fn new(unit: Option<TimeUnit>, first: Option<&[u8]>, has_comma: bool) -> Times {
        let unit = unit.or_else(|| Some(unit_of(number(first?, has_comma)?)));
        let places = u32::from(unit.unwrap_or_default().nanos_exponent());
        Times { places, has_comma, format: None }
    }

    /// Returns times in this format of `strptime`.
    pub(super) fn in_format(format: &str) -> Times {
        Times { places: 9, has_comma: false, format: Some(format.to_owned()) }
    }

    /// Returns the time in a cell, in nanoseconds.
    #[inline]
    pub(crate) fn time(&self, cell: &[u8]) -> Option<i64> {
        let cell = cell.trim_ascii();
        if let Some(format) = &self.format {
            return formatted(format, std::str::from_utf8(cell).ok()?);
        }
        self.decimal(cell).or_else(|| self.other(cell))
    }

    /// Returns the reason why a cell of a column is no time, with a remedy.
    pub(super) fn refused(&self, cell: &[u8], column: &str) -> String {
        let shown = cells::shown(cell);
        let is_date = cell.iter().filter(|byte| byte.is_ascii_digit()).count() >= 4;
        let way_out = match (&self.format, self.other_unit(cell)) {
            (Some(format), _) => format!("it is not written as --time-format {format:?} says"),
            (None, Some(unit)) => format!(
                "its unit would make it more than 292 years; say --time-unit {unit}, or end the name of the column in \
                 `_{unit}`"
            ),
            // A date whose order of parts depends on the country.
            (None, None) if is_date => {
                "say how times are written with --time-format, such as \"%d.%m.%Y %H:%M:%S%.f\"".to_owned()
            }
            (None, None) => return format!("{shown} in column `{column}` is no time"),
        };
        format!("{shown} in column `{column}` is no time: {way_out}")
    }

    /// Returns another unit in which a number is a plausible time.
    fn other_unit(&self, cell: &[u8]) -> Option<&'static str> {
        let unit = unit_of(number(cell, self.has_comma).filter(|number| number.abs() < 9.2e18)?);
        let name = match unit {
            TimeUnit::Seconds => "s",
            TimeUnit::Milliseconds => "ms",
            TimeUnit::Microseconds => "us",
            TimeUnit::Nanoseconds => "ns",
        };
        (u32::from(unit.nanos_exponent()) < self.places).then_some(name)
    }

    /// Returns a plain decimal number, exactly; places below the nanosecond are truncated.
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

    /// Returns a number with an exponent, or a date and time.
    #[cold]
    fn other(&self, cell: &[u8]) -> Option<i64> {
        let text = std::str::from_utf8(cell).ok()?;
        if let Ok(number) = point(text, self.has_comma).parse::<f64>() {
            let nanos = (number * 10_f64.powi(self.places as i32)).round();
            return (nanos.abs() < 9.2e18).then_some(nanos as i64);
        }
        if let Some(nanos) = calendar::time_of_day(cell) {
            return Some(nanos);
        }
        // `2026/11/22` has the order of ISO 8601.
        let is_slashed = text.len() >= 10 && [4, 7].iter().all(|at| text.as_bytes()[*at] == b'/');
        let own = if is_slashed { Cow::Owned(text.replacen('/', "-", 2)) } else { Cow::Borrowed(text) };
        calendar::parse(own.as_bytes())?.timestamp().map(Timestamp::as_nanos)
    }
}

/// Returns the number in a cell.
fn number(cell: &[u8], has_comma: bool) -> Option<f64> {
    point(std::str::from_utf8(cell).ok()?.trim(), has_comma).parse().ok()
}

/// Returns the unit by which a number is a time of this century; seconds if there is none.
fn unit_of(number: f64) -> TimeUnit {
    // More than 292 years in seconds overflow.
    match number.abs() {
        number if number >= 1e16 => TimeUnit::Nanoseconds,
        number if number >= 1e13 => TimeUnit::Microseconds,
        number if number >= 1e10 => TimeUnit::Milliseconds,
        _ => TimeUnit::Seconds,
    }
}

/// Checks a format of times.
///
/// # Errors
/// The reason why it is invalid.
pub fn check_time_format(format: &str) -> Result<(), String> {
    let example = jiff::Zoned::new(jiff::Timestamp::UNIX_EPOCH, TimeZone::UTC);
    let written = strtime::format(format, &example).map_err(|error| error.to_string())?;
    if written == format {
        return Err("it has no field of a time such as %Y or %H".to_owned());
    }
    strtime::parse(format, &written).map_err(|error| error.to_string())?;
    formatted(format, &written).map(drop).ok_or_else(|| {
        "it gives no time: that is a date (%Y %m %d), a time of day (%H %M %S), both, or seconds since 1970 (%s)"
            .to_owned()
    })
}

/// Whether a cell is a time of day without a date.
pub(super) fn is_time_of_day(cell: &[u8]) -> bool {
    calendar::time_of_day(cell.trim_ascii()).is_some()
}

/// Returns the nanoseconds of a time of day since midnight.
fn since_midnight(time: Time) -> i64 {
    let seconds = i64::from(time.hour()) * 3600 + i64::from(time.minute()) * 60 + i64::from(time.second());
    seconds * 1_000_000_000 + i64::from(time.subsec_nanosecond())
}

/// Returns a time in a format of `strptime`: in UTC without an offset, since midnight without a date.
#[cold]
fn formatted(format: &str, text: &str) -> Option<i64> {
    let parsed = strtime::parse(format, text).ok().or_else(|| with_point(format, text))?;
    if let Ok(time) = parsed.to_timestamp() {
        return i64::try_from(time.as_nanosecond()).ok();
    }
    let time = parsed.to_time().ok()?;
    match parsed.to_date() {
        Ok(date) => {
            let utc = date.to_datetime(time).to_zoned(TimeZone::UTC).ok()?;
            i64::try_from(utc.timestamp().as_nanosecond()).ok()
        }
        Err(_) => parsed.hour().map(|_| since_midnight(time)),
    }
}

/// Parses a time whose format has a fraction after a point (`%.f`), with a comma instead.
fn with_point(format: &str, text: &str) -> Option<strtime::BrokenDownTime> {
    let comma = text.rfind(',').filter(|_| format.contains("%.f"))?;
    let text = format!("{}.{}", &text[..comma], &text[comma + 1..]);
    strtime::parse(format, &text).ok()
}

/// Returns a number with a point instead of its decimal comma, if it may have one.
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
            ("2026-11-22", Some(1_795_305_600_000_000_000)),
            ("2026-11-22 18:16", Some(1_795_371_360_000_000_000)),
            ("2026-11-22 18", Some(1_795_370_400_000_000_000)),
            ("20261122T181604Z", Some(1_795_371_364_000_000_000)),
            ("2026-11-22T19:16:04+01:00[Europe/Berlin]", Some(1_795_371_364_000_000_000)),
            ("2026/11/22 18:16:04,5", Some(1_795_371_364_500_000_000)),
            ("18:16:04.5", Some(65_764_500_000_000)),
            ("00:01", Some(60_000_000_000)),
            ("22.11.2026", None),
            ("11/22/2026", None),
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

    #[test]
    fn formats_describe_times() {
        for (format, cell, expected) in [
            ("%d.%m.%Y %H:%M:%S%.f", "22.11.2026 18:16:04.5", Some(1_795_371_364_500_000_000)),
            ("%d.%m.%Y", "22.11.2026", Some(1_795_305_600_000_000_000)),
            ("%m/%d/%Y %I:%M:%S %p", "11/22/2026 06:16:04 PM", Some(1_795_371_364_000_000_000)),
            ("%Y-%m-%dT%H:%M:%S%z", "2026-11-22T19:16:04+0100", Some(1_795_371_364_000_000_000)),
            ("%H.%M.%S", "00.01.02", Some(62_000_000_000)),
            ("%s", "1700000000", Some(1_700_000_000_000_000_000)),
            ("%d.%m.%Y", "2026-11-22", None),
            ("%d.%m.%Y", "", None),
            ("%d.%m.%Y %H:%M:%S%.f", "22.11.2026 18:16:04,5", Some(1_795_371_364_500_000_000)),
            ("%d.%m.%Y, %H:%M:%S%.f", "22.11.2026, 18:16:04,5", Some(1_795_371_364_500_000_000)),
            ("%d.%m.%Y, %H:%M:%S%.f", "22.11.2026, 18:16:04", Some(1_795_371_364_000_000_000)),
            ("%d.%m.%Y %H:%M:%S,%f", "22.11.2026 18:16:04,5", Some(1_795_371_364_500_000_000)),
        ] {
            assert!(check_time_format(format).is_ok(), "{format}");
            assert_eq!(Times::in_format(format).time(cell.as_bytes()), expected, "{format} {cell}");
        }
        for format in ["", "date", "%", "%é", "%Q%", "%Y", "%B", "%A", "%M:%S"] {
            assert!(check_time_format(format).is_err(), "{format}");
        }
    }
}
