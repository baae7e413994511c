//! Dates and times of the calendar as text, by ISO 8601 and RFC 3339.
//!
//! Every text with a date is read by [`parse`]: times in messages, cells of tables, options of commands, permissions of
//! DDS Security. Each of them decides by the parts of a [`CalendarTime`] which forms it accepts. All arithmetic is on
//! integers.

use crate::Timestamp;

/// Number of days from 1 March of year 0 to 1 January 1970.
const BEFORE_1970: i64 = 719_468;
/// Number of days in 400 years.
const CYCLE: i64 = 146_097;
const S_PER_DAY: i64 = 86_400;
const NS_PER_S: i64 = 1_000_000_000;

/// A date, with or without a time of day and an offset from UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalendarTime {
    /// Year as written.
    pub year: i64,
    /// Seconds since 1970 in UTC, of the beginning of the day without a time of day.
    pub seconds: i64,
    /// Nanoseconds after these seconds, less than a second. Further digits are truncated.
    pub nanos: i64,
    /// Smallest unit that the text states.
    pub precision: Precision,
    /// Whether the text states an offset from UTC. Without one, the time counts as UTC.
    pub has_offset: bool,
}

/// Smallest unit that a text with a date states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    /// No time of day.
    Day,
    /// An hour.
    Hour,
    /// An hour and a minute.
    Minute,
    /// A time of day with seconds, or a fraction of them.
    Second,
}

impl CalendarTime {
    /// Returns the time; `None` if it is more than 292 years from 1970.
    pub fn timestamp(self) -> Option<Timestamp> {
        let nanos = i128::from(self.seconds) * i128::from(NS_PER_S) + i128::from(self.nanos);
        i64::try_from(nanos).ok().map(Timestamp::from_nanos)
    }
}

/// Parses a date with four digits of the year, such as `2026-11-22`, `2026-11-22T18:04:13.5+01:00` or
/// `20261122T180413Z`. A time zone in brackets after the offset is ignored. `None` for other texts.
///
/// ```
/// use rondel_event::calendar::{Precision, parse};
/// let time = parse(b"2026-11-22T19:04:13.5+01:00").unwrap();
/// assert_eq!(time.timestamp().unwrap().to_string(), "1795370653.5");
/// assert_eq!((time.year, time.precision, time.has_offset), (2026, Precision::Second, true));
/// ```
pub fn parse(text: &[u8]) -> Option<CalendarTime> {
    let mut rest = Rest { text };
    let year = rest.number(4)?;
    let is_extended = rest.one_of(b"-").is_some();
    let month = rest.number(2).filter(|month| (1..=12).contains(month))?;
    if is_extended {
        rest.one_of(b"-")?;
    }
    let day = rest.number(2).filter(|day| (1..=days_in(year, month)).contains(day))?;
    let midnight = days_before(year, month, day) * S_PER_DAY;
    if rest.text.is_empty() {
        let precision = Precision::Day;
        return Some(CalendarTime { year, seconds: midnight, nanos: 0, precision, has_offset: false });
    }
    rest.one_of(b"Tt ")?;
    let Clock { seconds, nanos, precision } = rest.clock(is_extended)?;
    let has_offset = !rest.text.is_empty();
    let seconds = midnight + seconds - rest.offset()?;
    Some(CalendarTime { year, seconds, nanos, precision, has_offset })
}

/// Parses a time of day without a date, such as `18:04` or `18:04:13.5`, in nanoseconds since midnight.
pub fn time_of_day(text: &[u8]) -> Option<i64> {
    let mut rest = Rest { text };
    let clock = rest.clock(true)?;
    let is_whole = rest.text.is_empty() && clock.precision > Precision::Hour;
    is_whole.then_some(clock.seconds * NS_PER_S + clock.nanos)
}

