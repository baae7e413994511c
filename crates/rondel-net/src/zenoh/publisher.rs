use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use ::zenoh::Wait;
use ::zenoh::bytes::Encoding;
use ::zenoh::key_expr::KeyExpr;
use ::zenoh::qos::CongestionControl;

use super::{DeclareError, PublisherSettings};
use crate::adapter::{self, PublishError};

/// A publisher on Zenoh. Dropping it undeclares it; what it published is still sent.
#[derive(Debug)]
pub struct Publisher {
    session: ::zenoh::Session,
    publisher: ::zenoh::pubsub::Publisher<'static>,
    matched: Arc<Matched>,
}

#[derive(Debug, Default)]
struct Matched {
    now: Mutex<bool>,
    changed: Condvar,
}

impl Matched {
    fn set(&self, matching: bool) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = matching;
        self.changed.notify_all();
    }
}

impl Publisher {
    pub(super) fn declare(
        session: &::zenoh::Session,
        key: KeyExpr<'static>,
        settings: &PublisherSettings,
    ) -> Result<Publisher, DeclareError> {
        let network = |e: ::zenoh::Error| DeclareError::Network(super::reason(e));
        let encoding = settings.encoding.as_deref().map_or(Encoding::ZENOH_BYTES, Encoding::from);
        // Reliable is Zenoh's default; blocking is not.
        let publisher = session
            .declare_publisher(key)
            .congestion_control(CongestionControl::Block)
            .priority(settings.priority)
            .express(settings.express)
            .encoding(encoding)
            .wait()
            .map_err(network)?;
        let matched = Arc::new(Matched::default());
        let listener = Arc::clone(&matched);
        publisher
            .matching_listener()
            .callback(move |status| listener.set(status.matching()))
            .background()
            .wait()
            .map_err(network)?;
        Ok(Publisher { session: session.clone(), publisher, matched })
    }
}

impl adapter::Publisher for Publisher {
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        self.publisher.put(payload).wait().map_err(|e| {
            if self.session.is_closed() {
                PublishError::Closed
            } else {
                PublishError::Network(super::reason(e))
            }
        })
    }

    /// Zenoh holds nothing back.
    fn release(&self) {}

    fn is_matched(&self) -> bool {
        *self.matched.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_matched(&self, limit: Duration) -> bool {
        let now = self.matched.now.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.matched.changed.wait_timeout_while(now, limit, |now| !*now);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn flush(&self, _limit: Duration) -> bool {
        true
    }
}
