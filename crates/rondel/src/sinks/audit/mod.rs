//! The audit of a run: an append-only file in which each line has the hash of the line before.
//!
//! The evaluating thread puts records into a queue in memory, and a thread of its own takes them from there, chains
//! them, and writes them in one piece. An incomplete line is completed once the disk has room; one that a crash has left
//! stays in the file, and the next run reports it in a line of its own: bytes in the file are never changed or removed.

mod file;
pub mod line;
#[cfg(feature = "sqlite")]
mod operator;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
pub mod verify;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::unistd::{AccessFlags, access};
use rondel_event::Timestamp;
use rondel_net::adapter::now;
use rondel_runtime::Report;
use rondel_runtime::text::{counted, grouped};
use serde_json::{Value, json};

use self::file::{AuditFile, End};
use self::line::{Last, Line, text};
use crate::output::folder::check_writable;
use crate::{complain, warn};

/// Bytes of records that may wait for the writing thread.
const LIMIT: usize = 16 << 20;
/// Interval at which a failed write is repeated.
const RETRY: Duration = Duration::from_millis(500);

/// Reaction to an audit file that cannot be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OnError {
    /// Stop the run
    #[default]
    Stop,
    /// Continue, and count the lines that are not written
    Continue,
}

/// Settings of the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditSettings {
    /// The file.
    pub file: PathBuf,
    /// Reaction to an error.
    pub on_error: OnError,
    /// Maximum time after which written lines are made durable; zero: after every batch.
    pub sync: Duration,
}

impl AuditSettings {
    /// The default of [`AuditSettings::sync`].
    pub const SYNC: Duration = Duration::from_secs(1);

    /// Returns the settings of a file, with the defaults of the others.
    pub fn of(file: PathBuf) -> AuditSettings {
        AuditSettings { file, on_error: OnError::Stop, sync: AuditSettings::SYNC }
    }

    /// Checks whether the file can be written, or be made. Makes nothing.
    ///
    /// # Errors
    /// The reason why not.
    pub fn check(&self) -> Result<(), String> {
        let checked = match fs::metadata(&self.file) {
            Ok(metadata) if metadata.is_dir() => Err("it is a folder".to_owned()),
            Ok(_) => access(&self.file, AccessFlags::W_OK).map_err(|error| error.desc().to_owned()),
            Err(_) => {
                let folder = self.file.parent().filter(|folder| !folder.as_os_str().is_empty());
                let folder = folder.unwrap_or(Path::new("."));
                match folder.is_dir() {
                    true => check_writable(folder),
                    false => Err(format!("the folder {} does not exist", folder.display())),
                }
            }
        };
        checked.map_err(|why| format!("cannot use the audit file {}: {why}", self.file.display()))
    }
}

/// An audit file that is open, before the first line of the run.
#[derive(Debug)]
pub struct Opened {
    settings: AuditSettings,
    file: AuditFile,
    end: End,
}

impl Opened {
    /// Opens and locks the file, and checks its last lines.
    ///
    /// # Errors
    /// The reason why the file cannot be used.
    pub fn open(settings: AuditSettings) -> Result<Opened, String> {
        let (file, end) = AuditFile::open(&settings.file)?;
        Ok(Opened::of(settings, file, end))
    }

    fn of(settings: AuditSettings, file: AuditFile, end: End) -> Opened {
        if end.half > 0 {
            warn(&format!(
                "the audit file {} ends in an incomplete line of {}: an earlier run was cut off; the line stays, and the \
                 next one reports it",
                settings.file.display(),
                counted(end.half, "byte", "bytes")
            ));
        }
        Opened { settings, file, end }
    }

    /// Writes the first line of this process, makes it durable, and returns the end of the chain.
    fn write_first(&mut self, kind: &str, members: &Value) -> Result<Last, String> {
        let Opened { file, end, .. } = self;
        let (mut last, mut out) = (end.last, end.first.to_vec());
        if let Some(partial) = &end.partial {
            last.append(now(), partial, &mut out);
        }
        let mut record = Vec::new();
        write_record(kind, members, &mut record);
        last.append(now(), &record, &mut out);
        let (_, written) = file.append(&out);
        written.and_then(|()| file.sync()).map_err(|error| cannot_write(file, &error))?;
        Ok(last)
    }

