//! Arrivals of messages of competing publishers.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rondel_event::TopicId;
use rondel_net::adapter::{Receiver, Sample};

use crate::failure::{Failure, Result};

/// A message that arrived: its time, and whether the stronger publisher sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The time.
    pub at: Instant,
    /// Whether it is one of the stronger publisher.
    pub is_strong: bool,
}

/// Records arrivals, and lets a thread wait for them.
#[derive(Debug)]
pub struct Arrivals {
    /// The payload of the stronger publisher.
    strong: Vec<u8>,
    all: Mutex<Vec<Arrival>>,
    changed: Condvar,
}

impl Arrivals {
    /// Returns an empty record. The stronger publisher sends this payload.
    pub fn new(strong: &str) -> Arrivals {
        Arrivals { strong: strong.as_bytes().to_vec(), all: Mutex::default(), changed: Condvar::new() }
    }

    /// Forgets all arrivals but the last.
    pub fn trim(&self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let but_one = all.len().saturating_sub(1);
        all.drain(..but_one);
    }

    /// Waits until `find` finds something among the arrivals.
    ///
    /// # Errors
    /// [`Failure::Late`] after `limit`.
    pub fn wait<T>(&self, what: &str, limit: Duration, find: impl Fn(&[Arrival]) -> Option<T>) -> Result<T> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(all, limit, |all| find(all).is_none());
        let (all, _) = waited.unwrap_or_else(PoisonError::into_inner);
        find(&all).ok_or_else(|| Failure::Late { what: what.to_owned(), limit })
    }
}

impl Receiver for Arrivals {
    fn receive(&self, _: TopicId, samples: &[Sample<'_>]) {
        let at = Instant::now();
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(samples.iter().map(|sample| Arrival { at, is_strong: sample.payload == self.strong }));
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_waited_for() {
        let arrivals = Arrivals::new("2");
        let is_weak = |all: &[Arrival]| all.iter().find(|arrival| !arrival.is_strong).copied();
        let receive = |payload: &[u8]| arrivals.receive(TopicId(0), &[Sample::new(payload, None, None)]);
        receive(b"2");
        assert!(arrivals.wait("weaker", Duration::ZERO, is_weak).is_err());
        receive(b"1");
        assert!(arrivals.wait("weaker", Duration::ZERO, is_weak).is_ok());
        receive(b"2");
        arrivals.trim();
        assert!(arrivals.wait("weaker", Duration::ZERO, is_weak).is_err());
    }
}
