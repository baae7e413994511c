//! Waiting for conditions.

use std::time::{Duration, Instant};

use crate::LIMIT;

/// Waits until a condition holds.
///
/// # Panics
/// It does not hold within [`LIMIT`]; `what` says what was waited for.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < deadline, "timed out waiting until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
