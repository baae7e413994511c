//! The command line of both programs:
//!
//! ```text
//! on-… publish TOPIC TYPE COUNT DOMAIN [ENDPOINT]
//! on-… subscribe TOPIC TYPE COUNT DOMAIN [ENDPOINT]
//! ```
//! `publish` prints `ready`, waits for a subscription, publishes `n 0`, `n 1` … (`string`) or speeds 0, 1 … (`twist`),
//! and prints `sent`. `subscribe` prints `ready`, and COUNT messages, one per line. Both stay until standard input ends.

use std::time::Duration;

/// The limit for everything that a program waits for.
pub const LIMIT: Duration = Duration::from_secs(60);
/// The time between two messages.
pub const PERIOD: Duration = Duration::from_millis(5);

/// Arguments of a peer.
pub struct Arguments {
    pub publishes: bool,
    pub topic: String,
    pub message_type: String,
    pub count: u32,
    pub domain: u16,
    /// An endpoint of Zenoh.
    #[allow(dead_code)] // on Zenoh only
    pub endpoint: Option<String>,
}

impl Arguments {
    pub fn parse() -> Arguments {
        let mut all = std::env::args().skip(1);
        let mut next = |what: &str| all.next().unwrap_or_else(|| panic!("{what} is missing"));
        Arguments {
            publishes: next("publish or subscribe") == "publish",
            topic: next("the topic"),
            message_type: next("the type"),
            count: next("the count").parse().expect("the count is a number"),
            domain: next("the domain").parse().expect("the domain is a number"),
            endpoint: all.next(),
        }
    }
}

/// Waits until standard input ends.
pub fn stay() {
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
}
