//! Notices and statistics of [`Order`](super::Order).

use rondel_event::{Timestamp, TopicId};
use serde::{Deserialize, Serialize};

use super::{LatePolicy, Marker};

/// Notice about events, markers, topics or the clock. All durations are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// An event was late: it arrived after a later event had been released.
    Late {
        /// Topic of the event.
        topic: TopicId,
        /// Time of the event.
        time: Timestamp,
        /// Lateness: how much later the reached time is.
        excess: u64,
        /// Delay from the time of the event to its arrival.
        delay: u64,
        /// Policy by which it was handled.
        policy: LatePolicy,
    },
    /// The wait for a topic is shorter than the delay of some of its events. Reported at 1, 10, 100, … late events.
    WaitTooShort {
        /// The topic.
        topic: TopicId,
        /// Number of late events.
        late: u64,
        /// Number of received events.
        received: u64,
        /// Current wait.
        max_wait: Option<u64>,
        /// Shortest `max_wait` with which no event would have been late.
        sufficient: u64,
    },
    /// An event was refused because of its time.
    Refused {
        /// Topic of the event.
        topic: TopicId,
        /// Time of the event.
        time: Timestamp,
        /// Reason.
        reason: Refusal,
        /// Distance of the time from the clock.
        distance: u64,
    },
    /// An event or marker of an unknown topic was discarded.
    UnknownTopic {
        /// The topic.
        topic: TopicId,
    },
    /// A topic sent nothing for its `absent_after`: it is no longer waited for.
    Absent {
        /// The topic.
        topic: TopicId,
        /// Time of its last event or marker; if there was none, of the first one of any topic.
        since: Timestamp,
        /// Whether it ever sent an event or a marker.
        ever: bool,
    },
    /// An absent topic sent an event or a marker and is waited for again.
    Returned {
        /// The topic.
        topic: TopicId,
        /// Duration without events and markers.
        after: u64,
    },
    /// The times of a `fifo` topic step back; reported once. From now on its events no longer imply that no earlier
    /// event arrives, unless it has neither a `max_wait` nor markers.
    SteppedBack {
        /// The topic.
        topic: TopicId,
        /// Time of the event.
        time: Timestamp,
        /// Latest time before it.
        latest: Timestamp,
        /// Whether the topic is still treated as `fifo`.
        fifo: bool,
    },
    /// Like `SteppedBack`, but each of two publishers is in order by itself: their clocks or delays differ.
    StampsDisagree {
        /// The topic.
        topic: TopicId,
        /// Time of the event.
        time: Timestamp,
        /// Latest time before it.
        latest: Timestamp,
        /// Publisher of the event, and publisher of the event with the latest time.
        publishers: [u64; 2],
        /// Whether the topic is still treated as `fifo`.
        fifo: bool,
    },
    /// A marker was ignored because it covers a time that an earlier marker covered.
    MarkerBack {
        /// The topic.
        topic: TopicId,
        /// The marker.
        marker: Marker,
        /// Time up to which earlier markers apply.
        complete: Timestamp,
    },
    /// An event arrived although a marker had covered its time. Reported once for each topic.
    MarkerBroken {
        /// The topic.
        topic: TopicId,
        /// Time of the event.
        time: Timestamp,
        /// Time up to which markers apply.
        complete: Timestamp,
    },
    /// A marker is missing: no marker covers the interval before this one.
    MarkerMissed {
        /// The topic.
        topic: TopicId,
        /// Time up to which earlier markers apply.
        complete: Timestamp,
        /// Time from which the new marker applies.
        after: Timestamp,
    },
    /// Events counted by a marker did not arrive before the order proceeded without them.
    MarkerUnmet {
        /// The topic.
        topic: TopicId,
        /// Time of the marker.
        complete: Timestamp,
        /// Number of missing events.
        missing: u64,
    },
    /// The queue was full, and the oldest event was released early.
    Early {
        /// Topic of the event.
        topic: TopicId,
        /// Time of the event.
        time: Timestamp,
    },
    /// A duplicate event was dropped.
    Duplicate {
        /// Topic of the event.
        topic: TopicId,
        /// Its publisher.
        publisher: u64,
        /// Its sequence number.
        number: u64,
    },
    /// Sequence numbers of a publisher are missing.
    Gap {
        /// The topic.
        topic: TopicId,
        /// The publisher.
        publisher: u64,
        /// First missing sequence number.
        from: u64,
        /// Number of missing events.
        missing: u64,
    },
    /// A publisher restarted its sequence numbers.
    NumbersBack {
        /// The topic.
        topic: TopicId,
        /// The publisher.
        publisher: u64,
        /// The sequence number.
        number: u64,
        /// Highest sequence number before.
        highest: u64,
    },
    /// The clock stepped back, further than ever before. Its highest reading is used instead.
    ClockBack {
        /// Current reading.
        now: Timestamp,
        /// Highest reading so far.
        highest: Timestamp,
    },
    /// Notices were discarded because too many waited to be taken.
    Omitted {
        /// Number of discarded notices.
        count: u64,
    },
}

/// Reason why an event was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its time was too far after the clock.
    Ahead,
    /// Its time was too far before the clock.
    Behind,
}

/// Statistics of one topic. Every received event was released or dropped (late, duplicate or refused), or is waiting. All
/// durations are nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OrderStatistics {
    /// Number of received events.
    pub received: u64,
    /// Number of released events, including late ones.
    pub released: u64,
    /// Number of events released because the wait was over or the queue full, without knowing that no earlier event can
    /// arrive.
    pub guessed: u64,
    /// Number of events released because the queue was full.
    pub early: u64,
    /// Number of late events: those that arrived after a later event was released; with the policy `Arrival`, after an
    /// event with a later time.
    pub late: u64,
    /// Number of late events that were dropped.
    pub dropped: u64,
    /// Number of duplicate events, which were dropped.
    pub duplicates: u64,
    /// Number of events refused because of their time.
    pub refused: u64,
    /// Number of events missing by the sequence numbers of their publishers.
    pub missing: u64,
    /// Number of events with a time before that of an earlier one.
    pub stepped_back: u64,
    /// Number of received markers.
    pub markers: u64,
    /// Number of events that arrived although a marker had covered their time.
    pub broken: u64,
    /// Number of waiting events.
    pub waiting: usize,
    /// Maximum lateness.
    pub max_excess: u64,
    /// 99th percentile of the lateness of late events.
    pub excess_p99: u64,
    /// Shortest `max_wait` with which no event would have been late; `None` without late events.
    pub sufficient_wait: Option<u64>,
    /// Current wait; `None` if unlimited.
    pub max_wait: Option<u64>,
    /// Median delay from the time of an event to its arrival.
    pub delay_p50: u64,
    /// 99th percentile of the delay.
    pub delay_p99: u64,
    /// Maximum delay.
    pub delay_max: u64,
    /// Whether the topic is absent.
    pub absent: bool,
    /// Whether the topic is treated as `fifo`.
    pub fifo: bool,
}
