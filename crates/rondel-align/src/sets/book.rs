use std::collections::VecDeque;

use rondel_event::{Timestamp, TopicId};
use serde::{Deserialize, Serialize};

use super::saved::{SavedBook, item, plain};

/// So many notices are kept for a driver that does not take them; further ones are only counted.
const NOTICES: usize = 10_000;

/// Why an item is in no set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unused {
    /// A set of a later stamp was complete before this one.
    Older,
    /// Another item with the same stamp on the same topic took its place.
    Replaced,
    /// More waited than the queue may hold.
    QueueFull,
    /// It is further from the latest of the other topics than the greatest interval.
    Interval,
    /// The topic that is furthest ahead had lost items to its queue, so what would have matched
    /// may be among them.
    AfterLoss,
    /// A better set was found without it.
    Worse,
    /// The other topics had nothing close enough.
    NoMatch,
    /// A later item of the topic came before a set did.
    Superseded,
    /// Nothing more came.
    End,
    /// Its stamp is too far after the clock.
    Ahead,
    /// Its stamp is too far before the clock.
    Behind,
}

impl Unused {
    /// All reasons there are.
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

    /// A short name, for a metric.
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

/// Something to report about sets. All durations are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetNotice {
    /// An item leaves without having been in a set.
    Unused {
        /// Its topic.
        topic: TopicId,
        /// Its stamp.
        time: Timestamp,
        /// The reason.
        why: Unused,
    },
    /// Nothing came on a topic for its `absent_after`, so no set can be complete.
    Absent {
        /// The topic.
        topic: TopicId,
        /// When something came on it last; before that, on any topic.
        since: Timestamp,
        /// Whether anything ever came on it.
        ever: bool,
    },
    /// Something came on a topic that was absent.
    Returned {
        /// The topic.
        topic: TopicId,
        /// How long nothing came.
        after: u64,
    },
    /// The stamp of an item is before that of the item before it on its topic.
    SteppedBack {
        /// The topic.
        topic: TopicId,
        /// The stamp.
        time: Timestamp,
        /// The stamp before.
        last: Timestamp,
    },
    /// Two items of a topic are closer than its lower bound, so that sets may be given too early.
    TooClose {
        /// The topic.
        topic: TopicId,
        /// The stamp.
        time: Timestamp,
        /// The stamp before.
        last: Timestamp,
    },
    /// The clock stepped back. Its highest reading so far counts. Told again only if it is further
    /// back.
    ClockBack {
        /// Its reading.
        now: Timestamp,
        /// The highest so far.
        highest: Timestamp,
    },
    /// An item of a topic that there is not: it is lost.
    UnknownTopic {
        /// The topic.
        topic: TopicId,
    },
    /// So many notices were not kept, because nobody took them.
    Unsaid {
        /// How many.
        count: u64,
    },
}

/// What is known of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetTime {
    /// Its latest stamp, when all of it was so. With `latest` the stamp of the item that fired it.
    pub time: Timestamp,
    /// By how many nanoseconds it is before a set that was given earlier: stamps went back.
    pub tardy: Option<u64>,
}

/// What happened to the items of a topic. Each received item is either used, unused or waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetTopicStatistics {
    /// How many came.
    pub received: u64,
    /// How many were in a set.
    pub used: u64,
    /// How many left without, by reason, in the order of [`Unused::ALL`].
    pub unused: [u64; Unused::ALL.len()],
    /// How many had a stamp before that of their predecessor.
    pub stepped_back: u64,
    /// How many came closer to their predecessor than the lower bound of the topic.
    pub too_close: u64,
    /// The least distance of a stamp from the one before, in nanoseconds: the lower bound that
    /// would have held.
    pub closest: Option<u64>,
    /// How often the topic was absent.
    pub absences: u64,
    /// Whether it is now.
    pub absent: bool,
}

impl SetTopicStatistics {
    /// How many left without having been in a set.
    pub fn unused(&self) -> u64 {
        self.unused.iter().sum()
    }

    /// How many wait for a set.
    pub fn waiting(&self) -> u64 {
        self.received.saturating_sub(self.used).saturating_sub(self.unused())
    }
}

/// What has been counted. All durations are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetStatistics {
    /// How many sets there were.
    pub sets: u64,
    /// How many of them were before one that was given earlier.
    pub tardy: u64,
    /// How far the clock stepped back at most.
    pub clock_back: u64,
    /// How many items were of no known topic.
    pub unknown: u64,
    /// By topic.
    pub topics: Vec<SetTopicStatistics>,
}

