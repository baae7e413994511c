//! Queues of messages for sinks that temporarily accept nothing.
//!
//! A [`Queued`] publisher wraps that of a network. While the sink accepts all messages, a message costs one read of a
//! flag, and is published by the evaluating thread. The first message that is not accepted within [`FIRST`] goes into a
//! [`Queue`] in memory, and so do all later ones: the order stays, and the evaluating thread does not wait any more. A
//! thread of the sink publishes the waiting messages. Messages that have waited for too long, and those without room in
//! the queue, go to the file of a [`Spool`], if there is one, or are dropped and counted. Standard output gathers lines
//! and uses a queue [in its own way](crate::sinks::console).

mod memory;
mod queued;
mod sender;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rondel_event::Timestamp;
use rondel_net::adapter::{Drops, PublishError, Publisher, now};

use crate::sinks::spool::Spool;
use crate::warn;
use memory::Memory;
pub use queued::{NETWORK, Queued};

/// Time that the evaluating thread waits for a sink before its messages go into the queue.
pub const FIRST: Duration = Duration::from_micros(500);
/// Time of one wait of the sink's thread for the sink.
pub const PATIENCE: Duration = Duration::from_millis(100);
/// Maximum time since the last accepted message for which a full queue still waits for its sink.
const MOVES: Duration = Duration::from_millis(100);
/// Pause after a message was refused.
const PAUSE: Duration = Duration::from_millis(10);
/// Time limit at the end for the thread of a sink, which may be blocked in a call of its network.
const LEAVE: Duration = Duration::from_millis(300);
/// The same where the thread puts the remaining messages into a file: on a busy machine that takes longer. Messages that
/// remain afterwards are dropped.
const LEAVE_IN_FILE: Duration = Duration::from_secs(3);

/// The sentences about a sink.
#[derive(Clone, Debug)]
pub struct Words {
    /// Reason why messages are dropped from now on.
    pub refuses: fn() -> String,
    /// Statement that messages are accepted again.
    pub accepts: fn() -> String,
}

/// The messages that wait for one sink.
#[derive(Debug)]
pub struct Queue {
    sink: String,
    words: Words,
    /// Maximum time that a message waits in memory.
    wait: Duration,
    /// Whether messages wait, so that new ones have to wait too. The spool sets it too; it is cleared under the lock.
    is_used: Arc<AtomicBool>,
    state: Mutex<State>,
    /// Wakes the thread and the threads that wait for it.
    changed: Condvar,
    drops: Arc<Drops>,
    /// Messages that were accepted by the queue, and dropped later.
    withdrawn: AtomicU64,
    spool: Option<Arc<Spool>>,
}

#[derive(Debug, Default)]
struct State {
    memory: Memory,
    /// Whether the first message is being published.
    is_sending: bool,
    /// Whether the thread runs.
    is_running: bool,
    /// Whether the thread waits for messages.
    is_idle: bool,
    /// Time at which the sink last accepted a message from the queue.
    moved: Option<Instant>,
    /// Whether a thread waits for room.
    is_awaited: bool,
    /// Whether messages were dropped since the sink last accepted one.
    is_dropping: bool,
    /// Whether the sink has accepted a message and published only a part of it.
    is_partial: bool,
    /// Whether the sink is closed: nothing more can be published, and further messages go into the file.
    is_closed: bool,
    /// Whether nothing more is to be published.
    ended: bool,
}

