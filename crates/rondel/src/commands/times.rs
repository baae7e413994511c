//! Durations and times in the options of commands.

use rondel_event::{Timestamp, calendar};

use crate::deployment::nanoseconds;

/// Reads a duration in nanoseconds, which is not negative, also in days.
pub(super) fn duration(text: &str) -> Option<i64> {
    let days = || nanoseconds(&format!("{} h", text.strip_suffix('d')?.trim_end()))?.checked_mul(24);
    nanoseconds(text).or_else(days).filter(|duration| *duration >= 0)
}

/// Returns why a text is no duration that [`duration`] reads: that it is too long; `None` for another reason.
pub(super) fn too_long(text: &str) -> Option<&'static str> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(end);
    let is_duration = ["ns", "us", "ms", "s", "min", "h", "d"].contains(&unit.trim());
    let is_too_long = is_duration && number.parse::<f64>().is_ok() && duration(text).is_none();
    is_too_long.then_some("this duration is too long: write at most 30000 d")
}

/// Reads a time in nanoseconds since 1970: a duration before `now` (`direction` -1) or from now on (1), seconds since 1970,
/// or a date and time.
pub(super) fn time(text: &str, now: i64, direction: i64) -> Option<i64> {
    if let Some(duration) = duration(text) {
        return Some(now.saturating_add(direction.saturating_mul(duration)));
    }
    let seconds = text.parse::<f64>().ok().filter(|seconds| seconds.is_finite() && seconds.abs() < 9e9);
    let seconds = seconds.map(|seconds| (seconds * 1e9).round() as i64);
    let date = || {
        let date = calendar::parse(text.as_bytes()).filter(|date| date.has_offset)?;
        date.timestamp().map(Timestamp::as_nanos)
    };
    seconds.or_else(date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_durations_seconds_or_dates() {
        let now = 5_000_000_000_000_000;
        assert_eq!(time("1.5", now, -1), Some(1_500_000_000));
        assert_eq!(time("1970-01-01T00:00:02Z", now, 1), Some(2_000_000_000));
        assert_eq!(time("2 h", now, -1), Some(now - 7_200_000_000_000));
        assert_eq!(time("2 h", now, 1), Some(now + 7_200_000_000_000));
        assert_eq!(time("30 d", now, -1), Some(now - 2_592_000_000_000_000));
        for wrong in ["", "d", "yesterday", "-1 s", "inf", "2026-11-22"] {
            assert_eq!(time(wrong, now, -1), None, "{wrong}");
        }
        assert_eq!(duration("2 d"), Some(172_800_000_000_000));
        assert_eq!((duration("2"), duration("-2 h")), (None, None));
        for text in ["200000 d", "9000000 h", "99999999999999999999 s"] {
            assert!(too_long(text).is_some(), "{text}");
        }
        for text in ["30000 d", "2 h", "200000", "", "d", ". h", "1 month", "-1 s"] {
            assert!(too_long(text).is_none(), "{text}");
        }
    }
}
