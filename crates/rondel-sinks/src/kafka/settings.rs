//! Settings of librdkafka: those of Rondel, those of the user, and which ones the user cannot choose.

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;

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

/// Settings that the user cannot choose, by their names or the begins of their names, and why.
const REFUSED: [(&str, &str); 14] = [
    ("bootstrap.servers", "`brokers` names the brokers"),
    ("metadata.broker.list", "`brokers` names the brokers"),
    (
        "enable.idempotence",
        "it is always true, so that a broker stores no verdict twice when it is sent again",
    ),
    ("acks", "it is always `all`, so that acknowledged verdicts survive the loss of a broker"),
    (
        "request.required.acks",
        "it is always `all`, so that acknowledged verdicts survive the loss of a broker",
    ),
    (
        "message.timeout.ms",
        "verdicts wait until they are delivered; limit the queue and the spool of the sink instead",
    ),
    (
        "delivery.timeout.ms",
        "verdicts wait until they are delivered; limit the queue and the spool of the sink instead",
    ),
    ("delivery.report.only.error", "Rondel waits for the report of each verdict"),
    ("transactional.id", "Rondel writes without transactions"),
    ("plugin.library.paths", "Rondel loads no libraries"),
    ("statistics.interval.ms", "`rondel` reports the state of its sinks itself"),
    ("log_level", "errors are reported by Rondel"),
    ("ssl.", NO_TLS),
    ("sasl.oauthbearer.", "this build has no OAuth; use `sasl.mechanism: PLAIN`"),
];

const NO_TLS: &str = "this build connects to Kafka without TLS; use a listener without TLS that only this machine reaches, or \
                      a local proxy that adds TLS";

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
        check(name, value)?;
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

/// Checks whether the user may choose a setting.
fn check(name: &str, value: &str) -> Result<(), String> {
    let is_refused = |refused: &str| name == refused || refused.ends_with('.') && name.starts_with(refused);
    if let Some((_, reason)) = REFUSED.iter().find(|(refused, _)| is_refused(refused)) {
        return Err(format!("the setting `{name}` of Kafka cannot be chosen: {reason}"));
    }
    if name == "security.protocol" && value.to_ascii_lowercase().ends_with("ssl") {
        return Err(format!("the setting `{name}: {value}` of Kafka cannot be chosen: {NO_TLS}"));
    }
    if is_mechanism(name) && !value.eq_ignore_ascii_case("PLAIN") {
        return Err(format!(
            "the setting `{name}: {value}` of Kafka cannot be chosen: this build knows the mechanism PLAIN only; use \
             `{name}: PLAIN`"
        ));
    }
    Ok(())
}

fn is_mechanism(name: &str) -> bool {
    matches!(name, "sasl.mechanism" | "sasl.mechanisms")
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

/// Checks the addresses of brokers.
///
/// # Errors
/// A sentence with the address and the way out.
pub(super) fn check_brokers(brokers: &[String]) -> Result<(), String> {
    if brokers.is_empty() {
        return Err("Kafka needs the address of a broker, such as `127.0.0.1:9092`".to_owned());
    }
    for broker in brokers {
        let is_plain =
            !broker.is_empty() && !broker.contains(['/', ',', '@']) && !broker.contains(char::is_whitespace);
        // An address of IPv6 has colons and brackets.
        let port = broker.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map(|(_, port)| port);
        let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
        if !is_plain || !is_port {
            return Err(format!(
                "cannot use the address `{broker}` of a broker of Kafka; write it as `host:9092`, without `kafka://`, \
                 and several as a list"
            ));
        }
    }
    Ok(())
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
            ("security.protocol", "sasl_ssl", "without TLS"),
            ("ssl.ca.location", "ca.pem", "without TLS"),
            ("sasl.mechanism", "SCRAM-SHA-256", "PLAIN only"),
            ("sasl.oauthbearer.config", "x", "no OAuth"),
            ("acks", "1", "always `all`"),
            ("enable.idempotence", "false", "always true"),
            ("bootstrap.servers", "a:1", "`brokers` names the brokers"),
            ("transactional.id", "x", "without transactions"),
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
    fn addresses_and_topics_are_checked() {
        let brokers = |text: &str| check_brokers(&[text.to_owned()]);
        for good in ["127.0.0.1:9092", "kafka.example", "[::1]:9092", "[::1]", "localhost:1"] {
            assert_eq!(brokers(good), Ok(()));
        }
        for bad in ["", "kafka://a:9092", "a:9092,b:9092", "a b", "a:port", "a:0", "a:99999", "me@a:9092"] {
            assert!(brokers(bad).unwrap_err().contains("`host:9092`"), "{bad}");
        }
        assert!(check_brokers(&[]).unwrap_err().contains("needs the address of a broker"));
        assert!(check_topic("rondel.verdicts-7_a").is_ok());
        for bad in ["", ".", "..", "a b", "a/b", "größe", &"x".repeat(250)] {
            assert!(check_topic(bad).unwrap_err().contains("1 to 249"), "{bad}");
        }
    }
}
