//! The section `kafka:` of a deployment.

use std::path::Path;

use rondel_net::kafka::{IS_AVAILABLE, Settings, UNAVAILABLE};

use super::sinks::{client_settings, kafka_brokers};
use super::yaml::{Item, Mistakes, Synonyms};

/// Names that people write for settings of Kafka.
const KAFKA: Synonyms = &[
    (
        &["servers", "broker", "bootstrap", "bootstrap_servers", "bootstrap.servers", "host"],
        "write `brokers: [HOST:PORT]`",
    ),
    (
        &["group", "group_id", "group.id", "consumer_group"],
        "remove it: in a consumer group a process receives some partitions only, and properties would not see all \
         messages; a run reads all partitions, and its snapshot states where it goes on",
    ),
    (
        &["offset", "from", "auto_offset_reset", "auto.offset.reset", "position"],
        "write `start: earliest` or `start: latest`",
    ),
    (
        &["config", "properties", "options"],
        "write `settings`, such as `settings: { fetch.max.bytes: 1000000 }`",
    ),
    (&["topic", "topics"], "write `kafka:TOPIC` in the section `topics`, or in `verdicts`"),
    (&["password", "sasl"], "write `settings_env: { sasl.password: VARIABLE }`"),
    (
        &["tls", "ssl", "ca"],
        "this build connects to Kafka without TLS: use a listener without TLS that only this machine reaches, or a \
         local proxy that adds TLS",
    ),
];

/// Reads the section `kafka:`. `joins`: whether the deployment is to be run.
pub(super) fn kafka_settings(
    item: Item<'_>,
    folder: &Path,
    joins: bool,
    mistakes: &mut Mistakes,
) -> Settings {
    let before = mistakes.errors.len();
    let mut settings = Settings::default();
    let mut members = item.members("kafka", mistakes);
    if let Some(item) = members.get("brokers") {
        settings.brokers = kafka_brokers(item, mistakes);
    }
    if let Some(item) = members.get("start") {
        match item.text("start", mistakes).as_deref().map(str::parse) {
            Some(Ok(start)) => settings.start = start,
            Some(Err(())) => mistakes.at(item, "`start` must be latest or earliest"),
            None => {}
        }
    }
    let pairs = client_settings(&mut members, folder, joins, mistakes);
    settings.settings = pairs.into_iter().map(|pair| (pair.name, pair.value.0)).collect();
    members.finish(KAFKA, mistakes);
    if joins && !IS_AVAILABLE {
        mistakes.at(item, UNAVAILABLE);
    } else if mistakes.errors.len() == before
        && let Err(error) = settings.check()
    {
        mistakes.at(item, error.to_string());
    }
    settings
}
