//! Publishers on DDS.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use cyclors::{dds_entity_t, ddsi_sertype, ddsrt_iovec_t};

use super::announced_node::Member;
use super::domain::Domain;
use super::entity::{Entity, Qos, check, duration, message, policy_name};
use super::matches::{self, Counted, Matches};
use super::published::{self, Form, PublishedTopic};
use super::slow::SlowConsumer;
use super::unacknowledged::{SampleReference, Unacknowledged};
use super::{DeclareError, DeclaredTopic, Durability, PublisherSettings, TopicType, topic};
use crate::adapter::{self, Drops, PublishError};
use rondel_decode::cdr;
use rondel_decode::schema::Schema;

/// Time after which a blocked write returns to its caller.
const BLOCK: Duration = Duration::from_micros(500);
/// Polling interval of waiting for a subscriber.
const POLL: Duration = Duration::from_millis(2);
/// Id of the data representation that every reader supports.
const XCDR1: i16 = 0;
/// Id of its second version.
const XCDR2: i16 = 2;

/// A publisher on DDS. Dropping it deletes the writer; unacknowledged samples are still
/// delivered for up to a second.
#[derive(Debug)]
pub struct Publisher {
    writer: Arc<Writer>,
}

/// The writer of a publisher, which the participant also refers to.
#[derive(Debug)]
pub(super) struct Writer {
    /// The library's description of the topic's type. Valid as long as `topic`.
    serialised_type: *const ddsi_sertype,
    form: Form,
    /// Samples to hand back, once that is requested.
    unacknowledged: OnceLock<Unacknowledged>,
    /// Whether samples are kept after they are acknowledged.
    keeps: bool,
    /// Membership in the graph of ROS 2.
    _member: Option<Member>,
    writer: Entity,
    /// Argument of the listener's callbacks: dropped after `writer`, whose deletion waits for them.
    log: Box<WriterLog>,
    slow: SlowConsumer,
    matches: Mutex<Matches>,
    _topic: Entity,
    /// Dropped last: see the order of the fields.
    domain: Arc<Domain>,
}

// SAFETY: handles may be used by any thread (see `Entity`). The type description is only read and
// counted by the library, which does so atomically; it lives as long as the topic, which lives as long
// as this.
unsafe impl Send for Writer {}
// SAFETY: as above: calls that write take the writer's lock inside the library.
unsafe impl Sync for Writer {}

impl Publisher {
    pub(super) fn create(
        domain: Arc<Domain>,
        name: &str,
        of: DeclaredTopic<'_>,
        settings: PublisherSettings,
        slow_consumer: Option<Duration>,
        history: u32,
    ) -> Result<Publisher, DeclareError> {
        let DeclaredTopic { topic_type, qos: wanted, schema } = of;
        wanted.check().map_err(DeclareError::Qos)?;
        let PublishedTopic { topic, type_name, form, is_registered } = match topic_type {
            TopicType::Text(text) => PublishedTopic {
                topic: topic::create(&domain, name, text)?,
                type_name: text.name.clone(),
                form: Form::Text,
                is_registered: true,
            },
            TopicType::Raw(raw) => published::create(&domain, name, raw, schema)?,
        };
        let representation = if form == Form::SecondVersion { XCDR2 } else { XCDR1 };
        let log = Box::new(WriterLog { topic: name.to_owned(), warned: AtomicBool::new(false) });
        let listener = Listener::new(&log);
        let history = match wanted.durability {
            Some(Durability::Volatile) => 0,
            None => history,
            Some(_) => history.max(wanted.depth.unwrap_or(1)),
        };
        let qos = Qos::new()
            .reliable(BLOCK, None)
            .representations(&[representation])
            .batching(settings.batching)
            .keeping_instances();
        let qos = if history > 0 { qos.keeping(Some(history)) } else { qos };
        let qos = qos.offering(wanted)?;
        // In the form of ROS 2, whose tools compare it.
        let hash = schema.filter(|_| type_name.contains("::dds_::")).and_then(Schema::rihs01);
        let qos = match hash {
            Some(hash) => qos.user_data(&format!("typehash={hash};")),
            None => qos,
        };
        // SAFETY: live handles; QoS and listener outlive the call, which copies them. The listener's
        // argument outlives the writer (see `Writer::log`).
        let writer = unsafe {
            cyclors::dds_create_writer(domain.participant(), topic.handle(), qos.as_ptr(), listener.0)
        };
        let writer = Entity::own(writer, "DDS writer")?;
        tracing::debug!(
            topic = %name, %type_name, reliability = "reliable", kept = history,
            history = "keep all", ?form, batching = settings.batching, "publisher created"
        );
        // A topic without a key has one instance. Unless it is registered, the library creates it for each
        // sample and deletes it after the acknowledgement on another thread, which is a good part of the
        // cost of publishing.
        if is_registered {
            let (mut instance, no_text) = (0, c"".as_ptr());
            // SAFETY: a live handle, a place for the number, and a sample of the type: a structure with one pointer to
            // terminated text. Samples of other types without a key are not read. The call copies the sample.
            let code = unsafe {
                cyclors::dds_register_instance(writer.handle(), &mut instance, (&raw const no_text).cast())
            };
            check(code, "DDS instance")?;
        }
        let mut serialised_type = ptr::null();
        // SAFETY: a live handle and a place for a pointer.
        let code = unsafe { cyclors::dds_get_entity_sertype(writer.handle(), &mut serialised_type) };
        check(code, "DDS type")?;
        let member = domain.announce(name, &writer, true);
        let slow = SlowConsumer::new(name, slow_consumer);
        let writer = Writer {
            serialised_type,
            form,
            unacknowledged: OnceLock::new(),
            keeps: history > 0,
            _member: member,
            writer,
            log,
            slow,
            matches: Mutex::default(),
            _topic: topic,
            domain,
        };
        Ok(Publisher { writer: Arc::new(writer) })
    }

