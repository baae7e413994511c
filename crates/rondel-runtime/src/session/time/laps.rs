//! Laps: times that start over because of a looped recording, a restarted simulation, or two runs in one file.
//!
//! A message whose time is more than a limit before that of an earlier message of its topic may be late, or the first
//! of a new lap. It waits, with all later messages, until that is known. If a message continues the old times, the
//! waiting messages were late. If all topics have stepped back, or nothing has continued the old times for as long as
//! the limit, a new lap has begun.

use std::collections::VecDeque;

use rondel_engine::SeenAgain;
use rondel_event::{Block, Timestamp, TopicId};

use crate::report::notice::Notice;
use crate::session::options::{Reset, ResetPolicy};
use crate::session::{Route, Session, Stamp};
use crate::time::clock::{Clock, NO_TIME, Ticks};

/// Maximum number of waiting messages.
const MOST: usize = 4096;

/// A message without a time.
pub(in crate::session) const NONE: i64 = i64::MIN;

/// A decoded message that waits: alone in its block.
#[derive(Debug)]
pub(in crate::session) struct Held {
    pub(in crate::session) topic: TopicId,
    pub(in crate::session) block: Block,
    pub(in crate::session) stamp: Stamp,
    /// Whether it comes from a line, which alone says when it arrived.
    pub(in crate::session) is_line: bool,
    /// The clock when it came.
    pub(in crate::session) came: Came,
}

/// Readings of a clock when a message came.
#[derive(Clone, Copy, Debug)]
pub(in crate::session) struct Came {
    now: Timestamp,
    ticks: Ticks,
    latest: Option<Timestamp>,
}

impl Came {
    pub(in crate::session) fn at(clock: &dyn Clock) -> Came {
        Came { now: clock.now(), ticks: clock.ticks(), latest: clock.latest() }
    }
}

impl Clock for Came {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn ticks(&self) -> Ticks {
        self.ticks
    }

    fn latest(&self) -> Option<Timestamp> {
        self.latest
    }
}

/// Decision about the waiting messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum LapDecision {
    /// They keep waiting.
    Wait,
    /// They are late, and are evaluated as such.
    Late,
    /// They are the first ones of a new lap.
    NewLap,
}

/// Decision about the first waiting messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) struct DecidedMessages {
    pub(in crate::session) decision: LapDecision,
    /// The number of these messages; later ones came with them in one block.
    pub(in crate::session) count: usize,
}

impl DecidedMessages {
    /// The same decision about all waiting messages.
    pub(in crate::session) fn all(decision: LapDecision) -> DecidedMessages {
        DecidedMessages { decision, count: usize::MAX }
    }
}

/// Watches the times of messages for a new lap.
#[derive(Debug)]
pub(in crate::session) struct Laps {
    /// Minimum backward step of times, in nanoseconds; `i64::MAX` if they are not watched.
    after: i64,
    /// The latest time of each topic, or [`NONE`].
    latest: Vec<i64>,
    held: Vec<Held>,
    /// The topics of which a message that waits has stepped back.
    stepped: Vec<TopicId>,
    /// The times of the first and the latest message that wait.
    span: (i64, i64),
    /// The latest time of all topics before them.
    before: i64,
    /// When the first of them came, by the clock's ticks.
    since: Ticks,
    decided: Option<DecidedMessages>,
}

impl Laps {
    /// Watches `topics` topics; `wait` is the maximum wait for messages, in nanoseconds.
    pub(in crate::session) fn new(reset: Reset, topics: usize, wait: i64) -> Laps {
        let after = match reset.policy {
            ResetPolicy::Ignore => i64::MAX,
            _ => reset.after.unwrap_or(wait.max(Reset::AFTER)),
        };
        Laps {
            after,
            latest: vec![NONE; topics],
            held: Vec::new(),
            stepped: Vec::new(),
            span: (0, 0),
            before: NONE,
            since: 0,
            decided: None,
        }
    }

    /// Takes the decision about the first waiting messages.
    #[inline(always)]
    pub(in crate::session) fn decided(&mut self) -> Option<DecidedMessages> {
        if self.decided.is_some() { self.decided.take() } else { None }
    }

    /// Whether times are watched at all.
    pub(in crate::session) fn is_on(&self) -> bool {
        self.after < i64::MAX
    }

    /// Whether messages wait.
    #[inline(always)]
    pub(in crate::session) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether a message of this time has to wait: pass it to [`Laps::hold`].
    #[inline(always)]
    pub(in crate::session) fn must_wait(&self, topic: TopicId, time: Timestamp) -> bool {
        let is_back = |latest: &i64| time.as_nanos().saturating_add(self.after) < *latest;
        let is_back = self.latest.get(topic.index()).is_some_and(is_back);
        // A time of zero was never set.
        is_back && ![NO_TIME, Timestamp::ZERO].contains(&time) || self.is_holding() && time != NO_TIME
    }

    /// Records the time of a message that does not wait.
    #[inline(always)]
    pub(in crate::session) fn see(&mut self, topic: TopicId, time: Timestamp) {
        if let Some(latest) = self.latest.get_mut(topic.index()) {
            *latest = time.as_nanos().max(*latest);
        }
    }

