//! Files of messages that have waited in a [queue](crate::sinks::queue) for too long.
//!
//! Once a sink has not accepted a message in time, the thread of its queue puts it into a file, and so does it with
//! everything after it: the order stays. Messages that the network has accepted and no consumer has confirmed go before
//! it. The thread publishes from the file until everything is sent. Messages that are not confirmed by the end of the
//! run stay in the file. A spool that is set in the deployment keeps unconfirmed messages from the first one on; a spool
//! by default is begun, and its folder made, by the first message that has waited for too long.

mod all;
mod file;
mod record;
mod settings;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rondel_net::adapter::{Drops, PublishError, Publisher, now};
use rondel_runtime::text::{counted, grouped};

pub use all::{Spools, can_refuse};
use file::{Next, SpoolFile};
pub use settings::SpoolSettings;

use crate::warn;

/// Verdicts after which a batching publisher is released.
const BURST: u64 = 64;

/// The verdicts that wait for one sink.
#[derive(Debug)]
pub struct Spool {
    sink: String,
    is_default: bool,
    /// Whether every verdict of the file is confirmed before others are published directly, so that a kill of the process
    /// loses none.
    is_confirmed_first: bool,
    /// Whether the publisher hands back unconfirmed verdicts.
    is_begun: AtomicBool,
    /// The flag of the queue, which is set where verdicts wait in the file.
    waits: Arc<AtomicBool>,
    /// Whether verdicts wait in the file; changed under the lock.
    is_used: AtomicBool,
    state: Mutex<State>,
    /// Counter of verdicts that the file had no room for.
    drops: Arc<Drops>,
}

#[derive(Debug)]
struct State {
    file: SpoolFile,
    /// Verdicts that an earlier run has left.
    earlier: u64,
    /// Verdicts in the file that were damaged, at least; they are dropped.
    damaged: u64,
    /// Verdicts of this run that were refused and put into the file.
    kept: u64,
    /// Verdicts published from the file for the first time.
    delivered: u64,
    /// Number of unsent verdicts in the file that were sent before.
    again: u64,
    /// Number of sent verdicts in the file that the network cannot carry.
    unsendable: u64,
    /// Whether the consumer has accepted a verdict since it refused one.
    is_moving: bool,
    /// Whether the thread is publishing a verdict of the file.
    is_sending: bool,
    /// Whether the file was full since it was last empty.
    is_full: bool,
    /// Reason why the file cannot be used any more.
    failure: Option<String>,
    /// Verdicts published from the file since the last release.
    burst: u64,
    /// Whether unconfirmed verdicts were put into the file for the next run.
    is_settled: bool,
}

impl State {
    /// Number of verdicts in the file that were sent and not confirmed.
    fn unconfirmed(&self) -> u64 {
        self.file.sent() + self.again - self.unsendable.min(self.file.sent())
    }
}

impl Spool {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counter of verdicts that the file had no room for.
    pub fn drops(&self) -> Arc<Drops> {
        Arc::clone(&self.drops)
    }

    /// The file.
    pub fn path(&self) -> PathBuf {
        self.state().file.path().to_owned()
    }

    /// The number of verdicts in the file.
    pub fn waiting(&self) -> u64 {
        self.state().file.len()
    }

    /// Returns the first verdict that waits, if there is one and it is not damaged.
    pub fn first(&self) -> Option<Vec<u8>> {
        let mut payload = Vec::new();
        let next = self.state().file.next(&mut payload);
        matches!(next, Ok(Next::Payload)).then_some(payload)
    }

