//! What is remembered, as bytes, and back.

use std::sync::Arc;

use rondel_event::{SnapshotError, snapshot};

use crate::monitor::program::Program;
use crate::monitor::{Monitor, Saved};

/// The kind of a monitor's snapshot.
const MONITOR: &snapshot::Kind = b"RONDELss";
/// The version of the saved form. It goes up with every change of the saved state.
const VERSION: u32 = 20;

impl Monitor {
    /// All that the monitor remembers, as bytes. A monitor that is [restored](Monitor::restore) from them gives
    /// the same reports from there on.
    pub fn snapshot(&self) -> Vec<u8> {
        // Plain data always serialises.
        let state = postcard::to_stdvec(&self.saved()).unwrap_or_default();
        snapshot::seal(MONITOR, VERSION, self.program().fingerprint(), &state)
    }

    /// A monitor that goes on where the one went on that the snapshot is of.
    ///
    /// # Errors
    /// [`SnapshotError`] when the bytes are no snapshot, not whole, or of another program.
    pub fn restore(program: Arc<Program>, bytes: &[u8]) -> Result<Monitor, SnapshotError> {
        let (fingerprint, other) = (program.fingerprint(), SnapshotError::OtherProgram);
        let state = snapshot::open(MONITOR, VERSION, fingerprint, other, bytes)?;
        let saved: Saved = postcard::from_bytes(state).map_err(|_| SnapshotError::Altered)?;
        Monitor::from_saved(program, saved).ok_or(SnapshotError::Altered)
    }
}
