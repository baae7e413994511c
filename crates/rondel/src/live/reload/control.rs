//! The socket of a run, which `rondel reload` connects to: one line, and one answer as a JSON object.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rondel_runtime::text::counted;
use serde_json::{Map, Value, json};

use super::outcome::Outcome;
use super::place::socket_of;
use super::requests::{Cause, Requester};

/// The line that requests a reload.
pub const RELOAD: &str = "reload";
/// Maximum length of a request in bytes.
const LONGEST: usize = 256;
/// Time limit for a request to arrive, and for an answer to be taken.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time limit for a reload.
const RELOADED: Duration = Duration::from_secs(120);

/// The socket of a run. When dropped, it is removed.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
}

impl Control {
    /// Listens on the socket of a run of this file, on a thread of its own that only waits.
    ///
    /// # Errors
    /// The folder or the socket cannot be made, or another run of the file listens there.
    pub fn listen(file: &Path, requester: Requester) -> io::Result<Control> {
        let path = socket_of(file, true)?;
        let listener = match UnixListener::bind(&path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                if UnixStream::connect(&path).is_ok() {
                    return Err(io::Error::new(error.kind(), "another run of the same file listens there"));
                }
                // Its run was killed.
                std::fs::remove_file(&path)?;
                UnixListener::bind(&path)?
            }
            listener => listener?,
        };
        let control = Control { path };
        let serve = move || {
            for client in listener.incoming() {
                match client {
                    // A client that goes away needs no answer.
                    Ok(client) => drop(answer(client, &requester)),
                    // Such as too many open files: not again at once.
                    Err(_) => thread::sleep(PATIENCE),
                }
            }
        };
        thread::Builder::new().name("control".into()).spawn(serve)?;
        Ok(control)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // The thread ends with the process.
        _ = std::fs::remove_file(&self.path);
    }
}

/// Answers one client.
fn answer(mut client: UnixStream, requester: &Requester) -> io::Result<()> {
    client.set_write_timeout(Some(PATIENCE))?;
    let request = read_line(&mut client)?;
    let answer = match request.as_str() {
        RELOAD => match requester.ask(Cause::Command).recv_timeout(RELOADED) {
            Ok(outcome) => outcome_json(&outcome),
            Err(_) => refusal("the run is ending, or does not answer"),
        },
        _ => refusal("the run does not know this request: is `rondel` of the same version?"),
    };
    client.write_all(answer.to_string().as_bytes())?;
    client.write_all(b"\n")
}

fn outcome_json(outcome: &Outcome) -> Value {
    let members = outcome.members(Cause::Command).into_iter();
    let mut object: Map<String, Value> = members.map(|(name, value)| (name.to_owned(), value)).collect();
    object.insert("sentence".to_owned(), json!(outcome.sentence()));
    object.insert("lines".to_owned(), json!(outcome.lines()));
    Value::Object(object)
}

fn refusal(why: &str) -> Value {
    json!({"done": false, "sentence": why, "lines": [], "reasons": [why]})
}

/// Reads a line of at most [`LONGEST`] bytes within [`PATIENCE`].
fn read_line(client: &mut UnixStream) -> io::Result<String> {
    let deadline = Instant::now() + PATIENCE;
    let mut line = Vec::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        let mut part = [0; LONGEST];
        let count = client.read(&mut part)?;
        line.extend_from_slice(&part[..count]);
        if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            line.truncate(end);
            return Ok(String::from_utf8_lossy(&line).trim().to_owned());
        }
        if count == 0 || line.len() > LONGEST {
            let bytes = counted(line.len() as u64, "byte", "bytes");
            let why = format!("{bytes} are no request");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_one_short_line() {
        let read = |sent: &[u8]| {
            let (mut client, mut server) = UnixStream::pair().unwrap();
            client.write_all(sent).unwrap();
            client.shutdown(std::net::Shutdown::Write).unwrap();
            read_line(&mut server)
        };
        assert_eq!(read(b"reload\nmore").unwrap(), "reload");
        for wrong in [&b""[..], b"reload", &[b'a'; 10_000]] {
            assert!(read(wrong).is_err());
        }
    }
}
