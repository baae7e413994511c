//! Subscriptions on DDS.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rondel_decode::cdr;
use rondel_event::TypeIndex;

use super::awaiting::Awaiting;
use super::base::{Base, Opened, PUBLISHERS, STOP};
use super::declared::Declared;
use super::domain::Domain;
use super::entity::Entity;
use super::further::{Delivery, Part};
use super::publishers::PublisherWatch;
use super::worker::Worker;
use super::{DeclareError, DeclaredTopic, TopicType, check_topic, topic};
use crate::adapter::{self, Problems, Receiver};

/// Time limit of closing in `Drop`.
const DROP_LIMIT: Duration = Duration::from_secs(1);

/// Initial state of the thread of a subscription.
enum Start {
    /// With a reader.
    Now(Opened),
    /// With the search for a type.
    Discovered(Awaiting),
}

/// A subscription on DDS with a thread of its own. Dropping it closes it.
#[derive(Debug)]
pub struct Subscription {
    state: Arc<SubscriptionState>,
    stop: Arc<Entity>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
pub(super) struct SubscriptionState {
    pub(super) received: AtomicU64,
    pub(super) malformed: AtomicU64,
    pub(super) instance_events: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) incompatible: AtomicU64,
    /// Publishers that match at present.
    pub(super) publishers: AtomicU64,
    /// Subscriptions to publishers with another type, by their types.
    pub(super) further: Mutex<Vec<(TypeIndex, Subscription)>>,
    stopping: AtomicBool,
    ended: Mutex<bool>,
    ended_changed: Condvar,
}

impl SubscriptionState {
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Returns the sample itself or the string in it; counts a sample that has none.
    #[inline]
    pub(super) fn payload<'d>(&self, topic: &str, data: &'d [u8], is_raw: bool) -> Option<&'d [u8]> {
        if is_raw {
            return Some(data);
        }
        let payload = cdr::string(data);
        if let Err(why) = &payload
            && self.malformed.fetch_add(1, Ordering::Relaxed) == 0
        {
            tracing::warn!(
                %topic,
                "a sample of {} bytes is not a structure with one string: {why}; it is ignored, further ones are only \
                 counted",
                data.len()
            );
        }
        payload.ok()
    }
}

/// Owned by the thread: reports its end, also if the receiver panics.
struct ThreadLife(Arc<SubscriptionState>);

impl Drop for ThreadLife {
    fn drop(&mut self) {
        *self.0.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.ended_changed.notify_all();
    }
}

impl Subscription {
    pub(super) fn create<R: Receiver + ?Sized>(
        domain: Arc<Domain>,
        name: &str,
        of: DeclaredTopic<'_>,
        queue: u32,
        part: Part,
        receiver: Arc<R>,
    ) -> Result<Subscription, DeclareError> {
        let DeclaredTopic { topic_type, qos, schema } = of;
        qos.check().map_err(DeclareError::Qos)?;
        let state = Arc::new(SubscriptionState::default());
        let participant = domain.participant();
        // SAFETY: a live handle.
        let stop = unsafe { cyclors::dds_create_guardcondition(participant) };
        let stop = Arc::new(Entity::own(stop, "DDS condition")?);
        // SAFETY: a live handle.
        let waitset = Entity::own(unsafe { cyclors::dds_create_waitset(participant) }, "DDS wait set")?;
        let publishers = PublisherWatch::watch(&domain, name, topic_type.name(), &qos.partitions)?;
        let mut base = Base {
            waitset,
            publishers,
            _stop: Arc::clone(&stop),
            domain,
            state: Arc::clone(&state),
            name: name.to_owned(),
            queue,
            declared: schema.cloned().map(Declared::new),
        };
        base.attach_condition(base.publishers.reader(), PUBLISHERS)?;
        base.attach(stop.handle(), STOP)?;
        let start = match topic_type {
            TopicType::Text(text) => {
                let topic = topic::create(&base.domain, name, text)?;
                let opened = base.open(topic, false, &text.name, qos)?;
                base.publishers.begin(&text.name);
                Start::Now(opened)
            }
            TopicType::Raw(raw) => {
                check_topic(name)?;
                let any = "that of the first publisher";
                tracing::info!(topic = %name, type_name = raw.name.as_deref().unwrap_or(any), "waiting for a publisher");
                Start::Discovered(Awaiting { raw: raw.clone(), qos: qos.clone() })
            }
        };
        let raw = match topic_type {
            TopicType::Raw(raw) => Some(raw.clone()),
            TopicType::Text(_) => None,
        };
        let wants_types = raw.is_some() && receiver.wants_types(part.topic);
        let delivery = Delivery { receiver, part, wants_types, raw, qos: qos.clone() };
        let life = ThreadLife(Arc::clone(&state));
        let thread = std::thread::Builder::new()
            .name(format!("dds {name}"))
            .spawn(move || {
                let _life = life;
                let mut base = base;
                let (opened, is_raw) = match start {
                    Start::Now(opened) => (Some(opened), false),
                    Start::Discovered(awaiting) => (awaiting.wait(&mut base, &delivery), true),
                };
                if let Some(opened) = opened {
                    Worker::new(base, opened, is_raw, delivery.part.of_type).run(&delivery);
                }
            })
            .map_err(|e| DeclareError::Network { what: "thread", reason: e.to_string() })?;
        Ok(Subscription { state, stop, thread: Mutex::new(Some(thread)) })
    }

    /// Returns the number of samples received so far.
    pub fn received(&self) -> u64 {
        let further = self.further();
        let further = further.iter().map(|(_, subscription)| subscription.received()).sum::<u64>();
        self.state.received.load(Ordering::Relaxed) + further
    }

    /// Returns the subscriptions of further types.
    fn further(&self) -> MutexGuard<'_, Vec<(TypeIndex, Subscription)>> {
        self.state.further.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl adapter::Subscription for Subscription {
    fn drain(&self, quiet: Duration, limit: Duration) -> bool {
        adapter::wait_quiet(|| self.received(), quiet, limit)
    }

    fn close(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        self.state.stopping.store(true, Ordering::Release);
        // SAFETY: a live handle. Wakes the thread.
        unsafe { cyclors::dds_set_guardcondition(self.stop.handle(), true) };
        let ended = self.state.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.state.ended_changed.wait_timeout_while(ended, limit, |ended| !*ended);
        let ended = *waited.unwrap_or_else(PoisonError::into_inner).0;
        if ended && let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // The thread is about to return. A panic was reported when it happened.
            _ = thread.join();
        }
        // No further ones are created once the thread has ended.
        let mut all_ended = ended;
        for (_, subscription) in &*self.further() {
            all_ended &= subscription.close(deadline.saturating_duration_since(Instant::now()));
        }
        all_ended
    }

    fn problems(&self) -> Problems {
        let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let s = &self.state;
        let mut all = Problems {
            malformed: read(&s.malformed),
            instance_events: read(&s.instance_events),
            lost: read(&s.lost),
            incompatible: read(&s.incompatible),
            ..Problems::default()
        };
        for (_, subscription) in &*self.further() {
            // The publishers of other types are incompatible with its reader, and are counted where they match.
            all += Problems { incompatible: 0, ..subscription.problems() };
        }
        all
    }

    fn publishers(&self) -> Option<u64> {
        let further = self.further();
        let further = further.iter().filter_map(|(_, subscription)| subscription.publishers());
        Some(self.state.publishers.load(Ordering::Relaxed) + further.sum::<u64>())
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        adapter::Subscription::close(self, DROP_LIMIT);
    }
}