/// Returns year, month and day of the month of a day, counted from 1 January 1970.
pub fn date_of_day(day: i64) -> (i64, i64, i64) {
    let day = day + BEFORE_1970;
    let (cycle, of_cycle) = (day.div_euclid(CYCLE), day.rem_euclid(CYCLE));
    // Leap days before this one, subtracted: then all years have 365 days.
    let year = (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    // January and February belong to the year that began in March before.
    let year = year + cycle * 400;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

/// Returns the number of days from 1 January 1970 to this day.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    // Years counted from March, so that a leap day is the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // From March on, five months have 153 days.
    year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - BEFORE_1970
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// A time of day.
struct Clock {
    /// Seconds since midnight.
    seconds: i64,
    nanos: i64,
    precision: Precision,
}

/// The rest of a text.
struct Rest<'t> {
    text: &'t [u8],
}

impl Rest<'_> {
    /// Reads exactly `count` digits and returns their number.
    fn number(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.text.split_at_checked(count)?;
        self.text = rest;
        digits.iter().try_fold(0, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
        })
    }

    /// Skips one of these bytes if it is next.
    fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (first, rest) = self.text.split_first().filter(|(first, _)| bytes.contains(first))?;
        self.text = rest;
        Some(*first)
    }

    /// Reads a time of day: with colons if it is in the extended form, otherwise without.
    fn clock(&mut self, is_extended: bool) -> Option<Clock> {
        let hour = self.number(2).filter(|hour| *hour < 24)?;
        if !self.continues(is_extended) {
            return Some(Clock { seconds: hour * 3600, nanos: 0, precision: Precision::Hour });
        }
        let minute = self.number(2).filter(|minute| *minute < 60)?;
        let seconds = (hour * 60 + minute) * 60;
        if !self.continues(is_extended) {
            return Some(Clock { seconds, nanos: 0, precision: Precision::Minute });
        }
        let second = self.number(2).filter(|second| *second <= 60)?;
        let nanos = if self.one_of(b".,").is_some() { self.nanos()? } else { 0 };
        // A leap second counts as the last nanosecond of its minute.
        let (second, nanos) = if second == 60 { (59, NS_PER_S - 1) } else { (second, nanos) };
        Some(Clock { seconds: seconds + second, nanos, precision: Precision::Second })
    }

    /// Whether a further part of the time of day follows. Skips the colon before it.
    fn continues(&mut self, is_extended: bool) -> bool {
        if is_extended {
            self.one_of(b":").is_some()
        } else {
            self.text.first().is_some_and(u8::is_ascii_digit)
        }
    }

    /// Reads the digits of a fraction, at least one, and returns the nanoseconds.
    fn nanos(&mut self) -> Option<i64> {
        let count = self.text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (fraction, rest) = self.text.split_at(count);
        self.text = rest;
        let padded = fraction.iter().map(|digit| i64::from(digit - b'0')).chain(std::iter::repeat(0));
        (count > 0).then(|| padded.take(9).fold(0, |nanos, digit| nanos * 10 + digit))
    }

    /// Reads the rest, the offset from UTC, and returns it in seconds. An empty rest is UTC.
    fn offset(mut self) -> Option<i64> {
        // Java writes the name of the time zone after the offset, in brackets.
        if self.text.ends_with(b"]") {
            let name = self.text.iter().position(|byte| *byte == b'[').filter(|at| *at > 0)?;
            self.text = &self.text[..name];
        }
        self.one_of(b"Zz");
        // `mosquitto_sub` writes an offset after the Z.
        let offset_s = match self.one_of(b"+-") {
            Some(sign) => {
                let hours = self.number(2).filter(|hours| *hours < 24)?;
                let colon = self.one_of(b":").is_some();
                let minutes = if colon || !self.text.is_empty() { self.number(2)? } else { 0 };
                let offset_s = (hours * 60 + minutes) * 60;
                (minutes < 60).then_some(if sign == b'-' { -offset_s } else { offset_s })?
            }
            None => 0,
        };
        self.text.is_empty().then_some(offset_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos_of(text: &str) -> Option<i64> {
        parse(text.as_bytes())?.timestamp().map(Timestamp::as_nanos)
    }

    #[test]
    fn every_form_is_read_exactly() {
        use Precision::{Day, Hour, Minute, Second};
        for (text, expected, precision, has_offset) in [
            ("1970-01-01T00:00:00Z", 0, Second, true),
            ("1970-01-01 00:00:00", 0, Second, false),
            ("1969-12-31t23:59:59.999999999z", -1, Second, true),
            ("2026-11-22T18:04:13.123456789Z", 1_795_370_653_123_456_789, Second, true),
            ("2026-11-22T18:04:13.1234567899Z", 1_795_370_653_123_456_789, Second, true),
            ("2026-11-22T19:04:13,123456+01:00", 1_795_370_653_123_456_000, Second, true),
            ("2026-11-22T19:04:13.5+01:00[Europe/Berlin]", 1_795_370_653_500_000_000, Second, true),
            ("2026-11-22T23:34:13.123456Z+0530", 1_795_370_653_123_456_000, Second, true),
            ("2026-11-22 13:34:13.1-0430", 1_795_370_653_100_000_000, Second, true),
            ("2026-11-22 20:04:13+02", 1_795_370_653_000_000_000, Second, true),
            ("20261122T180413.5Z", 1_795_370_653_500_000_000, Second, true),
            ("20261122T1804", 1_795_370_640_000_000_000, Minute, false),
            ("2026-11-22T18:04Z", 1_795_370_640_000_000_000, Minute, true),
            ("2026-11-22 18", 1_795_370_400_000_000_000, Hour, false),
            ("2026-11-22", 1_795_305_600_000_000_000, Day, false),
            ("20261122", 1_795_305_600_000_000_000, Day, false),
            ("2016-12-31T23:59:60Z", 1_483_228_799_999_999_999, Second, true),
            ("2016-12-31T23:59:60.25Z", 1_483_228_799_999_999_999, Second, true),
            ("2000-02-29T00:00:00Z", 951_782_400_000_000_000, Second, true),
            ("1678-01-01T00:00:00+23:59", -9_214_646_340_000_000_000, Second, true),
            ("2262-04-11T23:47:16.854775807Z", i64::MAX, Second, true),
            ("1677-09-21T00:12:43.145224192Z", i64::MIN, Second, true),
        ] {
            assert_eq!(nanos_of(text), Some(expected), "{text}");
            let time = parse(text.as_bytes()).unwrap();
            assert_eq!((time.precision, time.has_offset), (precision, has_offset), "{text}");
        }
        for (text, year, seconds) in [
            ("9999-12-31T23:59:59Z", 9999, 253_402_300_799),
            ("0000-01-01T00:00:00Z", 0, -62_167_219_200),
            ("2262-04-11T23:47:17Z", 2262, 9_223_372_037),
        ] {
            let time = parse(text.as_bytes()).unwrap();
            assert_eq!((time.year, time.seconds, time.timestamp()), (year, seconds, None), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "2026",
            "2026-11",
            "2026-11-22T",
            "2026-11-22T1",
            "2026-11-22T18:",
            "2026-11-22T18:04:13.",
            "2026-11-22T18:04:13+1",
            "2026-11-22T18:04:13+01:",
            "2026-11-22T18:04:13+24:00",
            "2026-11-22T18:04:13+01:60",
            "2026-11-22T18:04:13Zulu",
            "2026-11-22T18:04:13[Europe/Berlin]",
            "2026-11-22T18:04:13Z]",
            "2026-11-22Z",
            "2026-11-22T24:00:00Z",
            "2026-11-22T18:60:00Z",
            "2026-11-22T18:00:61Z",
            "2026-00-22T18:00:00Z",
            "2026-13-22T18:00:00Z",
            "2026-04-31T18:00:00Z",
            "2026-04-00T18:00:00Z",
            "1900-02-29T18:00:00Z",
            "2026-11-2218:04:13Z",
            "2026-11-22T180413Z",
            "20261122T18:04:13Z",
            "2026-1122",
            "202611-22",
            "12026-11-22T18:04:13Z",
            "2026-1é-01T00:00:00Z",
            "22.11.2026",
            "11/22/2026",
            "18:04:13",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn days_agree_with_a_count_from_1600() {
        // 1 January 1600 is 135,140 days before 1970.
        let mut day = -135_140;
        for year in 1600..=2400 {
            let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
            let february = if is_leap { 29 } else { 28 };
            for (month, length) in (1..).zip([31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]) {
                for of_month in 1..=length {
                    let text = format!("{year:04}-{month:02}-{of_month:02}");
                    let found = parse(text.as_bytes()).map(|time| time.seconds);
                    assert_eq!(found, Some(day * 86_400), "{text}");
                    assert_eq!(date_of_day(day), (year, month, of_month));
                    day += 1;
                }
                for of_month in length + 1..=31 {
                    let text = format!("{year:04}-{month:02}-{of_month:02}");
                    assert_eq!(parse(text.as_bytes()), None, "{text}");
                }
            }
        }
        assert_eq!(date_of_day(0), (1970, 1, 1));
        assert_eq!(date_of_day(-719_528), (0, 1, 1));
    }

    #[test]
    fn times_of_day_and_offsets_add_up() {
        let mut checked = 0;
        for hour in 0..24_i64 {
            for minute in [0, 7, 30, 59_i64] {
                for second in [0, 9, 59_i64] {
                    for digits in 1..=10_usize {
                        let fraction = &"1234567899"[..digits];
                        let nanos = format!("{fraction:0<9}")[..9].parse::<i64>().unwrap();
                        let clock = format!("{hour:02}:{minute:02}:{second:02}.{fraction}");
                        let since_midnight = ((hour * 60 + minute) * 60 + second) * NS_PER_S + nanos;
                        assert_eq!(time_of_day(clock.as_bytes()), Some(since_midnight), "{clock}");
                        for offset in [-1439, -570, -1, 1, 60, 345, 1439_i64] {
                            let (sign, size) = (if offset < 0 { '-' } else { '+' }, offset.abs());
                            for colon in ["", ":"] {
                                let (hours, minutes) = (size / 60, size % 60);
                                let text = format!("1970-01-01T{clock}{sign}{hours:02}{colon}{minutes:02}");
                                let expected = since_midnight - offset * 60 * NS_PER_S;
                                assert_eq!(nanos_of(&text), Some(expected), "{text}");
                                checked += 1;
                            }
                        }
                    }
                }
            }
        }
        assert_eq!(checked, 24 * 4 * 3 * 10 * 7 * 2);
        for (text, expected) in [
            ("18:16", Some(65_760 * NS_PER_S)),
            ("18:16:04,5", Some(65_764_500_000_000)),
            ("18", None),
            ("18:", None),
            ("1816", None),
            ("18:16Z", None),
            ("24:00", None),
            ("8:16", None),
            ("2026-11-22 18:16", None),
        ] {
            assert_eq!(time_of_day(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn no_cut_or_replaced_byte_panics() {
        for text in ["2026-11-22T18:04:13.5+01:00[Europe/Berlin]", "20261122T180413Z"] {
            for at in 0..text.len() {
                let _ = parse(&text.as_bytes()[..at]);
                for byte in [0, b'-', b'[', b']', b'9', 0xff] {
                    let mut bytes = text.as_bytes().to_vec();
                    bytes[at] = byte;
                    let _ = (parse(&bytes), time_of_day(&bytes));
                }
            }
        }
    }
}
