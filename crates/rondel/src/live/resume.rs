//! Snapshots in files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io};

use rondel_net::durability::State;
use rondel_recording::durable;
use rondel_runtime::{Notice, Session, SessionPlan};

use crate::live::pipeline::Pipeline;
use crate::live::standby::state::GroupHandle;
use crate::say;
use crate::sinks::driven::DestinationHandle;

/// Time limit for the verdicts before a snapshot to be written by stores and other destinations.
const WRITTEN: Duration = Duration::from_millis(1500);

/// A session that continues from the snapshot in a file. `note` must be that of the snapshot.
///
/// # Errors
/// The reason in a sentence.
pub fn restore(path: &Path, plan: &SessionPlan, note: &str) -> Result<Session, String> {
    let name = path.display();
    let bytes = fs::read(path).map_err(|error| format!("cannot read the snapshot {name}: {error}"))?;
    plan.restore(&bytes, note).map_err(|error| format!("cannot resume from {name}: {error}"))
}

/// A live run whose snapshots go to a file.
pub struct Kept {
    /// The file.
    pub file: PathBuf,
    /// Whether messages are acknowledged only once a snapshot contains them.
    pub exactly: bool,
    /// The run.
    pub pipeline: Arc<Pipeline>,
    /// The store and other destinations of its verdicts beside networks.
    pub driven: Vec<DestinationHandle>,
    /// The state of the member of a group, of which only the active one writes snapshots.
    pub standby: Option<GroupHandle>,
}

impl Kept {
    /// Whether the run is a member of a group that is not active.
    fn is_standby(&self) -> bool {
        self.standby.as_ref().is_some_and(|standby| !standby.is_active())
    }
}

impl State for Kept {
    /// The snapshot of a member that is not active is empty, and is not written.
    fn snapshot(&self, marks: Vec<u8>) -> Vec<u8> {
        if self.is_standby() { Vec::new() } else { self.pipeline.snapshot(marks) }
    }

    fn received(&self) -> u64 {
        self.pipeline.received()
    }

    fn save(&self, snapshot: &[u8]) -> io::Result<()> {
        if self.pipeline.failure().is_some() {
            let before = match self.file.exists() {
                true => "the file is from before",
                false => "none was written before",
            };
            return Err(io::Error::other(format!("the state was lost with a worker; {before}")));
        }
        // It may have become active since the snapshot.
        if snapshot.is_empty() || self.is_standby() {
            return Ok(());
        }
        // Verdicts before the snapshot are not repeated.
        let deadline = Instant::now() + WRITTEN;
        let is_written = self
            .driven
            .iter()
            .all(|driven| driven.is_written_within(deadline.saturating_duration_since(Instant::now())));
        if !is_written && self.exactly {
            let reason = "the verdicts before it were not stored in time";
            return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
        }
        durable::replace(&self.file, snapshot)
    }

    fn report(&self, failure: Option<&io::Error>) {
        match failure {
            Some(error) => {
                self.pipeline.report_losses(vec![Notice::unsaved(&self.file, error, self.exactly)]);
            }
            None => say(&format!("the snapshot {} is written again", self.file.display())),
        }
    }
}
