//! Clocks: where a session reads the time, and the time between messages.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use rondel_event::Timestamp;

/// Unknown time.
pub(crate) const NO_TIME: Timestamp = Timestamp::from_nanos(i64::MIN);

/// A reading of [`Clock::ticks`], in nanoseconds.
pub type Ticks = i64;

/// Source of time of a session. Injected, so that tests and recordings set it.
pub trait Clock: Send + Sync {
    /// The time of day, in nanoseconds since the Unix epoch. It may step.
    fn now(&self) -> Timestamp;

    /// The time since a fixed point, in nanoseconds. It never goes back.
    fn ticks(&self) -> Ticks;

    /// Latest time known to have been reached, near which the times of messages are; `None` before there is one.
    fn latest(&self) -> Option<Timestamp> {
        Some(self.now())
    }

    /// Time of day on this machine, by which networks report when a connection was lost.
    fn time_of_day(&self) -> Timestamp {
        self.now()
    }
}

/// The clock of this machine. Its ticks count on while the machine sleeps.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// Clock that counts the ticks.
#[cfg(target_os = "linux")]
const TICKS: ClockId = ClockId::CLOCK_BOOTTIME;
#[cfg(not(target_os = "linux"))]
const TICKS: ClockId = ClockId::CLOCK_MONOTONIC;

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }

    #[inline]
    fn ticks(&self) -> Ticks {
        // The clock exists, so that reading it cannot fail.
        clock_gettime(TICKS).map_or(0, |since| since.num_nanoseconds())
    }
}

/// A clock that shows what it was last set to: for recordings, simulations and tests.
#[derive(Debug, Default)]
pub struct ManualClock {
    time: AtomicI64,
    /// Difference between time of day and ticks, in nanoseconds.
    ahead: AtomicI64,
}

impl ManualClock {
    /// Sets the clock. It does not go back.
    pub fn set(&self, time: Timestamp) {
        self.time.fetch_max(time.as_nanos(), Ordering::Relaxed);
    }

    /// Steps the time of day forward or, if negative, back, in nanoseconds; the ticks do not change.
    pub fn step(&self, by: i64) {
        self.ahead.fetch_add(by, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.ticks().saturating_add(self.ahead.load(Ordering::Relaxed)))
    }

    fn ticks(&self) -> Ticks {
        self.time.load(Ordering::Relaxed)
    }
}

/// Clock at the source of the messages: the time of the last message, and the ticks since. The two clocks need not
/// agree; they only have to run equally fast until the next message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SourceClock {
    last: Option<(Timestamp, Ticks)>,
}

impl SourceClock {
    /// Records that a message of this time was evaluated at these ticks. Time does not go back.
    pub(crate) fn set(&mut self, time: Timestamp, at: Ticks) {
        let time = self.last.map_or(time, |(last, _)| time.max(last));
        self.last = Some((time, at));
    }

    /// Stops the clock for a number of ticks.
    pub(crate) fn stand(&mut self, ticks: Ticks) {
        if let Some((_, at)) = &mut self.last {
            *at = at.saturating_add(ticks);
        }
    }

    /// Source time at these ticks, once there was a message.
    pub(crate) fn at(&self, ticks: Ticks) -> Option<Timestamp> {
        let (last, at) = self.last?;
        Some(Timestamp::from_nanos(last.as_nanos().saturating_add(ticks.saturating_sub(at).max(0))))
    }

    /// Ticks at which the source time reaches `time`, once there was a message.
    pub(crate) fn ticks(&self, time: Timestamp) -> Option<Ticks> {
        let (last, at) = self.last?;
        Some(ticks_at(time, last, at))
    }
}

/// The ticks at which a clock shows `time`, if it shows `shown` at `at`.
fn ticks_at(time: Timestamp, shown: Timestamp, at: Ticks) -> Ticks {
    at.saturating_add(time.as_nanos().saturating_sub(shown.as_nanos()).max(0))
}

/// The clock that an alignment waits by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlignmentClock {
    /// The latest message time, and the ticks since that message. It serves recordings and simulated
    /// time as well, and needs no synchronised clock.
    Messages,
    /// The time of day of this machine.
    System,
}

/// Running clock of an alignment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitClock {
    kind: AlignmentClock,
    /// Whether the clock follows message times whatever its kind.
    follows: bool,
    latest: Option<(Timestamp, Ticks)>,
    /// Time shown in the previous run, before which the clock does not go back.
    before: Timestamp,
    /// Time shown and end of the halt, while the clock stands still.
    standing: Option<(Timestamp, Ticks)>,
    /// Halt of a clock that follows messages.
    held: Option<Held>,
}