impl SetStatistics {
    /// Whether they can have come about.
    fn may_be(&self) -> bool {
        let of_topic = |topic: &SetTopicStatistics| {
            [topic.received, topic.used, topic.stepped_back, topic.too_close, topic.absences]
                .into_iter()
                .chain(topic.unused)
                .all(|count| count < IMPOSSIBLE)
        };
        let all = [self.sets, self.tardy, self.unknown];
        all.into_iter().all(|count| count < IMPOSSIBLE) && self.topics.iter().all(of_topic)
    }
}

/// Nothing has ever been counted so often, even after others were added to it.
const IMPOSSIBLE: u64 = 1 << 56;

/// Where sets, notices and counts go, whatever the policy.
#[derive(Clone, Debug)]
pub(super) struct Book<T> {
    statistics: SetStatistics,
    notices: VecDeque<SetNotice>,
    unsaid: u64,
    /// The items of the sets that wait to be taken, one after the other.
    items: VecDeque<(Timestamp, T)>,
    sets: VecDeque<SetTime>,
    /// The latest time of a set so far.
    latest: Option<Timestamp>,
}

impl<T> Book<T> {
    pub(super) fn new(topics: usize) -> Book<T> {
        Book {
            statistics: SetStatistics { topics: vec![Default::default(); topics], ..Default::default() },
            notices: VecDeque::new(),
            unsaid: 0,
            items: VecDeque::new(),
            sets: VecDeque::new(),
            latest: None,
        }
    }

    /// For a snapshot: all but the notices.
    pub(super) fn saved(&self, write: &mut dyn FnMut(&T) -> Vec<u8>) -> SavedBook {
        let topics = self.statistics.topics.len();
        let mut items = self.items.iter();
        let set = |set: &SetTime| {
            let items = items.by_ref().take(topics).map(|one| plain(one, write)).collect();
            (set.time.as_nanos(), set.tardy, items)
        };
        SavedBook {
            sets: self.sets.iter().map(set).collect(),
            latest: self.latest.map(Timestamp::as_nanos),
            statistics: self.statistics.clone(),
        }
    }

    /// Takes over what was saved, if it can be that.
    pub(super) fn restore(
        &mut self,
        saved: SavedBook,
        read: &mut dyn FnMut(&[u8]) -> Option<T>,
    ) -> Option<()> {
        let SavedBook { statistics, sets, latest } = saved;
        let topics = self.statistics.topics.len();
        if statistics.topics.len() != topics || !statistics.may_be() {
            return None;
        }
        self.statistics = statistics;
        self.latest = latest.map(Timestamp::from_nanos);
        for (time, tardy, items) in sets {
            if items.len() != topics {
                return None;
            }
            for one in &items {
                self.items.push_back(item(one, read)?);
            }
            self.sets.push_back(SetTime { time: Timestamp::from_nanos(time), tardy });
        }
        Some(())
    }

    fn notice(&mut self, notice: SetNotice) {
        if self.notices.len() < NOTICES {
            self.notices.push_back(notice);
        } else {
            self.unsaid += 1;
        }
    }

    pub(super) fn notices(&mut self) -> impl Iterator<Item = SetNotice> + '_ {
        let unsaid = std::mem::take(&mut self.unsaid);
        let unsaid = (unsaid > 0).then_some(SetNotice::Unsaid { count: unsaid });
        self.notices.drain(..).chain(unsaid)
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

    /// An item was received after one with the stamp `last`.
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

    /// An item of the set that [`Book::set`] finishes; they come in the order of the topics.
    pub(super) fn item(&mut self, topic: usize, time: Timestamp, item: T) {
        self.statistics.topics[topic].used += 1;
        self.items.push_back((time, item));
    }

    /// An item that may have been in a set before.
    pub(super) fn item_again(&mut self, topic: usize, time: Timestamp, item: T, again: bool) {
        self.statistics.topics[topic].used += u64::from(!again);
        self.items.push_back((time, item));
    }

    /// The items since the last set are one.
    pub(super) fn set(&mut self, time: Timestamp) {
        let tardy = self.latest.filter(|&latest| time < latest);
        let tardy = tardy.map(|latest| latest.as_nanos().abs_diff(time.as_nanos()));
        self.latest = self.latest.max(Some(time));
        self.statistics.sets += 1;
        self.statistics.tardy += u64::from(tardy.is_some());
        self.sets.push_back(SetTime { time, tardy });
    }

    pub(super) fn pop(&mut self, into: &mut Vec<(Timestamp, T)>) -> Option<SetTime> {
        into.clear();
        let set = self.sets.pop_front()?;
        into.extend(self.items.drain(..self.statistics.topics.len().min(self.items.len())));
        Some(set)
    }
}
