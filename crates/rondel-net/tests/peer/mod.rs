//! Independent clients of networks, controlled by lines on their standard input.

use std::path::{Path, PathBuf};
use std::process::Command;

use rondel_testkit::Process;

/// Returns the Python with the independent clients, if there is one.
pub(crate) fn python(test: &str) -> Option<PathBuf> {
    rondel_testkit::python(test, "cyclonedds")
}

/// A client in a child process, which ends when this is dropped.
pub(crate) struct Peer(Process);

impl Peer {
    /// Starts a script and waits until it is ready.
    pub(crate) fn start(python: &Path, script: &str, arguments: &[&str]) -> Peer {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/independent").join(script);
        let mut command = Command::new(python);
        command.arg("-B").arg(script).args(arguments);
        let mut peer = Peer(Process::start(command));
        assert_eq!(peer.line(), "ready");
        peer
    }

    /// Stops or resumes the client.
    pub(crate) fn pause(&self, stop: bool) {
        self.0.signal(if stop { "STOP" } else { "CONT" });
    }

    /// Sends a command.
    pub(crate) fn send(&mut self, command: &str) {
        self.0.write(format!("{command}\n").as_bytes());
    }

    /// Sends a command and returns the printed line.
    pub(crate) fn ask(&mut self, command: &str) -> String {
        self.send(command);
        self.line()
    }

    /// Returns the next printed line.
    pub(crate) fn line(&mut self) -> String {
        self.0.take_stdout(1).remove(0)
    }
}