impl Queue {
    /// Creates an empty queue of a sink. A message waits in it up to `wait` before it goes to the spool or is dropped.
    pub fn new(sink: String, words: Words, wait: Duration, spool: Option<Arc<Spool>>) -> Arc<Queue> {
        let is_used = spool.as_ref().map_or_else(Arc::default, |spool| spool.flag());
        let drops = spool.as_ref().map_or_else(Arc::default, |spool| spool.drops());
        let (state, changed, withdrawn) = Default::default();
        Arc::new(Queue { sink, words, wait, is_used, state, changed, drops, withdrawn, spool })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counter of messages that were dropped.
    pub fn drops(&self) -> Arc<Drops> {
        Arc::clone(&self.drops)
    }

    /// The sink.
    pub fn sink(&self) -> &str {
        &self.sink
    }

    /// The number of messages that wait in memory, and since when the first of them does.
    pub fn waiting(&self) -> (usize, Option<Instant>) {
        let state = self.state();
        (state.memory.len(), state.memory.since())
    }

    /// The number of messages that were accepted and dropped later.
    pub fn withdrawn(&self) -> u64 {
        self.withdrawn.load(Ordering::Relaxed)
    }

    /// Whether messages wait.
    #[inline]
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// Starts the thread of the sink, if an earlier run has left messages, or messages are to be kept from the first one on.
    pub fn begin(self: &Arc<Queue>, publisher: &Arc<dyn Publisher>) {
        if self.spool.as_ref().is_some_and(|spool| spool.begin(&**publisher) || spool.is_used()) {
            self.start(&mut self.state(), publisher);
        }
    }

    fn start(self: &Arc<Queue>, state: &mut State, publisher: &Arc<dyn Publisher>) {
        if state.is_running || state.ended {
            return;
        }
        let (queue, publisher) = (Arc::clone(self), Arc::clone(publisher));
        let thread = std::thread::Builder::new().name("sink".to_owned());
        match thread.spawn(move || queue.run(&*publisher)) {
            Ok(_) => state.is_running = true,
            Err(error) => {
                warn(&format!("{}: cannot start a thread: {error}; messages are dropped", self.sink));
                let lost = state.memory.clear();
                self.withdraw(state, lost);
                self.is_used.store(false, Ordering::Release);
            }
        }
    }

    /// Adds a message behind those that wait. Returns `None` if there are none; then it is not added.
    ///
    /// # Errors
    /// [`PublishError::Slow`]: there is no room; the message is dropped and counted.
    pub fn push_behind(&self, payload: &[u8]) -> Option<Result<(), PublishError>> {
        if !self.is_used() {
            return None;
        }
        let state = self.state();
        self.is_used().then(|| self.push(state, payload))
    }

    /// Adds a message that the sink has refused.
    ///
    /// # Errors
    /// [`PublishError::Slow`]: there is no room; the message is dropped and counted.
    pub fn push_refused(
        self: &Arc<Queue>,
        publisher: &Arc<dyn Publisher>,
        payload: &[u8],
    ) -> Result<(), PublishError> {
        let mut state = self.state();
        self.is_used.store(true, Ordering::Release);
        self.start(&mut state, publisher);
        if !state.is_running {
            self.drop_messages(&mut state, 1, now());
            return Err(PublishError::Slow);
        }
        self.push(state, payload)
    }

    /// Lets the thread publish the rest of a message of which the sink has published a part; messages wait meanwhile.
    pub fn finish_partial(self: &Arc<Queue>, publisher: &Arc<dyn Publisher>) {
        let mut state = self.state();
        self.is_used.store(true, Ordering::Release);
        self.start(&mut state, publisher);
        state.is_partial = true;
        if state.is_idle {
            self.changed.notify_all();
        }
    }

    /// Adds a message. Without a spool, waits for a sink that accepts messages more slowly than they arrive: otherwise a
    /// working sink would lose messages.
    fn push(&self, mut state: MutexGuard<'_, State>, payload: &[u8]) -> Result<(), PublishError> {
        loop {
            if !state.ended && state.memory.push(payload, Instant::now()) {
                break;
            }
            let is_moving = state.moved.is_some_and(|moved| moved.elapsed() < MOVES);
            if state.ended || self.spool.is_some() || !is_moving {
                self.drop_messages(&mut state, 1, now());
                return Err(PublishError::Slow);
            }
            state.is_awaited = true;
            state = self.changed.wait_timeout(state, MOVES).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.is_idle {
            self.changed.notify_all();
        }
        Ok(())
    }

    /// Counts messages that are dropped, the first of them since this time.
    fn drop_messages(&self, state: &mut State, count: u64, since: Timestamp) {
        if count == 0 {
            return;
        }
        self.drops.add(count, since);
        if !std::mem::replace(&mut state.is_dropping, true) {
            warn(&format!("{}{}", self.name(), (self.words.refuses)()));
        }
    }

    /// Drops messages that were accepted.
    fn withdraw(&self, state: &mut State, count: u64) {
        self.withdrawn.fetch_add(count, Ordering::Relaxed);
        self.drop_messages(state, count, now());
    }

    fn name(&self) -> String {
        if self.sink == "stdout" { String::new() } else { format!("{}: ", self.sink) }
    }

    /// The spool, if it can be used.
    fn file(&self) -> Option<&Arc<Spool>> {
        self.spool.as_ref().filter(|spool| !spool.has_failed())
    }

    /// Waits up to `limit` until nothing waits any more; from then on nothing is published from the queue. Returns
    /// whether everything was published.
    fn end(&self, limit: Duration) -> bool {
        let waiting =
            |state: &mut State| self.is_used() && state.is_running && !state.is_closed && !state.ended;
        let waited = self.changed.wait_timeout_while(self.state(), limit, waiting);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let is_all = !self.is_used();
        state.ended = true;
        self.changed.notify_all();
        let leave = if self.file().is_some() { LEAVE_IN_FILE } else { LEAVE };
        let waited = self.changed.wait_timeout_while(state, leave.max(limit), |state| state.is_running);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        // A call that does not return holds up the thread.
        let lost = state.memory.clear();
        self.withdraw(&mut state, lost);
        is_all
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
