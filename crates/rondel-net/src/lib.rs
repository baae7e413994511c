//! Transports: one module for each network, behind one interface ([`adapter`]).

pub mod adapter;
pub mod cdr_string;
#[cfg(feature = "dds")]
pub mod dds;
#[cfg(feature = "mqtt")]
pub mod mqtt;
pub mod progress;
#[cfg(feature = "zenoh")]
pub mod zenoh;
