//! The transfer of the state of an active member to a late one. Pure: times and messages are arguments.
//!
//! | side | steps |
//! |---|---|
//! | late member ([`taking`]) | notes of messages begin, `record`, a pause, copies of messages begin, a pause, `state`, `parts` until all are there, `end` |
//! | active member ([`giving`]) | notes the identities of messages, takes a snapshot, sends the parts that are requested |
//!
//! The pauses are longer than the difference in the delays of both members: every message is then in the snapshot, among the
//! copies, or in both, and those in both have noted identities.

pub mod giving;
#[cfg(test)]
mod simulation;
pub mod taking;

use super::election::{MemberId, Nanos};

/// Size of a part in bytes. A sign of life waits for one part at most.
pub const PART: usize = 16 << 10;
/// The largest state that is transferred, in bytes.
pub const LARGEST: usize = 64 << 20;
/// Number of parts in a request: as many as the receive buffer of a socket holds.
pub const WINDOW: usize = 4;
/// The pauses.
const PAUSE: Nanos = 500_000_000;
/// Time without an answer after which a request is repeated.
const REPEAT: Nanos = 100_000_000;
/// Time without an answer after which a late member gives up.
const SILENT: Nanos = 5_000_000_000;
/// Time after which it gives up in any case.
const LONGEST: Nanos = 60_000_000_000;
/// Time without a request after which an active member ends a transfer.
const ABANDONED: Nanos = 10_000_000_000;

/// The sender, the receiver and the number of the transfer of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The number of the transfer, of the late member.
    pub transfer: u64,
    /// The sender.
    pub from: MemberId,
    /// The receiver.
    pub to: MemberId,
}

impl Route {
    /// The way back.
    fn back(self) -> Route {
        Route { from: self.to, to: self.from, ..self }
    }
}

/// A request of a late member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// To note the identities of messages from now on.
    Record,
    /// To take a snapshot.
    State,
    /// To send these parts of it.
    Parts(Vec<u32>),
    /// To end: all parts were received, or the late member gives up.
    End,
}

/// The answer of an active member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Identities are noted, or the snapshot is being taken.
    Recording,
    /// The snapshot was taken.
    State(Head),
    /// A part.
    Part(u32, Vec<u8>),
    /// There is no state, for a reason; `later` if another transfer has to end first.
    Refused(String, bool),
    /// There is no such transfer any more.
    Ended,
}

/// A description of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its size in bytes.
    pub bytes: u64,
    /// A checksum.
    pub sum: u32,
    /// Number of events that were checked.
    pub step: u64,
}

impl Head {
    /// The description of a state.
    pub fn of(state: &[u8], step: u64) -> Head {
        Head { bytes: state.len() as u64, sum: crc32fast::hash(state), step }
    }
}

/// Writes identities and a snapshot as one state.
pub fn pack(identities: &[u64], snapshot: &[u8]) -> Vec<u8> {
    let mut state = Vec::with_capacity(8 * (identities.len() + 1) + snapshot.len());
    state.extend_from_slice(&(identities.len() as u64).to_le_bytes());
    identities.iter().for_each(|identity| state.extend_from_slice(&identity.to_le_bytes()));
    state.extend_from_slice(snapshot);
    state
}

/// Returns the identities and the snapshot of a state.
pub fn unpack(mut state: Vec<u8>) -> Option<(Vec<u64>, Vec<u8>)> {
    let (count, rest) = state.split_first_chunk::<8>()?;
    let size = usize::try_from(u64::from_le_bytes(*count)).ok()?.checked_mul(8)?;
    let (identities, _) = rest.get(..size)?.as_chunks::<8>();
    let identities = identities.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    state.drain(..8 + size);
    Some((identities, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_read_as_written() {
        for (identities, snapshot) in [(&[][..], &b""[..]), (&[1, u64::MAX][..], &b"state"[..])] {
            let state = pack(identities, snapshot);
            assert_eq!(unpack(state), Some((identities.to_vec(), snapshot.to_vec())));
        }
        assert_eq!(unpack(b"short".to_vec()), None);
        assert_eq!(unpack(u64::MAX.to_le_bytes().to_vec()), None, "a count without identities");
        assert_eq!(unpack(pack(&[1, 2], b"")[..20].to_vec()), None);
    }
}
