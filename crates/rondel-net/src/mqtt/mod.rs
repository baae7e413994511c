//! MQTT 3.1.1 and 5: a client of a broker, with subscriptions and publishers.
//!
//! The path of a message is: the thread of the connection reads what the broker sent, calls the
//! [`Receiver`](crate::adapter::Receiver) with each message in it, borrowed from where it was read,
//! tells the receiver that nothing more waits, and only then acknowledges. So a receiver that blocks
//! holds the broker back, and what is acknowledged has been taken. What is published goes over a
//! connection of its own: its acknowledgements come while the other one waits for a receiver.

mod connection;
mod flight;
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
pub use session::Session;
pub use settings::{Broker, Password, PublisherSettings, Qos, Settings, SubscriptionSettings, Tls, Version};
pub use subscription::Subscription;
pub use topic::{check_filter, check_topic, filters_meet, is_single};

/// Why a broker could not be joined.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A text that names no broker.
    #[error("'{0}' is not an MQTT broker; write HOST:PORT, mqtt://HOST:PORT or, with TLS, mqtts://HOST:PORT")]
    Broker(String),
    /// A broker with a port that does not exist.
    #[error("the port of the broker '{broker}' is wrong: port {port} is not between 1 and 65535")]
    Port {
        /// The broker as it was given.
        broker: String,
        /// Its port.
        port: String,
    },
    /// Settings that cannot be.
    #[error("{0}")]
    Setting(String),
    /// A file or an environment variable that cannot be used.
    #[error("{what}: {reason}")]
    Secret {
        /// Which.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The broker does not answer. Worth trying again.
    #[error("cannot reach the MQTT broker {broker}: {reason}")]
    Unreachable {
        /// The broker.
        broker: String,
        /// Why not.
        reason: String,
    },
    /// The broker does not want this client, or is not who it should be.
    #[error("the MQTT broker {broker} refuses: {reason}")]
    Refused {
        /// The broker.
        broker: String,
        /// What it says, or what is wrong with its certificate.
        reason: String,
    },
}

/// Why a subscription or a publisher could not be made.
#[derive(Debug, thiserror::Error)]
pub enum DeclareError {
    /// It is no topic, or no filter.
    #[error("'{topic}' is not an MQTT topic: {reason}")]
    Topic {
        /// The text.
        topic: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The broker refused, or is not there.
    #[error("{0}")]
    Network(String),
}
