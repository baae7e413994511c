//! Evaluation by workers: full blocks wait in a queue while workers evaluate portions of the monitor for them, and are
//! evaluated in turn once these are done.

use std::collections::VecDeque;
use std::mem::{swap, take};
use std::sync::Arc;

use rondel_engine::{Monitor, Portion};
use rondel_event::{Block, Timestamp};

use super::Direct;
use super::gaps::Gaps;
use super::workers::{Cause, Outputs, UNDER_WAY, Workers};
use crate::session::{SessionPlan, Shared};
use crate::statistics::{Backwards, WorkerStatistics};
use crate::time::arrival;
use crate::time::clock::Ticks;

/// Maximum number of blocks of a batch.
const MOST: usize = 32;

/// Maximum number of blocks of a batch of live messages, whose verdicts wait for the batch.
const MOST_LIVE: usize = 8;

/// Number of reports of a batch beyond which the next one is smaller.
const REPORTS: usize = 1 << 16;

/// Size of the texts of a batch, in bytes, from which on it is handed over.
const TEXT: usize = 1 << 20;

/// Readings at the time at which a block would be evaluated without workers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn {
    /// The number of messages received.
    pub(super) counted: u64,
    /// The ticks of the clock, where the time of arrival matters.
    pub(super) ticks: Option<Ticks>,
}

/// A block that waits for its turn.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) block: Block,
    pub(super) turn: Turn,
}

impl Waiting {
    pub(super) fn new(block: Block) -> Waiting {
        Waiting { block, turn: Turn::default() }
    }
}

/// Blocks that are evaluated together.
pub(super) type Batch = Arc<Vec<Waiting>>;

/// The workers of a session, and the blocks that wait for them.
pub(super) struct Spread {
    /// The portions, until the first batch is handed over.
    portions: Vec<Portion>,
    pub(super) workers: Option<Workers>,
    /// Whether messages come live: states then stay with the workers when all messages were evaluated.
    pub(super) is_live: bool,
    /// Whether the states of the portions are in the workers.
    pub(super) is_lent: bool,
    /// Whether the caller waits for the verdicts on the block.
    pub(super) is_flushing: bool,
    pub(super) queue: Vec<Waiting>,
    /// Size of the texts in the queue, in bytes.
    text: usize,
    /// Number of blocks of the next batch.
    size: usize,
    pub(super) under_way: VecDeque<Batch>,
    /// Empty blocks.
    spare: Vec<Waiting>,
    /// Time of the last event of a block that waits.
    last: Option<Timestamp>,
    /// Earliest time of an event that waits.
    begin: Option<Timestamp>,
    /// Number of events that may still be evaluated before the states must be taken back.
    pub(super) room: u64,
    /// Number of events since the states were lent.
    since: u64,
    /// Number of instances that were copied when the states were lent.
    pub(super) copied: u64,
    /// Number of events since the last batch that the thread of the session has evaluated in lent states.
    pub(super) alone: u64,
    /// Outputs for these.
    pub(super) here: Vec<Outputs>,
    /// The panic of a worker, after which a live session evaluates nothing.
    pub(super) failure: Option<String>,
}

impl Spread {
    /// Prepares the workers of a session; `None` if it has none.
    pub(super) fn new(plan: &SessionPlan, monitor: &Monitor) -> Option<Box<Spread>> {
        if plan.workers < 2 || plan.needs_one_thread().is_some() {
            return None;
        }
        let portions = monitor.portions(plan.workers);
        (!portions.is_empty()).then(|| {
            Box::new(Spread {
                portions,
                workers: None,
                is_live: plan.options.live,
                is_lent: false,
                is_flushing: false,
                queue: Vec::new(),
                text: 0,
                size: most(plan.options.live),
                under_way: VecDeque::new(),
                spare: Vec::new(),
                last: None,
                begin: None,
                room: 0,
                since: u64::MAX,
                copied: 0,
                alone: 0,
                here: Vec::new(),
                failure: None,
            })
        })
    }

    /// Takes the events out of a block, the earliest of which is at `begin`. Returns whether the batch is complete.
    fn add(&mut self, block: &mut Block, turn: Turn, begin: Option<Timestamp>) -> bool {
        self.begin = self.begin.into_iter().chain(begin).min();
        let mut waiting = self.spare.pop().unwrap_or_else(|| Waiting::new(Block::new(block.layout())));
        self.last = block.len().checked_sub(1).map(|row| block.time(row));
        self.text += block.text_bytes();
        swap(&mut waiting.block, block);
        waiting.turn = turn;
        self.queue.push(waiting);
        self.queue.len() >= self.size || self.text >= TEXT
    }

