//! The sealed form of a state in a snapshot.

use rondel_event::{SnapshotError, snapshot};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The version of the saved form. It goes up with every change of the saved state.
const VERSION: u32 = 12;

/// The fingerprint of settings in this release.
pub(crate) fn fingerprint(settings: &str) -> u64 {
    snapshot::checksum(format!("{} {settings}", env!("CARGO_PKG_VERSION")).as_bytes())
}

/// A state as a snapshot of this kind.
pub(crate) fn seal(kind: &snapshot::Kind, fingerprint: u64, state: &impl Serialize) -> Vec<u8> {
    // Plain data always serialises.
    snapshot::seal(kind, VERSION, fingerprint, &postcard::to_stdvec(state).unwrap_or_default())
}

/// The state in a snapshot of this kind.
pub(crate) fn open<S: DeserializeOwned>(
    kind: &snapshot::Kind,
    fingerprint: u64,
    bytes: &[u8],
) -> Result<S, SnapshotError> {
    let state = snapshot::open(kind, VERSION, fingerprint, SnapshotError::OtherSettings, bytes)?;
    postcard::from_bytes(state).map_err(|_| SnapshotError::Altered)
}
