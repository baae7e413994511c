//! Statistics of the threads that evaluate for a session.

use std::time::Duration;

/// Statistics of the workers of a session. Each worker receives every batch, for the properties and instances that it
/// evaluates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerStatistics {
    /// The number of workers that was set. There are fewer if the specification has fewer parts.
    pub requested: usize,
    /// Time that each worker has spent on evaluation; empty before the first batch.
    pub busy: Vec<Duration>,
    /// The number of batches that were handed over.
    pub batches: u64,
    /// The number of messages in them; the thread that receives messages has evaluated the others itself.
    pub messages: u64,
    /// The number of messages that wait for workers now.
    pub waiting: u64,
}

impl WorkerStatistics {
    /// Adds the time that each worker has spent on a batch.
    pub(crate) fn add_busy(&mut self, busy: impl ExactSizeIterator<Item = Duration>) {
        if self.busy.len() < busy.len() {
            self.busy.resize(busy.len(), Duration::ZERO);
        }
        self.busy.iter_mut().zip(busy).for_each(|(all, one)| *all += one);
    }
}