/// A clock of messages that stands still after a pause: the messages of one neighbour that waited are read before those
/// of the others, and must not move the time on by themselves.
#[derive(Clone, Copy, Debug)]
struct Held {
    shown: Timestamp,
    /// Latest message time meanwhile.
    seen: Timestamp,
    until: Ticks,
}

impl Held {
    /// Time shown after the halt, and ticks at which the clock runs again.
    fn then(&self) -> (Timestamp, Ticks) {
        (self.seen.max(self.shown), self.until)
    }
}

impl WaitClock {
    pub(crate) fn new(kind: AlignmentClock) -> WaitClock {
        WaitClock { kind, follows: false, latest: None, before: NO_TIME, standing: None, held: None }
    }

    /// A clock that continues from another run. A clock of messages shows no time until a message arrives:
    /// only a message shows how long the pause was.
    pub(crate) fn after(self, before: Option<i64>) -> WaitClock {
        WaitClock { before: before.map_or(NO_TIME, Timestamp::from_nanos), ..self }
    }

    /// Follows the times of messages from now on; returns whether it should show the time of day.
    pub(crate) fn follow_messages(&mut self) -> bool {
        self.follows = true;
        self.kind == AlignmentClock::System
    }

    /// Records that ticks are known from here on.
    pub(crate) fn start_ticks(&mut self, ticks: Ticks) {
        if let Some((_, since)) = &mut self.latest {
            *since = ticks;
        }
    }

    /// Stops the clock for a pause between these ticks and `more` of them, since waiting messages come first. `day` is the
    /// time of day at the beginning of the pause.
    pub(crate) fn stand(
        &mut self,
        clock: &dyn Clock,
        from: Ticks,
        until: Ticks,
        day: Timestamp,
        more: Ticks,
    ) {
        if self.shows_day() {
            self.standing = Some((day, until.saturating_add(more)));
        } else if let Some((latest, _)) = self.latest {
            let shown = self.at(clock, from);
            let seen = self.held.map_or(latest, |held| held.seen);
            self.held = Some(Held { shown, seen, until: until.saturating_add(more) });
        }
    }

    /// Resumes after a long enough halt. Returns whether the clock resumes now.
    #[inline]
    pub(crate) fn release(&mut self, ticks: Ticks) -> bool {
        let is_over = self.held.is_some_and(|held| ticks >= held.until);
        if is_over {
            self.latest = self.held.take().map(|held| held.then());
        }
        is_over
    }

    /// Whether it shows the time of day.
    pub(crate) fn shows_day(&self) -> bool {
        self.kind() == AlignmentClock::System
    }

    /// Whether the clock stands still at this time.
    pub(crate) fn stands_at(&self, time: Timestamp) -> bool {
        self.standing.is_some_and(|(shown, _)| shown == time)
    }

    fn kind(&self) -> AlignmentClock {
        if self.follows { AlignmentClock::Messages } else { self.kind }
    }

    /// The state from which another run continues.
    pub(crate) fn saved(&self, clock: &dyn Clock) -> Option<i64> {
        Some(self.at(clock, clock.ticks()).max(self.before))
            .filter(|shown| *shown != NO_TIME)
            .map(Timestamp::as_nanos)
    }

    /// `shown` if the clock showed something, otherwise the time that a message with this time sets it to.
    pub(crate) fn shown_or(&self, shown: Timestamp, time: Timestamp) -> Timestamp {
        if shown == NO_TIME { time.max(self.before) } else { shown }
    }

    /// The time that it shows at these ticks, which are not later than now.
    pub(crate) fn at(&self, clock: &dyn Clock, ticks: Ticks) -> Timestamp {
        match (self.kind(), self.latest) {
            (AlignmentClock::System, _) => match self.standing {
                Some((shown, until)) if ticks < until => shown,
                _ => clock.now(),
            },
            (AlignmentClock::Messages, None) => NO_TIME,
            (AlignmentClock::Messages, Some((latest, since))) => {
                let (latest, since) = match self.held {
                    Some(held) if ticks < held.until => return held.shown,
                    Some(held) => held.then(),
                    None => (latest, since),
                };
                Timestamp::from_nanos(latest.as_nanos().saturating_add(ticks.saturating_sub(since).max(0)))
            }
        }
    }

