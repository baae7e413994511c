//! The driver of a sink: a thread and a bounded queue before it.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rondel_runtime::Clock;

use crate::feed::Feed;
use crate::queue::{Batch, Bounds};
use crate::shared::{Refused, Shared, ticks};
use crate::sink::Sink;
use crate::status::{Condition, Reason, Status};
use crate::worker::{Next, Worker};

/// Time limit at the end for the thread of a sink, which may be in a call.
const LEAVE: Duration = Duration::from_secs(6);

/// Policy for a sink that accepts entries more slowly than they arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowConsumer {
    /// Wait for room while the sink works, and has acknowledged entries during the last `limit`; otherwise drop and count.
    Block {
        /// Time without progress after which a sink counts as down.
        limit: Duration,
    },
    /// Drop and count at once.
    Drop,
}

/// Options of a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bounds of the queue.
    pub bounds: Bounds,
    /// Number of entries that are written together.
    pub batch: usize,
    /// Policy for a slow sink.
    pub slow_consumer: SlowConsumer,
    /// Whether entries that cannot be written stay in the queue, to be [visited](Handle::visit_unconfirmed) and kept
    /// elsewhere, instead of being dropped and counted.
    pub hands_back: bool,
    /// Subject of losses of the queue in the store; the driver sets it to its name where it is empty.
    pub name_of_losses: String,
}

impl Default for Options {
    /// 131,072 entries and 32 MiB, 16,384 written together; waits while the sink has made progress within a second.
    fn default() -> Options {
        Options {
            bounds: Bounds::default(),
            batch: 1 << 14,
            slow_consumer: SlowConsumer::Block { limit: Duration::from_secs(1) },
            hands_back: false,
            name_of_losses: String::new(),
        }
    }
}

/// A sink with its thread. Dropping it closes it without waiting for entries.
pub struct Driver {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    interrupt: Option<Box<dyn Fn() + Send + Sync>>,
    wants_json: bool,
    notifies: bool,
}

/// Outcome of closing a driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// Entries that were not written: dropped and counted, or [handed back](Options::hands_back).
    pub unwritten: u64,
    /// Whether the thread ended; otherwise it is still in a call of the sink, and ends after it.
    pub is_ended: bool,
}

impl Driver {
    /// Starts the thread of a sink. `name` names the sink in states and losses, such as `sqlite:verdicts.db`.
    ///
    /// # Errors
    /// The system starts no further thread.
    pub fn start(
        name: &str,
        mut sink: Box<dyn Sink>,
        mut options: Options,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Driver> {
        if options.name_of_losses.is_empty() {
            name.clone_into(&mut options.name_of_losses);
        }
        let (wants_json, notifies, interrupt) = (sink.wants_json(), sink.notifies(), sink.interrupter());
        let shared = Arc::new(Shared::new(name, options, clock));
        shared.state().is_running = true;
        let thread = {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name("sink".to_owned()).spawn(move || run(&shared, sink))?
        };
        Ok(Driver { shared, thread: Some(thread), interrupt, wants_json, notifies })
    }

    /// Creates a feed, by which one thread sends entries.
    pub fn feed(&self) -> Feed {
        Feed::new(Arc::clone(&self.shared), self.wants_json)
    }

    /// Whether the sink reads the JSON of verdicts.
    pub fn wants_json(&self) -> bool {
        self.wants_json
    }

    /// Whether the sink notifies people.
    pub fn notifies(&self) -> bool {
        self.notifies
    }

    /// Creates a handle, by which any thread reads the state.
    pub fn handle(&self) -> Handle {
        Handle { shared: Arc::clone(&self.shared) }
    }

    /// Waits up to `limit` until everything is written, and ends the thread. The rest is dropped and counted, or stays to
    /// be visited if the options say so.
    pub fn close(mut self, limit: Duration) -> Closed {
        self.end(limit)
    }

    fn end(&mut self, limit: Duration) -> Closed {
        let is_flushed = self.handle().flush(limit);
        self.shared.state().has_ended = true;
        self.shared.notify();
        if !is_flushed {
            self.interrupt();
        }
        let is_ended = self.wait_for_thread();
        let mut state = self.shared.state();
        let unwritten = state.queue.len() as u64;
        if !self.shared.options.hands_back {
            let (lost, now) = (state.queue.clear(), self.shared.now());
            state.lose(Reason::Ended, lost, now);
        }
        drop(state);
        if is_ended && let Some(thread) = self.thread.take() {
            // The thread has left its loop; a panic is counted as a broken sink.
            let _ = thread.join();
        }
        Closed { unwritten, is_ended }
    }

    /// Makes a running call of the sink return early, if the sink can.
    fn interrupt(&self) {
        if let Some(interrupt) = &self.interrupt {
            interrupt();
        }
    }

    /// Waits until the thread has ended. Interrupts its call of the sink once half of the time has passed.
    fn wait_for_thread(&self) -> bool {
        for i in 0..2 {
            if i == 1 {
                self.interrupt();
            }
            let deadline = self.shared.clock.ticks().saturating_add(ticks(LEAVE / 2));
            let mut state = self.shared.state();
            while state.is_running {
                let left = deadline - self.shared.clock.ticks();
                if left <= 0 {
                    break;
                }
                state = self.shared.wait(state, Some(left));
            }
            if !state.is_running {
                return true;
            }
        }
        false
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end(Duration::ZERO);
        }
    }
}

