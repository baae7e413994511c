//! Recorded traces: `rondel check` as a child process.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::child::{Child, Ended, Stdout};
use crate::failure::{Result, same};

/// The time limit for checking a file.
const LIMIT: Duration = Duration::from_secs(600);

/// The measured times of one check of a file.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Checked {
    /// Seconds from the start of the process to its end.
    pub seconds: f64,
    /// CPU seconds of the whole process.
    pub cpu_seconds: f64,
    /// The number of events.
    pub events: u64,
}

impl Checked {
    /// Returns CPU nanoseconds per event.
    pub fn cpu_ns(self) -> f64 {
        self.cpu_seconds * 1e9 / self.events as f64
    }
}

/// Checks a trace with the program `rondel`. `arguments` name the specification and the emitted verdicts, which go to
/// `/dev/null` as JSON; the process must report `events` events.
///
/// # Errors
/// When it fails, or has checked more or fewer events.
pub fn check(rondel: &Path, arguments: &[String], trace: &Path, events: u64) -> Result<Checked> {
    let ended = run(rondel, arguments, trace, Stdout::Nothing)?;
    same(|| format!("events checked in {}", trace.display()), events, events_in(&ended)?)?;
    Ok(Checked { seconds: ended.seconds, cpu_seconds: ended.cpu_seconds, events })
}

/// A check of a file with its memory and its verdicts.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// The times.
    pub checked: Checked,
    /// Peak of the resident memory, in bytes.
    pub peak_bytes: u64,
    /// The number of verdicts, counted through a pipe.
    pub verdicts: u64,
}

/// Checks a trace like [`check`], and counts the verdicts of the same run.
///
/// # Errors
/// When it fails, or has checked more or fewer events.
pub fn measure(rondel: &Path, arguments: &[String], trace: &Path, events: u64) -> Result<Measured> {
    let (ended, peak_bytes) = start(rondel, arguments, trace, Stdout::Counted)?.wait_measured(LIMIT)?;
    let ended = passed(ended)?;
    same(|| format!("events checked in {}", trace.display()), events, events_in(&ended)?)?;
    let checked = Checked { seconds: ended.seconds, cpu_seconds: ended.cpu_seconds, events };
    Ok(Measured { checked, peak_bytes, verdicts: ended.lines })
}

/// Returns the number of verdicts that the same command prints, counted through a pipe.
///
/// # Errors
/// When it fails.
pub fn verdicts(rondel: &Path, arguments: &[String], trace: &Path) -> Result<u64> {
    run(rondel, arguments, trace, Stdout::Counted).map(|ended| ended.lines)
}

fn run(rondel: &Path, arguments: &[String], trace: &Path, stdout: Stdout) -> Result<Ended> {
    passed(start(rondel, arguments, trace, stdout)?.wait(LIMIT)?)
}

fn start(rondel: &Path, arguments: &[String], trace: &Path, stdout: Stdout) -> Result<Child> {
    let mut all = vec!["check".to_owned(), "--format=json".to_owned()];
    all.extend_from_slice(arguments);
    all.push(trace.display().to_string());
    Child::start("check", rondel, &all, stdout)
}

/// Fails unless the check came to its end.
fn passed(ended: Ended) -> Result<Ended> {
    // A violation is a result, not a failure.
    if matches!(ended.status, Some(0 | 1 | 4)) { Ok(ended) } else { Err(ended.failed("check")) }
}

/// Returns the number before "event" in the summary.
fn events_in(ended: &Ended) -> Result<u64> {
    let number = |line: &String| {
        let (number, _) = line.split_once(" event")?;
        number.replace(',', "").parse().ok()
    };
    ended.log.iter().find_map(number).ok_or_else(|| ended.failed("check, without a summary,"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_from_the_summary() {
        let log = vec![String::new(), "1,000,000 events checked against 1 property in 0.020 s".to_owned()];
        let mut ended = Ended { status: Some(0), seconds: 0.0, cpu_seconds: 0.0, lines: 0, log };
        assert_eq!(events_in(&ended).unwrap(), 1_000_000);
        ended.log.clear();
        assert!(events_in(&ended).is_err());
    }
}
