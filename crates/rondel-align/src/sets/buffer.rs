//! The set buffer: output, notices and statistics of all policies.

use std::collections::VecDeque;

use rondel_event::{Timestamp, TopicId};
use serde::{Deserialize, Serialize};

use super::saved::{SavedSetBuffer, restore_item, save_item};
use crate::weight::Weight;

/// Limit of notices kept until they are taken; further ones are only counted.
const NOTICES: usize = 10_000;

/// Reason why an item is in no set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unused {
    /// A set with a later stamp was complete first.
    Older,
    /// Another item with the same stamp arrived on the same topic.
    Replaced,
    /// The queue was full.
    QueueFull,
    /// Its distance from the latest item of the other topics exceeds the maximum interval.
    Interval,
    /// The matching item may be among those that the topic furthest ahead dropped from its full queue.
    AfterLoss,
    /// A better set was found without it.
    Worse,
    /// The other topics had no item close enough.
    NoMatch,
    /// A later item of the topic arrived before a set was complete.
    Superseded,
    /// The input ended.
    End,
    /// Its stamp was too far after the clock.
    Ahead,
    /// Its stamp was too far before the clock.
    Behind,
}

impl Unused {
    /// All reasons.
    pub const ALL: [Unused; 11] = [
        Unused::Older,
        Unused::Replaced,
        Unused::QueueFull,
        Unused::Interval,
        Unused::AfterLoss,
        Unused::Worse,
        Unused::NoMatch,
        Unused::Superseded,
        Unused::End,
        Unused::Ahead,
        Unused::Behind,
    ];

    /// Returns a short name, for a metric.
    pub fn name(self) -> &'static str {
        match self {
            Unused::Older => "older",
            Unused::Replaced => "replaced",
            Unused::QueueFull => "queue_full",
            Unused::Interval => "interval",
            Unused::AfterLoss => "after_loss",
            Unused::Worse => "worse",
            Unused::NoMatch => "no_match",
            Unused::Superseded => "superseded",
            Unused::End => "end",
            Unused::Ahead => "ahead",
            Unused::Behind => "behind",
        }
    }
}

/// Notice about items, topics or the clock. All durations are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetNotice {
    /// An item was discarded without having been in a set.
    Unused {
        /// Topic of the item.
        topic: TopicId,
        /// Stamp of the item.
        time: Timestamp,
        /// Reason.
        why: Unused,
    },
    /// A topic received nothing for its `absent_after`, so no set can be complete.
    Absent {
        /// The topic.
        topic: TopicId,
        /// Time of its last item; if there was none, of the first item of any topic.
        since: Timestamp,
        /// Whether it ever received an item.
        ever: bool,
    },
    /// An absent topic received an item.
    Returned {
        /// The topic.
        topic: TopicId,
        /// Duration without items.
        after: u64,
    },
    /// The stamp of an item is before that of its predecessor on the topic.
    SteppedBack {
        /// The topic.
        topic: TopicId,
        /// Stamp of the item.
        time: Timestamp,
        /// Stamp of its predecessor.
        last: Timestamp,
    },
    /// Two items of a topic are closer than its lower bound, so that sets may be emitted too early.
    TooClose {
        /// The topic.
        topic: TopicId,
        /// Stamp of the item.
        time: Timestamp,
        /// Stamp of its predecessor.
        last: Timestamp,
    },
    /// The clock stepped back, further than ever before. Its highest reading is used instead.
    ClockBack {
        /// Current reading.
        now: Timestamp,
        /// Highest reading so far.
        highest: Timestamp,
    },
    /// An item of an unknown topic was discarded.
    UnknownTopic {
        /// The topic.
        topic: TopicId,
    },
    /// Notices were discarded because too many waited to be taken.
    Omitted {
        /// Number of discarded notices.
        count: u64,
    },
}

/// Time of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetTime {
    /// The latest stamp of its items; with the policy `Latest` the stamp of the item that triggered it.
    pub time: Timestamp,
    /// For a late set, one that is before an earlier emitted set because stamps stepped back: its lateness
    /// in nanoseconds.
    pub lateness: Option<u64>,
}

