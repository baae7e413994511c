//! Queues of sinks that accept nothing for the moment.
//!
//! A [`Queued`] publisher stands before that of a network. While the sink accepts everything, a message costs a look at
//! one flag, and is published by the thread that evaluates. The first message that is not accepted within [`FIRST`] goes
//! into a [`Queue`] in memory, and so does everything after it: the order stays, and the evaluating thread waits no more.
//! A thread of the sink publishes what waits. What has waited for too long goes to the file of a [`Spool`], if there is
//! one, or is dropped and counted; so does what the queue has no room for. Standard output, which gathers lines, stands
//! before a queue [in its own way](crate::console).

mod memory;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rondel_event::Timestamp;
use rondel_net::adapter::{Drops, PublishError, Publisher, now};
use rondel_runtime::text::counted;

use crate::spool::{Spool, Step};
use crate::warn;
use memory::Memory;

/// How long the evaluating thread waits for a sink, before its messages go into the queue.
pub const FIRST: Duration = Duration::from_micros(500);
/// How long the thread of a sink waits for it at a time.
pub const PATIENCE: Duration = Duration::from_millis(100);
/// How long ago a sink must have accepted a message to be waited for when its queue is full.
const MOVES: Duration = Duration::from_millis(100);
/// Pause after a message was refused.
const PAUSE: Duration = Duration::from_millis(10);
/// Interval of looking for messages that nobody will confirm any more.
const LOOK: Duration = Duration::from_millis(200);
/// Messages after which a publisher that holds back is told to send.
const BURST: u64 = 64;
/// How long the end waits for the thread of a sink, which may be held up in a call of its network.
const LEAVE: Duration = Duration::from_millis(300);
/// The same where the thread puts what is left into a file: on a busy machine that takes longer, and what is left
/// afterwards is dropped.
const LEAVE_IN_FILE: Duration = Duration::from_secs(3);

/// The sentences about a sink.
#[derive(Clone, Debug)]
pub struct Words {
    /// Why messages are dropped from now on.
    pub refuses: fn() -> String,
    /// That they are not any more.
    pub accepts: fn() -> String,
}

/// The messages that wait for one sink.
#[derive(Debug)]
pub struct Queue {
    sink: String,
    words: Words,
    /// How long a message may wait in memory.
    wait: Duration,
    /// Whether messages wait, so that new ones have to wait too. The spool sets it too; it is cleared under the lock.
    is_used: Arc<AtomicBool>,
    state: Mutex<State>,
    /// Wakes the thread, and those who wait for it.
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
    /// When the sink last accepted a message from the queue.
    moved: Option<Instant>,
    /// Whether somebody waits for room.
    is_awaited: bool,
    /// Whether messages were dropped since the sink last accepted one.
    is_dropping: bool,
    /// Whether the sink has accepted a message of which it could not publish everything.
    is_partial: bool,
    /// Whether the sink is closed: nothing more can be published, and what comes goes into the file.
    is_closed: bool,
    /// Whether nothing more is to be published.
    ended: bool,
}

impl Queue {
    /// An empty queue of a sink, in which a message may wait for so long before it goes to the spool or is dropped.
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

    /// Adds a message. Where nothing goes to a file, a sink that accepts messages, but more slowly than they come, is waited
    /// for: it would lose messages although nothing is wrong with it.
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

