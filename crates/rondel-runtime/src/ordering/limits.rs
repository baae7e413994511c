//! Limits on the distance of message times from the clock.

use rondel_align::Refusal;
use rondel_event::Timestamp;

use super::alignment::Alignment;
use crate::time::clock::{AlignmentClock, NO_TIME};

/// Number of consecutive messages beyond the limit that show that the messages have another time now, as after the
/// first synchronisation of a clock.
const IN_A_ROW: u32 = 10;

/// Why a message was refused because of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) side: Refusal,
    /// The distance of its time from the clock, in nanoseconds.
    pub(crate) distance: u64,
}

/// The clocks when a message arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    /// The clock that messages wait by; without one, the latest time of a message and the time since then.
    pub(crate) shown: Timestamp,
    /// The time of day: live, and in recordings with times of arrival.
    pub(crate) day: Option<Timestamp>,
    /// The number of messages that were accepted so far.
    pub(crate) accepted: u64,
}

/// Decides which messages are refused because of their times, on every route.
///
/// The clock is the time of day while the times of messages are near it. Otherwise, as in a simulation or a
/// replay, it is the latest time of a message and the time since then; the time of day still limits how far
/// ahead a time may be, so that no message sets the clock to a time that never comes.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    ahead: Option<i64>,
    behind: Option<i64>,
    /// Whether messages wait by the clock of the machine, which alone counts then.
    by_system: bool,
    is_live: bool,
    is_active: bool,
    /// The times that are accepted without reading a clock: the earliest, and how much later the latest is.
    band: (i64, u64),
    /// The time of the last message that was accepted by that.
    last: Timestamp,
    /// The latest time of a message, and the time of day when it was recorded.
    latest: Timestamp,
    latest_at: Option<Timestamp>,
    /// The time that the clock showed in the previous run.
    before: Timestamp,
    /// Number of consecutive messages beyond the limit, and number of messages accepted before them.
    row: (u32, u64),
}

/// Band that contains no message time: the least time stands for none.
const NOTHING: (i64, u64) = (i64::MIN, 0);

impl Limits {
    /// The limits of an alignment, live or in a recording.
    pub(crate) fn new(alignment: &Alignment, is_live: bool) -> Limits {
        let Alignment { ahead, behind, clock, .. } = *alignment;
        Limits {
            ahead,
            behind,
            by_system: clock == AlignmentClock::System,
            is_live,
            is_active: ahead.or(behind).is_some(),
            band: NOTHING,
            last: NO_TIME,
            latest: NO_TIME,
            latest_at: None,
            before: NO_TIME,
            row: (0, 0),
        }
        .renewed()
    }

    /// No limits unless `active`.
    pub(crate) fn only_if(self, active: bool) -> Limits {
        Limits { is_active: self.is_active && active, ..self }.renewed()
    }

    /// Limits that continue from another run, in which the clock showed this time at last.
    pub(crate) fn after(self, before: Option<i64>) -> Limits {
        Limits { before: before.map_or(NO_TIME, Timestamp::from_nanos), ..self }
    }

    /// Whether any limit is active.
    pub(crate) fn are_active(&self) -> bool {
        self.is_active
    }

    /// Whether a message with a time was accepted.
    pub(crate) fn have_time(&self) -> bool {
        self.latest.max(self.last) != NO_TIME
    }

    fn renewed(mut self) -> Limits {
        self.renew();
        self
    }

    /// Reads the clock again at the next message.
    #[inline]
    pub(crate) fn renew(&mut self) {
        self.band = if self.is_active { NOTHING } else { (i64::MIN, u64::MAX) };
    }

    /// Whether a message of this time is accepted for certain: one comparison, without a clock. If not,
    /// [`Limits::check`] decides.
    #[inline(always)]
    pub(crate) fn admit(&mut self, time: Timestamp) -> bool {
        let is_admitted = time.as_nanos().wrapping_sub(self.band.0) as u64 <= self.band.1;
        if is_admitted {
            self.last = time;
        }
        is_admitted
    }

    /// The clock of the messages at this time of day: their latest time and the time since then.
    pub(crate) fn shown_at(&self, day: Timestamp) -> Timestamp {
        if self.by_system {
            return day;
        }
        let since = self.latest_at.map_or(0, |at| day.as_nanos().saturating_sub(at.as_nanos()).max(0));
        let latest = self.latest.max(self.last);
        if latest == NO_TIME {
            NO_TIME
        } else {
            Timestamp::from_nanos(latest.as_nanos().saturating_add(since))
        }
    }

