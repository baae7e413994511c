//! Pauses of the session: the process was stopped, starved or swapped out, or waited for a consumer, the machine slept,
//! or its clock was set.
//!
//! The first reading of the clock afterwards detects the pause, before time advances in any monitor. If message times
//! are arrival times, messages that waited meanwhile count late, and verdicts that depend on the time between are
//! inconclusive. If messages carry times of their own, the clock that runs between them stands still for that long, and
//! for [`GRACE`], so that waiting messages come first.
//!
//! A step of the day's clock shows in its difference to the ticks. A skipped span counts as no silence. After a
//! backward step, durations by arrival times are unknown until the clock has caught up with the time it had shown.

use rondel_engine::{Monitor, SeenAgain, UnseenFrom};
use rondel_event::{Block, Timestamp};

use crate::report::notice::Notice;
use crate::session::options::Options;
use crate::session::{Route, Session, Shared};
use crate::statistics::omission::Reason;
use crate::statistics::{Cause, Pause};
use crate::time::GRACE;
use crate::time::clock::Ticks;

/// Maximum number of recorded pauses.
const PAUSES: usize = 1024;

/// Minimum step of the day's clock that counts, in nanoseconds. A shorter one is like the jitter of arrival.
const STEP: i64 = 250_000_000;

/// Detects pauses of the session and steps of the day's clock.
#[derive(Debug)]
pub(in crate::session) struct Heartbeat {
    /// Minimum length of a pause, in nanoseconds.
    after: i64,
    /// When the session last ran; later than any reading at the beginning.
    last: Ticks,
    /// Difference between the day's clock and the ticks in nanoseconds, where pauses are detected.
    ahead: i64,
    /// Latest time of the day's clock before it was set back, until it has caught up.
    shown: Option<Timestamp>,
    /// Whether a network drops messages during a pause without notice.
    may_miss: bool,
    /// Whether a property measures time, so that pauses concern verdicts.
    pub(in crate::session) is_measured: bool,
    /// Whether verdicts that depend on a pause are inconclusive.
    pub(in crate::session) withholds: bool,
    pub(in crate::session) pauses: Vec<Pause>,
    /// Total length of all pauses with their grace periods, in nanoseconds.
    pub(in crate::session) held: i64,
}

/// Detected pause, or step of the day's clock.
#[derive(Clone, Copy, Debug)]
pub(in crate::session) struct Missed {
    /// The times of day: of the last reading before, and the first one after.
    pub(in crate::session) from: Timestamp,
    pub(in crate::session) until: Timestamp,
    /// The readings of the ticks, if the session did not run.
    pub(in crate::session) ticks: Option<(Ticks, Ticks)>,
    /// Forward step of the day's clock in nanoseconds, 0 without a step; negative if it was set back.
    step: i64,
    /// Whether no messages of the time between exist, although messages carry their times: the clock of a simulation
    /// leapt over it.
    pub(in crate::session) is_empty: bool,
}

impl Heartbeat {
    pub(in crate::session) fn new(options: &Options, is_measured: bool, withholds: bool) -> Heartbeat {
        let (clock, may_miss) = (&*options.clock, options.drops_when_stopped);
        // A network that drops messages matters to every property.
        let after = options.paused_after.filter(|_| is_measured || may_miss);
        let ahead = if after.is_some() { ahead(clock.now(), clock.ticks()) } else { 0 };
        let after = after.unwrap_or(i64::MAX);
        let (last, pauses) = (Ticks::MAX, Vec::new());
        Heartbeat { after, last, ahead, shown: None, may_miss, is_measured, withholds, pauses, held: 0 }
    }

    /// Whether pauses are detected.
    pub(in crate::session) fn is_on(&self) -> bool {
        self.after < i64::MAX
    }

    /// Continues after another session, without a pause in between.
    pub(in crate::session) fn inherit(&mut self, before: &mut Heartbeat) {
        if self.is_on() && before.is_on() {
            (self.last, self.ahead, self.shown) = (before.last, before.ahead, before.shown);
        }
        self.held = before.held;
        self.pauses = std::mem::take(&mut before.pauses);
    }