    /// Writes the first line of the run, with these members, and starts the writing thread. `on_failure` is called once,
    /// on that thread, when the file cannot be written and the run must stop.
    ///
    /// # Errors
    /// The line cannot be written, or the thread not be started.
    pub fn start(
        mut self,
        members: &Value,
        on_failure: impl FnOnce() + Send + 'static,
    ) -> Result<Arc<Audit>, String> {
        let last = self.write_first("start", members)?;
        let Opened { settings, file, end } = self;
        let queue = Queue {
            status: Status { last, lines: last.number - end.last.number, ..Status::new() },
            ..Queue::new()
        };
        let shared = Arc::new(Shared { queue: Mutex::new(queue), wakes: Condvar::new() });
        let (finished, done) = mpsc::channel();
        let mut writer = Writer {
            shared: Arc::clone(&shared),
            on_error: settings.on_error,
            sync: settings.sync,
            file,
            last,
            out: Vec::new(),
            lines: 0,
            unsynced: None,
            is_failing: false,
            reported: None,
            on_failure: Some(Box::new(on_failure)),
            taken: (Vec::new(), Vec::new()),
        };
        let run = move || {
            writer.run();
            // The receiver is gone if the end took too long.
            let _ = finished.send(());
        };
        let thread = thread::Builder::new().name("audit".into()).spawn(run);
        let thread = thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        let ending = Mutex::new(Some(Ending { thread, done }));
        Ok(Arc::new(Audit { name: settings.file.display().to_string(), shared, ending }))
    }
}

/// The audit of a run.
pub struct Audit {
    name: String,
    shared: Arc<Shared>,
    ending: Mutex<Option<Ending>>,
}

/// Counts of the audit of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditCounts {
    /// Lines that the run has written.
    pub lines: u64,
    /// Lines that are missing in the file.
    pub lost: u64,
    /// Number of times that the file could not be written.
    pub failures: u64,
}

/// The writing thread.
struct Ending {
    thread: JoinHandle<()>,
    done: Receiver<()>,
}

impl Audit {
    /// Records a verdict that goes to its sinks.
    pub fn verdict(&self, report: &Report<'_>) {
        self.shared.push(|out| {
            out.extend_from_slice(b"\"record\":\"verdict\",\"verdict\":");
            report.json(out);
        });
    }

    /// Records an action of an operator or an event of the run, with these members.
    pub fn record(&self, kind: &str, members: &Value) {
        self.shared.push(|out| write_record(kind, members, out));
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> AuditCounts {
        let Status { lines, lost, errors, .. } = self.shared.queue().status;
        AuditCounts { lines, lost, failures: errors }
    }

    /// Writes the last line of the run, with these members, and ends the thread. Waits up to `limit` for the disk.
    pub fn end(&self, members: &Value, limit: Duration) -> AuditSummary {
        let mut queue = self.shared.queue();
        if !queue.is_ending {
            queue.note_dropped();
            queue.add(|out| write_record("stop", members, out));
            queue.is_ending = true;
        }
        drop(queue);
        self.shared.wakes.notify_one();
        let ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner).take();
        let is_done = ending.is_none_or(|ending| match ending.done.recv_timeout(limit) {
            // A panic of the thread has been reported.
            Ok(()) => ending.thread.join().is_ok(),
            Err(_) => false,
        });
        let mut queue = self.shared.queue();
        if !is_done {
            // The thread holds the others.
            queue.status.lost += queue.ends.len() as u64;
        }
        AuditSummary { file: self.name.clone(), status: queue.status.clone(), is_done }
    }
}

/// The queue between the evaluating and the writing thread.
struct Shared {
    queue: Mutex<Queue>,
    wakes: Condvar,
}

struct Queue {
    /// Members of records, one after the other.
    bytes: Vec<u8>,
    /// The end of each in `bytes`, and its time.
    ends: Vec<(usize, Timestamp)>,
    /// Records without room that no record reports yet.
    dropped: u64,
    is_ending: bool,
    status: Status,
}

/// Statistics of written lines.
#[derive(Clone, Debug)]
struct Status {
    /// The last line of the file.
    last: Last,
    /// Lines that the run has written.
    lines: u64,
    /// Records that are not in the file.
    lost: u64,
    /// Number of times that the file could not be written.
    errors: u64,
    /// The first reason.
    failure: Option<String>,
    /// Whether another program has moved, removed or changed the file.
    is_disturbed: bool,
}

