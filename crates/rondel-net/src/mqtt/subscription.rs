//! Subscriptions at a broker.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rondel_event::{Timestamp, TopicId};

use super::connection::Connection;
use super::incoming::{Deliver, Route, SubscriptionCounts};
use super::session::Breaks;
use super::{DeclareError, Qos, SubscriptionSettings};
use crate::adapter::{self, Problems, Receiver, Sample};

/// A subscription at a broker. Dropping it closes it.
pub struct Subscription {
    connection: Arc<Connection>,
    /// Key of the route; `None` once the subscription is closed.
    key: Mutex<Option<u64>>,
    counts: Arc<SubscriptionCounts>,
    /// Number of reconnections of the session, reported only by its first subscription.
    breaks: Option<Arc<Breaks>>,
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").field("counts", &self.counts).finish_non_exhaustive()
    }
}

/// Delivers messages to a receiver of type `R`.
struct DeliverTo<R: ?Sized> {
    wants_idle: bool,
    wants_names: bool,
    receiver: Arc<R>,
}

impl<R: Receiver + ?Sized> Deliver for DeliverTo<R> {
    fn receive(&self, topic: TopicId, name: &str, samples: &[Sample<'_>]) {
        if !self.wants_names {
            return self.receiver.receive(topic, samples);
        }
        let Some(number) = self.receiver.number(topic, name) else { return };
        for sample in samples {
            self.receiver.receive(topic, &[sample.with_name(Some(number))]);
        }
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

/// Delivers messages to an observer, each with its topic.
#[cfg(all(feature = "dds", feature = "zenoh"))]
struct DeliverObserved(crate::observe::Observer);

#[cfg(all(feature = "dds", feature = "zenoh"))]
impl Deliver for DeliverObserved {
    fn receive(&self, _topic: TopicId, name: &str, samples: &[Sample<'_>]) {
        for sample in samples {
            let (source_time, origin) = (sample.source_time, sample.origin);
            (self.0)(crate::observe::Observed { topic: name, payload: sample.payload, source_time, origin });
        }
    }

    fn idle(&self) {}

    fn missed(&self, _topic: TopicId, _from: Timestamp, _until: Option<Timestamp>) {}
}

impl Subscription {
    #[cfg(all(feature = "dds", feature = "zenoh"))]
    pub(super) fn observe(
        connection: Arc<Connection>,
        filter: &str,
        qos: Qos,
        observer: crate::observe::Observer,
    ) -> Result<Subscription, DeclareError> {
        let counts = Arc::new(SubscriptionCounts::default());
        let route = Route {
            filter: filter.to_owned(),
            qos,
            settings: SubscriptionSettings::default(),
            topic: TopicId(0),
            deliver: Box::new(DeliverObserved(observer)),
            counts: Arc::clone(&counts),
        };
        let key = connection.subscribe(route).map_err(DeclareError::Network)?;
        Ok(Subscription { connection, key: Mutex::new(Some(key)), counts, breaks: None })
    }

    pub(super) fn declare<R: Receiver + ?Sized>(
        connection: Arc<Connection>,
        filter: &str,
        qos: Qos,
        settings: SubscriptionSettings,
        topic: TopicId,
        receiver: Arc<R>,
        breaks: Option<Arc<Breaks>>,
    ) -> Result<Subscription, DeclareError> {
        let counts = Arc::new(SubscriptionCounts::default());
        let route = Route {
            filter: filter.to_owned(),
            qos,
            settings,
            topic,
            deliver: Box::new(DeliverTo {
                wants_idle: receiver.wants_idle(),
                wants_names: receiver.wants_names(topic),
                receiver,
            }),
            counts: Arc::clone(&counts),
        };
        let key = connection.subscribe(route).map_err(DeclareError::Network)?;
        Ok(Subscription { connection, key: Mutex::new(Some(key)), counts, breaks })
    }

    /// Returns the number of messages received so far.
    pub fn received(&self) -> u64 {
        self.counts.received.load(Ordering::Relaxed)
    }
}

impl adapter::Subscription for Subscription {
    fn drain(&self, quiet: Duration, limit: Duration) -> bool {
        adapter::wait_quiet(|| self.received(), quiet, limit)
    }

    fn close(&self, limit: Duration) -> bool {
        let mut key = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        if key.is_some_and(|key| !self.connection.unsubscribe(key, limit)) {
            return false;
        }
        *key = None;
        true
    }

    fn problems(&self) -> Problems {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Problems {
            empty: count(&self.counts.empty),
            duplicates: count(&self.counts.duplicates),
            incompatible: count(&self.counts.refused),
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
