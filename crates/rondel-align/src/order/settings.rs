use rondel_event::{Timestamp, TopicId};

/// How events are put in order. All durations are nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderSettings {
    /// The order in which they leave.
    pub policy: OrderPolicy,
    /// The topics, by their positions.
    pub topics: Vec<TopicOrder>,
    /// How many events may wait. When there are more, the oldest leaves early, which is reported. 0: no limit.
    pub queue: usize,
    /// How far the time of an event may be after the clock; one that is further is refused.
    pub ahead: Option<u64>,
    /// How far the time of an event may be before the clock; one that is further is refused.
    pub behind: Option<u64>,
    /// What becomes of an event that comes after its time.
    pub tardy: Tardy,
}

/// The order in which events leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderPolicy {
    /// As they come. Nothing waits, and nothing is tardy.
    Arrival,
    /// By time, those of equal time by the position of their topic, and on one topic by their numbers ([`Origin`](rondel_event::Origin)), or else
    /// as they came.
    EventTime,
}

/// What becomes of an event that comes when something after it has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tardy {
    /// It is dropped.
    Drop,
    /// It leaves at once, with the time of what has left last.
    Late,
    /// As `Late`, and flagged so that what it touches can be made unknown.
    Inconclusive,
}

/// What is known of one topic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopicOrder {
    /// How long after its time an event of this topic is waited for. One that comes as the wait ends is too late.
    pub max_wait: MaxWait,
    /// When nothing was heard of the topic for this long, it is not waited for until something is. Counts from the
    /// first sign of any topic.
    pub absent_after: Option<u64>,
    /// Whether an event says that nothing earlier comes on this topic.
    pub fifo: bool,
    /// Whether the topic is waited for at all.
    pub in_play: bool,
}

impl Default for TopicOrder {
    fn default() -> TopicOrder {
        TopicOrder { max_wait: MaxWait::None, absent_after: None, fifo: true, in_play: true }
    }
}

/// How long after its time, by the clock, an event is waited for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MaxWait {
    /// Until it is known that it cannot come any more.
    None,
    /// So many nanoseconds.
    Fixed(u64),
    /// As long as this part of the events took so far (0.999: all but one in a thousand) and a quarter more, but never
    /// longer than `at_most`; that long until enough events were seen.
    Estimated {
        /// The part of the events that should come in time.
        quantile: f64,
        /// The longest wait, in nanoseconds.
        at_most: u64,
    },
}

/// The word of a publisher that it has sent all events of a topic up to a time. It speaks for the topic: where
/// several publishers write to one topic, their markers must be made one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    /// All with this time or an earlier one are sent.
    pub complete: Timestamp,
    /// The `complete` of the marker before it, if there was one.
    pub after: Option<Timestamp>,
    /// How many events have times later than `after` and not later than `complete`. With it a marker may overtake
    /// events: it counts once that many were received. Without it, it counts at once.
    pub count: Option<u64>,
}

/// An event that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released<T> {
    /// Its topic.
    pub topic: TopicId,
    /// The time to process it at: never before that of the event that left before it, unless the policy is `Arrival`.
    pub time: Timestamp,
    /// If it came too late for its place: where that was.
    pub tardy: Option<Lateness>,
    /// The event.
    pub item: T,
}

/// How an event missed its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// Its own time.
    pub stamp: Timestamp,
    /// How much later the time is that it is processed at.
    pub excess: u64,
    /// Whether what it touches should be made unknown.
    pub inconclusive: bool,
}
