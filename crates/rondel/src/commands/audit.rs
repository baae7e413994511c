//! `rondel audit`: verification of audit files.

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use rondel_runtime::text::{counted, grouped};
use serde_json::json;

use crate::output::Format;
use crate::sinks::audit::line::{Hash, parse_hash, text};
use crate::sinks::audit::verify::{Failure, Fault, Verified, verify};
use crate::{complain, exit, warn};

/// Verify the audit files of `rondel run --audit`
#[derive(Debug, Args)]
pub struct AuditCommand {
    #[command(subcommand)]
    command: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    Verify(Verify),
}

/// Find changed, removed, inserted and reordered lines in an audit file
///
/// Prints the number and the hash of the last line. Lines that are missing at the end, and a file that was rewritten,
/// are found only with --expect and a hash that was kept elsewhere.
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
struct Verify {
    /// The audit file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The hash that a line of the file must have: 64 hexadecimal digits, such as those of an earlier verification
    #[arg(long, value_name = "HASH", value_parser = expected)]
    expect: Option<Expected>,
    /// The format of the result
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  no line was changed, removed, inserted or reordered before the last one
  1  a line is at fault, or no line has the expected hash
  2  wrong usage
  3  the file cannot be read
  4  as 0, but the file ends in an incomplete line: the process was cut off, or writes it now";

/// A hash in the arguments.
#[derive(Clone, Copy, Debug)]
struct Expected(Hash);

fn expected(text: &str) -> Result<Expected, String> {
    parse_hash(text).map(Expected).ok_or_else(|| "a hash has 64 hexadecimal digits".to_owned())
}

impl AuditCommand {
    /// Verifies, and returns the exit status.
    pub fn run(self) -> u8 {
        match self.command {
            Task::Verify(verify) => verify.run(),
        }
    }
}

impl Verify {
    fn run(self) -> u8 {
        let name = self.file.display();
        match verify(&self.file, self.expect.as_ref().map(|expected| &expected.0)) {
            Ok(verified) => {
                self.print(&match self.format {
                    Format::Json => json(&verified),
                    Format::Text => self.sentences(&verified),
                });
                if verified.half == 0 {
                    return exit::SATISFIED;
                }
                warn(&format!(
                    "{name}: ends in an incomplete line of {}: the process was cut off, or writes it now",
                    counted(verified.half, "byte", "bytes")
                ));
                exit::INCONCLUSIVE
            }
            Err(Failure::Fault(Fault { line, reason })) => {
                if self.format == Format::Json {
                    self.print(&json!({"intact": false, "line": line, "reason": reason}).to_string());
                }
                complain(&format!("{name}:{line}: line {} {reason}", grouped(line)));
                exit::VIOLATED
            }
            Err(Failure::Unreadable(error)) => {
                complain(&format!("cannot read the audit file {name}: {error}"));
                exit::TRACE
            }
        }
    }

    /// Returns the result in sentences.
    fn sentences(&self, verified: &Verified) -> String {
        let Verified { last, runs, unended, partial, lost, expected, .. } = verified;
        let mut text = format!(
            "{}: {} of {}, none changed, removed, inserted or reordered\nlast line: number {}, hash {}",
            self.file.display(),
            counted(last.number, "line", "lines"),
            counted(*runs, "run", "runs"),
            grouped(last.number),
            text(&last.hash)
        );
        let mut remark = |count: u64, sentence: String| {
            if count > 0 {
                text += "\n";
                text += &sentence;
            }
        };
        let without = counted(*unended, "run has", "runs have");
        remark(
            *unended,
            format!("{without} no stop line: killed, still running, or its last lines are missing"),
        );
        let half = counted(*partial, "incomplete line was", "incomplete lines were");
        remark(*partial, format!("{half} left by a process that was cut off, and reported by the next run"));
        let unwritten = counted(*lost, "record was", "records were");
        remark(*lost, format!("{unwritten} not written, as the file itself reports"));
        text += &match expected {
            Some(number) if number == &last.number => "\nthe last line has the expected hash".to_owned(),
            Some(number) => format!(
                "\nline {} has the expected hash; {} later",
                grouped(*number),
                counted(last.number - number, "line was written", "lines were written")
            ),
            None => "\nwhether lines are missing at the end, or the file was rewritten, is unknown: keep the hash \
                     elsewhere, and compare it later with --expect HASH"
                .to_owned(),
        };
        text
    }

    fn print(&self, text: &str) {
        // With standard output closed, the exit status still carries the result.
        let _ = std::io::stdout().lock().write_all(format!("{text}\n").as_bytes());
    }
}

/// Returns the result as JSON.
fn json(verified: &Verified) -> String {
    let Verified { last, runs, unended, partial, lost, half, expected } = verified;
    json!({
        "intact": true,
        "lines": last.number,
        "hash": text(&last.hash),
        "runs": runs,
        "unended": unended,
        "partial": partial,
        "lost": lost,
        "incomplete": half,
        "expected": expected,
    })
    .to_string()
}
