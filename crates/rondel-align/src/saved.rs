//! Serialisation of states into snapshots.

use rondel_event::{SnapshotError, snapshot};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Version of the format, increased with every change of the saved states.
const VERSION: u32 = 14;

/// Returns the fingerprint of settings in this release.
pub(crate) fn fingerprint(settings: &str) -> u64 {
    snapshot::checksum(format!("{} {settings}", env!("CARGO_PKG_VERSION")).as_bytes())
}

/// Returns a snapshot of this kind with a state.
pub(crate) fn seal(kind: &snapshot::Kind, fingerprint: u64, state: &impl Serialize) -> Vec<u8> {
    // Serialising plain data cannot fail.
    snapshot::seal(kind, VERSION, fingerprint, &postcard::to_stdvec(state).unwrap_or_default())
}

/// Returns the state in a snapshot of this kind.
pub(crate) fn open<S: DeserializeOwned>(
    kind: &snapshot::Kind,
    fingerprint: u64,
    bytes: &[u8],
) -> Result<S, SnapshotError> {
    let state = snapshot::open(kind, VERSION, fingerprint, SnapshotError::OtherSettings, bytes)?;
    postcard::from_bytes(state).map_err(|_| SnapshotError::Altered)
}
