//! Resuming live from a snapshot: messages sent between it and the restart were missed, unless a network kept them.

use rondel_engine::SeenAgain;
use rondel_event::{Timestamp, TopicId};

use crate::report::notice::Notice;
use crate::session::snapshot::saved::{Known, Saved};
use crate::session::{Route, Session, Shared};
use crate::statistics::{Cause, Pause};
use crate::time::GRACE;

/// The snapshot that a session continues from.
#[derive(Clone, Copy, Debug)]
struct Continued {
    /// The time of day at which it was taken.
    at: Timestamp,
    is_whole: bool,
    is_by_arrival: bool,
    /// Whether any message had come.
    is_begun: bool,
}

/// Messages and time missed before a session resumed.
#[derive(Clone, Debug)]
pub(in crate::session) struct Absence {
    /// The topics of which messages may be missing.
    pub(in crate::session) lost: Vec<TopicId>,
    /// Topics whose messages come late.
    pub(in crate::session) late: Vec<TopicId>,
    /// Length of the absence, in nanoseconds.
    pub(in crate::session) lasted: i64,
    /// The time of the last message before it.
    latest: Option<Timestamp>,
}

impl Continued {
    fn new(known: &Known) -> Continued {
        Continued {
            at: Timestamp::from_nanos(known.at),
            is_whole: known.is_whole,
            is_by_arrival: known.is_by_arrival,
            is_begun: known.events > 0,
        }
    }
}

/// State that a session takes over from a snapshot, and that the next snapshot hands on.
#[derive(Debug, Default)]
pub(in crate::session) struct Resumption {
    /// The snapshot that the session continues from.
    continued: Option<Continued>,
    /// Whether no message follows.
    is_whole: bool,
    /// In a recording that continues another: the time of the last event there, and of the first one here.
    seam: Option<(Timestamp, Option<Timestamp>)>,
    /// For each property: whether it joins after a restart, until the missed span is recorded; empty if none does.
    joining: Vec<bool>,
    /// Bytes of the caller that are part of snapshots.
    attachment: Vec<u8>,
}

impl Resumption {
    pub(in crate::session) fn new(saved: Option<&Saved>) -> Resumption {
        let Some(Saved { known, .. }) = saved else { return Resumption::default() };
        Resumption {
            continued: Some(Continued::new(known)),
            seam: known.recorded_until.map(|time| (Timestamp::from_nanos(time), None)),
            attachment: known.attachment.clone(),
            ..Resumption::default()
        }
    }

    /// Sets for each property whether it joins after a restart.
    pub(in crate::session) fn set_joining(&mut self, joining: Vec<bool>) {
        self.joining = joining;
    }

    /// Whether a property joins after a restart, so that it missed nothing before.
    pub(in crate::session) fn joins(&self, property: u32) -> bool {
        self.joining.get(property as usize) == Some(&true)
    }

    /// In a recording that continues another: the time of the last event there, and of the first one here.
    pub(in crate::session) fn seam(&self) -> Option<(Timestamp, Timestamp)> {
        self.seam.and_then(|(from, until)| Some((from, until?)))
    }

    /// Records that no message follows.
    pub(in crate::session) fn end(&mut self) {
        self.is_whole = true;
    }

    /// Records that every message since the snapshot is received.
    pub(in crate::session) fn go_on(&mut self) {
        self.continued = None;
    }

    /// Sets the bytes of the caller.
    pub(in crate::session) fn attach(&mut self, bytes: Vec<u8>) {
        self.attachment = bytes;
    }

    /// The bytes of the caller.
    pub(in crate::session) fn attachment(&self) -> &[u8] {
        &self.attachment
    }
}

impl Shared {
    /// Saves the end of the session, from which another one resumes.
    pub(in crate::session) fn save_end(&self, known: &mut Known) {
        let Resumption { continued, is_whole, seam, .. } = &self.resumption;
        let now = (self.clock.now(), *is_whole);
        // Until messages come, nothing was received since the previous snapshot.
        let (at, is_whole) = continued.map_or(now, |continued| (continued.at, continued.is_whole));
        (known.at, known.is_whole) = (at.as_nanos(), is_whole);
        known.recorded_until = known.recorded_until.or(seam.map(|(from, _)| from.as_nanos()));
    }

