//! Settings and results of [`Order`](super::Order).

use rondel_event::{Timestamp, TopicId};

/// Settings of [`Order`](super::Order). All durations are nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderSettings {
    /// Order of released events.
    pub policy: OrderPolicy,
    /// Settings of each topic, by its index.
    pub topics: Vec<TopicOrder>,
    /// Limit of waiting events; above it, the oldest is released early and reported. 0: no limit.
    pub queue: usize,
    /// Maximum distance of an event's time after the clock; events beyond are refused.
    pub ahead: Option<u64>,
    /// Maximum distance of an event's time before the clock; events beyond are refused.
    pub behind: Option<u64>,
    /// Handling of late events.
    pub late: LatePolicy,
}

/// Order of released events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderPolicy {
    /// In the order of arrival. No event waits, and none is handled as late.
    Arrival,
    /// By time, at equal times by the index of their topic, and on one topic by sequence number
    /// ([`Origin`](rondel_event::Origin)), or else in the order of arrival.
    EventTime,
}

/// Handling of late events: those that arrive after a later event was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatePolicy {
    /// Drop the event.
    Drop,
    /// Release the event at once, with the time of the last released event.
    Late,
    /// As `Late`, and flag the event, so that the caller can make the affected verdicts inconclusive.
    Inconclusive,
}

/// Settings of one topic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopicOrder {
    /// Maximum delay for which an event of this topic is waited for. An event with exactly this delay is late.
    pub max_wait: MaxWait,
    /// Time without an event or marker after which the topic is absent and no longer waited for. Before its first one,
    /// counted from the first event or marker of any topic.
    pub absent_after: Option<u64>,
    /// Whether events arrive in order of time, so that an event implies that no earlier one arrives on this topic.
    pub fifo: bool,
    /// Whether the topic is waited for at all.
    pub in_play: bool,
}

impl Default for TopicOrder {
    fn default() -> TopicOrder {
        TopicOrder { max_wait: MaxWait::None, absent_after: None, fifo: true, in_play: true }
    }
}

/// Maximum time, on the clock, to wait for an event after its own time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MaxWait {
    /// No limit: until it is known that no earlier event can arrive.
    None,
    /// A fixed number of nanoseconds.
    Fixed(u64),
    /// The given quantile of the delays so far plus a quarter, but at most `at_most`; `at_most` until enough events
    /// arrived.
    Estimated {
        /// Fraction of the events to wait for: 0.999 is all but one in a thousand.
        quantile: f64,
        /// Longest wait, in nanoseconds.
        at_most: u64,
    },
}

/// Progress marker (watermark): the statement that all events of a topic up to a time were sent. It applies to the topic:
/// if several publishers write to it, their markers must be merged first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Time up to which, inclusively, all events were sent.
    pub complete: Timestamp,
    /// `complete` of the previous marker, if there was one.
    pub after: Option<Timestamp>,
    /// Number of events with times later than `after` and not later than `complete`. A marker with a count may overtake
    /// events: it takes effect once all of them have arrived. Without a count, it takes effect at once.
    pub count: Option<u64>,
}

/// A released event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released<T> {
    /// Topic of the event.
    pub topic: TopicId,
    /// Time at which to process the event. It never decreases from one event to the next, unless the policy is
    /// `Arrival`.
    pub time: Timestamp,
    /// Lateness of a late event.
    pub lateness: Option<Lateness>,
    /// The event.
    pub item: T,
}

/// Lateness of a late event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// Time of the event itself.
    pub stamp: Timestamp,
    /// Difference between the time at which the event is processed and `stamp`, in nanoseconds.
    pub excess: u64,
    /// Whether the caller should make the affected verdicts inconclusive.
    pub inconclusive: bool,
}
