//! Threads that evaluate portions of a monitor, ahead of the session.
//!
//! Every worker gets every batch of blocks, and returns the reports of its portion about each of them. Both ways are
//! bounded: there are at most [`UNDER_WAY`] batches that were handed over and not collected.

use std::any::Any;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rondel_engine::{Monitor, Portion, PortionOutput};
use rondel_event::{Block, Timestamp};

use super::spread::Batch;
use crate::statistics::WorkerStatistics;

/// Maximum number of batches that were handed over and not collected: one that is evaluated and one that waits.
pub(super) const UNDER_WAY: usize = 2;

/// Reports of a portion, by block of the batch. There may be more outputs than blocks.
pub(super) type Outputs = Vec<PortionOutput>;

/// The panic that has ended a worker.
pub(super) type Cause = Box<dyn Any + Send>;

/// A batch to evaluate, and outputs whose memory is reused.
struct Job {
    batch: Batch,
    outputs: Outputs,
}

/// A batch that was evaluated: the outputs, and the time that it took.
struct Done {
    outputs: Outputs,
    busy: Duration,
}

struct Worker {
    /// Locked by the thread while it evaluates a batch, and by the session while no batch is under way.
    portion: Arc<Mutex<Portion>>,
    /// Dropping it ends the thread.
    jobs: Option<SyncSender<Job>>,
    done: Mutex<Receiver<Done>>,
    spare: Vec<Outputs>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn start(portion: Portion, number: usize) -> io::Result<Worker> {
        let (jobs, taken) = sync_channel(UNDER_WAY);
        let (finished, done) = sync_channel(UNDER_WAY);
        let portion = Arc::new(Mutex::new(portion));
        let own = Arc::clone(&portion);
        let thread = thread::Builder::new()
            .name(format!("worker {number}"))
            .spawn(move || work(&own, &taken, &finished))?;
        Ok(Worker {
            portion,
            jobs: Some(jobs),
            done: Mutex::new(done),
            spare: Vec::new(),
            thread: Some(thread),
        })
    }

    fn portion(&self) -> MutexGuard<'_, Portion> {
        self.portion.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn submit(&mut self, batch: &Batch) -> Result<(), Cause> {
        let job = Job { batch: Arc::clone(batch), outputs: self.spare.pop().unwrap_or_default() };
        let is_sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        if is_sent { Ok(()) } else { Err(self.cause()) }
    }

    fn collect(&mut self) -> Result<Done, Cause> {
        let done = self.done.get_mut().unwrap_or_else(PoisonError::into_inner);
        done.recv().map_err(|_| self.cause())
    }

    /// The panic that has ended the thread. Its message was printed.
    fn cause(&mut self) -> Cause {
        let cause = self.thread.take().and_then(|thread| thread.join().err());
        cause.unwrap_or_else(|| Box::new("a worker has ended") as Cause)
    }
}

/// Evaluates batches until there are no more.
fn work(portion: &Mutex<Portion>, jobs: &Receiver<Job>, done: &SyncSender<Done>) {
    for Job { batch, mut outputs } in jobs {
        if outputs.len() < batch.len() {
            outputs.resize_with(batch.len(), PortionOutput::default);
        }
        let began = Instant::now();
        let mut portion = portion.lock().unwrap_or_else(PoisonError::into_inner);
        for (waiting, output) in batch.iter().zip(&mut outputs) {
            portion.step(&waiting.block, output);
        }
        drop(portion);
        // The session takes the blocks out of the batch once all workers have returned it.
        drop(batch);
        if done.send(Done { outputs, busy: began.elapsed() }).is_err() {
            return;
        }
    }
}

/// The workers of a session.
pub(super) struct Workers(Vec<Worker>);

impl Workers {
    /// Starts a thread for each portion.
    ///
    /// # Errors
    /// When the system starts no further thread.
    pub(super) fn start(portions: Vec<Portion>) -> io::Result<Workers> {
        let numbered = (1..).zip(portions);
        Ok(Workers(numbered.map(|(i, portion)| Worker::start(portion, i)).collect::<io::Result<_>>()?))
    }

    /// Moves the states of the portions into them.
    pub(super) fn lend(&mut self, monitor: &mut Monitor) {
        self.0.iter().for_each(|worker| monitor.lend(&mut worker.portion()));
    }

    /// Moves the states of the portions back, once all batches were collected.
    pub(super) fn take_back(&mut self, monitor: &mut Monitor) {
        self.0.iter().for_each(|worker| monitor.take_back(&mut worker.portion()));
    }

    /// Adds copies of the states of the portions to a monitor that has lent them, while no batch is under way.
    pub(super) fn copy_back(&self, monitor: &mut Monitor) {
        self.0.iter().for_each(|worker| monitor.take_back(&mut Portion::clone(&worker.portion())));
    }

    /// Evaluates a block on the thread of the caller, while no batch is under way. `outputs` gets one of each worker.
    pub(super) fn step(&self, block: &Block, outputs: &mut Vec<Outputs>) {
        self.each(outputs, |portion, output| portion.step(block, output));
    }

    /// Lets time pass on the thread of the caller, while no batch is under way. `outputs` gets one of each worker.
    pub(super) fn advance(&self, now: Timestamp, outputs: &mut Vec<Outputs>) {
        self.each(outputs, |portion, output| portion.advance(now, output));
    }

    fn each(&self, outputs: &mut Vec<Outputs>, evaluate: impl Fn(&mut Portion, &mut PortionOutput)) {
        outputs.resize_with(self.0.len(), || vec![PortionOutput::default()]);
        for (worker, outputs) in self.0.iter().zip(outputs) {
            let mut portion = worker.portion();
            outputs.iter_mut().for_each(|output| evaluate(&mut portion, output));
        }
    }

