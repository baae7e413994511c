use std::sync::Arc;
use std::time::Duration;

use super::Qos;
use super::connection::Connection;
use crate::adapter::{self, PublishError};

/// A publisher at a broker.
pub struct Publisher {
    pub(super) connection: Arc<Connection>,
    pub(super) topic: String,
    pub(super) qos: Qos,
    pub(super) retain: bool,
    pub(super) batching: bool,
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publisher")
            .field("topic", &self.topic)
            .field("qos", &self.qos)
            .finish_non_exhaustive()
    }
}

impl adapter::Publisher for Publisher {
    /// Waits while the connection is broken, and while as many messages as the broker allows are not
    /// acknowledged.
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        self.connection.publish(&self.topic, self.qos, self.retain, payload, self.batching)
    }

    fn release(&self) {
        self.connection.release();
    }

    /// Whether the broker is there: it does not say who has subscribed.
    fn is_matched(&self) -> bool {
        self.connection.wait_connected(Duration::ZERO)
    }

    fn wait_matched(&self, limit: Duration) -> bool {
        self.connection.wait_connected(limit)
    }

    /// Waits until the broker has read everything, and has acknowledged what it acknowledges. Also
    /// false when it did not accept all of it.
    fn flush(&self, limit: Duration) -> bool {
        self.connection.flush(limit)
    }
}
