//! The settings of alignment: how messages of several topics are put into order or into sets.

use std::sync::Arc;

use rondel_align::{
    self as align, LatePolicy, Order, OrderPolicy, OrderSettings, SetPolicy, SetSettings, Sets, TopicOrder,
};
use rondel_event::{Event, TopicId};

use super::align::Rule;
use crate::specification::input::{Input, TimeSource};
use crate::time::clock::AlignmentClock;

/// Default maximum wait for a topic, in nanoseconds.
pub const MAX_WAIT: i64 = 100_000_000;
/// The time without a message after which a topic is absent by default, in nanoseconds.
pub const ABSENT_AFTER: i64 = 2_000_000_000;
/// The default limit of the distance between a message time and the clock, in nanoseconds.
const FAR: i64 = 3_600_000_000_000;
/// The default limit of waiting messages.
const QUEUE: usize = 100_000;
/// The default limit of the bytes of waiting messages.
pub const WAITING: usize = 64 << 20;
/// The default quantile of an estimated `max_wait`.
pub const QUANTILE: f64 = 0.999;

/// Alignment of the messages of a session: in event-time order or in sets.
#[derive(Clone, Debug, PartialEq)]
pub struct Alignment {
    /// The rule.
    pub policy: Policy,
    /// The clock that messages wait by.
    pub clock: AlignmentClock,
    /// Treatment of late events.
    pub late: Late,
    /// The number of messages that may wait.
    pub queue: usize,
    /// The bytes of the messages that may wait, for each alignment group.
    pub waiting: usize,
    /// The limit of a message time ahead of the clock, in nanoseconds.
    pub ahead: Option<i64>,
    /// The limit of a message time behind the clock, in nanoseconds.
    pub behind: Option<i64>,
    /// Whether these limits also hold for recordings that are checked in the order of arrival.
    pub limited: bool,
    /// Topics that a property waits for.
    pub wait_for: WaitFor,
    /// Whether to report notices although no message has to wait.
    pub notices: bool,
    /// The settings of each topic, in the order of the specification.
    pub topics: Vec<TopicAlignment>,
}

/// The rule of an alignment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// Messages are evaluated in the order of arrival.
    Arrival,
    /// Messages wait until nothing earlier can come.
    EventTime,
    /// A set is one message of every topic, with equal times.
    Exact,
    /// A set is the best matching message of every topic.
    Approximate {
        /// Preference of older sets over better ones.
        age_penalty: f64,
        /// Maximum time between the messages of a set, in nanoseconds.
        max_interval: Option<i64>,
    },
    /// A set is one message of every topic, at most this many nanoseconds apart.
    Epsilon(i64),
    /// A set is the latest message of every topic.
    Latest,
}

impl Policy {
    /// Whether the policy makes sets.
    pub fn makes_sets(self) -> bool {
        !matches!(self, Policy::Arrival | Policy::EventTime)
    }
}

/// Treatment of late events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// They are dropped and counted.
    Drop,
    /// They are evaluated as if they had occurred when they arrived.
    Late,
    /// Their values are unknown until the next message of the topic.
    Inconclusive,
}

/// Topics that a property waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// Topics that it reads.
    Property,
    /// All topics of the specification.
    Specification,
}

/// Alignment settings of one topic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopicAlignment {
    /// Maximum wait.
    pub max_wait: MaxWait,
    /// Time without a message after which the topic is reported and no longer waited for, in nanoseconds.
    pub absent_after: Option<i64>,
    /// Whether its messages come in the order of their times.
    pub in_order: bool,
    /// Minimum time between two of its messages, in nanoseconds.
    pub lower_bound: i64,
}

impl TopicAlignment {
    /// Defaults for a topic with this input.
    pub fn new(input: &Input) -> TopicAlignment {
        // Arrival times are in order already.
        let wait = if input.time == TimeSource::Arrival { 0 } else { MAX_WAIT };
        TopicAlignment {
            max_wait: MaxWait::Fixed(wait),
            absent_after: Some(ABSENT_AFTER),
            in_order: true,
            lower_bound: 0,
        }
    }
}

impl TopicAlignment {
    /// Settings of the events of a topic: nothing waits for an event that may never come.
    pub(crate) fn of_events() -> TopicAlignment {
        TopicAlignment { max_wait: MaxWait::Fixed(0), absent_after: None, in_order: false, lower_bound: 0 }
    }
}

/// Maximum wait for a topic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MaxWait {
    /// Wait until no earlier message can come, or the topic is absent.
    Unlimited,
    /// This many nanoseconds.
    Fixed(i64),
    /// This quantile of the delays of its messages so far.
    Estimated(f64),
}

