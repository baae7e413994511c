//! Queues of waiting events.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use serde::{Deserialize, Serialize};

/// Priority queue by time and, at equal times, by sequence. Entries added in order are appended to a list; the others go
/// to a heap.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Queue<T> {
    run: VecDeque<QueueEntry<T>>,
    back: BinaryHeap<QueueEntry<T>>,
}

/// Sequence number of an entry, and a second number that decides between equal ones.
pub(super) type Sequence = (u64, u64);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct QueueEntry<T> {
    time: i64,
    sequence: Sequence,
    item: T,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Queue<T> {
        Queue { run: VecDeque::new(), back: BinaryHeap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.run.len() + self.back.len()
    }

    /// Returns the items, in any order.
    pub(super) fn items(&self) -> impl Iterator<Item = &T> {
        self.run.iter().chain(&self.back).map(|entry| &entry.item)
    }

    /// Returns a queue with each item converted by `becomes`; `None` if a conversion fails.
    pub(super) fn map<U>(&self, mut becomes: impl FnMut(&T) -> Option<U>) -> Option<Queue<U>> {
        let mut entry = |entry: &QueueEntry<T>| {
            let QueueEntry { time, sequence, ref item } = *entry;
            becomes(item).map(|item| QueueEntry { time, sequence, item })
        };
        let run = self.run.iter().map(&mut entry).collect::<Option<_>>()?;
        // The conversion keeps times and sequences, so the vector is still a heap.
        let back = self.back.iter().map(&mut entry).collect::<Option<Vec<_>>>()?;
        Some(Queue { run, back: BinaryHeap::from(back) })
    }

    #[inline]
    pub(super) fn push(&mut self, time: i64, sequence: Sequence, item: T) {
        let entry = QueueEntry { time, sequence, item };
        if self.run.back().is_some_and(|last| (time, sequence) < (last.time, last.sequence)) {
            self.back.push(entry);
        } else {
            self.run.push_back(entry);
        }
    }

    /// Returns the earliest time.
    #[inline]
    pub(super) fn first(&self) -> Option<i64> {
        match (self.run.front(), self.back.peek()) {
            (Some(run), Some(back)) => Some(run.time.min(back.time)),
            (Some(run), None) => Some(run.time),
            (None, back) => back.map(|back| back.time),
        }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<(i64, T)> {
        let from_run = match (self.run.front(), self.back.peek()) {
            (Some(run), Some(back)) => (run.time, run.sequence) <= (back.time, back.sequence),
            (run, _) => run.is_some(),
        };
        let entry = if from_run { self.run.pop_front() } else { self.back.pop() };
        entry.map(|entry| (entry.time, entry.item))
    }
}

/// Reversed, since a [`BinaryHeap`] returns its maximum first.
impl<T> Ord for QueueEntry<T> {
    fn cmp(&self, other: &QueueEntry<T>) -> Ordering {
        (other.time, other.sequence).cmp(&(self.time, self.sequence))
    }
}

impl<T> PartialOrd for QueueEntry<T> {
    fn partial_cmp(&self, other: &QueueEntry<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for QueueEntry<T> {
    fn eq(&self, other: &QueueEntry<T>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for QueueEntry<T> {}
