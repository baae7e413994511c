use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use cyclors::{dds_attach_t, dds_sample_info_t, ddsi_serdata, ddsrt_iovec_t};
use rondel_event::{Timestamp, TopicId};

use super::domain::Domain;
use super::entity::{Entity, Qos, check, duration};
use super::publishers::Publishers;
use super::{DeclareError, StringType, topic};
use crate::adapter::{self, Problems, Receiver, Sample};
use rondel_decode::cdr;

/// How many samples are taken, and handed over, at a time.
const BATCH: usize = 64;
/// Both encodings are read.
const XCDR1_AND_2: [i16; 2] = [0, 2];
/// How long closing waits in `Drop`.
const DROP_LIMIT: Duration = Duration::from_secs(1);

/// What woke the thread, as attached to its wait set.
const DATA: dds_attach_t = 1;
const STATUS: dds_attach_t = 2;
const PUBLISHERS: dds_attach_t = 3;
const STOP: dds_attach_t = 4;

/// A subscription to strings on DDS, with a thread of its own.
#[derive(Debug)]
pub struct Subscription {
    shared: Arc<Shared>,
    stop: Arc<Entity>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    received: AtomicU64,
    malformed: AtomicU64,
    empty: AtomicU64,
    lost: AtomicU64,
    incompatible: AtomicU64,
    stopping: AtomicBool,
    ended: Mutex<bool>,
    ended_changed: Condvar,
}

/// Lives in the thread; its end is the thread's end, be it by a panic of the receiver.
struct ThreadLife(Arc<Shared>);

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
        string_type: &StringType,
        queue: u32,
        topic_id: TopicId,
        receiver: Arc<R>,
    ) -> Result<Subscription, DeclareError> {
        let shared = Arc::new(Shared::default());
        let topic = topic::create(&domain, name, string_type)?;
        let participant = domain.participant();
        // SAFETY: a live handle.
        let stop = unsafe { cyclors::dds_create_guardcondition(participant) };
        let stop = Arc::new(Entity::own(stop, "DDS condition")?);
        // SAFETY: a live handle.
        let waitset = Entity::own(unsafe { cyclors::dds_create_waitset(participant) }, "DDS wait set")?;
        let publishers = Publishers::watch(&domain, name, &string_type.name)?;
        // A reader blocks nobody; but a bridge makes its writers after the readers that it finds, and one
        // that blocks for no time at all drops what they cannot take at once.
        let qos = Qos::new().reliable(Duration::MAX, Some(queue)).representations(&XCDR1_AND_2);
        // SAFETY: live handles, and qualities of service that outlive the call; no listener.
        let reader =
            unsafe { cyclors::dds_create_reader(participant, topic.handle(), qos.as_ptr(), ptr::null()) };
        let reader = Entity::own(reader, "DDS reader")?;
        let status = 1 << cyclors::dds_status_id_DDS_SAMPLE_LOST_STATUS_ID;
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

        let mut worker = Worker {
            reader,
            publishers,
            waitset,
            _topic: topic,
            _stop: Arc::clone(&stop),
            _domain: domain,
            shared: Arc::clone(&shared),
            name: name.to_owned(),
            topic_id,
            queue,
        };
        let life = ThreadLife(Arc::clone(&shared));
        let thread = std::thread::Builder::new()
            .name(format!("dds {name}"))
            .spawn(move || {
                let _life = life;
                worker.run(&*receiver);
            })
            .map_err(|e| DeclareError::Network { what: "thread", reason: e.to_string() })?;
        Ok(Subscription { shared, stop, thread: Mutex::new(Some(thread)) })
    }

    /// Samples received so far.
    pub fn received(&self) -> u64 {
        self.shared.received.load(Ordering::Relaxed)
    }
}

impl adapter::Subscription for Subscription {
    fn drain(&self, quiet: Duration, limit: Duration) -> bool {
        adapter::wait_quiet(|| self.received(), quiet, limit)
    }

