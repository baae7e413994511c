//! Fixtures for the tests of several crates: child processes, the brokers of MQTT and Kafka, Python with packages, ports of networks,
//! temporary folders, and random numbers with the seeds of random tests. Not published; only tests depend on it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::print_stderr
)] // for tests

mod broker;
mod folder;
mod kafka;
mod ports;
mod process;
mod proxy;
mod python;
mod random;
mod seeds;
mod wait;

pub use broker::Broker;
pub use folder::Folder;
pub use kafka::KafkaBroker;
pub use ports::{dds_domain, free_endpoint, free_port};
pub use process::{Finished, LIMIT, Process, finish};
pub use proxy::Proxy;
pub use python::python;
pub use random::Random;
pub use seeds::{Seeds, cases, fresh_seeds, is_replay, seeds};
pub use wait::wait_until;

/// Prints a message past the capture of a test's output, so that skipped tests are seen.
pub fn notice(message: &str) {
    // The test harness does not capture the output of a child process.
    let _ = std::process::Command::new("sh").args(["-c", "echo \"$0\" >&2", message]).status();
}