/// Statistics of the items of a topic. Each received item is either used, unused or waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetTopicStatistics {
    /// Number of received items.
    pub received: u64,
    /// Number of items that were in a set.
    pub used: u64,
    /// Number of items discarded without having been in a set, by reason, in the order of [`Unused::ALL`].
    pub unused: [u64; Unused::ALL.len()],
    /// Number of items with a stamp before that of their predecessor.
    pub stepped_back: u64,
    /// Number of items closer to their predecessor than the topic's lower bound.
    pub too_close: u64,
    /// Minimum distance between the stamps of successive items, in nanoseconds: the largest lower bound
    /// that would have held.
    pub closest: Option<u64>,
    /// Number of absences of the topic.
    pub absences: u64,
    /// Whether the topic is absent.
    pub absent: bool,
}

impl SetTopicStatistics {
    /// Returns the number of items discarded without having been in a set.
    pub fn unused(&self) -> u64 {
        self.unused.iter().sum()
    }

    /// Returns the number of items that wait for a set.
    pub fn waiting(&self) -> u64 {
        self.received.saturating_sub(self.used).saturating_sub(self.unused())
    }
}

/// Statistics of sets. All durations are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetStatistics {
    /// Number of sets.
    pub sets: u64,
    /// Number of late sets, which are before an earlier emitted set.
    pub late: u64,
    /// Largest step back of the clock.
    pub clock_back: u64,
    /// Number of items of unknown topics.
    pub unknown: u64,
    /// Statistics of each topic.
    pub topics: Vec<SetTopicStatistics>,
}

impl SetStatistics {
    /// Whether the counts are plausible: a snapshot may contain any numbers.
    fn is_plausible(&self) -> bool {
        let of_topic = |topic: &SetTopicStatistics| {
            [topic.received, topic.used, topic.stepped_back, topic.too_close, topic.absences]
                .into_iter()
                .chain(topic.unused)
                .all(|count| count < IMPOSSIBLE)
        };
        let all = [self.sets, self.late, self.unknown];
        all.into_iter().all(|count| count < IMPOSSIBLE) && self.topics.iter().all(of_topic)
    }
}

/// Counts from here on are refused in a snapshot, so that adding to them cannot overflow.
const IMPOSSIBLE: u64 = 1 << 56;

/// Buffer of emitted sets and notices, with the statistics; used by all policies.
#[derive(Clone, Debug)]
pub(super) struct SetBuffer<T> {
    statistics: SetStatistics,
    notices: VecDeque<SetNotice>,
    discarded: u64,
    /// Items of the emitted sets that were not taken yet, one set after the other.
    items: VecDeque<(Timestamp, T)>,
    sets: VecDeque<SetTime>,
    /// Latest time of a set so far.
    latest: Option<Timestamp>,
    /// The bytes of the items that wait in the policy.
    pub(super) weight: Weight<T>,
}

impl<T> SetBuffer<T> {
    pub(super) fn new(topics: usize) -> SetBuffer<T> {
        SetBuffer {
            statistics: SetStatistics { topics: vec![Default::default(); topics], ..Default::default() },
            notices: VecDeque::new(),
            discarded: 0,
            items: VecDeque::new(),
            sets: VecDeque::new(),
            latest: None,
            weight: Weight::unlimited(),
        }
    }

    /// Returns the state for a snapshot: everything but the notices.
    pub(super) fn saved(&self, write: &mut dyn FnMut(&T) -> Vec<u8>) -> SavedSetBuffer {
        let topics = self.statistics.topics.len();
        let mut items = self.items.iter();
        let set = |set: &SetTime| {
            let items = items.by_ref().take(topics).map(|one| save_item(one, write)).collect();
            (set.time.as_nanos(), set.lateness, items)
        };
        SavedSetBuffer {
            sets: self.sets.iter().map(set).collect(),
            latest: self.latest.map(Timestamp::as_nanos),
            statistics: self.statistics.clone(),
        }
    }

    /// Restores a saved state; `None` if it is inconsistent.
    pub(super) fn restore(
        &mut self,
        saved: SavedSetBuffer,
        read: &mut dyn FnMut(&[u8]) -> Option<T>,
    ) -> Option<()> {
        let SavedSetBuffer { statistics, sets, latest } = saved;
        let topics = self.statistics.topics.len();
        if statistics.topics.len() != topics || !statistics.is_plausible() {
            return None;
        }
        self.statistics = statistics;
        self.latest = latest.map(Timestamp::from_nanos);
        for (time, lateness, items) in sets {
            if items.len() != topics {
                return None;
            }
            for one in &items {
                self.items.push_back(restore_item(one, read)?);
            }
            self.sets.push_back(SetTime { time: Timestamp::from_nanos(time), lateness });
        }
        Some(())
    }

