//! Times and durations in JSON as written by various programs: numbers, seconds with nanoseconds, numbers with a unit,
//! and ISO 8601 dates. All arithmetic is on integers; digits below a nanosecond are truncated.

use rondel_event::{ParseTimeError, TimeUnit, Timestamp};

use super::scan::{Kind, Scanner, unescape};

/// The forms of a time, for error messages.
const TIME: &str = "a time: a number, {sec, nanosec}, a number with unit, or an ISO 8601 date";
/// The forms of a duration, for error messages.
const DURATION: &str = "a duration: a number, {sec, nanosec}, or a number with unit";
/// Out-of-range errors of times: dates and numbers.
const LATE: &str = "the time lies beyond the year 2262";
const EARLY: &str = "the time lies before the year 1678";
const LATE_NUMBER: &str = "the time lies beyond the year 2262; is the unit of time right (s, ms, us, ns)?";
const EARLY_NUMBER: &str = "the time lies before the year 1678; is the unit of time right (s, ms, us, ns)?";
/// Out-of-range errors of durations.
const LONG: &str = "the duration is longer than 292 years; is the unit of time right (s, ms, us, ns)?";

const NS_PER_S: i64 = 1_000_000_000;

/// Meaning of a value: a point in time, or a duration, which cannot be a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Time,
    Duration,
}

/// Returns the time in a well-formed JSON value of this kind; a plain number counts in `unit`.
///
/// # Errors
/// The expected form, or that the time is out of range: see [`is_range`].
pub(crate) fn read(
    kind: Kind,
    text: &[u8],
    unit: TimeUnit,
    meaning: Meaning,
) -> Result<Timestamp, &'static str> {
    match kind {
        Kind::Number => Timestamp::parse(text, unit).map_err(|error| meaning.message(error, text)),
        Kind::Object => Parts::find(text).ok_or(meaning.expected())?.sum(meaning),
        Kind::String => string(&text[1..text.len() - 1], unit, meaning),
        _ => Err(meaning.expected()),
    }
}

/// Returns the time in a JSON string, given between its quotes.
///
/// # Errors
/// The expected form.
pub(crate) fn string(raw: &[u8], unit: TimeUnit, meaning: Meaning) -> Result<Timestamp, &'static str> {
    let unescaped;
    let text = if raw.contains(&b'\\') {
        unescaped = unescape(raw).ok_or(meaning.expected())?;
        unescaped.as_bytes()
    } else {
        raw
    };
    let text = text.trim_ascii();
    plain(text, unit, meaning)
}

/// Returns the time in a text without escapes. The error is `true` if it is a time, but out of range.
pub(crate) fn text(text: &[u8], unit: TimeUnit, meaning: Meaning) -> Result<Timestamp, bool> {
    plain(text.trim_ascii(), unit, meaning).map_err(is_range)
}

fn plain(text: &[u8], unit: TimeUnit, meaning: Meaning) -> Result<Timestamp, &'static str> {
    // Only a date has a dash after four digits.
    match text {
        [b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'-', ..] if meaning == Meaning::Time => {
            date(text).ok_or(meaning.expected())?.map(Timestamp::from_nanos)
        }
        _ => with_unit(text, unit).map(Timestamp::from_nanos).map_err(|error| meaning.message(error, text)),
    }
}

/// Whether an error of [`read`] means that a time is out of range.
pub(crate) fn is_range(error: &str) -> bool {
    [LATE, EARLY, LATE_NUMBER, EARLY_NUMBER, LONG].contains(&error)
}

impl Meaning {
    fn expected(self) -> &'static str {
        match self {
            Meaning::Time => TIME,
            Meaning::Duration => DURATION,
        }
    }

    fn message(self, error: ParseTimeError, number: &[u8]) -> &'static str {
        match error {
            ParseTimeError::NotANumber => self.expected(),
            ParseTimeError::OutOfRange if self == Meaning::Duration => LONG,
            ParseTimeError::OutOfRange if number.starts_with(b"-") => EARLY_NUMBER,
            ParseTimeError::OutOfRange => LATE_NUMBER,
        }
    }
}

