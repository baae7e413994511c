//! Verdicts as records of Kafka.
//!
//! Each verdict is a record with its id in the header `rondel-id`, and with a key by which the verdicts on one instance keep
//! their order. The producer is idempotent: while the process lives, a broker stores a verdict once, whatever fails between
//! the two.

mod error;
mod reports;
mod settings;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use rondel_event::kafka::check_brokers;

use crate::entry::{Entry, VerdictEntry, id_text};
use crate::outgoing::{Delivery, SeriesNames, Stopped, Unfinished, identity, verdicts, without_text};
use crate::sink::{Failure, FailureKind, Progress, Sink, Written};

use reports::{ClientError, Report, Reports};

/// Duration of one call of librdkafka, between which the time limit and interruptions are checked.
const POLL: Duration = Duration::from_millis(2);

/// Time without a delivery after which an error of the client ends a write. Most connections are made again before.
const PATIENCE: Duration = Duration::from_secs(1);

/// Options of a sink of Kafka.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KafkaOptions {
    /// Addresses of brokers, `host:port`. The client finds the others of their cluster.
    pub brokers: Vec<String>,
    /// Topic of the verdicts.
    pub topic: String,
    /// Settings of librdkafka by their names, such as `compression.type`.
    pub settings: Vec<(String, String)>,
}

impl fmt::Debug for KafkaOptions {
    /// Without the values of settings, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.settings.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("KafkaOptions")
            .field("brokers", &self.brokers)
            .field("topic", &self.topic)
            .field("settings", &names)
            .finish()
    }
}

/// Sink of Kafka.
pub struct KafkaSink {
    target: Target,
    config: ClientConfig,
    producer: Option<BaseProducer<Reports>>,
    series: SeriesNames,
    unfinished: Unfinished,
    is_interrupted: Arc<AtomicBool>,
}

/// Destination, for records and messages.
struct Target {
    place: String,
    topic: String,
}

/// One write.
struct Write<'w> {
    entries: &'w [Entry<'w>],
    limit: Duration,
    deadline: Instant,
    /// Time of the last delivery.
    moved: Instant,
    /// Reason why a verdict was not delivered. One that concerns all verdicts wins over one that concerns some.
    refused: Option<Failure>,
    /// Whether a broker has reported that there is no such topic.
    is_topic_missing: bool,
}

impl Write<'_> {
    fn refuse(&mut self, failure: Failure) {
        if self.refused.as_ref().is_none_or(|known| known.kind == FailureKind::Rejected) {
            self.refused = Some(failure);
        }
    }

    /// Whether a reason concerns all verdicts.
    fn is_stopped(&self) -> bool {
        self.refused.as_ref().is_some_and(|failure| failure.kind != FailureKind::Rejected)
    }
}

impl KafkaSink {
    /// Checks options. Does not connect.
    ///
    /// # Errors
    /// A sentence with the option and the way out.
    pub fn new(options: KafkaOptions) -> Result<KafkaSink, String> {
        let KafkaOptions { brokers, topic, settings } = options;
        check_brokers(&brokers)?;
        settings::check_topic(&topic)?;
        let config = settings::configuration(&brokers, &settings)?;
        check_together(&config)?;
        Ok(KafkaSink {
            target: Target { place: brokers.join(","), topic },
            config,
            producer: None,
            series: SeriesNames::default(),
            unfinished: Unfinished::default(),
            is_interrupted: Arc::default(),
        })
    }

    /// Sends the verdicts that were not sent, and waits until all are delivered.
    fn produce(&mut self, write: &mut Write<'_>) -> Result<(), Stopped> {
        let producer = match self.producer.take() {
            Some(producer) => producer,
            None => {
                // The verdicts that another producer has not delivered are sent again.
                self.unfinished.remove_sent();
                self.create()?
            }
        };
        let result = self.send_all(&producer, write).and_then(|()| self.wait_for_all(&producer, write));
        if let Some((code, reason)) = producer.client().fatal_error() {
            // This producer delivers nothing any more.
            drop(producer);
            return Err(error::fatal(&self.target, &ClientError { code, reason }).into());
        }
        // For minutes a producer takes a missing topic for missing; a new one queries the brokers.
        self.producer = Some(producer).filter(|_| !write.is_topic_missing);
        result
    }

    fn create(&self) -> Result<BaseProducer<Reports>, Failure> {
        self.config
            .create_with_context(Reports::default())
            .map_err(|error| Failure::unavailable(settings::unusable(&error)))
    }

