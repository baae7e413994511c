//! `rondel fmt`: formats specifications.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::output::Output;
use crate::schemas::text_files::{read_text, text_of};
use crate::specification::{is_deployment, wants_specification};
use crate::{complain, exit, say};

/// Format specifications
///
/// Files are rewritten in place; `-` is standard input, formatted to standard output. The meaning does not
/// change, and comments stay.
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub struct Fmt {
    /// The specifications
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Change nothing; list the files that are not formatted, and exit with status 1 if there are any
    #[arg(long, conflicts_with = "stdout")]
    check: bool,
    /// Change nothing; print the formatted text on standard output
    #[arg(long)]
    stdout: bool,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  every file is formatted
  1  with --check: a file is not formatted
  2  a file is not a specification
  3  a file could not be read or written";

impl Fmt {
    /// Formats the files, and returns the exit status.
    pub fn run(self) -> u8 {
        let mut out = Output::new(io::stdout());
        let mut worst = exit::SATISFIED;
        for file in &self.files {
            let status = self.file(file, &mut out).unwrap_or_else(|status| status);
            worst = worst.max(status);
        }
        if let Err(error) = out.finish() {
            complain(&format!("cannot write: {error}"));
            worst = exit::TRACE;
        }
        worst
    }

    fn file(&self, file: &Path, out: &mut Output<io::Stdout>) -> Result<u8, u8> {
        let name = file.display().to_string();
        let from_input = file == Path::new("-");
        if file.extension().is_some_and(|e| e == "rye") {
            complain(&format!(
                "{name} is in Reelay's format; only specifications in Rondel's language can be formatted"
            ));
            return Err(exit::USAGE);
        }
        if is_deployment(file) {
            complain(&wants_specification(&name));
            return Err(exit::USAGE);
        }
        let read = if from_input { text_of(io::stdin().lock()) } else { read_text(file) };
        let text = read.map_err(|error| {
            complain(&format!("cannot read {name}: {error}"));
            exit::TRACE
        })?;
        let layout = rondel_spec::format(&text).map_err(|diagnostics| {
            let colour = io::stderr().is_terminal();
            for diagnostic in diagnostics {
                say(diagnostic.render(&name, &text, colour).trim_end());
            }
            exit::USAGE
        })?;
        if self.check {
            if layout == text {
                return Ok(exit::SATISFIED);
            }
            out.write(format!("{name}\n").as_bytes());
            return Ok(exit::VIOLATED);
        }
        if self.stdout || from_input {
            out.write(layout.as_bytes());
        } else if layout != text {
            std::fs::write(file, layout).map_err(|error| {
                complain(&format!("cannot write {name}: {error}"));
                exit::TRACE
            })?;
        }
        Ok(exit::SATISFIED)
    }
}
