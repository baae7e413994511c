//! MQTT 3.1.1 and 5 client: subscriptions and publishers at one broker.
//!
//! Path of a message: the connection's thread reads a chunk from the broker, calls the
//! [`Receiver`](crate::adapter::Receiver) with each message in it (borrowed from the read buffer),
//! reports idle, and only then acknowledges. A receiver that blocks therefore holds the broker back,
//! and every acknowledged message has been processed. Publishers use a second connection, so that
//! their acknowledgements arrive while the first connection waits for a receiver.

mod connection;
mod flight;
mod held;
mod incoming;
mod link;
mod outgoing;
mod packet;
mod publisher;
mod session;
mod settings;
mod subscription;
mod topic;

pub use publisher::Publisher;
pub use session::{Acknowledgements, Session};
pub use settings::{Broker, Password, PublisherSettings, Qos, Settings, SubscriptionSettings, Tls, Version};
pub use subscription::Subscription;
pub use topic::{check_filter, check_topic, filters_meet, is_single};

/// Error of connecting to a broker.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A text is no address of a broker.
    #[error("'{0}' is not an MQTT broker; write HOST:PORT, mqtt://HOST:PORT or, with TLS, mqtts://HOST:PORT")]
    Broker(String),
    /// The port of a broker does not exist.
    #[error("the port of the broker '{broker}' is wrong: port {port} is not between 1 and 65535")]
    Port {
        /// The broker as it was given.
        broker: String,
        /// Its port.
        port: String,
    },
    /// Settings are invalid.
    #[error("{0}")]
    Setting(String),
    /// A certificate, key or password file or an environment variable cannot be used.
    #[error("cannot use {what}: {reason}")]
    Secret {
        /// The file or environment variable.
        what: String,
        /// The reason.
        reason: String,
    },
    /// The broker does not answer; a later attempt may succeed.
    #[error("cannot reach MQTT broker {broker}: {reason}")]
    Unreachable {
        /// The broker's address.
        broker: String,
        /// The reason.
        reason: String,
    },
    /// The broker rejects this client, or its certificate is not trusted.
    #[error("MQTT broker {broker} refuses the connection: {reason}")]
    Refused {
        /// The broker's address.
        broker: String,
        /// The broker's reason, or the problem with its certificate.
        reason: String,
    },
}

/// Error of creating a subscription or a publisher.
#[derive(Debug, thiserror::Error)]
pub enum DeclareError {
    /// A text is no topic, or no filter.
    #[error("'{topic}' is not an MQTT topic: {reason}")]
    Topic {
        /// The text.
        topic: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// The broker refused or cannot be reached.
    #[error("{0}")]
    Network(String),
}