    /// Checks the time of a message. Returns the refusal, if any.
    #[cold]
    pub(crate) fn check(&mut self, time: Timestamp, clocks: Clocks) -> Option<Refused> {
        if !self.is_active {
            return None;
        }
        self.latest = self.latest.max(self.last);
        let (early, late) = self.around(clocks);
        let distance = |from: Timestamp, to: Timestamp| to.as_nanos().abs_diff(from.as_nanos());
        if let Some(early) = early.filter(|early| time.as_nanos() < self.lowest(*early)) {
            return Some(Refused { side: Refusal::Behind, distance: distance(early, time) });
        }
        if let Some(late) = late.filter(|late| time.as_nanos() > self.highest(*late))
            && !self.was_stray(time, clocks)
            && !self.has_jumped(time, clocks)
        {
            return Some(Refused { side: Refusal::Ahead, distance: distance(late, time) });
        }
        self.row.0 = 0;
        self.latest = self.latest.max(time);
        self.latest_at = clocks.day;
        if self.is_live {
            let (early, late) = self.around(Clocks { shown: clocks.shown.max(time), ..clocks });
            let low = early.map_or(i64::MIN, |early| self.lowest(early));
            let high = late.map_or(i64::MAX, |late| self.highest(late));
            self.band = if low <= high { (low, high.wrapping_sub(low) as u64) } else { NOTHING };
        }
        None
    }

    /// Whether the only message before this one was far from the time of day, and this one is near it: a single message
    /// does not decide that the messages have a time of their own.
    fn was_stray(&self, time: Timestamp, clocks: Clocks) -> bool {
        let is_near = |day: Timestamp| (self.lowest(day)..=self.highest(day)).contains(&time.as_nanos());
        !self.by_system && clocks.accepted <= 1 && clocks.day.is_some_and(is_near)
    }

    /// Whether the messages have another time now: enough consecutive messages are ahead of their clock, although not
    /// ahead of the time of day.
    fn has_jumped(&mut self, time: Timestamp, clocks: Clocks) -> bool {
        let possible = clocks.day.is_some_and(|day| time.as_nanos() <= self.highest(day));
        if self.by_system || !self.is_live || !possible {
            return false;
        }
        let (count, accepted) = self.row;
        self.row = (if accepted == clocks.accepted { count + 1 } else { 1 }, clocks.accepted);
        self.row.0 > IN_A_ROW
    }

    /// The times from which `behind` and `ahead` are measured.
    fn around(&self, Clocks { shown, day, .. }: Clocks) -> (Option<Timestamp>, Option<Timestamp>) {
        if self.by_system {
            let shown = Some(shown).filter(|shown| *shown != NO_TIME);
            return (shown, shown);
        }
        let latest = self.latest;
        if latest == NO_TIME {
            return (Some(self.before).filter(|before| *before != NO_TIME), day);
        }
        let Some(day) = day else { return (Some(latest), Some(shown.max(latest))) };
        let is_near = (self.lowest(day)..=self.highest(day)).contains(&latest.as_nanos());
        (Some(latest.min(day)), Some(if is_near { day } else { shown.max(latest).min(day) }))
    }

    fn lowest(&self, time: Timestamp) -> i64 {
        self.behind.map_or(i64::MIN, |behind| time.as_nanos().saturating_sub(behind))
    }

