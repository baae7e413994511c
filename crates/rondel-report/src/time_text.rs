//! Times for people: seconds where they are small, local date and time where they are of the calendar.

use jiff::tz::TimeZone;
use rondel_event::Timestamp;
use rondel_runtime::text::write_seconds;

/// From this time on, the year 2000, a time is one of the calendar.
const CALENDAR: i64 = 946_684_800_000_000_000;
const HOUR: i64 = 3_600_000_000_000;

/// Writes times. The text of an hour is kept, as most times are in the same one.
#[derive(Clone, Debug, Default)]
pub struct TimeText {
    /// The zone of this machine, once it is needed: finding it takes a millisecond.
    zone: Option<TimeZone>,
    /// The beginning of a quarter of an hour, the nanoseconds of its hour that have passed by then, and the
    /// text of the date and hour.
    hour: Option<(i64, i64, Vec<u8>)>,
}

impl TimeText {
    /// Appends a time: `7.5 s`, or `2026-11-22 18:04:13.5`.
    pub fn write(&mut self, time: Timestamp, out: &mut Vec<u8>) {
        if !is_calendar(time) {
            write_seconds(time, out);
            out.extend_from_slice(b" s");
            return;
        }
        let nanos = time.as_nanos();
        // Offsets from UTC are whole quarters of an hour nowadays, and change at such times only.
        let quarter = nanos - nanos.rem_euclid(HOUR / 4);
        if self.hour.as_ref().is_none_or(|(start, ..)| *start != quarter) {
            let text = jiff::Timestamp::from_nanosecond(i128::from(quarter)).map(|at| {
                let local = at.to_zoned(self.zone.get_or_insert_with(TimeZone::system).clone());
                let within = i64::from(local.minute()) * 60 + i64::from(local.second());
                (quarter, within * 1_000_000_000, local.strftime("%Y-%m-%d %H:").to_string().into_bytes())
            });
            self.hour = text.ok();
        }
        let Some((start, within, text)) = &self.hour else {
            write_seconds(time, out);
            out.extend_from_slice(b" s");
            return;
        };
        out.extend_from_slice(text);
        let rest = within + (nanos - start);
        let (minute, second) = (rest / 60_000_000_000, rest / 1_000_000_000 % 60);
        let two = |n: i64| [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        out.extend_from_slice(&two(minute));
        out.push(b':');
        out.extend_from_slice(&two(second));
        let fraction = Timestamp::from_nanos(rest % 1_000_000_000);
        if fraction != Timestamp::ZERO {
            let before = out.len();
            write_seconds(fraction, out);
            // Without the zero before the point.
            out.remove(before);
        }
    }

    /// Time in a recording with this beginning: a calendar time by its offset, `+20.1 s (2026-11-22 18:04:13.5)`.
    pub fn placed(&mut self, time: Timestamp, begin: Option<Timestamp>) -> String {
        match begin.filter(|_| is_calendar(time)) {
            Some(begin) => format!("{} ({})", offset(time, begin), self.text(time)),
            None => self.text(time),
        }
    }

    /// The time of day of a time of the calendar, `18:04:13.5`.
    pub fn time_of_day(&mut self, time: Timestamp) -> Option<String> {
        let text = self.text(time);
        text.split_once(' ').filter(|_| is_calendar(time)).map(|(_, of_day)| of_day.to_owned())
    }

    /// A time as text.
    pub fn text(&mut self, time: Timestamp) -> String {
        let mut out = Vec::new();
        self.write(time, &mut out);
        // It was written as text.
        String::from_utf8(out).unwrap_or_default()
    }
}

/// Whether a time is one of the calendar.
pub fn is_calendar(time: Timestamp) -> bool {
    time.as_nanos() >= CALENDAR
}

/// A time as offset from the beginning of a recording: `+20.1 s`.
pub fn offset(time: Timestamp, begin: Timestamp) -> String {
    let offset = Timestamp::from_nanos(time.as_nanos().saturating_sub(begin.as_nanos()));
    let sign = if offset < Timestamp::ZERO { "" } else { "+" };
    format!("{sign}{offset} s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_times_are_seconds_and_calendar_times_are_dates() {
        let mut times = TimeText { zone: Some(TimeZone::fixed(jiff::tz::offset(2))), hour: None };
        let mut text = |nanos: i64| times.text(Timestamp::from_nanos(nanos));
        assert_eq!(text(7_500_000_000), "7.5 s");
        assert_eq!(text(-1), "-0.000000001 s");
        // 1,795,360,408 s after the epoch, two hours east of Greenwich.
        assert_eq!(text(1_795_360_408_495_827_389), "2026-11-22 17:13:28.495827389");
        assert_eq!(text(1_795_360_408_500_000_000), "2026-11-22 17:13:28.5");
        assert_eq!(text(1_795_360_408_000_000_000), "2026-11-22 17:13:28");
        let [begin, at] = [1_795_360_400_000_000_000, 1_795_360_420_100_000_000].map(Timestamp::from_nanos);
        assert_eq!(times.placed(at, Some(begin)), "+20.1 s (2026-11-22 17:13:40.1)");
        assert_eq!(times.placed(begin, Some(at)), "-20.1 s (2026-11-22 17:13:20)");
        assert_eq!(times.placed(Timestamp::ZERO, Some(begin)), "0 s");
        assert_eq!(times.time_of_day(at).as_deref(), Some("17:13:40.1"));
        assert_eq!(times.time_of_day(Timestamp::ZERO), None);
    }

    #[test]
    fn every_zone_is_written_as_the_library_does() {
        for minutes in [0, 60, -210, 345, 765, -720] {
            let zone = TimeZone::fixed(
                jiff::tz::Offset::from_seconds(minutes * 60).unwrap_or(jiff::tz::Offset::UTC),
            );
            let mut times = TimeText { zone: Some(zone.clone()), hour: None };
            for i in 0..2_000_i64 {
                let at = CALENDAR + i * 977_777_777_777_777;
                let zoned =
                    jiff::Timestamp::from_nanosecond(i128::from(at)).map(|t| t.to_zoned(zone.clone()));
                let Ok(zoned) = zoned else { continue };
                let expected = zoned.strftime("%Y-%m-%d %H:%M:%S%.f").to_string();
                assert_eq!(times.text(Timestamp::from_nanos(at)), expected);
            }
        }
    }
}
