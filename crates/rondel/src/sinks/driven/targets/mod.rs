//! Kinds of sinks beside networks: the settings of each, and its sink if the program is built with its feature.

mod alertmanager;
mod kafka;
mod nats;
mod otlp;
mod postgres;
mod webhook;

use std::fmt;
use std::path::PathBuf;

use rondel_sinks::Sink;

pub use alertmanager::AlertmanagerTarget;
pub use kafka::KafkaTarget;
pub use nats::NatsTarget;
pub use otlp::OtlpTarget;
pub use postgres::PostgresTarget;
pub use webhook::{WebhookEmit, WebhookTarget};

/// A kind of sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name in a deployment.
    pub name: &'static str,
    /// The feature with which it is built.
    pub feature: &'static str,
    /// Whether this program has it.
    pub is_available: bool,
}

/// All kinds.
pub const KINDS: [Kind; 6] = [
    Kind { name: "postgres", feature: "postgres", is_available: cfg!(feature = "postgres") },
    Kind { name: "nats", feature: "nats", is_available: cfg!(feature = "nats") },
    Kind { name: "kafka", feature: "kafka", is_available: cfg!(feature = "kafka") },
    Kind { name: "webhook", feature: "webhook", is_available: cfg!(feature = "webhook") },
    Kind { name: "alertmanager", feature: "webhook", is_available: cfg!(feature = "webhook") },
    Kind { name: "otlp", feature: "otlp", is_available: cfg!(feature = "otlp") },
];

impl Kind {
    /// The message that this program does not have it.
    pub fn unavailable(&self) -> String {
        let Kind { name, feature, .. } = self;
        format!(
            "this Rondel is built without sinks of the kind `{name}`: build it with the feature `{feature}`"
        )
    }
}

/// A secret, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A name with its value, which may be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Name.
    pub name: String,
    /// Value.
    pub value: Secret,
}

/// Files of TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates of trusted authorities.
    pub ca: Option<PathBuf>,
    /// Certificate of this client.
    pub certificate: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
}

/// A destination, with the settings of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A database of PostgreSQL.
    Postgres(PostgresTarget),
    /// A stream of NATS.
    Nats(NatsTarget),
    /// A topic of Kafka.
    Kafka(KafkaTarget),
    /// An HTTP server that receives CloudEvents.
    Webhook(WebhookTarget),
    /// Alertmanager of Prometheus.
    Alertmanager(AlertmanagerTarget),
    /// A collector of OpenTelemetry.
    Otlp(OtlpTarget),
}

impl Target {
    /// Creates its sink, without connecting.
    ///
    /// # Errors
    /// The kind is not available, or a setting is wrong.
    pub fn sink(&self) -> Result<Box<dyn Sink>, String> {
        match self {
            Target::Postgres(target) => target.sink(),
            Target::Nats(target) => target.sink(),
            Target::Kafka(target) => target.sink(),
            Target::Webhook(target) => target.sink(),
            Target::Alertmanager(target) => target.sink(),
            Target::Otlp(target) => target.sink(),
        }
    }
}

/// The options of TLS of these files.
#[cfg(any(feature = "postgres", feature = "nats", feature = "webhook", feature = "otlp"))]
fn tls(files: Option<&TlsFiles>) -> Option<rondel_sinks::tls::TlsOptions> {
    files.cloned().map(|TlsFiles { ca, certificate, key }| rondel_sinks::tls::TlsOptions {
        ca,
        certificate,
        key,
    })
}

/// The names and values of pairs.
#[cfg(any(feature = "kafka", feature = "webhook", feature = "otlp"))]
fn pairs(pairs: &[Pair]) -> Vec<(String, String)> {
    pairs.iter().map(|pair| (pair.name.clone(), pair.value.0.clone())).collect()
}
