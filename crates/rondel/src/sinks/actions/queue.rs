//! The records of verdicts that wait for their actions, and their account.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rondel_event::{Timestamp, Value, Verdict};

use super::feed::ActingProperties;

/// Records of each kind of action that may wait.
pub(super) const WAITING: usize = 1024;
/// Calls of services at once.
pub(super) const CALLS: usize = 4;

/// A verdict that causes an action.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// Position of the action.
    pub(super) action: u32,
    /// Position of the property.
    pub(super) property: u32,
    /// The properties of its specification.
    pub(super) properties: Arc<ActingProperties>,
    pub(super) verdict: Verdict,
    pub(super) time: Timestamp,
    pub(super) robustness: Option<f64>,
    /// Id of the verdict; empty if it has none.
    pub(super) id: Vec<u8>,
    /// Values of the parameters.
    pub(super) parameters: Vec<Value>,
    /// Values of the explanation that actions of the property use, as far as they are known.
    pub(super) values: Vec<Option<Value>>,
}

/// Kind of an action, for its place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Publish,
    Run,
    Call,
}

/// Numbers of an action.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Verdicts that cause it.
    pub(super) caused: AtomicU64,
    /// Those beyond its limits.
    pub(super) limited: AtomicU64,
    /// Those without room in the queue, or not done before the end.
    pub(super) dropped: AtomicU64,
    /// Actions that succeeded.
    pub(super) done: AtomicU64,
    /// Actions that failed.
    pub(super) failed: AtomicU64,
}

impl Counters {
    pub(super) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Records of one kind, and the threads that act on them.
#[derive(Debug)]
pub(super) struct KindQueue {
    records: VecDeque<Record>,
    /// Actions that last at present.
    running: usize,
    /// Maximum number of these.
    slots: usize,
}

/// The queue between the evaluating thread, the acting one and those of programs and calls.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
pub(super) struct State {
    queues: [KindQueue; 3],
    /// Time by which everything ends, once the run ends.
    end: Option<Instant>,
}

impl State {
    fn queue(&mut self, of: Kind) -> &mut KindQueue {
        &mut self.queues[of as usize]
    }

    /// Takes the next record whose action can begin, and counts it as running.
    fn start(&mut self) -> Option<(Kind, Record)> {
        for (kind, queue) in [Kind::Publish, Kind::Run, Kind::Call].into_iter().zip(&mut self.queues) {
            if queue.running < queue.slots
                && let Some(record) = queue.records.pop_front()
            {
                queue.running += 1;
                return Some((kind, record));
            }
        }
        None
    }

    fn is_idle(&self) -> bool {
        self.queues.iter().all(|queue| queue.records.is_empty() && queue.running == 0)
    }
}

impl Queue {
    /// Creates an empty queue for up to `programs` programs at once.
    pub(super) fn new(programs: usize) -> Queue {
        let queue = |slots| KindQueue { records: VecDeque::new(), running: 0, slots };
        let queues = [queue(1), queue(programs.max(1)), queue(CALLS)];
        Queue { state: Mutex::new(State { queues, end: None }), changed: Condvar::new() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a record. Returns whether there was room.
    pub(super) fn push(&self, of: Kind, record: Record) -> bool {
        let mut state = self.state();
        let has_ended = state.end.is_some_and(|end| Instant::now() >= end);
        let queue = state.queue(of);
        if has_ended || queue.records.len() >= WAITING {
            return false;
        }
        queue.records.push_back(record);
        drop(state);
        self.changed.notify_all();
        true
    }

    /// Waits for a record whose action can begin; `None` once the run ends and nothing is left, or its time is over.
    pub(super) fn next(&self) -> Option<(Kind, Record)> {
        let mut state = self.state();
        loop {
            let left = state.end.map(|end| end.saturating_duration_since(Instant::now()));
            match left {
                Some(left) if left.is_zero() => return None,
                Some(_) if state.is_idle() => return None,
                _ => {}
            }
            if let Some(next) = state.start() {
                return Some(next);
            }
            state = match left {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Marks an action as ended.
    pub(super) fn done(&self, of: Kind) {
        let mut state = self.state();
        let queue = state.queue(of);
        queue.running = queue.running.saturating_sub(1);
        drop(state);
        self.changed.notify_all();
    }

    /// Ends the queue at this time, or once nothing is left.
    pub(super) fn end_at(&self, end: Instant) {
        self.state().end = Some(end);
        self.changed.notify_all();
    }

    /// Time by which everything ends, once the run ends.
    pub(super) fn end(&self) -> Option<Instant> {
        self.state().end
    }

    /// Waits for the actions that last, until this time. Returns whether all have ended.
    pub(super) fn wait_idle(&self, until: Instant) -> bool {
        let mut state = self.state();
        while state.queues.iter().any(|queue| queue.running > 0) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Takes all records that wait.
    pub(super) fn take_all(&self) -> Vec<Record> {
        self.state().queues.iter_mut().flat_map(|queue| queue.records.drain(..)).collect()
    }

    /// Number of records that wait, and of actions that last.
    pub(super) fn waiting(&self) -> usize {
        self.state().queues.iter().map(|queue| queue.records.len() + queue.running).sum()
    }
}
