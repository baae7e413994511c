//! Sets: one item of every topic, chosen by stamp, as the synchronizers of ROS do it, for any
//! number of topics.

mod approximate;
mod book;
mod earliest;
mod epsilon;
mod exact;
mod heads;
mod latest;
mod presence;
mod saved;

use rondel_event::{Timestamp, TopicId};

use approximate::Approximate;
use book::Book;
use epsilon::Epsilon;
use exact::Exact;
use latest::{Latest, Weights};
use presence::{Presence, nanos};

pub use book::{SetNotice, SetStatistics, SetTime, SetTopicStatistics, Unused};

/// Which items make a set.
///
/// A `queue` limits how much may wait; 0 is no limit. All durations are nanoseconds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SetPolicy {
    /// Items with equal stamps.
    Exact {
        /// How many stamps may wait for the rest of their set.
        queue: usize,
    },
    /// The sets that lie closest together; each item is used once.
    ///
    /// Stamps that go back far (a clock that begins again) find no partners until the queues have
    /// lost what was before: without a limit that takes until the stamps have caught up.
    Approximate {
        /// How many items may wait on a topic.
        queue: usize,
        /// How much a set must be closer to be preferred to an earlier one, as a fraction of how
        /// much later it is.
        age_penalty: f64,
        /// A set may not be wider than this.
        max_interval: Option<u64>,
        /// By topic: two stamps of this topic are never closer than this. With it a set need not
        /// wait for the next item of each topic. A topic without an entry has none.
        lower_bounds: Vec<u64>,
    },
    /// The first items of all topics if they lie within `epsilon` of the oldest.
    Epsilon {
        /// The greatest width of a set.
        epsilon: u64,
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
    /// topic without an entry is never. In nanoseconds; before the first item of a topic it counts
    /// from the first of any.
    pub absent_after: Vec<Option<u64>>,
}

/// Makes sets of items, one of every topic.
///
/// Every item that comes in leaves in a set, or with a [`SetNotice::Unused`] that says why not, and
/// the statistics count both. A set leaves as soon as it is certain; [`Sets::pop`] takes it.
///
/// ```
/// use rondel_align::{SetPolicy, SetSettings, Sets};
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
    settings: SetSettings,
    /// The clock: the latest time that was told.
    now: Timestamp,
    /// How far a stamp may be after the clock, and how far before it.
    limits: (Option<u64>, Option<u64>),
    presence: Presence,
    /// By topic: the stamp of the item before, and how close the next may be.
    before: Vec<(Option<Timestamp>, i64)>,
    policy: Policy<T>,
    book: Book<T>,
}

#[derive(Clone, Debug)]
enum Policy<T> {
    Exact(Exact<T>),
    Approximate(Box<Approximate<T>>),
    Epsilon(Epsilon<T>),
    Latest(Latest<T>),
}

impl<T: Clone> Sets<T> {
    /// Nothing has come yet.
    pub fn new(settings: SetSettings) -> Sets<T> {
        let topics = settings.topics;
        let mut bounds = vec![0; topics];
        let policy = match settings.policy.clone() {
            SetPolicy::Exact { queue } => Policy::Exact(Exact::new(topics, queue)),
            SetPolicy::Approximate { queue, age_penalty, max_interval, lower_bounds } => {
                bounds.iter_mut().zip(lower_bounds).for_each(|(to, bound)| *to = nanos(bound));
                let settings = approximate::Settings {
                    queue,
                    penalty: 1.0 + weight(age_penalty, 1e9),
                    max_interval: max_interval.map_or(i64::MAX, nanos),
                    lower_bounds: bounds.clone(),
                };
                Policy::Approximate(Box::new(Approximate::new(topics, settings)))
            }
            SetPolicy::Epsilon { epsilon, queue } => {
                Policy::Epsilon(Epsilon::new(topics, nanos(epsilon), queue))
            }
            SetPolicy::Latest { rate, error, margin } => {
                let (rate, error) = (weight(rate, 1.0), weight(error, 1.0));
                Policy::Latest(Latest::new(topics, Weights { rate, error, margin: weight(margin, 1e9) }))
            }
        };
        Sets {
            now: Timestamp::from_nanos(i64::MIN),
            limits: (None, None),
            presence: Presence::new(topics, &settings.absent_after),
            before: bounds.into_iter().map(|bound| (None, bound)).collect(),
            policy,
            book: Book::new(topics),
            settings,
        }
    }

    /// Refuses items whose stamps are further after the clock, or before it, than so many
    /// nanoseconds: a single stamp from the far future can cost as many sets as a queue is long.
    #[must_use]
    pub fn with_limits(self, ahead: Option<u64>, behind: Option<u64>) -> Sets<T> {
        Sets { limits: (ahead, behind), ..self }
    }

    /// An item of a topic with the stamp `time`, which came at `now`.
    ///
    /// Stamps of a topic may be equal or go back: the latter is counted and reported, and the item
    /// is treated like every other.
    pub fn push(&mut self, topic: TopicId, time: Timestamp, now: Timestamp, item: T) {
        self.advance(now);
        let Some((before, bound)) = self.before.get_mut(topic.index()) else {
            self.book.unknown(topic);
            return;
        };
        self.presence.seen(topic.index(), self.now, &mut self.book);
        self.book.received(topic.index());
        let distance = time.as_nanos().abs_diff(self.now.as_nanos());
        let (limit, why) = match time > self.now {
            true => (self.limits.0, Unused::Ahead),
            false => (self.limits.1, Unused::Behind),
        };
        if limit.is_some_and(|limit| distance > limit) {
            self.book.unused(topic.index(), time, why);
            return;
        }
        if let Some(last) = before.replace(time) {
            self.book.distance(topic, time, last, *bound);
        }
        let (book, i) = (&mut self.book, topic.index());
        match &mut self.policy {
            Policy::Exact(policy) => policy.push(i, time, item, book),
            Policy::Approximate(policy) => policy.push(i, time, item, book),
            Policy::Epsilon(policy) => policy.push(i, time, item, book),
            Policy::Latest(policy) => policy.push(i, time, self.now, item, book),
        }
    }

    /// It is `now`: reports the topics that are absent. A clock that goes back is reported, and
    /// counts as standing.
    pub fn advance(&mut self, now: Timestamp) {
        if now < self.now {
            self.book.clock_back(now, self.now);
        }
        self.now = self.now.max(now);
        self.presence.advance(self.now, &mut self.book);
    }

    /// Nothing more comes: gives the sets that were still waiting for something better, and
    /// reports the rest as unused.
    pub fn flush(&mut self) {
        match &mut self.policy {
            Policy::Exact(policy) => policy.flush(&mut self.book),
            Policy::Approximate(policy) => policy.flush(&mut self.book),
            Policy::Epsilon(policy) => policy.flush(&mut self.book),
            Policy::Latest(policy) => policy.flush(&mut self.book),
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

/// Not negative, not beyond the limit, a number.
fn weight(x: f64, most: f64) -> f64 {
    if x > 0.0 { x.min(most) } else { 0.0 }
}
