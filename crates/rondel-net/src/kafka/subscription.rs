//! Subscriptions to topics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rondel_event::{Timestamp, TopicId};

use super::incoming::Incoming;
use super::watch::Breaks;
use crate::adapter::{self, Problems, Receiver, Sample};

/// Receiver of the records of a subscription, without its type.
pub(super) trait Deliver: Send {
    /// Receives the sample of a record, and its name: the topic, with the key if the subscription has parameters.
    /// Returns whether it was wanted.
    fn receive(&self, topic: TopicId, name: &str, sample: Sample<'_>) -> bool;
    /// Receives the sample of a record that has no name, for this reason. Returns whether the receiver counts it.
    fn receive_unnamed(&self, _topic: TopicId, _sample: Sample<'_>, _why: &str) -> bool {
        false
    }
    /// Returns why the last record could not be decoded, once.
    fn refusal(&self, _topic: TopicId) -> Option<Box<str>> {
        None
    }
    fn idle(&self);
    fn missed(&self, topic: TopicId, from: Timestamp, until: Option<Timestamp>);
}

/// Delivers records to a receiver of type `R`.
pub(super) struct DeliverTo<R: ?Sized> {
    wants_idle: bool,
    wants_names: bool,
    receiver: Arc<R>,
}

impl<R: Receiver + ?Sized> DeliverTo<R> {
    pub(super) fn new(topic: TopicId, receiver: Arc<R>) -> DeliverTo<R> {
        DeliverTo { wants_idle: receiver.wants_idle(), wants_names: receiver.wants_names(topic), receiver }
    }
}

impl<R: Receiver + ?Sized> Deliver for DeliverTo<R> {
    fn receive(&self, topic: TopicId, name: &str, sample: Sample<'_>) -> bool {
        let sample = if self.wants_names {
            let Some(number) = self.receiver.number(topic, name) else { return false };
            sample.with_name(Some(number))
        } else {
            sample
        };
        self.receiver.receive(topic, &[sample]);
        true
    }

    fn receive_unnamed(&self, topic: TopicId, sample: Sample<'_>, why: &str) -> bool {
        self.receiver.receive_unnamed(topic, sample, why)
    }

    fn refusal(&self, topic: TopicId) -> Option<Box<str>> {
        self.receiver.refusal(topic)
    }

    fn idle(&self) {
        if self.wants_idle {
            self.receiver.idle();
        }
    }

    fn missed(&self, topic: TopicId, from: Timestamp, until: Option<Timestamp>) {
        self.receiver.missed(topic, from, until);
    }
}

/// Delivers records to an observer, each with its topic.
#[cfg(all(feature = "dds", feature = "mqtt", feature = "zenoh"))]
pub(super) struct DeliverObserved(pub(super) crate::observe::Observer);

#[cfg(all(feature = "dds", feature = "mqtt", feature = "zenoh"))]
impl Deliver for DeliverObserved {
    fn receive(&self, _topic: TopicId, name: &str, sample: Sample<'_>) -> bool {
        let (source_time, origin) = (sample.source_time, sample.origin);
        (self.0)(crate::observe::Observed { topic: name, payload: sample.payload, source_time, origin });
        true
    }

    fn idle(&self) {}

    fn missed(&self, _topic: TopicId, _from: Timestamp, _until: Option<Timestamp>) {}
}

/// Counters of one subscription.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) received: AtomicU64,
    /// Tombstones.
    pub(super) empty: AtomicU64,
    /// Attempts to fetch records that cannot be read, and records without a key that can be a parameter, unless the receiver
    /// counts them.
    pub(super) malformed: AtomicU64,
    /// Expired records.
    pub(super) lost: AtomicU64,
    /// Partitions that were read again from their begin.
    pub(super) duplicates: AtomicU64,
    /// 1 if the user may not read the topic.
    pub(super) refused: AtomicU64,
}

/// A subscription to a topic. Dropping it closes it.
pub(super) struct Subscription {
    pub(super) incoming: Arc<Incoming>,
    /// Key of the route; `None` once the subscription is closed.
    pub(super) key: Mutex<Option<u64>>,
    pub(super) counts: Arc<Counts>,
    /// Lost connections of the session, reported only by its first subscription.
    pub(super) breaks: Option<Arc<Breaks>>,
}

impl adapter::Subscription for Subscription {
    fn drain(&self, quiet: Duration, limit: Duration) -> bool {
        adapter::wait_quiet(|| self.counts.received.load(Ordering::Relaxed), quiet, limit)
    }

    fn close(&self, limit: Duration) -> bool {
        let mut key = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        if key.is_some_and(|key| !self.incoming.unsubscribe(key, limit)) {
            return false;
        }
        *key = None;
        true
    }

    fn problems(&self) -> Problems {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Problems {
            malformed: count(&self.counts.malformed),
            empty: count(&self.counts.empty),
            lost: count(&self.counts.lost),
            incompatible: count(&self.counts.refused),
            duplicates: count(&self.counts.duplicates),
            breaks: self.breaks.as_ref().map_or(0, |breaks| count(&breaks.count)),
            ..Problems::default()
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        adapter::Subscription::close(self, Duration::ZERO);
    }
}
