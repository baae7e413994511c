//! Type of a topic for a subscription or a publisher.

use rondel_decode::schema::Schema;

use super::{StringType, TopicQos};

/// Form of the samples of a topic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TopicType {
    /// A structure with one string: a payload is the text in it.
    Text(StringType),
    /// Any type: a payload is the whole serialised sample, with the four bytes of its encoding before it.
    Raw(RawType),
}

/// A type whose serialised samples are passed on unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RawType {
    /// Name with its modules, such as `geometry_msgs::msg::dds_::PoseStamped_`. By default that of the first
    /// publisher that is discovered; publishers need one.
    pub name: Option<String>,
    /// Whether the type has a key, if no publisher describes the type. By default determined by the first discovered
    /// publisher; for publishers `false`.
    pub keyed: Option<bool>,
}

/// A topic as a subscription or a publisher declares it.
#[derive(Clone, Copy, Debug)]
pub struct DeclaredTopic<'a> {
    /// Form of the samples, with the name of the type.
    pub topic_type: &'a TopicType,
    /// Quality of service.
    pub qos: &'a TopicQos,
    /// The type itself, if it is known.
    pub schema: Option<&'a Schema>,
}

impl TopicType {
    /// Returns the name of the type, if it is set.
    pub fn name(&self) -> Option<&str> {
        match self {
            TopicType::Text(text) => Some(&text.name),
            TopicType::Raw(raw) => raw.name.as_deref(),
        }
    }

    /// Returns whether payloads are serialised samples.
    pub fn is_raw(&self) -> bool {
        matches!(self, TopicType::Raw(_))
    }
}

impl Default for TopicType {
    fn default() -> TopicType {
        TopicType::Text(StringType::default())
    }
}
