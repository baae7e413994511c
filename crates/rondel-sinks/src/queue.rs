//! Queue of encoded entries, in batches, bounded in number and in bytes.

use std::collections::VecDeque;
use std::sync::Arc;

/// Batches whose memory is kept for reuse.
const SPARE: usize = 4;
/// Capacity in bytes above which the memory of a batch is not kept.
const SPARE_BYTES: usize = 1 << 20;

/// Encoded entries, one after another.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    /// End of each entry.
    ends: Vec<usize>,
    /// Time of day at which a queue accepted it, in nanoseconds since the Unix epoch.
    accepted: i64,
}

impl Batch {
    /// Appends an entry that `write` writes.
    pub(crate) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Number of bytes of all entries.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Entries from a position on.
    pub(crate) fn entries(&self, first: usize) -> impl Iterator<Item = &[u8]> {
        (first..self.ends.len()).map(move |i| self.entry(i))
    }

    fn entry(&self, i: usize) -> &[u8] {
        let begin = i.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[begin..self.ends[i]]
    }

    /// Removes all entries and keeps the memory.
    pub(crate) fn reset(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// Bounds of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Largest number of entries.
    pub entries: usize,
    /// Largest number of bytes. A single entry may be larger.
    pub bytes: usize,
}

impl Default for Bounds {
    /// 131,072 entries and 32 MiB.
    fn default() -> Bounds {
        Bounds { entries: 1 << 17, bytes: 32 << 20 }
    }
}

/// Entries that are not acknowledged, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    bounds: Bounds,
    batches: VecDeque<Arc<Batch>>,
    /// Entries of the first batch that are acknowledged.
    begun: usize,
    len: usize,
    bytes: usize,
    spare: Vec<Batch>,
}

impl Queue {
    pub(crate) fn new(bounds: Bounds) -> Queue {
        Queue { bounds, ..Queue::default() }
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Number of bytes of the batches.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a batch of this size fits.
    pub(crate) fn has_room(&self, entries: usize, bytes: usize) -> bool {
        self.len == 0 || self.len + entries <= self.bounds.entries && self.bytes + bytes <= self.bounds.bytes
    }

    /// Time of day at which the oldest batch was accepted, in nanoseconds since the Unix epoch.
    pub(crate) fn since(&self) -> Option<i64> {
        self.batches.front().map(|batch| batch.accepted)
    }

    /// Moves the entries of a batch to the end at time of day `now`, and leaves it empty. Check [`Queue::has_room`] before.
    pub(crate) fn push(&mut self, batch: &mut Batch, now: i64) {
        if batch.len() == 0 {
            return;
        }
        batch.accepted = now;
        self.len += batch.len();
        self.bytes += batch.bytes();
        let empty = self.spare.pop().unwrap_or_default();
        self.batches.push_back(Arc::new(std::mem::replace(batch, empty)));
    }

    /// Returns the first batches with together about `entries` entries, and the number of acknowledged ones among them.
    pub(crate) fn front(&self, entries: usize) -> (Vec<Arc<Batch>>, usize) {
        let mut count = 0;
        let taken = self.batches.iter().take_while(|batch| {
            let before = count;
            count += batch.len();
            before == 0 || count <= entries + self.begun
        });
        (taken.cloned().collect(), self.begun)
    }

    /// Removes the first entries.
    pub(crate) fn acknowledge(&mut self, mut entries: usize) {
        while let Some(batch) = self.batches.front() {
            let left = batch.len() - self.begun;
            if entries < left {
                self.begun += entries;
                self.len -= entries;
                return;
            }
            entries -= left;
            self.len -= left;
            self.bytes -= batch.bytes();
            self.begun = 0;
            if let Some(batch) = self.batches.pop_front() {
                self.keep(batch);
            }
        }
    }

    fn keep(&mut self, batch: Arc<Batch>) {
        if let Some(mut batch) = Arc::into_inner(batch)
            && self.spare.len() < SPARE
            && batch.bytes.capacity() <= SPARE_BYTES
        {
            batch.reset();
            self.spare.push(batch);
        }
    }

    /// Removes all entries. Returns their number.
    pub(crate) fn clear(&mut self) -> u64 {
        let lost = self.len as u64;
        self.acknowledge(self.len);
        lost
    }

    /// Visits all entries.
    pub(crate) fn visit(&self, mut visit: impl FnMut(&[u8])) {
        let mut first = self.begun;
        for batch in &self.batches {
            batch.entries(first).for_each(&mut visit);
            first = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(entries: std::ops::Range<u8>) -> Batch {
        let mut batch = Batch::default();
        entries.for_each(|i| batch.push(|out| out.extend(std::iter::repeat_n(i, usize::from(i % 5)))));
        batch
    }

    fn all(queue: &Queue) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        queue.visit(|entry| found.push(entry.to_vec()));
        found
    }

    #[test]
    fn entries_leave_in_order() {
        let mut queue = Queue::new(Bounds::default());
        for begin in (0..100).step_by(10) {
            queue.push(&mut batch(begin..begin + 10), i64::from(begin));
        }
        let expected: Vec<Vec<u8>> = (0..100).map(|i: u8| vec![i; usize::from(i % 5)]).collect();
        let mut left = expected.as_slice();
        for step in [0, 1, 9, 3, 30, 17, 40] {
            assert_eq!((all(&queue).as_slice(), queue.len()), (left, left.len()));
            let (front, begun) = queue.front(25);
            let front: usize = front.iter().map(|batch| batch.len()).sum();
            assert!(front - begun <= 25 && front > begun);
            queue.acknowledge(step);
            left = &left[step..];
            let oldest = left.first().map(|_| (100 - left.len() as i64) / 10 * 10);
            assert_eq!(queue.since(), oldest);
        }
        assert_eq!((queue.len(), queue.bytes(), queue.clear()), (0, 0, 0));
    }

    #[test]
    fn number_and_bytes_are_bounded() {
        let mut queue = Queue::new(Bounds { entries: 20, bytes: 50 });
        assert!(queue.has_room(1000, 1000), "a single batch may be larger");
        queue.push(&mut batch(0..10), 0);
        assert!(queue.has_room(10, 10) && !queue.has_room(11, 10) && !queue.has_room(1, 31));
        assert_eq!(queue.clear(), 10);
        assert!(queue.has_room(1000, 1000));
    }
}
