//! Kafka client: subscriptions to topics and publishers on them.
//!
//! Path of a message: one thread polls the client, holds a lock while it calls the
//! [`Receiver`](crate::adapter::Receiver) with the records that the client has fetched (borrowed from its buffers), and
//! reports idle once there are no more. A receiver that blocks therefore stops the fetching, whose buffers are bounded,
//! and records stay with the broker. Without a group in the settings, the client assigns itself all partitions, and where
//! it goes on is part of the snapshot of the receiver ([`Session::freeze`]), never of the broker. The member of a group has
//! some partitions, and where it goes on is part of the state of each ([`PartitionStates`](crate::adapter::PartitionStates)).
//!
//! Without the feature `kafka`, addresses and settings are read and no session can be opened.

#[cfg(not(feature = "kafka"))]
mod absent;
#[cfg(feature = "kafka")]
mod changes;
#[cfg(feature = "kafka")]
mod client;
#[cfg(feature = "kafka")]
mod dead_letters;
#[cfg(feature = "kafka")]
mod filter;
#[cfg(feature = "kafka")]
mod flight;
#[cfg(feature = "kafka")]
mod group;
#[cfg(feature = "kafka")]
mod incoming;
#[cfg(feature = "kafka")]
mod looking;
mod marks;
#[cfg(feature = "kafka")]
mod outgoing;
#[cfg(feature = "kafka")]
mod partitions;
mod place;
#[cfg(feature = "kafka")]
mod positions;
#[cfg(feature = "kafka")]
mod reading;
#[cfg(feature = "kafka")]
mod routes;
mod selection;
#[cfg(feature = "kafka")]
mod session;
mod settings;
#[cfg(feature = "kafka")]
mod subscription;
#[cfg(all(test, feature = "kafka"))]
mod tests;
#[cfg(feature = "kafka")]
mod watch;

#[cfg(not(feature = "kafka"))]
pub use absent::{Session, partition_marks, read_selection};
#[cfg(feature = "kafka")]
pub use group::partition_marks;
pub use marks::{join, split};
pub use place::{Place, check_topic, places_meet, without_key};
#[cfg(feature = "kafka")]
pub use reading::read_selection;
pub use selection::{SelectedRecord, Selection, SelectionCounts, parse_offsets};
#[cfg(feature = "kafka")]
pub use session::Session;
pub use settings::{Group, Settings, Start, read_settings};

/// Whether this program can join Kafka.
pub const IS_AVAILABLE: bool = cfg!(feature = "kafka");

/// Error message of a program that cannot join Kafka.
pub const UNAVAILABLE: &str = "this Rondel is built without Kafka: build it with the feature `kafka`";

/// Error of connecting to Kafka.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Settings are invalid, or the program is built without Kafka.
    #[error("{0}")]
    Setting(String),
    /// No broker answers; a later attempt may succeed.
    #[error("cannot reach Kafka at {brokers}: {reason}")]
    Unreachable {
        /// The addresses of the brokers.
        brokers: String,
        /// The reason.
        reason: String,
    },
}

/// Error of creating a subscription or a publisher.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeclareError {
    /// A text is no topic of Kafka.
    #[error("{0}")]
    Topic(String),
    /// The brokers refuse it.
    #[error("{0}")]
    Network(String),
}
