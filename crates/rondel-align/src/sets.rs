//! Sets of one item of every topic, chosen by stamp like the ROS synchronizers, for any number of topics.

mod approximate;
mod buffer;
mod earliest;
mod epsilon;
mod exact;
mod heads;
mod latest;
mod presence;
mod saved;

use rondel_event::{Timestamp, TopicId};

use approximate::Approximate;
use buffer::SetBuffer;
use epsilon::Epsilon;
use exact::Exact;
use latest::{Latest, Weights};
use presence::{Presence, nanos};

use crate::weight::Weight;

pub use buffer::{SetNotice, SetStatistics, SetTime, SetTopicStatistics, Unused};

/// Policy that selects the items of a set.
///
/// `queue` limits the number of waiting items; 0 is no limit. All durations are nanoseconds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SetPolicy {
    /// Items with equal stamps.
    Exact {
        /// Number of stamps that may wait for the rest of their set.
        queue: usize,
    },
    /// Sets with the closest stamps; each item is used once.
    ///
    /// After a large step back of stamps (a restarted clock) items find no match until the queues have
    /// dropped the items from before; without a limit, until the stamps have caught up.
    Approximate {
        /// Number of items that may wait on a topic.
        queue: usize,
        /// Width by which a later set must be narrower to be preferred, as a fraction of its distance from the earlier
        /// one.
        age_penalty: f64,
        /// Maximum width of a set.
        max_interval: Option<u64>,
        /// For each topic, the minimum distance between successive stamps. With it, a set need not wait for
        /// the next item of each topic. Default: 0.
        lower_bounds: Vec<u64>,
    },
    /// The first items of all topics if they are within `epsilon` of the oldest.
    Epsilon {
        /// Maximum width of a set.
        epsilon: u64,
        /// Number of items that may wait on a topic while another has none.
        queue: usize,
    },
    /// The last item of each topic, at each item of the fastest topic that is not late. Rates are those of
    /// the stamps, so that a recording gives the same sets at any speed; an item may be used repeatedly.
    /// If the stamps of a topic step back, its rate is measured from there on.
    Latest {
        /// Weight of the last period in the moving average of a topic's rate, 0 to 1.
        rate: f64,
        /// Weight of the last difference in the moving average of the rate's error, 0 to 1.
        error: f64,
        /// Number of average errors by which the period may differ before the topic is late, or its rate
        /// is considered changed.
        margin: f64,
    },
}

impl SetPolicy {
    /// Returns the policy `Approximate` with an age penalty of 0.1 and no further limits.
    pub fn approximate(queue: usize) -> SetPolicy {
        SetPolicy::Approximate { queue, age_penalty: 0.1, max_interval: None, lower_bounds: Vec::new() }
    }

    /// Returns the policy `Latest` with the default weights.
    pub fn latest() -> SetPolicy {
        SetPolicy::Latest { rate: 0.9, error: 0.3, margin: 10.0 }
    }
}

/// Settings of [`Sets`].
#[derive(Clone, Debug, PartialEq)]
pub struct SetSettings {
    /// Policy that selects the items of a set.
    pub policy: SetPolicy,
    /// Number of topics: a set has an item of each.
    pub topics: usize,
    /// For each topic, the time in nanoseconds without an item after which it is reported as absent; before
    /// its first item, counted from the first item of any topic. Default: never.
    pub absent_after: Vec<Option<u64>>,
}

/// Synchronizer that builds sets with one item of every topic.
///
/// Every item leaves in a set or with a [`SetNotice::Unused`] that states the reason; the statistics count
/// both. A set is emitted as soon as it is certain; [`Sets::pop`] takes it.
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
    /// The highest reading of the clock.
    now: Timestamp,
    /// Maximum distance of a stamp after and before the clock.
    limits: (Option<u64>, Option<u64>),
    presence: Presence,
    /// For each topic the stamp of the last item and the lower bound.
    before: Vec<(Option<Timestamp>, i64)>,
    policy: PolicyState<T>,
    buffer: SetBuffer<T>,
}

/// State of the policy.
#[derive(Clone, Debug)]
enum PolicyState<T> {
    Exact(Exact<T>),
    Approximate(Box<Approximate<T>>),
    Epsilon(Epsilon<T>),
    Latest(Latest<T>),
}

impl<T: Clone> Sets<T> {
    /// Creates a synchronizer without items.
    pub fn new(settings: SetSettings) -> Sets<T> {
        let topics = settings.topics;
        let mut bounds = vec![0; topics];
        let policy = match settings.policy.clone() {
            SetPolicy::Exact { queue } => PolicyState::Exact(Exact::new(topics, queue)),
            SetPolicy::Approximate { queue, age_penalty, max_interval, lower_bounds } => {
                bounds.iter_mut().zip(lower_bounds).for_each(|(to, bound)| *to = nanos(bound));
                let settings = approximate::ApproximateSettings {
                    queue,
                    penalty: 1.0 + weight(age_penalty, 1e9),
                    max_interval: max_interval.map_or(i64::MAX, nanos),
                    lower_bounds: bounds.clone(),
                };
                PolicyState::Approximate(Box::new(Approximate::new(topics, settings)))
            }
            SetPolicy::Epsilon { epsilon, queue } => {
                PolicyState::Epsilon(Epsilon::new(topics, nanos(epsilon), queue))
            }
            SetPolicy::Latest { rate, error, margin } => {
                let (rate, error) = (weight(rate, 1.0), weight(error, 1.0));
                PolicyState::Latest(Latest::new(topics, Weights { rate, error, margin: weight(margin, 1e9) }))
            }
        };
        Sets {
            now: Timestamp::from_nanos(i64::MIN),
            limits: (None, None),
            presence: Presence::new(topics, &settings.absent_after),
            before: bounds.into_iter().map(|bound| (None, bound)).collect(),
            policy,
            buffer: SetBuffer::new(topics),
            settings,
        }
    }

