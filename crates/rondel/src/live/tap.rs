//! Copies of the last messages of topics, while a viewer of the page watches.

// Without the page nothing reads them.
#![cfg_attr(not(feature = "page"), allow(dead_code))]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rondel_event::TopicId;
use rondel_net::adapter::Sample;

/// Minimum time between two copies of messages of a topic, unless they are small.
const INTERVAL: Duration = Duration::from_millis(100);
/// Largest message that is copied whenever it is the last one of a call, in bytes.
const SMALL: usize = 512;
/// Largest message that is copied, in bytes.
pub const LARGEST: usize = 256 << 10;

/// Copies that the evaluating thread makes. Without a viewer it reads one flag for each call of a network.
#[derive(Debug, Default)]
pub struct Tap {
    is_watched: AtomicBool,
    /// The topics of the session. The evaluating thread never waits for this lock.
    topics: Mutex<Vec<Seen>>,
}

/// Messages of a topic since a viewer watches.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The last message that was copied; empty if it was too large.
    pub payload: Vec<u8>,
    /// Its length.
    pub length: usize,
    /// Time of day of its reception, in nanoseconds; `None` before the first.
    pub received: Option<i64>,
    /// Bytes of all messages, as far as they were counted.
    pub bytes: u64,
    /// Number of these messages.
    pub messages: u64,
    copied: Option<Instant>,
}

impl Tap {
    /// Starts or stops to copy. At the start, messages of viewers before are forgotten.
    pub fn watch(&self, is_watched: bool) {
        if is_watched && !self.is_watched.load(Ordering::Relaxed) {
            for seen in self.topics().iter_mut() {
                *seen = Seen { bytes: seen.bytes, messages: seen.messages, ..Seen::default() };
            }
        }
        self.is_watched.store(is_watched, Ordering::Relaxed);
    }

    fn topics(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all messages: topics have other numbers.
    pub fn forget(&self) {
        self.topics().clear();
    }

    /// The messages of a topic.
    pub fn seen(&self, topic: TopicId) -> Option<Seen> {
        self.topics().get(topic.index()).cloned()
    }

    /// Counts of all topics: time of the last message, bytes and messages.
    pub fn counts(&self) -> Vec<(Option<i64>, u64, u64)> {
        self.topics().iter().map(|seen| (seen.received, seen.bytes, seen.messages)).collect()
    }

    /// Takes received samples.
    #[inline]
    pub fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
        if self.is_watched.load(Ordering::Relaxed) {
            self.take(topic, samples);
        }
    }

    #[cold]
    fn take(&self, topic: TopicId, samples: &[Sample<'_>]) {
        // While a viewer reads, samples are not counted.
        let Ok(mut topics) = self.topics.try_lock() else { return };
        let Some(last) = samples.last() else { return };
        if topics.len() <= topic.index() {
            topics.resize_with(topic.index() + 1, Seen::default);
        }
        let Some(seen) = topics.get_mut(topic.index()) else { return };
        seen.bytes += samples.iter().map(|sample| sample.payload.len() as u64).sum::<u64>();
        seen.messages += samples.len() as u64;
        let now = Instant::now();
        let is_due = seen.copied.is_none_or(|copied| now.duration_since(copied) >= INTERVAL);
        if !is_due && last.payload.len() > SMALL {
            return;
        }
        seen.copied = Some(now);
        seen.received = Some(last.arrival().as_nanos());
        seen.length = last.payload.len();
        seen.payload.clear();
        if seen.length <= LARGEST {
            seen.payload.extend_from_slice(last.payload);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_copied_while_a_viewer_watches() {
        let (tap, topic) = (Tap::default(), TopicId(2));
        tap.receive(topic, &[Sample::new(b"a", None, None)]);
        assert!(tap.seen(topic).is_none(), "nothing is copied before");
        tap.watch(true);
        let (first, second) = ([b'1'; SMALL + 1], [b'2'; SMALL + 1]);
        for payload in [&first[..], &second] {
            tap.receive(topic, &[Sample::new(payload, None, None)]);
        }
        let seen = tap.seen(topic).unwrap();
        assert_eq!((seen.payload.as_slice(), seen.bytes, seen.messages), (&first[..], 1026, 2));
        tap.receive(topic, &[Sample::new(b"small", None, None)]);
        assert_eq!(tap.seen(topic).unwrap().payload, b"small");
        assert_eq!(tap.counts().len(), 3);
        std::thread::sleep(INTERVAL);
        let large = vec![b' '; LARGEST + 1];
        tap.receive(topic, &[Sample::new(&large, None, None)]);
        let seen = tap.seen(topic).unwrap();
        assert_eq!((seen.payload.len(), seen.length), (0, LARGEST + 1), "large messages are only counted");
        let reading = tap.topics();
        tap.receive(topic, &[Sample::new(b"x", None, None)]);
        drop(reading);
        assert_eq!(tap.seen(topic).unwrap().messages, 4, "nothing waits for a reader");
        tap.watch(false);
        tap.receive(topic, &[Sample::new(b"x", None, None)]);
        assert_eq!(tap.seen(topic).unwrap().messages, 4);
        tap.watch(true);
        let seen = tap.seen(topic).unwrap();
        assert_eq!((seen.received, seen.messages), (None, 4), "the last message is not known any more");
        tap.receive(topic, &[Sample::new(b"y", None, None)]);
        tap.watch(true);
        assert_eq!(tap.seen(topic).unwrap().payload, b"y", "a further viewer changes nothing");
    }
}
