//! ROS 2 without ROS: names, types, quality of service, settings, and the formats of rmw_zenoh.
//!
//! This module does no I/O. Over Zenoh, [`crate::zenoh`] subscribes and publishes in the formats of rmw_zenoh; over
//! DDS, [`crate::dds`] uses the names that [`TopicName::dds`] and [`MessageType::dds`] return.

pub mod attachment;
pub mod clock;
pub mod discovery;
pub mod environment;
pub mod graph;
pub mod keys;
pub mod names;
pub mod qos;
pub mod service;
pub mod token;
mod topic;
pub mod types;

pub use attachment::Attachment;
pub use environment::{DiscoveryRange, Middleware, Settings, domain_of};
pub use graph::Graph;
pub use names::{NodeName, TopicName};
pub use qos::{Qos, QosOverrides};
pub use service::{Service, ServiceType};
pub use token::{Endpoint, Entity, Token};
pub use topic::Topic;
pub use types::{MessageType, TypeHash};

/// A text that ROS 2 does not allow in its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not {expected}: {reason}{}", hint(.suggestion.as_deref()))]
pub struct Ros2Error {
    /// The text.
    pub text: String,
    /// Expected kind of text, such as `a ROS 2 topic name`.
    pub expected: &'static str,
    /// The mistake.
    pub reason: String,
    /// A similar valid text.
    pub suggestion: Option<String>,
}

impl Ros2Error {
    fn new(text: &str, expected: &'static str, reason: impl Into<String>) -> Ros2Error {
        // A text from the network may have any length.
        let text = text.chars().take(LONGEST_SHOWN).collect();
        Ros2Error { text, expected, reason: reason.into(), suggestion: None }
    }

    fn suggest(self, suggestion: Option<String>) -> Ros2Error {
        Ros2Error { suggestion, ..self }
    }
}

/// Maximum number of characters of a text shown in an error.
const LONGEST_SHOWN: usize = 300;

fn hint(suggestion: Option<&str>) -> String {
    suggestion.map(|text| format!("; did you mean '{text}'?")).unwrap_or_default()
}

/// Returns the most similar one of several names, if any is similar.
fn nearest(text: &str, names: &[&str]) -> Option<String> {
    // Comparing long texts takes long.
    let text: String = text.chars().take(LONGEST_SHOWN).collect::<String>().to_ascii_lowercase();
    let likeness = |name: &str| strsim::jaro_winkler(&text, &name.to_ascii_lowercase());
    let best = names.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) > 0.8).then(|| (*best).to_owned())
}

/// Parses one of several names.
fn named<T: Copy>(text: &str, expected: &'static str, names: &[(&str, T)]) -> Result<T, Ros2Error> {
    names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        let all: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        let reason = format!("the names are: {}", all.join(", "));
        Ros2Error::new(text, expected, reason).suggest(nearest(text, &all))
    })
}
