//! Subscriptions on Zenoh.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ::zenoh::Wait;
use ::zenoh::key_expr::KeyExpr;
use ::zenoh::sample::{Locality, SampleKind};
use rondel_event::TopicId;

use super::DeclareError;
use super::consumers::Presence;
use super::envelope::{Envelope, Metadata, PublisherId};
use super::present::EarlyMessages;
use super::recovery::{Numbers, RecoveredSubscription};
use crate::adapter::{self, Problems, Receiver, Sample};

/// A subscription on Zenoh. Dropping it closes it.
pub struct Subscription {
    state: Arc<SubscriptionState>,
    /// Calls the receiver's `idle` a last time and drops it.
    idle: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    subscriber: Mutex<Option<::zenoh::pubsub::Subscriber<()>>>,
    /// Declaration to publishers, until the subscription is closed.
    presence: Mutex<Option<Presence>>,
    /// Numbers of publishers, until the subscription is closed.
    numbers: Mutex<Option<Arc<dyn RecoveredSubscription>>>,
    /// Number of messages known to be missing after the last one received, set on closing.
    missing: AtomicU64,
}

/// State shared with the callback.
#[derive(Debug, Default)]
struct SubscriptionState {
    topic: String,
    received: AtomicU64,
    /// Number of connections when the last message without a number was received.
    connections: AtomicU64,
    /// Number of outages reported to the receiver.
    reported: AtomicUsize,
    empty: AtomicU64,
    /// Whether a task that calls the receiver's `idle` was spawned and has not begun yet.
    idle_pending: AtomicBool,
    /// Messages received before the present state of the topic, which is being queried.
    early: Arc<EarlyMessages>,
    /// Set when Zenoh has dropped the callback, which cannot be running any more.
    ended: Mutex<bool>,
    ended_changed: Condvar,
}

/// Owned by the callback: signals that Zenoh has dropped it.
struct CallbackLife(Arc<SubscriptionState>);

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
    /// Returns the record of messages received before the present state of the topic.
    pub(super) fn early(&self) -> Arc<EarlyMessages> {
        Arc::clone(&self.state.early)
    }

    pub(super) fn declare<R: Receiver + ?Sized>(
        session: &::zenoh::Session,
        key: KeyExpr<'static>,
        topic: TopicId,
        receiver: Arc<R>,
        numbers: Arc<Numbers<R>>,
        envelope: impl Envelope,
    ) -> Result<Subscription, DeclareError> {
        // The first message without a number is always compared with the outages.
        let state = SubscriptionState {
            topic: key.to_string(),
            connections: AtomicU64::new(u64::MAX),
            ..SubscriptionState::default()
        };
        let state = Arc::new(state);
        let connections = numbers.connections();
        let wants_idle = receiver.wants_idle();
        let wants_names = receiver.wants_names(topic);
        // Zenoh delivers messages of the same session on the publishing thread, which may hold locks of the receiver.
        let origin = if receiver.wants_own(topic) { Locality::Any } else { Locality::Remote };
        let at_the_end = Arc::clone(&receiver);
        let life = CallbackLife(Arc::clone(&state));
        let compared = Arc::clone(&numbers);
        let failed = |e: ::zenoh::Error| {
            DeclareError::Network(format!("cannot subscribe to Zenoh key '{key}': {}", super::reason(e)))
        };
        let subscriber = session
            .declare_subscriber(key.clone())
            .allowed_origin(origin)
            .callback(move |sample| {
                let state = &life.0;
                state.received.fetch_add(1, Ordering::Relaxed);
                if sample.kind() == SampleKind::Delete {
                    if state.empty.fetch_add(1, Ordering::Relaxed) == 0 {
                        tracing::warn!(
                            topic = %state.topic,
                            "a deletion was received, which has no payload, and is ignored; further ones are only counted"
                        );
                    }
                    return;
                }
                let name = match wants_names {
                    true => match receiver.number(topic, envelope.topic(sample.key_expr().as_str())) {
                        None => return,
                        number => number,
                    },
                    false => None,
                };
                let Some(Metadata { source_time, origin, of_type }) = envelope.open(&sample) else { return };
                // Borrowed unless the payload arrived in several fragments, that is beyond 64 KiB.
                let payload = sample.payload().to_bytes();
                adapter::trace_message("received", sample.key_expr().as_str(), &payload);
                state.early.note(&payload);
                let received = Sample::new(&payload, source_time, None).with_origin(origin).with_name(name);
                let received = received.with_type(of_type);
                if origin.is_none()
                    && state.connections.load(Ordering::Relaxed) != connections.load(Ordering::Acquire)
                {
                    state.connections.store(connections.load(Ordering::Acquire), Ordering::Relaxed);
                    for outage in compared.unnumbered(state.reported.load(Ordering::Relaxed)) {
                        state.reported.fetch_add(1, Ordering::Relaxed);
                        receiver.missed(topic, outage.from, outage.until);
                    }
                }
                // Only messages numbered by Zenoh can be fetched again.
                if let (Some(info), Some(origin)) = (sample.source_info(), origin)
                    && !compared.pass(origin, info, sample.key_expr().as_str(), &received)
                {
                    return;
                }
                receiver.receive(topic, &[received]);
                if wants_idle && !state.idle_pending.load(Ordering::Acquire) {
                    call_when_idle(state, &receiver);
                }
            })
            .wait()
            .map_err(failed)?;
        let receiving = Arc::clone(&numbers);
        let on_heartbeat =
            move |key: &str, id: PublisherId<'_>, heartbeat| receiving.receive_heartbeat(key, id, heartbeat);
        let presence = Presence::announce(session, &key, numbers.by(), on_heartbeat).map_err(failed)?;
        let idle: Box<dyn FnOnce() + Send> = Box::new(move || at_the_end.idle());
        let numbers: Arc<dyn RecoveredSubscription> = numbers;
        Ok(Subscription {
            state,
            idle: Mutex::new(Some(idle)),
            subscriber: Mutex::new(Some(subscriber)),
            presence: Mutex::new(Some(presence)),
            numbers: Mutex::new(Some(numbers)),
            missing: AtomicU64::new(0),
        })
    }

    fn numbers(&self) -> Option<Arc<dyn RecoveredSubscription>> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of samples received so far.
    pub fn received(&self) -> u64 {
        self.state.received.load(Ordering::Relaxed)
    }
}

