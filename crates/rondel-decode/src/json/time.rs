//! Times and durations in JSON as written by various programs: numbers, seconds with nanoseconds, numbers with a unit,
//! and ISO 8601 dates. All arithmetic is on integers; digits below a nanosecond are truncated.

#[cfg(test)]
mod tests;

use rondel_event::calendar::{self, Precision};
use rondel_event::{ParseTimeError, TimeUnit, Timestamp};

use super::scan::{Kind, Scanner, unescape};

/// The forms of a time, for error messages.
const TIME: &str =
    "a time: a number, {sec, nanosec}, a number with unit, or an ISO 8601 date with a time of day";
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
pub(crate) fn text_time(text: &[u8], unit: TimeUnit, meaning: Meaning) -> Result<Timestamp, bool> {
    plain(text.trim_ascii(), unit, meaning).map_err(is_range)
}

fn plain(text: &[u8], unit: TimeUnit, meaning: Meaning) -> Result<Timestamp, &'static str> {
    // Only a date has a dash after four digits.
    match text {
        [b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'-', ..] if meaning == Meaning::Time => {
            date(text).ok_or(meaning.expected())?
        }
        _ => with_unit(text, unit).map_err(|error| meaning.message(error, text)),
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

/// Parses a number followed by its unit, with or without a space.
fn with_unit(text: &[u8], unit: TimeUnit) -> Result<Timestamp, ParseTimeError> {
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
    // As in JSON, digits follow a point.
    let mut after_points = number.split(|byte| *byte == b'.').skip(1);
    if after_points.any(|after| !after.first().is_some_and(u8::is_ascii_digit)) {
        return Err(ParseTimeError::NotANumber);
    }
    Timestamp::parse_scaled(number, factor, exponent)
}

/// Parses a date with a time of day, in UTC without an offset. `None` for other texts; an error outside of the years
/// covered by 64 bits of nanoseconds.
fn date(text: &[u8]) -> Option<Result<Timestamp, &'static str>> {
    let time = calendar::parse(text).filter(|time| time.precision == Precision::Second)?;
    let is_near = (1678..=2261).contains(&time.year);
    let too_far = if time.year < 1678 { EARLY } else { LATE };
    Some(time.timestamp().filter(|_| is_near).ok_or(too_far))
}
