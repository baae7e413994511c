//! Subscriptions to strings on DDS.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use cyclors::{dds_attach_t, dds_sample_info_t, ddsi_serdata, ddsrt_iovec_t};
use rondel_event::{Timestamp, TopicId};

use super::domain::Domain;
use super::entity::{Entity, Qos, check, duration};
use super::history::{self, Fetched, Sources};
use super::matches::{self, Matches};
use super::publishers::PublisherWatch;
use super::{DeclareError, TopicQos, TopicType, topic};
use crate::adapter::{self, Problems, Receiver, Sample};
use rondel_decode::cdr;

/// Number of samples taken and delivered at a time.
const BATCH: usize = 64;
/// Ids of both data representations.
const XCDR1_AND_2: [i16; 2] = [0, 2];
/// Time limit of closing in `Drop`.
const DROP_LIMIT: Duration = Duration::from_secs(1);

/// Ids of the entities attached to the thread's wait set.
const DATA: dds_attach_t = 1;
const STATUS: dds_attach_t = 2;
const PUBLISHERS: dds_attach_t = 3;
const STOP: dds_attach_t = 4;

/// A subscription to strings on DDS with a thread of its own. Dropping it closes it.
#[derive(Debug)]
pub struct Subscription {
    state: Arc<SubscriptionState>,
    stop: Arc<Entity>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct SubscriptionState {
    received: AtomicU64,
    malformed: AtomicU64,
    empty: AtomicU64,
    lost: AtomicU64,
    incompatible: AtomicU64,
    stopping: AtomicBool,
    ended: Mutex<bool>,
    ended_changed: Condvar,
}

impl SubscriptionState {
    /// Returns the payload of a sample; counts one that has none.
    #[inline]
    fn payload<'d>(&self, topic: &str, data: &'d [u8]) -> Option<&'d [u8]> {
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
        (topic_type, qos): (&TopicType, &TopicQos),
        queue: u32,
        topic_id: TopicId,
        receiver: Arc<R>,
    ) -> Result<Subscription, DeclareError> {
        let TopicType::Text(string_type) = topic_type else {
            return Err(DeclareError::Network {
                what: "DDS subscription",
                reason: "only topics of strings can be read yet".to_owned(),
            });
        };
        qos.check().map_err(DeclareError::Qos)?;
        let state = Arc::new(SubscriptionState::default());
        let topic = topic::create(&domain, name, string_type)?;
        let participant = domain.participant();
        // SAFETY: a live handle.
        let stop = unsafe { cyclors::dds_create_guardcondition(participant) };
        let stop = Arc::new(Entity::own(stop, "DDS condition")?);
        // SAFETY: a live handle.
        let waitset = Entity::own(unsafe { cyclors::dds_create_waitset(participant) }, "DDS wait set")?;
        let publishers = PublisherWatch::watch(&domain, name, &string_type.name)?;
        // The blocking time has no effect on a reader. Bridges copy it to the writers that they create for
        // it, though, and a writer with a blocking time of zero drops samples under load.
        let qos = Qos::new().reliable(Duration::MAX, Some(queue)).representations(&XCDR1_AND_2);
        // SAFETY: live handles, and qualities of service that outlive the call; no listener.
        let reader =
            unsafe { cyclors::dds_create_reader(participant, topic.handle(), qos.as_ptr(), ptr::null()) };
        let reader = Entity::own(reader, "DDS reader")?;
        let status = 1 << cyclors::dds_status_id_DDS_SAMPLE_LOST_STATUS_ID
            | 1 << cyclors::dds_status_id_DDS_SUBSCRIPTION_MATCHED_STATUS_ID;
        // SAFETY: a live handle.
        check(unsafe { cyclors::dds_set_status_mask(reader.handle(), status) }, "DDS reader")?;
        let attach = |entity: i32, why: dds_attach_t| {
            // SAFETY: live handles; the number comes back from the wait.
            check(unsafe { cyclors::dds_waitset_attach(waitset.handle(), entity, why) }, "DDS wait set")
        };
        for (of, why) in [(&reader, DATA), (publishers.reader(), PUBLISHERS)] {
            // SAFETY: a live handle. The condition is deleted with its reader.
            let condition = unsafe { cyclors::dds_create_readcondition(of.handle(), cyclors::DDS_ANY_STATE) };
            attach(check(condition, "DDS condition")?, why)?;
        }
        attach(reader.handle(), STATUS)?;
        attach(stop.handle(), STOP)?;
        tracing::info!(topic = %name, type_name = %string_type.name, "subscribed");
        tracing::debug!(
            topic = %name, reliability = "reliable", durability = "volatile", history = "keep all",
            representation = "XCDR1, XCDR2", max_samples = queue, member = %string_type.member,
            extensibility = ?string_type.extensibility, "QoS and type of the subscription"
        );

        let mut worker = Worker {
            reader,
            publishers,
            waitset,
            _topic: topic,
            _stop: Arc::clone(&stop),
            domain,
            matches: Matches::default(),
            sources: Sources::default(),
            state: Arc::clone(&state),
            name: name.to_owned(),
            topic_id,
            queue,
        };
        let life = ThreadLife(Arc::clone(&state));
        let thread = std::thread::Builder::new()
            .name(format!("dds {name}"))
            .spawn(move || {
                let _life = life;
                worker.run(&*receiver);
            })
            .map_err(|e| DeclareError::Network { what: "thread", reason: e.to_string() })?;
        Ok(Subscription { state, stop, thread: Mutex::new(Some(thread)) })
    }

    /// Returns the number of samples received so far.
    pub fn received(&self) -> u64 {
        self.state.received.load(Ordering::Relaxed)
    }
}

