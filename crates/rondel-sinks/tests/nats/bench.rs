//! Verdicts per second.
//!
//! ```text
//! cargo test --release -p rondel-sinks --no-default-features --features nats --test nats -- --ignored bench --nocapture
//! ```

use crate::messages::measure;
use crate::server::{STREAM, Server};

#[test]
#[ignore = "a benchmark"]
fn bench() {
    let Some(server) = Server::start("bench") else { return };
    server.client("", "create", STREAM);
    measure(Box::new(server.sink()));
}
