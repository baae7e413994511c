//! What the tests of the command share: running it, folders of their own, and reading verdicts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well
#![allow(dead_code, unreachable_pub)] // each test uses some of it

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub mod network;
pub mod process;

/// The command under test.
pub const RONDEL: &str = env!("CARGO_BIN_EXE_rondel");

/// What a command that has ended leaves behind.
#[derive(Debug)]
pub struct Finished {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// Fails the test with everything that was printed unless the exit status is this one.
    #[track_caller]
    pub fn expect_status(&self, status: i32) -> &Finished {
        assert_eq!(self.status, Some(status), "\n--- stdout\n{}\n--- stderr\n{}", self.stdout, self.stderr);
        self
    }

    /// Fails the test unless standard error contains all of these.
    #[track_caller]
    pub fn expect_stderr(&self, parts: &[&str]) -> &Finished {
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is not in\n--- stderr\n{}", self.stderr);
        }
        self
    }

    /// Fails the test unless standard output is exactly this.
    #[track_caller]
    pub fn expect_stdout(&self, expected: &str) -> &Finished {
        assert_eq!(self.stdout, expected, "\n--- stderr\n{}", self.stderr);
        self
    }

    /// The lines of standard output as JSON objects.
    #[track_caller]
    pub fn verdicts(&self) -> Vec<Emitted> {
        self.stdout.lines().map(Emitted::parse).collect()
    }
}

/// A verdict as the command prints it in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    pub property: String,
    pub step: u64,
    /// `T`, `F` or `?`.
    pub letter: char,
}

impl Emitted {
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

/// Runs the command to its end with nothing on standard input.
pub fn rondel<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Finished {
    rondel_with_input(arguments, b"")
}

/// Runs the command to its end with `input` on standard input.
pub fn rondel_with_input<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>, input: &[u8]) -> Finished {
    let mut command = Command::new(RONDEL);
    command.args(arguments);
    finish(&mut command, input)
}

/// Runs a command to its end with `input` on standard input.
pub fn finish(command: &mut Command, input: &[u8]) -> Finished {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || {
        // A command that ends before it has read everything closes the pipe.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Finished {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
    }
}

/// A folder of one test, removed at its end.
pub struct Folder(PathBuf);

impl Folder {
    /// An empty folder that no other test has.
    pub fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("rondel-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// Writes a file and returns its path as text.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The folder itself.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// The path of what may be in the folder.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
