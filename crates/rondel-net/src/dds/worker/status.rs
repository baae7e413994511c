//! Changes of a subscription that the library reports beside samples: lost samples, publishers that come and go, missed
//! deadlines.

use std::sync::atomic::Ordering;

use cyclors::dds_instance_handle_t;
use rondel_event::Timestamp;

use super::{Returning, Worker, source_time};
use crate::adapter::{self, Change, ChangeTime, Instance, Receiver};
use crate::dds::base::Base;
use crate::dds::further::Delivery;
use crate::dds::matches::{self, Counted};
use crate::dds::missed;
use crate::dds::publishers::type_of_match;
use crate::dds::{Durability, Ownership};

impl Worker {
    /// Handles lost samples and changed matches, and fetches missed samples of publishers that were lost and have
    /// returned. `first` is the source time of the first sample that was taken and is delivered next, if one was.
    pub(super) fn look_at_status<R: Receiver + ?Sized>(
        &mut self,
        first: Option<Timestamp>,
        delivery: &Delivery<R>,
    ) {
        // SAFETY: plain numbers, for which all zero is a value.
        let mut matched: cyclors::dds_subscription_matched_status_t = unsafe { std::mem::zeroed() };
        let reader = self.opened.reader.handle();
        // SAFETY: a live handle and a place for the status. Reading it resets its change counters.
        let code = unsafe { cyclors::dds_get_subscription_matched_status(reader, &mut matched) };
        if code >= 0 && (matched.total_count_change != 0 || matched.current_count_change != 0) {
            let publishers = matched.current_count;
            self.base.state.publishers.store(publishers.into(), Ordering::Relaxed);
            tracing::debug!(topic = %self.base.name, publishers, "the number of matching publishers changed");
            let time = self.change_time(first);
            self.owners.look(&self.opened, time, delivery);
            let writers = matches::writers(&self.opened.reader);
            writers.iter().for_each(|writer| self.judge(writer.handle, delivery));
            let counted = Counted { total: matched.total_count, last: matched.last_publication_handle };
            for (publisher, former, from) in self.matches.update(&writers, counted) {
                delivery.receiver.missed(delivery.part.topic, from, Some(adapter::now()));
                let fetched = if self.opened.qos.durability > Some(Durability::Volatile) {
                    self.await_kept(publisher, former, from);
                    None
                } else {
                    publisher.keeps.then(|| self.fetch(publisher, former, delivery)).flatten()
                };
                let count = fetched.map_or(0, |fetched| fetched.count);
                self.base.domain.add_recovered(delivery.part.topic, count, from);
                // DDS does not show sequence numbers: it is unknown whether samples are missing.
                self.base.domain.add_outage(matches::outage(&self.base.name, from));
                delivery.receiver.idle();
            }
        }
        // SAFETY: plain numbers, for which all zero is a value.
        let mut lost: cyclors::dds_sample_lost_status_t = unsafe { std::mem::zeroed() };
        // SAFETY: a live handle and a place for the status. Reading it resets the condition that woke the thread.
        let is_read = unsafe { cyclors::dds_get_sample_lost_status(reader, &mut lost) } >= 0;
        // With exclusive ownership, the library also counts the samples of publishers that do not own the topic: from the
        // second publisher on, a loss looks like one of them.
        let is_shared = self.opened.qos.ownership != Some(Ownership::Exclusive);
        if is_read && (is_shared || code >= 0 && matched.total_count <= 1) {
            let total = u64::from(lost.total_count);
            if self.base.state.lost.swap(total, Ordering::Relaxed) == 0 && total > 0 {
                tracing::warn!(
                    topic = %self.base.name, lost = total,
                    "samples were lost on the network; further ones are only counted"
                );
            }
        }
        self.look_at_promises(first, delivery);
    }

    /// Compares the type of a publisher with the declared one at its first sample. Samples of another type are read by
    /// that type, or refused.
    #[cold]
    pub(super) fn judge<R: Receiver + ?Sized>(
        &mut self,
        publisher: dds_instance_handle_t,
        delivery: &Delivery<R>,
    ) {
        let Base { declared: Some(declared), domain, state, .. } = &mut self.base else { return };
        if self.sources.knows(publisher) {
            return;
        }
        let Some(announced) = type_of_match(&self.opened.reader, publisher) else { return };
        if delivery.leaves_out(&announced) {
            return self.sources.refuse(publisher);
        }
        if let Err(difference) = declared.check(domain, &announced, || state.is_stopping()) {
            match delivery.differs(&mut self.base, difference, true) {
                Some(of_type) => self.sources.set_type(publisher, of_type),
                None => self.sources.refuse(publisher),
            }
        }
    }

