//! State that the thread of a sink shares with feeds and handles.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rondel_runtime::Clock;

use crate::driver::{Options, SlowConsumer};
use crate::entry::{RunKey, nanos};
use crate::queue::{Batch, Queue};
use crate::status::{Condition, Dropped, Reason, Status};

pub(crate) struct Shared {
    state: Mutex<State>,
    /// Wakes the thread of the sink and those that wait for it.
    changed: Condvar,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Options,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) queue: Queue,
    pub(crate) status: Status,
    /// Losses that the sink has not been sent yet, in the order of [`Reason::ALL`].
    pub(crate) unreported: [Dropped; 4],
    /// Key of the latest run, to which losses of the queue belong.
    pub(crate) run: RunKey,
    /// Ticks at which the sink last acknowledged entries, or began to have some.
    pub(crate) moved: i64,
    /// Whether nothing more is to be written.
    pub(crate) has_ended: bool,
    /// Whether the thread runs.
    pub(crate) is_running: bool,
}

/// Error of [`Handle::offer`](crate::Handle::offer): the entry still belongs to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The queue has no room now.
    #[error("the queue of the sink is full")]
    Full,
    /// The sink is closed or broken.
    #[error("the sink accepts nothing any more")]
    Closed,
}

impl Shared {
    pub(crate) fn new(name: &str, options: Options, clock: Arc<dyn Clock>) -> Shared {
        let status = Status { name: name.to_owned(), ..Status::default() };
        let moved = clock.ticks();
        let state = State { queue: Queue::new(options.bounds), status, moved, ..State::default() };
        Shared { state: Mutex::new(state), changed: Condvar::new(), clock, options }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Waits for a change, up to `nanos`.
    pub(crate) fn wait<'s>(&self, state: MutexGuard<'s, State>, nanos: Option<i64>) -> MutexGuard<'s, State> {
        match nanos {
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(nanos) => {
                let limit = Duration::from_nanos(nanos.max(0).unsigned_abs());
                self.changed.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    pub(crate) fn now(&self) -> i64 {
        nanos(self.clock.time_of_day())
    }

    /// Moves a batch into the queue as the policy says. Returns whether it was accepted; otherwise it was dropped and
    /// counted. The batch is empty afterwards.
    pub(crate) fn push(&self, batch: &mut Batch) -> bool {
        let count = batch.len() as u64;
        let patience = match self.options.slow_consumer {
            SlowConsumer::Drop => 0,
            SlowConsumer::Block { limit } => ticks(limit),
        };
        match self.insert(batch, patience) {
            Ok(()) => true,
            Err(refused) => {
                batch.reset();
                let reason = match refused {
                    Refused::Full => Reason::Full,
                    Refused::Closed => Reason::Broken,
                };
                let mut state = self.state();
                let reason = if state.has_ended { Reason::Ended } else { reason };
                state.lose(reason, count, self.now());
                false
            }
        }
    }

    /// Moves a batch into the queue. Waits for room while the sink works and has acknowledged something during the last
    /// `patience` ticks, so that a sink that is down holds up the caller once and not at every call.
    pub(crate) fn insert(&self, batch: &mut Batch, patience: i64) -> Result<(), Refused> {
        let mut state = self.state();
        loop {
            if !state.accepts() {
                return Err(Refused::Closed);
            }
            if state.queue.has_room(batch.len(), batch.bytes()) {
                break;
            }
            let left = state.moved.saturating_add(patience).saturating_sub(self.clock.ticks());
            if left <= 0 || matches!(state.status.condition, Condition::Failing { .. }) {
                return Err(Refused::Full);
            }
            state = self.wait(state, Some(left));
        }
        state.status.accepted += batch.len() as u64;
        let was_empty = state.queue.len() == 0;
        if was_empty {
            state.moved = self.clock.ticks();
        }
        let now = self.now();
        state.queue.push(batch, now);
        drop(state);
        if was_empty {
            self.notify();
        }
        Ok(())
    }
}

impl State {
    /// Whether the queue takes entries.
    pub(crate) fn accepts(&self) -> bool {
        self.is_running
            && !self.has_ended
            && !matches!(self.status.condition, Condition::Broken { .. } | Condition::Closed)
    }

    /// Counts entries as dropped.
    pub(crate) fn lose(&mut self, reason: Reason, count: u64, now: i64) {
        self.status.drop_entries(reason, count, now);
        if count > 0 {
            self.unreported[reason as usize].add(count, now);
        }
    }

    /// Returns the status with the present lengths of the queue.
    pub(crate) fn status(&self) -> Status {
        Status {
            queued: self.queue.len() as u64,
            queued_bytes: self.queue.bytes() as u64,
            queued_since: self.queue.since(),
            ..self.status.clone()
        }
    }
}

/// Converts a duration to ticks.
pub(crate) fn ticks(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
