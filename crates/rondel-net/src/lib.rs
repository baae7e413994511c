//! Transports: one module for each network, behind a common interface ([`adapter`]). With Zenoh, DDS and MQTT compiled in,
//! [`networks`] joins several of them and finds the network of an [`address`].

pub mod adapter;
#[cfg(all(feature = "dds", feature = "mqtt", feature = "zenoh"))]
pub mod address;
#[cfg(any(feature = "kafka", feature = "mqtt", feature = "zenoh"))]
mod attempts;
pub mod calling;
pub mod cdr_string;
#[cfg(feature = "dds")]
pub mod dds;
#[cfg(all(feature = "dds", feature = "mqtt", feature = "zenoh"))]
pub mod durability;
pub mod kafka;
#[cfg(feature = "mqtt")]
pub mod mqtt;
#[cfg(all(feature = "dds", feature = "mqtt", feature = "zenoh"))]
pub mod networks;
#[cfg(all(feature = "dds", feature = "mqtt", feature = "zenoh"))]
pub mod observe;
#[cfg(all(feature = "dds", feature = "mqtt", feature = "zenoh"))]
pub mod offers;
pub mod progress;
pub mod ros2;
#[cfg(feature = "zenoh")]
pub mod zenoh;