    /// Publishes what waits, until the end.
    fn run(&self, publisher: &dyn Publisher) {
        let (mut payload, mut burst) = (Vec::new(), 0u64);
        loop {
            let mut state = self.state();
            if state.ended {
                break;
            }
            if let Some(spool) = self.spool.as_ref().filter(|spool| spool.is_used()) {
                drop(state);
                self.move_to_file(spool, publisher, &mut payload);
                match spool.step(publisher, PATIENCE, &mut payload) {
                    Step::Published => {}
                    Step::Nothing | Step::Refused => self.pause(),
                    Step::Closed => {
                        self.keep_until_end(publisher, &mut payload);
                        break;
                    }
                }
                continue;
            }
            let Some(since) = state.memory.front(&mut payload) else {
                state.is_partial = false;
                drop(state);
                publisher.release();
                if publisher.is_behind() {
                    self.pause();
                } else {
                    self.rest(publisher);
                }
                continue;
            };
            state.is_sending = true;
            drop(state);
            let sent = publisher.offer(&payload, PATIENCE);
            let mut state = self.state();
            state.is_sending = false;
            match sent {
                Ok(()) => {
                    state.memory.pop();
                    burst += 1;
                    state.moved = Some(Instant::now());
                    let is_awaited = std::mem::take(&mut state.is_awaited);
                    drop(state);
                    if is_awaited {
                        self.changed.notify_all();
                    }
                    if burst.is_multiple_of(BURST) {
                        publisher.release();
                    }
                }
                Err(PublishError::Slow) => {
                    let is_due = since.elapsed() >= self.wait || state.memory.is_half_full();
                    match self.file() {
                        Some(spool) if is_due => {
                            drop(state);

                            self.move_to_file(spool, publisher, &mut payload);
                        }
                        Some(_) => drop(state),
                        None => {
                            self.drop_expired(&mut state);
                            drop(state);
                        }
                    }
                    publisher.release();
                    self.pause();
                }
                Err(PublishError::Closed) => {
                    drop(state);
                    self.keep_until_end(publisher, &mut payload);
                    break;
                }
                Err(error) => {
                    tracing::warn!(sink = %self.sink, "cannot publish a message: {error}");
                    state.memory.pop();
                    self.withdraw(&mut state, 1);
                }
            }
        }
        self.leave(publisher, &mut payload);
    }

    /// Drops messages that have waited for too long.
    fn drop_expired(&self, state: &mut State) {
        let (mut count, mut oldest) = (0, Duration::ZERO);
        while let Some(waited) = state.memory.since().map(|since| since.elapsed())
            && waited >= self.wait
        {
            state.memory.pop();
            oldest = oldest.max(waited);
            count += 1;
        }
        let oldest = i64::try_from(oldest.as_nanos()).unwrap_or(0);
        let since = Timestamp::from_nanos(now().as_nanos().saturating_sub(oldest));
        self.withdrawn.fetch_add(count, Ordering::Relaxed);
        self.drop_messages(state, count, since);
    }

