//! The producer of a session, and its publishers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};

use super::client::{self, unusable};
use super::flight::{Flight, Flights, Reports};
use super::watch::{Breaks, PROBE, Watch};
use super::{OpenError, Place, Settings};
use crate::adapter::{self, Drops, PublishError, now, trace_message};

/// Time of one wait for reports.
const POLL: Duration = Duration::from_millis(50);
/// Maximum time of one wait for room in the queue of the producer.
const ROOM: Duration = Duration::from_millis(10);
/// Length of the id of a verdict.
const ID: usize = 32;

/// The producer of a session, shared by all its publishers.
pub(super) struct Outgoing {
    settings: Settings,
    /// Replaced after a fatal error, after which a producer delivers nothing any more.
    producer: RwLock<Arc<BaseProducer<Reports>>>,
    pub(super) flights: Arc<Flights>,
    /// Whether the thread has ended.
    ended: Mutex<bool>,
    changed: Condvar,
}

impl Outgoing {
    /// Starts the producer and its thread.
    pub(super) fn open(settings: &Settings, breaks: &Arc<Breaks>) -> Result<Arc<Outgoing>, OpenError> {
        let name = format!("{} (publishers)", settings.place());
        let watch = Watch::new(name, Arc::clone(breaks));
        let flights = Arc::new(Flights::new(watch, settings.place()));
        let outgoing = Arc::new(Outgoing {
            settings: settings.clone(),
            producer: RwLock::new(create(settings, &flights)?),
            flights,
            ended: Mutex::new(false),
            changed: Condvar::new(),
        });
        let running = Arc::clone(&outgoing);
        let thread = std::thread::Builder::new().name("kafka out".to_owned());
        let failed = |error: std::io::Error| OpenError::Setting(format!("cannot start a thread: {error}"));
        thread.spawn(move || running.run()).map_err(failed)?;
        Ok(outgoing)
    }

