//! Records of a spool: payloads with numbers and checksums.
//!
//! A record is a head and a payload. The head has four numbers of 4 bytes, little-endian: the length of the payload, the
//! number of the record, the checksum (CRC-32) of the payload, and the checksum of these three. So a length can be
//! trusted; behind damaged bytes the next record is found by its head, and its number says how many are missing. Damaged
//! bytes become a gap: a record whose last checksum is inverted, and whose number is that of the next one.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Bytes of the head of a record.
pub(super) const HEAD: u64 = 16;
/// Bytes that are read or moved at a time.
pub(super) const PART: usize = 1 << 20;

/// The head of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Bytes of the payload.
    pub(super) length: u32,
    /// Its number, or of a gap that of the next record.
    pub(super) number: u32,
    /// Checksum of the payload.
    pub(super) checksum: u32,
    /// Whether it stands for bytes that were damaged.
    pub(super) is_gap: bool,
}

impl Head {
    /// Returns the head of a payload of this many bytes, which is not 0.
    pub(super) fn of(payload: &[u8], length: u32, number: u32) -> Head {
        Head { length, number, checksum: crc32fast::hash(payload), is_gap: false }
    }

    /// The head of a gap of so many bytes, at least those of a head, before the record with this number. One that is too
    /// long for a head gives `None`.
    pub(super) fn gap(bytes: u64, number: u32) -> Option<Head> {
        let length = u32::try_from(bytes.checked_sub(HEAD)?).ok()?;
        Some(Head { length, number, checksum: 0, is_gap: true })
    }

    /// Bytes of the record.
    pub(super) fn size(&self) -> u64 {
        HEAD + u64::from(self.length)
    }

    pub(super) fn to_bytes(self) -> [u8; HEAD as usize] {
        let mut bytes = [0; HEAD as usize];
        for (place, number) in bytes.chunks_exact_mut(4).zip([self.length, self.number, self.checksum]) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let own = crc32fast::hash(&bytes[..12]);
        bytes[12..].copy_from_slice(&if self.is_gap { !own } else { own }.to_le_bytes());
        bytes
    }

    /// The head with these bytes, unless they are damaged or more than `room` bytes would follow.
    fn parse(bytes: &[u8], room: u64) -> Option<Head> {
        let number = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let (length, own) = (number(0)?, number(12)?);
        if u64::from(length) > room {
            return None;
        }
        let expected = crc32fast::hash(&bytes[..12]);
        let is_gap = own == !expected;
        let is_whole = own == expected && length > 0;
        (is_whole || is_gap).then_some(Head { length, number: number(4)?, checksum: number(8)?, is_gap })
    }

    /// Reads the head at a place, unless it is damaged or its record does not end before `end`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn read(file: &File, place: u64, end: u64) -> io::Result<Option<Head>> {
        let Some(room) = end.checked_sub(place.saturating_add(HEAD)) else { return Ok(None) };
        let mut bytes = [0; HEAD as usize];
        file.read_exact_at(&mut bytes, place)?;
        Ok(Head::parse(&bytes, room))
    }

    /// Whether the payload in a file is the one that was written behind the head at this place.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn has_payload(&self, file: &File, place: u64, part: &mut Vec<u8>) -> io::Result<bool> {
        let mut hasher = crc32fast::Hasher::new();
        let (mut at, end) = (place + HEAD, place + self.size());
        while at < end {
            let length = PART.min(usize::try_from(end - at).unwrap_or(PART));
            part.resize(PART.max(length), 0);
            file.read_exact_at(&mut part[..length], at)?;
            hasher.update(&part[..length]);
            at += length as u64;
        }
        Ok(hasher.finalize() == self.checksum)
    }
}

/// Finds the first head from a place on, and returns its own.
///
/// # Errors
/// The file cannot be read.
pub(super) fn find(file: &File, from: u64, end: u64, part: &mut Vec<u8>) -> io::Result<Option<(u64, Head)>> {
    part.resize(PART, 0);
    let mut at = from;
    while at + HEAD < end {
        let length = PART.min(usize::try_from(end - at).unwrap_or(PART));
        file.read_exact_at(&mut part[..length], at)?;
        for (place, bytes) in (at..).zip(part[..length].windows(HEAD as usize)) {
            if let Some(head) = end.checked_sub(place + HEAD).and_then(|room| Head::parse(bytes, room)) {
                return Ok(Some((place, head)));
            }
        }
        // The last bytes may be the first ones of a head.
        at += length as u64 + 1 - HEAD;
    }
    Ok(None)
}

/// Whether the bytes from a place on are those of a record whose head was not written yet.
///
/// # Errors
/// The file cannot be read.
pub(super) fn is_unwritten(file: &File, place: u64, end: u64) -> io::Result<bool> {
    let mut bytes = [0; HEAD as usize];
    let length = (HEAD).min(end.saturating_sub(place)) as usize;
    file.read_exact_at(&mut bytes[..length], place)?;
    Ok(bytes.iter().all(|byte| *byte == 0))
}