    fn send_all(&mut self, producer: &BaseProducer<Reports>, write: &mut Write<'_>) -> Result<(), Stopped> {
        for verdict in verdicts(write.entries) {
            let identity = identity(verdict);
            if self.unfinished.get(identity).is_some() {
                continue;
            }
            while !self.send(producer, verdict, write)? {
                // Its queue is full.
                self.poll(producer, write)?;
            }
            if write.is_stopped() {
                break;
            }
        }
        Ok(())
    }

    /// Sends a verdict. Returns whether the queue of the producer had room.
    fn send(
        &mut self,
        producer: &BaseProducer<Reports>,
        verdict: &VerdictEntry<'_>,
        write: &mut Write<'_>,
    ) -> Result<bool, Stopped> {
        let identity = identity(verdict);
        if verdict.json.is_empty() {
            self.unfinished.set(identity, Delivery::Rejected);
            write.refuse(without_text(verdict));
            return Ok(true);
        }
        let series = self.series.of(verdict.run);
        let id = verdict.id.map(id_text);
        let mut headers = OwnedHeaders::new_with_capacity(2);
        if let Some(id) = &id {
            headers = headers.insert(Header { key: "rondel-id", value: Some(id) });
        }
        headers = headers.insert(Header { key: "rondel-series", value: Some(&*series) });
        let key = key(verdict, &series);
        let record = BaseRecord::with_opaque_to(&self.target.topic, Box::new(identity))
            .key(&key)
            .payload(verdict.json)
            .headers(headers);
        match producer.send(record) {
            Ok(()) => self.unfinished.set(identity, Delivery::Sent),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), _)) => return Ok(false),
            Err((error, _)) => {
                let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown);
                write.is_topic_missing |= error::is_unknown_topic(code);
                let failure = error::undelivered(&self.target, code, verdict.property, verdict.json.len());
                if failure.kind == FailureKind::Rejected {
                    self.unfinished.set(identity, Delivery::Rejected);
                }
                write.refuse(failure);
            }
        }
        Ok(true)
    }

    fn wait_for_all(
        &mut self,
        producer: &BaseProducer<Reports>,
        write: &mut Write<'_>,
    ) -> Result<(), Stopped> {
        while self.unfinished.sent() > 0 {
            self.poll(producer, write)?;
        }
        write.refused.take().map_or(Ok(()), |failure| Err(failure.into()))
    }

    /// Takes the reports of librdkafka. Ends at the time limit, at an interruption, and if the client reports an error
    /// while nothing is delivered.
    fn poll(&mut self, producer: &BaseProducer<Reports>, write: &mut Write<'_>) -> Result<(), Stopped> {
        producer.poll(POLL);
        let reports = producer.context();
        self.take_deliveries(reports, write);
        if self.is_interrupted.swap(false, Ordering::Relaxed) {
            let failure = Failure::unavailable("writing to Kafka was interrupted by the end of the run");
            return Err(Stopped { failure, is_late: true });
        }
        let now = Instant::now();
        let error = reports.error().filter(|_| now >= write.moved + PATIENCE);
        let is_late = now >= write.deadline;
        if !is_late && error.is_none() && producer.client().fatal_error().is_none() {
            return Ok(());
        }
        // A reason that was reported for a verdict says more than that the time is over.
        let refused = write.refused.take().filter(|failure| failure.kind != FailureKind::Rejected);
        let reported = refused.or_else(|| error.map(|error| error::client(&self.target, &error)));
        Err(match reported {
            Some(failure) => failure.into(),
            None => {
                let failure = error::late(&self.target, self.unfinished.sent(), write.limit);
                Stopped { failure, is_late }
            }
        })
    }

    fn take_deliveries(&mut self, reports: &Reports, write: &mut Write<'_>) {
        for Report { identity, error } in reports.take() {
            let Some(code) = error else {
                self.unfinished.set(identity, Delivery::Acknowledged { is_repeated: false });
                write.moved = Instant::now();
                continue;
            };
            // A broker rejects records that came together: the driver finds the one that is the reason.
            self.unfinished.remove(identity);
            write.is_topic_missing |= error::is_unknown_topic(code);
            // Only the first reason names a verdict.
            let verdict = match &write.refused {
                None => verdicts(write.entries).find(|verdict| self::identity(verdict) == identity),
                Some(_) => None,
            };
            let (property, size) = verdict.map_or(("", 0), |verdict| (verdict.property, verdict.json.len()));
            let failure = error::undelivered(&self.target, code, property, size);
            if write.refused.is_none() || failure.kind != FailureKind::Rejected {
                write.refuse(failure);
            }
        }
    }
}