    /// Whether samples must be in the second version of the encoding, as for extensible types.
    pub fn needs_second_version(&self) -> bool {
        self.writer.form == Form::SecondVersion
    }

    pub(super) fn writer(&self) -> Weak<Writer> {
        Arc::downgrade(&self.writer)
    }
}

/// Topic of a writer and state of its log lines.
#[derive(Debug)]
struct WriterLog {
    topic: String,
    /// Whether an incompatible subscriber was reported.
    warned: AtomicBool,
}

/// A listener that logs changes of a writer's subscribers.
struct Listener(*mut cyclors::dds_listener_t);

impl Listener {
    fn new(log: &WriterLog) -> Listener {
        let argument = ptr::from_ref(log).cast_mut().cast::<c_void>();
        // SAFETY: allocates; the argument is stored and not used by the library.
        let listener = unsafe { cyclors::dds_create_listener(argument) };
        // SAFETY: a live listener and functions that live as long as the process.
        unsafe {
            cyclors::dds_lset_publication_matched(listener, Some(subscribers_changed));
            cyclors::dds_lset_offered_incompatible_qos(listener, Some(subscriber_incompatible));
        }
        Listener(listener)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // SAFETY: made by `dds_create_listener`, freed once; the writer has a copy.
        unsafe { cyclors::dds_delete_listener(self.0) };
    }
}

/// Called by the library when a subscriber matches or leaves.
unsafe extern "C" fn subscribers_changed(
    _: dds_entity_t,
    status: cyclors::dds_publication_matched_status_t,
    argument: *mut c_void,
) {
    // SAFETY: the argument of `Listener::new`, which outlives the writer and is only read.
    let Some(log) = (unsafe { argument.cast::<WriterLog>().as_ref() }) else { return };
    let subscribers = status.current_count;
    tracing::debug!(topic = %log.topic, subscribers, "the number of matching subscribers changed");
}

/// Called by the library when a subscriber requests a QoS that the writer does not offer.
unsafe extern "C" fn subscriber_incompatible(
    _: dds_entity_t,
    status: cyclors::dds_offered_incompatible_qos_status_t,
    argument: *mut c_void,
) {
    // SAFETY: as in `subscribers_changed`.
    let Some(log) = (unsafe { argument.cast::<WriterLog>().as_ref() }) else { return };
    if !log.warned.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            topic = %log.topic,
            "a subscriber cannot receive messages: the {} of its QoS is incompatible with the publisher (reliable, \
             volatile or transient local, XCDR1); further ones are not logged",
            policy_name(status.last_policy_id)
        );
    }
}

impl Writer {
    /// Returns the name of the topic.
    pub(super) fn name(&self) -> &str {
        &self.log.topic
    }

    /// Records subscribers that were lost and have returned.
    pub(super) fn look_at_matches(&self) {
        let mut matches = self.matches.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: plain numbers, for which all zero is a value.
        let mut matched: cyclors::dds_publication_matched_status_t = unsafe { std::mem::zeroed() };
        // SAFETY: a live handle and a place for the status. Its change counters are not used elsewhere.
        if unsafe { cyclors::dds_get_publication_matched_status(self.writer.handle(), &mut matched) } < 0 {
            return;
        }
        let counted = Counted { total: matched.total_count, last: matched.last_subscription_handle };
        for (_, _, from) in matches.update(&matches::readers(&self.writer), counted) {
            // The samples that the subscriber fetches are unknown here.
            self.domain.add_outage(matches::outage(self.name(), from));
        }
    }

    /// Publishes a payload; waits as long as the settings allow, or at most for `limit`.
    fn publish(&self, payload: &[u8], limit: Option<Duration>) -> Result<(), PublishError> {
        adapter::trace_message("published", self.name(), payload);
        if self.form == Form::Text {
            let header = cdr::header(payload).map_err(PublishError::Payload)?;
            return self.write([&header, payload, &[0; 4][..1 + cdr::padding(payload.len())]], limit);
        }
        let (header, body) = self.form.split(payload).map_err(PublishError::Payload)?;
        self.write([&header, body, &[0; 4][..body.len().wrapping_neg() % 4]], limit)
    }

