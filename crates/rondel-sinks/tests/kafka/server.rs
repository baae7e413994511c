//! A broker of Kafka, with the sinks that write to it.

use rondel_sinks::kafka::{KafkaOptions, KafkaSink};
use rondel_testkit::KafkaBroker;
use serde_json::Value;

use crate::messages::Broker;

pub(crate) const WITH_USERS: &str = KafkaBroker::WITH_USERS;

/// A running broker, killed on drop.
pub(crate) struct Server(KafkaBroker);

/// A record of a topic.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) partition: i64,
    pub(crate) key: String,
    pub(crate) headers: Value,
    pub(crate) data: String,
}

impl Stored {
    pub(crate) fn id(&self) -> String {
        self.headers["rondel-id"].as_str().unwrap_or_default().to_owned()
    }
}

impl Server {
    /// Starts a broker with further lines of configuration, as [`KafkaBroker::start`] does.
    pub(crate) fn start(test: &str, configuration: &str) -> Option<Server> {
        KafkaBroker::start(test, configuration).map(Server)
    }

    /// Sends the broker a signal, such as `STOP`.
    pub(crate) fn signal(&self, name: &str) {
        self.0.signal(name);
    }

    pub(crate) fn address(&self) -> String {
        self.0.address()
    }

    /// Creates a topic with settings such as `partitions=3`.
    #[track_caller]
    pub(crate) fn create(&self, topic: &str, settings: &[&str]) {
        self.0.create(topic, settings);
    }

    /// Returns the records of a topic, those of a partition in their order.
    #[track_caller]
    pub(crate) fn records(&self, topic: &str) -> Vec<Stored> {
        let record = |line: &String| {
            let value: Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| value[name].as_str().unwrap().to_owned();
            Stored {
                partition: value["partition"].as_i64().unwrap(),
                key: text("key"),
                headers: value["headers"].clone(),
                data: text("data"),
            }
        };
        self.0.records(topic).iter().map(record).collect()
    }

    pub(crate) fn options(&self, topic: &str, settings: &[(&str, &str)]) -> KafkaOptions {
        KafkaOptions {
            brokers: vec![self.address()],
            topic: topic.to_owned(),
            settings: settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        }
    }

    pub(crate) fn sink(&self, topic: &str, settings: &[(&str, &str)]) -> KafkaSink {
        KafkaSink::new(self.options(topic, settings)).unwrap()
    }
}

impl Broker for Server {
    fn kill(&mut self) {
        self.0.kill();
    }

    fn resume(&mut self) {
        self.0.resume();
    }

    fn place(&self) -> String {
        self.address()
    }
}
