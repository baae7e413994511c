//! Settings of librdkafka: those of Rondel, those of the user, and which ones the user cannot choose.

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rondel_event::kafka::{RefusedSetting, check_setting};

/// Settings by Rondel that the user may change.
const DEFAULTS: [(&str, &str); 5] = [
    ("client.id", "rondel"),
    // The partition of a key is the same as by the clients in Java.
    ("partitioner", "murmur2_random"),
    // A topic that does not exist is reported within the limit of a write.
    ("topic.metadata.propagation.max.ms", "2000"),
    // The driver passes no more at a time than its queue has.
    ("queue.buffering.max.kbytes", "131072"),
    ("enable.metrics.push", "false"),
];

/// Settings on which the guarantees of the sink depend.
const FIXED: [(&str, &str); 3] = [
    ("enable.idempotence", "true"),
    ("acks", "all"),
    // Messages wait in the order of their properties until they are delivered. The driver limits and counts them.
    ("message.timeout.ms", "0"),
];

/// Settings that the user cannot choose, beside those of every client, and why.
const REFUSED: [RefusedSetting; 2] = [("message.timeout.ms", WAITS), ("delivery.timeout.ms", WAITS)];

const WAITS: &str =
    "verdicts wait until they are delivered; limit the queue and the spool of the sink instead";

/// Returns the configuration of a producer.
///
/// # Errors
/// A sentence with the setting and the way out.
pub(super) fn configuration(
    brokers: &[String],
    settings: &[(String, String)],
) -> Result<ClientConfig, String> {
    let mut config = ClientConfig::new();
    for (name, value) in DEFAULTS {
        config.set(name, value);
    }
    for (name, value) in settings {
        check_setting(name, value, &REFUSED)?;
        config.set(name, value);
    }
    for (name, value) in FIXED {
        config.set(name, value);
    }
    config.create_native_config().map_err(|error| unusable(&error))?;
    config.set("bootstrap.servers", brokers.join(","));
    // Its errors are reported otherwise.
    config.set_log_level(RDKafkaLogLevel::Emerg);
    Ok(config)
}

/// An error of librdkafka about a setting, as a sentence.
pub(super) fn unusable(error: &KafkaError) -> String {
    match error {
        KafkaError::ClientConfig(_, reason, name, value)
            if reason.starts_with("No such configuration property") =>
        {
            format!(
                "there is no setting `{name}` of Kafka, for which the value `{value}` is given; the names are those of \
                 librdkafka, such as `compression.type` and `linger.ms`"
            )
        }
        KafkaError::ClientConfig(_, reason, name, _) => {
            format!("cannot use the setting `{name}` of Kafka: {}", reason.trim_end_matches('.'))
        }
        KafkaError::ClientCreation(reason) => format!("cannot use the settings of Kafka: {reason}"),
        error => format!("cannot use the settings of Kafka: {error}"),
    }
}

/// Checks the name of a topic.
///
/// # Errors
/// A sentence with the name and the way out.
pub(super) fn check_topic(topic: &str) -> Result<(), String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if (1..=249).contains(&topic.len()) && topic.chars().all(is_allowed) && !matches!(topic, "." | "..") {
        return Ok(());
    }
    Err(format!(
        "cannot use `{topic}` as a topic of Kafka; a name has 1 to 249 letters, digits, dots, hyphens and underscores"
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Result<ClientConfig, String> {
        configuration(&["127.0.0.1:9092".to_owned()], &[(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn settings_are_checked() {
        for (name, value, reason) in [
            ("linger.mss", "5", "there is no setting `linger.mss` of Kafka"),
            ("linger.ms", "soon", "cannot use the setting `linger.ms` of Kafka"),
            ("compression.type", "brotli", "cannot use the setting `compression.type`"),
            ("security.protocol", "SSL", "without TLS"),
            ("acks", "1", "always `all`"),
            ("message.timeout.ms", "5", "the spool of the sink"),
        ] {
            let error = with(name, value).unwrap_err();
            assert!(error.contains(reason) && error.contains(name), "{error}");
        }
        for (name, value) in [
            ("compression.type", "lz4"),
            ("compression.type", "zstd"),
            ("compression.type", "snappy"),
            ("compression.type", "gzip"),
            ("linger.ms", "50"),
            ("client.id", "car-7"),
            ("security.protocol", "SASL_PLAINTEXT"),
            ("sasl.mechanism", "PLAIN"),
        ] {
            let config = with(name, value).unwrap();
            assert_eq!(config.get(name), Some(value));
            assert_eq!((config.get("acks"), config.get("enable.idempotence")), (Some("all"), Some("true")));
        }
    }

    #[test]
    fn topics_are_checked() {
        assert!(check_topic("rondel.verdicts-7_a").is_ok());
        for bad in ["", ".", "..", "a b", "a/b", "größe", &"x".repeat(250)] {
            assert!(check_topic(bad).unwrap_err().contains("1 to 249"), "{bad}");
        }
    }
}
