//! The section `metrics:` of a deployment.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::sinks::pushed;
use super::yaml::{Item, Mistakes, Synonyms};
use crate::sinks::driven::targets::OtlpTarget;

/// The most instances that are counted apart.
const MOST_INSTANCES: i64 = 10_000;

/// Names that people write for settings of metrics.
const SYNONYMS: Synonyms = &[
    (
        &["address", "port", "bind", "host", "endpoint", "on"],
        "write `listen`, such as `listen: 127.0.0.1:9464`",
    ),
    (
        &["instances", "labels", "keys", "key"],
        "write `parameters: N`, the number of instances with their own counter",
    ),
    (
        &["push", "to", "url", "collector", "opentelemetry", "otel"],
        "write `otlp`, such as `otlp: { url: \"http://127.0.0.1:4318\" }`",
    ),
    (&["interval", "every", "period"], "write `otlp: { url: URL, interval: 15 s }`"),
];

/// Metrics of a run: the places where they are served and pushed, and their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricsSettings {
    /// The address of the HTTP server, if there is one.
    pub listen: Option<SocketAddr>,
    /// Number of instances whose violations are counted with their parameters as a label.
    pub parameters: usize,
    /// The collector to which they are pushed, if there is one.
    pub push: Option<PushSettings>,
}

/// Pushing of metrics to a collector of OpenTelemetry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushSettings {
    /// The collector.
    pub target: OtlpTarget,
    /// Its host and port, for messages.
    pub place: String,
    /// The time between two readings.
    pub interval: Duration,
}

impl PushSettings {
    /// Whether this program can push.
    pub const IS_AVAILABLE: bool = cfg!(all(feature = "metrics", feature = "otlp"));
    /// The message that it cannot.
    pub const UNAVAILABLE: &'static str =
        "this Rondel is built without pushing of metrics: build it with the features `metrics` and `otlp`";
}

/// Reads an address to listen on, as in `127.0.0.1:9464`.
///
/// # Errors
/// The requirement on the value.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "must be an IP address and a port, such as 127.0.0.1:9464, or 0.0.0.0:9464 for every interface"
            .to_owned()
    })
}

/// Reads the section. `joins`: whether the deployment is to be run, and not only its recordings to be checked.
pub(super) fn metrics(
    item: Item<'_>,
    folder: &Path,
    joins: bool,
    mistakes: &mut Mistakes,
) -> Option<MetricsSettings> {
    if !item.is_mapping() {
        let listen = listen(item, "metrics", mistakes)?;
        return Some(MetricsSettings { listen: Some(listen), ..MetricsSettings::default() });
    }
    let mut members = item.members("metrics", mistakes);
    let (listen_item, parameters, push) =
        (members.get("listen"), members.get("parameters"), members.get("otlp"));
    if listen_item.is_none() && push.is_none() {
        mistakes.at(
            item,
            "`metrics` needs `listen`, such as `listen: 127.0.0.1:9464`, or `otlp`, such as \
             `otlp: { url: \"http://127.0.0.1:4318\" }`",
        );
    }
    let parameters = parameters.and_then(|item| item.integer("parameters", 0..=MOST_INSTANCES, mistakes));
    let settings = MetricsSettings {
        listen: listen_item.and_then(|item| listen(item, "listen", mistakes)),
        parameters: parameters.and_then(|count| usize::try_from(count).ok()).unwrap_or(0),
        push: push.and_then(|item| pushed(item, folder, joins, mistakes)),
    };
    members.finish(SYNONYMS, mistakes);
    Some(settings)
}

/// Reads the address of the server from the setting `name`.
fn listen(item: Item<'_>, name: &str, mistakes: &mut Mistakes) -> Option<SocketAddr> {
    match listen_address(&item.text(name, mistakes)?) {
        Ok(listen) => Some(listen),
        Err(why) => {
            mistakes.at(item, format!("`{name}` {why}"));
            None
        }
    }
}