impl Status {
    fn new() -> Status {
        Status { last: Last::NONE, lines: 0, lost: 0, errors: 0, failure: None, is_disturbed: false }
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a record, or counts it if there is no room.
    fn push(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut queue = self.queue();
        if !queue.has_room() {
            let is_first = queue.dropped == 0;
            queue.dropped += 1;
            queue.status.lost += 1;
            if is_first {
                self.wakes.notify_one();
            }
            return;
        }
        let is_first = queue.ends.is_empty();
        queue.note_dropped();
        queue.add(write);
        if is_first {
            self.wakes.notify_one();
        }
    }
}

impl Queue {
    fn new() -> Queue {
        Queue { bytes: Vec::new(), ends: Vec::new(), dropped: 0, is_ending: false, status: Status::new() }
    }

    /// Whether it takes a further record.
    fn has_room(&self) -> bool {
        !self.is_ending && self.bytes.len() < LIMIT
    }

    fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push((self.bytes.len(), now()));
    }

    /// Adds a record of those without room.
    fn note_dropped(&mut self) {
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            self.add(|out| write_record("lost", &json!({"lines": dropped}), out));
        }
    }
}

/// Writes the members of a record.
fn write_record(kind: &str, members: &Value, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("\"record\":\"{kind}\"").as_bytes());
    let members = members.to_string();
    // Without the braces.
    if let Some(members) = members.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'))
        && !members.is_empty()
    {
        out.push(b',');
        out.extend_from_slice(members.as_bytes());
    }
}

fn cannot_write(file: &AuditFile, error: &std::io::Error) -> String {
    format!("cannot write the audit file {}: {error}", file.path().display())
}

/// The writing thread.
struct Writer {
    shared: Arc<Shared>,
    on_error: OnError,
    sync: Duration,
    file: AuditFile,
    /// The last line of the chain, in the file or in `out`.
    last: Last,
    /// Bytes to be written. They begin within a line after a failure.
    out: Vec<u8>,
    /// Lines that end in `out`.
    lines: u64,
    /// Time of the first write that is not durable yet.
    unsynced: Option<Instant>,
    is_failing: bool,
    /// The error that was reported last, until the file is written again.
    reported: Option<String>,
    on_failure: Option<Box<dyn FnOnce() + Send>>,
    /// Records taken from the queue; the capacity stays.
    taken: (Vec<u8>, Vec<(usize, Timestamp)>),
}

impl Writer {
    fn run(&mut self) {
        loop {
            let is_ending = self.take();
            self.write();
            let is_due = self.unsynced.is_some_and(|since| is_ending || since.elapsed() >= self.sync);
            if is_due {
                self.make_durable();
            }
            if is_ending {
                self.shared.queue().status.lost += self.lines;
                return;
            }
        }
    }

