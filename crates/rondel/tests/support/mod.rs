//! Support of the tests of the command: running it, and reading verdicts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well
#![allow(dead_code, unreachable_pub)] // each test uses some of it

use std::ffi::OsStr;
use std::process::Command;

use rondel_testkit::Process;
#[allow(unused_imports)] // each test program uses a part
pub use rondel_testkit::{Finished, Folder, finish};

pub mod library;
pub mod network;

/// The command under test.
pub const RONDEL: &str = env!("CARGO_BIN_EXE_rondel");

/// A verdict as the command prints it in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    pub property: String,
    pub step: u64,
    /// `T`, `F` or `?`.
    pub letter: char,
}

impl Emitted {
    /// Reads all lines of the output.
    #[track_caller]
    pub fn all(stdout: &str) -> Vec<Emitted> {
        stdout.lines().map(Emitted::parse).collect()
    }

    /// Reads a line of output.
    #[track_caller]
    pub fn parse(line: &str) -> Emitted {
        let object: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|e| panic!("a verdict is no JSON ({e}): {line:?}"));
        let letter = letter(line);
        let property =
            object["property"].as_str().unwrap_or_else(|| panic!("no property in {line}")).to_owned();
        let step = object["step"].as_u64().unwrap_or_else(|| panic!("no step in {line}"));
        assert!(object["time"].is_number(), "no time in {line}");
        Emitted { property, step, letter }
    }
}

/// The letter of a verdict that the command prints in JSON, also of one without a step.
#[track_caller]
pub fn letter(line: &str) -> char {
    let object: serde_json::Value =
        serde_json::from_str(line).unwrap_or_else(|e| panic!("a verdict is no JSON ({e}): {line:?}"));
    match object["verdict"].as_str() {
        Some("satisfied") => 'T',
        Some("violated") => 'F',
        Some("inconclusive") => '?',
        _ => panic!("no verdict in {line}"),
    }
}

/// The letters of the verdicts in `text`, which is the JSON output of one property.
#[track_caller]
pub fn letters(text: &str) -> String {
    text.lines().map(|line| Emitted::parse(line).letter).collect()
}

/// The command with arguments, whose output is the same in every environment: dates are local, and the width is that of a
/// terminal.
fn command<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(RONDEL);
    command.args(arguments).env("TZ", "UTC").env_remove("COLUMNS");
    command
}

/// Starts the command.
pub fn start_rondel<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Process {
    Process::start(command(arguments))
}

/// Runs the command to its end with nothing on standard input.
pub fn rondel<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Finished {
    rondel_with_input(arguments, b"")
}

/// Runs the command to its end with `input` on standard input.
pub fn rondel_with_input<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>, input: &[u8]) -> Finished {
    finish(&mut command(arguments), input)
}
