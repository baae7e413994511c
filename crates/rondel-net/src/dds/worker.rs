//! The thread of a subscription: takes samples and delivers them.

mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Instant;

use cyclors::{dds_instance_handle_t, dds_sample_info_t};
use rondel_event::{Timestamp, TopicId, TypeIndex};

use super::base::{Base, Opened, PUBLISHERS, STATUS};
use super::further::{Delivery, Part};
use super::history::{self, Fetched, Sources};
use super::instances::Instances;
use super::matches::{self, Matches};
use super::owners::Owners;
use super::taken::{BATCH, SampleBuffer};
use crate::adapter::{self, Change, ChangeTime, Receiver, Sample};

/// Number of takes without a pause after which the receiver's `idle` is called nevertheless.
const ROUNDS: u32 = 64;

/// State of the thread. The fields are dropped, and their entities deleted, in this order.
pub(super) struct Worker {
    opened: Opened,
    base: Base,
    matches: Matches,
    sources: Sources,
    buffer: SampleBuffer,
    instances: Instances,
    owners: Owners,
    /// Keys of the instances that have missed a deadline.
    missed: BTreeMap<dds_instance_handle_t, Vec<u8>>,
    /// Those of them reported as unregistered since the last publisher left.
    unregistered: BTreeSet<dds_instance_handle_t>,
    /// A publisher that is sending its kept samples again.
    returning: Option<Returning>,
    /// Time of the next take, if samples are taken in intervals.
    due: Instant,
    is_alive: bool,
    is_raw: bool,
}

/// A publisher that was lost and has returned, for a reader that gets its kept samples again.
struct Returning {
    publisher: dds_instance_handle_t,
    /// Samples after and before these times were missed.
    after: i64,
    until: i64,
    from: Timestamp,
}

impl Worker {
    /// Creates a worker whose samples have this type.
    pub(super) fn new(base: Base, opened: Opened, is_raw: bool, of_type: TypeIndex) -> Worker {
        let buffer = SampleBuffer::new(opened.has_keys, base.queue);
        Worker {
            opened,
            base,
            matches: Matches::default(),
            sources: Sources::new(of_type),
            buffer,
            instances: Instances::default(),
            owners: Owners::default(),
            missed: BTreeMap::new(),
            unregistered: BTreeSet::new(),
            returning: None,
            due: Instant::now(),
            is_alive: false,
            is_raw,
        }
    }

    pub(super) fn run<R: Receiver + ?Sized>(&mut self, delivery: &Delivery<R>) {
        self.owners.begin(&self.base.name, &self.opened, delivery);
        loop {
            // On closing, samples received so far are still delivered. Samples that keep arriving must not
            // delay closing for ever, so at most as many as the cache can hold are delivered.
            let stopping = self.base.state.is_stopping();
            let (mut taken, mut rounds) = (0, 0u32);
            while (!stopping || taken < self.base.queue) && (stopping || self.is_due()) {
                let count = self.take(delivery);
                if count == 0 {
                    break;
                }
                taken = taken.saturating_add(count);
                rounds += 1;
                if rounds % ROUNDS == 0 {
                    // Under continuous load, buffered verdicts must leave before it ends.
                    delivery.receiver.idle();
                    self.look_at_status(None, delivery);
                }
                if !stopping && self.base.state.is_stopping() {
                    break;
                }
            }
            if taken > 0 {
                delivery.receiver.idle();
            }
            if stopping {
                self.look_at_status(None, delivery);
                let received = self.base.state.received.load(Ordering::Relaxed);
                tracing::info!(topic = %self.base.name, received, "closed the subscription");
                return;
            }
            if !self.base.state.is_stopping() && !self.wait(delivery) {
                return;
            }
        }
    }

    /// Whether it is time to take samples.
    #[inline]
    fn is_due(&self) -> bool {
        self.opened.qos.poll.is_none() || Instant::now() >= self.due
    }

    /// Waits for samples, a status change, publishers or the end. Returns `false` if waiting failed.
    fn wait<R: Receiver + ?Sized>(&mut self, delivery: &Delivery<R>) -> bool {
        let limit = self.opened.qos.poll.map(|poll| {
            let now = Instant::now();
            if now >= self.due {
                self.due = now + poll;
            }
            self.due - now
        });
        let (mut status, mut publishers) = (false, false);
        let waited = self.base.wait(limit, |why| match why {
            STATUS => status = true,
            PUBLISHERS => publishers = true,
            _ => {}
        });
        if status {
            self.look_at_status(None, delivery);
        }
        if publishers {
            self.base.publishers.look();
        }
        self.base.look_at_unmatched(Some(&self.opened.reader), delivery);
        waited
    }

