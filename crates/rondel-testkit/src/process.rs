//! Child processes: run to their end, or watched line by line with a time limit, and ended on drop.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Exit status and output of a command.
#[derive(Debug)]
pub struct Finished {
    /// Exit status; none after a signal.
    pub status: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
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

/// Time limit of every wait in tests; much longer than it takes on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(60);

/// The lines of one stream of a process.
struct Lines {
    name: &'static str,
    coming: Receiver<String>,
    /// All that have been seen, those already waited for too.
    seen: Vec<String>,
}

impl Lines {
    fn new(name: &'static str, stream: impl Read + Send + 'static) -> Lines {
        let (sender, coming) = channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stream);
            let mut line = Vec::new();
            while let Ok(1..) = reader.read_until(b'\n', &mut line) {
                let text = String::from_utf8_lossy(&line);
                if sender.send(text.trim_end_matches('\n').to_owned()).is_err() {
                    break;
                }
                line.clear();
            }
        });
        Lines { name, coming, seen: Vec::new() }
    }

    /// The next line; nothing at the end of the stream.
    fn next(&mut self, deadline: Instant) -> Result<Option<String>, ()> {
        match self.coming.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                self.seen.push(line.clone());
                Ok(Some(line))
            }
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(()),
        }
    }
}

/// A process of a test. It is killed, by its id, when this is dropped.
pub struct Process {
    what: String,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines,
    stderr: Lines,
}

impl Process {
    /// Starts a command.
    pub fn start(mut command: Command) -> Process {
        let what = format!("{command:?}");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{what}: {e}"));
        let stdin = child.stdin.take();
        let stdout = Lines::new("stdout", child.stdout.take().unwrap());
        let stderr = Lines::new("stderr", child.stderr.take().unwrap());
        Process { what, child, stdin, stdout, stderr }
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes to its standard input.
    #[track_caller]
    pub fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("standard input is open");
        stdin.write_all(bytes).and_then(|()| stdin.flush()).unwrap();
    }

    /// Its standard input, to be written on another thread.
    pub fn take_input(&mut self) -> ChildStdin {
        self.stdin.take().expect("standard input is open")
    }

    /// Closes its standard input.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Waits for a line on standard error that contains `part`, and returns it.
    #[track_caller]
    pub fn wait_stderr(&mut self, part: &str) -> String {
        Self::wait(&self.what, &mut self.stderr, part)
    }

    /// Waits for a line on standard output that contains `part`, and returns it.
    #[track_caller]
    pub fn wait_stdout(&mut self, part: &str) -> String {
        Self::wait(&self.what, &mut self.stdout, part)
    }

    #[track_caller]
    fn wait(what: &str, lines: &mut Lines, part: &str) -> String {
        let deadline = Instant::now() + LIMIT;
        loop {
            match lines.next(deadline) {
                Ok(Some(line)) if line.contains(part) => return line,
                Ok(Some(_)) => {}
                end => panic!(
                    "{what}\n{} before {part:?} came on {}:\n{}",
                    if end.is_ok() { "ended" } else { "the time was over" },
                    lines.name,
                    lines.seen.join("\n")
                ),
            }
        }
    }

    /// Waits for so many more lines on standard output.
    #[track_caller]
    pub fn take_stdout(&mut self, count: usize) -> Vec<String> {
        let deadline = Instant::now() + LIMIT;
        let mut taken = Vec::with_capacity(count);
        while taken.len() < count {
            let Ok(Some(line)) = self.stdout.next(deadline) else {
                let stderr = self.all_stderr_so_far();
                panic!("{}\n{} of {count} lines came; stderr:\n{stderr}", self.what, taken.len());
            };
            taken.push(line);
        }
        taken
    }

    /// The next line on standard output, if one comes in time.
    pub fn stdout_within(&mut self, time: Duration) -> Option<String> {
        self.stdout.next(Instant::now() + time).ok().flatten()
    }

    /// Sends SIGTERM, as `kill` or the end of a container does.
    pub fn terminate(&self) {
        self.signal("TERM");
    }

    /// Sends a signal to this process alone.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([format!("-{name}"), self.id().to_string()]).status().unwrap();
        assert!(status.success(), "kill -{name} {}", self.id());
    }

    /// Ends it with SIGKILL.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for its end, then returns its exit status, and all that it wrote on both streams.
    #[track_caller]
    pub fn finish(mut self) -> Finished {
        self.stdin = None;
        let deadline = Instant::now() + LIMIT;
        // Both streams end with the process; waiting for them needs no polling.
        for lines in [&mut self.stdout, &mut self.stderr] {
            loop {
                match lines.next(deadline) {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(()) => {
                        panic!("{} does not end; {}:\n{}", self.what, lines.name, lines.seen.join("\n"))
                    }
                }
            }
        }
        let status: ExitStatus = self.child.wait().unwrap();
        Finished {
            status: status.code(),
            stdout: joined(&self.stdout.seen),
            stderr: joined(&self.stderr.seen),
        }
    }

    /// All that it wrote on standard error so far.
    pub fn all_stderr_so_far(&mut self) -> String {
        while let Ok(line) = self.stderr.coming.try_recv() {
            self.stderr.seen.push(line);
        }
        self.stderr.seen.join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}
