//! Sets: one item of every topic, chosen by stamp, as the synchronizers of ROS do it, for any
//! number of topics.

mod book;
mod exact;
mod presence;

use std::time::Duration;

use rondel_event::{Timestamp, TopicId};

use book::Book;
use exact::Exact;
use presence::Presence;

pub use book::{SetNotice, SetStatistics, SetTime, SetTopicStatistics, Unused};

/// Which items make a set.
///
/// A `queue` limits how much may wait; 0 is no limit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SetPolicy {
    /// Items with equal stamps.
    Exact {
        /// How many stamps may wait for the rest of their set.
        queue: usize,
    },
    /// The sets that lie closest together; each item is used once.
    Approximate {
        /// How many items may wait on a topic.
        queue: usize,
        /// How much a set must be closer to be preferred to an earlier one, as a fraction of how
        /// much later it is.
        age_penalty: f64,
        /// A set may not be wider than this.
        max_interval: Option<Duration>,
        /// By topic: two stamps of this topic are never closer than this. With it a set need not
        /// wait for the next item of each topic. A topic without an entry has none.
        lower_bounds: Vec<Duration>,
    },
    /// The first items of all topics if they lie within `epsilon` of the oldest.
    Epsilon {
        /// The greatest width of a set.
        epsilon: Duration,
        /// How many items may wait on a topic while another has none.
        queue: usize,
    },
    /// The last item of each topic, whenever the fastest topic that is not late has one. Works on
    /// arrival times; an item may be used again.
    Latest {
        /// The weight of the newest period in the average of a topic's rate, 0 to 1.
        rate: f64,
        /// The weight of the newest difference in the average error of the rate, 0 to 1.
        error: f64,
        /// How many average errors a topic may be off before it is late, or before its rate is
        /// taken to have changed.
        margin: f64,
    },
}

impl SetPolicy {
    /// Closest sets, with the usual age penalty of 0.1 and no further limits.
    pub fn approximate(queue: usize) -> SetPolicy {
        SetPolicy::Approximate { queue, age_penalty: 0.1, max_interval: None, lower_bounds: Vec::new() }
    }

    /// Last items, with the usual weights.
    pub fn latest() -> SetPolicy {
        SetPolicy::Latest { rate: 0.9, error: 0.3, margin: 10.0 }
    }
}

/// What [`Sets`] needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct SetSettings {
    /// Which items make a set.
    pub policy: SetPolicy,
    /// How many topics there are: a set has an item of each.
    pub topics: usize,
    /// By topic: after so long without an item on the clock the topic is reported as absent. A
    /// topic without an entry is never.
    pub absent_after: Vec<Option<Duration>>,
}

/// Makes sets of items, one of every topic.
///
/// Every item that comes in leaves in a set, or with a [`SetNotice::Unused`] that says why not, and
/// the statistics count both. A set leaves as soon as it is certain; [`Sets::pop`] takes it.
///
/// ```
/// use rondel_engine::align::{SetPolicy, SetSettings, Sets};
/// use rondel_event::{Timestamp, TopicId};
///
/// let policy = SetPolicy::Exact { queue: 10 };
/// let mut sets = Sets::new(SetSettings { policy, topics: 2, absent_after: Vec::new() });
/// let at = Timestamp::from_nanos;
/// sets.push(TopicId(0), at(3), at(100), "left 3");
/// sets.push(TopicId(0), at(4), at(101), "left 4");
/// sets.push(TopicId(1), at(4), at(102), "right 4");
/// let mut set = Vec::new();
/// assert_eq!(sets.pop(&mut set).unwrap().time, at(4));
/// assert_eq!(set, [(at(4), "left 4"), (at(4), "right 4")]);
/// assert_eq!(sets.notices().count(), 1, "left 3 is in no set");
/// ```
#[derive(Clone, Debug)]
pub struct Sets<T> {
    /// The clock: the latest time that was told.
    now: Timestamp,
    presence: Presence,
    /// The stamp of the item before, by topic.
    before: Vec<Option<Timestamp>>,
    policy: Policy<T>,
    book: Book<T>,
}

#[derive(Clone, Debug)]
enum Policy<T> {
    Exact(Exact<T>),
}

impl<T: Clone> Sets<T> {
    /// Nothing has come yet.
    pub fn new(settings: SetSettings) -> Sets<T> {
        let topics = settings.topics;
        let policy = match settings.policy {
            SetPolicy::Exact { queue } => Policy::Exact(Exact::new(topics, queue)),
            _ => Policy::Exact(Exact::new(topics, 0)),
        };
        Sets {
            now: Timestamp::from_nanos(i64::MIN),
            presence: Presence::new(topics, &settings.absent_after),
            before: vec![None; topics],
            policy,
            book: Book::new(topics),
        }
    }

    /// An item of a topic with the stamp `time`, which came at `now`.
    ///
    /// Stamps of a topic may be equal or go back: the latter is counted and reported, and the item
    /// is treated like every other.
    pub fn push(&mut self, topic: TopicId, time: Timestamp, now: Timestamp, item: T) {
        let Some(before) = self.before.get_mut(topic.index()) else {
            self.book.unknown(topic);
            return;
        };
        let last = before.replace(time);
        self.advance(now);
        self.presence.seen(topic.index(), self.now, &mut self.book);
        self.book.received(topic.index());
        if let Some(last) = last.filter(|&last| time < last) {
            self.book.stepped_back(topic, time, last);
        }
        match &mut self.policy {
            Policy::Exact(exact) => exact.push(topic.index(), time, item, &mut self.book),
        }
    }

    /// It is `now`: reports the topics that are absent. A clock that goes back counts as standing.
    pub fn advance(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        self.presence.advance(self.now, &mut self.book);
    }

    /// Nothing more comes: gives the sets that were still waiting for something better, and
    /// reports the rest as unused.
    pub fn flush(&mut self) {
        match &mut self.policy {
            Policy::Exact(exact) => exact.flush(&mut self.book),
        }
    }

    /// Takes the next set: `into` becomes its items with their stamps, in the order of the topics.
    pub fn pop(&mut self, into: &mut Vec<(Timestamp, T)>) -> Option<SetTime> {
        self.book.pop(into)
    }

    /// Takes what there is to report.
    pub fn notices(&mut self) -> impl Iterator<Item = SetNotice> + '_ {
        self.book.notices()
    }

    /// A time by which to [`Sets::advance`], since a topic may be absent then. It may turn out not
    /// to be.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.presence.deadline()
    }

    /// What has been counted so far.
    pub fn statistics(&self) -> &SetStatistics {
        self.book.statistics()
    }
}