    fn close(&self, limit: Duration) -> bool {
        self.shared.stopping.store(true, Ordering::Release);
        // SAFETY: a live handle. Wakes the thread.
        unsafe { cyclors::dds_set_guardcondition(self.stop.handle(), true) };
        let ended = self.shared.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.shared.ended_changed.wait_timeout_while(ended, limit, |ended| !*ended);
        let ended = *waited.unwrap_or_else(PoisonError::into_inner).0;
        if ended && let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // It has nothing left to do. If it panicked, that was reported when it did.
            _ = thread.join();
        }
        ended
    }

    fn problems(&self) -> Problems {
        let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let s = &self.shared;
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

/// After how many takes without a pause the receiver is told that it may let go what it holds back.
const ROUNDS: u32 = 64;

/// What the thread works with. The order of the fields is the order in which they are deleted.
struct Worker {
    waitset: Entity,
    reader: Entity,
    publishers: Publishers,
    _topic: Entity,
    _stop: Arc<Entity>,
    _domain: Arc<Domain>,
    shared: Arc<Shared>,
    name: String,
    topic_id: TopicId,
    queue: u32,
}

impl Worker {
    fn run<R: Receiver + ?Sized>(&mut self, receiver: &R) {
        loop {
            // Everything that was received before the end is handed over. At the end, what comes in
            // meanwhile must not go on for ever: no more than the cache can have held.
            let stopping = self.shared.stopping.load(Ordering::Acquire);
            let (mut taken, mut rounds) = (0, 0u32);
            while !stopping || taken < self.queue {
                let count = self.take(receiver);
                if count == 0 {
                    break;
                }
                taken = taken.saturating_add(count);
                rounds += 1;
                if rounds % ROUNDS == 0 {
                    // Under a load that never lets up, what is held back must not wait for its end.
                    receiver.idle();
                    self.look_at_status();
                }
                if !stopping && self.shared.stopping.load(Ordering::Acquire) {
                    break;
                }
            }
            if taken > 0 {
                receiver.idle();
            }
            if stopping {
                self.look_at_status();
                return;
            }
            if !self.shared.stopping.load(Ordering::Acquire) && !self.wait() {
                return;
            }
        }
    }

    /// Waits until there is something to do. Whether to go on.
    fn wait(&mut self) -> bool {
        let mut woken: [dds_attach_t; 4] = [0; 4];
        // SAFETY: a live handle, and room for as many numbers as is said.
        let count = unsafe {
            cyclors::dds_waitset_wait(
                self.waitset.handle(),
                woken.as_mut_ptr(),
                woken.len(),
                self.publishers.look_again_in().map_or(cyclors::dds_duration_t::MAX, duration),
            )
        };
        let Ok(count) = usize::try_from(count) else {
            tracing::error!(topic = %self.name, "DDS wait set: {}", super::entity::message(count));
            return false;
        };
        for why in &woken[..count.min(woken.len())] {
            match *why {
                STATUS => self.look_at_status(),
                PUBLISHERS => self.publishers.look(),
                _ => {}
            }
        }
        let new = self.publishers.unmatched(&self.reader);
        self.shared.incompatible.fetch_add(new, Ordering::Relaxed);
        true
    }

    /// Takes samples and hands them over. How many, with those that could not be handed over.
    fn take<R: Receiver + ?Sized>(&self, receiver: &R) -> u32 {
        let Some(taken) = Taken::take(&self.reader) else { return 0 };
        let arrival = Some(adapter::now());
        let mut samples = [Sample::new(&[], None, arrival); BATCH];
        let mut count = 0;
        for (data, info) in taken.samples() {
            if !info.valid_data {
                if self.shared.empty.fetch_add(1, Ordering::Relaxed) == 0 {
                    tracing::debug!(topic = %self.name, "an instance was disposed of or lost its publishers");
                }
                continue;
            }
            let payload = match cdr::string(data) {
                Ok(payload) => payload,
                Err(why) => {
                    if self.shared.malformed.fetch_add(1, Ordering::Relaxed) == 0 {
                        tracing::warn!(topic = %self.name, "a sample is not a structure with one string: {why}");
                    }
                    continue;
                }
            };
            let source_time =
                (info.source_timestamp > 0).then(|| Timestamp::from_nanos(info.source_timestamp));
            samples[count] = Sample::new(payload, source_time, arrival);
            count += 1;
        }
        if count > 0 {
            self.shared.received.fetch_add(count as u64, Ordering::Relaxed);
            receiver.receive(self.topic_id, &samples[..count]);
        }
        taken.count as u32
    }

    fn look_at_status(&mut self) {
        // SAFETY: plain numbers, for which all zero is a value.
        let mut lost: cyclors::dds_sample_lost_status_t = unsafe { std::mem::zeroed() };
        // SAFETY: a live handle and a place for the status. Reading it resets what woke us.
        if unsafe { cyclors::dds_get_sample_lost_status(self.reader.handle(), &mut lost) } >= 0 {
            let total = u64::from(lost.total_count);
            if self.shared.lost.swap(total, Ordering::Relaxed) == 0 && total > 0 {
                tracing::warn!(topic = %self.name, "samples were lost on the network");
            }
        }
    }
}

/// Samples taken from a reader, still serialised, and given back when dropped.
struct Taken {
    data: [*mut ddsi_serdata; BATCH],
    parts: [ddsrt_iovec_t; BATCH],
    infos: [dds_sample_info_t; BATCH],
    count: usize,
}

impl Taken {
    /// `None` when there is nothing.
    fn take(reader: &Entity) -> Option<Taken> {
        // SAFETY: null pointers and plain numbers, for which all zero is a value.
        let mut taken: Taken = unsafe { std::mem::zeroed() };
        // SAFETY: a live handle, and room for as many samples as is said. The library leaves a
        // reference to each with us.
        let count = unsafe {
            cyclors::dds_takecdr(
                reader.handle(),
                taken.data.as_mut_ptr(),
                BATCH as u32,
                taken.infos.as_mut_ptr(),
                cyclors::DDS_ANY_STATE,
            )
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

    fn samples(&self) -> impl Iterator<Item = (&[u8], &dds_sample_info_t)> {
        self.parts.iter().zip(&self.infos).take(self.count).map(|(part, info)| {
            let bytes = if part.iov_base.is_null() {
                &[]
            } else {
                // SAFETY: filled in by the library, valid until `drop`, and never written to: samples
                // are shared and immutable.
                unsafe { std::slice::from_raw_parts(part.iov_base.cast::<u8>(), part.iov_len) }
            };
            (bytes, info)
        })
    }
}

impl Drop for Taken {
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