/// State of a sink, and a second way in, for the queues and files of a caller.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

impl Handle {
    /// Returns state and counts.
    pub fn status(&self) -> Status {
        self.shared.state().status()
    }

    /// Returns the state without the counts. Allocates nothing.
    pub fn condition(&self) -> Condition {
        self.shared.state().status.condition
    }

    /// Adds one encoded entry. Waits up to `limit` for room.
    ///
    /// # Errors
    /// [`Refused`]; the entry still belongs to the caller, and is not counted.
    pub fn offer(&self, entry: &[u8], limit: Duration) -> Result<(), Refused> {
        let mut batch = Batch::default();
        batch.push(|out| out.extend_from_slice(entry));
        self.shared.insert(&mut batch, ticks(limit))
    }

    /// Returns the number of entries that were accepted and are not acknowledged.
    pub fn unconfirmed(&self) -> u64 {
        self.shared.state().queue.len() as u64
    }

    /// Visits the encoded entries that are not acknowledged, the oldest first.
    pub fn visit_unconfirmed(&self, visit: &mut dyn FnMut(&[u8])) {
        self.shared.state().queue.visit(visit);
    }

    /// Waits up to `limit` until everything accepted so far is acknowledged or dropped. Returns whether it is.
    pub fn flush(&self, limit: Duration) -> bool {
        let deadline = self.shared.clock.ticks().saturating_add(ticks(limit));
        let mut state = self.shared.state();
        let wanted = state.status.accepted;
        loop {
            // Entries leave the queue in their order; further ones may come meanwhile.
            if state.status.accepted.saturating_sub(state.queue.len() as u64) >= wanted {
                return true;
            }
            let left = deadline.saturating_sub(self.shared.clock.ticks());
            if left <= 0 || !state.accepts() {
                return false;
            }
            state = self.shared.wait(state, Some(left));
        }
    }
}

/// Marks the thread as ended, also if the sink panics.
struct Running<'s>(&'s Shared);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let now = self.0.now();
        let mut state = self.0.state();
        state.is_running = false;
        if std::thread::panicking() {
            state.status.condition = Condition::Broken { since: now };
            state.status.last_error = Some("the thread of the sink failed".to_owned());
            if !self.0.options.hands_back {
                let lost = state.queue.clear();
                state.lose(Reason::Broken, lost, now);
            }
        }
        drop(state);
        self.0.notify();
    }
}

/// Body of the thread.
fn run(shared: &Arc<Shared>, sink: Box<dyn Sink>) {
    let running = Running(shared);
    let mut worker = Worker::new(Arc::clone(shared), sink);
    loop {
        match worker.step() {
            Next::Step => {}
            Next::End => break,
            Next::WaitUntil(until) => wait(shared, until, &worker),
        }
    }
    worker.close();
    drop(running);
}

/// Waits until there is something to do, at most until these ticks.
fn wait(shared: &Shared, until: i64, worker: &Worker) {
    let mut state = shared.state();
    loop {
        let left = until.saturating_sub(shared.clock.ticks());
        if state.has_ended || left <= 0 || state.queue.len() > 0 && !worker.is_pausing() {
            return;
        }
        state = shared.wait(state, Some(left));
    }
}
