//! Pauses: times in which a session did not run.

use rondel_event::Timestamp;

use crate::report::notice::Notice;

/// Time in which a session did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The time of day at which it is last known to have run.
    pub from: Timestamp,
    /// The time of day at which it ran again: an earlier one if the clock was set back.
    pub until: Timestamp,
    /// Cause of the pause.
    pub cause: Cause,
    /// Whether a network may have dropped messages meanwhile, without notice: see
    /// [`Options::drops_when_stopped`](crate::Options::drops_when_stopped).
    pub may_miss: bool,
}

/// Cause of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The process was stopped or starved, or waited for a consumer.
    Stopped,
    /// The session continues from a snapshot: it began when that was taken.
    Restart,
    /// It ran, but the clock of the machine was set.
    Clock {
        /// Forward step in nanoseconds; negative if the clock was set back.
        by: i64,
    },
    /// The clock of a simulation leapt.
    Simulation,
    /// The clock of a simulation showed its first time, after messages had come.
    Begun,
}

impl Cause {
    /// Returns the name: `stopped`, `restart`, `clock` or `simulation`.
    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Stopped => "stopped",
            Cause::Restart => "restart",
            Cause::Clock { .. } => "clock",
            Cause::Simulation | Cause::Begun => "simulation",
        }
    }
}

impl Pause {
    /// Returns the pause as JSON, with times in seconds.
    pub fn json(&self) -> serde_json::Value {
        Notice::paused(self).members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Returns the pause as a sentence; `time` formats a time.
    pub fn sentence(&self, time: &mut dyn FnMut(Timestamp) -> String) -> String {
        Notice::paused(self).text(time)
    }
}
