//! Numbers of a subscription's publishers, and the messages held behind a gap.

mod attended;
mod fetched;
mod heartbeats;
mod publisher;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ::zenoh::sample::SourceInfo;
use rondel_event::{NameId, Origin, Timestamp, TopicId, TypeIndex};

use self::heartbeats::LastHeartbeat;
use self::publisher::{Gap, Held, Numbered, Responsiveness};
use super::{RecoveredSubscription, Recoverer};
use crate::adapter::{Outage, Receiver, Sample};
use crate::zenoh::envelope::{PublisherId, publisher_of};
use crate::zenoh::ros2::types::FurtherTypes;

/// Number of publishers whose numbers are compared without a lock.
const SLOTS: usize = 64;
/// Limit of publishers of a subscription; for further ones nothing is fetched.
const PUBLISHERS: usize = 4096;
/// Limit of the bytes of held messages of a publisher.
const HELD: usize = 4 << 20;

/// The numbers of the publishers of one subscription.
pub(in crate::zenoh) struct Numbers<R: ?Sized> {
    topic: TopicId,
    name: String,
    /// Name of the subscription in its queries.
    by: String,
    receiver: Arc<R>,
    wants_idle: bool,
    /// Name of the topic of each publisher, if the receiver numbers names.
    names: Option<Mutex<HashMap<u64, NameId>>>,
    /// Types of publishers with another type than the subscription, if their messages are read.
    types: Option<Arc<FurtherTypes>>,
    /// A part of the publisher's hash and the number of its next message; 0 for a free slot.
    slots: [AtomicU64; SLOTS],
    table: Mutex<Table>,
    /// Held while messages are delivered, except those in order.
    delivering: Mutex<()>,
    closed: AtomicBool,
    /// Whether messages may arrive. Before that nothing is fetched: messages published meanwhile would be missed.
    begun: AtomicBool,
    recoverer: Arc<Recoverer>,
}

impl<R: ?Sized> std::fmt::Debug for Numbers<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Numbers").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Table {
    publishers: HashMap<u64, Numbered>,
    /// Publisher of each slot.
    occupants: HashMap<usize, u64>,
    /// Publishers with a gap.
    gaps: Vec<u64>,
    /// Last heartbeat of each publisher that was not compared yet.
    heartbeats: HashMap<u64, LastHeartbeat>,
    /// Number of messages missing after the last one received.
    missing: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the distance from `next` to `number`; negative if `number` is before it.
fn beyond(number: u32, next: u32) -> i32 {
    number.wrapping_sub(next) as i32
}

/// Returns the slot of a publisher, and the word in it for a number.
#[inline]
fn word(publisher: u64, number: u32) -> (usize, u64) {
    ((publisher >> 58) as usize % SLOTS, ((publisher | 1) << 32) | u64::from(number))
}

impl<R: Receiver + ?Sized> Numbers<R> {
    /// Starts to compare numbers.
    pub(in crate::zenoh) fn new(
        recoverer: &Arc<Recoverer>,
        name: String,
        topic: TopicId,
        receiver: Arc<R>,
        types: Option<Arc<FurtherTypes>>,
    ) -> Arc<Numbers<R>> {
        let numbers = Arc::new(Numbers {
            topic,
            name,
            by: recoverer.name(),
            wants_idle: receiver.wants_idle(),
            names: receiver.wants_names(topic).then(Mutex::default),
            receiver,
            types,
            slots: [const { AtomicU64::new(0) }; SLOTS],
            table: Mutex::default(),
            delivering: Mutex::default(),
            closed: AtomicBool::new(false),
            begun: AtomicBool::new(false),
            recoverer: Arc::clone(recoverer),
        });
        let attended: Weak<dyn RecoveredSubscription> = {
            let weak: Weak<Numbers<R>> = Arc::downgrade(&numbers);
            weak
        };
        recoverer.all.lock().unwrap_or_else(PoisonError::into_inner).push(attended);
        numbers
    }

    /// Records a message without a number: see [`Watch::unnumbered`](super::super::watch::Watch::unnumbered).
    pub(in crate::zenoh) fn unnumbered(&self, reported: usize) -> Vec<Outage> {
        self.recoverer.watch.upgrade().map_or_else(Vec::new, |watch| watch.unnumbered(reported))
    }

    /// Returns the number of connections opened so far.
    pub(in crate::zenoh) fn connections(&self) -> Arc<AtomicU64> {
        self.recoverer.watch.upgrade().map(|watch| watch.connections()).unwrap_or_default()
    }

    /// Fetches the kept messages of a publisher discovered at this key, before its first message is delivered.
    pub(in crate::zenoh) fn announce(&self, key: &str, id: PublisherId<'_>) {
        let publisher = publisher_of(id.session, id.entity);
        let table = &mut *self.table();
        if self.closed() || table.publishers.contains_key(&publisher) || table.publishers.len() >= PUBLISHERS
        {
            return;
        }
        let mut numbered = Numbered::new(key, id, 0, true);
        numbered.keys.advanced = true;
        if self.names.is_some() {
            match self.receiver.number(self.topic, key) {
                None => return,
                name => self.note_name(publisher, name),
            }
        }
        numbered.gap = Some(Gap { history: true, ..Gap::new(0) });
        table.publishers.insert(publisher, numbered);
        table.gaps.push(publisher);
        self.recoverer.wake();
    }

