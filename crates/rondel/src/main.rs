//! `rondel`: runtime verification for publish/subscribe systems.

// Nothing outside uses a binary: `pub` here means the whole of it.
#![allow(unreachable_pub)]

mod chains;
mod clock;
mod commands;
mod deployment;
mod evidence;
mod exit;
mod formula;
mod networks;
mod outlet;
mod output;
mod pipeline;
mod resume;
mod signals;
mod specification;
mod tally;
mod testing;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    log();
    let arguments = match commands::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are printed the same way, and are no mistake.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { exit::USAGE } else { exit::SATISFIED });
        }
    };
    ExitCode::from(arguments.run())
}

/// Writes a line to standard error.
pub(crate) fn say(line: &str) {
    // In one piece, so that it does not mix with what goes to standard output; and where nobody reads
    // there is nobody to tell.
    let _ = std::io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// Writes an error to standard error.
pub(crate) fn complain(message: &str) {
    let (on, off) = if std::io::stderr().is_terminal() { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
    say(&format!("{on}error:{off} {message}"));
}

/// Writes a warning to standard error.
pub(crate) fn warn(message: &str) {
    let (on, off) = if std::io::stderr().is_terminal() { ("\x1b[1;33m", "\x1b[0m") } else { ("", "") };
    say(&format!("{on}warning:{off} {message}"));
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
