//! What the clock shows that messages wait by.

use std::time::{Duration, Instant};

use rondel_event::Timestamp;
use rondel_net::adapter::now;

use crate::deployment::{Alignment, AlignmentClock};

/// The clock of an alignment: that of this machine, or the latest time of a message and what has passed since it came.
///
/// The second needs no clock that is set right, only one that runs: it also serves recordings and simulated time. It
/// shows what the topic that is furthest ahead shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitClock {
    kind: AlignmentClock,
    latest: Option<(Timestamp, Instant)>,
}

impl WaitClock {
    pub(super) fn new(kind: AlignmentClock) -> WaitClock {
        WaitClock { kind, latest: None }
    }

    /// What it shows at this instant, which is no later than now.
    pub(super) fn at(&self, instant: Instant) -> Timestamp {
        match (self.kind, self.latest) {
            (AlignmentClock::System, _) => now(),
            (AlignmentClock::Messages, None) => Timestamp::from_nanos(i64::MIN),
            (AlignmentClock::Messages, Some((latest, since))) => {
                let passed = instant.saturating_duration_since(since).as_nanos();
                let passed = i64::try_from(passed).unwrap_or(i64::MAX);
                Timestamp::from_nanos(latest.as_nanos().saturating_add(passed))
            }
        }
    }

    /// A message with this time came. It does not turn the clock back.
    pub(super) fn see(&mut self, time: Timestamp, instant: Instant) {
        if self.kind == AlignmentClock::Messages && time > self.at(instant) {
            self.latest = Some((time, instant));
        }
    }

    /// When it will show this time, unless that is too far away to wait for.
    pub(super) fn instant(&self, time: Timestamp) -> Option<Instant> {
        let (shown, at) = match (self.kind, self.latest) {
            (AlignmentClock::System, _) => (now(), Instant::now()),
            (AlignmentClock::Messages, latest) => latest?,
        };
        let left = time.as_nanos().saturating_sub(shown.as_nanos());
        at.checked_add(Duration::from_nanos(u64::try_from(left).unwrap_or(0)))
    }
}

/// How far times may be from the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    ahead: Option<i64>,
    behind: Option<i64>,
}

impl Limits {
    pub(super) fn new(alignment: &Alignment) -> Limits {
        Limits { ahead: alignment.ahead, behind: alignment.behind }
    }

    /// Whether a time may set the clock: not if it is out of all reason.
    pub(super) fn allow(&self, time: Timestamp, shown: Timestamp) -> bool {
        let (time, shown) = (time.as_nanos(), shown.as_nanos());
        let within = |distance: i64, limit: Option<i64>| limit.is_none_or(|limit| distance <= limit);
        shown == i64::MIN
            || within(time.saturating_sub(shown), self.ahead)
                && within(shown.saturating_sub(time), self.behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_set_the_clock_forward_and_it_runs() {
        let seconds = |s: i64| Timestamp::from_nanos(s * 1_000_000_000);
        let start = Instant::now();
        let after = |s: u64| start + Duration::from_secs(s);
        let mut clock = WaitClock::new(AlignmentClock::Messages);
        assert_eq!(clock.instant(seconds(5)), None, "there is no time yet");
        clock.see(seconds(100), after(0));
        assert_eq!(clock.at(after(3)), seconds(103));
        // One that is late changes nothing; one that is ahead sets it.
        clock.see(seconds(102), after(3));
        assert_eq!((clock.at(after(3)), clock.instant(seconds(110))), (seconds(103), Some(after(10))));
        clock.see(seconds(106), after(4));
        assert_eq!((clock.at(after(5)), clock.instant(seconds(110))), (seconds(107), Some(after(8))));
        clock.see(Timestamp::from_nanos(i64::MAX), after(6));
        assert_eq!(clock.at(after(7)).as_nanos(), i64::MAX);
    }
}