    /// Moves all messages from memory to the end of the file.
    fn move_to_file(&self, spool: &Spool, publisher: &dyn Publisher, payload: &mut Vec<u8>) {
        loop {
            let mut state = self.state();
            if state.memory.front(payload).is_none() {
                return;
            }
            state.memory.pop();
            drop(state);
            if spool.keep(publisher, payload).is_err() {
                // The spool has counted it as dropped.
                self.withdrawn.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Moves messages to the file, if there is one, until the end comes. A run that is ending closes its networks while
    /// its last messages are still evaluated.
    fn keep_until_end(&self, publisher: &dyn Publisher, payload: &mut Vec<u8>) {
        self.state().is_closed = true;
        self.changed.notify_all();
        while let Some(spool) = self.file() {
            self.move_to_file(spool, publisher, payload);
            let mut state = self.state();
            if state.ended {
                return;
            }
            state.is_idle = true;
            let is_empty = |state: &mut State| state.memory.len() == 0 && !state.ended;
            let waited = self.changed.wait_while(state, is_empty);
            waited.unwrap_or_else(PoisonError::into_inner).is_idle = false;
        }
    }

    /// Waits a little, unless the end comes.
    fn pause(&self) {
        drop(self.changed.wait_timeout_while(self.state(), PAUSE, |state| !state.ended));
    }

    /// Lets messages be published directly again, and waits for the next one that is refused.
    fn rest(&self, publisher: &dyn Publisher) {
        let mut state = self.state();
        let is_empty = |state: &State| state.memory.len() == 0 && !state.is_partial && !state.ended;
        if !is_empty(&state) {
            return;
        }
        self.is_used.store(false, Ordering::Release);
        if std::mem::take(&mut state.is_dropping) {
            let dropped = counted(self.drops.count(), "message was", "messages were");
            warn(&format!("{}{}; {dropped} dropped so far", self.name(), (self.words.accepts)()));
        }
        self.changed.notify_all();
        state.is_idle = true;
        match self.spool.as_ref().filter(|spool| spool.is_begun()) {
            None => {
                let waited = self.changed.wait_while(state, |state| is_empty(state));
                waited.unwrap_or_else(PoisonError::into_inner).is_idle = false;
            }
            Some(spool) => {
                let waited = self.changed.wait_timeout_while(state, LOOK, |state| is_empty(state));
                waited.unwrap_or_else(PoisonError::into_inner).0.is_idle = false;
                spool.look_for_abandoned(publisher);
            }
        }
    }

    /// Puts what is left into the file, or drops it.
    fn leave(&self, publisher: &dyn Publisher, payload: &mut Vec<u8>) {
        if self.state().memory.len() > 0
            && let Some(spool) = self.file()
        {
            self.move_to_file(spool, publisher, payload);
        }
        let mut state = self.state();
        let lost = state.memory.clear();
        self.withdraw(&mut state, lost);
        // A network that is closed accepts nothing more, either.
        (state.ended, state.is_running) = (true, false);
        drop(state);
        self.changed.notify_all();
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

/// A publisher with a queue.
pub struct Queued {
    publisher: Arc<dyn Publisher>,
    queue: Arc<Queue>,
}

impl Queued {
    /// Puts a queue before a publisher.
    pub fn new(publisher: Arc<dyn Publisher>, queue: Arc<Queue>) -> Queued {
        queue.begin(&publisher);
        Queued { publisher, queue }
    }
}

/// The sentences about a sink on a network.
pub const NETWORK: Words = Words {
    refuses: || "a consumer does not accept messages; they are dropped until it does".to_owned(),
    accepts: || "the consumer accepts messages again".to_owned(),
};

impl Publisher for Queued {
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        if let Some(pushed) = self.queue.push_behind(payload) {
            return pushed;
        }
        match self.publisher.offer(payload, FIRST) {
            Err(PublishError::Slow) => self.queue.push_refused(&self.publisher, payload),
            Err(PublishError::Closed) if self.queue.file().is_some() => {
                self.queue.push_refused(&self.publisher, payload)
            }
            published => published,
        }
    }

    /// The thread of the sink releases what it publishes.
    fn release(&self) {
        if !self.queue.is_used() {
            self.publisher.release();
        }
    }

    fn is_behind(&self) -> bool {
        self.queue.is_used()
    }

    fn is_matched(&self) -> bool {
        self.publisher.is_matched()
    }

    fn wait_matched(&self, limit: Duration) -> bool {
        self.publisher.wait_matched(limit)
    }

    fn flush(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let is_sent = self.queue.end(limit);
        let is_confirmed = self.publisher.flush(deadline.saturating_duration_since(Instant::now()));
        if let Some(spool) = &self.queue.spool {
            spool.keep_unconfirmed(&*self.publisher);
        }
        is_sent && is_confirmed
    }

    /// What is in the file counts as taken over: it survives the process.
    fn settle(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let waits = |state: &mut State| state.memory.len() > 0;
        let mut is_moved = false;
        while !is_moved {
            let left = deadline.saturating_duration_since(Instant::now());
            let step = left.min(PAUSE);
            let waited = self.queue.changed.wait_timeout_while(self.queue.state(), step, waits);
            is_moved = waited.unwrap_or_else(PoisonError::into_inner).0.memory.len() == 0;
            if left.is_zero() {
                break;
            }
        }
        is_moved && self.publisher.settle(deadline.saturating_duration_since(Instant::now()))
    }

    /// What is not confirmed is in the file, or counted as dropped, once the file is used.
    fn unconfirmed(&self) -> Option<u64> {
        match &self.queue.spool {
            Some(spool) if spool.is_begun() => Some(0),
            _ => self.publisher.unconfirmed(),
        }
    }

    fn drops(&self) -> Option<Arc<Drops>> {
        self.publisher.drops()
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.queue.end(Duration::ZERO);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A sink that accepts as many messages as a test lets it.
    struct Gate {
        room: Mutex<u64>,
        changed: Condvar,
        accepted: mpsc::SyncSender<u64>,
    }

    impl Gate {
        fn open(&self, messages: u64) {
            *self.room.lock().unwrap() = messages;
            self.changed.notify_all();
        }
    }

    impl Publisher for Gate {
        fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
            self.offer(payload, Duration::MAX)
        }

        fn offer(&self, payload: &[u8], limit: Duration) -> Result<(), PublishError> {
            let waited = self.changed.wait_timeout_while(self.room.lock().unwrap(), limit, |room| *room == 0);
            let mut room = waited.unwrap().0;
            *room = room.checked_sub(1).ok_or(PublishError::Slow)?;
            let number = u64::from_le_bytes(payload.try_into().unwrap());
            self.accepted.send(number).map_err(|_| PublishError::Closed)
        }
    }

    /// A sink with a queue. Whoever reads from it lets it go on.
    fn queued(wait: Duration) -> (Queued, Arc<Gate>, Arc<Queue>, mpsc::Receiver<u64>) {
        let (accepted, reader) = mpsc::sync_channel(100);
        let gate = Arc::new(Gate { room: Mutex::new(0), changed: Condvar::new(), accepted });
        let queue = Queue::new("test:sink".to_owned(), NETWORK, wait, None);
        let publisher = Arc::clone(&gate) as Arc<dyn Publisher>;
        (Queued::new(publisher, Arc::clone(&queue)), gate, queue, reader)
    }

    fn send(queued: &Queued, number: u64) -> bool {
        queued.publish(&number.to_le_bytes()).is_ok()
    }

    const LIMIT: Duration = Duration::from_secs(30);

    #[test]
    fn what_is_refused_comes_later_in_order() {
        let (queued, gate, queue, reader) = queued(LIMIT);
        gate.open(3);
        let began = Instant::now();
        assert!((0..50).all(|number| send(&queued, number)));
        assert!(began.elapsed() < LIMIT / 2 && queue.is_used());
        gate.open(u64::MAX);
        assert!(queued.flush(LIMIT));
        assert!(reader.try_iter().eq(0..50));
        assert_eq!((queue.drops().count(), queue.withdrawn()), (0, 0));
    }

    #[test]
    fn what_waits_for_too_long_is_dropped_and_counted() {
        let (queued, gate, queue, reader) = queued(Duration::from_millis(20));
        assert!((0..5).all(|number| send(&queued, number)));
        let deadline = Instant::now() + LIMIT;
        while queue.drops().count() < 5 {
            assert!(Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(queue.withdrawn(), 5);
        gate.open(1);
        assert!(send(&queued, 5) && queued.flush(LIMIT));
        assert!(reader.try_iter().eq([5]));
    }

    #[test]
    fn a_full_queue_of_a_sink_that_accepts_nothing_drops_at_once() {
        let (queued, gate, queue, reader) = queued(LIMIT);
        let room = memory::MESSAGES as u64;
        let began = Instant::now();
        assert!((0..room).all(|number| send(&queued, number)));
        assert!((0..1000).all(|_| !send(&queued, u64::MAX)));
        assert!(began.elapsed() < LIMIT / 2);
        assert_eq!((queue.drops().count(), queue.withdrawn()), (1000, 0));
        let read = std::thread::spawn(move || reader.iter().eq(0..room));
        gate.open(u64::MAX);
        assert!(queued.flush(LIMIT));
        drop((queued, gate));
        assert!(read.join().unwrap());
    }

    #[test]
    fn a_sink_that_is_slower_is_waited_for_once_its_queue_is_full() {
        let (queued, gate, queue, reader) = queued(LIMIT);
        let count = 2 * memory::MESSAGES as u64;
        assert!(send(&queued, 0), "it is in the queue");
        gate.open(u64::MAX);
        let read = std::thread::spawn(move || reader.iter().eq(0..count));
        assert!((1..count).all(|number| send(&queued, number)));
        assert!(queued.flush(LIMIT));
        assert_eq!(queue.drops().count(), 0);
        drop((queued, gate));
        assert!(read.join().unwrap());
    }

    #[test]
    fn what_is_left_at_the_end_is_dropped_and_counted() {
        let (queued, _gate, queue, _reader) = queued(LIMIT);
        assert!((0..7).all(|number| send(&queued, number)));
        assert!(!queued.flush(Duration::ZERO));
        assert_eq!((queue.drops().count(), queue.withdrawn()), (7, 7));
        assert!(!send(&queued, 7) && queue.drops().count() == 8);
    }
}
