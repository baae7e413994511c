use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use ::zenoh::Wait;
use ::zenoh::key_expr::KeyExpr;
use ::zenoh::sample::{SampleKind, SourceInfo};
use rondel_event::{Origin, Timestamp, TopicId};

use super::DeclareError;
use crate::adapter::{self, Problems, Receiver, Sample};

/// A subscription on Zenoh.
pub struct Subscription {
    shared: Arc<Shared>,
    /// Tells the receiver, and then lets go of it, that nothing more is waiting.
    idle: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    subscriber: Mutex<Option<::zenoh::pubsub::Subscriber<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    received: AtomicU64,
    empty: AtomicU64,
    /// Whether it is under way that the receiver is told that nothing more is waiting.
    telling: AtomicBool,
    /// Set when Zenoh has dropped the callback, so that it cannot be running any more.
    ended: Mutex<bool>,
    ended_changed: Condvar,
}

/// Lives in the callback; its end is the callback's end.
struct CallbackLife(Arc<Shared>);

impl Drop for CallbackLife {
    fn drop(&mut self) {
        *self.0.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.ended_changed.notify_all();
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("subscriber", &self.subscriber).finish_non_exhaustive()
    }
}

impl Subscription {
    pub(super) fn declare<R: Receiver + ?Sized>(
        session: &::zenoh::Session,
        key: KeyExpr<'static>,
        topic: TopicId,
        receiver: Arc<R>,
    ) -> Result<Subscription, DeclareError> {
        let shared = Arc::new(Shared::default());
        let wants_idle = receiver.wants_idle();
        let at_the_end = Arc::clone(&receiver);
        let life = CallbackLife(Arc::clone(&shared));
        let name = key.to_string();
        let subscriber = session
            .declare_subscriber(key)
            .callback(move |sample| {
                let shared = &life.0;
                shared.received.fetch_add(1, Ordering::Relaxed);
                if sample.kind() == SampleKind::Delete {
                    if shared.empty.fetch_add(1, Ordering::Relaxed) == 0 {
                        tracing::warn!(topic = %name, "a deletion was published here; it carries nothing to check");
                    }
                    return;
                }
                let source_time = sample.timestamp().map(|t| {
                    Timestamp::from_nanos(i64::try_from(t.get_time().as_nanos()).unwrap_or(i64::MAX))
                });
                // Borrowed, except when the payload came in several pieces: beyond 64 KiB.
                let payload = sample.payload().to_bytes();
                let origin = sample.source_info().map(origin_of);
                receiver.receive(topic, &[Sample::new(&payload, source_time, None).with_origin(origin)]);
                if wants_idle && !shared.telling.load(Ordering::Acquire) {
                    tell_when_idle(shared, &receiver);
                }
            })
            .wait()
            .map_err(|e| DeclareError::Network(super::reason(e)))?;
        let idle: Box<dyn FnOnce() + Send> = Box::new(move || at_the_end.idle());
        Ok(Subscription { shared, idle: Mutex::new(Some(idle)), subscriber: Mutex::new(Some(subscriber)) })
    }

    /// Samples received so far.
    pub fn received(&self) -> u64 {
        self.shared.received.load(Ordering::Relaxed)
    }
}

/// Who sent a sample, and as which one.
fn origin_of(info: &SourceInfo) -> Origin {
    let mut hasher = DefaultHasher::new();
    info.source_id().hash(&mut hasher);
    Origin { publisher: hasher.finish(), number: info.source_sn().into() }
}

/// Sees to it that the receiver is told when Zenoh has nothing more to hand over.
///
/// Zenoh does not say so, but its executor does: a task that is started from here waits until the one
/// that reads from the network finds nothing more to read, and then runs on the same thread, without
/// a wake-up in between. One message by itself so costs a quarter of a microsecond more; of many that
/// come together, only the first one does.
#[cold]
fn tell_when_idle<R: Receiver + ?Sized>(shared: &Arc<Shared>, receiver: &Arc<R>) {
    // On no executor, as when a publisher of this very session calls, there is nothing to wait for.
    let Ok(executor) = tokio::runtime::Handle::try_current() else { return receiver.idle() };
    // Ordered with the sample that the receiver has just taken: either the task that is under way sees
    // it, or this one is started.
    if shared.telling.swap(true, Ordering::AcqRel) {
        return;
    }
    let (shared, receiver) = (Arc::clone(shared), Arc::clone(receiver));
    executor.spawn(async move {
        // First this: a sample that comes while the receiver is busy starts a task of its own.
        shared.telling.swap(false, Ordering::AcqRel);
        receiver.idle();
    });
}

impl adapter::Subscription for Subscription {
    fn drain(&self, quiet: Duration, limit: Duration) -> bool {
        adapter::wait_quiet(|| self.received(), quiet, limit)
    }

    fn close(&self, limit: Duration) -> bool {
        let subscriber = self.subscriber.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(subscriber) = subscriber {
            // It fails when the session is closed already, which ends the subscription just as well.
            _ = subscriber.undeclare().wait();
        }
        let ended = self.shared.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.shared.ended_changed.wait_timeout_while(ended, limit, |ended| !*ended);
        let ended = *waited.unwrap_or_else(PoisonError::into_inner).0;
        if ended && let Some(idle) = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // The task that was to tell it may never run, now that the session ends.
            idle();
        }
        ended
    }

    fn problems(&self) -> Problems {
        Problems { empty: self.shared.empty.load(Ordering::Relaxed), ..Problems::default() }
    }
}