/// The two numbers of an object `{sec, nanosec}`, each with its position in the object and its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'t> {
    pub(crate) seconds: (usize, &'t [u8]),
    pub(crate) nanos: (usize, &'t [u8]),
    /// Whether the nanoseconds have the sign of the seconds, as in a duration of Protobuf.
    pub(crate) is_signed: bool,
}

impl<'t> Parts<'t> {
    /// Finds them in an object without other members. The names are those of ROS 2 (`sec`, `nanosec`), ROS 1 (`secs`,
    /// `nsecs`), Foxglove (`sec`, `nsec`) or Protobuf (`seconds`, `nanos`).
    pub(crate) fn find(object: &'t [u8]) -> Option<Parts<'t>> {
        let (mut seconds, mut nanos, mut others) = (None, None, false);
        let members = Scanner::new(object).members(0, |scanner, key| {
            let start = scanner.at;
            scanner.skip(1)?;
            let known = |names: &[&'static str]| names.iter().copied().find(|name| key.is(name));
            let number = (start, &object[start..scanner.at]);
            // If a name is repeated, the last value counts; two different names for one part are an error.
            let mut put = |place: &mut Option<(&'static str, _)>, name| {
                others |= place.is_some_and(|(known, _)| known != name);
                *place = Some((name, number));
            };
            if let Some(name) = known(&["sec", "secs", "seconds"]) {
                put(&mut seconds, name);
            } else if let Some(name) = known(&["nanosec", "nsecs", "nsec", "nanos"]) {
                put(&mut nanos, name);
            } else {
                others = true;
            }
            Ok(())
        });
        let ((second, seconds), (nano, nanos)) = (seconds?, nanos?);
        let alike =
            matches!((second, nano), ("sec", "nanosec" | "nsec") | ("secs", "nsecs") | ("seconds", "nanos"));
        let is_signed = second == "seconds";
        (members.is_ok() && alike && !others).then_some(Parts { seconds, nanos, is_signed })
    }

    /// Returns the sum of both, in nanoseconds.
    fn sum(self, meaning: Meaning) -> Result<Timestamp, &'static str> {
        let has_sign = self.is_signed && meaning == Meaning::Duration;
        let range = match whole(self.seconds.1).map_or(0, i64::signum) {
            -1 if has_sign => 1 - NS_PER_S..1,
            0 if has_sign => 1 - NS_PER_S..NS_PER_S,
            _ => 0..NS_PER_S,
        };
        let nanos = whole(self.nanos.1).filter(|nanos| range.contains(nanos));
        let too_far = || meaning.message(ParseTimeError::OutOfRange, self.seconds.1);
        let (seconds, nanos) = match (whole(self.seconds.1), nanos) {
            (Some(seconds), Some(nanos)) => (seconds, nanos),
            (None, Some(_)) if self.seconds.1.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'-')) => {
                return Err(too_far());
            }
            _ => return Err(meaning.expected()),
        };
        // Their sum may be in range although the seconds alone are not.
        let sum = i128::from(seconds) * i128::from(NS_PER_S) + i128::from(nanos);
        i64::try_from(sum).map(Timestamp::from_nanos).map_err(|_| too_far())
    }

    /// Returns the parts in the order of the object, each with its text.
    pub(crate) fn in_order(self) -> [(Part, &'t [u8]); 2] {
        if self.seconds.0 < self.nanos.0 {
            [(Part::Seconds { first: true }, self.seconds.1), (Part::Nanos { first: false }, self.nanos.1)]
        } else {
            [(Part::Nanos { first: true }, self.nanos.1), (Part::Seconds { first: false }, self.seconds.1)]
        }
    }
}

/// Returns a number accepted by a scanner, if it has no point and exponent.
pub(crate) fn whole(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// One of the numbers of an object `{sec, nanosec}`, and whether it is the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Seconds { first: bool },
    Nanos { first: bool },
}

impl Part {
    /// Adds the part to the previous one, if there is one; `None` on overflow.
    #[inline(always)]
    pub(crate) fn add(self, number: i64, before: i64) -> Option<i64> {
        let (ns, first) = match self {
            Part::Seconds { first } => (number.checked_mul(NS_PER_S)?, first),
            Part::Nanos { first } if (0..NS_PER_S).contains(&number) => (number, first),
            Part::Nanos { .. } => return None,
        };
        if first { Some(ns) } else { before.checked_add(ns) }
    }
}

/// Parses a number followed by its unit, with or without a space; in nanoseconds.
fn with_unit(text: &[u8], unit: TimeUnit) -> Result<i64, ParseTimeError> {
    let end = text.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E'));
    let (number, name) = text.split_at(end.unwrap_or(text.len()));
    // Length of the unit: a factor and a power of ten.
    let (factor, exponent) = match name.trim_ascii_start() {
        b"" => (1, i32::from(unit.nanos_exponent())),
        b"ns" => (1, 0),
        b"us" | b"\xc2\xb5s" | b"\xce\xbcs" => (1, 3),
        b"ms" => (1, 6),
        b"s" => (1, 9),
        b"min" => (6, 10),
        b"h" => (36, 11),
        _ => return Err(ParseTimeError::NotANumber),
    };
    scaled(number, factor, exponent)
}

/// Returns a number times a small factor and a power of ten.
fn scaled(number: &[u8], factor: i128, exponent: i32) -> Result<i64, ParseTimeError> {
    let text = std::str::from_utf8(number).map_err(|_| ParseTimeError::NotANumber)?;
    let (mantissa, power) = match text.split_once(['e', 'E']) {
        Some((mantissa, power)) => {
            let digits = power.strip_prefix(['+', '-']).unwrap_or(power);
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(ParseTimeError::NotANumber);
            }
            // Beyond its range, the exponent may count as infinite.
            let limit = if power.starts_with('-') { i32::MIN } else { i32::MAX };
            (mantissa, power.parse().unwrap_or(limit))
        }
        None => (text, 0),
    };
    let (sign, digits) = mantissa.strip_prefix('-').map_or((1, mantissa), |digits| (-1, digits));
    let (before, after) = digits.split_once('.').unwrap_or((digits, "0"));
    if before.is_empty()
        || after.is_empty()
        || !before.bytes().chain(after.bytes()).all(|b| b.is_ascii_digit())
    {
        return Err(ParseTimeError::NotANumber);
    }
    let (mut value, mut scale) = (0_i128, exponent.saturating_add(power));
    let places = std::iter::repeat_n(0, before.len()).chain(std::iter::repeat(1));
    for (digit, place) in before.bytes().chain(after.bytes()).zip(places) {
        // With that many digits the value is beyond the range or below a nanosecond, whatever follows: truncated digits
        // only matter if an exponent brings them back.
        if value < i128::from(i64::MAX) * i128::from(NS_PER_S) * 1_000 {
            value = value * 10 + i128::from(digit - b'0');
            scale = scale.saturating_sub(place);
        } else {
            scale = scale.saturating_add(1 - place);
        }
    }
    value *= factor;
    while scale < 0 && value != 0 {
        value /= 10;
        scale += 1;
    }
    while scale > 0 && value != 0 {
        value = value.checked_mul(10).ok_or(ParseTimeError::OutOfRange)?;
        scale -= 1;
    }
    i64::try_from(sign * value).map_err(|_| ParseTimeError::OutOfRange)
}