impl adapter::Subscription for Subscription {
    fn drain(&self, quiet: Duration, limit: Duration) -> bool {
        adapter::wait_quiet(|| self.received(), quiet, limit)
    }

    fn close(&self, limit: Duration) -> bool {
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
        ended
    }

    fn problems(&self) -> Problems {
        let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let s = &self.state;
        Problems {
            malformed: read(&s.malformed),
            empty: read(&s.empty),
            lost: read(&s.lost),
            incompatible: read(&s.incompatible),
            ..Problems::default()
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        adapter::Subscription::close(self, DROP_LIMIT);
    }
}

/// Number of takes without a pause after which the receiver's `idle` is called nevertheless.
const ROUNDS: u32 = 64;

/// State of the thread. The fields are dropped, and their entities deleted, in this order.
struct Worker {
    waitset: Entity,
    reader: Entity,
    publishers: PublisherWatch,
    _topic: Entity,
    _stop: Arc<Entity>,
    domain: Arc<Domain>,
    matches: Matches,
    sources: Sources,
    state: Arc<SubscriptionState>,
    name: String,
    topic_id: TopicId,
    queue: u32,
}

impl Worker {
    fn run<R: Receiver + ?Sized>(&mut self, receiver: &R) {
        loop {
            // On closing, samples received so far are still delivered. Samples that keep arriving must not
            // delay closing for ever, so at most as many as the cache can hold are delivered.
            let stopping = self.state.stopping.load(Ordering::Acquire);
            let (mut taken, mut rounds) = (0, 0u32);
            while !stopping || taken < self.queue {
                let count = self.take(receiver);
                if count == 0 {
                    break;
                }
                taken = taken.saturating_add(count);
                rounds += 1;
                if rounds % ROUNDS == 0 {
                    // Under continuous load, buffered verdicts must leave before it ends.
                    receiver.idle();
                    self.look_at_status(receiver);
                }
                if !stopping && self.state.stopping.load(Ordering::Acquire) {
                    break;
                }
            }
            if taken > 0 {
                receiver.idle();
            }
            if stopping {
                self.look_at_status(receiver);
                let received = self.state.received.load(Ordering::Relaxed);
                tracing::info!(topic = %self.name, received, "closed the subscription");
                return;
            }
            if !self.state.stopping.load(Ordering::Acquire) && !self.wait(receiver) {
                return;
            }
        }
    }

    /// Waits for samples, a status change, publishers or the end. Returns `false` if waiting failed.
    fn wait<R: Receiver + ?Sized>(&mut self, receiver: &R) -> bool {
        let mut woken: [dds_attach_t; 4] = [0; 4];
        // SAFETY: a live handle, and room for the stated number of handles.
        let count = unsafe {
            cyclors::dds_waitset_wait(
                self.waitset.handle(),
                woken.as_mut_ptr(),
                woken.len(),
                self.publishers.look_again_in().map_or(cyclors::dds_duration_t::MAX, duration),
            )
        };
        let Ok(count) = usize::try_from(count) else {
            let reason = super::entity::message(count);
            tracing::error!(topic = %self.name, "waiting for DDS samples failed: {reason}; the subscription ends");
            return false;
        };
        for why in &woken[..count.min(woken.len())] {
            match *why {
                STATUS => self.look_at_status(receiver),
                PUBLISHERS => self.publishers.look(),
                _ => {}
            }
        }
        let new = self.publishers.unmatched(&self.reader);
        self.state.incompatible.fetch_add(new, Ordering::Relaxed);
        true
    }