    /// Adds a pause that lasted `lasted` nanoseconds by the ticks.
    fn add_long(&mut self, pause: Pause, lasted: i64) {
        self.add(pause);
        self.held = self.held.saturating_add(lasted).saturating_add(GRACE);
    }

    fn add(&mut self, pause: Pause) {
        if self.pauses.len() < PAUSES {
            self.pauses.push(pause);
        }
    }
}

/// Difference between a time of day and the ticks, in nanoseconds.
fn ahead(day: Timestamp, ticks: Ticks) -> i64 {
    day.as_nanos().saturating_sub(ticks)
}

fn later(time: Timestamp, by: i64) -> Timestamp {
    Timestamp::from_nanos(time.as_nanos().saturating_add(by))
}

impl Shared {
    /// Heartbeat; returns a pause, if it was long enough. `arrived` is the time of arrival of a message, where messages
    /// count at theirs: it shows whether the day's clock was set, without reading it.
    #[inline]
    pub(in crate::session) fn beat(&mut self, now: Ticks, arrived: Option<Timestamp>) -> Option<Missed> {
        let Heartbeat { after, last, ahead: known, .. } = &mut self.heartbeat;
        let last = std::mem::replace(last, now);
        let is_set = |arrived| ahead(arrived, now).saturating_sub(*known).saturating_abs() >= STEP;
        let is_missed =
            now.saturating_sub(last) >= *after || *after < i64::MAX && arrived.is_some_and(is_set);
        if is_missed { self.missed(last, now) } else { None }
    }

    /// Like [`Session`]'s heartbeat, and reads the day's clock.
    pub(in crate::session) fn look(&mut self, now: Ticks) -> Option<Missed> {
        let last = std::mem::replace(&mut self.heartbeat.last, now);
        self.missed(last, now)
    }

    fn missed(&mut self, last: Ticks, now: Ticks) -> Option<Missed> {
        let (mut now, mut until) = (now, self.clock.now());
        let seems_set = ahead(until, now).saturating_sub(self.heartbeat.ahead) >= STEP;
        if seems_set && self.clock.ticks().saturating_sub(now) >= STEP {
            // The process was stopped between the two readings: both are repeated.
            now = self.clock.ticks();
            until = self.clock.now();
            self.heartbeat.last = now;
        }
        // A clock that is slewed is no step.
        let known = std::mem::replace(&mut self.heartbeat.ahead, ahead(until, now));
        let step = self.heartbeat.ahead.saturating_sub(known);
        let lasted = now.saturating_sub(last);
        let (is_paused, is_set) = (lasted >= self.heartbeat.after, step.saturating_abs() >= STEP);
        if !is_paused && !is_set {
            return None;
        }
        let last_day = |ahead: i64| Timestamp::from_nanos(last.min(now).saturating_add(ahead));
        let from = last_day(known);
        if is_paused {
            let (from, may_miss) = (later(until, -lasted), self.heartbeat.may_miss);
            let pause = Pause { from, until, cause: Cause::Stopped, may_miss };
            self.heartbeat.add_long(pause, lasted);
            self.notice(Notice::paused(&pause));
        }
        if is_set {
            let pause = Pause { from, until, cause: Cause::Clock { by: step }, may_miss: false };
            self.heartbeat.add(pause);
            self.notice(Notice::paused(&pause));
        }
        if step <= -STEP {
            let shown = later(Timestamp::from_nanos(known), now);
            self.heartbeat.shown = self.heartbeat.shown.max(Some(shown));
        }
        // Messages may count at times before the one that was read last.
        let from = from.min(last_day(self.heartbeat.ahead));
        Some(Missed {
            from,
            until,
            ticks: is_paused.then_some((last, now)),
            step: if is_set { step } else { 0 },
            is_empty: false,
        })
    }