    /// Records the time of the first line of a recording that continues another.
    #[inline]
    pub(in crate::session) fn join(&mut self, first: impl FnOnce() -> Option<Timestamp>) {
        if let Some((_, until @ None)) = &mut self.resumption.seam {
            *until = first();
        }
    }
}

impl Session {
    /// Whether the snapshot that the session continues from contains every message that had come: the run before
    /// [ended](Session::end_part).
    pub fn continues_whole(&self) -> bool {
        self.shared.resumption.continued.is_some_and(|continued| continued.is_whole)
    }

    /// Records that a resumed session receives live messages from here on. Messages sent since the snapshot were
    /// missed, except on the topics in `kept`: all of their messages still come. Verdicts that depend on missing
    /// messages are inconclusive and, if message times are arrival times, those that depend on the time itself. Call it
    /// before the first message, if at all.
    pub fn resumed(&mut self, kept: &[TopicId]) {
        let continued = self.shared.resumption.continued.take();
        let Some(continued) = continued.filter(|continued| continued.is_begun) else {
            return;
        };
        let pause = Pause {
            from: continued.at,
            until: self.shared.clock.now(),
            cause: Cause::Restart,
            may_miss: false,
        };
        self.shared.heartbeat.pauses.push(pause);
        self.shared.notice(Notice::paused(&pause));
        if !self.withholds() {
            // The duration of a violation meanwhile is unknown in any case.
            match &self.route {
                Route::Direct(direct) => direct.stop_measuring(&mut self.shared),
                Route::Aligned(aligned) => aligned.stop_measuring(&mut self.shared),
                Route::Synchronized(_) => {}
            }
            self.shared.resumption.joining.clear();
            return;
        }
        let topics = (0..self.shared.topics.len() as u32).map(TopicId);
        let (kept, lost) = topics.partition(|topic| kept.contains(topic));
        let latest = self.shared.resumption.seam.map(|(latest, _)| latest);
        let lasted = pause.until.as_nanos().saturating_sub(pause.from.as_nanos()).max(0);
        let (absence, is_by_arrival) =
            (Absence { lost, late: kept, lasted, latest }, continued.is_by_arrival);
        match &mut self.route {
            Route::Direct(direct) => direct.absent(absence, is_by_arrival, &mut self.shared),
            Route::Aligned(aligned) => aligned.absent(absence, is_by_arrival, &mut self.shared),
            Route::Synchronized(_) => {}
        }
        self.shared.resumption.joining.clear();
    }
}

impl Absence {
    /// Names its topics as another session does. `origins` has for each topic there its position here.
    pub(in crate::session) fn move_to(&mut self, origins: &[Option<usize>]) {
        for topics in [&mut self.lost, &mut self.late] {
            let is_among = |origin: &Option<usize>| {
                origin.is_some_and(|at| topics.iter().any(|topic| topic.index() == at))
            };
            let moved = (0..).map(TopicId).zip(origins).filter(|(_, origin)| is_among(origin));
            *topics = moved.map(|(topic, _)| topic).collect();
        }
    }

    /// Time from which messages are received again, if the first one after the absence has this time: networks take a
    /// while to find all publishers. `is_slow`: the transport delay of waiting messages matters.
    pub(in crate::session) fn again(&self, first: Timestamp, is_slow: bool) -> SeenAgain {
        let after = |time: Timestamp, span: i64| Timestamp::from_nanos(time.as_nanos().saturating_add(span));
        let until = after(first, GRACE);
        match self.latest.filter(|_| is_slow) {
            Some(latest) => SeenAgain::After(until.max(after(latest, self.lasted))),
            None => SeenAgain::Since { seen: first, missed: until },
        }
    }
}