    /// Writes the parts of a serialised sample.
    fn write(&self, parts: [&[u8]; 3], limit: Option<Duration>) -> Result<(), PublishError> {
        let size = parts.iter().map(|part| part.len()).sum();
        let parts = parts
            .map(|bytes| ddsrt_iovec_t { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() });
        if limit.is_none() {
            self.slow.admit()?;
        }
        let mut waited = Duration::ZERO;
        loop {
            if self.domain.is_closing() {
                return Err(PublishError::Closed);
            }
            // SAFETY: the type is valid as long as `self`; the parts are valid for the call, which
            // copies from them `size` bytes, their sum, and does not write to them.
            let data = unsafe {
                cyclors::ddsi_serdata_from_ser_iov(
                    self.serialised_type,
                    cyclors::ddsi_serdata_kind_SDK_DATA,
                    parts.len(),
                    parts.as_ptr(),
                    size,
                )
            };
            if data.is_null() {
                return Err(PublishError::Payload("CycloneDDS does not accept it as a sample of its type"));
            }
            let unacknowledged = self.unacknowledged.get();
            // SAFETY: a live sample of a type that is valid as long as `self`.
            let reference = unacknowledged.map(|all| (all, unsafe { SampleReference::new(data) }));
            // SAFETY: a live handle; the call takes over our reference to `data`, whatever it returns.
            match unsafe { cyclors::dds_writecdr(self.writer.handle(), data) } {
                // Nothing was written: readers have not acknowledged enough samples yet.
                cyclors::DDS_RETCODE_TIMEOUT => match limit {
                    None => self.slow.waited(BLOCK)?,
                    Some(limit) => {
                        waited += BLOCK;
                        if waited >= limit {
                            return Err(PublishError::Slow);
                        }
                    }
                },
                code if code < 0 => return Err(PublishError::Network(message(code))),
                _ => {
                    self.slow.accepted(size);
                    if let Some((all, reference)) = reference {
                        all.add(reference, &self.writer);
                    }
                    return Ok(());
                }
            }
        }
    }

    fn release(&self) {
        // SAFETY: a live handle. It fails only for one that is not.
        unsafe { cyclors::dds_write_flush(self.writer.handle()) };
    }

    pub(super) fn flush(&self, limit: Duration) -> bool {
        self.release();
        // SAFETY: a live handle.
        unsafe { cyclors::dds_wait_for_acks(self.writer.handle(), duration(limit)) >= 0 }
    }

    fn is_matched(&self) -> bool {
        // SAFETY: plain numbers, for which all zero is a value.
        let mut status: cyclors::dds_publication_matched_status_t = unsafe { std::mem::zeroed() };
        // SAFETY: a live handle and a place for the status.
        let code = unsafe { cyclors::dds_get_publication_matched_status(self.writer.handle(), &mut status) };
        code >= 0 && status.current_count > 0
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.release();
    }
}

impl adapter::Publisher for Publisher {
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        self.writer.publish(payload, None)
    }

    /// Publishes a payload. A call of the library, and so this one, waits for at least half a millisecond.
    fn offer(&self, payload: &[u8], limit: Duration) -> Result<(), PublishError> {
        self.writer.publish(payload, Some(limit))
    }

    fn release(&self) {
        self.writer.release();
    }

    fn is_matched(&self) -> bool {
        self.writer.is_matched()
    }

    fn wait_matched(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            if self.is_matched() {
                return true;
            }
            if Instant::now() >= deadline || self.writer.domain.is_closing() {
                return false;
            }
            std::thread::sleep(POLL);
        }
    }

    fn flush(&self, limit: Duration) -> bool {
        self.writer.flush(limit)
    }

    fn hand_back(&self) {
        self.writer.slow.hand_back();
        _ = self.writer.unacknowledged.set(Unacknowledged::new(self.writer.keeps));
    }

    fn unconfirmed(&self) -> Option<u64> {
        Some(self.writer.unacknowledged.get().map_or(0, |all| all.count(&self.writer.writer)))
    }

    fn unconfirmed_payloads(&self, visit: &mut dyn FnMut(&[u8])) {
        if let Some(all) = self.writer.unacknowledged.get() {
            all.visit(&self.writer.writer, self.writer.form, visit);
        }
    }

    fn take_abandoned(&self, visit: &mut dyn FnMut(&[u8])) {
        if let Some(all) = self.writer.unacknowledged.get() {
            all.take_lost(&self.writer.writer, self.writer.form, visit);
        }
    }

    fn drops(&self) -> Option<Arc<Drops>> {
        Some(Arc::clone(self.writer.slow.drops()))
    }
}
