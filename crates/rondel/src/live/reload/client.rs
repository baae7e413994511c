//! The request of `rondel reload` to a run.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::control::RELOAD;
use super::place::socket_of;

/// Maximum length of an answer in bytes.
const LONGEST: u64 = 16 << 20;
/// Time limit for an answer.
pub const ANSWER: Duration = Duration::from_secs(30);

/// Reason why there is no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// No run listens.
    NoRun,
    /// The request cannot be sent, or the answer not be read.
    Failed(io::Error),
    /// The run has not answered within [`ANSWER`].
    Late,
}

/// Requests a reload of the run of a file, and returns the answer.
///
/// # Errors
/// No run answers, or not in time, or the answer cannot be read.
pub fn request(file: &Path) -> Result<Value, NoAnswer> {
    let no_run = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => NoAnswer::NoRun,
        _ => NoAnswer::Failed(error),
    };
    let socket = socket_of(file, false).map_err(no_run)?;
    within(ANSWER, move || {
        let mut run = UnixStream::connect(socket).map_err(no_run)?;
        exchange(&mut run).map_err(NoAnswer::Failed)
    })
}

/// Waits for a result up to a limit: a run that stands still neither answers nor, with many requests, accepts one.
fn within(
    limit: Duration,
    ask: impl FnOnce() -> Result<Value, NoAnswer> + Send + 'static,
) -> Result<Value, NoAnswer> {
    let (send, answer) = mpsc::channel();
    // The thread ends with the process.
    let spawned = thread::Builder::new().name("request".into()).spawn(move || _ = send.send(ask()));
    spawned.map_err(NoAnswer::Failed)?;
    answer.recv_timeout(limit).unwrap_or(Err(NoAnswer::Late))
}

fn exchange(run: &mut UnixStream) -> io::Result<Value> {
    run.write_all(format!("{RELOAD}\n").as_bytes())?;
    let mut answer = Vec::new();
    run.take(LONGEST).read_to_end(&mut answer)?;
    serde_json::from_slice(&answer).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_that_stands_still_is_given_up() {
        let (mut client, server) = UnixStream::pair().unwrap();
        let answer =
            within(Duration::from_millis(50), move || exchange(&mut client).map_err(NoAnswer::Failed));
        assert!(matches!(answer, Err(NoAnswer::Late)));
        drop(server);
    }
}
