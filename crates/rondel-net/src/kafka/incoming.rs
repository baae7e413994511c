//! The consumer of a session, and its subscriptions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::{BorrowedMessage, Headers as _};
use rdkafka::{Message as _, Offset, TopicPartitionList};
use rondel_event::Timestamp;

use super::Settings;
use super::client::Watched;
use super::dead_letters::DeadLetters;
use super::partitions::{self, Begin, First, Partitions, Unknown};
use super::positions::{self, Mark, Marks};
use super::routes::{NO_NAME, Partition, Route, Routes, Topic};
use crate::adapter::{PartitionStates, Sample, now, trace_message};
use crate::attempts::lock_until;

/// Interval of looking whether a pause has ended.
const PAUSE: Duration = Duration::from_millis(2);
/// Time limit of a query for the oldest record of a partition.
const QUERY: Duration = Duration::from_secs(1);

/// The consumer of a session, shared by all its subscriptions.
pub(super) struct Incoming {
    pub(super) settings: Settings,
    pub(super) consumer: BaseConsumer<Watched>,
    /// Writer of records that cannot be decoded, if they are kept.
    pub(super) dead_letters: Option<DeadLetters>,
    /// Whether the brokers had acknowledged these records at the last [`freeze`](Incoming::freeze).
    pub(super) is_settled: AtomicBool,
    /// Held while receivers are called.
    routes: Mutex<Routes>,
    /// Taken shortly before `routes` by the reading thread, and by threads that need `routes` soon.
    pub(super) gate: Mutex<()>,
    closing: AtomicBool,
    /// Whether no record is to be delivered now.
    is_paused: AtomicBool,
    /// Whether the reading thread has ended.
    ended: Mutex<bool>,
    changed: Condvar,
    /// States of partitions, of the member of a group.
    pub(super) states: Mutex<Option<Arc<dyn PartitionStates>>>,
    /// Whether a broker was ever reached.
    pub(super) is_reached: AtomicBool,
    /// Whether records that waited at the brokers during an outage may not have been received yet.
    pub(super) is_behind: AtomicBool,
}

impl Incoming {
    pub(super) fn new(
        settings: Settings,
        consumer: BaseConsumer<Watched>,
        marks: Marks,
        dead_letters: Option<DeadLetters>,
    ) -> Incoming {
        // A run that goes on at marks has records to catch up with.
        let is_behind = AtomicBool::new(!marks.is_empty());
        let routes = Routes {
            all: Vec::new(),
            next: 0,
            topics: BTreeMap::new(),
            marks,
            waits: settings.waits,
            is_begun: false,
            unread: Vec::new(),
            unread_reasons: BTreeMap::new(),
            logged: Vec::new(),
        };
        Incoming {
            settings,
            consumer,
            dead_letters,
            is_settled: AtomicBool::new(true),
            routes: Mutex::new(routes),
            gate: Mutex::default(),
            closing: AtomicBool::new(false),
            is_paused: AtomicBool::new(false),
            ended: Mutex::new(false),
            changed: Condvar::new(),
            states: Mutex::new(None),
            is_reached: AtomicBool::new(false),
            is_behind,
        }
    }

    pub(super) fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock of the routes before the reading thread takes it again.
    pub(super) fn routes_soon(&self) -> (MutexGuard<'_, ()>, MutexGuard<'_, Routes>) {
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        (gate, self.routes())
    }

