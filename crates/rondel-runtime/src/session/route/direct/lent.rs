//! Live sessions with workers. The states of the monitor stay with the workers when all messages were evaluated, so that the
//! next burst costs no copies. The thread of the session evaluates few messages, and deadlines, in these states itself,
//! while the workers wait; when it has done so for as many messages as there are instances, it takes the states back.

use std::any::Any;
use std::borrow::Cow;
use std::mem::{swap, take};
use std::panic::resume_unwind;

use rondel_engine::Monitor;
use rondel_event::Timestamp;

use super::Direct;
use super::spread::Spread;
use super::workers::Cause;
use crate::session::Shared;
use crate::statistics::WorkerStatistics;

/// Minimum number of events before a flush that workers evaluate. Waking them costs about as much as fewer events.
const WORTH: u64 = 128;

/// Minimum number of events that the thread of the session evaluates in lent states before it takes these back.
const ALONE: u64 = 256;

impl Spread {
    /// Whether anything waits.
    fn is_waiting(&self) -> bool {
        !self.queue.is_empty() || !self.under_way.is_empty()
    }

    /// Next change by time alone in the lent states.
    fn next_deadline(&self) -> Option<Timestamp> {
        self.workers.as_ref().filter(|_| self.is_lent)?.next_deadline()
    }

    /// Records the panic of a worker, whose state is lost. Whatever waits is dropped.
    fn fail(&mut self, cause: &(dyn Any + Send)) {
        let text = cause.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| cause.downcast_ref::<&str>().copied());
        self.failure = Some(text.unwrap_or("it has panicked").to_owned());
        self.is_lent = false;
        self.under_way.clear();
        self.take_queue().clear();
        // The other threads end.
        self.workers = None;
    }
}

impl Direct {
    /// The panic of a worker, after which the session evaluates nothing.
    pub(in crate::session) fn failure(&self) -> Option<&str> {
        self.spread.as_ref()?.failure.as_deref()
    }

