//! Continuing live from a snapshot: what was sent between it and the restart was not seen, unless a network kept it.

use rondel_engine::SeenAgain;
use rondel_event::{Timestamp, TopicId};

use super::pause::GRACE;
use super::{Route, Session, Shared};
use crate::notice::Notice;
use crate::saved::Known;
use crate::statistics::{Cause, Pause};

/// The snapshot that a session continues from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Continued {
    /// The time of day at which it was taken.
    at: Timestamp,
    is_whole: bool,
    is_by_arrival: bool,
    /// Whether any message had come.
    is_begun: bool,
}

/// What was not seen before a session continued.
#[derive(Clone, Debug)]
pub(super) struct Absence {
    /// The topics of which messages may be missing.
    pub(super) lost: Vec<TopicId>,
    /// Those whose messages come, but later than they would have.
    pub(super) late: Vec<TopicId>,
    /// How long it was, in nanoseconds.
    pub(super) lasted: i64,
    /// The time of the last message before it.
    latest: Option<Timestamp>,
}

impl Continued {
    pub(super) fn new(known: &Known) -> Continued {
        Continued {
            at: Timestamp::from_nanos(known.at),
            is_whole: known.is_whole,
            is_by_arrival: known.is_by_arrival,
            is_begun: known.events > 0,
        }
    }
}

impl Shared {
    /// Writes down where another session continues.
    pub(super) fn save_end(&self, known: &mut Known) {
        let now = (self.clock.now(), self.is_whole);
        // Until messages come, nothing has been seen since the snapshot before.
        let (at, is_whole) = self.continued.map_or(now, |continued| (continued.at, continued.is_whole));
        (known.at, known.is_whole) = (at.as_nanos(), is_whole);
        known.recorded_until = known.recorded_until.or(self.seam.map(|(from, _)| from.as_nanos()));
    }

    /// Takes note of the first line of a recording that continues another.
    #[inline]
    pub(super) fn join(&mut self, first: impl FnOnce() -> Option<Timestamp>) {
        if let Some((_, until @ None)) = &mut self.seam {
            *until = first();
        }
    }
}

impl Session {
    /// Whether the snapshot that the session continues from contains every message that had come: the run before
    /// [ended](Session::end_part).
    pub fn continues_whole(&self) -> bool {
        self.shared.continued.is_some_and(|continued| continued.is_whole)
    }

    /// Notes that a session that continues from a snapshot takes messages as they come from here on. What was sent since
    /// the snapshot was not seen, except on the topics in `kept`: their messages still come, all of them. Verdicts that
    /// depend on what is missing are inconclusive, and where the times of messages are those of their arrival those that
    /// depend on the time itself. Call it before the first message, if at all.
    pub fn resumed(&mut self, kept: &[TopicId]) {
        let Some(continued) = self.shared.continued.take().filter(|continued| continued.is_begun) else {
            return;
        };
        let pause = Pause { from: continued.at, until: self.shared.clock.now(), cause: Cause::Restart };
        self.shared.heartbeat.pauses.push(pause);
        self.shared.notice(Notice::paused(&pause));
        if !self.blind {
            // How long a violation lasted meanwhile was not seen in any case.
            match &self.route {
                Route::Direct(direct) => direct.stop_measuring(&mut self.shared),
                Route::Aligned(aligned) => aligned.stop_measuring(&mut self.shared),
                Route::Synchronized(_) => {}
            }
            self.shared.joining.clear();
            return;
        }
        let topics = (0..self.shared.topics.len() as u32).map(TopicId);
        let (kept, lost) = topics.partition(|topic| kept.contains(topic));
        let latest = self.shared.seam.map(|(latest, _)| latest);
        let lasted = pause.until.as_nanos().saturating_sub(pause.from.as_nanos()).max(0);
        let (absence, is_by_arrival) =
            (Absence { lost, late: kept, lasted, latest }, continued.is_by_arrival);
        match &mut self.route {
            Route::Direct(direct) => direct.absent(absence, is_by_arrival, &mut self.shared),
            Route::Aligned(aligned) => aligned.absent(absence, is_by_arrival, &mut self.shared),
            Route::Synchronized(_) => {}
        }
        self.shared.joining.clear();
    }
}

impl Absence {
    /// When messages are seen again, if the first one after the absence has this time: networks take a while to find
    /// all publishers. `is_slow`: it matters how long messages were on their way that have waited meanwhile.
    pub(super) fn again(&self, first: Timestamp, is_slow: bool) -> SeenAgain {
        let after = |time: Timestamp, span: i64| Timestamp::from_nanos(time.as_nanos().saturating_add(span));
        let until = after(first, GRACE);
        match self.latest.filter(|_| is_slow) {
            Some(latest) => SeenAgain::After(until.max(after(latest, self.lasted))),
            None => SeenAgain::Since { seen: first, missed: until },
        }
    }
}
