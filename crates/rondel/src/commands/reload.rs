//! `rondel reload`: a running deployment takes its edited files.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use crate::live::reload::client::{ANSWER, NoAnswer, request};
use crate::output::Format;
use crate::{complain, deployment, exit, say};

/// Let a running `rondel run` take its edited specification and deployment
///
/// The run reads and checks its files as at the start. Unchanged properties keep their state, and no message is lost.
/// If the files have mistakes, the run goes on as before.
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub struct Reload {
    /// The deployment of the run, or in short form its specification (default: rondel.yaml)
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The format of the result
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  the run has taken the files
  2  the files have mistakes, or a change needs a restart: the run goes on as before
  5  no run of this file answers within 30 s";

impl Reload {
    /// Requests the reload, and returns the exit status.
    pub fn run(self) -> u8 {
        let file = self.file.unwrap_or_else(deployment::default_file);
        let name = file.display();
        if !matches!(file.try_exists(), Ok(true)) {
            complain(&format!("{name} does not exist: name the file of `rondel run`"));
            return exit::USAGE;
        }
        match request(&file) {
            Ok(answer) => show(&answer, self.format),
            Err(NoAnswer::NoRun) => {
                complain(&format!(
                    "no run of {name} answers: is it running, by this user, in the same XDG_RUNTIME_DIR, without \
                     --no-control?"
                ));
                exit::NETWORK
            }
            Err(NoAnswer::Late) => {
                complain(&format!(
                    "the run of {name} gives no answer within {} s: it may still carry the reload out; its output and its \
                     reports show the outcome",
                    ANSWER.as_secs()
                ));
                exit::NETWORK
            }
            Err(NoAnswer::Failed(error)) => {
                complain(&format!("the run of {name} gives no answer: {error}"));
                exit::NETWORK
            }
        }
    }
}

/// Prints an answer, and returns the exit status.
fn show(answer: &Value, format: Format) -> u8 {
    let is_done = answer["done"] == Value::Bool(true);
    let sentence = answer["sentence"].as_str().unwrap_or("the run has answered something else");
    // With standard output closed, the exit status still carries the result.
    let print = |text: &str| _ = std::io::stdout().lock().write_all(format!("{text}\n").as_bytes());
    match format {
        Format::Json => print(&answer.to_string()),
        Format::Text => {
            for line in answer["lines"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                say(line);
            }
            if is_done { print(sentence) } else { complain(sentence) }
        }
    }
    if is_done { exit::SATISFIED } else { exit::USAGE }
}
