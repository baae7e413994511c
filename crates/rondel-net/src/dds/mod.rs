//! DDS, by CycloneDDS: participants, subscriptions and publishers of strings.
//!
//! The path of a sample is: CycloneDDS's receive thread, which puts it into the reader's cache and
//! acknowledges it; the subscription's own thread, which takes up to 64 at a time, calls the
//! [`Receiver`](crate::adapter::Receiver), and tells it when nothing more is there. To publish from CycloneDDS's own thread would be a
//! deadlock: a writer that waits for acknowledgements would wait for the thread that reads them.
//!
//! Nearly all `unsafe` code of this crate is in here: calls into the C library, each with the reason
//! why it is sound. The rest is one read of a word in `json/shape.rs`.

mod domain;
mod entity;
mod matching;
mod participant;
mod publisher;
mod publishers;
mod settings;
mod subscription;
mod topic;

pub use matching::Matching;
pub use participant::{OpenError, Participant};
pub use publisher::Publisher;
pub use settings::{Extensibility, PublisherSettings, Settings, StringType};
pub use subscription::Subscription;

/// Why a subscription or a publisher could not be made.
#[derive(Debug, thiserror::Error)]
pub enum DeclareError {
    /// A name that DDS does not allow, or one that contains a zero byte.
    #[error(
        "'{0}' is not a DDS name: use letters, digits, `_`, `/`, `-`, `.` and `:`, and do not begin with a digit"
    )]
    Name(String),
    /// The library refused.
    #[error("{what}: {reason}")]
    Network {
        /// What was being done.
        what: &'static str,
        /// What the library says.
        reason: String,
    },
    /// The participant is closed.
    #[error("closed")]
    Closed,
}

/// Checks the name of a topic without a participant: letters, digits, `_`, `/`, `-`, `.` and `:`, not
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

/// Checks a pattern of names of topics without a participant: as a name, but `*` stands for any characters, or none,
/// and `?` for one.
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

/// Whether it is a pattern of names rather than a name.
pub fn is_pattern(name: &str) -> bool {
    name.contains(is_wild)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '-' | '.' | ':')
}

fn is_wild(c: char) -> bool {
    matches!(c, '*' | '?')
}
