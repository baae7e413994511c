//! A publisher with a queue before it.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use rondel_net::adapter::{Drops, PublishError, Publisher};

use super::{FIRST, PAUSE, Queue, State, Words};

/// A publisher with a queue.
pub struct Queued {
    publisher: Arc<dyn Publisher>,
    queue: Arc<Queue>,
}

impl Queued {
    /// Puts a queue before a publisher.
    pub fn new(publisher: Arc<dyn Publisher>, queue: Arc<Queue>) -> Queued {
        queue.begin(&publisher);
        Queued { publisher, queue }
    }
}

/// The sentences about a sink on a network.
pub const NETWORK: Words = Words {
    refuses: || "a consumer does not accept messages; they are dropped until it does".to_owned(),
    accepts: || "the consumer accepts messages again".to_owned(),
};

impl Publisher for Queued {
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        if let Some(pushed) = self.queue.push_behind(payload) {
            return pushed;
        }
        match self.publisher.offer(payload, FIRST) {
            Err(PublishError::Slow) => self.queue.push_refused(&self.publisher, payload),
            Err(PublishError::Closed) if self.queue.file().is_some() => {
                self.queue.push_refused(&self.publisher, payload)
            }
            published => published,
        }
    }

    /// Releases the publisher, unless the queue is used: then the thread of the sink releases it.
    fn release(&self) {
        if !self.queue.is_used() {
            self.publisher.release();
        }
    }

    fn is_behind(&self) -> bool {
        self.queue.is_used()
    }

    fn is_matched(&self) -> bool {
        self.publisher.is_matched()
    }

    fn wait_matched(&self, limit: Duration) -> bool {
        self.publisher.wait_matched(limit)
    }

    fn flush(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let is_sent = self.queue.end(limit);
        let is_confirmed = self.publisher.flush(deadline.saturating_duration_since(Instant::now()));
        if let Some(spool) = &self.queue.spool {
            spool.keep_unconfirmed(&*self.publisher);
        }
        is_sent && is_confirmed
    }

    /// Messages in the file count as delivered: they survive the process.
    fn settle(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let waits = |state: &mut State| state.memory.len() > 0;
        let mut is_moved = false;
        while !is_moved {
            let left = deadline.saturating_duration_since(Instant::now());
            let step = left.min(PAUSE);
            let waited = self.queue.changed.wait_timeout_while(self.queue.state(), step, waits);
            is_moved = waited.unwrap_or_else(PoisonError::into_inner).0.memory.len() == 0;
            if left.is_zero() {
                break;
            }
        }
        is_moved && self.publisher.settle(deadline.saturating_duration_since(Instant::now()))
    }

    /// Number of unconfirmed messages; 0 once the file is used, as they are then in the file or counted as dropped.
    fn unconfirmed(&self) -> Option<u64> {
        match &self.queue.spool {
            Some(spool) if spool.is_begun() => Some(0),
            _ => self.publisher.unconfirmed(),
        }
    }

    fn drops(&self) -> Option<Arc<Drops>> {
        self.publisher.drops()
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.queue.end(Duration::ZERO);
    }
}
