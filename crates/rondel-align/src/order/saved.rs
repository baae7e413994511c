//! Snapshots of an order. Derived state, such as the trees, and the settings are not saved.

use rondel_event::{Timestamp, TopicId};
use serde::{Deserialize, Serialize};

use super::delays::{Delays, IMPOSSIBLE};
use super::frontier::{ENDLESS, Frontiers};
use super::markers::Markers;
use super::origins::SequenceNumbers;
use super::queue::Queue;
use super::topic::OrderTopic;
use super::tree::{Position, PositionTree};
use super::{Lateness, MaxWait, Order, OrderSettings, OrderStatistics, Released, TopicOrder};
use crate::saved::{fingerprint, open, seal};
use rondel_event::SnapshotError;
use rondel_event::snapshot::Kind;

const ORDER: &Kind = b"RONDELor";

/// Settings of every topic that is not in play: an order ignores its own ones.
const OUT_OF_PLAY: TopicOrder =
    TopicOrder { max_wait: MaxWait::None, absent_after: None, fifo: true, in_play: false };

/// Returns the fingerprint of the settings that affect the result.
fn settings_fingerprint(settings: &OrderSettings) -> u64 {
    let topics = settings.topics.iter().map(|topic| if topic.in_play { *topic } else { OUT_OF_PLAY });
    fingerprint(&format!("{:?}", OrderSettings { topics: topics.collect(), ..settings.clone() }))
}

#[derive(Serialize, Deserialize)]
struct SavedOrder {
    now: i64,
    started: bool,
    reached: Position,
    clock_back: u64,
    topics: Vec<SavedTopic>,
    out: Vec<SavedReleased>,
    /// Late events that were dropped: topic, time, time reached, and the number of events released before.
    dropped: Vec<(u32, i64, i64, u64)>,
}

/// State of a topic, with serialised items.
#[derive(Serialize, Deserialize)]
pub(super) struct SavedTopic {
    /// The wait, used if it is estimated.
    wait: i64,
    pub(super) queue: Queue<Vec<u8>>,
    pub(super) latest: Option<i64>,
    pub(super) fifo: bool,
    pub(super) stepped_back: bool,
    pub(super) markers: Markers,
    pub(super) origins: SequenceNumbers,
    pub(super) passed: Option<i64>,
    pub(super) absent: bool,
    pub(super) last_seen: i64,
    pub(super) ever: bool,
    pub(super) delays: Delays,
    pub(super) excesses: Delays,
    pub(super) sufficient_wait: Option<u64>,
    pub(super) counts: OrderStatistics,
}

/// A released event that was not popped yet.
#[derive(Serialize, Deserialize)]
struct SavedReleased {
    topic: u32,
    time: i64,
    /// Fields of the [`Lateness`] of a late event.
    lateness: Option<(i64, u64, bool)>,
    item: Vec<u8>,
}

