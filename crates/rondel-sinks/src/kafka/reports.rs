//! Reports of librdkafka: on each verdict, and errors of its connections.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{DeliveryResult, ProducerContext};

/// Report on one verdict: its identity, and why it was not delivered.
pub(super) struct Report {
    pub(super) identity: u128,
    pub(super) error: Option<RDKafkaErrorCode>,
}

/// Error of the client, which may pass.
#[derive(Clone)]
pub(super) struct ClientError {
    pub(super) code: RDKafkaErrorCode,
    pub(super) reason: String,
}

/// Receiver of the reports of one producer.
#[derive(Default)]
pub(super) struct Reports(Mutex<Received>);

#[derive(Default)]
struct Received {
    reports: Vec<Report>,
    error: Option<ClientError>,
    /// Warnings about settings.
    warnings: Vec<String>,
}

impl Reports {
    fn received(&self) -> MutexGuard<'_, Received> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reports on verdicts since the last call.
    pub(super) fn take(&self) -> Vec<Report> {
        std::mem::take(&mut self.received().reports)
    }

    /// Returns the last error of the client since the last delivery.
    pub(super) fn error(&self) -> Option<ClientError> {
        self.received().error.clone()
    }

    /// Returns the first warning about settings.
    pub(super) fn warning(&self) -> Option<String> {
        self.received().warnings.first().cloned()
    }
}

impl ClientContext for Reports {
    fn log(&self, _level: RDKafkaLogLevel, facility: &str, message: &str) {
        if facility == "CONFWARN" && !message.contains("`bootstrap.servers`") {
            self.received().warnings.push(message.to_owned());
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown);
        let mut received = self.received();
        // That all brokers are down follows from an error that says more.
        if code != RDKafkaErrorCode::AllBrokersDown || received.error.is_none() {
            received.error = Some(ClientError { code, reason: reason.to_owned() });
        }
    }
}

impl ProducerContext for Reports {
    type DeliveryOpaque = Box<u128>;

    fn delivery(&self, result: &DeliveryResult<'_>, identity: Box<u128>) {
        let error = match result {
            Ok(_) => None,
            Err((error, _)) => Some(error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown)),
        };
        let mut received = self.received();
        if error.is_none() {
            received.error = None;
        }
        received.reports.push(Report { identity: *identity, error });
    }
}
