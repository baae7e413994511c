//! Raw messages in memory: copied once into segments, of which the oldest are used again.
//!
//! A segment is filled under the lock of the pipeline, then sealed and shared with the thread that writes files, without
//! a copy. All segments together, also those that the writer still holds, stay within the limit of the memory. In the
//! steady state nothing is allocated.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use rondel_event::{Origin, Timestamp};

/// The bytes before the payload of a message: topic, length, times and origin.
const HEAD: usize = 4 + 4 + 8 + 8 + 8 + 8 + 1;
/// The size of segments: as many of them as fit a message or two hundredths of the memory.
const SEGMENT: (usize, usize) = (16 << 10, 256 << 10);

/// A message in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept<'s> {
    /// The topic, or another number that it was pushed with.
    pub topic: u32,
    /// Time of arrival.
    pub arrival: Timestamp,
    /// Time of sending, if the network provides it.
    pub source: Option<Timestamp>,
    /// Publisher and sequence number, if the network provides them.
    pub origin: Option<Origin>,
    /// The payload.
    pub payload: &'s [u8],
}

/// A sealed segment.
#[derive(Debug)]
pub struct Segment {
    bytes: Vec<u8>,
    /// Arrival of its first and last message.
    pub first: Timestamp,
    pub last: Timestamp,
    /// The number of its messages.
    pub count: u64,
    pool: Arc<Pool>,
}

impl Drop for Segment {
    fn drop(&mut self) {
        self.pool.give_back(std::mem::take(&mut self.bytes));
    }
}

impl Segment {
    /// The messages, in the order of their arrival.
    pub fn messages(&self) -> impl Iterator<Item = Kept<'_>> {
        let mut rest = &self.bytes[..];
        std::iter::from_fn(move || {
            let (head, after) = rest.split_first_chunk::<HEAD>()?;
            let u32_at = |at: usize| head[at..].first_chunk().copied().map_or(0, u32::from_le_bytes);
            let i64_at = |at: usize| head[at..].first_chunk().copied().map_or(0, i64::from_le_bytes);
            let (payload, after) = after.split_at_checked(u32_at(4) as usize)?;
            rest = after;
            let marks = head[HEAD - 1];
            let origin = Origin { publisher: i64_at(24) as u64, number: i64_at(32) as u64 };
            Some(Kept {
                topic: u32_at(0),
                arrival: Timestamp::from_nanos(i64_at(8)),
                source: (marks & 1 != 0).then(|| Timestamp::from_nanos(i64_at(16))),
                origin: (marks & 2 != 0).then_some(origin),
                payload,
            })
        })
    }
}

/// The buffers of segments.
#[derive(Debug)]
struct Pool {
    segment: usize,
    memory: usize,
    state: Mutex<Buffers>,
}

#[derive(Debug, Default)]
struct Buffers {
    free: Vec<Vec<u8>>,
    /// Size of all buffers in bytes, including those that the writer holds.
    allocated: usize,
}

impl Pool {
    /// Returns a buffer of this many bytes, if the memory has room for it.
    fn take(&self, size: usize) -> Option<Vec<u8>> {
        let size = size.max(self.segment);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if size == self.segment
            && let Some(buffer) = state.free.pop()
        {
            return Some(buffer);
        }
        while state.allocated + size > self.memory
            && let Some(buffer) = state.free.pop()
        {
            state.allocated -= buffer.capacity();
        }
        if state.allocated + size > self.memory {
            return None;
        }
        let buffer = Vec::with_capacity(size);
        state.allocated += buffer.capacity();
        Some(buffer)
    }

    fn give_back(&self, mut buffer: Vec<u8>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if buffer.capacity() == self.segment {
            buffer.clear();
            state.free.push(buffer);
        } else {
            state.allocated -= buffer.capacity();
        }
    }
}

/// Reason why a message was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

