//! Configurations of librdkafka, and its errors as sentences.

use std::sync::Arc;

use rdkafka::ClientConfig;
use rdkafka::ClientContext;
use rdkafka::TopicPartitionList;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::types::RDKafkaRespErr;

use super::changes::Changes;
use super::watch::{Breaks, ClientError, Watch};
use super::{OpenError, Settings};

/// Settings by Rondel that the user may change, of both clients.
const DEFAULTS: [(&str, &str); 7] = [
    ("client.id", "rondel"),
    ("enable.metrics.push", "false"),
    // A broker that is silent is noticed, and one that comes back is used, within seconds.
    ("socket.timeout.ms", "10000"),
    ("socket.connection.setup.timeout.ms", "5000"),
    ("reconnect.backoff.max.ms", "1000"),
    ("socket.keepalive.enable", "true"),
    ("socket.nagle.disable", "true"),
];

/// The same of the consumer: bounds of its buffers, for each partition.
const OF_CONSUMER: [(&str, &str); 3] = [
    ("queued.min.messages", "10000"),
    ("queued.max.messages.kbytes", "16384"),
    // Fetching goes on soon after a receiver that was slow.
    ("fetch.queue.backoff.ms", "20"),
];

/// The same of the producer.
const OF_PRODUCER: [(&str, &str); 4] = [
    // The partition of a key is the same as by the clients in Java.
    ("partitioner", "murmur2_random"),
    ("topic.metadata.propagation.max.ms", "2000"),
    ("queue.buffering.max.kbytes", "65536"),
    ("linger.ms", "1"),
];

/// Settings on which the guarantees of subscriptions depend. Without a group in the settings, the client needs its name only.
const FIXED_OF_CONSUMER: [(&str, &str); 6] = [
    ("group.id", "rondel"),
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    ("enable.partition.eof", "false"),
    ("allow.auto.create.topics", "false"),
    // Where records have expired; they are counted.
    ("auto.offset.reset", "earliest"),
];

/// Settings on which the guarantees of publishers depend.
const FIXED_OF_PRODUCER: [(&str, &str); 3] =
    [("enable.idempotence", "true"), ("acks", "all"), ("message.timeout.ms", "0")];

/// The same of the member of a group. Further partitions of its topics are found within seconds.
const FIXED_OF_MEMBER: [(&str, &str); 2] = [
    ("partition.assignment.strategy", "cooperative-sticky"),
    ("topic.metadata.refresh.interval.ms", "10000"),
];

/// Returns the configuration of a consumer.
pub(super) fn consumer(settings: &Settings) -> ClientConfig {
    let mut config = configuration(settings, &OF_CONSUMER, &FIXED_OF_CONSUMER);
    if let Some(group) = &settings.group {
        for (name, value) in FIXED_OF_MEMBER {
            config.set(name, value);
        }
        config.set("group.id", group.name.as_str());
        if let Some(member) = &group.member {
            config.set("group.instance.id", member.as_str());
        }
    }
    config
}

/// Returns the configuration of a producer.
pub(super) fn producer(settings: &Settings) -> ClientConfig {
    configuration(settings, &OF_PRODUCER, &FIXED_OF_PRODUCER)
}

fn configuration(
    settings: &Settings,
    own: &[(&'static str, &'static str)],
    fixed: &[(&'static str, &'static str)],
) -> ClientConfig {
    let mut config = ClientConfig::new();
    for (name, value) in DEFAULTS.iter().chain(own) {
        config.set(*name, *value);
    }
    for (name, value) in &settings.settings {
        config.set(name.as_str(), value.as_str());
    }
    for (name, value) in fixed {
        config.set(*name, *value);
    }
    config.set("bootstrap.servers", settings.place());
    // Its errors are reported otherwise.
    config.set_log_level(RDKafkaLogLevel::Emerg);
    config
}

/// Checks the names and values of the client's settings.
pub(super) fn check(settings: &Settings) -> Result<(), OpenError> {
    for config in [consumer(settings), producer(settings)] {
        config.create_native_config().map_err(|error| OpenError::Setting(unusable(&error)))?;
    }
    Ok(())
}

/// An error of librdkafka about a setting, as a sentence.
pub(super) fn unusable(error: &KafkaError) -> String {
    match error {
        KafkaError::ClientConfig(_, reason, name, value)
            if reason.starts_with("No such configuration property") =>
        {
            format!(
                "there is no setting `{name}` of Kafka, for which the value `{value}` is given; the names are those of \
                 librdkafka, such as `fetch.max.bytes` and `linger.ms`"
            )
        }
        KafkaError::ClientConfig(_, reason, name, _) => {
            format!("cannot use the setting `{name}` of Kafka: {}", reason.trim_end_matches('.'))
        }
        KafkaError::ClientCreation(reason) => format!("cannot use the settings of Kafka: {reason}"),
        error => format!("cannot use the settings of Kafka: {error}"),
    }
}

/// An error of the connection, as a reason with the way out.
pub(super) fn unreachable(error: Option<&ClientError>) -> String {
    use RDKafkaErrorCode as Code;
    let Some(ClientError { code, reason }) = error else {
        return "no broker answers; check the address, and that the broker runs".to_owned();
    };
    let advice = match code {
        Code::Authentication | Code::SaslAuthenticationFailed => {
            "check `sasl.username` and `sasl.password` in the settings"
        }
        Code::Resolve => {
            "check the name of the broker, and that its `advertised.listeners` can be resolved from here"
        }
        _ => "check the address, that the broker runs, and that it expects connections without TLS there",
    };
    format!("{reason}; {advice}")
}

