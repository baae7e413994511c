//! Child processes: started, measured, and ended by their process ids.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;
use serde_json::Value;

use crate::failure::{Failure, Result, io_error};

/// The time that a child has to end after SIGTERM.
const END: Duration = Duration::from_secs(20);
/// The time between two readings of a child's memory.
const SAMPLE: Duration = Duration::from_millis(10);

/// A running child. Dropping it kills it.
#[derive(Debug)]
pub struct Child {
    name: String,
    process: std::process::Child,
    started: Instant,
    lines: Receiver<String>,
    output: Option<std::thread::JoinHandle<u64>>,
    log: Vec<String>,
    /// Whether it has been reaped: from then on another process may have its id.
    reaped: Arc<Mutex<bool>>,
}

/// A child that has ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit status; `None` after a signal.
    pub status: Option<i32>,
    /// Seconds from start to end.
    pub seconds: f64,
    /// The CPU time of the whole process, user and system, all threads, start and end included.
    pub cpu_seconds: f64,
    /// The number of lines on its standard output; 0 where they were not counted.
    pub lines: u64,
    /// The lines of its standard error.
    pub log: Vec<String>,
}

/// The destination of a child's standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdout {
    /// `/dev/null`.
    Nothing,
    /// A pipe, whose lines are counted.
    Counted,
}