    /// Whether a worker has panicked.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.failure().is_some()
    }

    /// Ends the evaluation after the panic of a worker: that of a live session, whose caller ends the run, and otherwise by
    /// continuing the panic.
    #[cold]
    pub(super) fn fail(&mut self, cause: Cause) {
        match &mut self.spread {
            Some(spread) if spread.is_live => spread.fail(&*cause),
            _ => resume_unwind(cause),
        }
    }

    /// Records whether the caller waits for the verdicts on the block.
    #[inline]
    pub(super) fn set_flushing(&mut self, is_flushing: bool) {
        if let Some(spread) = &mut self.spread {
            spread.is_flushing = is_flushing;
        }
    }

    /// Whether it has workers.
    #[inline]
    pub(in crate::session) fn has_workers(&self) -> bool {
        self.spread.is_some()
    }

    /// The statistics of the workers, if there are any.
    pub(in crate::session) fn workers(&self, requested: usize, shared: &Shared) -> Option<WorkerStatistics> {
        let spread = self.spread.as_ref()?;
        Some(WorkerStatistics { requested, waiting: spread.waiting(), ..shared.workers.clone() })
    }

    /// Evaluates all blocks that wait. Live, the states may stay with the workers.
    #[inline]
    pub(in crate::session) fn drain(&mut self, shared: &mut Shared) {
        match &self.spread {
            None => {}
            Some(spread) if !spread.is_live => self.settle(shared),
            Some(spread) if spread.is_waiting() => self.drain_live(shared),
            Some(_) => {}
        }
    }

    fn drain_live(&mut self, shared: &mut Shared) {
        if self.spread.as_ref().is_some_and(|spread| spread.events() >= WORTH) {
            self.hand_over(shared);
        }
        while self.spread.as_ref().is_some_and(|spread| !spread.under_way.is_empty()) {
            self.collect(shared);
        }
        let Some(spread) = &mut self.spread else { return };
        let events = spread.events();
        if spread.is_lent {
            spread.alone += events;
        } else {
            spread.pass_by(events);
        }
        let is_over = spread.alone >= spread.copied.max(ALONE) || spread.room < events;
        if !spread.is_lent || is_over {
            return self.settle(shared);
        }
        spread.room -= events;
        self.evaluate_in_lent_states(shared);
        let Direct { spread, reached, .. } = self;
        let workers = spread.as_ref().and_then(|spread| spread.workers.as_ref());
        if workers.is_some_and(|workers| workers.any(|portion| reached.has_reached(portion.refused()))) {
            // The notice needs the whole.
            self.settle(shared);
        }
    }

    /// Evaluates the queue on this thread. No batch is under way.
    fn evaluate_in_lent_states(&mut self, shared: &mut Shared) {
        let Some(spread) = &mut self.spread else { return };
        let (mut queue, mut here) = (spread.take_queue(), take(&mut spread.here));
        for waiting in &mut queue {
            if let Some(workers) = self.spread.as_ref().and_then(|spread| spread.workers.as_ref()) {
                workers.step(&waiting.block, &mut here);
            }
            swap(&mut self.block, &mut waiting.block);
            self.evaluate_in_turn(waiting.turn, Some((&here[..], 0)), shared);
            swap(&mut self.block, &mut waiting.block);
        }
        if let Some(spread) = &mut self.spread {
            spread.give_queue_back(queue);
            spread.here = here;
        }
    }

    /// The event time at which time alone decides a verdict, if no message arrives before.
    pub(in crate::session) fn deadline(&self) -> Option<Timestamp> {
        let lent = self.spread.as_ref().and_then(|spread| spread.next_deadline());
        self.monitor.next_deadline().into_iter().chain(lent).min()
    }

    /// Lets event time pass up to `now`, once all messages were evaluated.
    pub(super) fn pass(&mut self, now: Timestamp, shared: &mut Shared) {
        match self.spread.as_deref_mut() {
            Some(Spread { is_lent: true, workers: Some(workers), here, .. }) => {
                workers.advance(now, here);
                self.monitor.advance_with(now, here.iter().flatten());
            }
            _ => _ = self.monitor.advance(now),
        }
        self.take(None, shared);
    }

    /// The monitor with all of its state: a copy while states are lent. All messages were evaluated.
    pub(in crate::session) fn whole(&self) -> Cow<'_, Monitor> {
        let lent = self.spread.as_ref().filter(|spread| spread.is_lent);
        match lent.and_then(|spread| spread.workers.as_ref()) {
            None => Cow::Borrowed(&self.monitor),
            Some(workers) => {
                #[cfg(test)]
                tests::COPIES.set(tests::COPIES.get() + 1);
                let mut whole = self.monitor.clone();
                workers.copy_back(&mut whole);
                Cow::Owned(whole)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use rondel_event::{Block, Layout, TopicId};

    use super::super::spread::Waiting;
    use super::*;
    use crate::session::route::Route;
    use crate::{ManualClock, Options, Session, SessionPlan, Stamp};

    thread_local! {
        /// Number of copies of monitors whose states were lent.
        pub(super) static COPIES: Cell<u32> = const { Cell::new(0) };
    }

    fn session(property: &str) -> Session {
        let text = &format!("topic t {{ k: int, x: int }} property p {property}");
        let spec = rondel_spec::parse(text).spec.unwrap();
        let options = Options { live: true, clock: Arc::new(ManualClock::default()), ..Options::default() };
        let mut plan = SessionPlan::new(&spec, options).unwrap();
        assert_eq!(plan.set_workers(2), Ok(None));
        plan.start().unwrap()
    }

    fn direct(session: &mut Session) -> &mut Direct {
        let Route::Direct(direct) = &mut session.route else { panic!("messages are evaluated on arrival") };
        direct
    }

    fn is_lent(session: &mut Session) -> bool {
        direct(session).spread.as_ref().unwrap().is_lent
    }

    fn burst(session: &mut Session, messages: i64) {
        for i in 0..messages {
            let payload = format!(r#"{{"k":{},"x":{}}}"#, i % 40, i % 5);
            let stamp = Stamp { arrival: Some(Timestamp::from_nanos(i)), ..Stamp::default() };
            session.push(TopicId(0), stamp, payload.as_bytes()).unwrap();
        }
        session.flush();
    }

    #[test]
    fn states_stay_with_the_workers_while_bursts_come() {
        let mut session = session("for each k in t.k = once[0, 5 ms] t.x > 2");
        burst(&mut session, 1);
        assert!(!is_lent(&mut session));
        burst(&mut session, 1000);
        assert!(is_lent(&mut session), "all were evaluated");
        let copies = COPIES.get();
        assert_eq!(session.summary().counts.checked, 1001);
        assert_eq!(COPIES.get(), copies + 1);
        assert!(session.present().instances > 0);
        assert!(is_lent(&mut session), "the summary is of a copy");
        (0..ALONE - 1).for_each(|_| burst(&mut session, 1));
        assert!(is_lent(&mut session));
        burst(&mut session, 1);
        assert!(!is_lent(&mut session));
        burst(&mut session, 1000);
        assert!(is_lent(&mut session));
        session.snapshot("");
        assert!(!is_lent(&mut session));
    }

    #[test]
    fn panic_of_a_worker_ends_the_evaluation() {
        let mut session = session("= t.x > 2");
        burst(&mut session, 1000);
        assert!(session.failure().is_none() && session.reports().count() > 0);
        // A block of another layout, which no session hands over.
        let mut block = Block::new(Layout { topics: 1, ..Layout::default() });
        block.push(TopicId(0), Timestamp::ZERO);
        direct(&mut session).spread.as_mut().unwrap().queue.push(Waiting::new(block));
        burst(&mut session, 1000);
        assert!(session.failure().is_some_and(|cause| cause.contains("index out of bounds")));
        burst(&mut session, 1000);
        session.poll();
        session.alive();
        session.finish();
        assert_eq!((session.reports().count(), session.due()), (0, None));
    }
}
