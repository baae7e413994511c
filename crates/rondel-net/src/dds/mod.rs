//! DDS with CycloneDDS: participants, subscriptions and publishers of strings, and of samples of any type.
//!
//! Path of a sample: CycloneDDS's receive thread puts it into the reader's cache and acknowledges it.
//! The subscription's own thread takes up to 64 samples at a time, calls the
//! [`Receiver`](crate::adapter::Receiver), and reports idle when the cache is empty. The receiver cannot
//! run on CycloneDDS's thread: a writer that waits for acknowledgements would wait for the thread that
//! reads them.
//!
//! All `unsafe` code of this crate is in this module: calls into the C library, each with the reason why
//! it is sound.

mod announced_node;
mod awaiting;
mod base;
mod declared;
mod described;
mod discovery;
mod domain;
mod dynamic;
mod entity;
mod further;
mod history;
mod instances;
mod matches;
mod matching;
mod missed;
mod offered;
mod owners;
mod participant;
mod published;
mod publisher;
mod publishers;
mod refused;
mod security;
mod service;
mod settings;
mod slow;
mod subscription;
mod taken;
mod topic;
mod topic_qos;
mod topic_type;
mod unacknowledged;
mod worker;

pub use discovery::{DiscoveredEndpoint, DiscoveredType, Publishers};
#[cfg(all(feature = "mqtt", feature = "zenoh"))]
pub(crate) use matching::fits;
pub use matching::{Matching, Selected, names_meet};
pub use offered::OfferedQos;
pub use participant::{OpenError, Participant};
pub use publisher::Publisher;
pub use security::{Protection, Security, SecurityError};
pub use service::DdsServiceClient;
pub use settings::{Extensibility, PublisherSettings, Settings, StringType};
pub use subscription::Subscription;
pub use topic_qos::{Durability, Liveliness, Ownership, Reliability, TopicQos};
pub use topic_type::{DeclaredTopic, RawType, TopicType};

/// Error of creating a subscription or a publisher.
#[derive(Debug, thiserror::Error)]
pub enum DeclareError {
    /// A name that DDS does not allow, or one that contains a zero byte.
    #[error(
        "'{0}' is not a DDS name: use letters, digits, `_`, `/`, `-`, `.` and `:`, and do not begin with a digit"
    )]
    Name(String),
    /// A quality of service that contradicts itself.
    #[error("wrong quality of service: {0}")]
    Qos(String),
    /// CycloneDDS refused.
    #[error("cannot create the {what}: {reason}")]
    Network {
        /// The object that could not be created.
        what: &'static str,
        /// CycloneDDS's reason.
        reason: String,
    },
    /// The participant is closed.
    #[error("the DDS participant is closed")]
    Closed,
}

/// Checks a topic name without a participant: letters, digits, `_`, `/`, `-`, `.` and `:`, not
/// beginning with a digit.
///
/// # Errors
/// [`DeclareError::Name`].
pub fn check_topic(name: &str) -> Result<(), DeclareError> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(is_of_name) {
        return Err(DeclareError::Name(name.to_owned()));
    }
    Ok(())
}

/// Checks a pattern of topic names without a participant: a name in which `*` matches any number of characters and `?`
/// matches one.
///
/// # Errors
/// [`DeclareError::Name`].
pub fn check_pattern(pattern: &str) -> Result<(), DeclareError> {
    let good = |c: char| is_of_name(c) || is_wild(c);
    if pattern.is_empty() || pattern.starts_with(|c: char| c.is_ascii_digit()) || !pattern.chars().all(good) {
        return Err(DeclareError::Name(pattern.to_owned()));
    }
    Ok(())
}

/// Whether the text has wildcards and so is a pattern of names.
pub fn is_pattern(name: &str) -> bool {
    name.contains(is_wild)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '-' | '.' | ':')
}

fn is_wild(c: char) -> bool {
    matches!(c, '*' | '?')
}
