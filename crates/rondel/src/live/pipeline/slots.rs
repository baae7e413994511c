//! The numbers of subscriptions, which stay when a reload gives topics other numbers.

use std::collections::VecDeque;
use std::sync::MutexGuard;
use std::thread;
use std::time::{Duration, Instant};

use rondel_event::{NameId, Origin, Timestamp, TopicId, TypeIndex};
use rondel_net::adapter::{Sample, now};

use super::{Pipeline, State};

/// Maximum number of messages that wait for a reload.
const MESSAGES: usize = 65_536;
/// Maximum size of their payloads in bytes.
const BYTES: usize = 64 << 20;
/// Time limit for events and types of new topics until the reload is complete.
const PATIENCE: Duration = Duration::from_secs(5);
/// Interval of looking whether it is.
const LOOK: Duration = Duration::from_millis(1);

/// Destination of the messages of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// They wait until the session has the topic.
    Awaited,
    /// They are those of this topic of the session.
    Topic(TopicId),
    /// The topic was removed.
    Removed,
}

/// A message that waits for a reload.
struct EarlyMessage {
    slot: TopicId,
    payload: Vec<u8>,
    source: Option<Timestamp>,
    arrival: Timestamp,
    origin: Option<Origin>,
    name: Option<NameId>,
    of_type: TypeIndex,
}

/// The subscriptions by their numbers.
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// Messages of awaited topics, in the order of their arrival.
    early: VecDeque<EarlyMessage>,
    bytes: usize,
    /// Messages and events of awaited topics that were dropped, by subscription.
    dropped: Vec<DroppedEarly>,
}

/// Messages and events of an awaited topic that were dropped: there was no room, or the reload lasted too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DroppedEarly {
    /// Subscription.
    slot: TopicId,
    /// Number.
    pub(super) count: u64,
    /// Time of day of the first.
    first: Timestamp,
}

impl Slots {
    /// Creates the subscriptions of a new run: each has the number of its topic.
    pub(super) fn new(topics: usize) -> Slots {
        let slots = (0..topics as u32).map(|topic| Slot::Topic(TopicId(topic))).collect();
        Slots { slots, early: VecDeque::new(), bytes: 0, dropped: Vec::new() }
    }

    /// Returns the topic of a subscription; `None` while it is awaited, and after it was removed.
    #[inline]
    pub(super) fn topic(&self, slot: TopicId) -> Option<TopicId> {
        match self.slots.get(slot.index()) {
            Some(Slot::Topic(topic)) => Some(*topic),
            _ => None,
        }
    }

    /// Adds a subscription whose topic is awaited, and returns its number.
    pub(super) fn add(&mut self) -> TopicId {
        self.slots.push(Slot::Awaited);
        TopicId(self.slots.len() as u32 - 1)
    }

    /// Gives each topic of a session its subscription; other subscriptions are removed. Returns what was dropped.
    pub(super) fn assign(&mut self, slots: &[TopicId]) -> Vec<DroppedEarly> {
        self.slots.fill(Slot::Removed);
        for (topic, slot) in (0..).map(TopicId).zip(slots) {
            if let Some(place) = self.slots.get_mut(slot.index()) {
                *place = Slot::Topic(topic);
            }
        }
        std::mem::take(&mut self.dropped)
    }

    /// Removes the awaited subscriptions with their messages.
    pub(super) fn abandon(&mut self) {
        self.slots.iter_mut().filter(|slot| **slot == Slot::Awaited).for_each(|slot| *slot = Slot::Removed);
        self.early.clear();
        self.dropped.clear();
        self.bytes = 0;
    }

    /// Frees the numbers of removed subscriptions from `first` on.
    pub(super) fn truncate(&mut self, first: TopicId) {
        let is_removed = |slots: &[Slot]| slots.iter().all(|slot| *slot == Slot::Removed);
        if self.slots.get(first.index()..).is_some_and(is_removed) {
            self.slots.truncate(first.index());
        }
    }

    /// Counts a message or an event of an awaited topic as dropped.
    fn drop_early(&mut self, slot: TopicId, time: Timestamp) {
        match self.dropped.iter_mut().find(|of| of.slot == slot) {
            Some(of) => of.count += 1,
            None => self.dropped.push(DroppedEarly { slot, count: 1, first: time }),
        }
    }