    fn notice(&mut self, notice: SetNotice) {
        if self.notices.len() < NOTICES {
            self.notices.push_back(notice);
        } else {
            self.discarded += 1;
        }
    }

    pub(super) fn notices(&mut self) -> impl Iterator<Item = SetNotice> + '_ {
        let discarded = std::mem::take(&mut self.discarded);
        let discarded = (discarded > 0).then_some(SetNotice::Omitted { count: discarded });
        self.notices.drain(..).chain(discarded)
    }

    pub(super) fn statistics(&self) -> &SetStatistics {
        &self.statistics
    }

    pub(super) fn received(&mut self, topic: usize) {
        self.statistics.topics[topic].received += 1;
    }

    pub(super) fn unknown(&mut self, topic: TopicId) {
        self.statistics.unknown += 1;
        self.notice(SetNotice::UnknownTopic { topic });
    }

    /// Records the distance of an item from its predecessor, which has the stamp `last`.
    pub(super) fn distance(&mut self, topic: TopicId, time: Timestamp, last: Timestamp, bound: i64) {
        let statistics = &mut self.statistics.topics[topic.index()];
        let distance = time.as_nanos().saturating_sub(last.as_nanos());
        if distance < 0 {
            statistics.stepped_back += 1;
            self.notice(SetNotice::SteppedBack { topic, time, last });
            return;
        }
        let closest = statistics.closest.unwrap_or(u64::MAX);
        statistics.closest = Some(closest.min(distance as u64));
        if distance < bound {
            statistics.too_close += 1;
            self.notice(SetNotice::TooClose { topic, time, last });
        }
    }

    pub(super) fn absent(&mut self, topic: usize, since: Timestamp, ever: bool) {
        let statistics = &mut self.statistics.topics[topic];
        statistics.absences += 1;
        statistics.absent = true;
        self.notice(SetNotice::Absent { topic: TopicId(topic as u32), since, ever });
    }

    pub(super) fn returned(&mut self, topic: usize, after: u64) {
        self.statistics.topics[topic].absent = false;
        self.notice(SetNotice::Returned { topic: TopicId(topic as u32), after });
    }

    pub(super) fn clock_back(&mut self, now: Timestamp, highest: Timestamp) {
        let back = highest.as_nanos().abs_diff(now.as_nanos());
        if back > self.statistics.clock_back {
            self.statistics.clock_back = back;
            self.notice(SetNotice::ClockBack { now, highest });
        }
    }

    pub(super) fn unused(&mut self, topic: usize, time: Timestamp, why: Unused) {
        self.statistics.topics[topic].unused[why as usize] += 1;
        self.notice(SetNotice::Unused { topic: TopicId(topic as u32), time, why });
    }

    /// Adds an item of the next set, in the order of the topics; [`SetBuffer::set`] completes the set.
    pub(super) fn item(&mut self, topic: usize, time: Timestamp, item: T) {
        self.statistics.topics[topic].used += 1;
        self.weight.remove(&item);
        self.items.push_back((time, item));
    }

    /// Adds an item of the next set that may have been in a set before (`again`).
    pub(super) fn item_again(&mut self, topic: usize, time: Timestamp, item: T, again: bool) {
        self.statistics.topics[topic].used += u64::from(!again);
        self.items.push_back((time, item));
    }

    /// Completes a set from the items added since the last one.
    pub(super) fn set(&mut self, time: Timestamp) {
        let lateness = self.latest.filter(|&latest| time < latest);
        let lateness = lateness.map(|latest| latest.as_nanos().abs_diff(time.as_nanos()));
        self.latest = self.latest.max(Some(time));
        self.statistics.sets += 1;
        self.statistics.late += u64::from(lateness.is_some());
        self.sets.push_back(SetTime { time, lateness });
    }

    pub(super) fn pop(&mut self, into: &mut Vec<(Timestamp, T)>) -> Option<SetTime> {
        into.clear();
        let set = self.sets.pop_front()?;
        into.extend(self.items.drain(..self.statistics.topics.len().min(self.items.len())));
        Some(set)
    }
}
