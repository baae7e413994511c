//! A driver as a publisher, so that entries wait in the queue and in the file of a slow consumer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rondel_net::adapter::{PublishError, Publisher};
use rondel_sinks::{Condition, Driver, Feed, Handle, Refused};

use super::state::{is_down, is_stuck};
use crate::sinks::queue::Words;

/// The sentences about a destination.
pub(super) const WORDS: Words = Words {
    refuses: || {
        "the sink does not accept verdicts, and its file has no room; they are dropped until it does"
            .to_owned()
    },
    accepts: || "the sink accepts verdicts again".to_owned(),
};

/// A driver that hands back entries. Flushing it closes it: it is the last call.
pub(super) struct Driven {
    handle: Handle,
    /// `None` once it is closed.
    driver: Mutex<Option<Driver>>,
    /// Time of a failure after which entries are kept in the file.
    wait: Duration,
    /// Whether its thread has ended when it was closed.
    is_ended: AtomicBool,
}

impl Driven {
    pub(super) fn new(driver: Driver, wait: Duration) -> Driven {
        let (handle, driver, is_ended) = (driver.handle(), Mutex::new(Some(driver)), AtomicBool::new(true));
        Driven { handle, driver, wait, is_ended }
    }

    /// Returns a feed; `None` once it is closed.
    pub(super) fn feed(&self) -> Option<Feed> {
        self.driver.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Driver::feed)
    }

    /// Whether its thread has ended when it was closed.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Acquire)
    }
}

impl Publisher for Driven {
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        self.offer(payload, Duration::MAX)
    }

    fn offer(&self, payload: &[u8], limit: Duration) -> Result<(), PublishError> {
        match self.handle.condition() {
            // Further entries wait behind it, outside of the driver.
            Condition::Failing { .. } => return Err(PublishError::Slow),
            Condition::Broken { .. } | Condition::Closed => return Err(PublishError::Closed),
            Condition::Starting | Condition::Connected => {}
        }
        self.handle.offer(payload, limit).map_err(|refused| match refused {
            Refused::Full => PublishError::Slow,
            Refused::Closed => PublishError::Closed,
        })
    }

    fn is_matched(&self) -> bool {
        !is_down(self.handle.condition())
    }

    fn wait_matched(&self, limit: Duration) -> bool {
        if !self.is_matched() {
            // The driver tries again by itself.
            std::thread::sleep(limit);
        }
        self.is_matched()
    }

    fn flush(&self, limit: Duration) -> bool {
        let driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(driver) = driver else { return self.handle.unconfirmed() == 0 };
        let closed = driver.close(limit);
        self.is_ended.store(closed.is_ended, Ordering::Release);
        closed.unwritten == 0
    }

    fn settle(&self, limit: Duration) -> bool {
        self.handle.flush(limit)
    }

    fn unconfirmed(&self) -> Option<u64> {
        Some(self.handle.unconfirmed())
    }

    fn unconfirmed_payloads(&self, visit: &mut dyn FnMut(&[u8])) {
        self.handle.visit_unconfirmed(visit);
    }

    fn is_stuck(&self) -> bool {
        is_stuck(self.handle.condition(), self.wait)
    }
}
