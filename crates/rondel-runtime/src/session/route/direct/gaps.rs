//! Missed messages and missed time.

use rondel_engine::{SeenAgain, UnseenFrom};
use rondel_event::{Timestamp, TopicId};
use rondel_spec::{Property, TimeModel};

use super::Direct;
use crate::session::Shared;
use crate::session::gaps::pause::Missed;
use crate::session::gaps::restart::Absence;
use crate::session::gaps::returning::Returning;
use crate::session::snapshot::saved::Known;
use crate::time::GRACE;
use crate::time::clock::Ticks;

/// Messages and time missed before the next event.
pub(super) struct Gaps {
    /// The topics of which messages are missing before the next event.
    pub(super) topics: Vec<TopicId>,
    /// Number of messages up to the last one before them.
    pub(super) before: u64,
    /// Messages and time missed before the first message after a restart.
    pub(super) absence: Option<Box<Absence>>,
    /// The first messages after a pause.
    pub(super) returning: Option<Box<Returning>>,
}

impl Gaps {
    /// The gaps of a snapshot.
    pub(super) fn new(known: &Known) -> Gaps {
        let (topics, before) = &known.unseen;
        let topics = topics.iter().map(|topic| TopicId(*topic)).collect();
        Gaps { topics, before: *before, absence: None, returning: None }
    }

    /// The missed topics for a snapshot.
    pub(super) fn saved(&self) -> (Vec<u32>, u64) {
        (self.topics.iter().map(|topic| topic.0).collect(), self.before)
    }

    /// Records that messages of these topics are missing before the next event.
    pub(super) fn add(&mut self, topics: &[TopicId], before: u64) {
        self.before = if self.topics.is_empty() { before } else { self.before.min(before) };
        self.topics.extend(topics);
    }
}

impl Direct {
    /// Records that messages of these topics were missed between the last event and the next, whose time is not known
    /// yet.
    pub(in crate::session) fn unseen(&mut self, topics: &[TopicId], now: Timestamp, shared: &mut Shared) {
        if topics.iter().all(|topic| self.gaps.topics.contains(topic)) {
            return;
        }
        self.settle(shared);
        let before = self.monitor.counted();
        self.miss(topics, before, SeenAgain::Now(now), shared);
        self.gaps.add(topics, before);
    }

    /// Reports the properties that depend on a message that cannot be read, and are evaluated at events only.
    #[cold]
    pub(in crate::session) fn withhold_until_event(&mut self, shared: &mut Shared) {
        self.settle(shared);
        if !self.monitor.withhold_until_event(self.time).is_empty() {
            self.take(None, shared);
        }
    }

    /// Records that messages of these topics were missed; `before` is the number of messages up to the last one before
    /// the span.
    pub(in crate::session) fn miss(
        &mut self,
        topics: &[TopicId],
        before: u64,
        until: SeenAgain,
        shared: &mut Shared,
    ) {
        self.settle(shared);
        let has_seen = |property: u32| !shared.joins(property);
        self.monitor.miss_for(topics, (UnseenFrom::Count(before), until), has_seen);
        self.take(None, shared);
    }

    /// Heartbeat before the events of the block are evaluated: records a pause. Returns whether there was one.
    #[inline]
    pub(super) fn beat(&mut self, ticks: Option<Ticks>, shared: &mut Shared) -> bool {
        let missed =
            ticks.and_then(|ticks| shared.beat(ticks, self.timing.is_by_arrival.then(|| self.last())));
        if let Some(missed) = &missed {
            self.pause(missed, shared);
        }
        missed.is_some()
    }

