//! `rondel check` on the command line: what it reads, what it prints, how it ends.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod output;
mod reading;
#[path = "../support/mod.rs"]
mod support;
mod times;
mod usage;

use support::{Finished, rondel_with_input};

const GOOD: &str = "{\"time\":1,\"v\":true}\n{\"time\":2,\"v\":true}\n";

const BAD: &str = "{\"time\":1,\"v\":true}\n{\"time\":2,\"v\":false}\n";

/// Checks the formula `v` on what comes from standard input.
fn check_v(input: impl AsRef<[u8]>) -> Finished {
    rondel_with_input(["check", "-f", "v", "--emit", "every", "--format", "json", "-"], input.as_ref())
}

/// The lines of JSON of a property `formula`, in seconds.
fn json(rows: &[(&str, u64, &str)]) -> String {
    let line = |(time, step, verdict): &(&str, u64, &str)| {
        format!("{{\"property\":\"formula\",\"time\":{time},\"step\":{step},\"verdict\":\"{verdict}\"}}\n")
    };
    rows.iter().map(line).collect()
}