impl Alignment {
    /// Longest fixed wait of any topic, in nanoseconds; 0 without one.
    pub(crate) fn longest_wait(&self) -> i64 {
        let wait = |topic: &TopicAlignment| match topic.max_wait {
            MaxWait::Fixed(nanos) => nanos,
            MaxWait::Estimated(_) | MaxWait::Unlimited => 0,
        };
        if self.is_needed() { self.topics.iter().map(wait).max().unwrap_or(0) } else { 0 }
    }

    /// Creates an alignment with this policy and the defaults.
    pub fn new(policy: Policy) -> Alignment {
        Alignment {
            policy,
            clock: AlignmentClock::Messages,
            late: Late::Late,
            queue: QUEUE,
            waiting: WAITING,
            ahead: Some(FAR),
            behind: Some(FAR),
            limited: false,
            wait_for: WaitFor::Property,
            notices: false,
            topics: Vec::new(),
        }
    }

    /// Default alignment for these inputs: messages of several topics that all carry times of their own are put into
    /// the order of these times; all others are evaluated on arrival.
    pub fn by_default(inputs: &[Input]) -> Alignment {
        // An arrival time need not be on the clock of the others.
        let own_times = inputs.iter().all(|input| input.time != TimeSource::Arrival);
        let policy = if own_times && inputs.len() > 1 { Policy::EventTime } else { Policy::Arrival };
        let topics = inputs.iter().map(TopicAlignment::new).collect();
        Alignment { topics, ..Alignment::new(policy) }
    }

    /// A topic whose earlier messages can never be ruled out, so that waiting never ends, if there is one.
    pub fn never_certain(&self) -> Option<TopicId> {
        if self.policy != Policy::EventTime {
            return None;
        }
        let never = |topic: &TopicAlignment| !topic.in_order && topic.max_wait == MaxWait::Unlimited;
        self.topics.iter().position(never).map(|topic| TopicId(topic as u32))
    }

    /// Whether messages pass through an alignment.
    pub fn is_needed(&self) -> bool {
        self.policy != Policy::Arrival || self.notices
    }

    /// Alignment rule for events of these topics. Where the policy makes sets, a property with parameters sees the
    /// messages of a set one by one.
    pub(crate) fn rule(&self, topics: &[TopicId], keyed: bool) -> Rule {
        match self.set_settings(topics) {
            Some(settings) => {
                let sets = Sets::new(settings).with_bytes(self.waiting, |event: &Arc<Event>| event.bytes());
                Rule::Sets { sets, topics: topics.to_vec(), joined: !keyed }
            }
            None => {
                let order = Order::new(self.order_settings(topics));
                Rule::Order(order.with_bytes(self.waiting, |event: &Arc<Event>| event.bytes()))
            }
        }
    }

    /// Settings of the event-time order of these topics.
    pub(crate) fn order_settings(&self, topics: &[TopicId]) -> OrderSettings {
        let topic = |(i, own): (u32, &TopicAlignment)| TopicOrder {
            max_wait: match own.max_wait {
                MaxWait::Unlimited => align::MaxWait::None,
                MaxWait::Fixed(nanos) => align::MaxWait::Fixed(nanos.unsigned_abs()),
                MaxWait::Estimated(quantile) => {
                    align::MaxWait::Estimated { quantile, at_most: ABSENT_AFTER.unsigned_abs() }
                }
            },
            absent_after: own.absent_after.map(i64::unsigned_abs),
            fifo: own.in_order,
            in_play: topics.contains(&TopicId(i)),
        };
        OrderSettings {
            policy: match self.policy {
                Policy::Arrival => OrderPolicy::Arrival,
                _ => OrderPolicy::EventTime,
            },
            topics: (0..).zip(&self.topics).map(topic).collect(),
            queue: self.queue,
            // The intake of the session refuses messages, for all groups alike.
            ahead: None,
            behind: None,
            late: match self.late {
                Late::Drop => LatePolicy::Drop,
                Late::Late => LatePolicy::Late,
                Late::Inconclusive => LatePolicy::Inconclusive,
            },
        }
    }

    /// Settings of sets of these topics, if the policy makes sets.
    pub(crate) fn set_settings(&self, topics: &[TopicId]) -> Option<SetSettings> {
        let time = i64::unsigned_abs;
        let own = || topics.iter().filter_map(|topic| self.topics.get(topic.index()));
        let queue = self.queue;
        let policy = match self.policy {
            Policy::Arrival | Policy::EventTime => return None,
            Policy::Exact => SetPolicy::Exact { queue },
            Policy::Approximate { age_penalty, max_interval } => SetPolicy::Approximate {
                queue,
                age_penalty,
                max_interval: max_interval.map(time),
                lower_bounds: own().map(|topic| time(topic.lower_bound)).collect(),
            },
            Policy::Epsilon(epsilon) => SetPolicy::Epsilon { epsilon: time(epsilon), queue },
            Policy::Latest => SetPolicy::latest(),
        };
        let absent_after = own().map(|topic| topic.absent_after.map(time)).collect();
        Some(SetSettings { policy, topics: topics.len(), absent_after })
    }
}
