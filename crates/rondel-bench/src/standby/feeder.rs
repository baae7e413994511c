//! The publisher of numbered messages, each of which violates the property.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rondel_net::adapter::{Publisher, now};

use crate::failure::{Failure, Result, io_error};

/// The stamps of messages: of number N that of the first one and N periods.
#[derive(Clone, Copy, Debug)]
pub struct Stamps {
    /// The stamp of number 0, in microseconds since 1970.
    pub begin_us: u64,
    /// The time between two messages, in microseconds.
    pub period_us: u64,
}

impl Stamps {
    /// Returns stamps from now on.
    pub fn new(period: Duration) -> Stamps {
        let begin_us = u64::try_from(now().as_nanos() / 1_000).unwrap_or(0);
        Stamps { begin_us, period_us: u64::try_from(period.as_micros()).unwrap_or(u64::MAX).max(1) }
    }

    /// Returns the message with a number.
    pub fn message(self, number: u64) -> String {
        let us = self.begin_us + number * self.period_us;
        format!("{{\"t\":{}.{:06},\"v\":{number}}}", us / 1_000_000, us % 1_000_000)
    }

    /// Returns the number of the message with a stamp, in seconds since 1970.
    pub fn number(self, seconds: f64) -> Option<u64> {
        // A double has a fraction of a microsecond left.
        let us = (seconds * 1e6).round() as u64;
        let since = us.checked_sub(self.begin_us)?;
        since.is_multiple_of(self.period_us).then_some(since / self.period_us)
    }
}

/// Publishes a message every period. Dropping it ends that.
#[derive(Debug)]
pub struct Feeder {
    sent: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Feeder {
    /// Begins to publish.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start(publisher: Box<dyn Publisher>, stamps: Stamps) -> Result<Feeder> {
        let (sent, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (of_thread, ends) = (Arc::clone(&sent), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("feeder".to_owned())
            .spawn(move || feed(&*publisher, stamps, &of_thread, &ends))
            .map_err(io_error("a thread"))?;
        Ok(Feeder { sent, stop, thread: Some(thread) })
    }

    /// Returns the number of messages sent.
    ///
    /// # Errors
    /// When the publisher has failed.
    pub fn sent(&mut self) -> Result<u64> {
        if self.thread.as_ref().is_some_and(JoinHandle::is_finished) {
            self.join()?;
        }
        Ok(self.sent.load(Ordering::Acquire))
    }

    /// Ends publishing.
    ///
    /// # Errors
    /// When the publisher has failed.
    pub fn end(mut self) -> Result<()> {
        self.join()
    }

    fn join(&mut self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_| Err(Failure::Network("the publisher panicked".to_owned())))
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        // Another failure is being reported.
        let _ = self.join();
    }
}

fn feed(publisher: &dyn Publisher, stamps: Stamps, sent: &AtomicU64, stop: &AtomicBool) -> Result<()> {
    let period = Duration::from_micros(stamps.period_us);
    let mut due = Instant::now();
    for number in 0.. {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let message = stamps.message(number);
        publisher.publish(message.as_bytes()).map_err(|e| Failure::Network(e.to_string()))?;
        publisher.release();
        sent.store(number + 1, Ordering::Release);
        // If the machine was busy, no burst makes up for it.
        due = (due + period).max(Instant::now());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_leads_back_to_its_number() {
        for period_us in [1_000, 10_000, 12_500] {
            let stamps = Stamps { begin_us: 1_764_493_355_999_999, period_us };
            for number in [0, 1, 7, 99, 1_000_000] {
                let message: serde_json::Value = serde_json::from_str(&stamps.message(number)).unwrap();
                assert_eq!(message["v"], number);
                let stamp = message["t"].as_f64().unwrap();
                assert_eq!(stamps.number(stamp), Some(number), "{message}");
            }
            let begin = 1_764_493_355.999_999;
            assert_eq!(stamps.number(begin + 0.000_3), None, "between two messages");
            assert_eq!(stamps.number(begin - 1.0), None, "before the first one");
        }
    }
}
