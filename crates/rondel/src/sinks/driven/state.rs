//! The state of a destination, and its outcome at the end of a run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rondel_net::adapter::now;
use rondel_runtime::SinkState;
use rondel_runtime::text::counted;
use rondel_sinks::{Condition, Handle, Status};
use serde_json::{Value, json};

use crate::sinks::queue::{PATIENCE, Queue};
use crate::sinks::spool::Spool;

/// Role of a destination in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The store of verdicts, of `store:` or `--store`.
    Store,
    /// An item of `sinks:`.
    Sink,
}

impl Role {
    /// The name in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Store => "store",
            Role::Sink => "sink",
        }
    }

    /// The participle for its entries.
    fn written(self) -> &'static str {
        match self {
            Role::Store => "stored",
            Role::Sink => "written",
        }
    }
}

/// Whether a condition accepts nothing at present.
pub(super) fn is_down(condition: Condition) -> bool {
    matches!(condition, Condition::Failing { .. } | Condition::Broken { .. })
}

/// Whether a condition has accepted nothing for `wait`.
pub(super) fn is_stuck(condition: Condition, wait: Duration) -> bool {
    match condition {
        Condition::Failing { since, .. } | Condition::Broken { since } => {
            let wait = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
            now().as_nanos().saturating_sub(since) >= wait
        }
        Condition::Starting | Condition::Connected | Condition::Closed => false,
    }
}

/// Waiting entries of a destination with a file.
#[derive(Clone)]
pub(super) struct Kept {
    pub(super) queue: Arc<Queue>,
    pub(super) spool: Arc<Spool>,
}

/// Reads the state of a destination, from any thread.
#[derive(Clone)]
pub struct DestinationHandle {
    pub(super) role: Role,
    pub(super) handle: Handle,
    pub(super) kept: Option<Kept>,
}

impl DestinationHandle {
    /// Returns the state.
    pub fn state(&self) -> DestinationState {
        let status = self.handle.status();
        let (mut waiting, mut dropped, mut in_file) = (status.queued, 0, 0);
        let mut since = status.queued_since;
        if let Some(Kept { queue, spool }) = &self.kept {
            // The file may have the entries that the sink has accepted and not acknowledged, too.
            in_file = spool.waiting();
            waiting = waiting.max(in_file);
            let (before, oldest) = queue.waiting();
            waiting += before as u64;
            let age = oldest.map(|oldest| i64::try_from(oldest.elapsed().as_nanos()).unwrap_or(i64::MAX));
            since = since.or_else(|| age.map(|age| now().as_nanos().saturating_sub(age)));
            dropped = queue.drops().count();
        }
        let file = self.kept.as_ref().map(|kept| kept.spool.path());
        DestinationState { role: self.role, status, waiting, since, dropped, file, in_file }
    }

    /// Number of entries that found no room in the file.
    pub(super) fn dropped(&self) -> u64 {
        self.kept.as_ref().map_or(0, |kept| kept.queue.drops().count())
    }

    /// Waits up to `limit` until everything that it has accepted so far survives this process: it is acknowledged, or in
    /// the file. Returns whether it does.
    pub fn is_written_within(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let left = || deadline.saturating_duration_since(Instant::now());
        let Some(Kept { queue, spool }) = &self.kept else {
            // A broken sink has dropped its entries.
            return self.handle.flush(limit) && !matches!(self.handle.condition(), Condition::Broken { .. });
        };
        loop {
            // Before the flush: entries of the queue are passed on, or put into the file behind those that are passed on.
            let is_passed_on = queue.waiting().0 == 0;
            let is_safe = |step: Duration| {
                spool.is_used() && is_down(self.handle.condition()) || self.handle.flush(step)
            };
            let step = left().min(PATIENCE);
            if is_passed_on && is_safe(step) {
                return true;
            }
            if step.is_zero() {
                return false;
            }
            if !is_passed_on {
                std::thread::sleep(Duration::from_millis(5).min(step));
            }
        }
    }
}

/// State of a destination at one time.
#[derive(Clone, Debug)]
pub struct DestinationState {
    /// Its role.
    pub role: Role,
    /// State and counts of the driver.
    pub status: Status,
    /// Entries that are not written yet.
    pub waiting: u64,
    /// Time of day since which the oldest of them has been waiting, in nanoseconds, unless it is in the file.
    since: Option<i64>,
    /// Entries that found no room in the file.
    dropped: u64,
    /// The file for entries that wait for long, if there is one.
    file: Option<PathBuf>,
    /// Entries in the file.
    pub in_file: u64,
}

impl DestinationState {
    /// The state of a destination without a file.
    #[cfg(test)]
    pub fn of(role: Role, status: Status) -> DestinationState {
        let (waiting, since) = (status.queued, status.queued_since);
        DestinationState { role, waiting, since, status, dropped: 0, file: None, in_file: 0 }
    }

    /// Whether it accepts nothing at present.
    pub fn is_down(&self) -> bool {
        is_down(self.status.condition)
    }

    /// Returns the time of day in nanoseconds since which it has not been written to, as it is down or entries wait for it;
    /// `None` if it has everything. `known` is the result of the last call: entries in the file have no time.
    #[cfg_attr(not(any(feature = "page", feature = "metrics")), allow(dead_code))]
    pub fn behind_since(&self, now: i64, known: Option<i64>) -> Option<i64> {
        let down = match self.status.condition {
            Condition::Failing { since, .. } | Condition::Broken { since } => Some(since),
            Condition::Starting | Condition::Connected | Condition::Closed => None,
        };
        let in_file = (self.in_file > 0).then(|| known.unwrap_or(now));
        [down, self.since, in_file].into_iter().flatten().min()
    }

