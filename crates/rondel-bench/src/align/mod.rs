//! Alignment alone: messages in memory, without decoding or networks.

#![allow(clippy::print_stdout)] // prints while it measures

mod order;
mod payloads;
mod sets;

use clap::{Args, Subcommand};

use crate::failure::Result;

/// Measure alignment
#[derive(Debug, Args)]
pub struct Align {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Debug, Subcommand)]
enum Subject {
    /// Measure messages in the order of their times, and their memory
    Order,
    /// Measure sets of messages
    Sets {
        /// Measure only policies whose names begin with this, such as approximate
        #[arg(default_value = "")]
        only: String,
    },
    /// Measure the ways to keep payloads while they wait
    Payloads,
}

impl Align {
    /// Measures and prints.
    ///
    /// # Errors
    /// When the system does not say how much memory is in use.
    pub fn run(&self) -> Result<()> {
        match &self.subject {
            Subject::Order => return order::run(),
            Subject::Sets { only } => sets::run(only),
            Subject::Payloads => payloads::run(),
        }
        Ok(())
    }
}
