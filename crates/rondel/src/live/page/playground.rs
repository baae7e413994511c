//! The playground: checks of texts of viewers, each in a process of its own, which can be cut off.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rondel_page::{Checker, Trace};
use rondel_recording::durable;
use serde_json::{Value, json};

/// Time limit of a check: the server closes a connection after 10 seconds without progress. That of its CPU time is
/// shorter.
const LIMIT: Duration = Duration::from_secs(8);
/// Limit of the result, and of the messages on standard error that are kept, in bytes.
const RESULT: u64 = 64 << 20;
const SAID: u64 = 16 << 10;

/// A playground over recordings.
#[derive(Debug, Default)]
pub struct Playground {
    /// Names of the recordings, and the arguments of the command that checks each.
    recordings: Vec<(String, Vec<OsString>)>,
    /// The file into which viewers may save the specification.
    save_to: Option<PathBuf>,
}

impl Playground {
    /// A playground without recordings.
    pub fn new(save_to: Option<PathBuf>) -> Playground {
        Playground { recordings: Vec::new(), save_to }
    }

    /// Adds a recording, which a command with these arguments checks against the text on its standard input.
    pub fn add(&mut self, name: String, arguments: Vec<OsString>) {
        self.recordings.push((name, arguments));
    }
}

impl Checker for Playground {
    fn recordings(&self) -> Vec<String> {
        self.recordings.iter().map(|(name, _)| name.clone()).collect()
    }

    fn file(&self) -> Option<String> {
        self.save_to.as_ref().map(|file| file.display().to_string())
    }

    fn check(&self, specification: &str, trace: Trace<'_>) -> Result<Value, String> {
        let (position, messages) = match trace {
            Trace::Recording(position) => (position, None),
            // The command of any recording: it reads the messages in its place.
            Trace::Messages(messages) => (0, Some(messages)),
        };
        let (_, arguments) = self.recordings.get(position).ok_or("there is no such recording")?;
        let request = json!({"specification": specification, "messages": messages}).to_string();
        let program = std::env::current_exe().map_err(|error| failed(&error))?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(&error))?;
        result(child, request)
    }

    fn save(&self, specification: &str) -> Result<(), String> {
        let Some(file) = &self.save_to else { return Err("saving is not allowed".to_owned()) };
        durable::replace(file, specification.as_bytes())
            .map_err(|error| format!("cannot write {}: {error}", file.display()))
    }
}

fn failed(error: &io::Error) -> String {
    format!("the check cannot be started: {error}")
}

/// Sends a request to a process, and returns its result; a process that exceeds a limit is ended.
fn result(mut child: Child, request: String) -> Result<Value, String> {
    let (Some(mut input), Some(output), Some(mut said)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err("the check cannot be started".to_owned());
    };
    let (sender, receiver) = mpsc::channel();
    // The threads end with the process.
    let exchange = move || {
        // A process that has ended before has said why.
        let _ = input.write_all(request.as_bytes());
        drop(input);
        let mut bytes = Vec::new();
        let _ = output.take(RESULT).read_to_end(&mut bytes);
        // The receiver has given up.
        let _ = sender.send(bytes);
    };
    let listen = move || {
        let mut text = Vec::new();
        let _ = said.by_ref().take(SAID).read_to_end(&mut text);
        let _ = io::copy(&mut said, &mut io::sink());
        String::from_utf8_lossy(&text).into_owned()
    };
    let started = thread::Builder::new().spawn(exchange).and_then(|_| thread::Builder::new().spawn(listen));
    let errors = match started {
        Ok(errors) => errors,
        Err(error) => {
            // The system has no further threads.
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed(&error));
        }
    };
    let bytes = receiver.recv_timeout(LIMIT);
    if bytes.is_err() {
        // It may have ended meanwhile.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| format!("the check has failed: {error}"))?;
    let errors = errors.join().unwrap_or_default();
    let Ok(bytes) = bytes else {
        let seconds = LIMIT.as_secs();
        return Err(format!(
            "the check was cut off after {seconds} s: make the recording shorter, or try again"
        ));
    };
    if status.signal().is_some() {
        return Err(
            "the check was cut off: it needs more than 5 s of CPU time or 1 GiB of memory; make the specification \
             simpler, or the recording shorter"
                .to_owned(),
        );
    }
    serde_json::from_slice(&bytes).map_err(|_| match errors.trim() {
        "" => "the check has no result".to_owned(),
        errors => errors.to_owned(),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<Value, String> {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        result(command.spawn().unwrap(), "{\"a\": 1}".to_owned())
    }

    #[test]
    fn process_that_ends_early_is_a_reason() {
        assert_eq!(shell("cat"), Ok(json!({"a": 1})));
        assert_eq!(shell("echo no recording >&2; exit 3"), Err("no recording".to_owned()));
        assert_eq!(shell("exit 0"), Err("the check has no result".to_owned()));
        assert!(shell("cat > /dev/null; kill -KILL $$").unwrap_err().contains("1 GiB of memory"));
        let much = shell("cat; head -c 1000000 /dev/zero >&2");
        assert_eq!(much, Ok(json!({"a": 1})), "it is not stopped by what it says");
    }

    #[test]
    fn text_is_saved_where_it_may_be() {
        assert!(Playground::default().save("property p = true").is_err());
        let file = std::env::temp_dir().join(format!("rondel-playground-{}.rondel", std::process::id()));
        let playground = Playground::new(Some(file.clone()));
        playground.save("first").unwrap();
        playground.save("second").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "second");
        std::fs::remove_file(&file).unwrap();
    }
}
