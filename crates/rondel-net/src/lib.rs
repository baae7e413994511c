//! What touches the outside: one module per network and per kind of file, and one per way of
//! writing a payload.

pub mod adapter;
pub mod cdr;
#[cfg(feature = "dds")]
pub mod dds;
pub mod file;
pub mod json;
#[cfg(feature = "mqtt")]
pub mod mqtt;
pub mod progress;
#[cfg(feature = "zenoh")]
pub mod zenoh;
