//! Publishers at a broker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Qos;
use super::connection::Connection;
use super::outgoing::Message;
use crate::adapter::{self, Drops, PublishError};

/// A publisher on one topic of a broker.
pub struct Publisher {
    pub(super) connection: Arc<Connection>,
    pub(super) topic: String,
    pub(super) qos: Qos,
    pub(super) retain: bool,
    pub(super) batching: bool,
    pub(super) drops: Arc<Drops>,
    /// Whether refused messages are handed back, and so are not dropped here.
    pub(super) hands_back: AtomicBool,
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publisher")
            .field("topic", &self.topic)
            .field("qos", &self.qos)
            .finish_non_exhaustive()
    }
}

impl Publisher {
    fn message<'a>(&'a self, payload: &'a [u8]) -> Message<'a> {
        let Publisher { topic, qos, retain, batching, .. } = self;
        Message { topic, qos: *qos, retained: *retain, payload, hold: *batching }
    }
}

impl adapter::Publisher for Publisher {
    /// Publishes a payload; blocks while the connection is broken or the limit of unacknowledged messages is reached,
    /// at most for as long as the settings allow.
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        let drops = (!self.hands_back.load(Ordering::Relaxed)).then_some(&*self.drops);
        self.connection.publish(&self.message(payload), drops)
    }

    /// Publishes a payload, and waits at most `limit`: the lock of the connection is not held while waiting for the
    /// broker.
    fn offer(&self, payload: &[u8], limit: Duration) -> Result<(), PublishError> {
        self.connection.offer(&self.message(payload), limit)
    }

    fn release(&self) {
        self.connection.release();
    }

    /// Whether the connection is open: MQTT brokers do not report subscribers.
    fn is_matched(&self) -> bool {
        self.connection.wait_connected(Duration::ZERO)
    }

    fn wait_matched(&self, limit: Duration) -> bool {
        self.connection.wait_connected(limit)
    }

    /// Waits until the broker has acknowledged all messages at QoS 1 and 2. Returns `false` after
    /// `limit`, or if the broker refused any message.
    fn flush(&self, limit: Duration) -> bool {
        self.connection.flush(limit)
    }

    /// Waits until the broker has acknowledged or refused every message at QoS 1 and 2 published before the call.
    fn settle(&self, limit: Duration) -> bool {
        self.connection.settle(limit)
    }

    /// Returns the number of messages at QoS 1 and 2 on this topic that the broker has not acknowledged; `None` while
    /// another thread writes to a broker that reads nothing.
    fn unconfirmed(&self) -> Option<u64> {
        self.connection.unconfirmed(&self.topic)
    }

    fn hand_back(&self) {
        self.hands_back.store(true, Ordering::Relaxed);
    }

    fn unconfirmed_payloads(&self, visit: &mut dyn FnMut(&[u8])) {
        self.connection.unconfirmed_payloads(&self.topic, visit);
    }

    fn drops(&self) -> Option<Arc<Drops>> {
        Some(Arc::clone(&self.drops))
    }
}
