//! Times in which the session did not run: the process was stopped, starved or swapped out, or waited for a consumer.
//!
//! Whoever reads the clock first afterwards notices it, before time passes in any monitor. Where the times of messages
//! are those of their arrival, messages that waited meanwhile count late, and verdicts that depend on the time between
//! are inconclusive. Where messages carry times of their own, the clock that runs between them stands still for that
//! long, and for [`GRACE`], so that what waited comes first.

use rondel_event::{Block, Timestamp};

use super::Shared;
use crate::clock::Ticks;
use crate::notice::Notice;
use crate::statistics::Pause;

/// How long what waited may take to come, in nanoseconds.
pub(super) const GRACE: i64 = 1_000_000_000;

/// At most so many pauses are remembered.
const PAUSES: usize = 1024;

/// Notices when the session did not run.
#[derive(Debug)]
pub(super) struct Heartbeat {
    /// From which length on a pause counts, in nanoseconds.
    after: i64,
    /// When the session last ran; later than any reading at the beginning.
    last: Ticks,
    /// Whether verdicts that depend on a pause are inconclusive.
    pub(super) withholds: bool,
    pub(super) pauses: Vec<Pause>,
    /// How long all pauses were, with what was waited for afterwards, in nanoseconds.
    pub(super) held: i64,
}

/// A pause that was noticed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missed {
    /// The times of day.
    pub(super) between: Pause,
    /// The readings of the clock.
    pub(super) ticks: (Ticks, Ticks),
}

impl Heartbeat {
    pub(super) fn new(after: Option<i64>, withholds: bool) -> Heartbeat {
        let after = after.unwrap_or(i64::MAX);
        Heartbeat { after, last: Ticks::MAX, withholds, pauses: Vec::new(), held: 0 }
    }

    /// Whether pauses are looked for.
    pub(super) fn is_on(&self) -> bool {
        self.after < i64::MAX
    }
}

impl Shared {
    /// Notes that the session runs; returns the time in which it did not, if that was long.
    #[inline]
    pub(super) fn beat(&mut self, now: Ticks) -> Option<Missed> {
        let last = std::mem::replace(&mut self.heartbeat.last, now);
        if now.saturating_sub(last) < self.heartbeat.after { None } else { Some(self.paused(last, now)) }
    }

    #[cold]
    fn paused(&mut self, last: Ticks, now: Ticks) -> Missed {
        let (until, lasted) = (self.clock.now(), now.saturating_sub(last));
        let from = Timestamp::from_nanos(until.as_nanos().saturating_sub(lasted));
        let between = Pause { from, until };
        if self.heartbeat.pauses.len() < PAUSES {
            self.heartbeat.pauses.push(between);
        }
        self.heartbeat.held = self.heartbeat.held.saturating_add(lasted).saturating_add(GRACE);
        self.notice(Notice::paused(from, until));
        Missed { between, ticks: (last, now) }
    }
}

impl Missed {
    /// How long it was, in nanoseconds.
    pub(super) fn lasted(&self) -> i64 {
        self.ticks.1.saturating_sub(self.ticks.0)
    }

    /// The time of arrival by which all messages have come that waited, those of one neighbour after those of another.
    pub(super) fn read_by(&self, block: &Block) -> Timestamp {
        Timestamp::from_nanos(self.end(block).as_nanos().saturating_add(GRACE))
    }

    /// The time of arrival of the first message after the pause, or its end: messages in the block arrived before it and
    /// after it, and in between is the longest time without any.
    fn end(&self, block: &Block) -> Timestamp {
        let Pause { from, until } = self.between;
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
