//! Publishers on Zenoh.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use ::zenoh::Wait;
use ::zenoh::bytes::Encoding;
use ::zenoh::key_expr::KeyExpr;
use ::zenoh::qos::CongestionControl;
use ::zenoh::sample::SourceInfo;
use ::zenoh::session::EntityGlobalId;
use rondel_event::Timestamp;

use super::backlog::Backlog;
use super::resend::{CachedPublisher, ResendCache};
use super::watch::{Sent, Watch};
use super::{DeclareError, PublisherSettings};
use crate::adapter::{self, Drops, PublishError};
use crate::ros2::{Attachment, attachment};

/// Limit of a call above which it may block.
const PATIENT: Duration = Duration::from_millis(10);
/// Approximate size of a message beside its payload, in bytes.
const HEAD: usize = 64;
/// Polling interval of closing.
const POLL: Duration = Duration::from_millis(1);
/// Interval of checking for subscriptions that were cut off, at the end.
const LOOK: Duration = Duration::from_millis(25);
/// Interval of requesting confirmations from subscriptions, at the end.
const CONFIRMATION: Duration = Duration::from_millis(200);

/// A publisher on Zenoh. Dropping it undeclares it; published messages are still sent.
#[derive(Debug)]
pub struct Publisher {
    session: ::zenoh::Session,
    publisher: ::zenoh::pubsub::Publisher<'static>,
    gate: Arc<PublishGate>,
    sent: Arc<Sent>,
    /// Whether messages carry their sequence number.
    numbered: bool,
    /// Published messages that subscribers may request.
    keeping: Option<CachedPublisher>,
    /// Number of messages not confirmed by a subscription at the end.
    unconfirmed: AtomicU64,
    watch: Weak<Watch>,
    backlog: Arc<Backlog>,
    ros2: Option<Ros2Metadata>,
}

/// Additional data of the messages of a publisher of ROS 2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ros2Metadata {
    /// The id of the publisher.
    pub(super) gid: [u8; 16],
    /// Number of messages that subscriptions may request.
    pub(super) depth: u64,
}

impl Ros2Metadata {
    /// Returns the attachment of the message with this number, from 0.
    pub(super) fn attachment(&self, number: u64, source_time: Timestamp) -> [u8; attachment::LENGTH] {
        let sequence = i64::try_from(number).map_or(i64::MAX, |number| number.saturating_add(1));
        Attachment { sequence, source_time, gid: self.gid }.write()
    }
}

/// Counts threads that are publishing, to close Zenoh only when there are none. Closing while a
/// publisher blocks is a deadlock: Zenoh's sending thread waits for a lock that the publisher holds
/// until the sending thread has sent something.
#[derive(Debug, Default)]
pub(super) struct PublishGate {
    closed: AtomicBool,
    /// Number of calls of `pass` so far.
    entered: AtomicU64,
    /// Number of calls that have returned.
    returned: AtomicU64,
    /// Number of calls of `answer` that have not returned.
    answering: AtomicU64,
}

impl PublishGate {
    /// Runs `publish`, unless closed.
    #[inline]
    pub(super) fn pass<T>(&self, publish: impl FnOnce() -> T) -> Option<T> {
        // Sequentially consistent, here and in `close`: either this thread sees that the gate is closed,
        // or `close` sees that this thread is publishing.
        self.entered.fetch_add(1, Ordering::SeqCst);
        let result = if self.closed.load(Ordering::SeqCst) { None } else { Some(publish()) };
        self.returned.fetch_add(1, Ordering::SeqCst);
        result
    }

    /// Like [`PublishGate::pass`] for an answer to a subscriber. [`PublishGate::calls`] does not count it, since its
    /// return does not show that a publisher is unblocked.
    pub(super) fn answer<T>(&self, answer: impl FnOnce() -> T) -> Option<T> {
        self.answering.fetch_add(1, Ordering::SeqCst);
        let result = if self.closed.load(Ordering::SeqCst) { None } else { Some(answer()) };
        self.answering.fetch_sub(1, Ordering::SeqCst);
        result
    }

    /// Returns the number of calls so far, and the number of those that have returned.
    pub(super) fn calls(&self) -> (u64, u64) {
        // Read in this order, so that calls that begin in between count as running.
        let returned = self.returned.load(Ordering::SeqCst);
        (self.entered.load(Ordering::SeqCst), returned)
    }

    /// Refuses further publishing and waits for threads that are publishing. Returns whether they
    /// finished before the deadline.
    pub(super) fn close(&self, deadline: Instant) -> bool {
        self.closed.store(true, Ordering::SeqCst);
        loop {
            let (entered, returned) = self.calls();
            if entered == returned && self.answering.load(Ordering::SeqCst) == 0 {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(POLL);
        }
    }
}

/// Matching subscribers of a publisher.
#[derive(Debug, Default)]
pub(super) struct MatchedState {
    now: Mutex<bool>,
    changed: Condvar,
}

impl MatchedState {
    /// Whether there are matching subscribers.
    pub(super) fn get(&self) -> bool {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, matching: bool) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = matching;
        self.changed.notify_all();
    }
}