    /// Starts to fetch: messages may arrive from now on.
    pub(in crate::zenoh) fn begin(&self) {
        self.begun.store(true, Ordering::Release);
        self.recoverer.wake();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether to deliver a message now. Otherwise it is held, or was fetched before.
    #[inline]
    pub(in crate::zenoh) fn pass(
        &self,
        origin: Origin,
        info: &SourceInfo,
        key: &str,
        sample: &Sample<'_>,
    ) -> bool {
        let number = origin.number as u32;
        let (slot, announced) = word(origin.publisher, number);
        let next = word(origin.publisher, number.wrapping_add(1)).1;
        let slot = &self.slots[slot];
        if slot.load(Ordering::Relaxed) == announced
            && slot.compare_exchange(announced, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            return true;
        }
        self.pass_slowly(origin, info, key, sample)
    }

    #[cold]
    fn pass_slowly(&self, origin: Origin, info: &SourceInfo, key: &str, sample: &Sample<'_>) -> bool {
        let number = origin.number as u32;
        let table = &mut *self.table();
        if !table.publishers.contains_key(&origin.publisher) {
            if table.publishers.len() >= PUBLISHERS {
                return true;
            }
            let source = info.source_id();
            let session = source.zid();
            let id = PublisherId { session: &session, entity: source.eid() };
            let timed = sample.source_time.is_some();
            let publisher = Numbered::new(key, id, number, timed);
            self.note_name(origin.publisher, sample.name);
            table.publishers.insert(origin.publisher, publisher);
        }
        let next = self.next(table, origin.publisher);
        let Some(publisher) = table.publishers.get_mut(&origin.publisher) else { return true };
        let distance = beyond(number, next);
        let was_fetched = publisher
            .fetched
            .is_some_and(|(first, after)| beyond(number, first) >= 0 && beyond(number, after) < 0);
        if distance < 0 && (was_fetched || publisher.gap.as_ref().is_some_and(|gap| !gap.history)) {
            return false;
        }
        let held = || Held { number, time: sample.source_time, payload: sample.payload.into() };
        let last = match &mut publisher.gap {
            Some(gap) => {
                gap.hold(held());
                while gap.bytes > HELD && publisher.answers == Responsiveness::Yes {
                    _ = gap.release();
                }
                if gap.bytes > HELD {
                    // It is unknown whether the publisher has them.
                    self.give_up(table, origin.publisher);
                }
                return false;
            }
            None if distance > 0
                && publisher.keeps
                && publisher.answers != Responsiveness::No
                && !self.closed() =>
            {
                let mut gap = Gap::new(next);
                gap.hold(held());
                publisher.gap = Some(gap);
                table.gaps.push(origin.publisher);
                self.leave_slot(table, origin.publisher);
                self.recoverer.wake();
                return false;
            }
            // A message of another implementation was delayed, or its publisher has restarted its numbers.
            None if distance < 0 && distance > -1024 => return true,
            None => number,
        };
        publisher.next = last.wrapping_add(1);
        self.take_slot(table, origin.publisher);
        true
    }

    /// Returns the number of the next message of a publisher.
    fn next(&self, table: &Table, publisher: u64) -> u32 {
        let (slot, _) = word(publisher, 0);
        if table.occupants.get(&slot) == Some(&publisher) {
            self.slots[slot].load(Ordering::Relaxed) as u32
        } else {
            table.publishers.get(&publisher).map_or(0, |publisher| publisher.next)
        }
    }

    /// Assigns the slot to a publisher, instead of another.
    fn take_slot(&self, table: &mut Table, publisher: u64) {
        let Some(next) = table.publishers.get(&publisher).map(|publisher| publisher.next) else { return };
        let (slot, announced) = word(publisher, next);
        let last = self.slots[slot].swap(announced, Ordering::Relaxed);
        if let Some(other) = table.occupants.insert(slot, publisher)
            && other != publisher
            && let Some(other) = table.publishers.get_mut(&other)
        {
            other.next = last as u32;
        }
    }

    /// Sends the messages of a publisher through the slow path.
    fn leave_slot(&self, table: &mut Table, publisher: u64) {
        let (slot, _) = word(publisher, 0);
        if table.occupants.get(&slot) == Some(&publisher) {
            table.occupants.remove(&slot);
            let last = self.slots[slot].swap(0, Ordering::Relaxed);
            if let Some(numbered) = table.publishers.get_mut(&publisher) {
                numbered.next = last as u32;
            }
        }
    }

    /// Records the name of the topic of a publisher.
    fn note_name(&self, publisher: u64, name: Option<NameId>) {
        if let Some((names, name)) = self.names.as_ref().zip(name) {
            lock(names).insert(publisher, name);
        }
    }

    fn closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn deliver(&self, publisher: u64, number: u32, time: Option<Timestamp>, payload: &[u8]) {
        let origin = Origin { publisher, number: number.into() };
        let name = self.names.as_ref().and_then(|names| lock(names).get(&publisher).copied());
        let of_type = self.types.as_ref().map_or(TypeIndex::default(), |types| types.of_publisher(publisher));
        let sample = Sample::new(payload, time, None).with_origin(Some(origin)).with_name(name);
        let sample = sample.with_type(of_type);
        self.receiver.receive(self.topic, &[sample]);
    }
}