    /// Records a message of this time. Returns whether it set the clock, which is never set back.
    pub(crate) fn see(&mut self, time: Timestamp, clock: &dyn Clock, ticks: Ticks) -> bool {
        self.release(ticks);
        if let Some(held) = &mut self.held {
            held.seen = held.seen.max(time);
            return false;
        }
        let sets = self.kind() == AlignmentClock::Messages && time > self.at(clock, ticks);
        if sets {
            self.latest = Some((time.max(self.before), ticks));
        }
        sets
    }

    /// The ticks at which it shows this time, once it shows any.
    pub(crate) fn ticks(&self, time: Timestamp, clock: &dyn Clock) -> Option<Ticks> {
        let (shown, at) = match (self.kind(), self.latest) {
            (AlignmentClock::System, _) => (clock.now(), clock.ticks()),
            (AlignmentClock::Messages, latest) => match self.held {
                Some(held) if time > held.shown => held.then(),
                _ => latest?,
            },
        };
        let due = ticks_at(time, shown, at);
        Some(self.standing.filter(|(shown, _)| time > *shown).map_or(due, |(_, until)| due.max(until)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn seconds(s: i64) -> Timestamp {
        Timestamp::from_nanos(s * SECOND)
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn ticks_count_on_while_the_machine_sleeps() {
        // The kernel counts from the same origin, in hundredths of a second.
        let uptime = || {
            let text = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
            let seconds: f64 = text.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN);
            (seconds * 100.0).round() as i64
        };
        let (before, ticks, after) = (uptime(), SystemClock.ticks() / 10_000_000, uptime());
        assert!((before..=after).contains(&ticks), "{before} {ticks} {after}");
    }

    #[test]
    fn the_source_clock_runs_from_the_last_message() {
        let mut clock = SourceClock::default();
        assert_eq!(clock.ticks(seconds(5)), None);
        clock.set(seconds(100), 0);
        assert_eq!(clock.ticks(seconds(105)), Some(5 * SECOND));
        assert_eq!(clock.ticks(seconds(90)), Some(0), "a time that has passed is due at once");
        // A source whose clock is slow, and a message that is behind the others.
        clock.set(seconds(101), 4 * SECOND);
        assert_eq!(clock.ticks(seconds(105)), Some(8 * SECOND));
        clock.set(seconds(60), 6 * SECOND);
        assert_eq!(clock.ticks(seconds(105)), Some(10 * SECOND));
        // Nothing overflows.
        clock.set(Timestamp::from_nanos(i64::MIN), 6);
        assert!(clock.ticks(Timestamp::from_nanos(i64::MAX)).is_some());
    }

    #[test]
    fn messages_set_the_alignment_clock_forward_and_it_runs() {
        let system = ManualClock::default();
        let mut clock = WaitClock::new(AlignmentClock::Messages);
        assert_eq!(clock.ticks(seconds(5), &system), None, "there is no time yet");
        clock.see(seconds(100), &system, 0);
        assert_eq!(clock.at(&system, 3 * SECOND), seconds(103));
        // A late message changes nothing; one ahead of the clock sets it.
        clock.see(seconds(102), &system, 3 * SECOND);
        assert_eq!(clock.at(&system, 3 * SECOND), seconds(103));
        assert_eq!(clock.ticks(seconds(110), &system), Some(10 * SECOND));
        clock.see(seconds(106), &system, 4 * SECOND);
        assert_eq!(clock.at(&system, 5 * SECOND), seconds(107));
        assert_eq!(clock.ticks(seconds(110), &system), Some(8 * SECOND));
        clock.see(Timestamp::from_nanos(i64::MAX), &system, 6 * SECOND);
        assert_eq!(clock.at(&system, 7 * SECOND).as_nanos(), i64::MAX);
    }

    #[test]
    fn a_resumed_alignment_clock_waits_for_a_message_and_does_not_go_back() {
        let system = ManualClock::default();
        let mut clock = WaitClock::new(AlignmentClock::Messages);
        assert_eq!(clock.saved(&system), None);
        clock.see(seconds(100), &system, 0);
        system.set(seconds(3));
        let saved = clock.saved(&system);
        let again = || WaitClock::new(AlignmentClock::Messages).after(saved);
        assert_eq!((again().at(&system, 0), again().saved(&system)), (NO_TIME, saved));
        for (first, shown) in [(102, 103), (500, 500)] {
            let mut clock = again();
            assert_eq!(clock.shown_or(clock.at(&system, 0), seconds(first)), seconds(shown));
            clock.see(seconds(first), &system, 0);
            assert_eq!(clock.at(&system, 0), seconds(shown));
        }
    }
}
