//! What is remembered, as bytes, and back.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::monitor::{Monitor, Saved};
use crate::program::Program;

/// What a snapshot is of: what it begins with.
pub(crate) type Kind = [u8; 8];

/// Of a monitor.
const MONITOR: &Kind = b"RONDELss";
/// The form of what follows. It goes up with every change of what is remembered.
const VERSION: u32 = 11;
/// Kind, version, fingerprint, length of the state; behind the state comes a sum of everything.
const HEAD: usize = 8 + 4 + 8 + 8;

/// Why bytes are not the state of such a monitor, or of such an alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// They do not begin as a snapshot does.
    #[error("this is no snapshot of this kind")]
    NotASnapshot,
    /// They are in another form.
    #[error(
        "this snapshot has version {found} of the format, and only version {VERSION} can be read: check the trace from its beginning, or use the release that wrote it"
    )]
    Version {
        /// Its version.
        found: u32,
    },
    /// They are of another specification, or of another release.
    #[error("this snapshot belongs to another specification, or to another release of this program")]
    OtherProgram,
    /// They are of an alignment with other settings, or of another release.
    #[error("this snapshot belongs to other settings of alignment, or to another release of this program")]
    OtherSettings,
    /// They end too early, or go on after the end.
    #[error("this snapshot has {found} bytes and should have {expected}: it was cut or added to")]
    Length {
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// They are not what was written.
    #[error("this snapshot was altered: its check sum does not match")]
    Altered,
}

/// FNV-1a (Fowler, Noll, Vo): finds accidents, not malice.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// A state of this kind, of what has this fingerprint, as a snapshot.
pub(crate) fn seal(kind: &Kind, fingerprint: u64, state: &impl Serialize) -> Vec<u8> {
    // Plain data always has a form as bytes.
    let state = postcard::to_stdvec(state).unwrap_or_default();
    let mut out = Vec::with_capacity(HEAD + state.len() + 8);
    out.extend_from_slice(kind);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&fingerprint.to_le_bytes());
    out.extend_from_slice(&(state.len() as u64).to_le_bytes());
    out.extend_from_slice(&state);
    out.extend_from_slice(&sum(&out).to_le_bytes());
    out
}

/// The state that was sealed so. `other` says that it has another fingerprint.
pub(crate) fn open<S: DeserializeOwned>(
    kind: &Kind,
    fingerprint: u64,
    other: SnapshotError,
    bytes: &[u8],
) -> Result<S, SnapshotError> {
    let rest = bytes.strip_prefix(kind).ok_or(SnapshotError::NotASnapshot)?;
    let cut = SnapshotError::Length { found: bytes.len(), expected: HEAD + 8 };
    let (version, rest) = rest.split_first_chunk().ok_or(cut)?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        return Err(SnapshotError::Version { found: version });
    }
    let (found, rest) = rest.split_first_chunk().ok_or(cut)?;
    let (length, rest) = rest.split_first_chunk().ok_or(cut)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let expected = length.saturating_add(HEAD + 8);
    if bytes.len() != expected {
        return Err(SnapshotError::Length { found: bytes.len(), expected });
    }
    let (state, summed) = rest.split_at(length);
    if sum(&bytes[..HEAD + length]).to_le_bytes() != summed {
        return Err(SnapshotError::Altered);
    }
    if u64::from_le_bytes(*found) != fingerprint {
        return Err(other);
    }
    postcard::from_bytes(state).map_err(|_| SnapshotError::Altered)
}

impl Monitor {
    /// All that the monitor remembers, as bytes. A monitor that is [restored](Monitor::restore) from them gives
    /// the same reports from there on.
    pub fn snapshot(&self) -> Vec<u8> {
        seal(MONITOR, self.program().fingerprint(), &self.saved())
    }

    /// A monitor that goes on where the one went on that the snapshot is of.
    ///
    /// # Errors
    /// [`SnapshotError`] when the bytes are no snapshot, not whole, or of another program.
    pub fn restore(program: Arc<Program>, bytes: &[u8]) -> Result<Monitor, SnapshotError> {
        let saved: Saved = open(MONITOR, program.fingerprint(), SnapshotError::OtherProgram, bytes)?;
        Monitor::from_saved(program, saved).ok_or(SnapshotError::Altered)
    }
}

/// Values of machines: a word of another crate, which knows nothing of bytes.
pub(crate) mod values {
    use rondel_event::Value;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    enum Saved {
        Unknown,
        Bool(bool),
        Int(i64),
        Float(f64),
        Time(i64),
        Duration(i64),
        String(Box<str>),
    }

    pub(crate) fn serialize<S: Serializer>(values: &[Option<Value>], to: S) -> Result<S::Ok, S::Error> {
        let saved = |value: &Option<Value>| match value {
            None => Saved::Unknown,
            Some(Value::Bool(x)) => Saved::Bool(*x),
            Some(Value::Int(x)) => Saved::Int(*x),
            Some(Value::Float(x)) => Saved::Float(*x),
            Some(Value::Time(x)) => Saved::Time(*x),
            Some(Value::Duration(x)) => Saved::Duration(*x),
            Some(Value::String(x)) => Saved::String(x.clone()),
        };
        values.iter().map(saved).collect::<Vec<_>>().serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Option<Value>>, D::Error> {
        let value = |saved| match saved {
            Saved::Unknown => None,
            Saved::Bool(x) => Some(Value::Bool(x)),
            Saved::Int(x) => Some(Value::Int(x)),
            Saved::Float(x) => Some(Value::Float(x)),
            Saved::Time(x) => Some(Value::Time(x)),
            Saved::Duration(x) => Some(Value::Duration(x)),
            Saved::String(x) => Some(Value::String(x)),
        };
        Ok(Vec::<Saved>::deserialize(from)?.into_iter().map(value).collect())
    }
}

/// A verdict, or none yet.
pub(crate) mod verdict {
    use rondel_event::Verdict;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    const ALL: [Verdict; 3] = [Verdict::Satisfied, Verdict::Violated, Verdict::Inconclusive];

    pub(crate) fn serialize<S: Serializer>(verdict: &Option<Verdict>, to: S) -> Result<S::Ok, S::Error> {
        ALL.iter().position(|known| Some(*known) == *verdict).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Verdict>, D::Error> {
        Ok(Option::<usize>::deserialize(from)?.and_then(|i| ALL.get(i).copied()))
    }
}
