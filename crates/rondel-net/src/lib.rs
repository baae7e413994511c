//! What touches the outside: one module per network and per kind of file, and one per way of
//! writing a payload.

pub mod adapter;
pub mod zenoh;