    fn highest(&self, time: Timestamp) -> i64 {
        self.ahead.map_or(i64::MAX, |ahead| time.as_nanos().saturating_add(ahead))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ordering::alignment::Policy;

    const SECOND: i64 = 1_000_000_000;
    const HOUR: i64 = 3600;
    /// A time of day.
    const TODAY: i64 = 1_800_000_000;

    /// Limits of one hour, and the messages accepted by them: each has its time and the time of day, in seconds.
    struct Case {
        limits: Limits,
        accepted: u64,
    }

    impl Case {
        fn new(is_live: bool) -> Case {
            Case { limits: Limits::new(&Alignment::new(Policy::Arrival), is_live), accepted: 0 }
        }

        fn refused(&mut self, time: i64, day: Option<i64>) -> Option<(Refusal, u64)> {
            let at = |seconds: i64| Timestamp::from_nanos(seconds.saturating_mul(SECOND));
            if self.limits.admit(at(time)) {
                self.accepted += 1;
                return None;
            }
            let day = day.map(at);
            let shown = day.map_or(self.limits.latest, |day| self.limits.shown_at(day));
            let refused = self.limits.check(at(time), Clocks { shown, day, accepted: self.accepted });
            self.accepted += u64::from(refused.is_none());
            self.limits.renew();
            refused.map(|refused| (refused.side, refused.distance / SECOND as u64))
        }

        /// Whether a message is accepted.
        fn takes(&mut self, time: i64, day: i64) -> bool {
            self.refused(time, Some(day)).is_none()
        }
    }

    #[test]
    fn a_time_from_the_future_is_refused_and_does_not_set_the_clock() {
        let mut case = Case::new(true);
        let far = 4_102_444_800;
        assert_eq!(case.refused(far, Some(TODAY)), Some((Refusal::Ahead, (far - TODAY) as u64)));
        assert!(case.takes(TODAY, TODAY));
        for _ in 0..100 {
            assert_eq!(case.refused(far, Some(TODAY)), Some((Refusal::Ahead, (far - TODAY) as u64)));
        }
        assert!(case.takes(TODAY + 1, TODAY + 1));
        assert!(case.takes(TODAY + HOUR, TODAY + 1), "a clock that is fast by less than the limit");
        assert!(case.takes(TODAY + 2, TODAY + 2));
        assert!(case.refused(TODAY + 2 * HOUR, Some(TODAY + 2)).is_some(), "no message creeps ahead");
        assert_eq!(case.refused(5, Some(TODAY + 3)), Some((Refusal::Behind, (TODAY - 2) as u64)));
    }

    #[test]
    fn a_simulation_has_its_own_time() {
        let mut case = Case::new(true);
        assert!(case.takes(0, TODAY) && case.takes(1, TODAY + 1));
        // One topic carries the time of day: it must not set the clock of all others.
        for i in 2..100 {
            assert!(case.refused(TODAY + i, Some(TODAY + i)).is_some());
            assert!(case.takes(i, TODAY + i));
        }
        // After a pause, time continues where it stopped, or as if it had run.
        assert!(case.takes(100, TODAY + 5 * HOUR));
        assert!(case.takes(100 + 5 * HOUR, TODAY + 10 * HOUR));
        assert!(case.refused(100, Some(TODAY + 10 * HOUR)).is_some());
    }

    #[test]
    fn a_single_stray_message_does_not_decide_the_clock() {
        for stray in [-10 * 365 * 24 * HOUR, 12] {
            let mut case = Case::new(true);
            assert!(case.takes(stray, TODAY));
            assert!((0..10).all(|i| case.takes(TODAY + i, TODAY + i)), "{stray}");
            assert!(case.refused(stray, Some(TODAY + 10)).is_some());
        }
    }

    #[test]
    fn a_clock_that_is_set_is_followed_after_some_messages() {
        let mut case = Case::new(true);
        assert!(case.takes(12, TODAY) && case.takes(13, TODAY));
        let refused = (0..30).filter(|i| !case.takes(TODAY + i, TODAY + i)).count();
        assert_eq!(refused, 10);
        assert!(case.refused(14, Some(TODAY + 30)).is_some());
    }

    #[test]
    fn a_silence_is_no_jump() {
        let mut case = Case::new(true);
        assert!(case.takes(TODAY, TODAY));
        assert!(case.takes(TODAY + 9 * HOUR, TODAY + 9 * HOUR));
        assert!(case.takes(TODAY + 8 * HOUR + 1, TODAY + 9 * HOUR));
        assert!(!case.takes(TODAY + 7 * HOUR, TODAY + 9 * HOUR));
    }

    #[test]
    fn a_recording_is_held_to_its_own_times() {
        let mut case = Case::new(false);
        assert_eq!(case.refused(1000, None), None);
        assert_eq!(case.refused(1000 + 2 * HOUR, None), Some((Refusal::Ahead, 2 * HOUR as u64)));
        assert_eq!(case.refused(1001, None), None);
        assert_eq!(case.refused(1001 - 2 * HOUR, None), Some((Refusal::Behind, 2 * HOUR as u64)));
        // With times of arrival, as live.
        let mut case = Case::new(false);
        assert!(case.takes(TODAY, TODAY) && case.takes(TODAY + 9 * HOUR, TODAY + 9 * HOUR));
        assert!(!case.takes(4_102_444_800, TODAY + 9 * HOUR));
    }

    #[test]
    fn limits_that_are_off_refuse_nothing_and_extremes_do_not_overflow() {
        let never = Alignment { ahead: None, behind: None, ..Alignment::new(Policy::Arrival) };
        let mut limits = Limits::new(&never, true);
        assert!(!limits.are_active());
        for nanos in [i64::MIN + 1, 0, i64::MAX] {
            assert!(limits.admit(Timestamp::from_nanos(nanos)));
        }
        let mut case = Case::new(true);
        for time in [i64::MIN / SECOND, i64::MAX / SECOND, 0, TODAY] {
            for day in [i64::MIN / SECOND, i64::MAX / SECOND, TODAY] {
                case.refused(time, Some(day));
                case.refused(time, None);
            }
        }
        let only_behind = Alignment { ahead: None, ..Alignment::new(Policy::Arrival) };
        case.limits = Limits::new(&only_behind, true);
        assert!(case.takes(TODAY, TODAY) && case.takes(4_102_444_800, TODAY));
    }
}
