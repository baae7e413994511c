//! Subscribers that do not acknowledge samples.
//!
//! A write waits until the unacknowledged samples shrink to almost none. Without any acknowledgement, CycloneDDS still
//! lets its queue grow by a few samples after each wait, up to its limit: writing becomes slow and does not stop. So
//! successive waits count as one unless more than these few samples were accepted in between.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::adapter::{Drops, PublishError, now};

/// Interval of attempts to write while samples are dropped.
const PROBE: Duration = Duration::from_secs(1);
/// Number of bytes accepted without a wait that shows that the queue was emptied. It grows by up to 15.6 kB by itself.
const EMPTIED: usize = 20_000;

/// No write has waited recently.
const FREE: u8 = 0;
/// Writes have waited.
const CONGESTED: u8 = 1;
/// The limit was reached: samples are dropped.
const STALLED: u8 = 2;

/// Limits the time for which a writer waits for its subscribers.
#[derive(Debug)]
pub(super) struct SlowConsumer {
    topic: String,
    wait: Option<Duration>,
    drops: Arc<Drops>,
    /// Whether refused samples are handed back, and so are not dropped here.
    hands_back: AtomicBool,
    /// One of the constants; written under the lock.
    mode: AtomicU8,
    waits: Mutex<Waits>,
}

#[derive(Debug, Default)]
struct Waits {
    /// Beginning of the first of the waits that count as one.
    since: Option<Instant>,
    /// Number of bytes accepted since the last wait.
    accepted: usize,
    /// Time of the last attempt while samples are dropped.
    tried: Option<Instant>,
    /// Whether samples were dropped since the mode was [`FREE`].
    has_dropped: bool,
}

impl SlowConsumer {
    /// Creates a limit of `wait`, or none.
    pub(super) fn new(topic: &str, wait: Option<Duration>) -> SlowConsumer {
        let (mode, waits) = (AtomicU8::new(FREE), Mutex::default());
        let (drops, hands_back) = Default::default();
        SlowConsumer { topic: topic.to_owned(), wait, drops, hands_back, mode, waits }
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the counter of dropped samples.
    pub(super) fn drops(&self) -> &Arc<Drops> {
        &self.drops
    }

    /// Excludes refused samples from counts and reports from now on.
    pub(super) fn hand_back(&self) {
        self.hands_back.store(true, Ordering::Relaxed);
    }

    /// Refuses a sample.
    fn refuse(&self) -> PublishError {
        if !self.hands_back.load(Ordering::Relaxed) {
            self.drops.add(1, now());
        }
        PublishError::Slow
    }

    /// Returns an error if a sample is to be refused without an attempt to write it.
    #[inline]
    pub(super) fn admit(&self) -> Result<(), PublishError> {
        if self.mode.load(Ordering::Relaxed) == STALLED { self.probe() } else { Ok(()) }
    }

    #[cold]
    fn probe(&self) -> Result<(), PublishError> {
        let mut waits = self.waits();
        if waits.tried.is_some_and(|tried| tried.elapsed() < PROBE) {
            return Err(self.refuse());
        }
        waits.tried = Some(Instant::now());
        Ok(())
    }

    /// Records that a sample of `bytes` bytes was accepted.
    #[inline]
    pub(super) fn accepted(&self, bytes: usize) {
        if self.mode.load(Ordering::Relaxed) != FREE {
            self.accept(bytes);
        }
    }

    #[cold]
    fn accept(&self, bytes: usize) {
        let mut waits = self.waits();
        waits.accepted += bytes;
        if waits.accepted < EMPTIED {
            self.mode.store(CONGESTED, Ordering::Relaxed);
            return;
        }
        if waits.has_dropped && !self.hands_back.load(Ordering::Relaxed) {
            let dropped = self.drops.count();
            tracing::warn!(topic = %self.topic, dropped, "DDS subscribers accept messages again");
        }
        *waits = Waits::default();
        self.mode.store(FREE, Ordering::Relaxed);
    }

    /// Records that a write has waited for `blocked` and was not accepted.
    ///
    /// # Errors
    /// [`PublishError::Slow`] when the sample is to be dropped.
    #[cold]
    pub(super) fn waited(&self, blocked: Duration) -> Result<(), PublishError> {
        let Some(wait) = self.wait else { return Ok(()) };
        let mut waits = self.waits();
        waits.accepted = 0;
        let since = *waits.since.get_or_insert_with(|| Instant::now() - blocked);
        if since.elapsed() < wait {
            self.mode.store(CONGESTED, Ordering::Relaxed);
            return Ok(());
        }
        let is_first = !std::mem::replace(&mut waits.has_dropped, true);
        if is_first && !self.hands_back.load(Ordering::Relaxed) {
            tracing::warn!(
                topic = %self.topic,
                "a DDS subscriber does not acknowledge messages; they are dropped until it does or its lease expires"
            );
        }
        waits.tried = Some(Instant::now());
        self.mode.store(STALLED, Ordering::Relaxed);
        Err(self.refuse())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const BLOCK: Duration = Duration::from_millis(100);

    #[test]
    fn growth_of_the_queue_by_itself_is_no_progress() {
        let slow = SlowConsumer::new("t", Some(Duration::from_millis(40)));
        assert!(slow.waited(Duration::from_millis(1)).is_ok());
        slow.accepted(15_000);
        std::thread::sleep(Duration::from_millis(50));
        assert!(slow.admit().is_ok());
        assert!(slow.waited(BLOCK).is_err());
        assert!(slow.admit().is_err(), "the next attempt is a second later");
        assert_eq!(slow.drops().count(), 2);
    }

    #[test]
    fn acknowledged_samples_are_progress() {
        let slow = SlowConsumer::new("t", Some(Duration::from_millis(40)));
        for _ in 0..5 {
            assert!(slow.waited(Duration::from_millis(1)).is_ok());
            std::thread::sleep(Duration::from_millis(20));
            slow.accepted(30_000);
        }
        assert_eq!(slow.drops().count(), 0);
    }

    #[test]
    fn without_a_limit_nothing_is_dropped() {
        let slow = SlowConsumer::new("t", None);
        assert!((0..100).all(|_| slow.waited(BLOCK).is_ok() && slow.admit().is_ok()));
    }
}
