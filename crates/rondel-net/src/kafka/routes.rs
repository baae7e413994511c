//! The subscriptions of a consumer, the topics that it reads, and delivery to receivers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rdkafka::error::RDKafkaErrorCode;
use rondel_event::{Timestamp, TopicId};

use super::Place;
use super::filter::{Filter, Selected};
use super::positions::{Mark, Marks};
use super::subscription::{Counts, Deliver};
use crate::adapter::{Sample, now};

/// Cause of a record without a name.
pub(super) const NO_NAME: &str =
    "the key or a header that supplies a parameter is missing, empty or not UTF-8";
/// Interval of queries for the oldest record of a partition whose offsets have gaps.
const GAPS: Duration = Duration::from_secs(1);

/// The subscriptions of a consumer, and the topics that it reads.
pub(super) struct Routes {
    pub(super) all: Vec<Route>,
    pub(super) next: u64,
    pub(super) topics: BTreeMap<String, Topic>,
    /// Marks on topics that are not read yet, of the previous run, and on those that are not read any more.
    pub(super) marks: Marks,
    /// Whether records wait until all subscriptions exist.
    pub(super) waits: bool,
    /// Whether all subscriptions exist.
    pub(super) is_begun: bool,
    /// Partitions of a member of a group whose states cannot be used so far.
    pub(super) unread: Vec<(String, i32)>,
    /// The reasons.
    pub(super) unread_reasons: BTreeMap<(String, i32), String>,
    /// Errors that were logged.
    pub(super) logged: Vec<RDKafkaErrorCode>,
}

/// A subscription.
pub(super) struct Route {
    pub(super) key: u64,
    pub(super) filter: Filter,
    pub(super) topic: TopicId,
    pub(super) deliver: Box<dyn Deliver>,
    pub(super) counts: Arc<Counts>,
    /// Whether the receiver got a record since its last `idle`.
    pub(super) touched: bool,
    /// Whether the receiver knows that records could not be read.
    is_cut_off: bool,
    /// Whether a record without a name was logged.
    is_unnamed_logged: bool,
}

impl Route {
    pub(super) fn new(place: Place, topic: TopicId, deliver: Box<dyn Deliver>, counts: Arc<Counts>) -> Route {
        let (key, touched, is_cut_off, is_unnamed_logged) = (0, false, false, false);
        let filter = Filter::new(place);
        Route { key, filter, topic, deliver, counts, touched, is_cut_off, is_unnamed_logged }
    }
}

/// A topic that is read.
#[derive(Debug, Default)]
pub(super) struct Topic {
    pub(super) partitions: BTreeMap<i32, Partition>,
    /// Whether its partitions are known.
    pub(super) is_known: bool,
    /// Whether the cluster did not have it when it was last looked for.
    pub(super) is_missing: bool,
    /// Time since which its records may have been missed, while no broker was reached.
    pub(super) unread_since: Option<Timestamp>,
}

/// A partition that is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Partition {
    pub(super) mark: Mark,
    /// Whether the consumer has it.
    pub(super) is_assigned: bool,
    /// Whether the last call of [`freeze`](super::incoming::Incoming::freeze) has captured its mark.
    pub(super) is_captured: bool,
    /// Whether it may be read: a snapshot with a mark of it is durable, or none is needed.
    pub(super) is_saved: bool,
    /// Time of the last query for its oldest record.
    pub(super) queried: Option<Instant>,
    /// Greatest gap between two offsets in which no record had expired.
    pub(super) harmless: i64,
    /// Offset in the last call of [`freeze`](super::incoming::Incoming::freeze), and the last committed one, of a member of a
    /// group.
    pub(super) captured: i64,
    pub(super) committed: i64,
    /// Offset behind its last record, when it was last looked for.
    pub(super) end: Option<i64>,
}

impl Partition {
    pub(super) fn new(mark: Mark, is_saved: bool) -> Partition {
        let (is_assigned, is_captured, queried, harmless) = (false, false, None, 0);
        let (captured, committed, end) = (0, 0, None);
        Partition { mark, is_assigned, is_captured, is_saved, queried, harmless, captured, committed, end }
    }

    /// Whether to query for expired records in a gap between two offsets. Compacted topics and transactions have many
    /// gaps: one that is not greater than those before is not queried for soon after the last query.
    pub(super) fn may_have_lost(&self, gap: i64) -> bool {
        let is_due = || self.queried.is_none_or(|queried| queried.elapsed() >= GAPS);
        gap > 0 && (gap > self.harmless || is_due())
    }