/// Whether an error means that the topic is not there.
pub(super) fn is_unknown_topic(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(
        code,
        Code::UnknownTopicOrPartition
            | Code::UnknownTopic
            | Code::UnknownPartition
            | Code::UnknownTopicId
            | Code::InvalidTopic
    )
}

/// Returns the advice for an error of fetching that may last, or that skips records; `None` for other errors.
pub(super) fn unreadable(error: &KafkaError) -> Option<&'static str> {
    use RDKafkaErrorCode as Code;
    let KafkaError::MessageConsumption(code) = error else { return None };
    match code {
        Code::TopicAuthorizationFailed => Some("add an ACL for the operation Read"),
        Code::MessageSizeTooLarge => Some("raise `receive.message.max.bytes` in the settings"),
        Code::NotImplemented | Code::BadCompression | Code::BadMessage | Code::InvalidMessage => {
            Some("check the programs that publish there, and the disks of the brokers")
        }
        _ => None,
    }
}

/// Receiver of the errors of a consumer, and of changes of its assignment.
pub(super) struct Watched {
    pub(super) watch: Watch,
    pub(super) changes: Changes,
}

impl Watched {
    pub(super) fn new(watch: Watch) -> Watched {
        Watched { watch, changes: Changes::default() }
    }
}

impl ClientContext for Watched {
    fn log(&self, _level: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!("librdkafka: {facility}: {message}");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.watch.error(&error, reason);
    }
}

impl ConsumerContext for Watched {
    /// Keeps the change for the reading thread, which answers it once the states of the partitions are read or written.
    fn rebalance(
        &self,
        consumer: &BaseConsumer<Watched>,
        kind: RDKafkaRespErr,
        list: &mut TopicPartitionList,
    ) {
        self.changes.take(consumer, kind, list);
    }
}

/// Creates a consumer. Does not wait for a connection.
pub(super) fn create_consumer(
    settings: &Settings,
    breaks: &Arc<Breaks>,
) -> Result<BaseConsumer<Watched>, OpenError> {
    let name = format!("{} (subscriptions)", settings.place());
    let context = Watched::new(Watch::new(name, Arc::clone(breaks)));
    consumer(settings).create_with_context(context).map_err(|error| OpenError::Setting(unusable(&error)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::kafka::Group;

    fn with(name: &str, value: &str) -> Result<(), String> {
        let settings =
            Settings { settings: vec![(name.to_owned(), value.to_owned())], ..Settings::default() };
        settings.check().map_err(|error| error.to_string())
    }

    #[test]
    fn names_and_values_of_settings_are_checked() {
        for (name, value, reason) in [
            ("fetch.max.bites", "5", "there is no setting `fetch.max.bites` of Kafka"),
            ("linger.ms", "soon", "cannot use the setting `linger.ms` of Kafka"),
            ("compression.type", "brotli", "cannot use the setting `compression.type`"),
        ] {
            let error = with(name, value).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        assert_eq!(with("fetch.max.bytes", "1000000"), Ok(()));
        for kind in ["gzip", "lz4", "snappy", "zstd"] {
            assert_eq!(with("compression.type", kind), Ok(()));
        }
    }

    #[test]
    fn guarantees_do_not_depend_on_settings() {
        let settings = Settings {
            settings: vec![("acks".to_owned(), "1".to_owned()), ("client.id".to_owned(), "x".to_owned())],
            ..Settings::default()
        };
        let (consumer, producer) = (consumer(&settings), producer(&settings));
        assert_eq!((producer.get("acks"), producer.get("client.id")), (Some("all"), Some("x")));
        assert_eq!(consumer.get("enable.auto.commit"), Some("false"));
        assert_eq!(consumer.get("group.id"), Some("rondel"));
        create_consumer(&Settings::default(), &Arc::default()).map(drop).unwrap();
    }

    #[test]
    fn members_of_a_group_have_its_name_and_strategy() {
        let (name, state, member) = ("monitors".to_owned(), "states".into(), Some("one".to_owned()));
        let group = Some(Group { name, state, member });
        let settings = Settings { group, ..Settings::default() };
        let config = consumer(&settings);
        let set =
            ["group.id", "group.instance.id", "partition.assignment.strategy"].map(|name| config.get(name));
        assert_eq!(set, [Some("monitors"), Some("one"), Some("cooperative-sticky")]);
        assert_eq!(producer(&settings).get("group.id"), None);
        create_consumer(&settings, &Arc::default()).map(drop).unwrap();
        let wrong = |name: &str, member: Option<&str>| {
            let (state, member) = ("states".into(), member.map(str::to_owned));
            let group = Some(Group { name: name.to_owned(), state, member });
            Settings { group, ..Settings::default() }.check().map_err(|error| error.to_string())
        };
        assert!(wrong("", None).unwrap_err().contains("`group`"));
        assert!(wrong("a", Some("\n")).unwrap_err().contains("`member`"));
        assert_eq!(wrong("a", Some("b")), Ok(()));
    }
}
