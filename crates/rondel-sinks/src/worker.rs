//! The thread of a sink, as steps that do not wait.

use std::sync::Arc;
use std::time::Duration;

use crate::entry::{Entry, Loss};
use crate::queue::Batch;
use crate::shared::{Shared, ticks};
use crate::sink::{Failure, FailureKind, Progress, Sink};
use crate::status::{Condition, Dropped, Reason};

/// Longest duration of one call of a sink.
pub(crate) const CALL: Duration = Duration::from_secs(5);
/// Longest duration of one piece of maintenance.
const MAINTAIN: Duration = Duration::from_millis(100);
/// Interval of maintenance.
const INTERVAL: Duration = Duration::from_secs(10);
/// First pause after a failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// Longest pause after a failure.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Next action of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another step.
    Step,
    /// Wait for a change, at most until these ticks.
    WaitUntil(i64),
    /// Close the sink and end.
    End,
}

pub(crate) struct Worker {
    shared: Arc<Shared>,
    sink: Box<dyn Sink>,
    /// Pause after the next failure.
    pause: Duration,
    /// Ticks of the next attempt after a failure.
    retry: Option<i64>,
    /// Whether the sink never accepts anything any more.
    is_broken: bool,
    /// Ticks of the next maintenance.
    maintain: i64,
    /// Ticks of the next look at changes of others.
    look: i64,
    /// State of the pseudorandom numbers that spread the attempts of several processes.
    random: u64,
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, sink: Box<dyn Sink>) -> Worker {
        let (now, random) = (shared.clock.ticks(), shared.now().unsigned_abs() | 1);
        let maintain = now.saturating_add(ticks(INTERVAL));
        let look = if sink.look_interval().is_some() { now } else { i64::MAX };
        Worker { shared, sink, pause: FIRST_PAUSE, retry: None, is_broken: false, maintain, look, random }
    }

    /// Writes the next entries, or does other work that is due.
    pub(crate) fn step(&mut self) -> Next {
        let now = self.shared.clock.ticks();
        let state = self.shared.state();
        if state.has_ended {
            return Next::End;
        }
        if self.is_broken {
            return Next::WaitUntil(i64::MAX);
        }
        if let Some(retry) = self.retry
            && now < retry
        {
            return Next::WaitUntil(retry);
        }
        drop(state);
        if now >= self.maintain {
            self.maintain();
            // Entries come first also if more is due: the next step writes some before the next piece.
        }
        if now >= self.look {
            self.look();
        }
        if let Some(next) = self.write_entries() {
            return next;
        }
        if let Some(next) = self.write_losses() {
            return next;
        }
        self.retry = None;
        Next::WaitUntil(self.maintain.min(self.look))
    }

    /// Writes the next entries of the queue; `None` if there are none.
    fn write_entries(&mut self) -> Option<Next> {
        let (batches, begun) = self.shared.state().queue.front(self.shared.options.batch);
        if batches.is_empty() {
            return None;
        }
        let progress = write(&mut *self.sink, &batches, begun);
        // The queue reuses the memory of batches without other owners.
        drop(batches);
        Some(self.settle(progress))
    }

    /// Writes the losses of the queue that the sink does not know, once nothing else waits; `None` if there are none.
    fn write_losses(&mut self) -> Option<Next> {
        let (losses, run) = {
            let state = self.shared.state();
            (state.unreported, state.run)
        };
        let subject = self.shared.options.name_of_losses.clone();
        let entries: Vec<Entry<'_>> = (losses.iter().zip(Reason::ALL))
            .filter(|(loss, _)| loss.count > 0)
            .map(|(&Dropped { count, from, until }, reason)| {
                Entry::Loss(Loss { run, reason: reason.as_str(), subject: &subject, count, from, until })
            })
            .collect();
        if entries.is_empty() {
            return None;
        }
        let result = self.sink.write(&entries, CALL);
        let failure = result.err();
        if failure.as_ref().is_none_or(|failure| failure.kind == FailureKind::Rejected) {
            let mut state = self.shared.state();
            for (unreported, reported) in state.unreported.iter_mut().zip(losses) {
                unreported.count -= reported.count;
            }
        }
        Some(self.settle(Progress { failure, ..Progress::default() }))
    }

    /// Enters the progress of a write into the shared state.
    fn settle(&mut self, progress: Progress) -> Next {
        let Progress { written, done, rejected, failure } = progress;
        let (now, time) = (self.shared.clock.ticks(), self.shared.now());
        let mut state = self.shared.state();
        state.queue.acknowledge(done);
        state.status.acknowledged += done as u64 - rejected;
        state.status.stored += written.stored;
        state.status.repeated += written.repeated;
        if done > 0 {
            state.moved = now;
            self.pause = FIRST_PAUSE;
        }
        let failed = failure.as_ref().map(|failure| failure.kind);
        state.lose(Reason::Rejected, rejected, time);
        if let Some(failure) = failure {
            state.status.failures += 1;
            state.status.last_error = Some(failure.message);
        }
        let next = match failed {
            None | Some(FailureKind::Rejected) => {
                (self.retry, self.pause) = (None, FIRST_PAUSE);
                state.status.condition = Condition::Connected;
                Next::Step
            }
            Some(FailureKind::Unavailable) => {
                let (since, attempts) = match state.status.condition {
                    Condition::Failing { since, attempts } => (since, attempts + 1),
                    _ => (time, 1),
                };
                state.status.condition = Condition::Failing { since, attempts };
                let retry = now.saturating_add(spread(&mut self.random, self.pause));
                (self.retry, self.pause) = (Some(retry), (2 * self.pause).min(LONGEST_PAUSE));
                Next::WaitUntil(retry)
            }
            Some(FailureKind::Broken) => {
                self.is_broken = true;
                state.status.condition = Condition::Broken { since: time };
                if !self.shared.options.hands_back {
                    let lost = state.queue.clear();
                    state.lose(Reason::Broken, lost, time);
                }
                Next::WaitUntil(i64::MAX)
            }
        };
        drop(state);
        self.shared.notify();
        next
    }

    /// Whether it waits although there are entries.
    pub(crate) fn is_pausing(&self) -> bool {
        self.retry.is_some() || self.is_broken
    }

    fn maintain(&mut self) {
        let more = self.sink.maintain(self.shared.now(), MAINTAIN);
        let now = self.shared.clock.ticks();
        self.maintain = match more {
            Ok(true) => now,
            _ => now.saturating_add(ticks(INTERVAL)),
        };
        self.note_failure(more.map(|_| ()));
    }

    fn look(&mut self) {
        let looked = self.sink.look(self.shared.now(), MAINTAIN);
        let interval = self.sink.look_interval().map_or(i64::MAX, ticks);
        self.look = self.shared.clock.ticks().saturating_add(interval);
        self.note_failure(looked);
    }

    /// Notes a failure that affects no entry.
    fn note_failure(&self, result: Result<(), Failure>) {
        if let Err(failure) = result {
            let mut state = self.shared.state();
            state.status.failures += 1;
            state.status.last_error = Some(failure.message);
        }
    }

    /// Writes the losses that the sink does not know, if it works, and closes it.
    pub(crate) fn close(&mut self) {
        if self.retry.is_none() && !self.is_broken {
            self.write_losses();
        }
        let closed = self.sink.close(CALL);
        self.note_failure(closed);
        let mut state = self.shared.state();
        if !matches!(state.status.condition, Condition::Broken { .. }) {
            state.status.condition = Condition::Closed;
        }
    }
}