    /// Sets the maximum distance of stamps after and before the clock, in nanoseconds. Items beyond are
    /// refused: a single stamp in the far future can cost as many sets as a queue is long.
    #[must_use]
    pub fn with_limits(self, ahead: Option<u64>, behind: Option<u64>) -> Sets<T> {
        Sets { limits: (ahead, behind), ..self }
    }

    /// Sets the limit of the bytes of waiting items; above it, the oldest are dropped and reported, as above that of their
    /// number. `size` returns the bytes of an item. The policy `Latest`, with one item for each topic, has no limit.
    #[must_use]
    pub fn with_bytes(mut self, limit: usize, size: fn(&T) -> usize) -> Sets<T> {
        self.buffer.weight = Weight::new(limit, size);
        self
    }

    /// Adds an item of a topic with the stamp `time` that arrived at `now`.
    ///
    /// Stamps of a topic may be equal or step back: a step back is counted and reported, and the item is
    /// processed like any other.
    pub fn push(&mut self, topic: TopicId, time: Timestamp, now: Timestamp, item: T) {
        self.push_until(topic, time, now, now, item);
    }

    /// Like [`Sets::push`] with a clock that the item itself sets forward: it showed `now` before the item and shows
    /// `then` after it, and the topic is alive at `then`.
    pub fn push_until(&mut self, topic: TopicId, time: Timestamp, now: Timestamp, then: Timestamp, item: T) {
        self.advance(now);
        let Some((before, bound)) = self.before.get_mut(topic.index()) else {
            self.buffer.unknown(topic);
            return;
        };
        self.presence.seen(topic.index(), self.now, then, &mut self.buffer);
        self.buffer.received(topic.index());
        let distance = time.as_nanos().abs_diff(self.now.as_nanos());
        let (limit, why) = match time > self.now {
            true => (self.limits.0, Unused::Ahead),
            false => (self.limits.1, Unused::Behind),
        };
        if limit.is_some_and(|limit| distance > limit) {
            self.buffer.unused(topic.index(), time, why);
            return;
        }
        if let Some(last) = before.replace(time) {
            self.buffer.distance(topic, time, last, *bound);
        }
        let (buffer, i) = (&mut self.buffer, topic.index());
        buffer.weight.add(&item);
        match &mut self.policy {
            PolicyState::Exact(policy) => policy.push(i, time, item, buffer),
            PolicyState::Approximate(policy) => policy.push(i, time, item, buffer),
            PolicyState::Epsilon(policy) => policy.push(i, time, item, buffer),
            PolicyState::Latest(policy) => policy.push(i, time, item, buffer),
        }
    }

    /// Records that an item of a topic arrived which the caller has refused: a sign of life.
    pub fn refuse(&mut self, topic: TopicId, now: Timestamp) {
        self.advance(now);
        if topic.index() < self.before.len() {
            self.presence.seen(topic.index(), self.now, self.now, &mut self.buffer);
        }
    }

    /// Advances the clock to `now` and reports absent topics. A step back of the clock is reported and has no
    /// other effect.
    pub fn advance(&mut self, now: Timestamp) {
        if now < self.now {
            self.buffer.clock_back(now, self.now);
        }
        self.now = self.now.max(now);
        self.presence.advance(self.now, &mut self.buffer);
    }

    /// Ends the input: emits the sets that waited for a better one and reports the other items as unused.
    pub fn flush(&mut self) {
        match &mut self.policy {
            PolicyState::Exact(policy) => policy.flush(&mut self.buffer),
            PolicyState::Approximate(policy) => policy.flush(&mut self.buffer),
            PolicyState::Epsilon(policy) => policy.flush(&mut self.buffer),
            PolicyState::Latest(policy) => policy.flush(&mut self.buffer),
        }
        self.buffer.weight.clear();
    }

    /// Takes the next set; its items with their stamps replace the content of `into`, in the order of the
    /// topics.
    pub fn pop(&mut self, into: &mut Vec<(Timestamp, T)>) -> Option<SetTime> {
        self.buffer.pop(into)
    }

    /// Takes the notices since the last call.
    pub fn notices(&mut self) -> impl Iterator<Item = SetNotice> + '_ {
        self.buffer.notices()
    }

    /// Returns the time at which to call [`Sets::advance`], because a topic may be absent then.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.presence.deadline()
    }

    /// Returns the statistics.
    pub fn statistics(&self) -> &SetStatistics {
        self.buffer.statistics()
    }
}

/// Limits a weight to the range from 0 to `most`; NaN is 0.
fn weight(x: f64, most: f64) -> f64 {
    if x > 0.0 { x.min(most) } else { 0.0 }
}
