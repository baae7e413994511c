//! What the clock shows that messages wait by.

use std::time::{Duration, Instant};

use rondel_event::Timestamp;
use rondel_net::adapter::now;

use crate::deployment::{Alignment, AlignmentClock};

/// Stands for a time that there is none of.
pub(super) const NO_TIME: Timestamp = Timestamp::from_nanos(i64::MIN);

/// The clock of an alignment: that of this machine, or the latest time of a message and what has passed since it came.
///
/// The second needs no clock that is set right, only one that runs: it also serves recordings and simulated time. It
/// shows what the topic that is furthest ahead shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitClock {
    kind: AlignmentClock,
    latest: Option<(Timestamp, Instant)>,
    /// What it showed in the run before: it does not go back behind that.
    before: Timestamp,
}

impl WaitClock {
    pub(super) fn new(kind: AlignmentClock) -> WaitClock {
        WaitClock { kind, latest: None, before: NO_TIME }
    }

    /// One that goes on where another ended. That of messages shows nothing until one comes: how long nobody was
    /// there, only it can tell.
    pub(super) fn after(self, before: Option<i64>) -> WaitClock {
        WaitClock { before: before.map_or(NO_TIME, Timestamp::from_nanos), ..self }
    }

    /// What another run goes on from.
    pub(super) fn saved(&self, instant: Instant) -> Option<i64> {
        Some(self.at(instant).max(self.before)).filter(|shown| *shown != NO_TIME).map(Timestamp::as_nanos)
    }

    /// What it showed at an instant, if it did; otherwise what it is set to by a message with this time.
    pub(super) fn shown_or(&self, shown: Timestamp, time: Timestamp) -> Timestamp {
        if shown == NO_TIME { time.max(self.before) } else { shown }
    }

    /// What it shows at this instant, which is no later than now.
    pub(super) fn at(&self, instant: Instant) -> Timestamp {
        match (self.kind, self.latest) {
            (AlignmentClock::System, _) => now(),
            (AlignmentClock::Messages, None) => NO_TIME,
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
            self.latest = Some((time.max(self.before), instant));
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

    #[test]
    fn in_another_run_the_clock_waits_for_a_message_and_does_not_go_back() {
        let seconds = |s: i64| Timestamp::from_nanos(s * 1_000_000_000);
        let start = Instant::now();
        let mut clock = WaitClock::new(AlignmentClock::Messages);
        assert_eq!(clock.saved(start), None);
        clock.see(seconds(100), start);
        let saved = clock.saved(start + Duration::from_secs(3));
        let again = || WaitClock::new(AlignmentClock::Messages).after(saved);
        assert_eq!((again().at(start), again().saved(start)), (NO_TIME, saved));
        for (first, shown) in [(102, 103), (500, 500)] {
            let mut clock = again();
            assert_eq!(clock.shown_or(clock.at(start), seconds(first)), seconds(shown));
            clock.see(seconds(first), start);
            assert_eq!(clock.at(start), seconds(shown));
        }
    }
}
