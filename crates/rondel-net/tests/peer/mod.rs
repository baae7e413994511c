//! Independent clients of networks, controlled by lines on their standard input.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// Returns the Python with the independent clients. Without one the test is skipped; on CI, or if one is configured, it
/// fails.
pub(crate) fn python(test: &str) -> Option<PathBuf> {
    let named = std::env::var_os("RONDEL_TEST_PYTHON").map(PathBuf::from);
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python3");
    let works = |path: &PathBuf| {
        let imported = Command::new(path).args(["-c", "import cyclonedds"]).output();
        imported.is_ok_and(|output| output.status.success())
    };
    if let Some(python) = named.or(Some(own)).filter(works) {
        return Some(python);
    }
    let message =
        format!("{test}: SKIPPED, NOT TESTED: no Python with cyclonedds; `make .venv/ready` installs it");
    assert!(["CI", "RONDEL_TEST_PYTHON"].iter().all(|name| std::env::var_os(name).is_none()), "{message}");
    // Bypasses the capture of the test's output.
    let _ = Command::new("sh").args(["-c", "echo \"$0\" >&2", &message]).status();
    None
}

/// A client in a child process, which ends when this is dropped.
pub(crate) struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Peer {
    /// Starts a script and waits until it is ready.
    pub(crate) fn start(python: &Path, script: &str, arguments: &[&str]) -> Peer {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/independent").join(script);
        let mut command = Command::new(python);
        command.arg("-B").arg(script).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let peer = Peer { child, input, lines };
        assert_eq!(peer.line(), "ready");
        peer
    }

    /// Stops or resumes the client.
    pub(crate) fn pause(&self, stop: bool) {
        let signal = if stop { "-STOP" } else { "-CONT" };
        let done = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(done.success());
    }

    /// Sends a command.
    pub(crate) fn send(&mut self, command: &str) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{command}").unwrap();
        input.flush().unwrap();
    }

    /// Sends a command and returns the printed line.
    pub(crate) fn ask(&mut self, command: &str) -> String {
        self.send(command);
        self.line()
    }

    /// Returns the next printed line.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(LIMIT).unwrap()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
