//! Records that cannot be decoded, written to a topic of their own.
//!
//! A record goes to the queue of the producer, which is bounded, and is written from there. The reading thread waits only
//! while the queue is full: the brokers keep the records behind it.
//! Before the marks of a snapshot are captured, the brokers acknowledge the records so far: a run that resumes there does not
//! read them again, so that each is written at least once. Without the acknowledgements there is no snapshot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rdkafka::Message as _;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer as _};

use super::flight::Flight;
use super::outgoing::Outgoing;
use crate::adapter::DeadLetterCounts;

/// Time limit of the wait for acknowledgements before a snapshot.
const ACKNOWLEDGED: Duration = Duration::from_secs(5);
/// The same after a wait without them: no record is received meanwhile, and the end of a run must not take long.
const AGAIN: Duration = Duration::from_millis(500);
/// Time limit of the wait for room in the queue of the producer.
const ROOM: Duration = Duration::from_secs(30);
/// Time of one such wait.
const STEP: Duration = Duration::from_millis(10);

/// A record for the producer, with the numbers of the publisher and of its message.
type Letter<'a> = BaseRecord<'a, [u8], [u8], Box<(u32, u64)>>;

/// Writer of the records that cannot be decoded.
pub(super) struct DeadLetters {
    outgoing: Arc<Outgoing>,
    topic: String,
    index: u32,
    flight: Arc<Flight>,
    /// Whether a failure was logged.
    is_logged: AtomicBool,
    /// Whether the queue had no room in time, and has accepted no record since.
    is_stalled: AtomicBool,
    /// Whether the last wait ended without acknowledgements.
    is_overdue: AtomicBool,
    /// Whether a record was given up since the session ends.
    is_given_up: AtomicBool,
}

impl DeadLetters {
    pub(super) fn new(outgoing: Arc<Outgoing>, topic: &str) -> DeadLetters {
        let (index, flight) = outgoing.flights.add(topic);
        let (is_logged, is_stalled, is_overdue, is_given_up) = Default::default();
        let topic = topic.to_owned();
        DeadLetters { outgoing, topic, index, flight, is_logged, is_stalled, is_overdue, is_given_up }
    }

