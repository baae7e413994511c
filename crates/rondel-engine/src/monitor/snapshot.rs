//! Snapshots of monitors: serialised state.

use std::sync::Arc;

use rondel_event::{SnapshotError, snapshot};

use crate::monitor::program::Program;
use crate::monitor::{Monitor, SavedMonitor};

/// Kind of a monitor's snapshot.
pub(super) const MONITOR: &snapshot::Kind = b"RONDELss";
/// Version of the saved form, incremented with every change of the saved state.
pub(super) const VERSION: u32 = 28;

impl Monitor {
    /// Serialises the state of the monitor. A monitor [restored](Monitor::restore) from it emits the same reports from
    /// there on.
    pub fn snapshot(&self) -> Vec<u8> {
        // Plain data always serialises.
        let mut state = postcard::to_stdvec(&self.saved()).unwrap_or_default();
        let contents = self.program().contents();
        state.extend_from_slice(contents);
        state.extend_from_slice(&(contents.len() as u64).to_le_bytes());
        snapshot::seal(MONITOR, VERSION, self.program().fingerprint(), &state)
    }

    /// Restores a monitor that continues where the snapshot was taken.
    ///
    /// # Errors
    /// [`SnapshotError`] when the bytes are no snapshot, truncated, or of another program: then some properties may
    /// still [continue](Monitor::continue_edited).
    pub fn restore(program: Arc<Program>, bytes: &[u8]) -> Result<Monitor, SnapshotError> {
        let (fingerprint, other) = (program.fingerprint(), SnapshotError::OtherProgram);
        let state = snapshot::open(MONITOR, VERSION, fingerprint, other, bytes)?;
        let (saved, _) = split(state).ok_or(SnapshotError::Altered)?;
        let saved: SavedMonitor = postcard::from_bytes(saved).map_err(|_| SnapshotError::Altered)?;
        Monitor::from_saved(program, saved).ok_or(SnapshotError::Altered)
    }
}

/// Splits a snapshot into the saved state and the description of the program.
pub(super) fn split(state: &[u8]) -> Option<(&[u8], &[u8])> {
    let (rest, len) = state.split_last_chunk()?;
    let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
    rest.split_at_checked(rest.len().checked_sub(len)?)
}
