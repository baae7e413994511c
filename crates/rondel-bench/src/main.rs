//! `rondel-bench`: the benchmarks of Rondel.
//!
//! The measured program `rondel` runs as a child process, as in production. This process publishes its
//! messages and counts its verdicts. A message too few or too many fails the measurement.

// Nothing outside uses a binary: `pub` here means the whole of it.
#![allow(unreachable_pub)]

mod align;
mod autoware;
mod begin;
mod broker;
mod chain;
mod child;
mod clocks;
mod engine;
mod failover;
mod failure;
mod file;
mod footprint;
mod join;
mod language;
mod latency;
mod link;
mod machine;
mod measurements;
mod mesa;
mod mosquitto;
mod network;
mod options;
mod order;
#[cfg(test)]
mod patterns;
mod peer;
mod place;
mod program;
mod properties;
mod rates;
mod recordings;
mod report;
mod roundtrip;
mod runs;
mod size;
mod standby;
mod studies;
mod table;
mod table1;
mod takeover;
mod throughput;
mod timescales;
mod traces;
mod turns;
mod udp;
mod wire;
mod workers;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::options::Arguments;

fn main() -> ExitCode {
    log();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are printed the same way, and are no mistake.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match arguments.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say(&format!("error: {failure}"));
            ExitCode::from(failure.status())
        }
    }
}

/// Writes a line to standard error.
pub(crate) fn say(line: &str) {
    // One write, so that the line does not mix with other output. A closed standard error is ignored.
    let _ = std::io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// Shows warnings of the networks on standard error; `RONDEL_LOG` chooses more or less.
fn log() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("RONDEL_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("error,rondel_net=warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .without_time()
        .with_target(false)
        .init();
}
