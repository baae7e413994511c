//! What touches the outside: one module per network and per kind of file, and one per way of
//! writing a payload.

pub mod adapter;
#[cfg(feature = "dds")]
pub mod dds;
#[cfg(feature = "zenoh")]
pub mod zenoh;