    /// Keeps messages of an awaited topic, as far as there is room. Nothing is kept behind a dropped message or event, also of
    /// another topic: verdicts on it would not know what is missing.
    #[cold]
    pub(super) fn hold(&mut self, slot: TopicId, samples: &[Sample<'_>]) {
        if self.slots.get(slot.index()) != Some(&Slot::Awaited) {
            return;
        }
        for sample in samples {
            let has_room = self.early.len() < MESSAGES
                && self.bytes.saturating_add(sample.payload.len()) <= BYTES
                && self.dropped.is_empty();
            if !has_room {
                self.drop_early(slot, sample.arrival());
                continue;
            }
            self.bytes += sample.payload.len();
            self.early.push_back(EarlyMessage {
                slot,
                payload: sample.payload.to_vec(),
                source: sample.source_time,
                arrival: sample.arrival(),
                origin: sample.origin,
                name: sample.name,
                of_type: sample.of_type,
            });
        }
    }

    /// Counts a message without a name as dropped, if its topic is awaited: it cannot be kept.
    pub(super) fn drop_awaited(&mut self, slot: TopicId, time: Timestamp) {
        if self.is_awaited(slot) {
            self.drop_early(slot, time);
        }
    }

    /// Whether the topic of a subscription is awaited.
    fn is_awaited(&self, slot: TopicId) -> bool {
        self.slots.get(slot.index()) == Some(&Slot::Awaited)
    }
}

impl State {
    /// Receives the messages that have waited for their topics.
    pub(super) fn receive_early(&mut self) {
        for message in std::mem::take(&mut self.slots.early) {
            let EarlyMessage { slot, payload, source, arrival, origin, name, of_type } = message;
            let sample = Sample::new(&payload, source, Some(arrival));
            self.receive(slot, &[sample.with_origin(origin).with_name(name).with_type(of_type)]);
        }
        self.slots.bytes = 0;
    }

    /// Reports messages and events that were dropped while their topics were awaited as omissions of these topics, after the
    /// kept messages, which came before.
    pub(super) fn omit_early(&mut self, dropped: &[DroppedEarly]) {
        for DroppedEarly { slot, count, first } in dropped {
            if let Some(topic) = self.slots.topic(*slot) {
                self.session.dropped(topic, *count, (*first, now()), "before the reload was complete");
            }
        }
    }
}

impl Pipeline {
    /// Takes the lock once the topic of a subscription is no longer awaited, or the patience is over: then the event or
    /// type counts as dropped. Events and types come on threads of their own, and seldom.
    pub(super) fn known_slot(&self, slot: TopicId) -> MutexGuard<'_, State> {
        let (came, deadline) = (now(), Instant::now() + PATIENCE);
        loop {
            let mut state = self.state();
            if !state.slots.is_awaited(slot) {
                return state;
            }
            if Instant::now() >= deadline {
                state.slots.drop_early(slot, came);
                return state;
            }
            drop(state);
            thread::sleep(LOOK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_without_room_are_counted_by_topic() {
        let mut slots = Slots::new(1);
        let (first, second) = (slots.add(), slots.add());
        let arrival = |seconds: i64| Some(Timestamp::from_nanos(seconds * 1_000_000_000));
        let samples: Vec<Sample<'_>> = (0..MESSAGES).map(|_| Sample::new(b"1", None, arrival(1))).collect();
        slots.hold(first, &samples);
        slots.hold(second, &[Sample::new(b"1", None, arrival(2)), Sample::new(b"1", None, arrival(3))]);
        slots.hold(TopicId(0), &[Sample::new(b"1", None, arrival(4))]);
        slots.drop_early(first, Timestamp::from_nanos(5));
        let of = |slot, count, nanos| DroppedEarly { slot, count, first: Timestamp::from_nanos(nanos) };
        assert_eq!(
            slots.assign(&[TopicId(0), first, second]),
            [of(second, 2, 2_000_000_000), of(first, 1, 5)]
        );
        assert!(slots.assign(&[TopicId(0)]).is_empty());
    }

    #[test]
    fn nothing_is_kept_behind_a_dropped_message() {
        fn sample(payload: &[u8]) -> Sample<'_> {
            Sample::new(payload, None, Some(Timestamp::ZERO))
        }
        let mut slots = Slots::new(0);
        let (first, second) = (slots.add(), slots.add());
        slots.hold(first, &[sample(b"1"), sample(&vec![0; BYTES]), sample(b"2")]);
        slots.hold(second, &[sample(b"3")]);
        assert_eq!((slots.early.len(), slots.bytes), (1, 1));
        let dropped: Vec<u64> = slots.assign(&[first, second]).iter().map(|of| of.count).collect();
        assert_eq!(dropped, [2, 1]);
    }

    #[test]
    fn abandoned_subscriptions_have_dropped_nothing() {
        let mut slots = Slots::new(0);
        let slot = slots.add();
        slots.drop_early(slot, Timestamp::ZERO);
        slots.abandon();
        assert!(!slots.is_awaited(slot) && slots.assign(&[]).is_empty());
    }

    #[test]
    fn numbers_of_abandoned_subscriptions_are_free() {
        let mut slots = Slots::new(2);
        for _ in 0..3 {
            let first = slots.add();
            assert_eq!((first, slots.add()), (TopicId(2), TopicId(3)));
            slots.truncate(first);
            assert!(slots.is_awaited(first), "they are still in use");
            slots.abandon();
            slots.truncate(first);
        }
        assert_eq!(slots.topic(TopicId(1)), Some(TopicId(1)));
    }
}
