//! A WebSocket server for the Foxglove application: channels, clients and their queues. The program serves its
//! [routes](router), and a thread of the run [publishes](Hub::publish) messages on channels with subscribers.
//!
//! | module | contents |
//! |---|---|
//! | `protocol` | messages of the protocol, as texts and bytes |
//! | `hub` | channels, subscriptions, and the queue of each client |
//! | `serve` | connections: the handshake with its checks, sending and receiving |
//!
//! The SDK of Foxglove is not used: its server accepts any number of connections and messages of 64 MiB, keeps a client
//! that reads nothing, does not count what it drops for one, checks no origin, and stops to accept after the first error
//! of the socket, such as too many open files. The part of the protocol that a server of topics needs is small.

mod hub;
mod protocol;
mod serve;

pub use hub::{Hub, MOST_CLIENTS, Pending};
pub use protocol::{Level, Schema};
pub use serve::router;
