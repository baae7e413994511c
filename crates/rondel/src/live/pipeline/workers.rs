//! Workers of the session in the pipeline: their statistics, and the end of a run whose worker panics.

use std::sync::atomic::Ordering;

use rondel_runtime::WorkerStatistics;

use super::{Pipeline, State, Stop};

impl Pipeline {
    /// The statistics of workers, if there are any.
    pub fn workers(&self) -> Option<WorkerStatistics> {
        self.state().session.workers()
    }

    /// The panic that has ended a worker: the state of the session is lost.
    pub fn failure(&self) -> Option<String> {
        self.state().session.failure().map(str::to_owned)
    }

    /// Ends the run if a worker has panicked.
    #[inline]
    pub(super) fn end_if_failed(&self, state: &State) {
        if state.session.failure().is_some() && !self.ending.swap(true, Ordering::Relaxed) {
            // The receiver is gone when the run is ending already.
            let _ = self.stop.send(Stop::Failed);
        }
    }
}