    /// Takes samples and delivers them. Returns their number, including those without a valid payload.
    fn take<R: Receiver + ?Sized>(&mut self, receiver: &R) -> u32 {
        let Some(taken) = TakenSamples::take(&self.reader) else { return 0 };
        for (_, info) in taken.samples() {
            if info.valid_data && !self.sources.knows(info.publication_handle) {
                // It may have been lost and returned: what was missed comes first.
                self.look_at_status(receiver);
            }
        }
        let arrival = Some(adapter::now());
        let mut samples = [Sample::new(&[], None, arrival); BATCH];
        let mut count = 0;
        for (data, info) in taken.samples() {
            if !info.valid_data {
                if self.state.empty.fetch_add(1, Ordering::Relaxed) == 0 {
                    tracing::debug!(
                        topic = %self.name,
                        "the instance was disposed or has no publishers any more; further such notices are only counted"
                    );
                }
                continue;
            }
            if !self.sources.admit(info.publication_handle, info.source_timestamp) {
                continue;
            }
            let Some(payload) = self.state.payload(&self.name, data) else { continue };
            let source_time =
                (info.source_timestamp > 0).then(|| Timestamp::from_nanos(info.source_timestamp));
            adapter::trace_message("received", &self.name, payload);
            samples[count] = Sample::new(payload, source_time, arrival);
            count += 1;
        }
        if count > 0 {
            self.state.received.fetch_add(count as u64, Ordering::Relaxed);
            receiver.receive(self.topic_id, &samples[..count]);
        }
        taken.count as u32
    }

    /// Fetches what was missed of a publisher that has returned.
    fn fetch<R: Receiver + ?Sized>(
        &mut self,
        (publisher, former): (matches::Match, u64),
        receiver: &R,
    ) -> Option<Fetched> {
        let after = self.sources.last(former)?;
        let Worker { domain, _topic, queue, topic_id, state, name, reader, .. } = self;
        // The publisher sends to this reader from a sample on that is not known before it has come.
        let came = || {
            let taken = TakenSamples::look(reader)?;
            let own = taken
                .samples()
                .find(|(_, info)| info.valid_data && info.publication_handle == publisher.handle);
            own.map(|(_, info)| info.source_timestamp)
        };
        let is_ending = || state.stopping.load(Ordering::Acquire);
        let deliver = |samples: &[(&[u8], Timestamp)]| {
            let arrival = Some(adapter::now());
            let mut payloads = Vec::with_capacity(samples.len());
            for &(data, time) in samples {
                if let Some(payload) = state.payload(name, data) {
                    payloads.push(Sample::new(payload, Some(time), arrival));
                }
            }
            let samples = payloads;
            if !samples.is_empty() {
                state.received.fetch_add(samples.len() as u64, Ordering::Relaxed);
                receiver.receive(*topic_id, &samples);
            }
            samples.len() as u64
        };
        let fetched =
            history::fetch((domain, _topic), *queue, publisher.handle, after, (came, is_ending), deliver);
        self.sources.fetched(publisher.handle, fetched.last);
        Some(fetched)
    }