/// Spawns a task that calls the receiver's `idle` when Zenoh has no further sample to deliver.
///
/// Zenoh has no such notification, but its executor serves as one: the task runs on the same thread
/// once the task that reads from the network finds nothing more to read, without a wake-up in between.
/// This costs a quarter of a microsecond for the first sample of a burst and nothing for the others.
#[cold]
fn call_when_idle<R: Receiver + ?Sized>(state: &Arc<SubscriptionState>, receiver: &Arc<R>) {
    // A publisher of the same session calls outside of the executor: nothing else is waiting then.
    let Ok(executor) = tokio::runtime::Handle::try_current() else { return receiver.idle() };
    // Ordered with the sample just received: either the task already started sees it, or a new one is
    // started.
    if state.idle_pending.swap(true, Ordering::AcqRel) {
        return;
    }
    let (state, receiver) = (Arc::clone(state), Arc::clone(receiver));
    executor.spawn(async move {
        // Reset before `idle`: a sample that arrives while the receiver is busy needs a task of its own.
        state.idle_pending.swap(false, Ordering::AcqRel);
        receiver.idle();
    });
}

impl adapter::Subscription for Subscription {
    fn drain(&self, quiet: Duration, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let left = || deadline.saturating_duration_since(Instant::now());
        adapter::wait_quiet(|| self.received(), quiet, limit)
            && self.numbers().is_none_or(|numbers| numbers.wait(left()))
    }

    fn close(&self, limit: Duration) -> bool {
        let subscriber = self.subscriber.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(presence) = self.presence.lock().unwrap_or_else(PoisonError::into_inner).take() {
            presence.leave();
        }
        if let Some(subscriber) = subscriber {
            // Undeclaring fails if the session is already closed, which ends the subscription anyway.
            _ = subscriber.undeclare().wait();
            tracing::info!(topic = %self.state.topic, received = self.received(), "closed the subscription");
        }
        let deadline = Instant::now() + limit;
        let numbers = self.numbers();
        let fetched = numbers.as_ref().is_none_or(|numbers| numbers.close(limit));
        let limit = deadline.saturating_duration_since(Instant::now());
        let ended = self.state.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.state.ended_changed.wait_timeout_while(ended, limit, |ended| !*ended);
        let ended = *waited.unwrap_or_else(PoisonError::into_inner).0 && fetched;
        if ended && let Some(idle) = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner).take();
            self.missing.store(numbers.map_or(0, |numbers| numbers.missing()), Ordering::Relaxed);
            // The session may end before a started task runs.
            idle();
        }
        ended
    }

    fn problems(&self) -> Problems {
        let (empty, lost) = (&self.state.empty, &self.missing);
        let [empty, lost] = [empty, lost].map(|count| count.load(Ordering::Relaxed));
        Problems { empty, lost, ..Problems::default() }
    }
}
