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

/// How often closing looks again.
const POLL: Duration = Duration::from_millis(1);

/// A publisher on Zenoh. Dropping it undeclares it; what it published is still sent.
#[derive(Debug)]
pub struct Publisher {
    session: ::zenoh::Session,
    publisher: ::zenoh::pubsub::Publisher<'static>,
    matched: Arc<Matched>,
    gate: Arc<Gate>,
    /// The number of the next message, where they are numbered.
    next: Option<AtomicU32>,
}

/// Says who is publishing. Zenoh must not be asked to close while a publisher blocks: its sending
/// thread would wait for a lock that the publisher holds until the sending thread has sent something.
#[derive(Debug, Default)]
pub(super) struct Gate {
    closed: AtomicBool,
    publishing: AtomicU64,
}

impl Gate {
    /// Runs `publish`, unless closed.
    #[inline]
    fn pass<T>(&self, publish: impl FnOnce() -> T) -> Option<T> {
        // Sequentially consistent, here and in `close`: either this sees that the gate is closed, or
        // the other sees that somebody is in it.
        self.publishing.fetch_add(1, Ordering::SeqCst);
        let result = if self.closed.load(Ordering::SeqCst) { None } else { Some(publish()) };
        self.publishing.fetch_sub(1, Ordering::SeqCst);
        result
    }

    /// Lets nobody in any more, and waits until `deadline` for those who are. Whether they have left.
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
        gate: Arc<Gate>,
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