    /// Number of events in the queue.
    pub(super) fn events(&self) -> u64 {
        self.queue.iter().map(|waiting| waiting.block.len() as u64).sum()
    }

    /// Number of events in the queue and under way.
    pub(super) fn waiting(&self) -> u64 {
        let under_way = self.under_way.iter().flat_map(|batch| batch.iter());
        self.events() + under_way.map(|waiting| waiting.block.len() as u64).sum::<u64>()
    }

    /// Whether the states are in the monitor and nothing waits, so that the thread of the session evaluates the block that
    /// its caller waits for.
    fn is_at_rest(&self) -> bool {
        self.is_live && self.is_flushing && !self.is_lent && self.queue.is_empty()
    }

    /// Counts events that the thread of the session evaluates in the monitor.
    pub(super) fn pass_by(&mut self, events: u64) {
        self.since = self.since.saturating_add(events);
    }

    /// Empties the queue.
    pub(super) fn take_queue(&mut self) -> Vec<Waiting> {
        (self.text, self.last, self.begin) = (0, None, None);
        take(&mut self.queue)
    }

    /// Takes blocks back that were evaluated, and their vector, to reuse their memory.
    pub(super) fn give_queue_back(&mut self, mut queue: Vec<Waiting>) {
        self.spare.append(&mut queue);
        self.queue = queue;
    }

    /// Whether the events of the queue are to be handed over. Portions do not know how many instances there are in others,
    /// so that none may reach a limit; and after the states were taken back, they are lent again only when as many events
    /// have come as instances are copied.
    fn has_room(&mut self, monitor: &Monitor) -> bool {
        let events = self.events();
        self.pass_by(events);
        if !self.is_lent {
            self.room = monitor.room();
            if self.since < monitor.copied() {
                return false;
            }
        }
        let has_room = events <= self.room;
        self.room = self.room.saturating_sub(events);
        has_room
    }

    /// Hands the queue over. Returns false if no thread can be started.
    fn hand_over(&mut self, monitor: &mut Monitor, statistics: &mut WorkerStatistics) -> Result<bool, Cause> {
        if self.workers.is_none() {
            self.workers = Workers::start(take(&mut self.portions)).ok();
        }
        let events = self.events();
        let Some(workers) = &mut self.workers else { return Ok(false) };
        if !self.is_lent {
            self.copied = monitor.copied();
            workers.lend(monitor);
            (self.is_lent, self.since) = (true, 0);
        }
        self.alone = 0;
        let batch = Arc::new(take(&mut self.queue));
        self.text = 0;
        workers.submit(&batch)?;
        self.under_way.push_back(batch);
        statistics.batches += 1;
        statistics.messages += events;
        Ok(true)
    }

    /// Waits for the first batch under way.
    fn collect(&mut self, statistics: &mut WorkerStatistics) -> Option<Result<Collected, Cause>> {
        let batch = self.under_way.pop_front()?;
        let collected = self.workers.as_mut()?.collect(statistics);
        // No worker has it any more.
        Some(collected.map(|outputs| (Arc::unwrap_or_clone(batch), outputs)))
    }

    /// Takes a batch back that was evaluated, and sets the size of the next one.
    fn give_back(&mut self, mut batch: Vec<Waiting>, outputs: Vec<Outputs>) {
        let reports: usize =
            outputs.iter().flat_map(|all| all.iter().take(batch.len())).map(|own| own.len()).sum();
        self.size = if reports > REPORTS {
            (batch.len() / 2).max(1)
        } else {
            (self.size * 2).min(most(self.is_live))
        };
        self.spare.append(&mut batch);
        if let Some(workers) = &mut self.workers {
            workers.give_back(outputs);
        }
    }
}

/// A batch, and the outputs of each worker.
type Collected = (Vec<Waiting>, Vec<Outputs>);

/// Maximum number of blocks of a batch.
fn most(is_live: bool) -> usize {
    if is_live { MOST_LIVE } else { MOST }
}

impl Direct {
    /// The readings of the present.
    pub(super) fn turn(&self, shared: &Shared) -> Turn {
        // The messages have just arrived: one reading of the clock serves the whole block.
        Turn { counted: shared.counted(), ticks: self.needs_time().then(|| shared.clock.ticks()) }
    }