    /// Waits for records, the time to repeat a write, or the time to make lines durable, and chains the records. Returns
    /// whether the run ends.
    fn take(&mut self) -> bool {
        let until = match (self.is_failing, self.unsynced) {
            (true, _) => Some(Instant::now() + RETRY),
            (false, Some(since)) => Some(since + self.sync),
            (false, None) => None,
        };
        let shared = Arc::clone(&self.shared);
        let mut queue = shared.queue();
        loop {
            if queue.is_ending || queue.dropped > 0 && self.on_failure.is_some() {
                break;
            }
            if !self.is_failing && !queue.ends.is_empty() {
                break;
            }
            queue = match until {
                None => shared.wakes.wait(queue).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    shared.wakes.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        let (is_ending, has_dropped) = (queue.is_ending, queue.dropped > 0);
        if is_ending || !self.is_failing {
            let (bytes, ends) = &mut self.taken;
            bytes.clear();
            ends.clear();
            std::mem::swap(bytes, &mut queue.bytes);
            std::mem::swap(ends, &mut queue.ends);
        }
        drop(queue);
        // The first time: later ones are counted.
        if has_dropped && !is_ending && !self.is_failing && self.on_failure.is_some() {
            self.fail(format!(
                "cannot write the audit file {} fast enough: records are lost",
                self.file.path().display()
            ));
        }
        let (bytes, ends) = std::mem::take(&mut self.taken);
        let mut begin = 0;
        for (end, time) in &ends {
            self.last.append(*time, &bytes[begin..*end], &mut self.out);
            begin = *end;
        }
        self.lines += ends.len() as u64;
        // Nothing is taken twice.
        self.taken = (bytes, ends);
        self.taken.1.clear();
        is_ending
    }

    /// Writes the waiting bytes.
    fn write(&mut self) {
        if self.out.is_empty() {
            return;
        }
        let (written, done) = self.file.append(&self.out);
        if written > 0 {
            self.unsynced.get_or_insert_with(Instant::now);
        }
        match done {
            Ok(()) => {
                let mut queue = self.shared.queue();
                queue.status.last = self.last;
                queue.status.lines += std::mem::take(&mut self.lines);
                drop(queue);
                self.out.clear();
                if std::mem::take(&mut self.is_failing) {
                    self.reported = None;
                    warn(&format!("the audit file {} is written again", self.file.path().display()));
                }
            }
            Err(error) => {
                let lines = || self.out[..written].split_inclusive(|byte| *byte == b'\n');
                let whole = || lines().filter_map(|line| line.strip_suffix(b"\n"));
                let (count, last) = (whole().count() as u64, whole().next_back().and_then(Line::parse));
                let mut queue = self.shared.queue();
                queue.status.lines += count;
                queue.status.last = last.map_or(queue.status.last, |line| line.as_last());
                drop(queue);
                self.lines -= count;
                self.out.drain(..written);
                if !std::mem::replace(&mut self.is_failing, true) {
                    self.fail(cannot_write(&self.file, &error));
                }
            }
        }
    }

    /// Makes written lines durable, and looks whether another program has changed the file.
    fn make_durable(&mut self) {
        self.unsynced = None;
        if let Err(error) = self.file.sync() {
            self.fail(format!("{}: lines may not survive a loss of power", cannot_write(&self.file, &error)));
        }
        if let Some(interference) = self.file.interference() {
            self.shared.queue().status.is_disturbed = true;
            self.fail(format!("the audit file {} {interference}", self.file.path().display()));
        }
    }

    /// Counts and reports an error, and stops the run if an error does.
    fn fail(&mut self, reason: String) {
        let stop = self.on_failure.take();
        let is_known = self.reported.as_ref() == Some(&reason);
        match (self.on_error, stop) {
            (OnError::Stop, Some(stop)) => {
                complain(&format!("{reason}; the run stops"));
                stop();
            }
            (OnError::Continue, _) if !is_known => warn(&format!("{reason}; the run continues")),
            _ => {}
        }
        let mut queue = self.shared.queue();
        queue.status.errors += 1;
        if queue.status.failure.is_none() {
            queue.status.failure = Some(reason.clone());
        }
        drop(queue);
        self.reported = Some(reason);
    }
}

/// The account of the audit of a run.
#[derive(Clone, Debug)]
pub struct AuditSummary {
    file: String,
    status: Status,
    /// Whether the thread has ended in time.
    is_done: bool,
}

impl AuditSummary {
    /// Whether every record is in the file, which no other program has changed.
    pub fn is_complete(&self) -> bool {
        self.is_done && self.status.lost == 0 && !self.status.is_disturbed
    }

    /// Returns the account as JSON.
    pub fn json(&self) -> Value {
        let Status { last, lines, lost, errors, failure, is_disturbed } = &self.status;
        json!({
            "file": self.file,
            "lines": lines,
            "number": last.number,
            "hash": text(&last.hash),
            "lost": lost,
            "errors": errors,
            "failure": failure,
            "disturbed": is_disturbed,
            "finished": self.is_done,
        })
    }

    /// Returns sentences for the summary.
    pub fn sentences(&self) -> Vec<String> {
        let Status { last, lines, lost, failure, .. } = &self.status;
        let mut all = vec![format!(
            "audit: {} written to {}, the last one with the number {} and the hash {}",
            counted(*lines, "line was", "lines were"),
            self.file,
            grouped(last.number),
            text(&last.hash)
        )];
        if *lost > 0 {
            all.push(format!("audit: {} not written", counted(*lost, "record was", "records were")));
        }
        all.extend(failure.as_ref().map(|reason| format!("audit: {reason}")));
        if !self.is_done {
            all.push("audit: the last lines could not be written in time".to_owned());
        }
        all
    }
}
