//! `rondel plot`: a picture of fields and verdicts over time.

use std::path::PathBuf;

use clap::Args;

use super::check::Check;
use crate::commands::reports::Wanted;
use crate::{complain, exit};

/// Draw the verdicts over time, and the fields that the properties read
///
/// It takes the recordings and options of `rondel check`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub struct Plot {
    /// The picture to write: FILE.svg, or FILE.html with what caused each violation
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    check: Check,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  the picture is written, whatever the verdicts are
  2  wrong usage, specification or deployment
  3  a recording could not be read, or the picture not be written";

impl Plot {
    /// Draws, and returns the exit status.
    pub fn run(self) -> u8 {
        match Wanted::picture(self.out) {
            Ok(picture) => self.check.draw(picture),
            Err(error) => {
                complain(&error);
                exit::USAGE
            }
        }
    }
}
