//! The engine alone: blocks in memory, without decoding or networks.

#![allow(clippy::print_stdout)] // prints while it measures

mod pace;
mod relations;
mod slices;

use clap::{Args, Subcommand};

use crate::failure::Result;

/// Measure steps of the engine
#[derive(Debug, Args)]
pub struct Engine {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Debug, Subcommand)]
enum Subject {
    /// Measure formulas over the past, robustness and comparisons
    Pace,
    /// Measure quantified formulas by relations
    Relations,
    /// Measure properties for each key
    Slices,
}

impl Engine {
    /// Measures and prints.
    ///
    /// # Errors
    /// When a specification does not compile.
    pub fn run(&self) -> Result<()> {
        match self.subject {
            Subject::Pace => pace::run()?,
            Subject::Relations => relations::run()?,
            Subject::Slices => slices::run()?,
        }
        Ok(())
    }
}
