//! Records that cannot be decoded, written to a topic of their own.
//!
//! A record goes to the queue of the producer, which is bounded, and is written from there: the reading thread does not wait.
//! Before the marks of a snapshot are captured, the brokers acknowledge the records so far: a run that resumes there does not
//! read them again, so that each is written at least once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rdkafka::Message as _;
use rdkafka::message::{BorrowedMessage, Header, OwnedHeaders};
use rdkafka::producer::BaseRecord;

use super::flight::Flight;
use super::outgoing::Outgoing;

/// Time limit of the wait for acknowledgements before a snapshot.
const ACKNOWLEDGED: Duration = Duration::from_secs(5);

/// Writer of the records that cannot be decoded.
pub(super) struct DeadLetters {
    outgoing: Arc<Outgoing>,
    topic: String,
    index: u32,
    flight: Arc<Flight>,
    /// Whether a failure was logged.
    is_logged: AtomicBool,
}

impl DeadLetters {
    pub(super) fn new(outgoing: Arc<Outgoing>, topic: &str) -> DeadLetters {
        let (index, flight) = outgoing.flights.add(topic);
        DeadLetters { outgoing, topic: topic.to_owned(), index, flight, is_logged: AtomicBool::new(false) }
    }

    /// Writes a record as it was received, with headers for the cause and its place. Records of the topic itself are not
    /// written to it again.
    pub(super) fn write(&self, record: &BorrowedMessage<'_>, cause: &str) {
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
        let mut letter: BaseRecord<'_, [u8], [u8], Box<(u32, u64)>> =
            BaseRecord::with_opaque_to(&self.topic, opaque).headers(headers);
        if let Some(payload) = record.payload() {
            letter = letter.payload(payload);
        }
        if let Some(key) = record.key() {
            letter = letter.key(key);
        }
        if let Some(time) = record.timestamp().to_millis() {
            letter = letter.timestamp(time);
        }
        if let Err((error, _)) = self.outgoing.producer().send(letter) {
            self.flight.remove(number);
            // Counted beside those that the brokers refuse.
            self.outgoing.flights.refused.fetch_add(1, Ordering::Relaxed);
            if !self.is_logged.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    "a record that cannot be decoded is not written to the topic `{}`: {error}; further ones are only \
                     counted",
                    self.topic
                );
            }
        }
    }

    /// Waits until the brokers have acknowledged or refused the records so far.
    pub(super) fn settle(&self) {
        if !self.flight.settle(ACKNOWLEDGED) {
            tracing::warn!(
                "{} records that cannot be decoded are not acknowledged on the topic `{}`; a crash now may lose them",
                self.flight.len(),
                self.topic
            );
        }
    }
}