    /// Counts a pause, if properties depend on the messages missed in it, as recorded by the last call of the monitor.
    pub(in crate::session) fn omit_span(&mut self, monitor: &Monitor, from: UnseenFrom) {
        if monitor.missed().iter().any(|missed| missed.is_read) {
            self.omit_pause(if let UnseenFrom::Time(from) = from { Some(from) } else { None });
        }
    }

    /// Counts a pause.
    pub(in crate::session) fn omit_pause(&mut self, from: Option<Timestamp>) {
        self.omit(Reason::NotReceived, None, from, || "the monitor did not run".to_owned());
    }

    /// Whether the day's clock has caught up after it was set back; true once.
    pub(in crate::session) fn catches_up(&mut self, now: Ticks) -> bool {
        let day = later(Timestamp::from_nanos(self.heartbeat.ahead), now);
        self.heartbeat.shown.take_if(|shown| *shown <= day).is_some()
    }
}

impl Session {
    /// Records that the clock of the session, which a simulation sets, leapt from this time and this reading of its
    /// ticks to the current ones. Time advances once messages from after the leap had time to come; verdicts that
    /// depend on the time between are inconclusive. Call [`Session::flush`] before the clock is set.
    pub fn leapt(&mut self, from: Timestamp, ticks: Ticks, cause: Cause) {
        let (until, now) = (self.shared.clock.now(), self.shared.clock.ticks());
        let pause = Pause { from, until, cause, may_miss: false };
        self.shared.heartbeat.add_long(pause, now.saturating_sub(ticks));
        self.shared.notice(Notice::paused(&pause));
        let is_empty = matches!(cause, Cause::Simulation | Cause::Begun);
        let missed = Missed { from, until, ticks: Some((ticks, now)), step: 0, is_empty };
        self.pause(&missed);
    }

    pub(in crate::session) fn pause(&mut self, missed: &Missed) {
        match &mut self.route {
            Route::Direct(direct) => direct.pause(missed, &mut self.shared),
            Route::Aligned(aligned) => aligned.pause(missed, &mut self.shared),
            Route::Synchronized(synchronized) => synchronized.pause(missed, &self.shared),
        }
    }
}

impl Missed {
    /// Length of the pause, in nanoseconds.
    pub(in crate::session) fn lasted(&self) -> i64 {
        self.ticks.map_or(0, |(last, now)| now.saturating_sub(last))
    }

    /// Time for which the day's clock repeats times that it has shown already, in nanoseconds, if it does.
    pub(in crate::session) fn repeats(&self) -> Option<i64> {
        (self.step < 0).then(|| self.step.saturating_neg())
    }

    /// The end of a pause in which messages waited, as a time and as a reading of the ticks.
    pub(in crate::session) fn return_of(&self, block: &Block) -> Option<(Timestamp, Ticks)> {
        let has_waiting = !self.is_empty && self.step == 0;
        self.ticks.filter(|_| has_waiting).map(|(_, now)| (self.end(block), now))
    }

    /// Time from which messages are received again, by arrival times. Waiting messages arrive one neighbour after the
    /// other.
    pub(in crate::session) fn again(&self, block: &Block) -> SeenAgain {
        if self.repeats().is_some() {
            return SeenAgain::Open;
        }
        let grace = if self.ticks.is_some() { GRACE } else { 0 };
        SeenAgain::At(later(self.end(block), grace))
    }

    /// The time of arrival of the first message after the pause, or its end: messages in the block arrived before it and
    /// after it, and in between is the longest time without any.
    fn end(&self, block: &Block) -> Timestamp {
        let Missed { from, until, .. } = *self;
        if self.is_empty {
            return until;
        }
        let times = (0..block.len()).map(|row| block.time(row));
        let mut times: Vec<Timestamp> = times.filter(|time| (from..until).contains(time)).collect();
        times.sort_unstable();
        let mut last = from;
        let gap = |time: Timestamp| {
            let before = std::mem::replace(&mut last, time);
            (time.as_nanos().saturating_sub(before.as_nanos()), time)
        };
        times.into_iter().chain([until]).map(gap).max().map_or(until, |(_, end)| end)
    }
}