/// Parses a date and time by ISO 8601 (RFC 3339), in nanoseconds since 1970. `None` for other texts; an error outside
/// of the years covered by 64 bits of nanoseconds.
fn date(text: &[u8]) -> Option<Result<i64, &'static str>> {
    let mut digits = Digits { text };
    let year = digits.number(4)?;
    digits.one_of(b"-")?;
    let month = digits.number(2).filter(|month| (1..=12).contains(month))?;
    digits.one_of(b"-")?;
    let day = digits.number(2).filter(|day| (1..=days_in(year, month)).contains(day))?;
    digits.one_of(b"Tt ")?;
    let hour = digits.number(2).filter(|hour| *hour < 24)?;
    digits.one_of(b":")?;
    let minute = digits.number(2).filter(|minute| *minute < 60)?;
    digits.one_of(b":")?;
    let second = digits.number(2).filter(|second| *second <= 60)?;
    let nanos = if digits.one_of(b".,").is_some() { digits.nanos()? } else { 0 };
    let offset_s = digits.offset()?;
    if !(1678..=2261).contains(&year) {
        return Some(Err(if year < 1678 { EARLY } else { LATE }));
    }
    // A leap second counts as the last nanosecond of its minute.
    let (second, nanos) = if second == 60 { (59, NS_PER_S - 1) } else { (second, nanos) };
    let seconds = ((days_before(year, month, day) * 24 + hour) * 60 + minute) * 60 + second - offset_s;
    Some(Ok(seconds * NS_PER_S + nanos))
}

/// Returns the number of days from 1 January 1970 to this day.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    // Years counted from March, so that a leap day is the last of its year; 400 of them have 146,097 days.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // From March on, five months have 153 days.
    const BEFORE_1970: i64 = 719_468;
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

