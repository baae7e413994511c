//! Verdicts per second.
//!
//! ```text
//! RONDEL_TEST_KAFKA=$PWD/target/kafka cargo test --release -p rondel-sinks --no-default-features --features kafka --test kafka -- --ignored bench --nocapture
//! ```

use crate::messages::measure;
use crate::server::Server;

#[test]
#[ignore = "a benchmark"]
fn bench() {
    let Some(server) = Server::start("bench", "") else { return };
    server.create("verdicts", &[]);
    measure(Box::new(server.sink("verdicts", &[("compression.type", "lz4")])));
}
