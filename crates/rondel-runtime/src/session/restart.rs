//! Resuming live from a snapshot: messages sent between it and the restart were missed, unless a network kept them.

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

/// Messages and time missed before a session resumed.
#[derive(Clone, Debug)]
pub(super) struct Absence {
    /// The topics of which messages may be missing.
    pub(super) lost: Vec<TopicId>,
    /// Topics whose messages come late.
    pub(super) late: Vec<TopicId>,
    /// Length of the absence, in nanoseconds.
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
    /// Saves the end of the session, from which another one resumes.
    pub(super) fn save_end(&self, known: &mut Known) {
        let now = (self.clock.now(), self.is_whole);
        // Until messages come, nothing was received since the previous snapshot.
        let (at, is_whole) = self.continued.map_or(now, |continued| (continued.at, continued.is_whole));
        (known.at, known.is_whole) = (at.as_nanos(), is_whole);
        known.recorded_until = known.recorded_until.or(self.seam.map(|(from, _)| from.as_nanos()));
    }

    /// Records the time of the first line of a recording that continues another.
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

    /// Records that a resumed session receives live messages from here on. Messages sent since the snapshot were
    /// missed, except on the topics in `kept`: all of their messages still come. Verdicts that depend on missing
    /// messages are inconclusive and, if message times are arrival times, those that depend on the time itself. Call it
    /// before the first message, if at all.
    pub fn resumed(&mut self, kept: &[TopicId]) {
        let Some(continued) = self.shared.continued.take().filter(|continued| continued.is_begun) else {
            return;
        };
        let pause = Pause { from: continued.at, until: self.shared.clock.now(), cause: Cause::Restart };
        self.shared.heartbeat.pauses.push(pause);
        self.shared.notice(Notice::paused(&pause));
        if !self.blind {
            // The duration of a violation meanwhile is unknown in any case.
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
    /// Time from which messages are received again, if the first one after the absence has this time: networks take a
    /// while to find all publishers. `is_slow`: the transport delay of waiting messages matters.
    pub(super) fn again(&self, first: Timestamp, is_slow: bool) -> SeenAgain {
        let after = |time: Timestamp, span: i64| Timestamp::from_nanos(time.as_nanos().saturating_add(span));
        let until = after(first, GRACE);
        match self.latest.filter(|_| is_slow) {
            Some(latest) => SeenAgain::After(until.max(after(latest, self.lasted))),
            None => SeenAgain::Since { seen: first, missed: until },
        }
    }
}
