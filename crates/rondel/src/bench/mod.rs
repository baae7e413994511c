//! Measurements that users can repeat: `rondel bench`.
//!
//! Whatever is measured runs as a child process, the same program as in production, and this process
//! is its publisher and the one that counts its verdicts. Everything that is sent is counted where it
//! arrives, and a message too few or too many fails the whole measurement.

pub mod broker;
pub mod child;
pub mod failure;
pub mod file;
pub mod footprint;
pub mod language;
pub mod latency;
pub mod link;
pub mod machine;
pub mod mosquitto;
pub mod network;
pub mod order;
pub mod peer;
pub mod properties;
pub mod report;
pub mod table;
pub mod table1;
pub mod timescales;
pub mod traces;
