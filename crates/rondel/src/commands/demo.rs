//! `rondel demo`: a first look, on a recording that comes with the program or on a live network.

mod live;
mod recorded;
mod vehicle;

use std::path::PathBuf;

use clap::Args;

/// Watch Rondel find faults, without any set-up: in a recording, or on a live network
///
/// Checks a recording that comes with the program and has planted faults: shows the specification, each violation with
/// its causes, and a picture of fields and verdicts over time. It needs no network and no files.
#[derive(Debug, Args)]
pub struct Demo {
    /// Write the specification and the recording to this folder too, drive.rondel and drive.jsonl, which must not exist in it
    #[arg(long, value_name = "FOLDER", conflicts_with = "live")]
    write: Option<PathBuf>,
    /// Check a vehicle that publishes over real Zenoh on this machine, instead of the recording
    #[arg(long)]
    live: bool,
    /// Run as fast as possible instead of in real time
    #[arg(long, requires = "live")]
    fast: bool,
}

impl Demo {
    /// Runs the demo, and returns the exit status.
    pub fn run(self) -> u8 {
        match self.live {
            true => live::run(self.fast),
            false => recorded::run(self.write.as_deref()),
        }
    }
}