    /// Entries that were lost.
    pub fn lost(&self) -> u64 {
        self.status.lost() + self.dropped
    }

    /// Returns the state as JSON.
    pub fn json(&self) -> Value {
        let Status { name, condition, stored, repeated, failures, last_error, .. } = &self.status;
        let mut state = json!({
            self.role.as_str(): name,
            "state": condition.as_str(),
            "stored": stored,
            "repeated": repeated,
            "waiting": self.waiting,
            "lost": self.lost(),
            "failures": failures,
            "error": last_error,
        });
        if let Some(file) = &self.file {
            state["spooled"] = self.in_file.into();
            state["file"] = file.display().to_string().into();
        }
        state
    }

    /// Passes the state as a notice shows it to `show`.
    pub(super) fn shown<T>(&self, show: impl FnOnce(&SinkState<'_>) -> T) -> T {
        let file = self.file.as_ref().map(|file| file.display().to_string());
        show(&SinkState {
            role: self.role.as_str(),
            name: &self.status.name,
            state: self.status.condition.as_str(),
            error: self.status.last_error.as_deref(),
            waiting: self.waiting,
            waits_in: file.as_deref(),
            lost: self.lost(),
        })
    }
}

/// Outcome of a destination at the end.
#[derive(Clone, Debug)]
pub struct DestinationSummary {
    pub(super) state: DestinationState,
    pub(super) is_ended: bool,
}

impl DestinationSummary {
    /// Its role.
    pub fn role(&self) -> Role {
        self.state.role
    }

    /// Whether everything was written.
    pub fn is_complete(&self) -> bool {
        self.state.lost() == 0 && self.state.waiting == 0 && self.is_ended
    }

    /// Returns the summary as JSON.
    pub fn json(&self) -> Value {
        self.state.json()
    }

    /// Returns the summary as a sentence.
    pub fn sentence(&self) -> String {
        let DestinationState { role, status, waiting, file, in_file, .. } = &self.state;
        let Status { name, stored, repeated, last_error, .. } = status;
        let written = role.written();
        let mut text = format!("{name}: {} {written}", counted(*stored, "verdict", "verdicts"));
        if *repeated > 0 {
            text += &format!(", {} there already", counted(*repeated, "was", "were"));
        }
        if let Some(file) = file.as_ref().filter(|_| *in_file > 0) {
            let entries = counted(*in_file, "entry waits", "entries wait");
            text += &format!("; {entries} in {}, and the next run writes them", file.display());
        }
        let lost = self.state.lost() + waiting.saturating_sub(*in_file);
        if lost > 0 {
            text += &format!("; {} NOT {written}", counted(lost, "entry was", "entries were"));
        }
        if let Some(error) = last_error.as_ref().filter(|_| lost + in_file > 0) {
            text += &format!(": {error}");
        } else if lost == 0 && !self.is_ended {
            text += &format!("; the {} could not be closed in time", role.as_str());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(role: Role, stored: u64, waiting: u64, in_file: u64) -> DestinationSummary {
        let mut status = Status::default();
        (status.name, status.stored) = ("v".to_owned(), stored);
        status.last_error = Some("it is down".to_owned());
        let file = (in_file > 0).then(|| PathBuf::from("spool/v.spool"));
        let state = DestinationState { role, status, waiting, since: None, dropped: 0, file, in_file };
        DestinationSummary { state, is_ended: true }
    }

    #[test]
    fn sentences_count_waiting_and_lost_entries() {
        let written = summary(Role::Store, 7, 0, 0);
        assert!(written.is_complete());
        assert_eq!(written.sentence(), "v: 7 verdicts stored");
        let lost = summary(Role::Sink, 1, 2, 0);
        assert!(!lost.is_complete());
        assert_eq!(lost.sentence(), "v: 1 verdict written; 2 entries were NOT written: it is down");
        let kept = summary(Role::Store, 0, 3, 3);
        assert!(!kept.is_complete());
        let expected =
            "v: 0 verdicts stored; 3 entries wait in spool/v.spool, and the next run writes them: it is down";
        assert_eq!(kept.sentence(), expected);
        assert_eq!(kept.json()["spooled"], 3);
    }

    #[test]
    fn destinations_are_behind_while_they_are_down_or_entries_wait() {
        let state = |condition, queued_since| {
            let mut status = Status::default();
            (status.condition, status.queued_since) = (condition, queued_since);
            DestinationState::of(Role::Store, status)
        };
        assert_eq!(state(Condition::Connected, None).behind_since(9, Some(1)), None);
        assert_eq!(state(Condition::Starting, Some(7)).behind_since(9, None), Some(7));
        let failing = Condition::Failing { since: 5, attempts: 1 };
        assert_eq!(state(failing, None).behind_since(9, None), Some(5));
        assert_eq!(state(failing, Some(4)).behind_since(9, None), Some(4), "the first entry that is missing");
        assert_eq!(state(Condition::Broken { since: 3 }, None).behind_since(9, None), Some(3));
        let mut spooled = state(Condition::Connected, None);
        spooled.in_file = 2;
        assert_eq!(spooled.behind_since(9, None), Some(9));
        assert_eq!(spooled.behind_since(11, Some(9)), Some(9));
    }

    #[test]
    fn failures_are_stuck_after_a_while() {
        let failing = |ago: i64| Condition::Failing { since: now().as_nanos() - ago, attempts: 1 };
        let wait = Duration::from_secs(60);
        assert!(is_stuck(failing(61_000_000_000), wait) && !is_stuck(failing(0), wait));
        assert!(!is_stuck(Condition::Connected, Duration::ZERO));
    }
}
