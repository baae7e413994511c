use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use serde::{Deserialize, Serialize};

/// Entries by time, those of equal time by their numbers. What comes in order is in a run, where that costs nothing; what
/// steps back is in a heap beside it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Queue<T> {
    run: VecDeque<Entry<T>>,
    back: BinaryHeap<Entry<T>>,
}

/// The number of an entry, and what tells it from another with that number.
pub(super) type Sequence = (u64, u64);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry<T> {
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

    /// The same queue of what each item becomes; none if one cannot.
    pub(super) fn map<U>(&self, mut becomes: impl FnMut(&T) -> Option<U>) -> Option<Queue<U>> {
        let mut entry = |entry: &Entry<T>| {
            let Entry { time, sequence, ref item } = *entry;
            becomes(item).map(|item| Entry { time, sequence, item })
        };
        let run = self.run.iter().map(&mut entry).collect::<Option<_>>()?;
        // What is a heap stays as it is.
        let back = self.back.iter().map(&mut entry).collect::<Option<Vec<_>>>()?;
        Some(Queue { run, back: BinaryHeap::from(back) })
    }

    #[inline]
    pub(super) fn push(&mut self, time: i64, sequence: Sequence, item: T) {
        let entry = Entry { time, sequence, item };
        if self.run.back().is_some_and(|last| (time, sequence) < (last.time, last.sequence)) {
            self.back.push(entry);
        } else {
            self.run.push_back(entry);
        }
    }

    /// The earliest time.
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

/// The greatest of a heap is the earliest.
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Entry<T>) -> Ordering {
        (other.time, other.sequence).cmp(&(self.time, self.sequence))
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Entry<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Entry<T>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}