impl Child {
    /// Starts a program.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(name: &str, program: &Path, arguments: &[String], stdout: Stdout) -> Result<Child> {
        let stdout = if stdout == Stdout::Counted { Stdio::piped() } else { Stdio::null() };
        Child::spawn(name, program, arguments, stdout)
    }

    /// Starts a program that writes its standard output to a file.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_into(name: &str, program: &Path, arguments: &[String], file: File) -> Result<Child> {
        Child::spawn(name, program, arguments, file.into())
    }

    fn spawn(name: &str, program: &Path, arguments: &[String], stdout: Stdio) -> Result<Child> {
        let started = Instant::now();
        let mut process = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .map_err(io_error(format!("{name}: cannot start {}", program.display())))?;
        let (send, lines) = mpsc::channel();
        if let Some(stderr) = process.stderr.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(stderr).lines().map_while(std::result::Result::ok) {
                    if send.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        let output = process.stdout.take().map(|pipe| std::thread::spawn(move || count_lines(pipe)));
        Ok(Child {
            name: name.to_owned(),
            process,
            started,
            lines,
            output,
            log: Vec::new(),
            reaped: Arc::default(),
        })
    }

    /// Waits for a line on standard error that begins with `prefix`; returns the line and the time when it came.
    ///
    /// # Errors
    /// [`Failure::Late`] after `limit`; [`Failure::Child`] when the child has ended.
    pub fn wait_for(&mut self, prefix: &str, limit: Duration) -> Result<(String, Instant)> {
        let deadline = Instant::now() + limit;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    let found = line.starts_with(prefix);
                    self.log.push(line.clone());
                    if found {
                        return Ok((line, Instant::now()));
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Err(self.late(prefix, limit)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended_before(prefix)),
            }
        }
    }

    /// Returns the next line on standard error; `None` if there is none yet.
    ///
    /// # Errors
    /// [`Failure::Child`] when the child has ended.
    pub fn next_line(&mut self) -> Result<Option<String>> {
        match self.lines.try_recv() {
            Ok(line) => {
                self.log.push(line.clone());
                Ok(Some(line))
            }
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(self.ended_before("a signal")),
        }
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// [`Failure::Late`] after `limit`; then the child is killed.
    pub fn wait(mut self, limit: Duration) -> Result<Ended> {
        let deadline = Instant::now() + limit;
        loop {
            // Its standard error is closed at the very end, and waiting for that costs no CPU time.
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.log.push(line),
                Err(RecvTimeoutError::Timeout) => return Err(self.late("its end", limit)),
                Err(RecvTimeoutError::Disconnected) => return self.reap(),
            }
        }
    }

    /// Waits like [`Child::wait`]; returns also the peak of its resident memory, in bytes, as read last before the end.
    ///
    /// # Errors
    /// As [`Child::wait`].
    pub fn wait_measured(mut self, limit: Duration) -> Result<(Ended, u64)> {
        let deadline = Instant::now() + limit;
        let mut peak = 0;
        loop {
            // The peak only grows. A process that has ended has none.
            peak = self.peak_memory().unwrap_or(peak);
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left.min(SAMPLE)) {
                Ok(line) => self.log.push(line),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return Err(self.late("its end", limit)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok((self.reap()?, peak)),
            }
        }
    }

    /// Sends SIGTERM and waits until it ends.
    ///
    /// # Errors
    /// As [`Child::wait`].
    pub fn end(self) -> Result<Ended> {
        self.signal(Signal::SIGTERM)?;
        self.wait(END)
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        // Not reaped while this exists, so the id is still its own.
        let pid = Pid::from_raw(self.process.id() as i32);
        kill(pid, signal).map_err(|e| Failure::Io(self.name.clone(), e.into()))
    }

    /// Kills it after `limit`, unless it has ended: a publisher that blocks on it then goes on.
    pub fn kill_after(&self, limit: Duration) {
        let (reaped, id) = (Arc::clone(&self.reaped), self.process.id());
        std::thread::spawn(move || {
            std::thread::sleep(limit);
            let reaped = reaped.lock().unwrap_or_else(PoisonError::into_inner);
            if !*reaped {
                // Not reaped, so the id is still its own.
                let _ = kill(Pid::from_raw(id as i32), Signal::SIGKILL);
            }
        });
    }

    /// Returns the peak of its resident memory, in bytes.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn peak_memory(&self) -> Result<u64> {
        peak_memory_of(self.process.id())
    }

    /// Returns the time when it was started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Returns a failure of this child, with its standard error.
    pub fn failed(&self, status: &str) -> Failure {
        Failure::Child { name: self.name.clone(), status: status.to_owned(), log: self.log.join("\n") }
    }

    fn late(&self, what: &str, limit: Duration) -> Failure {
        let log =
            if self.log.is_empty() { String::new() } else { format!(" (it said: {})", self.log.join("; ")) };
        Failure::Late { what: format!("{}, waiting for '{what}'{log}", self.name), limit }
    }

    /// Returns the failure of a child that has ended too early, with its standard error.
    fn ended_before(&mut self, what: &str) -> Failure {
        match self.reap() {
            Ok(ended) => {
                let status = format!("{:?} before '{what}'", ended.status);
                Failure::Child { name: self.name.clone(), status, log: ended.log.join("\n") }
            }
            Err(failure) => failure,
        }
    }

    /// Takes the status and the CPU time. The system counts only children that have been reaped, and no other child is
    /// reaped between the two readings: children are reaped one by one, here.
    fn reap(&mut self) -> Result<Ended> {
        let before = children()?;
        *self.reaped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        let status = self.process.wait().map_err(io_error(&self.name))?;
        let seconds = self.started.elapsed().as_secs_f64();
        let cpu_seconds = children()? - before;
        let lines = self.output.take().and_then(|o| o.join().ok()).unwrap_or(0);
        Ok(Ended { status: status.code(), seconds, cpu_seconds, lines, log: std::mem::take(&mut self.log) })
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let mut reaped = self.reaped.lock().unwrap_or_else(PoisonError::into_inner);
        if !*reaped {
            *reaped = true;
            // It may have ended just now; then there is nothing to kill.
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

impl Ended {
    /// Returns the child if its exit status is 0.
    ///
    /// # Errors
    /// [`Failure::Child`] otherwise.
    pub fn succeeded(self, name: &str) -> Result<Ended> {
        if self.status == Some(0) { Ok(self) } else { Err(self.failed(name)) }
    }

    /// Returns a failure, with its standard error.
    pub fn failed(&self, name: &str) -> Failure {
        let status = self.status.map_or_else(|| "a signal".to_owned(), |status| format!("status {status}"));
        Failure::Child { name: name.to_owned(), status, log: self.log.join("\n") }
    }

    /// Returns the summary: the last JSON object on standard error.
    ///
    /// # Errors
    /// [`Failure::Child`] when there is none, or the exit status is not 0.
    pub fn summary(&self, name: &str) -> Result<Summary> {
        let object = self.object().filter(|_| self.status == Some(0));
        object.and_then(|object| Summary::read(&object)).ok_or_else(|| self.failed(name))
    }

    /// Returns the last JSON object on standard error.
    pub fn object(&self) -> Option<Value> {
        let line = self.log.iter().rev().find(|line| line.starts_with('{'))?;
        serde_json::from_str(line).ok()
    }
}

/// The summary of a subscriber: `{"received":…,"checked":…,"verdicts":…,"dropped":…,"seconds":…}`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Messages received.
    pub received: u64,
    /// Messages checked, or counted.
    pub checked: u64,
    /// Messages published.
    pub verdicts: u64,
    /// Messages lost or not published.
    pub dropped: u64,
    /// Seconds from the first message received to the last one.
    pub seconds: f64,
}

impl Summary {
    fn read(value: &Value) -> Option<Summary> {
        let count = |key: &str| value.get(key).and_then(Value::as_u64);
        Some(Summary {
            received: count("received")?,
            checked: count("checked")?,
            verdicts: count("verdicts")?,
            dropped: count("dropped")?,
            seconds: value.get("seconds").and_then(Value::as_f64)?,
        })
    }
}

/// Returns the CPU seconds of all children that have ended.
fn children() -> Result<f64> {
    let seconds = |usage: Usage| {
        (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6
    };
    getrusage(UsageWho::RUSAGE_CHILDREN)
        .map(seconds)
        .map_err(|e| Failure::Io("CPU time of child processes".to_owned(), e.into()))
}

/// Returns the largest resident memory of any child that has ended, in bytes.
///
/// # Errors
/// When the system does not say.
pub fn peak_of_children() -> Result<u64> {
    getrusage(UsageWho::RUSAGE_CHILDREN)
        .map(|usage| usage.max_rss().unsigned_abs() * 1024)
        .map_err(|e| Failure::Io("memory of child processes".to_owned(), e.into()))
}

fn count_lines(mut pipe: impl Read) -> u64 {
    let mut buffer = vec![0; 1 << 16];
    let mut lines = 0;
    while let Ok(length @ 1..) = pipe.read(&mut buffer) {
        lines += memchr::memchr_iter(b'\n', &buffer[..length]).count() as u64;
    }
    lines
}

/// Returns the peak of the resident memory of a process, in bytes.
///
/// # Errors
/// When the system does not say.
pub fn peak_memory_of(process: u32) -> Result<u64> {
    let path = format!("/proc/{process}/status");
    let status = std::fs::read_to_string(&path).map_err(io_error(&path))?;
    peak_memory(&status).ok_or_else(|| Failure::Io(path, std::io::Error::other("no VmHWM")))
}

fn peak_memory(status: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn memory_is_read_from_the_status() {
        assert_eq!(peak_memory("Name:\tx\nVmHWM:\t   12345 kB\nVmRSS:\t 1 kB\n"), Some(12_345 * 1024));
        assert_eq!(peak_memory("Name:\tx\n"), None);
    }

    #[test]
    fn a_summary_is_complete_or_none() {
        let value = json!({"received":5,"checked":4,"undecodable":1,"verdicts":4,"dropped":0,"seconds":0.5});
        let summary = Summary { received: 5, checked: 4, verdicts: 4, dropped: 0, seconds: 0.5 };
        assert_eq!(Summary::read(&value), Some(summary));
        assert_eq!(Summary::read(&json!({"received":5})), None);
    }

    #[test]
    fn lines_are_counted() {
        assert_eq!(count_lines(b"a\nb\n\nc".as_slice()), 3);
    }
}