    /// Lets the events of the block wait until workers have evaluated them. Returns whether they wait: not where the
    /// monitor needs all of its state.
    pub(super) fn defer(&mut self, turn: Turn, shared: &mut Shared) -> bool {
        if self.has_failed() {
            self.block.clear();
            return true;
        }
        let Gaps { topics, absence, returning, .. } = &self.gaps;
        let is_plain = topics.is_empty() && absence.is_none() && returning.is_none();
        if !is_plain || !self.monitor.may_lend() {
            self.settle(shared);
            return false;
        }
        let events = self.block.len() as u64;
        if let Some(spread) = self.spread.as_mut().filter(|spread| spread.is_at_rest()) {
            spread.pass_by(events);
            return false;
        }
        if self.beat(turn.ticks, shared) {
            // Blocks that wait precede the pause.
            self.settle(shared);
            return false;
        }
        let begin = (0..self.block.len()).map(|row| self.block.time(row)).min();
        let waiting = self.spread.as_ref().and_then(|spread| spread.begin);
        let known = shared.span.map(|(begin, _)| begin).into_iter().chain(waiting).min();
        if begin.zip(known).is_some_and(|(begin, known)| begin < known) {
            // Reports are shown with the beginning that is known when they are taken.
            self.settle(shared);
        }
        let Some(spread) = &mut self.spread else { return false };
        if spread.add(&mut self.block, turn, begin) {
            self.hand_over(shared);
        }
        true
    }

    /// Forgets the arrival of events whose time it is.
    pub(super) fn forget_own_arrivals(&mut self) {
        if self.timing.reads_arrivals {
            let rows = 0..self.block.len();
            arrival::forget_own(&mut self.block, rows, &self.reader.inputs);
        }
    }

    /// Whether a time in the block is before that of the event before it.
    pub(super) fn steps_back(&self) -> bool {
        match self.spread.as_ref().and_then(|spread| spread.last) {
            None => self.backwards.is_back(&self.block),
            Some(last) => Backwards::restored(Some(last.as_nanos()), 0).is_back(&self.block),
        }
    }

    pub(super) fn hand_over(&mut self, shared: &mut Shared) {
        while self.spread.as_ref().is_some_and(|spread| spread.under_way.len() >= UNDER_WAY) {
            self.collect(shared);
        }
        if self.has_failed() {
            return;
        }
        let Direct { spread, monitor, .. } = self;
        if spread.as_mut().is_some_and(|spread| !spread.has_room(monitor)) {
            return self.settle(shared);
        }
        match spread.as_mut().map(|spread| spread.hand_over(monitor, &mut shared.workers)) {
            Some(Ok(true)) | None => {}
            Some(Ok(false)) => {
                self.settle(shared);
                self.spread = None;
            }
            Some(Err(cause)) => self.fail(cause),
        }
    }

    /// Evaluates the blocks of the first batch under way.
    pub(super) fn collect(&mut self, shared: &mut Shared) {
        let spread = self.spread.as_mut();
        let (mut batch, outputs) = match spread.and_then(|spread| spread.collect(&mut shared.workers)) {
            Some(Ok(collected)) => collected,
            Some(Err(cause)) => return self.fail(cause),
            None => return,
        };
        for (at, waiting) in batch.iter_mut().enumerate() {
            swap(&mut self.block, &mut waiting.block);
            self.evaluate_in_turn(waiting.turn, Some((&outputs[..], at)), shared);
            swap(&mut self.block, &mut waiting.block);
        }
        if let Some(spread) = &mut self.spread {
            spread.give_back(batch, outputs);
        }
    }

    /// Evaluates all blocks that wait. All of the monitor's state is in the monitor then: it must be called before
    /// anything but an event concerns the monitor.
    #[inline]
    pub(in crate::session) fn settle(&mut self, shared: &mut Shared) {
        if self.spread.as_ref().is_some_and(|spread| spread.is_lent || !spread.queue.is_empty()) {
            self.settle_all(shared);
        }
    }

