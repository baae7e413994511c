//! `rondel`: runtime verification for publish/subscribe systems.

// Nothing outside uses a binary: `pub` here means the whole of it.
#![allow(unreachable_pub)]

mod commands;
mod console;
mod deployment;
mod discover;
mod exit;
mod folder;
mod health;
mod json_schema;
mod live;
mod losses;
mod mcap_report;
mod networks;
mod offered;
mod outgoing;
mod outlets;
mod output;
mod own;
mod pipeline;
mod present;
mod queue;
mod recorded_types;
mod recorder;
mod reports;
mod resume;
mod schemas;
mod signals;
mod sinks;
mod specification;
mod spool;
mod summary;
mod table_arguments;
mod terminal;
mod time_text;
mod watchdog;

use std::process::ExitCode;

use clap::Parser;

pub(crate) use terminal::{complain, say, warn};

fn main() -> ExitCode {
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
