//! Snapshots in files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use rondel_net::durability::State;
use rondel_recording::durable;
use rondel_runtime::{Notice, Session, SessionPlan};

use crate::pipeline::Pipeline;
use crate::say;

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
}

impl State for Kept {
    fn snapshot(&self, marks: Vec<u8>) -> Vec<u8> {
        self.pipeline.snapshot(marks)
    }

    fn received(&self) -> u64 {
        self.pipeline.received()
    }

    fn save(&self, snapshot: &[u8]) -> io::Result<()> {
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