    /// Looks at lost samples and at changes of matching publishers, and fetches what was missed of those that were lost
    /// and have returned.
    fn look_at_status<R: Receiver + ?Sized>(&mut self, receiver: &R) {
        // SAFETY: plain numbers, for which all zero is a value.
        let mut matched: cyclors::dds_subscription_matched_status_t = unsafe { std::mem::zeroed() };
        // SAFETY: a live handle and a place for the status. Reading it resets its change counters.
        let code =
            unsafe { cyclors::dds_get_subscription_matched_status(self.reader.handle(), &mut matched) };
        if code >= 0 && (matched.total_count_change != 0 || matched.current_count_change != 0) {
            let publishers = matched.current_count;
            tracing::debug!(topic = %self.name, publishers, "the number of matching publishers changed");
            for (publisher, former, from) in self.matches.update(&matches::writers(&self.reader)) {
                receiver.missed(self.topic_id, from, Some(adapter::now()));
                let fetched = publisher.keeps.then(|| self.fetch((publisher, former), receiver)).flatten();
                self.domain.add_recovered(self.topic_id, fetched.map_or(0, |fetched| fetched.count), from);
                // DDS shows no numbers: nobody knows whether that was all.
                self.domain.add_outage(matches::outage(&self.name, from));
                receiver.idle();
            }
        }
        // SAFETY: plain numbers, for which all zero is a value.
        let mut lost: cyclors::dds_sample_lost_status_t = unsafe { std::mem::zeroed() };
        // SAFETY: a live handle and a place for the status. Reading it resets what woke us.
        if unsafe { cyclors::dds_get_sample_lost_status(self.reader.handle(), &mut lost) } >= 0 {
            let total = u64::from(lost.total_count);
            if self.state.lost.swap(total, Ordering::Relaxed) == 0 && total > 0 {
                tracing::warn!(
                    topic = %self.name, lost = total,
                    "samples were lost on the network; further ones are only counted"
                );
            }
        }
    }
}

/// Samples taken from a reader, still serialised; dropping returns them to the library.
pub(super) struct TakenSamples {
    data: [*mut ddsi_serdata; BATCH],
    parts: [ddsrt_iovec_t; BATCH],
    infos: [dds_sample_info_t; BATCH],
    count: usize,
}

/// A function of the library that gets samples of a reader.
type Get = unsafe extern "C" fn(
    cyclors::dds_entity_t,
    *mut *mut ddsi_serdata,
    u32,
    *mut dds_sample_info_t,
    u32,
) -> cyclors::dds_return_t;

impl TakenSamples {
    /// Takes up to [`BATCH`] samples; `None` if there are none.
    pub(super) fn take(reader: &Entity) -> Option<TakenSamples> {
        TakenSamples::get(reader, cyclors::dds_takecdr, cyclors::DDS_ANY_STATE)
    }

    /// The same for samples that were neither taken nor looked at; they can still be taken.
    pub(super) fn look(reader: &Entity) -> Option<TakenSamples> {
        let states = cyclors::DDS_NOT_READ_SAMPLE_STATE
            | cyclors::DDS_ANY_VIEW_STATE
            | cyclors::DDS_ANY_INSTANCE_STATE;
        TakenSamples::get(reader, cyclors::dds_readcdr, states)
    }

    fn get(reader: &Entity, get: Get, states: u32) -> Option<TakenSamples> {
        // SAFETY: null pointers and plain numbers, for which all zero is a value.
        let mut taken: TakenSamples = unsafe { std::mem::zeroed() };
        // SAFETY: a live handle, and room for the stated number of samples. The library leaves a
        // reference to each with us.
        let count = unsafe {
            get(reader.handle(), taken.data.as_mut_ptr(), BATCH as u32, taken.infos.as_mut_ptr(), states)
        };
        let count = usize::try_from(count).ok().filter(|n| (1..=BATCH).contains(n))?;
        for ((data, part), info) in taken.data.iter().zip(&mut taken.parts).zip(&taken.infos).take(count) {
            if info.valid_data {
                // SAFETY: `data` is a live sample; the library fills in where its bytes are. They do
                // not move until `dds_serdata_to_ser_unref`.
                unsafe {
                    let size = cyclors::ddsi_serdata_size(*data) as usize;
                    cyclors::ddsi_serdata_to_ser_ref(*data, 0, size, part);
                }
            }
        }
        taken.count = count;
        Some(taken)
    }

    pub(super) fn samples(&self) -> impl Iterator<Item = (&[u8], &dds_sample_info_t)> {
        self.parts.iter().zip(&self.infos).take(self.count).map(|(part, info)| {
            let bytes = if part.iov_base.is_null() {
                &[]
            } else {
                // SAFETY: filled in by the library, valid until `drop`, and never written to: samples
                // are state and immutable.
                unsafe { std::slice::from_raw_parts(part.iov_base.cast::<u8>(), part.iov_len) }
            };
            (bytes, info)
        })
    }
}

impl Drop for TakenSamples {
    fn drop(&mut self) {
        for (data, part) in self.data.iter().zip(&self.parts).take(self.count) {
            // SAFETY: every reference that `take` got is given back once: the one to the bytes, where
            // there are any, and the one to the sample.
            unsafe {
                if !part.iov_base.is_null() {
                    cyclors::ddsi_serdata_to_ser_unref(*data, part);
                }
                cyclors::ddsi_serdata_unref(*data);
            }
        }
    }
}