/// Writes the entries of batches from a position on.
fn write(sink: &mut dyn Sink, batches: &[Arc<Batch>], begun: usize) -> Progress {
    let mut progress = Progress::default();
    let payloads = batches.iter().enumerate().flat_map(|(i, batch)| {
        let first = if i == 0 { begun } else { 0 };
        batch.entries(first)
    });
    // Entries between two damaged ones are written together.
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for payload in payloads {
        match Entry::decode(payload) {
            Ok(entry) => entries.push(entry),
            Err(error) => {
                if !write_range(sink, &entries, &mut progress) {
                    return progress;
                }
                entries.clear();
                progress.done += 1;
                progress.rejected += 1;
                progress.failure = Some(Failure::rejected(error.to_string()));
            }
        }
    }
    write_range(sink, &entries, &mut progress);
    progress
}

/// Writes entries. Returns whether the sink has written or rejected all of them.
fn write_range(sink: &mut dyn Sink, entries: &[Entry<'_>], progress: &mut Progress) -> bool {
    if entries.is_empty() {
        return true;
    }
    let Progress { written, done, rejected, failure } = sink.write_some(entries, CALL);
    let done = done.min(entries.len());
    progress.done += done;
    // The count of acknowledged entries is the difference.
    progress.rejected += rejected.min(done as u64);
    progress.written.stored += written.stored;
    progress.written.repeated += written.repeated;
    let left = &entries[done..];
    let failed = failure.as_ref().map(|failure| failure.kind);
    if failure.is_some() {
        progress.failure = failure;
    }
    match failed {
        _ if left.is_empty() => failed.is_none_or(|kind| kind == FailureKind::Rejected),
        Some(FailureKind::Rejected) if done == 0 && left.len() == 1 => {
            progress.done += 1;
            progress.rejected += 1;
            true
        }
        Some(FailureKind::Rejected) if done == 0 => {
            let (first, second) = left.split_at(left.len() / 2);
            write_range(sink, first, progress) && write_range(sink, second, progress)
        }
        None if done == 0 => {
            progress.failure = Some(Failure::unavailable("the sink wrote no entry within the time limit"));
            false
        }
        _ => false,
    }
}

/// Returns between a half and all of a pause, in ticks.
fn spread(random: &mut u64, pause: Duration) -> i64 {
    // Xorshift by Marsaglia.
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    let half = ticks(pause) / 2;
    half + (*random % half.max(1).unsigned_abs()) as i64
}

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;
