//! Snapshots in files.

use std::fs;
use std::path::Path;

use rondel_runtime::{Session, SessionPlan};

/// A session that continues from the snapshot in a file. `note` must be that of the snapshot.
///
/// # Errors
/// The reason in a sentence.
pub fn restore(path: &Path, plan: &SessionPlan, note: &str) -> Result<Session, String> {
    let name = path.display();
    let bytes = fs::read(path).map_err(|error| format!("cannot read the snapshot {name}: {error}"))?;
    plan.restore(&bytes, note).map_err(|error| format!("cannot resume from {name}: {error}"))
}