impl<T> Order<T> {
    /// Returns a snapshot of the state with all waiting events; `write` serialises an item. An order
    /// [restored](Order::restore) from it continues like this one. Notices that were not taken are not included.
    pub fn snapshot(&self, mut write: impl FnMut(&T, &mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = |item: &T| {
            let mut bytes = Vec::new();
            write(item, &mut bytes);
            bytes
        };
        let topics = self.saved_topics(&mut bytes);
        let out = self.out.iter().map(|released| SavedReleased {
            topic: released.topic.0,
            time: released.time.as_nanos(),
            lateness: released.lateness.map(|late| (late.stamp.as_nanos(), late.excess, late.inconclusive)),
            item: bytes(&released.item),
        });
        let saved = SavedOrder {
            now: self.now,
            started: self.started,
            reached: self.reached,
            clock_back: self.clock_back,
            out: out.collect(),
            dropped: (self.dropped.iter())
                .map(|(topic, time, reached, before)| {
                    (topic.0, time.as_nanos(), reached.as_nanos(), before.saturating_sub(self.popped))
                })
                .collect(),
            topics,
        };
        seal(ORDER, settings_fingerprint(&self.settings), &saved)
    }

    /// Restores an order from a snapshot; `read` deserialises an item.
    ///
    /// # Errors
    /// [`SnapshotError`] if the bytes are not a complete snapshot or belong to other settings.
    pub fn restore(
        settings: OrderSettings,
        bytes: &[u8],
        read: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<Order<T>, SnapshotError> {
        Order::new(settings).restored(bytes, read)
    }

    /// Restores this new order, with its settings, from a snapshot.
    ///
    /// # Errors
    /// Those of [`Order::restore`].
    pub fn restored(
        mut self,
        bytes: &[u8],
        mut read: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<Order<T>, SnapshotError> {
        let saved: SavedOrder = open(ORDER, settings_fingerprint(&self.settings), bytes)?;
        self.take_over(saved, &mut read).ok_or(SnapshotError::Altered)?;
        Ok(self)
    }

    /// Restores this new order from a snapshot of one with other topics: `topics` maps each topic there to the one
    /// here. Further topics begin as in a new order; waiting events of topics without a counterpart are dropped.
    ///
    /// # Errors
    /// Those of [`Order::restore`]; also if a topic that was in play has other settings here, or none.
    pub fn rearranged(
        mut self,
        bytes: &[u8],
        topics: &[Option<TopicId>],
        mut read: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<Order<T>, SnapshotError> {
        let own = |topic: &Option<TopicId>| self.settings.topics.get((*topic)?.index()).copied();
        let before = topics.iter().map(|topic| own(topic).unwrap_or(OUT_OF_PLAY)).collect();
        let before = OrderSettings { topics: before, ..self.settings.clone() };
        let saved: SavedOrder = open(ORDER, settings_fingerprint(&before), bytes)?;
        let saved = self.moved(saved, topics).ok_or(SnapshotError::Altered)?;
        self.take_over(saved, &mut read).ok_or(SnapshotError::Altered)?;
        Ok(self)
    }

    /// Returns the saved state with the topics of this order.
    fn moved(&self, saved: SavedOrder, topics: &[Option<TopicId>]) -> Option<SavedOrder> {
        if saved.topics.len() != topics.len() {
            return None;
        }
        let blank = Order::<Vec<u8>>::new(self.settings.clone()).saved_topics(Vec::clone);
        let mut moved = SavedOrder { topics: blank, reached: saved.reached.moved(topics), ..saved };
        for (topic, own) in saved.topics.into_iter().zip(topics) {
            if let Some(place) = own.and_then(|own| moved.topics.get_mut(own.index())) {
                *place = topic;
            }
        }
        let of = |topic: u32| topics.get(topic as usize).copied().flatten().map(|topic| topic.0);
        moved.out.retain_mut(|released| of(released.topic).map(|topic| released.topic = topic).is_some());
        moved.dropped.retain_mut(|dropped| of(dropped.0).map(|topic| dropped.0 = topic).is_some());
        Some(moved)
    }

    /// Returns the states of the topics with their waiting events.
    fn saved_topics(&self, mut bytes: impl FnMut(&T) -> Vec<u8>) -> Vec<SavedTopic> {
        // Never `None`: serialising an item cannot fail.
        let topics = self.topics.iter().enumerate().filter_map(|(i, topic)| {
            let queue = topic.queue.map(|item| Some(bytes(item)))?;
            Some(topic.saved(self.frontiers.wait(i), queue))
        });
        topics.collect()
    }

    fn take_over(&mut self, saved: SavedOrder, read: &mut dyn FnMut(&[u8]) -> Option<T>) -> Option<()> {
        let SavedOrder { now, started, reached, clock_back, topics, out, dropped } = saved;
        let at = Timestamp::from_nanos;
        let dropped = dropped.into_iter().filter(|(topic, ..)| (*topic as usize) < self.topics.len());
        self.dropped = dropped
            .map(|(topic, time, reached, before)| (TopicId(topic), at(time), at(reached), before))
            .collect();
        (self.now, self.started, self.reached, self.clock_back) = (now, started, reached, clock_back);
        if topics.len() != self.topics.len() {
            return None;
        }
        let mut waits = Vec::with_capacity(topics.len());
        for (own, saved) in self.topics.iter_mut().zip(topics) {
            let is_estimated = matches!(own.max_wait, MaxWait::Estimated { .. });
            waits.push(if is_estimated { saved.wait.clamp(0, ENDLESS - 1) } else { own.first_wait() });
            let queue = saved.queue.map(|item| read(item))?;
            own.restore(saved, queue)?;
        }
        self.frontiers = Frontiers::new(waits.into_iter());
        self.absences = PositionTree::new(self.topics.len());
        for i in 0..self.topics.len() {
            self.set_frontier(i);
            let here = &self.topics[i];
            self.heads.set(i, here.queue.first().map_or(Position::NEVER, |time| Position::event(time, i)));
            self.waiting += here.queue.len();
            here.queue.items().for_each(|item| self.weight.add(item));
            self.absent += usize::from(here.absent && here.in_play);
        }
        self.set_absences();
        for SavedReleased { topic, time, lateness, item } in out {
            self.topics.get(topic as usize)?;
            let at = Timestamp::from_nanos;
            let lateness = lateness.map(|(stamp, excess, inconclusive)| Lateness {
                stamp: at(stamp),
                excess,
                inconclusive,
            });
            let item = read(&item)?;
            self.out.push_back(Released { topic: TopicId(topic), time: at(time), lateness, item });
        }
        Some(())
    }

    /// Advances the clock to `now` after a gap without a subscription: releases the events whose wait is over, but the
    /// gap does not count towards the absence of topics.
    pub fn advance_after_gap(&mut self, now: Timestamp) {
        let gap = now.as_nanos().saturating_sub(self.now);
        if self.started && gap > 0 {
            for topic in self.topics.iter_mut().filter(|topic| !topic.absent) {
                topic.last_seen = topic.last_seen.saturating_add(gap);
            }
            self.set_absences();
        }
        self.advance(now);
    }

    /// Sets the time at which each topic becomes absent.
    fn set_absences(&mut self) {
        for (i, topic) in self.topics.iter().enumerate() {
            let is_plausible = self.started && topic.absent_after.is_some() && !topic.absent;
            let position = if is_plausible { Position::event(topic.absent_at(), i) } else { Position::NEVER };
            self.absences.set(i, position);
        }
    }
}

impl<T> OrderTopic<T> {
    fn saved(&self, wait: i64, queue: Queue<Vec<u8>>) -> SavedTopic {
        let (excesses, sufficient_wait) = self.missed();
        SavedTopic {
            wait,
            queue,
            latest: self.latest,
            fifo: self.fifo,
            stepped_back: self.stepped_back,
            markers: self.markers.clone(),
            origins: self.origins.clone(),
            passed: self.passed,
            absent: self.absent,
            last_seen: self.last_seen,
            ever: self.ever,
            delays: self.delays.clone(),
            excesses: excesses.clone(),
            sufficient_wait,
            counts: self.counts,
        }
    }

    fn restore(&mut self, saved: SavedTopic, queue: Queue<T>) -> Option<()> {
        let counts = &saved.counts;
        let counted = [
            counts.received,
            counts.released,
            counts.guessed,
            counts.early,
            counts.late,
            counts.dropped,
            counts.duplicates,
            counts.refused,
            counts.stepped_back,
            counts.markers,
            counts.broken,
        ];
        let is_plausible = counted.iter().all(|count| *count < IMPOSSIBLE)
            && saved.markers.is_plausible()
            && saved.origins.is_plausible()
            && saved.delays.is_plausible()
            && saved.excesses.is_plausible();
        if !is_plausible {
            return None;
        }
        self.take_over(saved, queue);
        Some(())
    }
}
