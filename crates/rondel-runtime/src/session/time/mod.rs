//! Evaluation, the passing of time, and the end of a session.

pub(super) mod jumps;
pub(super) mod laps;
pub(crate) mod simulation;

use rondel_event::Timestamp;

use super::{Route, Session, Shared};
use crate::time::clock::Ticks;
use laps::{DecidedMessages, LapDecision};

impl Session {
    /// Evaluates all messages that need not wait. Call it when no more messages are waiting to be pushed.
    #[inline]
    pub fn flush(&mut self) {
        self.evaluate();
        let Shared { accounts, counts, flushed, clock, .. } = &mut self.shared;
        if std::mem::replace(flushed, counts.received) != counts.received {
            accounts.pause(&**clock);
        }
    }

    #[inline]
    pub(super) fn evaluate(&mut self) {
        match &mut self.route {
            Route::Direct(direct) => direct.flush(&mut self.shared),
            Route::Aligned(aligned) => aligned.step(&mut self.shared),
            Route::Synchronized(synchronized) => synchronized.step(&mut self.shared),
        }
        if let Some(decision) = self.shared.laps.decided() {
            self.settle_lap(decision);
        }
    }

    /// Heartbeat of the session: see [`Options::paused_after`](crate::Options::paused_after). Call it regularly, and after anything that may have
    /// taken long. Returns whether there was a pause or the clock was set: due times may have changed.
    pub fn alive(&mut self) -> bool {
        if !self.shared.heartbeat.is_on() {
            return false;
        }
        let now = self.shared.clock.ticks();
        let missed = self.shared.look(now);
        if let Some(missed) = &missed
            && self.shared.heartbeat.is_measured
        {
            self.pause(missed);
        }
        if self.shared.catches_up(now) {
            match &mut self.route {
                Route::Direct(direct) => direct.catch_up(&mut self.shared),
                Route::Aligned(aligned) => aligned.catch_up(&self.shared),
                Route::Synchronized(_) => {}
            }
        }
        missed.is_some()
    }

    /// Evaluates all messages, and the verdicts that time alone decides, up to the session's clock. Returns the
    /// reading of [`Clock::ticks`](crate::Clock::ticks) at which to call it again.
    pub fn poll(&mut self) -> Option<Ticks> {
        if self.shared.laps.due().is_some_and(|due| due <= self.shared.clock.ticks()) {
            self.settle_lap(DecidedMessages::all(LapDecision::NewLap));
        }
        if self.shared.laps.is_holding() {
            // Time advances once the lap is known.
            return self.shared.laps.due();
        }
        let due = match &mut self.route {
            Route::Direct(direct) => direct.poll(&mut self.shared),
            Route::Aligned(aligned) => aligned.poll(&mut self.shared),
            Route::Synchronized(synchronized) => synchronized.poll(&mut self.shared),
        };
        if let Some(decision) = self.shared.laps.decided() {
            self.settle_lap(decision);
            return Some(self.shared.clock.ticks());
        }
        let Some(watch) = &mut self.watch else { return due };
        let missing = watch.poll(&mut self.shared);
        if missing.is_none() {
            self.watch = None;
        }
        due.into_iter().chain(missing).min()
    }

    /// The reading of [`Clock::ticks`](crate::Clock::ticks) at which time alone decides a verdict, ends a wait, or shows that something
    /// is missing.
    #[inline]
    pub fn due(&self) -> Option<Ticks> {
        let due = match &self.route {
            Route::Direct(direct) => direct.due(),
            Route::Aligned(aligned) => aligned.due(&*self.shared.clock),
            Route::Synchronized(synchronized) => synchronized.due(&*self.shared.clock),
        };
        let due = due.into_iter().chain(self.shared.laps.due()).min();
        match &self.watch {
            None => due,
            Some(watch) => due.into_iter().chain(watch.due()).min(),
        }
    }

    /// Whether time alone can bring reports or notices or end waits, so that [`poll`](Session::poll) must be called.
    pub fn is_timed(&self) -> bool {
        match &self.route {
            _ if self.watch.is_some() => true,
            Route::Direct(direct) => direct.is_timed(),
            Route::Aligned(_) | Route::Synchronized(_) => true,
        }
    }

    /// Evaluates all messages, and lets event time pass up to `time`: no earlier message follows.
    pub fn advance(&mut self, time: Timestamp) {
        self.settle_laps_now();
        match &mut self.route {
            Route::Direct(direct) => direct.advance(time, &mut self.shared),
            Route::Aligned(aligned) => aligned.advance(time, &mut self.shared),
            Route::Synchronized(synchronized) => synchronized.advance(time, &mut self.shared),
        }
    }

    /// The event time at which time alone decides a verdict, if no message arrives before.
    pub fn deadline(&self) -> Option<Timestamp> {
        match &self.route {
            Route::Direct(direct) => direct.deadline(),
            Route::Aligned(aligned) => aligned.deadline(),
            Route::Synchronized(synchronized) => synchronized.deadline(),
        }
    }

    /// Ends the recording: evaluates all messages, also waiting ones, and reports open obligations. Push no
    /// message afterwards.
    pub fn finish(&mut self) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        self.flush();
        self.settle_laps_now();
        if let Some(mut sharing) = self.sharing.take() {
            sharing.end(|notice| self.shared.notice(notice));
        }
        self.note_guesses();
        self.end_route();
    }

    /// Ends the lap: reports open obligations.
    pub(super) fn end_route(&mut self) {
        // Verdicts on blocks that workers still have are before the end.
        if let Route::Direct(direct) = &mut self.route {
            direct.settle(&mut self.shared);
        }
        self.shared.emitter.statistics.iter_mut().for_each(|statistics| statistics.over());
        match &mut self.route {
            Route::Direct(direct) => direct.finish(&mut self.shared),
            Route::Aligned(aligned) => aligned.finish(&mut self.shared),
            Route::Synchronized(synchronized) => synchronized.finish(&mut self.shared),
        }
    }

    /// Ends the run at the clock's time and not at the last message: the recorder stated that no further message came.
    pub fn end_now(&mut self) {
        match &mut self.route {
            Route::Direct(direct) => direct.end_now(),
            Route::Aligned(aligned) => aligned.end_now(),
            Route::Synchronized(_) => {}
        }
    }

    /// Records that a recording was not read to its end: the rest could change the results of asserts.
    pub fn broke_off(&mut self) {
        self.shared.emitter.broke_off = true;
    }

    /// Records that no message follows, and that all messages were taken; the next [snapshot](Session::snapshot)
    /// contains that.
    pub fn end_part(&mut self) {
        self.shared.resumption.end();
    }
}
