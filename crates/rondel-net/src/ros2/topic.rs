//! Topics of ROS 2 in addresses.

use rondel_decode::schema::Library;

use super::qos::{Durability, Reliability};
use super::{Endpoint, MessageType, Middleware, NodeName, Qos, QosOverrides, Ros2Error, TopicName, TypeHash};

/// Type of topics with text.
const TEXT: &str = "std_msgs/msg/String";
/// Its hash.
const TEXT_HASH: &str = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";

/// Type of verdicts.
const VERDICT: &str = "rondel_msgs/msg/Verdict";
/// Number of verdicts kept for later subscriptions.
const KEPT_VERDICTS: u64 = 100;
/// Type of topics named `diagnostics`.
const DIAGNOSTICS: &str = "diagnostic_msgs/msg/DiagnosticArray";

/// A topic, with its type and quality of service as far as known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Topic {
    /// The name.
    pub name: TopicName,
    /// Type; without it, a subscription on DDS takes over that of the first publisher.
    pub message_type: Option<MessageType>,
    /// Hash of the type. Messages with another hash are not read; without it, messages with any hash are.
    pub hash: Option<TypeHash>,
    /// Quality of service where it differs from that of the publishers; for a publisher, where it differs from the
    /// profile `default`.
    pub qos: QosOverrides,
    /// Transport of the messages, once known.
    pub middleware: Option<Middleware>,
}

impl Topic {
    /// Parses a name relative to the node `/rondel`; see [`TopicName::resolve_pattern`].
    ///
    /// # Errors
    /// [`Ros2Error`] with the mistake.
    pub fn parse(text: &str) -> Result<Topic, Ros2Error> {
        let name = TopicName::resolve_pattern(text, &NodeName::new("/", "rondel")?)?;
        let (message_type, hash, qos, middleware) = Default::default();
        Ok(Topic { name, message_type, hash, qos, middleware })
    }

    /// Returns the topic with this type.
    pub fn typed(self, message_type: MessageType, hash: Option<TypeHash>) -> Topic {
        Topic { message_type: Some(message_type), hash, ..self }
    }

    /// Returns the topic with the type of text, unless it has a type.
    ///
    /// # Errors
    /// None: a test parses the name and the hash.
    pub fn of_text(self) -> Result<Topic, Ros2Error> {
        match self.message_type {
            Some(_) => Ok(self),
            None => Ok(self.typed(MessageType::parse(TEXT)?, Some(TypeHash::parse(TEXT_HASH)?))),
        }
    }

    /// Returns the topic with the type and the quality of service of verdicts: a topic named `diagnostics`, in any
    /// namespace, has diagnostics, every other one verdicts.
    ///
    /// # Errors
    /// None: a test parses the names and definitions of the types.
    pub fn of_verdicts(self) -> Result<Topic, Ros2Error> {
        let is_diagnostics = self.name.as_str().rsplit('/').next() == Some("diagnostics");
        let name = if is_diagnostics { DIAGNOSTICS } else { VERDICT };
        let schema = Library::ros().and_then(|library| library.schema(name));
        let schema = schema.map_err(|error| Ros2Error::new(name, "a known type", error.to_string()))?;
        let hash = schema.rihs01().map(|hash| TypeHash::parse(&hash)).transpose()?;
        let topic = self.typed(MessageType::parse(name)?, hash);
        if is_diagnostics {
            return Ok(topic);
        }
        let qos = QosOverrides {
            reliability: Some(Reliability::Reliable),
            durability: Some(Durability::TransientLocal),
            depth: Some(KEPT_VERDICTS),
            ..topic.qos
        };
        Ok(Topic { qos, ..topic })
    }

    /// Returns the endpoint on Zenoh, with this profile for unset policies.
    ///
    /// # Errors
    /// The type is missing, which is part of the keys of messages.
    pub fn endpoint(&self, profile: Qos) -> Result<Endpoint, String> {
        let message_type = self.message_type.clone();
        let message_type =
            message_type.ok_or("over Zenoh, the type of a topic must be known: name it with `type:`")?;
        Ok(Endpoint { topic: self.name.clone(), message_type, hash: self.hash, qos: profile.with(&self.qos) })
    }

    /// Returns the type on DDS. The network itself reads and writes text there.
    #[cfg(all(feature = "dds", feature = "mqtt", feature = "zenoh"))]
    pub fn dds_type(&self, encoding: crate::address::Encoding) -> crate::dds::TopicType {
        use crate::dds::{RawType, StringType, TopicType};
        let name = self.message_type.as_ref().map(MessageType::dds);
        match (encoding, name) {
            (crate::address::Encoding::CdrString, Some(name)) => {
                TopicType::Text(StringType { name, ..StringType::default() })
            }
            (crate::address::Encoding::CdrString, None) => TopicType::default(),
            // Types of ROS 2 have no keys.
            (_, name) => TopicType::Raw(RawType { name, keyed: Some(false) }),
        }
    }

    /// Returns the quality of service on DDS, as far as it is set.
    #[cfg(feature = "dds")]
    pub fn dds_qos(&self) -> crate::dds::TopicQos {
        self.qos.on_dds()
    }

    /// Whether this middleware may carry the messages.
    pub fn may_be_on(&self, middleware: Middleware) -> bool {
        self.middleware.is_none_or(|own| own == middleware)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_a_type() {
        let topic = Topic::parse("chatter").unwrap().of_text().unwrap();
        assert_eq!(topic.name.as_str(), "/chatter");
        assert_eq!(topic.clone().of_text().unwrap(), topic);
        let library = rondel_decode::schema::Library::ros().unwrap();
        let hash = library.schema(TEXT).unwrap().rihs01().unwrap();
        assert_eq!(topic.hash.unwrap().to_string(), hash);
        assert_eq!(Topic::parse("~/verdict").unwrap().name.as_str(), "/rondel/verdict");
        assert!(topic.may_be_on(Middleware::Zenoh) && topic.may_be_on(Middleware::Dds));
    }
}