    /// Keeps a message that has to wait, and decides about the waiting messages.
    #[cold]
    pub(in crate::session) fn hold(&mut self, held: Held) {
        if self.decided.is_some() {
            return self.held.push(held);
        }
        let decision = self.keep(held);
        if decision != LapDecision::Wait {
            self.decided = Some(DecidedMessages { decision, count: self.held.len() });
        }
    }

    fn keep(&mut self, held: Held) -> LapDecision {
        let (topic, time) = (held.topic, held.block.time(0).as_nanos());
        if self.held.is_empty() {
            self.before = self.latest.iter().copied().max().unwrap_or(NONE);
            (self.span, self.since) = ((time, time), held.came.ticks);
            self.stepped.clear();
        }
        self.held.push(held);
        if time.saturating_add(self.after) >= self.before {
            // The old times continue. The held messages stepped back alone, and their topic continues from there.
            for held in std::mem::take(&mut self.held) {
                self.go_on(&held);
                self.held.push(held);
            }
            return LapDecision::Late;
        }
        self.span = (self.span.0.min(time), self.span.1.max(time));
        let latest = self.latest.get(topic.index()).copied().unwrap_or(NONE);
        if time.saturating_add(self.after) < latest && !self.stepped.contains(&topic) {
            self.stepped.push(topic);
        }
        let in_play = self.latest.iter().filter(|latest| **latest > NONE).count();
        let lasted = self.span.1.saturating_sub(self.span.0);
        // A single message may be an outlier.
        let is_confirmed = self.stepped.len() >= in_play || lasted >= self.after || self.held.len() >= MOST;
        if is_confirmed && self.held.len() > 1 { LapDecision::NewLap } else { LapDecision::Wait }
    }

    /// Sets the latest time of a topic to that of a message.
    fn go_on(&mut self, held: &Held) {
        if let Some(latest) = self.latest.get_mut(held.topic.index()) {
            *latest = held.block.time(0).as_nanos();
        }
    }

    /// Ticks at which the waiting messages count as a new lap, if no message comes before.
    #[inline]
    pub(in crate::session) fn due(&self) -> Option<Ticks> {
        self.is_holding().then(|| self.since.saturating_add(self.after))
    }

    /// The latest time before the messages that wait, and the first one of these.
    fn edge(&self) -> (Timestamp, Timestamp) {
        (Timestamp::from_nanos(self.before), Timestamp::from_nanos(self.span.0))
    }

    /// The latest times, for a snapshot.
    pub(in crate::session) fn saved(&self) -> Vec<i64> {
        self.latest.clone()
    }

    /// Restores the latest times of a snapshot.
    pub(in crate::session) fn restore(&mut self, saved: &[i64]) {
        self.latest.iter_mut().zip(saved).for_each(|(latest, saved)| *latest = *saved);
    }

    /// Takes over the times of another session. `origins` has for each topic its position there.
    pub(in crate::session) fn inherit(&mut self, before: &Laps, origins: &[Option<usize>]) {
        for (latest, origin) in self.latest.iter_mut().zip(origins) {
            *latest = origin.and_then(|at| before.latest.get(at).copied()).unwrap_or(NONE);
        }
    }

    /// Takes the messages that wait.
    pub(in crate::session) fn take(&mut self) -> Vec<Held> {
        std::mem::take(&mut self.held)
    }
}

impl Session {
    /// Evaluates the messages that wait, in the lap that they belong to.
    #[cold]
    pub(in crate::session) fn settle_lap(&mut self, decided: DecidedMessages) {
        let DecidedMessages { mut decision, mut count } = decided;
        let mut waiting = VecDeque::from(self.shared.laps.take());
        loop {
            let restarts =
                decision == LapDecision::NewLap && self.plan.options.reset.policy == ResetPolicy::Restart;
            let (from, to) = self.shared.laps.edge();
            if restarts {
                self.begin_lap(from, to);
            } else {
                if decision == LapDecision::NewLap {
                    self.withhold_all(from, to);
                    waiting.iter().take(count).for_each(|held| self.shared.laps.go_on(held));
                }
                for held in waiting.drain(..count.min(waiting.len())).collect::<Vec<_>>() {
                    self.resume_held(&held);
                }
            }
            let Some(again) = self.resume_all(&mut waiting) else { return };
            DecidedMessages { decision, count } = again;
        }
    }

    /// Evaluates messages that waited. Returns the decision about the first of the rest if times step back once more.
    fn resume_all(&mut self, waiting: &mut VecDeque<Held>) -> Option<DecidedMessages> {
        while let Some(held) = waiting.pop_front() {
            if !self.shared.laps.must_wait(held.topic, held.block.time(0)) {
                self.resume_held(&held);
                continue;
            }
            self.shared.laps.hold(held);
            if let Some(decided) = self.shared.laps.decided() {
                self.shared.laps.take().into_iter().rev().for_each(|held| waiting.push_front(held));
                return Some(decided);
            }
        }
        None
    }