/// The rest of a date.
struct Digits<'t> {
    text: &'t [u8],
}

impl Digits<'_> {
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
    use proptest::prelude::*;

    fn parse(json: &str, meaning: Meaning) -> Result<i64, &'static str> {
        let kind = Scanner::new(json.as_bytes()).kind().unwrap();
        read(kind, json.as_bytes(), TimeUnit::Milliseconds, meaning).map(Timestamp::as_nanos)
    }

    fn time(json: &str) -> Result<i64, &'static str> {
        parse(json, Meaning::Time)
    }

    #[test]
    fn every_form_of_a_time_is_read_exactly() {
        for (json, ns) in [
            ("12.5", 12_500_000),
            (r#""12.5""#, 12_500_000),
            (r#"" 12.5 ""#, 12_500_000),
            (r#""12.5 s""#, 12_500_000_000),
            (r#""125ms""#, 125_000_000),
            (r#""-7 us""#, -7_000),
            ("\"7 \u{b5}s\"", 7_000),
            ("\"7 \u{3bc}s\"", 7_000),
            (r#""7 \u00b5s""#, 7_000),
            (r#""9 ns""#, 9),
            (r#""1e3 ns""#, 1_000),
            (r#""1.5 min""#, 90_000_000_000),
            (r#""0.0000000001 min""#, 6),
            (r#""2 h""#, 7_200_000_000_000),
            (r#""9223372036.854775807 s""#, i64::MAX),
            (r#""-9223372036.854775808 s""#, i64::MIN),
            (r#""-9223372036.8547758080000000000000000000000000000 s""#, i64::MIN),
            (r#""0.00000000000000000000000000000000000000000000001e56 ns""#, 1_000_000_000),
            (r#""0e99999999999 s""#, 0),
            (r#""1e-99999999999 s""#, 0),
            (r#"{"sec": 12, "nanosec": 500000000}"#, 12_500_000_000),
            (r#"{ "nanosec" : 1, "sec" : -1 }"#, -999_999_999),
            (r#"{"secs":12,"nsecs":5}"#, 12_000_000_005),
            (r#"{"secs":"x","secs":12,"nsecs":5}"#, 12_000_000_005),
            (r#"{"sec":12,"nsec":5}"#, 12_000_000_005),
            (r#"{"seconds":12,"nanos":5}"#, 12_000_000_005),
            (r#"{"s\u0065c":12,"nanosec":5}"#, 12_000_000_005),
            (r#"{"sec":9223372036,"nanosec":854775807}"#, i64::MAX),
            (r#"{"sec":-9223372037,"nanosec":145224192}"#, i64::MIN),
            (r#""1970-01-01T00:00:00Z""#, 0),
            (r#""1970-01-01 00:00:00""#, 0),
            (r#""1969-12-31t23:59:59.999999999z""#, -1),
            (r#""2026-11-22T18:04:13.123456789Z""#, 1_795_370_653_123_456_789),
            (r#""2026-11-22T18:04:13.1234567899Z""#, 1_795_370_653_123_456_789),
            (r#""2026-11-22T19:04:13,123456+01:00""#, 1_795_370_653_123_456_000),
            (r#""2026-11-22T23:34:13.123456Z+0530""#, 1_795_370_653_123_456_000),
            (r#""2026-11-22 13:34:13.1-0430""#, 1_795_370_653_100_000_000),
            (r#""2026-11-22 20:04:13+02""#, 1_795_370_653_000_000_000),
            (r#""2016-12-31T23:59:60Z""#, 1_483_228_799_999_999_999),
            (r#""2016-12-31T23:59:60.25Z""#, 1_483_228_799_999_999_999),
            (r#""2000-02-29T00:00:00Z""#, 951_782_400_000_000_000),
            (r#""1678-01-01T00:00:00+23:59""#, -9_214_646_340_000_000_000),
        ] {
            assert_eq!(time(json), Ok(ns), "{json}");
        }
    }

    #[test]
    fn other_values_are_refused() {
        for json in [
            "true",
            "null",
            "[1]",
            "{}",
            r#"{"sec":1}"#,
            r#"{"nanosec":1}"#,
            r#"{"sec":1,"nanosec":2,"frame":3}"#,
            r#"{"sec":1,"nsecs":2}"#,
            r#"{"secs":1,"sec":1,"nanosec":2}"#,
            r#"{"sec":1,"nsec":2,"nanosec":2}"#,
            r#"{"secs":1,"nanosec":2}"#,
            r#"{"sec":1.0,"nanosec":2}"#,
            r#"{"sec":1e3,"nanosec":2}"#,
            r#"{"sec":"1","nanosec":2}"#,
            r#"{"sec":1,"nanosec":null}"#,
            r#"{"sec":1,"nanosec":-1}"#,
            r#"{"sec":1,"nanosec":1000000000}"#,
            r#""""#,
            r#"" ""#,
            r#""s""#,
            r#""5 parsecs""#,
            r#""5 s s""#,
            r#""5 S""#,
            r#""+5 s""#,
            r#""1.2.3 s""#,
            r#""1. s""#,
            r#"".5 s""#,
            r#""1e s""#,
            r#""1e+-3 s""#,
            r#""--1 s""#,
            r#""1-2 s""#,
            r#""NaN""#,
            r#""2026-11-22""#,
            r#""2026-11-22T""#,
            r#""2026-11-22T18:04Z""#,
            r#""2026-11-22T18:04:13.Z""#,
            r#""2026-11-22T18:04:13+1""#,
            r#""2026-11-22T18:04:13+01:""#,
            r#""2026-11-22T18:04:13+24:00""#,
            r#""2026-11-22T18:04:13+01:60""#,
            r#""2026-11-22T18:04:13Zulu""#,
            r#""2026-11-22T24:00:00Z""#,
            r#""2026-11-22T18:60:00Z""#,
            r#""2026-11-22T18:00:61Z""#,
            r#""2026-00-22T18:00:00Z""#,
            r#""2026-13-22T18:00:00Z""#,
            r#""2026-04-31T18:00:00Z""#,
            r#""2026-04-00T18:00:00Z""#,
            r#""1900-02-29T18:00:00Z""#,
            r#""2026-11-2218:04:13Z""#,
            r#""12026-11-22T18:04:13Z""#,
        ] {
            assert_eq!(time(json), Err(TIME), "{json}");
        }
        for json in ["1e30", r#""9223372036.854775809 s""#, r#""1e99999999999 ns""#, r#""99999999999999 h""#]
        {
            assert_eq!(time(json), Err(LATE_NUMBER), "{json}");
            let negative =
                if json.starts_with('"') { json.replacen('"', "\"-", 1) } else { format!("-{json}") };
            assert_eq!(time(&negative), Err(EARLY_NUMBER), "{negative}");
        }
        for seconds in ["9223372037", "99999999999999999999"] {
            assert_eq!(time(&format!("{{\"sec\":{seconds},\"nanosec\":0}}")), Err(LATE_NUMBER));
            assert_eq!(time(&format!("{{\"sec\":-{seconds},\"nanosec\":0}}")), Err(EARLY_NUMBER));
        }
        assert_eq!(time(r#""2262-01-01T00:00:00Z""#), Err(LATE));
        for json in [r#""1677-12-31T23:59:59Z""#, r#""0000-01-01T00:00:00Z""#] {
            assert_eq!(time(json), Err(EARLY), "{json}");
        }
    }

    #[test]
    fn a_duration_is_no_date() {
        for (json, ns) in
            [("2", 2_000_000), (r#""2 s""#, 2_000_000_000), (r#"{"sec":2,"nanosec":1}"#, 2_000_000_001)]
        {
            assert_eq!(parse(json, Meaning::Duration), Ok(ns), "{json}");
        }
        assert_eq!(parse(r#""2026-11-22T18:04:13Z""#, Meaning::Duration), Err(DURATION));
        // Both parts of Protobuf have the same sign.
        let signed = r#"{"seconds":-1,"nanos":-5}"#;
        assert_eq!(parse(signed, Meaning::Duration), Ok(-1_000_000_005));
        assert_eq!(parse(r#"{"seconds":0,"nanos":-5}"#, Meaning::Duration), Ok(-5));
        assert_eq!(parse(r#"{"seconds":-1,"nanos":5}"#, Meaning::Duration), Err(DURATION));
        assert_eq!(parse(signed, Meaning::Time), Err(TIME));
    }

    /// Counts the days to a date one by one, from 1970 forwards or backwards.
    fn counted_days(year: i64, month: usize, day: i64) -> i64 {
        let is_leap = |y: i64| (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
        let length = |y| if is_leap(y) { 366 } else { 365 };
        let years: i64 = (1970..year).map(length).sum::<i64>() - (year..1970).map(length).sum::<i64>();
        let february = if is_leap(year) { 29 } else { 28 };
        let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        years + months[..month - 1].iter().sum::<i64>() + day.min(months[month - 1]) - 1
    }

    proptest! {
        #[test]
        fn dates_agree_with_a_count_of_days(
            year in 1678i64..=2261, month in 1usize..=12, day in 1i64..=28,
            (hour, minute, second) in (0i64..24, 0i64..60, 0i64..60),
            nanos in 0i64..1_000_000_000, digits in 1usize..=9,
            offset in prop_oneof![Just(0), -1439i64..=1439], colon in any::<bool>(), t in any::<bool>(),
        ) {
            let fraction = &format!("{nanos:09}")[..digits];
            let kept = nanos - nanos % 10_i64.pow(9 - digits as u32);
            let (sign, size) = (if offset < 0 { '-' } else { '+' }, offset.abs());
            let json = format!(
                "\"{year:04}-{month:02}-{day:02}{}{hour:02}:{minute:02}:{second:02}.{fraction}{sign}{:02}{}{:02}\"",
                if t { 'T' } else { ' ' }, size / 60, if colon { ":" } else { "" }, size % 60,
            );
            let days = i128::from(counted_days(year, month, day));
            let seconds = days * 86_400 + i128::from(hour * 3600 + (minute - offset) * 60 + second);
            let expected = seconds * 1_000_000_000 + i128::from(kept);
            prop_assert_eq!(time(&json).map(i128::from), Ok(expected), "{}", json);
        }

        #[test]
        fn every_day_of_a_month_counts(year in 1678i64..=2261, month in 1usize..=12, day in 29i64..=31) {
            let json = format!("\"{year:04}-{month:02}-{day:02}T00:00:00Z\"");
            let known = counted_days(year, month, day) == counted_days(year, month, 28) + day - 28;
            let expected = counted_days(year, month, day) * 86_400_000_000_000;
            prop_assert_eq!(time(&json), if known { Ok(expected) } else { Err(TIME) }, "{}", json);
        }

        #[test]
        fn seconds_and_nanoseconds_add_up(sec in any::<i32>(), nanosec in 0i64..1_000_000_000, ros1 in any::<bool>(), swapped in any::<bool>()) {
            let (a, b) = if ros1 { ("secs", "nsecs") } else { ("sec", "nanosec") };
            let (a, b) = (format!("\"{a}\":{sec}"), format!("\"{b}\":{nanosec}"));
            let json = if swapped { format!("{{{b},{a}}}") } else { format!("{{{a},{b}}}") };
            prop_assert_eq!(time(&json), Ok(i64::from(sec) * 1_000_000_000 + nanosec));
        }

        #[test]
        fn numbers_in_strings_agree_with_plain_ones(
            number in r"-?(0|[1-9][0-9]{0,11})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?",
            (name, unit) in prop::sample::select(vec![
                ("ns", TimeUnit::Nanoseconds), ("us", TimeUnit::Microseconds),
                ("ms", TimeUnit::Milliseconds), ("s", TimeUnit::Seconds), ("", TimeUnit::Milliseconds),
            ]),
            space in " {0,2}",
        ) {
            let plain = Timestamp::parse(number.as_bytes(), unit).map(Timestamp::as_nanos);
            let json = format!("\"{number}{space}{name}\"");
            let far = if number.starts_with('-') { EARLY_NUMBER } else { LATE_NUMBER };
            prop_assert_eq!(time(&json), plain.map_err(|_| far), "{}", json);
        }

        #[test]
        fn minutes_and_hours_are_multiples_of_nanoseconds(whole in -2_000_000i64..2_000_000, thousandths in 0i64..1000) {
            let sign = if whole < 0 { -1 } else { 1 };
            let number = format!("{whole}.{thousandths:03}");
            for (unit, ns) in [("min", 60_000_000_000), ("h", 3_600_000_000_000_i64)] {
                let expected = whole * ns + sign * thousandths * (ns / 1000);
                prop_assert_eq!(time(&format!("\"{number} {unit}\"")), Ok(expected));
            }
        }

        #[test]
        fn no_string_panics(text in r#"[0-9TZ:.+\- smhn]{0,30}"#) {
            let _ = time(&format!("\"{text}\""));
        }
    }
}
