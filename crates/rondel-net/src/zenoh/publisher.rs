//! Publishers on Zenoh.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ::zenoh::Wait;
use ::zenoh::bytes::Encoding;
use ::zenoh::key_expr::KeyExpr;
use ::zenoh::qos::CongestionControl;
use ::zenoh::sample::SourceInfo;

use super::{DeclareError, PublisherSettings};
use crate::adapter::{self, PublishError};

/// Polling interval of closing.
const POLL: Duration = Duration::from_millis(1);

/// A publisher on Zenoh. Dropping it undeclares it; published messages are still sent.
#[derive(Debug)]
pub struct Publisher {
    session: ::zenoh::Session,
    publisher: ::zenoh::pubsub::Publisher<'static>,
    matched: Arc<MatchedState>,
    gate: Arc<PublishGate>,
    /// Sequence number of the next message; `None` without numbering.
    next: Option<AtomicU32>,
}

/// Counts threads that are publishing, to close Zenoh only when there are none. Closing while a
/// publisher blocks is a deadlock: Zenoh's sending thread waits for a lock that the publisher holds
/// until the sending thread has sent something.
#[derive(Debug, Default)]
pub(super) struct PublishGate {
    closed: AtomicBool,
    publishing: AtomicU64,
}

impl PublishGate {
    /// Runs `publish`, unless closed.
    #[inline]
    fn pass<T>(&self, publish: impl FnOnce() -> T) -> Option<T> {
        // Sequentially consistent, here and in `close`: either this thread sees that the gate is closed,
        // or `close` sees that this thread is publishing.
        self.publishing.fetch_add(1, Ordering::SeqCst);
        let result = if self.closed.load(Ordering::SeqCst) { None } else { Some(publish()) };
        self.publishing.fetch_sub(1, Ordering::SeqCst);
        result
    }

    /// Refuses further publishing and waits for threads that are publishing. Returns whether they
    /// finished before the deadline.
    pub(super) fn close(&self, deadline: Instant) -> bool {
        self.closed.store(true, Ordering::SeqCst);
        while self.publishing.load(Ordering::SeqCst) > 0 {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(POLL);
        }
        true
    }
}

/// Whether a publisher has matching subscribers.
#[derive(Debug, Default)]
struct MatchedState {
    now: Mutex<bool>,
    changed: Condvar,
}

impl MatchedState {
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
        gate: Arc<PublishGate>,
    ) -> Result<Publisher, DeclareError> {
        let name = key.to_string();
        let network = |e: ::zenoh::Error| {
            DeclareError::Network(format!("cannot publish on Zenoh key '{name}': {}", super::reason(e)))
        };
        let encoding = settings.encoding.as_deref().map_or(Encoding::ZENOH_BYTES, Encoding::from);
        // Reliability is Zenoh's default; blocking on congestion is not.
        let publisher = session
            .declare_publisher(key)
            .congestion_control(CongestionControl::Block)
            .priority(settings.priority)
            .express(settings.express)
            .encoding(encoding)
            .wait()
            .map_err(network)?;
        let matched = Arc::new(MatchedState::default());
        let (listener, topic) = (Arc::clone(&matched), name.clone());
        let on_change = move |status: ::zenoh::matching::MatchingStatus| {
            if status.matching() {
                tracing::debug!(%topic, "the publisher has matching subscribers");
            } else {
                tracing::debug!(%topic, "the publisher has no matching subscriber any more");
            }
            listener.set(status.matching());
        };
        publisher.matching_listener().callback(on_change).background().wait().map_err(network)?;
        tracing::debug!(
            topic = %name, priority = ?settings.priority, express = settings.express, numbered = settings.numbered,
            encoding = settings.encoding.as_deref().unwrap_or("none"), congestion_control = "block",
            "publisher declared"
        );
        Ok(Publisher {
            session: session.clone(),
            publisher,
            matched,
            gate,
            next: settings.numbered.then(AtomicU32::default),
        })
    }
}

impl adapter::Publisher for Publisher {
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        adapter::trace_message("published", self.publisher.key_expr().as_str(), payload);
        let sent = self.gate.pass(|| match &self.next {
            None => self.publisher.put(payload).wait(),
            Some(next) => {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let info = SourceInfo::new(self.publisher.id(), number);
                self.publisher.put(payload).source_info(info).wait()
            }
        });
        sent.ok_or(PublishError::Closed)?.map_err(|e| {
            if self.session.is_closed() {
                PublishError::Closed
            } else {
                PublishError::Network(super::reason(e))
            }
        })
    }

    fn is_matched(&self) -> bool {
        *self.matched.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_matched(&self, limit: Duration) -> bool {
        let now = self.matched.now.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.matched.changed.wait_timeout_while(now, limit, |now| !*now);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