    /// Evaluates a message that waited.
    fn resume_held(&mut self, held: &Held) {
        match &mut self.route {
            Route::Direct(direct) => direct.resume_held(held, &mut self.shared),
            Route::Aligned(aligned) => aligned.resume_held(held, &mut self.shared),
            Route::Synchronized(_) => {}
        }
    }

    /// Treats undecided waiting messages as late, since nothing that could decide it follows.
    pub(in crate::session) fn settle_laps_now(&mut self) {
        if self.shared.laps.is_holding() {
            self.settle_lap(DecidedMessages::all(LapDecision::Late));
        }
    }

    /// Ends the lap as at the end of a recording, and begins another.
    fn begin_lap(&mut self, from: Timestamp, to: Timestamp) {
        let mut next = match self.plan.session(None) {
            Ok(next) => next,
            // The same plan has started before.
            Err(_) => return self.withhold_all(from, to),
        };
        self.types.begin_lap(&mut next.route);
        self.end_route();
        let summary = self.lap_summary();
        match &mut self.before {
            None => self.before = Some(Box::new(summary)),
            Some(before) => before.continue_with(summary),
        }
        next.route.continue_lines(&self.route);
        self.route = next.route;
        let shared = &mut self.shared;
        shared.lap += 1;
        shared.notice(Notice::reset(shared.lap, from, to));
        shared.earlier.received += shared.counts.received;
        shared.earlier.checked += shared.counts.checked;
        shared.flushed = 0;
        shared.counts = next.shared.counts;
        shared.topics = next.shared.topics;
        shared.missing = next.shared.missing;
        shared.omitted.begin_lap(next.shared.omitted);
        shared.span = None;
        shared.accounts.begin_lap();
        shared.heartbeat.pauses.clear();
        shared.emitter.begin_lap(next.shared.emitter, shared.lap);
        shared.laps = next.shared.laps;
        self.events.begin_lap();
    }

    /// Withholds all verdicts from here on: the meaning of message times is unknown.
    fn withhold_all(&mut self, from: Timestamp, to: Timestamp) {
        let all: Vec<TopicId> = (0..self.shared.topics.len() as u32).map(TopicId).collect();
        self.shared.notice(Notice::reset(self.shared.lap, from, to));
        if self.withholds() {
            self.shared.omit_pause(Some(from));
            self.miss(&all, self.shared.counted(), SeenAgain::Open);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondel_event::Layout;

    fn laps(topics: usize) -> Laps {
        Laps::new(Reset { policy: ResetPolicy::Restart, after: Some(10) }, topics, 0)
    }

    /// Decisions about messages, given as topic and time.
    fn decisions(laps: &mut Laps, messages: &[(u32, i64)]) -> Vec<Option<LapDecision>> {
        let decision = |(topic, time): &(u32, i64)| {
            let (topic, time) = (TopicId(*topic), Timestamp::from_nanos(*time));
            if !laps.must_wait(topic, time) {
                laps.see(topic, time);
                return None;
            }
            let mut block = Block::new(Layout { topics: 3, ..Layout::default() });
            block.push(topic, time);
            let came = Came { now: time, ticks: 0, latest: None };
            laps.hold(Held { topic, block, stamp: Stamp::default(), is_line: false, came });
            let decided = laps.decided();
            if decided.is_some() {
                laps.take();
            }
            Some(decided.map_or(LapDecision::Wait, |decided| decided.decision))
        };
        messages.iter().map(decision).collect()
    }

    #[test]
    fn one_topic_steps_back_at_once() {
        let found = decisions(&mut laps(1), &[(0, 5), (0, 100), (0, 95), (0, 20), (0, 25)]);
        assert_eq!(found, [None, None, None, Some(LapDecision::Wait), Some(LapDecision::NewLap)]);
    }

    #[test]
    fn one_message_that_steps_back_is_late() {
        let found = decisions(&mut laps(1), &[(0, 5), (0, 100), (0, 20), (0, 101), (0, 30), (0, 102)]);
        let late = [Some(LapDecision::Wait), Some(LapDecision::Late)];
        assert_eq!(found[2..], [late, late].concat());
    }

    #[test]
    fn all_topics_step_back_together() {
        let found = decisions(&mut laps(3), &[(0, 100), (1, 100), (0, 1), (1, 2)]);
        assert_eq!(found, [None, None, Some(LapDecision::Wait), Some(LapDecision::NewLap)]);
    }

    #[test]
    fn one_topic_that_steps_back_alone_is_late() {
        let messages = [(0, 100), (1, 100), (0, 1), (1, 101), (0, 2), (1, 102)];
        let found = decisions(&mut laps(2), &messages);
        assert_eq!(found, [None, None, Some(LapDecision::Wait), Some(LapDecision::Late), None, None]);
    }

    #[test]
    fn silent_topics_do_not_hold_up_a_new_lap() {
        let messages = [(0, 100), (1, 90), (0, 1), (0, 5), (0, 11)];
        let found = decisions(&mut laps(2), &messages);
        assert_eq!(found[2..], [Some(LapDecision::Wait), Some(LapDecision::Wait), Some(LapDecision::NewLap)]);
    }
}
