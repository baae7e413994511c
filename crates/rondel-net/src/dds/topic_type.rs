//! Type of a topic for a subscription or a publisher.

use super::StringType;

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