    pub(super) fn producer(&self) -> Arc<BaseProducer<Reports>> {
        Arc::clone(&self.producer.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_closing(&self) -> bool {
        self.flights.is_closing.load(Ordering::Relaxed)
    }

    /// The thread of the producer: takes its reports.
    fn run(&self) {
        while !self.is_closing() {
            let producer = self.producer();
            producer.poll(POLL);
            if let Some((_, reason)) = producer.client().fatal_error() {
                tracing::warn!(
                    "the client of Kafka at {} has failed: {reason}; it is started again, and messages that were on their \
                     way may be missing, or come twice",
                    self.settings.place()
                );
                match create(&self.settings, &self.flights) {
                    Ok(created) => {
                        *self.producer.write().unwrap_or_else(PoisonError::into_inner) = created;
                    }
                    Err(error) => tracing::warn!("{error}"),
                }
            }
            let watch = &self.flights.watch;
            if watch.is_suspected()
                && let Some(topic) = self.flights.topic()
                && watch.look(|| producer.client().fetch_metadata(Some(topic.as_str()), PROBE).is_ok())
            {
                self.flights.wake();
            }
        }
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits until all messages are delivered, and ends the thread. Returns whether both happened within `limit`.
    pub(super) fn close(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let is_flushed = self.is_closing() || self.flights.flush(limit);
        self.wake();
        let left = deadline.saturating_duration_since(Instant::now()).max(POLL * 4);
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(ended, left, |ended| !*ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0 && is_flushed
    }

    /// Ends the waits of publishers: nothing more is published.
    pub(super) fn wake(&self) {
        self.flights.is_closing.store(true, Ordering::Relaxed);
        self.flights.wake();
    }
}

fn create(settings: &Settings, flights: &Arc<Flights>) -> Result<Arc<BaseProducer<Reports>>, OpenError> {
    let created = client::producer(settings).create_with_context(Reports(Arc::clone(flights)));
    created.map(Arc::new).map_err(|error: KafkaError| OpenError::Setting(unusable(&error)))
}

/// A publisher on one topic.
pub(super) struct Publisher {
    outgoing: Arc<Outgoing>,
    place: Place,
    /// Headers of each record; `None` without any.
    headers: Option<OwnedHeaders>,
    index: u32,
    flight: Arc<Flight>,
    drops: Arc<Drops>,
    /// Whether refused messages are handed back, and so are not dropped here.
    hands_back: AtomicBool,
    /// Whether messages are dropped until one is accepted.
    is_stalled: AtomicBool,
}

impl Publisher {
    pub(super) fn new(outgoing: Arc<Outgoing>, place: Place) -> Publisher {
        let (index, flight) = outgoing.flights.add(&place.topic);
        let (drops, hands_back, is_stalled) = Default::default();
        let headers = (!place.headers.is_empty()).then(|| {
            place.headers.iter().fold(OwnedHeaders::new(), |headers, (name, value)| {
                headers.insert(Header { key: name, value: Some(value.as_str()) })
            })
        });
        Publisher { outgoing, place, headers, index, flight, drops, hands_back, is_stalled }
    }

    /// Passes a message to the producer. Returns whether its queue has room.
    fn send(&self, payload: &[u8]) -> Result<bool, PublishError> {
        let number = self.flight.add(payload);
        let opaque = Box::new((self.index, number));
        let mut record: BaseRecord<'_, [u8], [u8], Box<(u32, u64)>> =
            BaseRecord::with_opaque_to(&self.place.topic, opaque).payload(payload);
        let own = self.place.key.as_deref().map(str::as_bytes);
        if let Some(key) = own.or_else(|| id(payload)) {
            record = record.key(key);
        }
        if let Some(headers) = &self.headers {
            record = record.headers(headers.clone());
        }
        let producer = self.outgoing.producer();
        let error = match producer.send(record) {
            Ok(()) => return Ok(true),
            Err((error, _)) => error,
        };
        self.flight.remove(number);
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::QueueFull) => Ok(false),
            // The producer is replaced soon.
            _ if producer.client().fatal_error().is_some() => Ok(false),
            Some(code) => Err(PublishError::Network(code.to_string())),
            None => Err(PublishError::Network(error.to_string())),
        }
    }

    /// Publishes a message, and waits for room until the deadline.
    fn publish_until(&self, payload: &[u8], deadline: Option<Instant>) -> Result<(), PublishError> {
        trace_message("published", &self.place.topic, payload);
        loop {
            if self.outgoing.is_closing() {
                return Err(PublishError::Closed);
            }
            if !self.outgoing.flights.watch.is_lost() && self.send(payload)? {
                return Ok(());
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(PublishError::Slow);
            }
            self.flight.wait(left.map_or(ROOM, |left| left.min(ROOM)));
        }
    }
}

impl adapter::Publisher for Publisher {
    /// Publishes a payload; blocks while the connection is lost or the queue of the client is full, at most for as long
    /// as the settings allow. Then messages are dropped until one is accepted again.
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        let is_stalled = self.is_stalled.load(Ordering::Relaxed);
        let wait = if is_stalled { Some(Duration::ZERO) } else { self.outgoing.settings.slow_consumer };
        let published = self.publish_until(payload, wait.map(|wait| Instant::now() + wait));
        match published {
            Err(PublishError::Slow) if !self.hands_back.load(Ordering::Relaxed) => {
                self.drops.add(1, now());
                if !self.is_stalled.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        "Kafka at {} does not accept messages on the topic `{}` in time; they are dropped until it does",
                        self.outgoing.settings.place(),
                        self.place.topic
                    );
                }
            }
            Ok(()) if is_stalled => {
                self.is_stalled.store(false, Ordering::Relaxed);
                tracing::warn!("Kafka at {} accepts messages again", self.outgoing.settings.place());
            }
            _ => {}
        }
        published
    }

    fn offer(&self, payload: &[u8], limit: Duration) -> Result<(), PublishError> {
        self.publish_until(payload, Some(Instant::now() + limit))
    }

    /// Whether the connection works: Kafka does not report consumers.
    fn is_matched(&self) -> bool {
        !self.outgoing.flights.watch.is_lost()
    }

    fn wait_matched(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        while !self.is_matched() && Instant::now() < deadline {
            self.flight.wait(ROOM);
        }
        self.is_matched()
    }

    /// Waits until all replicas in sync have all messages, or the brokers have refused them.
    fn flush(&self, limit: Duration) -> bool {
        self.flight.settle(limit)
    }

    fn settle(&self, limit: Duration) -> bool {
        self.flight.settle(limit)
    }

    fn unconfirmed(&self) -> Option<u64> {
        Some(self.flight.len() as u64)
    }

    fn hand_back(&self) {
        self.hands_back.store(true, Ordering::Relaxed);
        self.flight.keeps.store(true, Ordering::Relaxed);
    }

    fn unconfirmed_payloads(&self, visit: &mut dyn FnMut(&[u8])) {
        self.flight.visit(visit);
    }

    fn drops(&self) -> Option<Arc<Drops>> {
        Some(Arc::clone(&self.drops))
    }
}

/// Returns the id of a verdict, which is its last member.
fn id(payload: &[u8]) -> Option<&[u8]> {
    let (before, id) = payload.strip_suffix(b"\"}")?.split_last_chunk::<ID>()?;
    (before.ends_with(b",\"id\":\"") && id.iter().all(u8::is_ascii_hexdigit)).then_some(&id[..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_keyed_by_their_id() {
        let hex = "0123456789abcdef0123456789abcdef";
        let verdict = format!(r#"{{"property":"p","time":1,"verdict":"violated","id":"{hex}"}}"#);
        assert_eq!(id(verdict.as_bytes()), Some(hex.as_bytes()));
        for other in [
            r#"{"property":"p","time":1,"verdict":"violated"}"#.to_owned(),
            format!(r#"{{"id":"{hex}","n":1}}"#),
            format!(r#"{{"a":1,"id":"{}"}}"#, &hex[1..]),
            format!(r#"{{"a":1,"id":"{}"}}"#, hex.replace('0', "x")),
            format!(r#"{{"a":1,"pid":"{hex}"}}"#),
            "\"}".to_owned(),
            String::new(),
        ] {
            assert_eq!(id(other.as_bytes()), None, "{other}");
        }
    }
}
