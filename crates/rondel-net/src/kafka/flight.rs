//! Messages of publishers that the brokers have not acknowledged.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{DeliveryResult, ProducerContext};

use super::client::is_unknown_topic;
use super::watch::Watch;

/// Unacknowledged messages of one publisher.
#[derive(Debug, Default)]
pub(super) struct Flight {
    topic: String,
    state: Mutex<InFlight>,
    /// Whether payloads are kept.
    pub(super) keeps: AtomicBool,
    /// Number of acknowledged messages.
    pub(super) acknowledged: AtomicU64,
    /// Number of refused messages.
    pub(super) refused: AtomicU64,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct InFlight {
    next: u64,
    /// By number; payloads are empty unless they are kept.
    open: BTreeMap<u64, Vec<u8>>,
}

impl Flight {
    fn state(&self) -> MutexGuard<'_, InFlight> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message, and returns its number.
    pub(super) fn add(&self, payload: &[u8]) -> u64 {
        let kept = if self.keeps.load(Ordering::Relaxed) { payload.to_vec() } else { Vec::new() };
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.open.insert(number, kept);
        number
    }

    /// Removes a message that is acknowledged or refused.
    pub(super) fn remove(&self, number: u64) {
        self.state().open.remove(&number);
        self.changed.notify_all();
    }

    /// Returns the number of messages.
    pub(super) fn len(&self) -> usize {
        self.state().open.len()
    }

    /// Visits all messages in the order of publication.
    pub(super) fn visit(&self, visit: &mut dyn FnMut(&[u8])) {
        self.state().open.values().for_each(|payload| visit(payload));
    }

    /// Waits up to `limit` for a message to be removed.
    pub(super) fn wait(&self, limit: Duration) {
        let state = self.state();
        drop(self.changed.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until no message published before the call remains. Returns whether that happened within `limit`.
    pub(super) fn settle(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut state = self.state();
        let end = state.next;
        loop {
            if state.open.first_key_value().is_none_or(|(number, _)| *number >= end) {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Publishers of a session with their unacknowledged messages, which outlive a producer.
#[derive(Debug)]
pub(super) struct Flights {
    pub(super) watch: Watch,
    place: String,
    all: RwLock<Vec<Arc<Flight>>>,
    /// Number of messages that the brokers have refused.
    pub(super) refused: AtomicU64,
    /// Whether the session is being closed, which drops the messages that are left.
    pub(super) is_closing: AtomicBool,
}

impl Flights {
    pub(super) fn new(watch: Watch, place: String) -> Flights {
        Flights {
            watch,
            place,
            all: RwLock::default(),
            refused: AtomicU64::new(0),
            is_closing: AtomicBool::new(false),
        }
    }

    /// Adds a publisher on a topic. Returns its number and its messages.
    pub(super) fn add(&self, topic: &str) -> (u32, Arc<Flight>) {
        let flight = Arc::new(Flight { topic: topic.to_owned(), ..Flight::default() });
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        all.push(Arc::clone(&flight));
        (all.len() as u32 - 1, flight)
    }

    fn get(&self, index: u32) -> Option<Arc<Flight>> {
        self.all.read().unwrap_or_else(PoisonError::into_inner).get(index as usize).cloned()
    }

    /// Returns the topic of the first publisher.
    pub(super) fn topic(&self) -> Option<String> {
        self.get(0).map(|flight| flight.topic.clone())
    }

    /// Waits until all messages are acknowledged or refused. Returns whether that happened within `limit`.
    pub(super) fn flush(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let all: Vec<_> = self.all.read().unwrap_or_else(PoisonError::into_inner).clone();
        all.iter().all(|flight| flight.settle(deadline.saturating_duration_since(Instant::now())))
    }

    /// Wakes all threads that wait for an acknowledgement.
    pub(super) fn wake(&self) {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().for_each(|flight| flight.changed.notify_all());
    }

    /// Counts a refused message of a publisher. Returns whether it is the first of all publishers.
    pub(super) fn count_refused(&self, flight: &Flight) -> bool {
        flight.refused.fetch_add(1, Ordering::Relaxed);
        self.refused.fetch_add(1, Ordering::Relaxed) == 0
    }

    /// Counts a message that the brokers refuse, and logs the first one.
    fn refuse(&self, flight: &Flight, code: RDKafkaErrorCode) {
        if self.is_closing.load(Ordering::Relaxed) {
            // Verdicts count as unconfirmed by now, and dead letters are counted later.
            flight.refused.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if !self.count_refused(flight) {
            return;
        }
        let advice = match code {
            code if is_unknown_topic(code) => "create the topic",
            RDKafkaErrorCode::TopicAuthorizationFailed => "add an ACL for the operation Write",
            RDKafkaErrorCode::ClusterAuthorizationFailed => {
                "add an ACL for the operation IdempotentWrite on the cluster"
            }
            RDKafkaErrorCode::MessageSizeTooLarge => {
                "raise `max.message.bytes` of the topic and `message.max.bytes` in `settings`"
            }
            _ => "see the log of the broker",
        };
        tracing::warn!(
            "Kafka at {} refuses a message on the topic `{}`: {code}; {advice}; further ones are only counted",
            self.place,
            flight.topic
        );
    }
}

/// Receiver of the reports of a producer.
pub(super) struct Reports(pub(super) Arc<Flights>);

impl ClientContext for Reports {
    fn log(&self, _level: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!("librdkafka: {facility}: {message}");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.0.watch.error(&error, reason);
    }
}

impl ProducerContext for Reports {
    /// Number of the publisher, and of its message.
    type DeliveryOpaque = Box<(u32, u64)>;

    fn delivery(&self, result: &DeliveryResult<'_>, opaque: Box<(u32, u64)>) {
        let (index, number) = *opaque;
        let Some(flight) = self.0.get(index) else { return };
        match result {
            Ok(_) => _ = flight.acknowledged.fetch_add(1, Ordering::Relaxed),
            Err((error, _)) => {
                let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown);
                self.0.refuse(&flight, code);
            }
        }
        flight.remove(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settling_waits_for_earlier_messages_only() {
        let flight = Arc::new(Flight::default());
        assert!(flight.settle(Duration::ZERO));
        flight.keeps.store(true, Ordering::Relaxed);
        let (first, second) = (flight.add(b"a"), flight.add(b"b"));
        assert!(!flight.settle(Duration::from_millis(10)));
        let waiting = Arc::clone(&flight);
        let thread = std::thread::spawn(move || waiting.settle(Duration::from_secs(60)));
        flight.remove(second);
        let mut kept = Vec::new();
        flight.visit(&mut |payload| kept.push(payload.to_vec()));
        assert_eq!(kept, [b"a"]);
        flight.remove(first);
        assert!(thread.join().unwrap_or_default());
        assert_eq!(flight.len(), 0);
    }
}
