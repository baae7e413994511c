//! Offers of the publishers of topics: their quality of service, and the hashes of their types in ROS 2.

use std::collections::{BTreeMap, HashMap};

use crate::address::Address;
use crate::dds;
use crate::ros2::qos::{Durability, Liveliness, Reliability};
use crate::ros2::{Entity, QosOverrides, TopicName, TypeHash};
use crate::zenoh;

/// Limit of known publishers.
const PUBLISHERS: usize = 65_536;
/// Limit of known topics, including those without publishers.
const TOPICS: usize = 65_536;

/// Offer of a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Offer {
    /// Quality of service; `None` for policies that the network does not announce, such as the history on DDS.
    pub qos: QosOverrides,
    /// Hash of its type in ROS 2, if it states one.
    pub type_hash: Option<TypeHash>,
}

/// The publishers on DDS and ROS 2 with their offers. A topic without publishers keeps the offer of the last one.
#[derive(Debug, Default)]
pub struct Offers {
    pub(crate) dds: Option<dds::Publishers>,
    pub(crate) zenoh: Option<zenoh::Ros2Publishers>,
    /// Whether topics of ROS 2 are on DDS.
    pub(crate) is_ros2_on_dds: bool,
    /// By names on DDS, and by names of ROS 2 over Zenoh.
    on_dds: Publishers,
    on_zenoh: Publishers,
}

impl Offers {
    /// Records the publishers that have appeared and left since the last call.
    pub fn look(&mut self) {
        let Offers { dds, zenoh, on_dds, on_zenoh, .. } = self;
        if let Some(dds) = dds {
            dds.look(|handle, endpoint, is_there| {
                let offer = endpoint.map(|endpoint| (offered_on_dds(&endpoint), endpoint.topic));
                on_dds.note(&handle.to_string(), offer, is_there);
            });
        }
        if let Some(zenoh) = zenoh {
            zenoh.look(|key, token, is_there| {
                let Entity::Publisher(endpoint) = token.entity else { return };
                let offer = Offer { qos: endpoint.qos.into(), type_hash: endpoint.hash };
                on_zenoh.note(key, Some((offer, endpoint.topic.to_string())), is_there);
            });
        }
    }

    /// Whether the publishers at an address are watched.
    pub fn is_watching(&self, address: &Address) -> bool {
        match address {
            Address::Dds(..) => self.dds.is_some(),
            Address::Ros2(..) if self.is_ros2_on_dds => self.dds.is_some(),
            Address::Ros2(..) => self.zenoh.is_some(),
            _ => false,
        }
    }

    /// Returns the offers of the publishers of a topic, as of the last [`look`](Offers::look), each offer once. `name`
    /// is the topic on the network if the address is a pattern.
    pub fn of(&self, address: &Address, name: Option<&str>) -> Vec<Offer> {
        match address {
            Address::Dds(topic, ..) => self.on_dds.of(name.unwrap_or(topic)),
            Address::Ros2(topic, _) => {
                let name = name.unwrap_or(topic.name.as_str());
                match (self.is_ros2_on_dds, TopicName::parse(name)) {
                    (true, Ok(name)) => self.on_dds.of(&name.dds()),
                    _ => self.on_zenoh.of(name),
                }
            }
            _ => Vec::new(),
        }
    }
}

/// The publishers of topics.
#[derive(Debug, Default)]
struct Publishers {
    topics: HashMap<String, Topic>,
    /// Topics of the existing publishers, by id.
    there: HashMap<String, String>,
}

/// The publishers of a topic.
#[derive(Debug, Default)]
struct Topic {
    there: BTreeMap<String, Offer>,
    left: Option<Offer>,
}

impl Publishers {
    /// Records that a publisher has appeared, with its topic, or left.
    fn note(&mut self, id: &str, appeared: Option<(Offer, String)>, is_there: bool) {
        if let Some((offer, topic)) = appeared {
            let has_room = self.there.len() < PUBLISHERS && self.topics.len() < TOPICS;
            if has_room || self.there.contains_key(id) {
                self.there.insert(id.to_owned(), topic.clone());
                self.topics.entry(topic).or_default().there.insert(id.to_owned(), offer);
            }
        }
        if !is_there
            && let Some(topic) = self.there.remove(id)
            && let Some(topic) = self.topics.get_mut(&topic)
        {
            topic.left = topic.there.remove(id);
        }
    }

    fn of(&self, topic: &str) -> Vec<Offer> {
        let Some(topic) = self.topics.get(topic) else { return Vec::new() };
        let mut all = Vec::new();
        for offer in topic.there.values() {
            if !all.contains(offer) {
                all.push(*offer);
            }
        }
        if all.is_empty() { topic.left.into_iter().collect() } else { all }
    }
}

fn offered_on_dds(endpoint: &dds::DiscoveredEndpoint) -> Offer {
    let qos = &endpoint.qos;
    let qos = QosOverrides {
        reliability: Some(match qos.reliability {
            dds::Reliability::Reliable => Reliability::Reliable,
            dds::Reliability::BestEffort => Reliability::BestEffort,
        }),
        durability: Some(match qos.durability {
            dds::Durability::Volatile => Durability::Volatile,
            // ROS 2 has no others; publishers keep their own last samples.
            _ => Durability::TransientLocal,
        }),
        history: None,
        depth: None,
        deadline: qos.deadline,
        lifespan: qos.lifespan,
        liveliness: Some(match qos.liveliness {
            dds::Liveliness::Automatic => Liveliness::Automatic,
            _ => Liveliness::ManualByTopic,
        }),
        lease: qos.lease,
    };
    let type_hash = endpoint.type_hash.as_deref().and_then(|hash| TypeHash::parse(hash).ok());
    Offer { qos, type_hash }
}

/// Returns the name of a topic of DDS in recordings of ROS 2; `None` if it is not one of ROS 2.
pub fn ros2_name(topic: &str) -> Option<String> {
    TopicName::from_dds(topic).map(|name| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ros2::Qos;

    fn offer(qos: Qos) -> Offer {
        Offer { qos: qos.into(), type_hash: None }
    }

    #[test]
    fn publishers_that_are_there_count_before_those_that_left() {
        let (usual, sensor) = (offer(Qos::DEFAULT), offer(Qos::SENSOR_DATA));
        let mut all = Publishers::default();
        assert_eq!(all.of("/odom"), []);
        for (id, offer) in [("a", usual), ("b", sensor), ("c", sensor)] {
            all.note(id, Some((offer, "/odom".to_owned())), true);
        }
        assert_eq!(all.of("/odom"), [usual, sensor]);
        all.note("a", None, false);
        assert_eq!(all.of("/odom"), [sensor]);
        all.note("b", None, false);
        all.note("c", None, false);
        all.note("c", None, false);
        assert_eq!((all.of("/odom"), all.there.len()), (vec![sensor], 0));
        // A publisher that came and left between two calls.
        all.note("d", Some((usual, "/odom".to_owned())), false);
        assert_eq!((all.of("/odom"), all.there.len()), (vec![usual], 0));
    }
}
