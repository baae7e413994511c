//! Statistics and measurements of a pipeline, for readers on other threads.

use std::time::{Duration, Instant};

use rondel_runtime::{Present, Summary, WorkerStatistics};

use super::{Pipeline, State, Traffic};
use crate::live::gate::GateFigures;
use crate::live::metrics::Meter;

/// A copy of everything that a pipeline counts and measures.
#[cfg_attr(not(feature = "metrics"), allow(dead_code))]
#[derive(Clone, Debug)]
pub struct Observation {
    /// The statistics of the session.
    pub summary: Summary,
    /// The counts of received and published messages.
    pub traffic: Traffic,
    /// Measurements.
    pub meter: Meter,
    /// The state that properties hold.
    pub present: Present,
    /// The state of each gate.
    pub gates: Vec<GateFigures>,
    /// The statistics of workers, if there are any.
    pub workers: Option<WorkerStatistics>,
}

/// The evaluating thread does not release the lock in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unresponsive;

impl Pipeline {
    /// The statistics so far.
    pub fn summary(&self) -> (Summary, Traffic) {
        self.state().summary()
    }

    /// Returns [`Pipeline::summary`]; `None` if the evaluating thread holds the lock for longer than `limit`.
    pub fn summary_within(&self, limit: Duration) -> Option<(Summary, Traffic)> {
        self.state_within(limit).map(|mut state| state.summary())
    }

    /// Calls a function with the statistics and the present state of the properties, between two messages; `None` if the
    /// evaluating thread holds the lock for longer than `limit`.
    #[cfg(feature = "foxglove")]
    pub fn look_within<T>(&self, limit: Duration, look: impl FnOnce(&Summary, &Present) -> T) -> Option<T> {
        let mut state = self.state_within(limit)?;
        let (summary, _) = state.summary();
        Some(look(&summary, &state.present()))
    }

    /// Returns a copy of everything that is counted and measured; `None` if the evaluating thread holds the lock for
    /// longer than `limit`, or nothing is measured.
    pub fn observed_within(&self, limit: Duration) -> Option<Observation> {
        let mut state = self.state_within(limit)?;
        let meter = Meter::clone(state.meter.as_ref()?);
        // Before the messages that wait are evaluated for the statistics.
        let workers = state.session.workers();
        let (summary, traffic) = state.summary();
        let (present, gates) = (state.present(), state.gate_figures());
        Some(Observation { summary, traffic, meter, present, gates, workers })
    }

    /// Returns the time of reception of the first message since the networks were last idle; `None` while they are.
    ///
    /// # Errors
    /// The evaluating thread holds the lock for longer than `limit`.
    pub fn behind_within(&self, limit: Duration) -> Result<Option<Instant>, Unresponsive> {
        let state = self.state_within(limit).ok_or(Unresponsive)?;
        Ok(state.meter.as_ref().and_then(|meter| meter.behind_since()))
    }
}

impl State {
    /// The statistics so far.
    fn summary(&mut self) -> (Summary, Traffic) {
        self.session.collect();
        let mut traffic = self.traffic;
        traffic.published += self.sinks.verdicts;
        traffic.published = traffic.published.saturating_sub(self.sinks.stdout.withdrawn());
        traffic.unpublished += self.sinks.unpublished;
        (self.all(), traffic)
    }
}
