use std::collections::VecDeque;

use rondel_event::Timestamp;

use super::book::{Book, Unused};
use super::saved::SavedExact;

/// Items with equal stamps: the partial sets by stamp; one that is full leaves and takes all older
/// ones with it.
#[derive(Clone, Debug)]
pub(super) struct Exact<T> {
    topics: usize,
    queue: usize,
    /// The partial sets by stamp, earliest first, and where their items are. New stamps belong at
    /// the end nearly always.
    order: VecDeque<(Timestamp, Slot)>,
    /// The items of all partial sets: those of slot `i` begin at `i * topics`.
    items: Vec<Option<T>>,
    /// Slots that no partial set uses; their items are all `None`.
    free: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    index: usize,
    /// How many topics have their item.
    filled: usize,
}

impl<T> Exact<T> {
    pub(super) fn new(topics: usize, queue: usize) -> Exact<T> {
        Exact { topics, queue, order: VecDeque::new(), items: Vec::new(), free: Vec::new() }
    }

    /// For a snapshot: the partial sets in their order.
    pub(super) fn saved(&self, write: &mut dyn FnMut(&T) -> Vec<u8>) -> SavedExact {
        let mut partial = |&(time, slot): &(Timestamp, Slot)| {
            let items = self.items[slot.index * self.topics..].iter().take(self.topics);
            (time.as_nanos(), items.map(|item| item.as_ref().map(&mut *write)).collect())
        };
        self.order.iter().map(&mut partial).collect()
    }

    /// Takes over what was saved, if it can be that.
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
            self.order.push_back((Timestamp::from_nanos(time), Slot { index, filled }));
        }
        Some(())
    }

    pub(super) fn push(&mut self, topic: usize, time: Timestamp, item: T, book: &mut Book<T>) {
        let at = self.find(time);
        let slot = &mut self.order[at].1;
        if self.items[slot.index * self.topics + topic].replace(item).is_some() {
            book.unused(topic, time, Unused::Replaced);
            return;
        }
        slot.filled += 1;
        if slot.filled == self.topics {
            for _ in 0..at {
                self.drop_oldest(Unused::Older, book);
            }
            self.emit_oldest(book);
        } else if self.queue > 0 && self.order.len() > self.queue {
            self.drop_oldest(Unused::QueueFull, book);
        }
    }

    /// Where the partial set with this stamp is, which may be a new one.
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
            self.order.insert(at, (time, Slot { index, filled: 0 }));
        }
        at
    }

    fn emit_oldest(&mut self, book: &mut Book<T>) {
        if let Some(time) = self.take_oldest(|topic, time, item| book.item(topic, time, item)) {
            book.set(time);
        }
    }

    fn drop_oldest(&mut self, why: Unused, book: &mut Book<T>) {
        self.take_oldest(|topic, time, _| book.unused(topic, time, why));
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

    pub(super) fn flush(&mut self, book: &mut Book<T>) {
        while !self.order.is_empty() {
            self.drop_oldest(Unused::End, book);
        }
    }
}