    /// Takes the lock of the routes to deliver records, once no [pause](Incoming::pause) lasts.
    pub(super) fn routes_to_deliver(&self) -> MutexGuard<'_, Routes> {
        loop {
            drop(self.gate.lock().unwrap_or_else(PoisonError::into_inner));
            let routes = self.routes();
            // Under the lock: a subscription that was made in the pause gets nothing before its end.
            if !self.is_paused.load(Ordering::SeqCst) || self.is_closing() {
                return routes;
            }
            drop(routes);
            self.is_behind.store(true, Ordering::Relaxed);
            std::thread::sleep(PAUSE);
        }
    }

    /// Delivers no further record until [`resume`](Incoming::resume): they stay with the brokers and in the bounded buffers
    /// of the client.
    pub(super) fn pause(&self) {
        self.is_paused.store(true, Ordering::SeqCst);
    }

    /// Ends a pause.
    pub(super) fn resume(&self) {
        self.is_paused.store(false, Ordering::SeqCst);
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Adds a subscription, and reads its topic. Returns the key of the subscription.
    ///
    /// # Errors
    /// The user may not read the topic.
    pub(super) fn subscribe(&self, mut route: Route) -> Result<u64, String> {
        let topic = route.filter.place.topic.clone();
        if self.settings.group.is_some() {
            return Ok(self.subscribe_member(topic, route));
        }
        let is_known = self.routes_soon().1.topics.get(&topic).is_some_and(|topic| topic.is_known);
        // Outside of the lock: requests take time.
        let found = (!is_known)
            .then(|| partitions::find(self.consumer.client(), &topic, |_| false, partitions::LIMIT));
        let place = self.settings.place();
        if let Some(Err(Unknown::Refused(reason))) = &found {
            return Err(format!("Kafka at {place} refuses the subscription: {reason}"));
        }
        let (_gate, mut routes) = self.routes_soon();
        routes.next += 1;
        let key = routes.next;
        route.key = key;
        routes.all.push(route);
        if routes.topics.get(&topic).is_some_and(|topic| topic.is_known) {
            return Ok(key);
        }
        match found {
            Some(Ok(partitions)) => {
                self.read(&mut routes, &topic, &partitions, First::Set(self.settings.start));
            }
            Some(Err(Unknown::Topic)) => {
                tracing::warn!(
                    "Kafka at {place} has no topic `{topic}`; it is read from its first record once it exists"
                );
                self.is_reached.store(true, Ordering::Relaxed);
                routes.topics.entry(topic).or_default().is_missing = true;
            }
            Some(Err(Unknown::Unreachable(reason) | Unknown::Refused(reason))) => {
                tracing::warn!(
                    "cannot read the topic `{topic}` of Kafka at {place} yet: {reason}; trying again"
                );
                let has_mark = routes.marks.contains_key(&topic);
                let since = now();
                if !has_mark {
                    routes.missed(&topic, since, None);
                }
                let unread = routes.topics.entry(topic).or_default();
                unread.unread_since = (!has_mark).then_some(since);
            }
            // Another subscription to it was closed meanwhile: the reading thread finds it.
            None => _ = routes.topics.entry(topic).or_default(),
        }
        Ok(key)
    }

    /// Adds the subscription of a member of a group. Returns its key.
    fn subscribe_member(&self, topic: String, mut route: Route) -> u64 {
        let (_gate, mut routes) = self.routes_soon();
        routes.next += 1;
        route.key = routes.next;
        routes.all.push(route);
        // The group names its partitions.
        routes.topics.entry(topic).or_default().is_known = true;
        routes.next
    }

    /// Begins to read partitions of a topic, or further ones.
    pub(super) fn read(&self, routes: &mut Routes, topic: &str, found: &Partitions, first: First) {
        self.is_reached.store(true, Ordering::Relaxed);
        let marks = routes.marks.remove(topic);
        // A partition without a mark beside others with one has appeared since.
        let first = if marks.is_some() { First::Oldest } else { first };
        let (mut lost, mut reset) = (Vec::new(), Vec::new());
        let known = routes.topics.entry(topic.to_owned()).or_default();
        for (number, range) in found {
            if known.partitions.contains_key(number) {
                continue;
            }
            let mark = marks.as_ref().and_then(|marks| marks.get(number).copied());
            let is_saved = mark.is_some() || !self.settings.waits;
            let Begin { mark, lost: count, is_new } = partitions::begin(*range, mark, first);
            if is_new {
                tracing::warn!(
                    "the topic `{topic}` of Kafka was created again or cut off: its partition {number} is read from its \
                     begin"
                );
                reset.push(mark.last);
            }
            if count > 0 {
                lost.push((*number, count, mark.last));
            }
            known.partitions.insert(*number, Partition::new(mark, is_saved));
        }
        (known.is_known, known.is_missing) = (true, false);
        let unread_since = known.unread_since.take();
        tracing::info!(%topic, partitions = known.partitions.len(), "reading the topic of Kafka");
        for (number, count, since) in lost {
            routes.lost(topic, number, count, since);
        }
        for since in reset.into_iter().chain(unread_since) {
            routes.missed(topic, since, Some(now()));
        }
        if !routes.waits {
            self.assign(routes);
        }
    }

    /// Passes all partitions to the consumer that it does not have yet, and that may be read.
    fn assign(&self, routes: &mut Routes) {
        let mut list = TopicPartitionList::new();
        for (topic, Topic { partitions, .. }) in &routes.topics {
            for (number, partition) in partitions.iter().filter(|(_, partition)| partition.waits()) {
                // An offset is never negative.
                let _ = list.add_partition_offset(topic, *number, Offset::Offset(partition.mark.next));
            }
        }
        if list.count() == 0 {
            return;
        }
        if let Err(error) = self.consumer.incremental_assign(&list) {
            tracing::warn!("cannot read from Kafka at {}: {error}; trying again", self.settings.place());
            return;
        }
        let partitions = routes.partitions();
        partitions.filter(|partition| partition.waits()).for_each(|partition| partition.is_assigned = true);
    }

    /// Stops to read the partitions of a topic, and keeps their marks: the last snapshot of a run is captured after its
    /// subscriptions are closed, and a topic may be missing only while a broker does not know it yet.
    pub(super) fn stop(&self, routes: &mut Routes, topic: &str, partitions: &BTreeMap<i32, Partition>) {
        if !partitions.is_empty() {
            let marks = partitions.iter().map(|(number, partition)| (*number, partition.mark));
            routes.marks.insert(topic.to_owned(), marks.collect());
        }
        let mut list = TopicPartitionList::new();
        // Those of a member are given up when the group revokes them, or at the end.
        let own = partitions.iter().filter(|_| self.settings.group.is_none());
        for (number, _) in own.filter(|(_, partition)| partition.is_assigned) {
            list.add_partition(topic, *number);
        }
        if list.count() > 0
            && let Err(error) = self.consumer.incremental_unassign(&list)
        {
            tracing::debug!(%topic, "cannot stop reading from Kafka: {error}");
        }
    }

    /// Ends a subscription. Returns whether its receiver returned within `limit`.
    pub(super) fn unsubscribe(&self, key: u64, limit: Duration) -> bool {
        let Some(mut routes) = lock_until(&self.routes, Instant::now() + limit) else { return false };
        let Some(index) = routes.all.iter().position(|route| route.key == key) else { return true };
        let route = routes.all.remove(index);
        let topic = &route.filter.place.topic;
        if routes.all.iter().all(|other| other.filter.place.topic != *topic)
            && let Some(read) = routes.topics.remove(topic)
        {
            self.stop(&mut routes, topic, &read.partitions);
        }
        drop(routes);
        route.deliver.idle();
        let received = route.counts.received.load(Ordering::Relaxed);
        tracing::info!(topic = %route.filter.place.topic, received, "closed the subscription");
        true
    }

    /// Declares that all subscriptions exist. If their topics waited, they are read from now on.
    pub(super) fn begin(&self) {
        let (_gate, mut routes) = self.routes_soon();
        routes.is_begun = true;
        if self.settings.group.is_some() {
            self.join_group(&routes);
        } else if std::mem::take(&mut routes.waits) {
            self.assign(&mut routes);
        }
    }

    /// Passes partitions to the consumer that it refused before.
    pub(super) fn assign_rest(&self, routes: &mut Routes) {
        if !routes.waits && self.settings.group.is_none() {
            self.assign(routes);
        }
    }

    /// Calls `capture` with marks of all received records, while none is received.
    pub(super) fn freeze<T>(&self, capture: impl FnOnce(Vec<u8>) -> T) -> T {
        let (_gate, mut routes) = self.routes_soon();
        let is_settled = self.dead_letters.as_ref().is_none_or(DeadLetters::settle);
        self.is_settled.store(is_settled, Ordering::Relaxed);
        for partition in routes.partitions() {
            (partition.is_captured, partition.captured) = (true, partition.mark.next);
        }
        let read = routes.topics.iter().filter(|(_, topic)| !topic.partitions.is_empty());
        let read = read.map(|(name, topic)| {
            let marks = topic.partitions.iter().map(|(number, partition)| (*number, partition.mark));
            (name.as_str(), marks.collect::<Vec<_>>())
        });
        // Topics that are not read yet, or not any more, keep their marks.
        let unread = routes.marks.iter().map(|(name, marks)| {
            (name.as_str(), marks.iter().map(|(number, mark)| (*number, *mark)).collect::<Vec<_>>())
        });
        capture(positions::write(read.chain(unread)))
    }

    /// Records that the snapshot of the last [`freeze`](Incoming::freeze) is durable: partitions whose first mark is in it
    /// are read from now on.
    pub(super) fn release(&self) {
        let (_gate, mut routes) = self.routes_soon();
        routes.partitions().for_each(|partition| partition.is_saved |= partition.is_captured);
        self.assign_rest(&mut routes);
        if self.settings.group.is_some() {
            self.commit_captured(&mut routes);
        }
    }

    /// Whether partitions wait until a snapshot with their first mark is durable.
    pub(super) fn awaits_snapshot(&self) -> bool {
        self.routes().partitions().any(|partition| !partition.is_saved)
    }

    /// Whether there are marks of an earlier run on a topic.
    pub(super) fn has_marks(&self, topic: &str) -> bool {
        self.routes().marks.contains_key(topic)
    }

    /// Delivers a record.
    pub(super) fn deliver(&self, routes: &mut Routes, message: &BorrowedMessage<'_>) {
        let (topic, number, offset) = (message.topic(), message.partition(), message.offset());
        let Some(partition) = routes.partition(topic, number) else { return };
        let arrival = now();
        let Mark { next, last } =
            std::mem::replace(&mut partition.mark, Mark { next: offset + 1, last: arrival });
        if partition.may_have_lost(offset - next) {
            partition.queried = Some(Instant::now());
            self.examine_gap(routes, (topic, number), (next, offset), last);
        } else if offset < next {
            routes.was_reset(topic, number, last);
        }
        let payload = message.payload();
        trace_message("received", topic, payload.unwrap_or_default());
        let source_time = message.timestamp().to_millis().and_then(|ms| ms.checked_mul(1_000_000));
        let source_time = source_time.map(Timestamp::from_nanos);
        let mut cause: Option<Box<str>> = None;
        for route in routes.all.iter_mut().filter(|route| route.filter.place.topic == topic) {
            let sample = payload
                .map(|payload| Sample::new(payload, source_time, Some(arrival)).with_partition(Some(number)));
            let taken = route.take(sample, message.key(), |name| header(message, name));
            if self.dead_letters.is_some() {
                let found = if taken { route.deliver.refusal(route.topic) } else { Some(NO_NAME.into()) };
                cause = cause.or(found);
            }
        }
        if let (Some(cause), Some(dead_letters)) = (cause, &self.dead_letters) {
            dead_letters.write(message, &cause, &self.is_behind);
        }
    }

    /// Counts the records between two offsets that have expired. Gaps may also be those of a compacted topic, or of
    /// transactions. Without an answer, records may have been missed.
    pub(super) fn examine_gap(
        &self,
        routes: &mut Routes,
        (topic, number): (&str, i32),
        (next, offset): (i64, i64),
        since: Timestamp,
    ) {
        let Ok((low, _)) = self.consumer.client().fetch_watermarks(topic, number, QUERY) else {
            routes.missed(topic, since, Some(now()));
            return;
        };
        let lost = low.min(offset).saturating_sub(next);
        if lost > 0 {
            routes.lost(topic, number, lost.unsigned_abs(), since);
        } else if let Some(partition) = routes.partition(topic, number) {
            partition.harmless = partition.harmless.max(offset - next);
        }
    }

    /// Informs receivers that no further record is waiting.
    pub(super) fn idle(routes: &mut Routes) {
        for route in &mut routes.all {
            if std::mem::take(&mut route.touched) {
                route.deliver.idle();
            }
        }
    }

    /// Records that the reading thread has ended, and releases the receivers.
    pub(super) fn end(&self) {
        self.leave_group();
        *self.states.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.routes().all.clear();
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Ends the reading thread. Returns whether it has ended within `limit`.
    pub(super) fn close(&self, limit: Duration) -> bool {
        self.closing.store(true, Ordering::SeqCst);
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(ended, limit, |ended| !*ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Returns the value of the last header of a record with a name.
pub(super) fn header<'m>(message: &'m BorrowedMessage<'_>, name: &str) -> Option<&'m [u8]> {
    let headers = message.headers()?;
    let named = |at: usize| headers.try_get(at).filter(|header| header.key == name);
    (0..headers.count()).rev().find_map(named)?.value
}
