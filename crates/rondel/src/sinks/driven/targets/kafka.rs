//! Topics of Kafka.

use rondel_sinks::Sink;

use super::Pair;

/// A topic of Kafka.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaTarget {
    /// Addresses of brokers.
    pub brokers: Vec<String>,
    /// The topic.
    pub topic: String,
    /// Further settings of the client.
    pub settings: Vec<Pair>,
}

impl KafkaTarget {
    #[cfg(feature = "kafka")]
    pub(super) fn sink(&self) -> Result<Box<dyn Sink>, String> {
        use rondel_sinks::kafka::{KafkaOptions, KafkaSink};
        let sink = KafkaSink::new(KafkaOptions {
            brokers: self.brokers.clone(),
            topic: self.topic.clone(),
            settings: super::pairs(&self.settings),
        })?;
        Ok(Box::new(sink))
    }

    #[cfg(not(feature = "kafka"))]
    pub(super) fn sink(&self) -> Result<Box<dyn Sink>, String> {
        Err(super::KINDS[2].unavailable())
    }
}
