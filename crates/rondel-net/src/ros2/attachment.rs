//! Attachment of rmw_zenoh to every message: its number, the time of publication, and the publisher.
//!
//! 33 bytes, little-endian: number (8), nanoseconds since the Unix epoch (8), the length 16 (1), id of the publisher
//! (16). The first versions of rmw_zenoh wrote a name before each of the three.

use rondel_event::{Origin, Timestamp};

/// Size of an attachment, in bytes.
pub const LENGTH: usize = 33;

/// Names in attachments of the first versions, each after its length.
const NAMES: [&[u8]; 3] = [b"\x0fsequence_number", b"\x10source_timestamp", b"\x0asource_gid"];
/// Size of an attachment with names, in bytes.
const NAMED_LENGTH: usize = LENGTH + NAMES[0].len() + NAMES[1].len() + NAMES[2].len();

/// The attachment of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Number of the message; a publisher begins with 1.
    pub sequence: i64,
    /// Time of publication.
    pub source_time: Timestamp,
    /// Id of the publisher.
    pub gid: [u8; 16],
}

impl Attachment {
    /// Parses an attachment; `None` for other bytes.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<Attachment> {
        match <&[u8; LENGTH]>::try_from(bytes) {
            Ok(bytes) => Attachment::of(bytes),
            Err(_) => Attachment::read_named(bytes),
        }
    }

    #[inline]
    fn of(bytes: &[u8; LENGTH]) -> Option<Attachment> {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            i64::from_le_bytes(word)
        };
        let mut gid = [0; 16];
        gid.copy_from_slice(&bytes[17..]);
        let source_time = Timestamp::from_nanos(word(8));
        (bytes[16] == 16).then(|| Attachment { sequence: word(0), source_time, gid })
    }

    #[cold]
    fn read_named(bytes: &[u8]) -> Option<Attachment> {
        if bytes.len() != NAMED_LENGTH {
            return None;
        }
        let (mut rest, mut plain) = (bytes, [0; LENGTH]);
        for (name, range) in NAMES.into_iter().zip([0..8, 8..16, 16..LENGTH]) {
            let (value, after) = rest.strip_prefix(name)?.split_at_checked(range.len())?;
            plain[range].copy_from_slice(value);
            rest = after;
        }
        Attachment::of(&plain)
    }

    /// Returns the serialised attachment.
    pub fn write(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..8].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.source_time.as_nanos().to_le_bytes());
        bytes[16] = 16;
        bytes[17..].copy_from_slice(&self.gid);
        bytes
    }

    /// Returns the publisher, as a hash, and the number of the message; `None` if the number is negative, which no
    /// publisher reaches.
    #[inline]
    pub fn origin(&self) -> Option<Origin> {
        // The id is already a hash: folding it suffices.
        let id = u128::from_le_bytes(self.gid);
        let publisher = (id as u64) ^ ((id >> 64) as u64).rotate_left(32);
        Some(Origin { publisher, number: u64::try_from(self.sequence).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bytes_are_those_of_rmw_zenoh() {
        let mut bytes = vec![7, 0, 0, 0, 0, 0, 0, 0, 0, 0xca, 0x9a, 0x3b, 0, 0, 0, 0, 16];
        bytes.extend(0..16);
        let gid = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        let attachment = Attachment { sequence: 7, source_time: Timestamp::from_nanos(1_000_000_000), gid };
        assert_eq!(Attachment::read(&bytes), Some(attachment));
        assert_eq!(attachment.write(), *bytes);

        let named = [NAMES[0], &bytes[..8], NAMES[1], &bytes[8..16], NAMES[2], &bytes[16..]].concat();
        assert_eq!((named.len(), Attachment::read(&named)), (77, Some(attachment)));
        let other = named.iter().map(|byte| if *byte == b'q' { b'p' } else { *byte });
        assert_eq!(Attachment::read(&other.collect::<Vec<u8>>()), None);

        for length in 0..bytes.len() {
            assert_eq!(Attachment::read(&bytes[..length]), None, "{length}");
        }
        bytes[16] = 15;
        assert_eq!(Attachment::read(&bytes), None);
    }

    proptest! {
        #[test]
        fn a_written_attachment_is_read_back(sequence in any::<i64>(), nanos in any::<i64>(), gid in any::<[u8; 16]>()) {
            let attachment = Attachment { sequence, source_time: Timestamp::from_nanos(nanos), gid };
            prop_assert_eq!(Attachment::read(&attachment.write()), Some(attachment));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Some(attachment) = Attachment::read(&bytes) {
                prop_assert_eq!(&attachment.write()[..], &bytes[..]);
            }
        }
    }
}
