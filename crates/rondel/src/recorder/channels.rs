//! Topics as recordings describe them: name, encoding, definition of the type, and what their publishers offer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rondel_decode::{Encoding, MessageType};
use rondel_net::offers::{Offer, Offers, ros2_name};
use rondel_net::ros2::{Qos, QosOverrides, qos};
use rondel_recording::RecordedSchema;

use crate::deployment::{Address, Binding};
use crate::schemas::offered::{PROFILES, TYPE_HASH, written};

/// Metadata of a topic in recordings of Rondel: its address.
pub const ADDRESS: &str = "rondel.address";

/// Time after the start of a recording for the network to report the publisher of received messages.
const OFFER_WAIT: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_millis(10);

/// A topic as a recording describes it.
#[derive(Clone, Debug)]
pub struct Channel {
    /// The name of the topic.
    pub name: String,
    /// The encoding of its messages, as recordings call it.
    pub encoding: &'static str,
    /// The definition of their type, if it is known and can be written.
    pub schema: Option<Arc<RecordedSchema>>,
    /// Further metadata.
    pub metadata: Vec<(String, String)>,
    /// Its place on the network.
    source: Option<Source>,
}

/// A topic on a network.
#[derive(Clone, Debug)]
struct Source {
    address: Address,
    /// Its name, if the address is a pattern.
    name: Option<String>,
    /// The hash of its type in ROS 2.
    type_hash: Option<String>,
}

impl Channel {
    /// The topic of a source. A topic of ROS 2 on DDS has its name in ROS 2: `/odom` for `dds:rt/odom`.
    pub fn of(binding: &Binding) -> Channel {
        let text = binding.address.to_string();
        let name = text.split_once(':').map_or(text.as_str(), |(_, name)| name).to_owned();
        let encoding = match binding.input.encoding {
            Encoding::Flatbuffers => "flatbuffer",
            other => other.name(),
        };
        let message_type = binding.input.message_type.as_deref();
        let type_hash = message_type.and_then(hash);
        let schema = message_type.and_then(schema).map(Arc::new);
        let metadata = vec![(ADDRESS.to_owned(), text)];
        let source = Some(Source { address: binding.address.clone(), name: None, type_hash });
        let mut channel = Channel { name, encoding, schema, metadata, source };
        channel.name = channel.recorded(&channel.name);
        channel
    }

    /// A topic that is on no network.
    pub fn own(name: &str, schema: RecordedSchema) -> Channel {
        let (name, schema) = (name.to_owned(), Some(Arc::new(schema)));
        Channel { name, encoding: "json", schema, metadata: Vec::new(), source: None }
    }

    /// Whether it stands for all topics that match a pattern.
    pub fn is_pattern(&self) -> bool {
        self.name.contains(['*', '+', '#', '?', '{'])
    }

    /// The same for publishers with another type; `None` if theirs is not known.
    pub fn typed(&self, of: Option<&MessageType>) -> Channel {
        let source = self.source.clone().map(|source| Source { type_hash: of.and_then(hash), ..source });
        Channel { schema: of.and_then(schema).map(Arc::new), source, ..self.clone() }
    }

    /// The same for another topic, by its name on the network.
    pub fn named(&self, name: &str) -> Channel {
        let is_of_ros2 = matches!(&self.source, Some(Source { address: Address::Ros2(..), .. }));
        // Keys of Zenoh begin without one.
        let with_slash = (is_of_ros2 && !name.starts_with('/')).then(|| format!("/{name}"));
        let name = with_slash.as_deref().unwrap_or(name);
        let source = self.source.clone().map(|source| Source { name: Some(name.to_owned()), ..source });
        Channel { name: self.recorded(name), source, ..self.clone() }
    }

    /// Whether its messages are those of ROS 2.
    pub fn is_ros2(&self) -> bool {
        self.schema.as_ref().is_some_and(|schema| schema.encoding.starts_with("ros2"))
    }

    /// The name in the recording of a topic on the network.
    fn recorded(&self, name: &str) -> String {
        let is_dds = matches!(&self.source, Some(Source { address: Address::Dds(..), .. }));
        let own = if is_dds && self.is_ros2() { ros2_name(name) } else { None };
        own.unwrap_or_else(|| name.to_owned())
    }

    /// Returns the metadata of the topic with the offers of its publishers, which the network reports until a second after
    /// `start`.
    pub fn noted(&self, offers: &mut Offers, start: Instant) -> Vec<(String, String)> {
        let mut metadata = self.metadata.clone();
        let Some(Source { address, name, type_hash }) = &self.source else { return metadata };
        let mut found = offers.of(address, name.as_deref());
        while found.is_empty() && offers.is_watching(address) && start.elapsed() < OFFER_WAIT {
            std::thread::sleep(AGAIN);
            offers.look();
            found = offers.of(address, name.as_deref());
        }
        let mut profiles: Vec<QosOverrides> = found.iter().map(|offer| offer.qos).collect();
        if profiles.is_empty() {
            profiles.extend(wanted(address));
        }
        let mut different = Vec::new();
        for profile in profiles {
            if !different.contains(&profile) {
                different.push(profile);
            }
        }
        if !different.is_empty() {
            metadata.push((PROFILES.to_owned(), written(&different)));
        }
        let stated = found.iter().find_map(|Offer { type_hash, .. }| type_hash.map(|hash| hash.to_string()));
        if let Some(hash) = stated.or_else(|| type_hash.clone()) {
            metadata.push((TYPE_HASH.to_owned(), hash));
        }
        metadata
    }
}

/// The quality of service that a deployment sets for a topic: it is that of the publishers as far as is known.
fn wanted(address: &Address) -> Option<QosOverrides> {
    let set = match address {
        Address::Ros2(topic, _) => topic.qos,
        Address::Dds(_, _, qos) => QosOverrides {
            reliability: qos.reliability.map(|reliability| match reliability {
                rondel_net::dds::Reliability::Reliable => qos::Reliability::Reliable,
                rondel_net::dds::Reliability::BestEffort => qos::Reliability::BestEffort,
            }),
            durability: qos.durability.map(|durability| match durability {
                rondel_net::dds::Durability::Volatile => qos::Durability::Volatile,
                _ => qos::Durability::TransientLocal,
            }),
            depth: qos.depth.map(u64::from),
            deadline: qos.deadline,
            lease: qos.lease,
            ..QosOverrides::default()
        },
        _ => return None,
    };
    (set != QosOverrides::default()).then(|| Qos::DEFAULT.with(&set).into())
}

/// The hash of a type of ROS 2.
fn hash(of: &MessageType) -> Option<String> {
    match of {
        MessageType::Cdr(schema) if schema.ros_name().is_some() => schema.rihs01(),
        _ => None,
    }
}

/// Returns the definition of a type in a language of recordings, if one can express it.
fn schema(of: &MessageType) -> Option<RecordedSchema> {
    let (name, encoding, data) = match of {
        MessageType::Cdr(schema) => match (schema.ros_name(), schema.to_msg()) {
            (Some(name), Some(text)) => (name, "ros2msg", text.into_bytes()),
            _ => (schema.name().to_owned(), "omgidl", schema.to_idl()?.into_bytes()),
        },
        MessageType::Protobuf(of) => (of.name().to_owned(), "protobuf", of.source().to_vec()),
        MessageType::Flatbuffers(of) => (of.name().to_owned(), "flatbuffer", of.source().to_vec()),
        MessageType::Avro(of) => (of.name().to_owned(), "avro", of.source().to_vec()),
        _ => return None,
    };
    Some(RecordedSchema { name, encoding: encoding.to_owned(), data })
}
