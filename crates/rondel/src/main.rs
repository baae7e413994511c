//! `rondel`: runtime verification for publish/subscribe systems.

// Nothing outside uses a binary: `pub` here means the whole of it.
#![allow(unreachable_pub)]

mod commands;
mod deployment;
mod live;
mod output;
mod recorder;
mod schemas;
mod sinks;
mod specification;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;

pub(crate) use output::exit;
pub(crate) use output::terminal::{complain, say, warn};

fn main() -> ExitCode {
    // With a handler, a write beyond the limit of a file's size is an error, which is reported like a full disk. Without
    // one, the signal ends the process.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    let arguments = match commands::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are printed the same way, and are no mistake.
            let printed = error.print().and_then(|()| io::stdout().flush());
            return ExitCode::from(match printed {
                _ if error.use_stderr() => exit::USAGE,
                // A reader that has seen enough is no mistake.
                Err(why) if why.kind() != io::ErrorKind::BrokenPipe => {
                    complain(&format!("cannot write to standard output: {why}"));
                    exit::TRACE
                }
                _ => exit::SATISFIED,
            });
        }
    };
    ExitCode::from(arguments.run())
}
