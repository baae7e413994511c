//! The passing of time: deadlines that decide verdicts, and the regular look at the process.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use rondel_net::adapter::now;
use rondel_runtime::Ticks;

use super::{FINEST, Pipeline, State};
use crate::sinks::release;

/// Interval of querying whether a network knows which messages are missing, in nanoseconds.
const UNSURE: Ticks = 50_000_000;

impl Pipeline {
    /// Marks the process as running: see [`rondel_runtime::Session::alive`].
    pub fn alive(&self) {
        let state = &mut *self.state();
        state.look_for_clock();
        let mut slept = false;
        state.each(|state| {
            slept |= state.session.alive();
            state.emit();
        });
        if slept {
            // A thread that waits for a deadline does not notice that the machine slept.
            self.sooner.notify_one();
        }
        // Sinks read statistics.
        state.session.collect();
        self.end_if_failed(state);
        state.emit();
        state.show_gates();
        if state.sinks.tick(&state.session, false) && self.batches() {
            state.sinks.release();
        }
        if let Some(recorder) = &mut state.recorder {
            recorder.tick(now());
        }
        if state.notices.is_due(Instant::now()) {
            state.notices.publish_held(&mut state.sinks.stdout);
            state.notices.sinks.iter().for_each(release);
        }
    }

    /// Whether time alone decides verdicts, so that a thread must [keep time](Pipeline::keep_time).
    pub fn is_timed(&self) -> bool {
        self.state().session.is_timed()
    }

    /// Evaluates the verdicts that time alone decides, until the pipeline has ended. Runs on a thread of its own,
    /// which sleeps until the next deadline. While `is_unsure`, due verdicts wait: a network does not know yet whether
    /// messages are missing.
    pub fn keep_time(&self, is_unsure: impl Fn() -> bool) {
        let mut state = self.state();
        while !state.ended {
            let now = self.clock.ticks();
            // Deadlines within the shortest pause are evaluated, too.
            let soon = now.saturating_add(FINEST.as_nanos() as i64);
            let waits = state.due().is_some_and(|due| due <= soon) && is_unsure();
            let due = if waits { Some(now.saturating_add(UNSURE)) } else { state.poll() };
            let is_set = state.is_simulated() && !waits;
            if self.batches() {
                state.release();
            }
            state.armed = due;
            state = match due {
                // Setting the clock wakes this thread.
                Some(due) if is_set && due > self.clock.ticks() => {
                    self.sooner.wait(state).unwrap_or_else(PoisonError::into_inner)
                }
                None => self.sooner.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(due) => {
                    let left = due.saturating_sub(self.clock.ticks());
                    let left = Duration::from_nanos(u64::try_from(left).unwrap_or(0)).max(FINEST);
                    self.sooner.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

impl State {
    /// Evaluates all messages and the verdicts that time has decided. Returns the next deadline.
    pub(super) fn poll(&mut self) -> Option<Ticks> {
        let mut first = None;
        self.each(|state| {
            let due = state.session.poll();
            state.emit();
            first = first.into_iter().chain(due).min();
        });
        first
    }
}