/// Parts of a session that its publishers share.
#[derive(Clone, Debug)]
pub(super) struct PublishContext {
    pub(super) gate: Arc<PublishGate>,
    pub(super) watch: Arc<Watch>,
    pub(super) cache: Arc<ResendCache>,
    pub(super) backlog: Arc<Backlog>,
}

impl Publisher {
    pub(super) fn declare(
        session: &::zenoh::Session,
        key: KeyExpr<'static>,
        settings: &PublisherSettings,
        context: &PublishContext,
        ros2: Option<Ros2Metadata>,
    ) -> Result<Publisher, DeclareError> {
        let PublishContext { gate, watch, cache, backlog } = context;
        let name = key.to_string();
        let network = |e: ::zenoh::Error| {
            DeclareError::Network(format!("cannot publish on Zenoh key '{name}': {}", super::reason(e)))
        };
        let encoding = settings.encoding.as_deref().map_or(Encoding::ZENOH_BYTES, Encoding::from);
        // Reliability is Zenoh's default; blocking on congestion is not.
        let publisher = session
            .declare_publisher(key.clone())
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
        let sent = Sent { count: AtomicU64::new(0), matched, drops: Arc::default() };
        let sent = Arc::new(sent);
        watch.add(&sent);
        // Before the first message: a subscriber must find the publisher.
        let keep = || cache.keep(session, &key, publisher.id(), &sent, settings.priority, ros2);
        let keeping = settings.numbered.then(keep).transpose().map_err(network)?;
        Ok(Publisher {
            session: session.clone(),
            publisher,
            gate: Arc::clone(gate),
            sent,
            numbered: settings.numbered,
            keeping,
            unconfirmed: AtomicU64::new(0),
            watch: Arc::downgrade(watch),
            backlog: Arc::clone(backlog),
            ros2,
        })
    }
}

impl Publisher {
    /// Returns the id that numbers the messages.
    pub(super) fn id(&self) -> EntityGlobalId {
        self.publisher.id()
    }
}

impl adapter::Publisher for Publisher {
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        adapter::trace_message("published", self.publisher.key_expr().as_str(), payload);
        let sent = self.gate.pass(|| {
            let number = match &self.keeping {
                Some(keeping) => keeping.kept.push(payload),
                None => self.sent.count.fetch_add(1, Ordering::Relaxed),
            };
            // Zenoh's numbers have 32 bits and wrap around.
            let info = || SourceInfo::new(self.publisher.id(), number as u32);
            if let Some(ros2) = &self.ros2 {
                let put = self.publisher.put(payload).attachment(ros2.attachment(number, adapter::now()));
                put.source_info(self.numbered.then(info)).wait()
            } else if self.numbered {
                self.publisher.put(payload).source_info(info()).wait()
            } else {
                self.publisher.put(payload).wait()
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

    /// Publishes unless that would block. A call with a longer limit waits as long as the settings allow: it cannot be
    /// interrupted.
    fn offer(&self, payload: &[u8], limit: Duration) -> Result<(), PublishError> {
        if limit < PATIENT && !self.backlog.admits(payload.len() + HEAD) {
            return Err(PublishError::Slow);
        }
        self.publish(payload)
    }

    fn is_matched(&self) -> bool {
        self.sent.matched.get()
    }

    fn wait_matched(&self, limit: Duration) -> bool {
        let matched = &self.sent.matched;
        let now = matched.now.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = matched.changed.wait_timeout_while(now, limit, |now| !*now);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until every subscription of Rondel has confirmed the published messages, and for other consumers that were
    /// cut off or are requesting missed messages. Messages not confirmed within `limit` are counted.
    fn flush(&self, limit: Duration) -> bool {
        let Some((keeping, watch)) = self.keeping.as_ref().zip(self.watch.upgrade()) else { return true };
        let (deadline, mut requested) = (Instant::now() + limit, None::<Instant>);
        let behind = loop {
            watch.look();
            let count = self.sent.count.load(Ordering::Relaxed);
            let behind = keeping.consumers.positions.behind(count, watch.alone_for());
            let waits_for_others = keeping.kept.keeps() && watch.has_consumers_to_wait_for();
            if behind == 0 && !waits_for_others || Instant::now() >= deadline {
                break behind;
            }
            if behind > 0 && requested.is_none_or(|requested| requested.elapsed() >= CONFIRMATION) {
                requested = Some(Instant::now());
                // There are no requests once the session is closing.
                _ = self.gate.answer(|| keeping.consumers.request_confirmation(count));
            }
            keeping.consumers.positions.wait(LOOK);
        };
        if behind > 0 {
            watch.count_given_up();
        }
        self.unconfirmed.store(behind, Ordering::Relaxed);
        true
    }

    /// Returns the number of unconfirmed messages, without those counted as dropped.
    fn unconfirmed(&self) -> Option<u64> {
        Some(self.unconfirmed.load(Ordering::Relaxed).saturating_sub(self.sent.drops.count()))
    }

    fn drops(&self) -> Option<Arc<Drops>> {
        Some(Arc::clone(&self.sent.drops))
    }
}