/// The last messages.
pub struct Ring {
    pool: Arc<Pool>,
    open: Vec<u8>,
    first: Timestamp,
    last: Timestamp,
    count: u64,
    sealed: VecDeque<Arc<Segment>>,
    /// The arrival of the last message that was given up for want of memory.
    forgotten: Option<Timestamp>,
}

impl Ring {
    /// Creates a ring with this many bytes of memory.
    pub fn new(memory: usize) -> Ring {
        let segment = (memory / 200).clamp(SEGMENT.0, SEGMENT.1).min(memory);
        let pool = Pool { segment, memory, state: Mutex::default() };
        let (first, last) = Default::default();
        let (open, sealed) = (Vec::new(), VecDeque::new());
        Ring { pool: Arc::new(pool), open, first, last, count: 0, sealed, forgotten: None }
    }

    /// Whether the message fits behind those of the open segment. Otherwise [`seal`](Ring::seal) it first.
    #[inline]
    pub fn fits(&self, payload: &[u8]) -> bool {
        self.open.capacity() - self.open.len() >= HEAD + payload.len()
    }

    /// Copies a message. Where it does not fit, the open segment must have been sealed.
    ///
    /// # Errors
    /// [`NoRoom`]: it does not fit in the memory, since it is too large or the writer still holds the rest.
    #[inline]
    pub fn push(&mut self, message: Kept<'_>) -> Result<(), NoRoom> {
        let Kept { topic, arrival, source, origin, payload } = message;
        if !self.fits(payload) {
            self.renew(HEAD + payload.len())?;
        }
        let mut head = [0; HEAD];
        head[..4].copy_from_slice(&topic.to_le_bytes());
        head[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        head[8..16].copy_from_slice(&arrival.as_nanos().to_le_bytes());
        if let Some(source) = source {
            head[16..24].copy_from_slice(&source.as_nanos().to_le_bytes());
            head[HEAD - 1] = 1;
        }
        if let Some(Origin { publisher, number }) = origin {
            head[24..32].copy_from_slice(&publisher.to_le_bytes());
            head[32..40].copy_from_slice(&number.to_le_bytes());
            head[HEAD - 1] |= 2;
        }
        self.open.extend_from_slice(&head);
        self.open.extend_from_slice(payload);
        if self.count == 0 {
            self.first = arrival;
        }
        self.last = arrival;
        self.count += 1;
        Ok(())
    }

    /// Takes a buffer for a new segment. The open one must be empty.
    #[cold]
    fn renew(&mut self, size: usize) -> Result<(), NoRoom> {
        if self.count > 0 {
            // The caller has sealed it; a message that does not fit must not evict others.
            return Err(NoRoom);
        }
        if u32::try_from(size).is_err() || size > self.pool.memory {
            return Err(NoRoom);
        }
        let own = std::mem::take(&mut self.open);
        if own.capacity() > 0 {
            self.pool.give_back(own);
        }
        loop {
            if let Some(buffer) = self.pool.take(size) {
                self.open = buffer;
                return Ok(());
            }
            let Some(oldest) = self.sealed.pop_front() else { return Err(NoRoom) };
            self.forgotten = Some(oldest.last);
        }
    }

    /// Seals the open segment, and returns it unless it is empty. Segments that ended before a time are used again.
    pub fn seal(&mut self, before: Timestamp) -> Option<Arc<Segment>> {
        while self.sealed.front().is_some_and(|oldest| oldest.last < before) {
            self.sealed.pop_front();
        }
        if self.count == 0 {
            return None;
        }
        let segment = Arc::new(Segment {
            bytes: std::mem::take(&mut self.open),
            first: self.first,
            last: self.last,
            count: std::mem::take(&mut self.count),
            pool: Arc::clone(&self.pool),
        });
        self.sealed.push_back(Arc::clone(&segment));
        Some(segment)
    }

    /// The sealed segments, from the oldest on.
    pub fn sealed(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.sealed.iter()
    }

    /// Gives up all sealed segments. Those that the writer does not hold are used again.
    pub fn forget(&mut self) {
        self.sealed.clear();
    }

    /// The arrival of the last message that was given up for want of memory.
    pub fn forgotten(&self) -> Option<Timestamp> {
        self.forgotten
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn message(i: u64, payload: &[u8]) -> Kept<'_> {
        Kept {
            topic: (i % 3) as u32,
            arrival: Timestamp::from_nanos(i as i64),
            source: i.is_multiple_of(2).then_some(Timestamp::from_nanos(i as i64 - 7)),
            origin: i.is_multiple_of(5).then_some(Origin { publisher: u64::MAX - i, number: i }),
            payload,
        }
    }

    fn push(ring: &mut Ring, i: u64, payload: &[u8], before: i64) -> Result<(), NoRoom> {
        if !ring.fits(payload) {
            ring.seal(Timestamp::from_nanos(before));
        }
        ring.push(message(i, payload))
    }

    #[test]
    fn last_messages_are_kept_unchanged() {
        let mut ring = Ring::new(1 << 20);
        let payloads: Vec<Vec<u8>> =
            (0..40_000_u64).map(|i| i.to_le_bytes().repeat(i as usize % 40)).collect();
        for (i, payload) in (0..).zip(&payloads) {
            push(&mut ring, i, payload, 0).unwrap();
        }
        ring.seal(Timestamp::from_nanos(0));
        let kept: Vec<Kept<'_>> = ring.sealed().flat_map(|segment| segment.messages()).collect();
        let first = kept[0].arrival.as_nanos() as u64;
        assert_eq!(ring.forgotten(), Some(Timestamp::from_nanos(first as i64 - 1)));
        assert!(kept.len() > 3000 && kept.len() < 20_000, "{}", kept.len());
        for (kept, i) in kept.iter().zip(first..) {
            assert_eq!(*kept, message(i, &payloads[i as usize]));
        }
        assert_eq!(kept.last().unwrap().arrival.as_nanos(), 39_999);
        let held: usize = ring.sealed().map(|segment| segment.bytes.capacity()).sum();
        assert!(held <= 1 << 20, "{held}");
    }

    #[test]
    fn old_segments_are_used_again_and_lent_ones_count() {
        let mut ring = Ring::new(160 << 10);
        for i in 0..10_000_u64 {
            push(&mut ring, i, &[7; 100], i as i64 - 300).unwrap();
        }
        let allocated = ring.pool.state.lock().unwrap().allocated;
        assert!(ring.forgotten().is_none() && allocated <= 80 << 10, "{allocated}");
        // A writer that holds all segments leaves no room, and further messages are refused.
        let lent: Vec<Arc<Segment>> = ring.sealed().cloned().collect();
        let (mut more, mut refused) = (Vec::new(), 0);
        for i in 10_000..13_000_u64 {
            if !ring.fits(&[7; 100]) {
                more.extend(ring.seal(Timestamp::from_nanos(0)));
            }
            refused += u32::from(ring.push(message(i, &[7; 100])).is_err());
        }
        assert!(refused > 1000, "{refused}");
        assert!(ring.pool.state.lock().unwrap().allocated <= 160 << 10);
        drop((lent, more));
        push(&mut ring, 13_000, &[7; 100], 0).unwrap();
        // Larger than a segment, and larger than everything.
        push(&mut ring, 13_001, &[8; 50_000], 0).unwrap();
        assert_eq!(push(&mut ring, 13_002, &[8; 200_000], 0), Err(NoRoom));
        push(&mut ring, 13_003, &[9; 10], 0).unwrap();
        ring.seal(Timestamp::from_nanos(0));
        let sizes: Vec<usize> =
            ring.sealed().flat_map(|s| s.messages()).map(|kept| kept.payload.len()).collect();
        assert!(sizes.ends_with(&[100, 50_000, 10]), "{sizes:?}");
    }
}