impl Sink for KafkaSink {
    fn write(&mut self, entries: &[Entry<'_>], limit: Duration) -> Result<Written, Failure> {
        self.write_some(entries, limit).of_all(entries.len())
    }

    fn write_some(&mut self, entries: &[Entry<'_>], limit: Duration) -> Progress {
        self.series.note(entries);
        let now = Instant::now();
        let mut write = Write {
            entries,
            limit,
            deadline: now + limit,
            moved: now,
            refused: None,
            is_topic_missing: false,
        };
        let has_verdicts = verdicts(entries).next().is_some();
        let result = if has_verdicts { self.produce(&mut write) } else { Ok(()) };
        self.unfinished.finish(entries, result)
    }

    fn maintain(&mut self, _now: i64, _limit: Duration) -> Result<bool, Failure> {
        if let Some(producer) = &self.producer {
            // Reports of the connection would fill its queue otherwise.
            producer.poll(POLL);
        }
        Ok(false)
    }

    fn close(&mut self, _limit: Duration) -> Result<(), Failure> {
        // Everything is delivered, or was reported: what still waits in the producer is dropped with it.
        self.producer = None;
        Ok(())
    }

    fn wants_json(&self) -> bool {
        true
    }

    fn interrupter(&mut self) -> Option<Box<dyn Fn() + Send + Sync>> {
        let is_interrupted = Arc::clone(&self.is_interrupted);
        Some(Box::new(move || is_interrupted.store(true, Ordering::Relaxed)))
    }
}

/// Returns the key of a record: the instance that the verdict is about. Records with one key keep their order.
fn key(verdict: &VerdictEntry<'_>, series: &str) -> String {
    format!("{series}/{}{}", verdict.property, verdict.parameters)
}

/// Checks settings that depend on each other, by a producer without brokers.
fn check_together(config: &ClientConfig) -> Result<(), String> {
    let mut config = config.clone();
    config.remove("bootstrap.servers");
    let producer: BaseProducer<Reports> =
        config.create_with_context(Reports::default()).map_err(|error| settings::unusable(&error))?;
    // Warnings are in its queue.
    producer.poll(POLL);
    match producer.context().warning() {
        Some(warning) => Err(format!("cannot use the settings of Kafka: {}", warning.trim_end_matches('.'))),
        None => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::outgoing::sample;

    fn options(settings: &[(&str, &str)]) -> KafkaOptions {
        KafkaOptions {
            brokers: vec!["127.0.0.1:9092".to_owned()],
            topic: "verdicts".to_owned(),
            settings: settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        }
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused() {
        for (settings, reason) in [
            (&[("max.in.flight.requests.per.connection", "6")][..], "max.in.flight"),
            (&[("retries", "0")], "retries"),
            (&[("security.protocol", "sasl_plaintext")], "mechanism"),
            (&[("group.id", "a")], "group.id"),
        ] {
            let error = KafkaSink::new(options(settings)).err().ok_or(settings).unwrap();
            assert!(error.contains(reason), "{error}");
        }
        let login = [
            ("security.protocol", "sasl_plaintext"),
            ("sasl.mechanism", "PLAIN"),
            ("sasl.username", "me"),
            ("sasl.password", "secret"),
        ];
        KafkaSink::new(options(&login)).map(drop).unwrap();
        assert!(!format!("{:?}", options(&login)).contains("secret"));
    }

    #[test]
    fn keys_name_the_instance() {
        let plain = sample("brakes", None, "");
        let keyed = VerdictEntry { parameters: r#"{"robot":7}"#, ..sample("gap", None, "") };
        assert_eq!(key(&plain, "car-7"), "car-7/brakes");
        assert_eq!(key(&keyed, "car-7"), r#"car-7/gap{"robot":7}"#);
    }

    #[test]
    fn nothing_but_verdicts_needs_a_connection() {
        let mut sink = KafkaSink::new(options(&[])).unwrap();
        let entries = [Entry::End(crate::End { status: "finished", ..crate::End::default() })];
        assert_eq!(sink.write(&entries, Duration::ZERO).unwrap(), Written::default());
        assert!(sink.producer.is_none() && !sink.maintain(0, Duration::ZERO).unwrap());
    }
}