    /// Records a pause of the session or a step of the day's clock, before any later message is evaluated.
    #[cold]
    pub(in crate::session) fn pause(&mut self, missed: &Missed, shared: &mut Shared) {
        self.settle(shared);
        let (from, until) = if self.timing.is_by_arrival || missed.is_empty {
            if let Some(clock) = self.clock.as_mut().filter(|_| missed.is_empty) {
                clock.stand(missed.lasted().saturating_add(GRACE));
            }
            let again = self.wait_for_return(missed).unwrap_or_else(|| missed.again(&self.block));
            (missed.from, again)
        } else {
            // Without times of arrival, the day's clock decides nothing.
            let Some((last, now)) = missed.ticks else { return };
            let shown = |ticks| self.clock.and_then(|clock| clock.at(ticks));
            let (before, after) = (shown(last), shown(now));
            if let Some(clock) = &mut self.clock {
                clock.stand(missed.lasted().saturating_add(GRACE));
            }
            if !self.timing.reads_arrivals {
                return;
            }
            // The transport delay of waiting messages is unknown.
            let latest = Timestamp::from_nanos(self.time.as_nanos().saturating_add(missed.lasted()));
            (before.unwrap_or(self.time), SeenAgain::After(after.unwrap_or(latest)))
        };
        if !shared.heartbeat.withholds {
            return;
        }
        let topics = self.topics();
        self.miss_time(&topics, UnseenFrom::Time(from), until, shared);
    }

    /// Records that the day's clock has caught up with the time it had shown before it was set back.
    #[cold]
    pub(in crate::session) fn catch_up(&mut self, shared: &mut Shared) {
        self.settle(shared);
        let (last, shown) = self.times(shared);
        let again = [last, shown, shared.clock.now()].into_iter().max();
        self.monitor.see(&self.topics(), SeenAgain::At(again.unwrap_or(last)));
    }

    /// After a pause in which messages waited: defers the decision from when on messages are received again, if time
    /// matters.
    fn wait_for_return(&mut self, missed: &Missed) -> Option<SeenAgain> {
        self.clock.as_ref()?;
        let (until, now) = missed.return_of(&self.block)?;
        let topics = self.specification.spec.topics.len();
        self.gaps.returning = Returning::after(missed.lasted(), until, now, topics).map(Box::new);
        self.gaps.returning.as_ref().map(|_| SeenAgain::Open)
    }

    /// Records the messages of the block, and decides from when on messages are received again once that is due.
    #[cold]
    pub(super) fn return_by(&mut self, now: Ticks) {
        if let Some(returning) = &mut self.gaps.returning {
            returning.see(&self.block);
        }
        // It reports nothing: those of the last call were taken.
        if let Some(returning) = self.gaps.returning.take_if(|returning| returning.due <= now) {
            returning.end(&mut self.monitor, false);
        }
    }

    /// Decides now from when on messages are received again, since no later call would.
    pub(in crate::session) fn return_now(&mut self) {
        if let Some(returning) = self.gaps.returning.take() {
            returning.end(&mut self.monitor, true);
        }
    }

    fn topics(&self) -> Vec<TopicId> {
        (0..self.specification.spec.topics.len() as u32).map(TopicId).collect()
    }

    /// Records that messages of these topics come late, which matters to properties that measure time.
    fn miss_time(&mut self, topics: &[TopicId], from: UnseenFrom, until: SeenAgain, shared: &mut Shared) {
        let properties = &self.specification.spec.properties;
        let is_meant = |property: u32| {
            let measures =
                |property: &Property| self.timing.reads_arrivals || property.time != TimeModel::Steps;
            !shared.joins(property) && properties.get(property as usize).is_none_or(measures)
        };
        self.monitor.miss_for(topics, (from, until), is_meant);
        shared.omit_span(&self.monitor, from);
        self.take(None, shared);
    }

    /// Records the messages and time missed before the first message that follows.
    pub(in crate::session) fn absent(&mut self, absence: Absence, is_by_arrival: bool, shared: &mut Shared) {
        self.settle(shared);
        self.timing.is_by_arrival |= is_by_arrival;
        let from = UnseenFrom::Count(self.monitor.counted());
        self.miss(&absence.lost, self.monitor.counted(), SeenAgain::Open, shared);
        if self.timing.is_by_arrival || self.timing.reads_arrivals {
            self.miss_time(&absence.late, from, SeenAgain::Open, shared);
        }
        self.gaps.absence = Some(Box::new(absence));
    }

    /// Ends an absence with the first message after it.
    #[cold]
    pub(super) fn return_from(&mut self, absence: &Absence) {
        let first = self.block.time(0);
        let again = if self.timing.is_measured || self.timing.reads_arrivals {
            absence.again(first, self.timing.reads_arrivals && !self.timing.is_by_arrival)
        } else {
            SeenAgain::Now(first)
        };
        self.monitor.see(&self.topics(), again);
    }
}
