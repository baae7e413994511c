//! The thread of a sink, which publishes the waiting messages and moves or drops those that waited for too long.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rondel_event::Timestamp;
use rondel_net::adapter::{PublishError, Publisher, now};
use rondel_runtime::text::counted;

use super::{PATIENCE, PAUSE, Queue, State};
use crate::sinks::spool::{Spool, Step};
use crate::warn;

/// Interval of looking for messages that no consumer will confirm any more.
const LOOK: Duration = Duration::from_millis(200);
/// Messages after which a batching publisher is released.
const BURST: u64 = 64;

impl Queue {
    /// Publishes the waiting messages, until the end.
    pub(super) fn run(&self, publisher: &dyn Publisher) {
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

    /// Switches to direct publishing again, and waits for the next refused message.
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
                if publisher.is_stuck() {
                    spool.keep_stuck(publisher);
                }
            }
        }
    }

    /// Puts the remaining messages into the file, or drops them.
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
}