    /// Writes a record as it was received, with headers for the cause and its place. Records of the topic itself are not
    /// written to it again. `is_behind` is set if it has to wait, since other records wait meanwhile.
    pub(super) fn write(&self, record: &BorrowedMessage<'_>, cause: &str, is_behind: &AtomicBool) {
        if record.topic() == self.topic {
            return;
        }
        let (partition, offset) = (record.partition().to_string(), record.offset().to_string());
        let own = [
            ("rondel-cause", cause),
            ("rondel-topic", record.topic()),
            ("rondel-partition", partition.as_str()),
            ("rondel-offset", offset.as_str()),
        ];
        let headers = record.headers().map_or_else(OwnedHeaders::new, |headers| headers.detach());
        let headers =
            own.into_iter().fold(headers, |all, (key, value)| all.insert(Header { key, value: Some(value) }));
        let number = self.flight.add(&[]);
        let opaque = Box::new((self.index, number));
        let mut letter: Letter<'_> = BaseRecord::with_opaque_to(&self.topic, opaque).headers(headers);
        if let Some(payload) = record.payload() {
            letter = letter.payload(payload);
        }
        if let Some(key) = record.key() {
            letter = letter.key(key);
        }
        if let Some(time) = record.timestamp().to_millis() {
            letter = letter.timestamp(time);
        }
        if let Err(error) = self.send(letter, is_behind) {
            self.flight.remove(number);
            // Counted beside those that the brokers refuse.
            self.outgoing.flights.count_refused(&self.flight);
            if !self.is_logged.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    "a record that cannot be decoded is not written to the topic `{}`: {error}; further ones are only \
                     counted",
                    self.topic
                );
            }
        }
    }

    /// Passes a record to the producer, and waits while its queue is full. After a wait without success there is none until
    /// a record is accepted again.
    fn send(&self, mut letter: Letter<'_>, is_behind: &AtomicBool) -> Result<(), KafkaError> {
        let is_stalled = self.is_stalled.load(Ordering::Relaxed);
        let deadline = Instant::now() + if is_stalled { Duration::ZERO } else { ROOM };
        loop {
            let producer = self.outgoing.producer();
            let (error, returned) = match producer.send(letter) {
                Ok(()) => {
                    self.is_stalled.store(false, Ordering::Relaxed);
                    return Ok(());
                }
                Err(refused) => refused,
            };
            // A producer that has failed is replaced soon.
            let may_pass = error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull)
                || producer.client().fatal_error().is_some();
            if !may_pass {
                return Err(error);
            }
            if self.is_closing() {
                self.is_given_up.store(true, Ordering::Relaxed);
                return Err(error);
            }
            if Instant::now() >= deadline {
                self.is_stalled.store(true, Ordering::Relaxed);
                return Err(error);
            }
            is_behind.store(true, Ordering::Relaxed);
            letter = returned;
            self.flight.wait(STEP);
        }
    }

    fn is_closing(&self) -> bool {
        self.outgoing.flights.is_closing.load(Ordering::Relaxed)
    }

    /// Waits until the brokers have acknowledged or refused the records so far. Returns whether they have: a snapshot behind
    /// other records would lose them.
    pub(super) fn settle(&self) -> bool {
        let limit = match self.is_overdue.load(Ordering::Relaxed) {
            _ if self.is_closing() => Duration::ZERO,
            true => AGAIN,
            false => ACKNOWLEDGED,
        };
        let is_settled = self.flight.settle(limit);
        self.is_overdue.store(!is_settled, Ordering::Relaxed);
        is_settled && !self.is_given_up.load(Ordering::Relaxed)
    }

    /// Waits up to `limit` for the acknowledgements, and returns the numbers of records.
    pub(super) fn counts(&self, limit: Duration) -> DeadLetterCounts {
        self.flight.settle(limit);
        // First: a record that is acknowledged meanwhile counts twice rather than not at all.
        let waiting = self.flight.len() as u64;
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (written, refused) = (count(&self.flight.acknowledged), count(&self.flight.refused));
        DeadLetterCounts { topic: self.topic.clone(), written, waiting, refused }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::kafka::Settings;

    #[test]
    fn unwritten_records_hold_snapshots_back() {
        let settings = Settings { brokers: vec!["127.0.0.1:1".to_owned()], ..Settings::default() };
        let outgoing = Outgoing::open(&settings, &Arc::default()).unwrap();
        let letters = DeadLetters::new(Arc::clone(&outgoing), "dead");
        assert!(letters.settle());
        let number = letters.flight.add(&[]);
        assert_eq!(letters.counts(Duration::ZERO).waiting, 1);
        // The end of a session does not wait.
        outgoing.wake();
        assert!(!letters.settle());
        letters.flight.remove(number);
        assert!(letters.settle());
        letters.is_given_up.store(true, Ordering::Relaxed);
        assert!(!letters.settle());
    }

    #[test]
    fn letters_are_counted_until_they_are_acknowledged_or_refused() {
        let settings = Settings { brokers: vec!["127.0.0.1:1".to_owned()], ..Settings::default() };
        let outgoing = Outgoing::open(&settings, &Arc::default()).unwrap();
        let letters = DeadLetters::new(Arc::clone(&outgoing), "dead");
        let (_, other) = outgoing.flights.add("verdicts");
        let counts = |written, waiting, refused| DeadLetterCounts {
            topic: "dead".to_owned(),
            written,
            waiting,
            refused,
        };
        let now = || letters.counts(Duration::ZERO);
        assert_eq!(now(), counts(0, 0, 0));
        let numbers = [(); 3].map(|()| letters.flight.add(&[]));
        assert_eq!(now(), counts(0, 3, 0));
        letters.flight.acknowledged.fetch_add(1, Ordering::Relaxed);
        letters.flight.remove(numbers[0]);
        assert!(outgoing.flights.count_refused(&letters.flight), "the first one is logged");
        letters.flight.remove(numbers[1]);
        assert_eq!(now(), counts(1, 1, 1));
        // Verdicts are counted apart, and both together.
        assert!(!outgoing.flights.count_refused(&other));
        assert_eq!((now(), outgoing.flights.refused.load(Ordering::Relaxed)), (counts(1, 1, 1), 2));
        outgoing.wake();
    }
}
