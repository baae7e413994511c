//! Observation of every message on many topics, each with the name of its topic, to show the traffic of a network.
//!
//! A subscription delivers all messages of a pattern as one topic. An observation names the topic of each.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rondel_decode::schema::Schema;
use rondel_event::{Origin, Timestamp, TopicId};

use crate::adapter::{Sample, Subscription};
use crate::dds;
use crate::networks::Networks;
use crate::ros2::keys::DataKey;
use crate::ros2::{self, Graph};

/// A message with its topic.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The topic: a key on Zenoh, a name on DDS, MQTT and Kafka.
    pub topic: &'a str,
    /// The payload. On DDS a whole sample, with the four bytes of its encoding before it.
    pub payload: &'a [u8],
    /// Time of sending, if the network provides it.
    pub source_time: Option<Timestamp>,
    /// Publisher and sequence number, if messages carry them.
    pub origin: Option<Origin>,
}

/// Receiver of observed messages, called on the threads of the networks.
pub type Observer = Arc<dyn Fn(Observed<'_>) + Send + Sync>;

/// A running observation. Dropping it ends it.
#[derive(Default)]
pub struct Observation {
    _zenoh: Option<::zenoh::pubsub::Subscriber<()>>,
    _others: Vec<Box<dyn Subscription>>,
}

/// Limit of topics of DDS subscribed to.
const DDS_TOPICS: usize = 256;

impl Networks {
    /// Observes the keys that match a key expression of Zenoh.
    ///
    /// # Errors
    /// The reason.
    pub fn observe_zenoh(&self, key: &str, observer: &Observer) -> Result<Observation, String> {
        let session = self.zenoh.as_ref().ok_or("Zenoh was not joined")?;
        let zenoh = session.observe(key, Arc::clone(observer)).map_err(|error| error.to_string())?;
        Ok(Observation { _zenoh: Some(zenoh), _others: Vec::new() })
    }

    /// Observes the topics that match a filter of MQTT.
    ///
    /// # Errors
    /// The reason.
    pub fn observe_mqtt(&self, filter: &str, observer: &Observer) -> Result<Observation, String> {
        let (session, _) = self.mqtt.as_ref().ok_or("MQTT was not joined")?;
        let made = session.observe(filter, Arc::clone(observer)).map_err(|error| error.to_string())?;
        Ok(Observation { _zenoh: None, _others: vec![Box::new(made)] })
    }

    /// Observes the topics of Kafka that match a pattern with `*` and `?`, and that exist now.
    ///
    /// # Errors
    /// The reason.
    pub fn observe_kafka(&self, pattern: &str, observer: &Observer) -> Result<Observation, String> {
        let session = self.kafka.as_ref().ok_or("Kafka was not joined")?;
        let others = session.observe(pattern, observer).map_err(|error| error.to_string())?;
        Ok(Observation { _zenoh: None, _others: others })
    }

    /// Observes the publishers of a list on DDS, each topic with the type of its first publisher, except the `known`
    /// topics, to which it adds those of the list. Also returns the topics that cannot be observed, with the reason.
    pub fn observe_dds(
        &self,
        endpoints: &[dds::DiscoveredEndpoint],
        known: &mut BTreeSet<String>,
        observer: &Observer,
    ) -> (Observation, Vec<(String, String)>) {
        let (mut observation, mut failed) = (Observation::default(), Vec::new());
        let Some(participant) = &self.dds else { return (observation, failed) };
        for endpoint in endpoints.iter().filter(|endpoint| endpoint.publishes) {
            let topic = &endpoint.topic;
            if !known.insert(topic.clone()) {
                continue;
            }
            if known.len() > DDS_TOPICS {
                failed.push((topic.clone(), format!("only {DDS_TOPICS} topics of DDS are subscribed to")));
                continue;
            }
            let raw = dds::RawType { name: Some(endpoint.type_name.clone()), keyed: Some(endpoint.keyed) };
            let (observer, name) = (Arc::clone(observer), topic.clone());
            let receiver = move |_: TopicId, samples: &[Sample<'_>]| {
                for sample in samples {
                    let (source_time, origin) = (sample.source_time, sample.origin);
                    observer(Observed { topic: &name, payload: sample.payload, source_time, origin });
                }
            };
            let (topic_type, qos) = (dds::TopicType::Raw(raw), dds::TopicQos::default());
            let of = dds::DeclaredTopic { topic_type: &topic_type, qos: &qos, schema: None };
            match participant.subscribe_as(topic, of, TopicId(0), Arc::new(receiver)) {
                Ok(made) => observation._others.push(Box::new(made)),
                Err(error) => failed.push((topic.clone(), error.to_string())),
            }
        }
        (observation, failed)
    }

    /// Returns the graph of a domain of ROS 2 over Zenoh, as far as it becomes known within `limit`.
    ///
    /// # Errors
    /// The reason.
    pub fn ros2_graph(&self, domain: u32, limit: Duration) -> Result<Graph, String> {
        let graph = self.zenoh.as_ref().map(|session| session.ros2_graph(domain, limit));
        graph.transpose().map(Option::unwrap_or_default).map_err(|error| error.to_string())
    }

    /// Returns the type of messages on a key of ROS 2 over Zenoh, described by the node of a publisher within `limit`;
    /// `None` without a description.
    ///
    /// # Errors
    /// The reason.
    pub fn ros2_type(&self, key: &DataKey, limit: Duration) -> Result<Option<Schema>, String> {
        let Some(session) = &self.zenoh else { return Ok(None) };
        let found = session.ros2_type(key.domain, &key.topic, Some(&key.message_type), limit, |_| true);
        Ok(found.map_err(|error| error.to_string())?.and_then(|found| found.schema.ok()))
    }

    /// Waits up to `limit` for a connection of Zenoh. Returns whether there is one.
    pub fn wait_zenoh(&self, limit: Duration) -> bool {
        self.zenoh.as_ref().is_some_and(|session| session.wait_connected(limit))
    }
}

/// Returns the topic and the type in ROS 2 of a topic of DDS, if it is one.
pub fn ros2_on_dds(topic: &str, type_name: &str) -> Option<(ros2::TopicName, ros2::MessageType)> {
    Some((ros2::TopicName::from_dds(topic)?, ros2::MessageType::from_dds(type_name)?))
}

/// Whether a name on DDS matches a pattern with `*` and `?`.
pub fn matches_dds(pattern: &str, name: &str) -> bool {
    dds::fits(pattern, name)
}