    /// Checks the promises of publishers: samples within the deadline, and signs of life.
    fn look_at_promises<R: Receiver + ?Sized>(&mut self, first: Option<Timestamp>, delivery: &Delivery<R>) {
        let reader = self.opened.reader.handle();
        // SAFETY: plain numbers, for which all zero is a value.
        let mut missed: cyclors::dds_requested_deadline_missed_status_t = unsafe { std::mem::zeroed() };
        // SAFETY: a live handle and a place for the status. Reading it resets its change counters.
        let code = unsafe { cyclors::dds_get_requested_deadline_missed_status(reader, &mut missed) };
        if code >= 0 && missed.total_count_change > 0 {
            self.missed_deadline(first, delivery);
        }
        // SAFETY: plain numbers, for which all zero is a value.
        let mut lives: cyclors::dds_liveliness_changed_status_t = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let code = unsafe { cyclors::dds_get_liveliness_changed_status(reader, &mut lives) };
        let is_alive = lives.alive_count > 0;
        match is_alive {
            true => self.unregistered.clear(),
            false if code >= 0 && !self.missed.is_empty() => {
                let time = self.change_time(first);
                self.unregister(time, delivery);
            }
            false => {}
        }
        if code >= 0
            && std::mem::replace(&mut self.is_alive, is_alive) != is_alive
            && delivery.part.note_alive(is_alive)
        {
            let time = self.change_time(first);
            delivery.receiver.changed(delivery.part.topic, Change::Alive(is_alive), time);
        }
    }

    /// Time of a change that is reported now, before the taken samples, of which the first has this source time, or before
    /// those that wait in the cache.
    #[cold]
    fn change_time(&mut self, first: Option<Timestamp>) -> ChangeTime {
        ChangeTime::before(adapter::now(), first.or_else(|| self.first_waiting()))
    }

    /// Source time of the first sample that waits in the cache, if one does.
    fn first_waiting(&mut self) -> Option<Timestamp> {
        let waiting = self.buffer.peek(&self.opened.reader)?;
        waiting.samples().find_map(|(_, info)| source_time(info))
    }

    /// Reports that the instances that have missed a deadline have no publisher any more: the library has forgotten
    /// their publisher by then, and does not report it (CycloneDDS 0.11).
    #[cold]
    fn unregister<R: Receiver + ?Sized>(&mut self, time: ChangeTime, delivery: &Delivery<R>) {
        for (instance, key) in std::mem::take(&mut self.missed) {
            let change = Change::Unregistered(Instance::Key(&key));
            delivery.receiver.changed(delivery.part.topic, change, time);
            self.unregistered.insert(instance);
        }
    }

    /// Reports the instances that missed their deadline, each by its key, or once if there is only one instance.
    #[cold]
    fn missed_deadline<R: Receiver + ?Sized>(&mut self, first: Option<Timestamp>, delivery: &Delivery<R>) {
        let first = first.or_else(|| self.first_waiting());
        let report = |of: Instance<'_>, time: Timestamp| {
            let time = ChangeTime::before(time, first);
            delivery.receiver.changed(delivery.part.topic, Change::MissedDeadline(of), time);
        };
        let Some(missed) = &self.opened.missed else { return report(Instance::Unnamed, adapter::now()) };
        let (missed, dropped) = missed.take();
        for (instance, time) in missed {
            let key = missed::key(&self.opened.reader, instance);
            report(key.as_deref().map_or(Instance::Unnamed, Instance::Key), time);
            if let Some(key) = key.filter(|_| self.missed.len() < missed::LIMIT) {
                self.missed.insert(instance, key);
            }
        }
        if dropped > 0 {
            tracing::warn!(topic = %self.base.name, dropped, "too many deadlines were missed at once: some are not reported");
            report(Instance::Unnamed, adapter::now());
        }
    }

    /// Prepares for samples that a publisher sends again to a reader of kept samples: only those newer than its last
    /// sample are delivered.
    fn await_kept(&mut self, publisher: matches::Match, former: u64, from: Timestamp) {
        if let Some(after) = self.sources.last(former) {
            self.sources.returned(former, publisher.handle);
            let until = adapter::now().as_nanos();
            self.returning = Some(Returning { publisher: publisher.handle, after, until, from });
        }
    }
}
