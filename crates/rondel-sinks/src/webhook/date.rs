//! Dates in texts.

use rondel_event::calendar::date_of_day;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400;

/// Returns nanoseconds since the Unix epoch as a date and time of RFC 3339 in UTC, with nanoseconds.
pub(crate) fn utc(nanos: i64) -> String {
    let (seconds, fraction) = (nanos.div_euclid(SECOND), nanos.rem_euclid(SECOND));
    let (day, time) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let (year, month, day) = date_of_day(day);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:09}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written() {
        for (nanos, text) in [
            (0, "1970-01-01T00:00:00.000000000Z"),
            (-1, "1969-12-31T23:59:59.999999999Z"),
            (951_782_400 * SECOND, "2000-02-29T00:00:00.000000000Z"),
            (951_868_799 * SECOND + 5, "2000-02-29T23:59:59.000000005Z"),
            (4_107_542_400 * SECOND, "2100-03-01T00:00:00.000000000Z"),
            (1_795_939_212 * SECOND, "2026-11-29T08:00:12.000000000Z"),
            (i64::MAX, "2262-04-11T23:47:16.854775807Z"),
            (i64::MIN, "1677-09-21T00:12:43.145224192Z"),
        ] {
            assert_eq!(utc(nanos), text);
        }
    }
}