    /// Takes samples and delivers them. Returns their number, including those without a valid payload.
    fn take<R: Receiver + ?Sized>(&mut self, delivery: &Delivery<R>) -> u32 {
        let mut buffer = std::mem::take(&mut self.buffer);
        let count = self.take_into(&mut buffer, delivery);
        self.buffer = buffer;
        count
    }

    fn take_into<R: Receiver + ?Sized>(&mut self, buffer: &mut SampleBuffer, delivery: &Delivery<R>) -> u32 {
        let Some(taken) = buffer.take(&self.opened.reader) else { return 0 };
        // A publisher may have returned after a loss, with its handle or another: missed samples are delivered first.
        let mut is_looked_at = self.opened.has_new_matches();
        let first = |from: usize| taken.samples().skip(from).find_map(|(_, info)| source_time(info));
        if is_looked_at {
            self.look_at_status(first(0), delivery);
        }
        for (_, info) in taken.samples() {
            if info.valid_data && !self.sources.knows(info.publication_handle) {
                if !std::mem::replace(&mut is_looked_at, true) {
                    self.look_at_status(first(0), delivery);
                }
                self.judge(info.publication_handle, delivery);
            }
        }
        let now = adapter::now();
        let arrival = Some(now);
        let reports_owner = Owners::are_reported(&self.opened, delivery);
        let mut samples = [Sample::new(&[], None, arrival); BATCH];
        let mut count = 0;
        self.instances.begin();
        for (at, (data, info)) in taken.samples().enumerate() {
            let is_new =
                info.valid_data && self.sources.admit(info.publication_handle, info.source_timestamp);
            let concerns = Instances::concerns(info);
            if concerns && let Some(change) = self.instances.before(info, data, self.opened.has_keys) {
                self.deliver(&mut count, &samples, delivery);
                self.changed(change, info, first(at), delivery);
            }
            if is_new && let Some(payload) = self.base.state.payload(&self.base.name, data, self.is_raw) {
                if reports_owner && self.owners.change(info.instance_handle, info.publication_handle) {
                    self.deliver(&mut count, &samples, delivery);
                    let time = ChangeTime { reported: now, source: source_time(info) };
                    self.owners.report(&self.opened, info, time, delivery);
                }
                adapter::trace_message("received", &self.base.name, payload);
                samples[count] = Sample::new(payload, source_time(info), arrival)
                    .with_name(delivery.part.name)
                    .with_type(self.sources.of_type());
                count += 1;
            } else if info.valid_data && self.sources.is_refusing() {
                // Samples refused by a further reader are read by another.
                if !delivery.part.is_further() {
                    self.base.state.malformed.fetch_add(1, Ordering::Relaxed);
                }
            } else if !info.valid_data && self.base.state.instance_events.fetch_add(1, Ordering::Relaxed) == 0
            {
                tracing::debug!(
                    topic = %self.base.name,
                    "an instance was disposed of or has no publishers any more; further such notices are only counted"
                );
            }
            let change = if concerns { self.instances.after(info, data, self.opened.has_keys) } else { None };
            if count == BATCH || change.is_some() {
                self.deliver(&mut count, &samples, delivery);
            }
            if let Some(change) = change {
                self.changed(change, info, first(at + 1), delivery);
            }
        }
        self.deliver(&mut count, &samples, delivery);
        if self.returning.is_some() {
            self.count_returning(delivery.part.topic, taken.samples().map(|(_, info)| info));
        }
        taken.count() as u32
    }