    #[cold]
    pub(super) fn settle_all(&mut self, shared: &mut Shared) {
        while self.spread.as_ref().is_some_and(|spread| !spread.under_way.is_empty()) {
            self.collect(shared);
        }
        let Direct { spread: Some(spread), monitor, .. } = self else { return };
        if take(&mut spread.is_lent)
            && let Some(workers) = &mut spread.workers
        {
            workers.take_back(monitor);
        }
        let mut queue = spread.take_queue();
        // Limits that instances in portions have reached.
        self.look_at_limits(shared);
        for waiting in &mut queue {
            swap(&mut self.block, &mut waiting.block);
            self.evaluate_in_turn(waiting.turn, None, shared);
            swap(&mut self.block, &mut waiting.block);
        }
        if let Some(spread) = &mut self.spread {
            spread.give_queue_back(queue);
        }
    }
}

#[cfg(test)]
mod tests {
    use rondel_event::TopicId;

    use super::*;
    use crate::session::route::Route;
    use crate::{Options, Report, Session, Stamp};

    fn spread(session: &Session) -> &Spread {
        let Route::Direct(direct) = &session.route else { panic!("messages are evaluated on arrival") };
        direct.spread.as_ref().unwrap()
    }

    /// Number of blocks that wait.
    fn waiting(session: &Session) -> usize {
        let Spread { queue, under_way, .. } = spread(session);
        queue.len() + under_way.iter().map(|batch| batch.len()).sum::<usize>()
    }

    #[test]
    fn waiting_blocks_are_bounded() {
        let text = "topic t { x: int } property p = t.x > 1 property q = once t.x > 2";
        let spec = rondel_spec::parse(text).spec.unwrap();
        let mut plan = SessionPlan::new(&spec, Options::default()).unwrap();
        assert_eq!(plan.set_workers(2), Ok(None));
        let (mut session, mut most, mut reports) = (plan.start().unwrap(), 0, 0);
        for i in 0..50_000 {
            let payload = format!(r#"{{"x":{}}}"#, i % 4);
            let stamp = Stamp::at(Timestamp::from_nanos(i));
            session.push(TopicId(0), stamp, payload.as_bytes()).unwrap();
            reports += session.reports().count();
            most = most.max(waiting(&session));
        }
        assert!((UNDER_WAY * MOST..(UNDER_WAY + 1) * MOST).contains(&most), "{most} blocks");
        session.flush();
        reports += session.reports().count();
        assert!(waiting(&session) == 0 && !spread(&session).is_lent);
        assert_eq!(reports, 25_000 + 2, "`p` changes with every second message, `q` once");
    }

    #[test]
    fn states_come_back_before_a_limit_of_instances() {
        let text = "topic t { k: int, x: int } property p for each k in t.k = t.x > 1 and once t.x > 2";
        let spec = rondel_spec::parse(text).spec.unwrap();
        let json = |report: Report<'_>| {
            let mut json = Vec::new();
            report.json(&mut json);
            String::from_utf8(json).unwrap()
        };
        let run = |workers: usize| {
            let mut plan = SessionPlan::new(&spec, Options::default()).unwrap();
            assert_eq!(plan.set_workers(workers), Ok(None));
            let (mut session, mut reports, mut lent) = (plan.start().unwrap(), Vec::new(), 0);
            for i in 0..30_000_i64 {
                let payload = format!(r#"{{"k":{},"x":{}}}"#, i * i % 97, i % 5);
                session.push(TopicId(0), Stamp::at(Timestamp::from_nanos(i)), payload.as_bytes()).unwrap();
                if workers > 1
                    && let Route::Direct(direct) = &mut session.route
                    && let Some(spread) = &mut direct.spread
                    && spread.is_lent
                {
                    lent += 1;
                    // As with nearly as many instances as the limit allows.
                    spread.room = spread.room.min(5000);
                }
                reports.extend(session.reports().map(json));
            }
            session.flush();
            reports.extend(session.reports().map(json));
            (reports, lent)
        };
        let (one, several) = (run(1), run(3));
        assert_eq!(one.0, several.0);
        assert!(several.1 > 0 && several.1 < 30_000, "{} messages", several.1);
    }

    #[test]
    fn few_messages_start_no_thread() {
        let spec = rondel_spec::parse("topic t { x: int } property p = t.x > 1").spec.unwrap();
        let mut plan = SessionPlan::new(&spec, Options::default()).unwrap();
        assert_eq!(plan.set_workers(4), Ok(None));
        let mut session = plan.start().unwrap();
        for i in 0..1000 {
            session.push(TopicId(0), Stamp::at(Timestamp::from_nanos(i)), br#"{"x":2}"#).unwrap();
        }
        session.flush();
        assert_eq!(session.reports().count(), 1);
        assert!(spread(&session).workers.is_none());
    }
}