    /// Whether it can be passed to the consumer.
    pub(super) fn waits(&self) -> bool {
        self.is_saved && !self.is_assigned
    }
}

impl Routes {
    pub(super) fn partitions(&mut self) -> impl Iterator<Item = &mut Partition> {
        self.topics.values_mut().flat_map(|topic| topic.partitions.values_mut())
    }

    /// Whether all subscriptions exist, and the partitions of their topics are known.
    pub(super) fn are_found(&self) -> bool {
        self.is_begun && self.topics.values().all(|topic| topic.is_known || topic.is_missing)
    }

    pub(super) fn partition(&mut self, topic: &str, number: i32) -> Option<&mut Partition> {
        self.topics.get_mut(topic)?.partitions.get_mut(&number)
    }

    /// Counts records of a partition that have expired before they were read, after the last one at `since`.
    pub(super) fn lost(&self, topic: &str, number: i32, count: u64, since: Timestamp) {
        tracing::warn!(
            "the topic `{topic}` of Kafka has lost {count} records of its partition {number} before they were read: they \
             have expired; raise `retention.ms` or `retention.bytes` of the topic"
        );
        for route in self.all.iter().filter(|route| route.filter.place.topic == topic) {
            route.counts.lost.fetch_add(count, Ordering::Relaxed);
        }
        self.missed(topic, since, Some(now()));
    }

    /// Informs the receivers of a topic that records may have been missed.
    pub(super) fn missed(&self, topic: &str, from: Timestamp, until: Option<Timestamp>) {
        for route in self.all.iter().filter(|route| route.filter.place.topic == topic) {
            route.deliver.missed(route.topic, from, until);
        }
    }

    /// Counts records that cannot be read. The client does not name their topic, and may never pass them: from now on, no
    /// receiver can rely on having all.
    pub(super) fn cut_off(&mut self) {
        let since = now();
        for route in &mut self.all {
            route.counts.malformed.fetch_add(1, Ordering::Relaxed);
            if !std::mem::replace(&mut route.is_cut_off, true) {
                route.deliver.missed(route.topic, since, None);
            }
        }
    }

    /// Counts a partition that is read again from its begin: the topic was created again, or was cut off. Records after
    /// the last one at `since` may be gone.
    pub(super) fn was_reset(&self, topic: &str, number: i32, since: Timestamp) {
        tracing::warn!(
            "the partition {number} of the topic `{topic}` of Kafka was cut off or created again: it is read from its \
             begin, and records may come twice"
        );
        for route in self.all.iter().filter(|route| route.filter.place.topic == topic) {
            route.counts.duplicates.fetch_add(1, Ordering::Relaxed);
        }
        self.missed(topic, since, Some(now()));
    }
}

impl Route {
    /// Delivers a sample to the receiver, if its key and headers are those of the address; counts a tombstone, which has no
    /// sample. A record without a name is undecodable. Returns whether it has one. `header` returns the value of the header of
    /// the record with a name.
    pub(super) fn take<'m>(
        &mut self,
        sample: Option<Sample<'_>>,
        key: Option<&[u8]>,
        header: impl Fn(&str) -> Option<&'m [u8]>,
    ) -> bool {
        let Route { filter, topic, deliver, counts, touched, is_unnamed_logged, .. } = self;
        let part = filter.missing_part();
        let selected = filter.select(key, header);
        if selected == Selected::Other {
            return true;
        }
        // Only the first of each kind is logged.
        let Some(sample) = sample else {
            if counts.empty.fetch_add(1, Ordering::Relaxed) == 0 {
                tracing::warn!(
                    topic = %filter.place.topic,
                    "a record without a value (a tombstone) was received and is ignored; further ones are only counted"
                );
            }
            return true;
        };
        let Selected::Named(name) = selected else {
            if !std::mem::replace(is_unnamed_logged, true) {
                tracing::warn!(
                    topic = %filter.place.topic,
                    "a record without {part} in UTF-8, whose parts are parameters here, is undecodable; further ones are \
                     only counted"
                );
            }
            if deliver.receive_unnamed(*topic, sample, NO_NAME) {
                counts.received.fetch_add(1, Ordering::Relaxed);
                *touched = true;
            } else {
                counts.malformed.fetch_add(1, Ordering::Relaxed);
            }
            return false;
        };
        if deliver.receive(*topic, name, sample) {
            counts.received.fetch_add(1, Ordering::Relaxed);
            *touched = true;
        }
        true
    }
}
