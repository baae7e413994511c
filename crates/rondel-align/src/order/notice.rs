use rondel_event::{Timestamp, TopicId};
use serde::{Deserialize, Serialize};

use super::{Marker, Tardy};

/// What there is to report. All durations are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// An event came when something after it had left.
    Tardy {
        /// Its topic.
        topic: TopicId,
        /// Its time.
        time: Timestamp,
        /// How much later the time is that order had reached.
        excess: u64,
        /// How long after its time it came.
        delay: u64,
        /// What was done with it.
        policy: Tardy,
    },
    /// Events of this topic keep coming too late: told at the first, and whenever there are ten times as many.
    WaitTooShort {
        /// The topic.
        topic: TopicId,
        /// How many were tardy.
        tardy: u64,
        /// Of how many.
        received: u64,
        /// How long they are waited for.
        max_wait: Option<u64>,
        /// The shortest `max_wait` with which none of them would have been tardy.
        sufficient: u64,
    },
    /// An event was refused.
    Refused {
        /// Its topic.
        topic: TopicId,
        /// Its time.
        time: Timestamp,
        /// Why.
        reason: Refusal,
        /// How far it was from the clock.
        distance: u64,
    },
    /// An event or a marker of a topic that there is not.
    UnknownTopic {
        /// The topic.
        topic: TopicId,
    },
    /// Nothing was heard of a topic for its `absent_after`: it is not waited for any more.
    Absent {
        /// The topic.
        topic: TopicId,
        /// When something was heard of it last; before that, of any topic.
        since: Timestamp,
        /// Whether anything was ever heard of it.
        ever: bool,
    },
    /// A topic that was absent is heard again, and waited for.
    Returned {
        /// The topic.
        topic: TopicId,
        /// How long nothing was heard of it.
        after: u64,
    },
    /// The stamps of a topic that was said to be in order step back. Told once. From now on an event of it says
    /// nothing about what can come (unless it has neither a `max_wait` nor markers: there is nothing else to go by).
    SteppedBack {
        /// The topic.
        topic: TopicId,
        /// The time of the event.
        time: Timestamp,
        /// The latest time before it.
        latest: Timestamp,
        /// Whether a later event of the topic is still believed to say that nothing earlier comes.
        believed: bool,
    },
    /// As `SteppedBack`, but each of two publishers by itself is in order: their clocks, or their ways, differ.
    StampsDisagree {
        /// The topic.
        topic: TopicId,
        /// The time of the event.
        time: Timestamp,
        /// The latest time before it.
        latest: Timestamp,
        /// Who sent the event, and who sent the one with the latest time.
        publishers: [u64; 2],
        /// Whether a later event of the topic is still believed to say that nothing earlier comes.
        believed: bool,
    },
    /// A marker went back, or spoke again of what one before it had spoken of. It was ignored.
    MarkerBack {
        /// The topic.
        topic: TopicId,
        /// The marker.
        marker: Marker,
        /// What had been said to be complete.
        complete: Timestamp,
    },
    /// An event came that a marker had said could not come any more. Told once for each topic.
    MarkerBroken {
        /// The topic.
        topic: TopicId,
        /// The time of the event.
        time: Timestamp,
        /// What had been said to be complete.
        complete: Timestamp,
    },
    /// A marker says that there was one before it, which did not come: nobody speaks for what lies between.
    MarkerMissed {
        /// The topic.
        topic: TopicId,
        /// What was said to be complete.
        complete: Timestamp,
        /// From where the marker speaks.
        after: Timestamp,
    },
    /// Events that a marker had counted did not come before order went on without them.
    MarkerUnmet {
        /// The topic.
        topic: TopicId,
        /// What was to be complete.
        complete: Timestamp,
        /// How many did not come.
        missing: u64,
    },
    /// More events than allowed were waiting, and the oldest left before its time.
    Early {
        /// Its topic.
        topic: TopicId,
        /// Its time.
        time: Timestamp,
    },
    /// An event came again, and was dropped.
    Duplicate {
        /// Its topic.
        topic: TopicId,
        /// Who sent it.
        publisher: u64,
        /// Its number.
        number: u64,
    },
    /// Numbers of a publisher were left out.
    Gap {
        /// The topic.
        topic: TopicId,
        /// Who sent it.
        publisher: u64,
        /// The first that is missing.
        from: u64,
        /// How many are missing.
        missing: u64,
    },
    /// A publisher began to count again.
    NumbersBack {
        /// The topic.
        topic: TopicId,
        /// Who sent it.
        publisher: u64,
        /// The number.
        number: u64,
        /// The highest before it.
        highest: u64,
    },
    /// The clock stepped back. Its highest reading so far counts. Told again only if it is further back.
    ClockBack {
        /// Its reading.
        now: Timestamp,
        /// The highest so far.
        highest: Timestamp,
    },
    /// So many notices were not kept, because nobody asked for them.
    Unsaid {
        /// How many.
        count: u64,
    },
}

/// Why an event was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its time was too far after the clock.
    Ahead,
    /// Its time was too far before the clock.
    Behind,
}

/// How it went on one topic. Of what was received, everything was released, dropped (tardy, duplicate, refused), or
/// waits. All durations are nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OrderStatistics {
    /// How many events came.
    pub received: u64,
    /// How many left, tardy ones among them.
    pub released: u64,
    /// How many of those left because nobody waited longer (`max_wait`, or the queue was full), not because it was known
    /// that nothing before them could come.
    pub guessed: u64,
    /// How many of those left because the queue was full.
    pub early: u64,
    /// How many came after something later had left; with `Arrival`, after something with a later time.
    pub tardy: u64,
    /// How many of those were dropped.
    pub dropped: u64,
    /// How many came again, and were dropped.
    pub duplicates: u64,
    /// How many were refused because of their time.
    pub refused: u64,
    /// How many are missing, by the numbers of their publishers.
    pub missing: u64,
    /// How many had a time before that of one before them.
    pub stepped_back: u64,
    /// How many markers came.
    pub markers: u64,
    /// How many events came although a marker had said that they could not.
    pub broken: u64,
    /// How many are waiting.
    pub waiting: usize,
    /// By how much tardy events missed their place: at most.
    pub max_excess: u64,
    /// By how much the least tardy 99 % of them did.
    pub excess_p99: u64,
    /// The shortest `max_wait` with which none of the tardy events would have been tardy.
    pub sufficient_wait: Option<u64>,
    /// How long events are waited for at present.
    pub max_wait: Option<u64>,
    /// How long after their time events came: half of them at most.
    pub delay_p50: u64,
    /// How long after their time 99 % of them came at most.
    pub delay_p99: u64,
    /// How long after their time they came at most.
    pub delay_max: u64,
    /// Whether the topic is absent.
    pub absent: bool,
    /// Whether a later event is believed to say that nothing earlier comes.
    pub fifo: bool,
}
