//! Messages that wait in memory, bounded in number and in bytes.

use std::collections::VecDeque;
use std::time::Instant;

/// The largest number of messages.
pub const MESSAGES: usize = 1 << 16;
/// The largest number of bytes. A single message may be larger.
pub const BYTES: usize = 16 << 20;
/// Bytes that are allocated at a time: adding a message never moves those that wait.
const CHUNK: usize = 64 << 10;

/// A queue of messages in chunks of memory.
#[derive(Debug, Default)]
pub struct Memory {
    chunks: VecDeque<Chunk>,
    count: usize,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// The end of each message, and when it was added.
    ends: VecDeque<(usize, Instant)>,
    /// Start of the first message.
    begin: usize,
}

impl Memory {
    /// Adds a message. Returns whether there was room.
    pub fn push(&mut self, payload: &[u8], now: Instant) -> bool {
        if self.count > 0 && (self.count >= MESSAGES || self.bytes + payload.len() > BYTES) {
            return false;
        }
        let has_room = |chunk: &mut Chunk| chunk.bytes.len() + payload.len() <= chunk.bytes.capacity();
        if !self.chunks.back_mut().is_some_and(has_room) {
            let bytes = Vec::with_capacity(CHUNK.max(payload.len()));
            self.chunks.push_back(Chunk { bytes, ..Chunk::default() });
        }
        if let Some(chunk) = self.chunks.back_mut() {
            chunk.bytes.extend_from_slice(payload);
            chunk.ends.push_back((chunk.bytes.len(), now));
        }
        self.count += 1;
        self.bytes += payload.len();
        true
    }

    /// Copies the first message into `payload`. Returns when it was added; `None` if there is none.
    pub fn front(&self, payload: &mut Vec<u8>) -> Option<Instant> {
        let chunk = self.chunks.front()?;
        let &(end, added) = chunk.ends.front()?;
        payload.clear();
        payload.extend_from_slice(&chunk.bytes[chunk.begin..end]);
        Some(added)
    }

    /// Returns when the first message was added.
    pub fn since(&self) -> Option<Instant> {
        self.chunks.front()?.ends.front().map(|&(_, added)| added)
    }

    /// Removes the first message.
    pub fn pop(&mut self) {
        let Some(chunk) = self.chunks.front_mut() else { return };
        let Some((end, _)) = chunk.ends.pop_front() else { return };
        self.count -= 1;
        self.bytes -= end - chunk.begin;
        chunk.begin = end;
        if chunk.ends.is_empty() {
            self.chunks.pop_front();
        }
    }

    /// The number of messages.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether so much waits that the rest should go elsewhere.
    pub fn is_half_full(&self) -> bool {
        self.count >= MESSAGES / 2 || self.bytes >= BYTES / 2
    }

    /// Removes all messages. Returns how many.
    pub fn clear(&mut self) -> u64 {
        std::mem::take(self).count as u64
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn messages_leave_in_order() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        let message = |i: usize| vec![i as u8; i * 37 % 5000];
        let (mut pushed, mut popped, mut payload) = (0, 0, Vec::new());
        while popped < 2000 {
            for _ in 0..3 {
                assert!(memory.push(&message(pushed), now));
                pushed += 1;
            }
            for _ in 0..2 {
                assert_eq!(memory.front(&mut payload), Some(now));
                assert!(payload == message(popped), "{popped}");
                memory.pop();
                popped += 1;
            }
        }
        assert_eq!(memory.len(), pushed - popped);
        assert_eq!(memory.clear(), (pushed - popped) as u64);
        assert!(memory.since().is_none() && memory.front(&mut payload).is_none());
    }

    #[test]
    fn number_and_bytes_are_bounded() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        assert!((0..MESSAGES).all(|_| memory.push(b"a", now)) && !memory.push(b"a", now));
        memory.clear();
        assert!(memory.push(&vec![0; 2 * BYTES], now), "a single message may be larger");
        assert!(!memory.push(b"a", now) && memory.is_half_full());
        memory.pop();
        assert!(memory.push(b"a", now) && !memory.is_half_full());
        let tenth = vec![0; BYTES / 10];
        assert_eq!((0..20).filter(|_| memory.push(&tenth, now)).count(), 10);
    }
}
