//! The policy [`SetPolicy::Exact`](super::SetPolicy::Exact).

use std::collections::VecDeque;

use rondel_event::Timestamp;

use super::buffer::{SetBuffer, Unused};
use super::saved::SavedExact;

/// Sets of items with equal stamps. A complete set is emitted, and older partial sets are dropped.
#[derive(Clone, Debug)]
pub(super) struct Exact<T> {
    topics: usize,
    queue: usize,
    /// The partial sets by stamp, earliest first. New stamps nearly always belong at the end.
    order: VecDeque<(Timestamp, PartialSet)>,
    /// The items of all partial sets: those at index `i` begin at `i * topics`.
    items: Vec<Option<T>>,
    /// Indices that no partial set uses; their items are `None`.
    free: Vec<usize>,
}

/// A set that does not have an item of every topic yet.
#[derive(Clone, Copy, Debug)]
struct PartialSet {
    /// Index of its items in `Exact::items`, in units of the number of topics.
    index: usize,
    /// Number of topics with an item.
    filled: usize,
}

impl<T> Exact<T> {
    pub(super) fn new(topics: usize, queue: usize) -> Exact<T> {
        Exact { topics, queue, order: VecDeque::new(), items: Vec::new(), free: Vec::new() }
    }

    /// Returns the state for a snapshot: the partial sets in order.
    pub(super) fn saved(&self, write: &mut dyn FnMut(&T) -> Vec<u8>) -> SavedExact {
        let mut partial = |&(time, slot): &(Timestamp, PartialSet)| {
            let items = self.items[slot.index * self.topics..].iter().take(self.topics);
            (time.as_nanos(), items.map(|item| item.as_ref().map(&mut *write)).collect())
        };
        self.order.iter().map(&mut partial).collect()
    }

    /// Restores a saved state; `None` if it is inconsistent.
    pub(super) fn restore(
        &mut self,
        saved: SavedExact,
        read: &mut dyn FnMut(&[u8]) -> Option<T>,
    ) -> Option<()> {
        for (index, (time, items)) in saved.into_iter().enumerate() {
            if items.len() != self.topics {
                return None;
            }
            let filled = items.iter().flatten().count();
            for item in items {
                self.items.push(match item {
                    Some(item) => Some(read(&item)?),
                    None => None,
                });
            }
            self.order.push_back((Timestamp::from_nanos(time), PartialSet { index, filled }));
        }
        Some(())
    }

    pub(super) fn push(&mut self, topic: usize, time: Timestamp, item: T, buffer: &mut SetBuffer<T>) {
        let at = self.find(time);
        let slot = &mut self.order[at].1;
        if let Some(replaced) = self.items[slot.index * self.topics + topic].replace(item) {
            buffer.weight.remove(&replaced);
            buffer.unused(topic, time, Unused::Replaced);
            return self.limit(buffer);
        }
        slot.filled += 1;
        if slot.filled == self.topics {
            for _ in 0..at {
                self.drop_oldest(Unused::Older, buffer);
            }
            self.emit_oldest(buffer);
        } else if self.queue > 0 && self.order.len() > self.queue {
            self.drop_oldest(Unused::QueueFull, buffer);
        }
        self.limit(buffer);
    }

    /// Drops the oldest partial sets above the limit of bytes.
    fn limit(&mut self, buffer: &mut SetBuffer<T>) {
        while buffer.weight.is_over() && !self.order.is_empty() {
            self.drop_oldest(Unused::QueueFull, buffer);
        }
    }

    /// Returns the position of the partial set with this stamp, adding one if there is none.
    fn find(&mut self, time: Timestamp) -> usize {
        let at = match self.order.back() {
            Some(&(last, _)) if last >= time => self.order.partition_point(|&(t, _)| t < time),
            _ => self.order.len(),
        };
        if self.order.get(at).is_none_or(|&(t, _)| t != time) {
            let index = self.free.pop().unwrap_or_else(|| {
                let index = self.items.len() / self.topics;
                self.items.extend((0..self.topics).map(|_| None));
                index
            });
            self.order.insert(at, (time, PartialSet { index, filled: 0 }));
        }
        at
    }

    fn emit_oldest(&mut self, buffer: &mut SetBuffer<T>) {
        if let Some(time) = self.take_oldest(|topic, time, item| buffer.item(topic, time, item)) {
            buffer.set(time);
        }
    }

    fn drop_oldest(&mut self, why: Unused, buffer: &mut SetBuffer<T>) {
        self.take_oldest(|topic, time, item| {
            buffer.weight.remove(&item);
            buffer.unused(topic, time, why);
        });
    }

    fn take_oldest(&mut self, mut take: impl FnMut(usize, Timestamp, T)) -> Option<Timestamp> {
        let (time, slot) = self.order.pop_front()?;
        let items = self.items[slot.index * self.topics..].iter_mut().take(self.topics);
        for (topic, item) in items.enumerate() {
            if let Some(item) = item.take() {
                take(topic, time, item);
            }
        }
        self.free.push(slot.index);
        Some(time)
    }

    pub(super) fn flush(&mut self, buffer: &mut SetBuffer<T>) {
        while !self.order.is_empty() {
            self.drop_oldest(Unused::End, buffer);
        }
    }
}