    /// Next change by time alone in the states of the portions.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.0.iter().filter_map(|worker| worker.portion().next_deadline()).min()
    }

    /// Whether any portion has this quality.
    pub(super) fn any(&self, quality: impl Fn(&Portion) -> bool) -> bool {
        self.0.iter().any(|worker| quality(&worker.portion()))
    }

    /// Hands a batch over. The caller has collected all but [`UNDER_WAY`] - 1 of the batches before.
    ///
    /// # Errors
    /// The panic of a worker that has ended.
    pub(super) fn submit(&mut self, batch: &Batch) -> Result<(), Cause> {
        self.0.iter_mut().try_for_each(|worker| worker.submit(batch))
    }

    /// Waits for the first batch that was not collected, and returns the outputs of each worker. Their times are added to
    /// the statistics.
    ///
    /// # Errors
    /// The panic of a worker that has ended.
    pub(super) fn collect(&mut self, statistics: &mut WorkerStatistics) -> Result<Vec<Outputs>, Cause> {
        let done: Vec<Done> = self.0.iter_mut().map(Worker::collect).collect::<Result<_, _>>()?;
        statistics.add_busy(done.iter().map(|done| done.busy));
        Ok(done.into_iter().map(|done| done.outputs).collect())
    }

    /// Gives outputs back, whose memory is reused.
    pub(super) fn give_back(&mut self, outputs: Vec<Outputs>) {
        self.0.iter_mut().zip(outputs).for_each(|(worker, outputs)| worker.spare.push(outputs));
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|worker| worker.jobs = None);
        for thread in self.0.iter_mut().filter_map(|worker| worker.thread.take()) {
            // A panic of another worker is continued already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use rondel_engine::Program;
    use rondel_event::{Layout, TopicId};

    use super::super::spread::Waiting;
    use super::*;

    fn monitor() -> Monitor {
        let spec = rondel_spec::parse("topic t { x: int } property p = t.x > 1").spec.unwrap();
        Monitor::new(Arc::new(Program::compile(&spec).unwrap()))
    }

    fn batch(block: Block) -> Batch {
        Arc::new(vec![Waiting::new(block)])
    }

    fn one_event(layout: Layout) -> Block {
        let mut block = Block::new(layout);
        block.push(TopicId(0), Timestamp::ZERO);
        block
    }

    #[test]
    fn batches_come_back_in_order() {
        let mut monitor = monitor();
        let mut workers = Workers::start(monitor.portions(1)).unwrap();
        workers.lend(&mut monitor);
        let blocks: Vec<Block> = (0..40)
            .map(|x| {
                let mut block = one_event(monitor.program().layout());
                block.set_int(0, 0, x % 2 * 9);
                block
            })
            .collect();
        let mut counts = Vec::new();
        let mut step = |workers: &mut Workers, block: &Block, monitor: &mut Monitor| {
            let outputs = workers.collect(&mut WorkerStatistics::default()).unwrap();
            counts.push(monitor.step_with(block, outputs.iter().filter_map(|all| all.first())).len());
            workers.give_back(outputs);
        };
        for (i, block) in blocks.iter().enumerate() {
            if i >= UNDER_WAY {
                step(&mut workers, &blocks[i - UNDER_WAY], &mut monitor);
            }
            workers.submit(&batch(block.clone())).unwrap();
        }
        blocks[40 - UNDER_WAY..].iter().for_each(|block| step(&mut workers, block, &mut monitor));
        workers.take_back(&mut monitor);
        assert_eq!(counts, [1; 40], "every verdict differs from the one before");
        assert_eq!(monitor.position(), 40);
    }

    #[test]
    fn panic_of_a_worker_is_handed_on() {
        let mut monitor = monitor();
        let mut workers = Workers::start(monitor.portions(1)).unwrap();
        workers.lend(&mut monitor);
        // A block of another layout, which no session hands over.
        workers.submit(&batch(one_event(Layout { topics: 1, ..Layout::default() }))).unwrap();
        let mut collect = || workers.collect(&mut WorkerStatistics::default()).map(|outputs| outputs.len());
        let message = collect().unwrap_err().downcast::<String>().ok();
        assert!(message.is_some_and(|message| message.contains("index out of bounds")));
        assert!(collect().is_err(), "it stays ended");
    }

    #[test]
    fn threads_end_with_batches_under_way() {
        let mut monitor = monitor();
        let mut workers = Workers::start(monitor.portions(1)).unwrap();
        workers.lend(&mut monitor);
        for _ in 0..UNDER_WAY {
            workers.submit(&batch(one_event(monitor.program().layout()))).unwrap();
        }
        drop(workers);
    }

    #[test]
    fn blocks_and_time_are_evaluated_by_the_caller_between_batches() {
        let mut monitor = monitor();
        let mut workers = Workers::start(monitor.portions(1)).unwrap();
        workers.lend(&mut monitor);
        let mut outputs = Vec::new();
        for x in [9, 9, 0] {
            let mut block = one_event(monitor.program().layout());
            block.set_int(0, 0, x);
            workers.step(&block, &mut outputs);
            monitor.step_with(&block, outputs.iter().flatten());
        }
        assert_eq!(monitor.reports().len(), 1, "the last one differs from the one before");
        workers.advance(Timestamp::from_nanos(5), &mut outputs);
        assert!(monitor.advance_with(Timestamp::from_nanos(5), outputs.iter().flatten()).is_empty());
        let mut copy = monitor.clone();
        workers.copy_back(&mut copy);
        workers.take_back(&mut monitor);
        assert!(copy.snapshot() == monitor.snapshot());
    }
}
