//! The time of a live system between its messages.

use std::time::{Duration, Instant};

use rondel_event::Timestamp;

/// What time it is where the events come from: that of the last event, and what has passed here since it
/// came. The two clocks need not agree, only run equally fast until the next event sets this one right.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    last: Option<(Timestamp, Instant)>,
}

impl Clock {
    /// Notes that an event of this time came at this instant. Time does not go back.
    pub fn set(&mut self, time: Timestamp, at: Instant) {
        let time = self.last.map_or(time, |(last, _)| time.max(last));
        self.last = Some((time, at));
    }

    /// The instant at which it will be this time, unless that is too far away to wait for.
    pub fn instant(&self, time: Timestamp) -> Option<Instant> {
        let (last, since) = self.last?;
        let left = time.as_nanos().saturating_sub(last.as_nanos());
        since.checked_add(Duration::from_nanos(u64::try_from(left).unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_from_the_last_event() {
        let seconds = |s: i64| Timestamp::from_nanos(s * 1_000_000_000);
        let start = Instant::now();
        let after = |s: u64| start + Duration::from_secs(s);
        let mut clock = Clock::default();
        assert_eq!(clock.instant(seconds(5)), None);
        clock.set(seconds(100), after(0));
        assert_eq!(clock.instant(seconds(105)), Some(after(5)));
        assert_eq!(clock.instant(seconds(90)), Some(after(0)), "what has passed is due at once");
        // A source whose clock is slow, and one that is behind the others.
        clock.set(seconds(101), after(4));
        assert_eq!(clock.instant(seconds(105)), Some(after(8)));
        clock.set(seconds(60), after(6));
        assert_eq!(clock.instant(seconds(105)), Some(after(10)));
        // Nothing overflows.
        clock.set(Timestamp::from_nanos(i64::MIN), after(6));
        assert!(clock.instant(Timestamp::from_nanos(i64::MAX)).is_some());
    }
}
