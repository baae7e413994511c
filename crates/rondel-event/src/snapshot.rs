//! Envelope of a snapshot: kind, version, fingerprint, state, checksum.
//!
//! The owner of the state serialises it. This module wraps the bytes and refuses bytes that are
//! truncated, altered, or belong to another specification or other settings.

use std::fmt;

/// Kind of a snapshot: its first eight bytes.
pub type Kind = [u8; 8];

/// Length of the header: kind, version, fingerprint and length of the state. A checksum of everything
/// follows the state.
const HEAD: usize = 8 + 4 + 8 + 8;

/// Error of restoring a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The bytes do not begin as a snapshot of this kind.
    NotASnapshot,
    /// The snapshot has another version of the format.
    Version {
        /// The version of the snapshot.
        found: u32,
        /// The version that this release reads.
        expected: u32,
    },
    /// The snapshot belongs to another specification or another release.
    OtherProgram,
    /// The snapshot belongs to other alignment settings or another release.
    OtherSettings,
    /// The snapshot is too short or too long.
    Length {
        /// Its length in bytes.
        found: usize,
        /// The length that its head states, in bytes.
        expected: usize,
    },
    /// The content was altered: its checksum does not match.
    Altered,
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotError::NotASnapshot => f.write_str("this is not a snapshot of this kind"),
            SnapshotError::Version { found, expected } => write!(
                f,
                "the snapshot has format version {found}, and this release reads version {expected}: check the \
                 recording from its beginning, or use the release that wrote the snapshot"
            ),
            SnapshotError::OtherProgram => f.write_str(
                "the snapshot belongs to another specification or to another release of this program",
            ),
            SnapshotError::OtherSettings => f.write_str(
                "the snapshot belongs to other alignment settings or to another release of this program",
            ),
            SnapshotError::Length { found, expected } => write!(
                f,
                "the snapshot has {found} bytes and should have {expected}: it was truncated or extended"
            ),
            SnapshotError::Altered => f.write_str("the snapshot was altered: its checksum does not match"),
        }
    }
}

impl std::error::Error for SnapshotError {}

/// Returns the FNV-1a hash (Fowler, Noll, Vo) of bytes: detects accidental changes, not malicious ones.
pub fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Returns the sum that stands behind a snapshot: of its bytes, eight at a time. Detects accidental changes, not malicious
/// ones.
pub fn sum(bytes: &[u8]) -> u64 {
    let add = |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    let (words, rest) = bytes.as_chunks();
    let sum = words.iter().fold(bytes.len() as u64, |sum, word| add(sum, u64::from_le_bytes(*word)));
    rest.iter().fold(sum, |sum, byte| add(sum, u64::from(*byte)))
}

/// Wraps a serialised state in a snapshot.
pub fn seal(kind: &Kind, version: u32, fingerprint: u64, state: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD + state.len() + 8);
    out.extend_from_slice(kind);
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(&fingerprint.to_le_bytes());
    out.extend_from_slice(&(state.len() as u64).to_le_bytes());
    out.extend_from_slice(state);
    out.extend_from_slice(&sum(&out).to_le_bytes());
    out
}

/// Returns the serialised state of a snapshot.
///
/// # Errors
/// [`SnapshotError`]; `other` if the fingerprint differs.
pub fn open<'b>(
    kind: &Kind,
    version: u32,
    fingerprint: u64,
    other: SnapshotError,
    bytes: &'b [u8],
) -> Result<&'b [u8], SnapshotError> {
    let (found, state) = open_any(kind, version, bytes)?;
    if found != fingerprint {
        return Err(other);
    }
    Ok(state)
}

/// Returns the fingerprint of a snapshot, and its serialised state.
///
/// # Errors
/// [`SnapshotError`].
pub fn open_any<'b>(kind: &Kind, version: u32, bytes: &'b [u8]) -> Result<(u64, &'b [u8]), SnapshotError> {
    let rest = bytes.strip_prefix(kind).ok_or(SnapshotError::NotASnapshot)?;
    let cut = SnapshotError::Length { found: bytes.len(), expected: HEAD + 8 };
    let (found, rest) = rest.split_first_chunk().ok_or(cut)?;
    let found = u32::from_le_bytes(*found);
    if found != version {
        return Err(SnapshotError::Version { found, expected: version });
    }
    let (found, rest) = rest.split_first_chunk().ok_or(cut)?;
    let (length, rest) = rest.split_first_chunk().ok_or(cut)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let expected = length.saturating_add(HEAD + 8);
    if bytes.len() != expected {
        return Err(SnapshotError::Length { found: bytes.len(), expected });
    }
    let (state, found_sum) = rest.split_at(length);
    if sum(&bytes[..HEAD + length]).to_le_bytes() != found_sum {
        return Err(SnapshotError::Altered);
    }
    Ok((u64::from_le_bytes(*found), state))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_unaltered_snapshots_open() {
        let whole = seal(b"KINDkind", 3, 7, b"state");
        let read =
            |bytes: &[u8]| open(b"KINDkind", 3, 7, SnapshotError::OtherProgram, bytes).map(<[u8]>::to_vec);
        assert_eq!(read(&whole).unwrap(), b"state");
        (0..whole.len()).for_each(|end| assert!(read(&whole[..end]).is_err()));
        for at in 0..whole.len() {
            let mut altered = whole.clone();
            altered[at] ^= 1;
            assert!(read(&altered).is_err(), "byte {at}");
        }
        assert!(read(&[&whole[..], b"x"].concat()).is_err());
        let version = open(b"KINDkind", 4, 7, SnapshotError::OtherProgram, &whole);
        assert_eq!(version, Err(SnapshotError::Version { found: 3, expected: 4 }));
        let other = open(b"KINDkind", 3, 8, SnapshotError::OtherProgram, &whole);
        assert_eq!(other, Err(SnapshotError::OtherProgram));
    }
}