    /// Delivers samples, if there are any.
    #[inline]
    fn deliver<R: Receiver + ?Sized>(
        &self,
        count: &mut usize,
        samples: &[Sample<'_>],
        delivery: &Delivery<R>,
    ) {
        let count = std::mem::take(count);
        if count > 0 {
            self.base.state.received.fetch_add(count as u64, Ordering::Relaxed);
            delivery.receiver.receive(delivery.part.topic, &samples[..count]);
        }
    }

    /// Reports a change that an entry of the cache shows, before samples of which the first has this source time.
    #[cold]
    fn changed<R: Receiver + ?Sized>(
        &mut self,
        change: Change<'_>,
        info: &dds_sample_info_t,
        first: Option<Timestamp>,
        delivery: &Delivery<R>,
    ) {
        self.missed.remove(&info.instance_handle);
        let now = ChangeTime::before(adapter::now(), first);
        if matches!(change, Change::Unregistered(_)) {
            self.owners.end(info.instance_handle, now, delivery);
        }
        // If the instance has several publishers, the library may report it, too.
        if matches!(change, Change::Unregistered(_)) && self.unregistered.remove(&info.instance_handle) {
            return;
        }
        // A publisher that disposes of an instance gives a time. If it has left, the library repeats the time of its
        // last sample.
        let has_own_time = !info.valid_data
            && matches!(change, Change::Disposed(_))
            && self.sources.last(info.publication_handle).is_none_or(|last| last < info.source_timestamp);
        let time = match has_own_time {
            true => ChangeTime::before(Timestamp::from_nanos(info.source_timestamp), None),
            false => now,
        };
        delivery.receiver.changed(delivery.part.topic, change, time);
    }

    /// Counts the samples that a publisher sends again.
    #[cold]
    fn count_returning<'a>(
        &mut self,
        topic: TopicId,
        mut infos: impl Iterator<Item = &'a dds_sample_info_t>,
    ) {
        let Some(Returning { publisher, after, until, from }) = self.returning else { return };
        let mut count = 0;
        let is_over = infos.any(|info| {
            let is_own = info.valid_data && info.publication_handle == publisher;
            count += u64::from(is_own && (after + 1..=until).contains(&info.source_timestamp));
            is_own && info.source_timestamp > until
        });
        self.base.domain.add_recovered(topic, count, from);
        if is_over {
            self.returning = None;
        }
    }

    /// Fetches the missed samples of a publisher that has returned.
    fn fetch<R: Receiver + ?Sized>(
        &mut self,
        publisher: matches::Match,
        former: u64,
        delivery: &Delivery<R>,
    ) -> Option<Fetched> {
        let after = self.sources.last(former)?;
        let of_type = self.sources.of_type();
        let Worker { base, opened, is_raw, .. } = self;
        let Part { topic, name, .. } = &delivery.part;
        // The first sample that the publisher sends to this reader is unknown until it is received. With the former
        // handle, some samples may be from before the loss.
        let find_first = || {
            let mut buffer = SampleBuffer::new(opened.has_keys, base.queue);
            let mut last = None;
            while let Some(taken) = buffer.look(&opened.reader) {
                let own = taken
                    .samples()
                    .filter(|(_, info)| info.valid_data && info.publication_handle == publisher.handle)
                    .map(|(_, info)| info.source_timestamp);
                let mut own = own.peekable();
                if former != publisher.handle && own.peek().is_some() {
                    return own.next();
                }
                last = own.max().max(last);
            }
            last
        };
        let deliver = |samples: &[(&[u8], Timestamp)]| {
            let arrival = Some(adapter::now());
            let mut payloads = Vec::with_capacity(samples.len());
            for &(data, time) in samples {
                if let Some(payload) = base.state.payload(&base.name, data, *is_raw) {
                    payloads
                        .push(Sample::new(payload, Some(time), arrival).with_name(*name).with_type(of_type));
                }
            }
            let samples = payloads;
            for samples in samples.chunks(BATCH) {
                base.state.received.fetch_add(samples.len() as u64, Ordering::Relaxed);
                delivery.receiver.receive(*topic, samples);
            }
            samples.len() as u64
        };
        let fetched = history::fetch(base, opened, publisher.handle, after, find_first, deliver);
        self.sources.fetched(publisher.handle, i64::MIN..=fetched.last);
        if former != publisher.handle && fetched.count > 0 {
            // Some of them may have arrived with the former handle, and wait.
            self.sources.fetched(former, fetched.first..=fetched.last);
        }
        Some(fetched)
    }
}

/// Source time of a sample, if it has one.
fn source_time(info: &dds_sample_info_t) -> Option<Timestamp> {
    (info.valid_data && info.source_timestamp > 0).then(|| Timestamp::from_nanos(info.source_timestamp))
}