    /// Whether verdicts wait.
    #[inline]
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// The flag by which a queue knows that verdicts wait.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.waits)
    }

    /// Whether the file cannot be used any more.
    pub fn has_failed(&self) -> bool {
        self.state().failure.is_some()
    }

    /// Whether the publisher hands back unconfirmed verdicts.
    pub fn is_begun(&self) -> bool {
        self.is_begun.load(Ordering::Acquire)
    }

    /// Makes a publisher hand back unconfirmed verdicts, unless that begins with the first verdict that has to wait.
    /// Returns whether it does.
    pub fn begin(&self, publisher: &dyn Publisher) -> bool {
        if !self.is_default || self.is_used() {
            self.hand_back(publisher);
        }
        self.is_begun()
    }

    fn hand_back(&self, publisher: &dyn Publisher) {
        if !self.is_begun.swap(true, Ordering::AcqRel) {
            publisher.hand_back();
        }
    }

    fn set_used(&self) -> bool {
        self.waits.store(true, Ordering::Release);
        self.is_used.swap(true, Ordering::Release)
    }

    /// Keeps a verdict that a publisher has not accepted in time, after the unconfirmed verdicts of the publisher.
    ///
    /// # Errors
    /// [`PublishError::Slow`]: there was no room; the verdict is dropped and counted.
    pub fn keep(&self, publisher: &dyn Publisher, payload: &[u8]) -> Result<(), PublishError> {
        self.hand_back(publisher);
        let mut state = self.state();
        if state.file.is_empty() {
            state.is_moving = false;
            // A verdict without room may still be confirmed.
            self.add_unconfirmed(&mut state, publisher);
        }
        self.add(&mut state, payload)
    }

    fn add(&self, state: &mut State, payload: &[u8]) -> Result<(), PublishError> {
        let is_added = self.push(state, payload);
        if is_added {
            state.kept += 1;
        } else {
            if state.failure.is_none() && !std::mem::replace(&mut state.is_full, true) {
                let path = state.file.path().display().to_string();
                warn(&format!(
                    "{}: {path} is full with {}; further ones are dropped until it is not",
                    self.sink,
                    counted(state.file.len(), "verdict", "verdicts")
                ));
            }
            self.drops.add(1, now());
        }
        self.begin_use(state);
        if is_added { Ok(()) } else { Err(PublishError::Slow) }
    }

    /// Lets further verdicts wait behind those in the file, if there are any.
    fn begin_use(&self, state: &State) {
        if !state.file.is_empty() && !self.set_used() {
            warn(&format!(
                "{}: a consumer does not accept verdicts; they are kept in {} until it does",
                self.sink,
                state.file.path().display()
            ));
        }
    }

    /// Puts unconfirmed verdicts into the file, unless verdicts wait there: their consumer has failed for some time.
    pub fn keep_stuck(&self, publisher: &dyn Publisher) {
        let mut state = self.state();
        if state.file.is_empty() {
            state.is_moving = false;
            // Those without room may still be confirmed.
            self.add_unconfirmed(&mut state, publisher);
            self.begin_use(&state);
        }
    }

    /// Puts a payload into the file. Returns whether there was room.
    fn push(&self, state: &mut State, payload: &[u8]) -> bool {
        if state.failure.is_some() {
            return false;
        }
        state.file.push(payload).unwrap_or_else(|error| {
            let path = state.file.path().display().to_string();
            // Another process may make room on a full disk.
            if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
                if !std::mem::replace(&mut state.is_full, true) {
                    let sink = &self.sink;
                    warn(&format!(
                        "{sink}: {path} cannot grow: {error}; verdicts are dropped while it is so"
                    ));
                }
            } else {
                warn(&format!("{}: cannot write {path}: {error}; verdicts are dropped", self.sink));
                state.failure = Some(error.to_string());
            }
            false
        })
    }

    /// Puts a payload behind all others into the file at the end of the run, also beyond its limit. Returns whether it is
    /// there.
    pub fn keep_beyond_limit(&self, payload: &[u8]) -> bool {
        let mut state = self.state();
        state.failure.is_none() && state.file.push_beyond_limit(payload).unwrap_or(false)
    }

    /// Puts published and unconfirmed verdicts into the empty file. Returns the number of verdicts without room.
    fn add_unconfirmed(&self, state: &mut State, publisher: &dyn Publisher) -> u64 {
        let mut left_out = 0;
        publisher.unconfirmed_payloads(&mut |payload| {
            if left_out == 0 && self.push(state, payload) {
                state.file.send(payload.len());
            } else {
                left_out += 1;
            }
        });
        left_out
    }

    /// Removes confirmed verdicts from the file, if the number of unconfirmed ones is known. Verdicts that were given up
    /// are sent again as soon as there is a subscriber.
    fn look(&self, state: &mut State, publisher: &dyn Publisher, unconfirmed: Option<u64>) {
        if !self.is_used() {
            let mut lost = 0;
            publisher.take_abandoned(&mut |payload| {
                // Verdicts published from here on follow.
                self.set_used();
                if self.push(state, payload) {
                    state.again += 1;
                } else {
                    lost += 1;
                }
            });
            self.drops.add(lost, now());
            self.is_used.store(!state.file.is_empty(), Ordering::Release);
            if self.is_used() {
                warn(&format!(
                    "{}: a consumer was lost that has not confirmed {}; they and further ones are kept in {} until \
                     somebody subscribes",
                    self.sink,
                    counted(state.file.len(), "verdict", "verdicts"),
                    state.file.path().display()
                ));
            }
            return;
        }
        self.confirm(state, unconfirmed);
        let (sent, mut abandoned, mut lost) = (state.file.sent(), 0, 0);
        publisher.take_abandoned(&mut |payload| {
            abandoned += 1;
            // Not in the file yet: published before the file was used, or without room.
            if abandoned > sent {
                let is_kept = self.push(state, payload);
                state.kept += u64::from(is_kept);
                lost += u64::from(!is_kept);
            }
        });
        self.drops.add(lost, now());
        if abandoned > 0 {
            state.again += sent;
            state.file.rewind();
        }
        if state.file.is_empty() || state.file.is_sent() && state.is_moving && !self.is_confirmed_first {
            self.leave(state);
        }
    }

    /// Removes confirmed verdicts from the file, if the number of unconfirmed ones is known.
    fn confirm(&self, state: &mut State, unconfirmed: Option<u64>) {
        let Some(unconfirmed) = unconfirmed else { return };
        let confirmed = match unconfirmed {
            0 => state.file.sent(),
            _ => state.file.sent().saturating_sub(unconfirmed + state.unsendable),
        };
        if unconfirmed == 0 {
            state.unsendable = 0;
        }
        self.remove(state, confirmed);
    }

    fn remove(&self, state: &mut State, count: u64) {
        if let Err(error) = state.file.confirm(count) {
            // A later run may publish it again.
            tracing::debug!(path = %state.file.path().display(), %error, "cannot note what was published");
        }
    }

    /// Switches to direct publishing. The publisher has the unconfirmed verdicts.
    fn leave(&self, state: &mut State) {
        state.file.clear();
        (state.is_full, state.unsendable, state.again) = (false, 0, 0);
        self.is_used.store(false, Ordering::Release);
        warn(&format!(
            "{}: the consumer accepts verdicts again; {} published from the file so far, {} dropped",
            self.sink,
            grouped(state.delivered),
            grouped(self.drops.count())
        ));
    }

    /// Keeps verdicts that are unconfirmed at the end of the run, if the publisher hands them back.
    pub fn keep_unconfirmed(&self, publisher: &dyn Publisher) {
        if !self.is_begun() {
            return;
        }
        let mut state = self.state();
        // A publisher of several properties is flushed for each.
        if std::mem::replace(&mut state.is_settled, true) {
            return;
        }
        let left_out = if state.file.is_empty() {
            self.add_unconfirmed(&mut state, publisher)
        } else {
            let unconfirmed = publisher.unconfirmed();
            self.confirm(&mut state, unconfirmed);
            let in_file = state.file.sent() + u64::from(state.is_sending);
            unconfirmed.unwrap_or(0).saturating_sub(in_file)
        };
        self.drops.add(left_out, now());
    }

    fn read(&self, state: &mut State, payload: &mut Vec<u8>) -> bool {
        loop {
            match state.file.next(payload) {
                Ok(Next::Damaged) => self.skip(state, payload.len()),
                Ok(next) => return next == Next::Payload,
                Err(error) => {
                    self.give_up(state, &error);
                    payload.clear();
                    return false;
                }
            }
        }
    }

    /// Drops the next verdict, of `length` bytes, which was damaged.
    fn skip(&self, state: &mut State, length: usize) {
        let (sink, path) = (&self.sink, state.file.path().display());
        warn(&format!("{sink}: {path} is damaged: a verdict of it is lost"));
        state.damaged += 1;
        self.give_up_next(state, length);
    }

    /// Drops the next verdict, of `length` bytes, which cannot be sent.
    fn give_up_next(&self, state: &mut State, length: usize) {
        self.drops.add(1, now());
        state.file.send(length);
        state.unsendable += 1;
        state.again = state.again.saturating_sub(1);
    }

    /// Gives up a file that cannot be read.
    fn give_up(&self, state: &mut State, error: &io::Error) {
        let path = state.file.path().display().to_string();
        warn(&format!("{}: cannot read {path}: {error}; what waits there is lost", self.sink));
        state.failure = Some(error.to_string());
        // Sent verdicts may still be confirmed.
        let sent = state.file.sent();
        let lost = state.file.clear() - sent;
        self.drops.add(lost, now());
        self.is_used.store(false, Ordering::Release);
    }

    fn send(&self, state: &mut State, length: usize) {
        state.file.send(length);
        match state.again.checked_sub(1) {
            Some(again) => state.again = again,
            None => state.delivered += 1,
        }
    }

    /// Looks for verdicts that no consumer will confirm any more, while none wait.
    pub fn look_for_abandoned(&self, publisher: &dyn Publisher) {
        self.look(&mut self.state(), publisher, None);
    }

    /// Publishes the next verdict that waits, for which the publisher may wait up to `limit`. Only one thread calls it.
    pub fn step(&self, publisher: &dyn Publisher, limit: Duration, payload: &mut Vec<u8>) -> Step {
        // Without the lock, as it may take a while: only this thread sends more, once the file is used.
        if self.is_confirmed_first && self.is_used() && self.state().file.is_sent() {
            publisher.settle(limit);
        }
        let unconfirmed = if self.is_used() { publisher.unconfirmed() } else { None };
        let mut state = self.state();
        self.look(&mut state, publisher, unconfirmed);
        if !self.is_used() || state.file.is_sent() {
            return Step::Nothing;
        }
        if !self.read(&mut state, payload) {
            // Those that were damaged are gone.
            return Step::Published;
        }
        state.is_sending = true;
        drop(state);
        // Without a subscriber the verdict would be lost.
        let sent = publisher.wait_matched(limit).then(|| publisher.offer(payload, limit));
        let mut state = self.state();
        state.is_sending = false;
        match sent {
            None => Step::Refused,
            Some(Ok(())) => {
                state.burst += 1;
                // Before the flag is cleared: verdicts published directly come after it.
                state.is_moving = true;
                self.send(&mut state, payload.len());
                if state.burst.is_multiple_of(BURST) || state.file.is_sent() {
                    drop(state);
                    publisher.release();
                }
                Step::Published
            }
            Some(Err(PublishError::Slow)) => {
                // It is still kept.
                state.is_moving = false;
                drop(state);
                publisher.release();
                Step::Refused
            }
            Some(Err(PublishError::Closed)) => Step::Closed,
            Some(Err(error)) => {
                tracing::warn!(sink = %self.sink, "cannot publish a verdict: {error}");
                self.give_up_next(&mut state, payload.len());
                Step::Published
            }
        }
    }
}

/// The outcome of publishing from the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing waits to be sent.
    Nothing,
    /// A verdict was published, or given up: the next one may follow at once.
    Published,
    /// The sink does not accept it now.
    Refused,
    /// The network is closed.
    Closed,
}
