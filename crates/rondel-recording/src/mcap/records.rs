//! Records of MCAP files by the specification of the format (mcap.dev/spec).

use std::collections::BTreeMap;

use crate::recording::{RecordedSchema, RecordedTopic};

/// The first and the last bytes of a file.
pub(crate) const MAGIC: &[u8] = b"\x89MCAP0\r\n";

/// Opcodes of the records.
pub(super) mod op {
    pub(in crate::mcap) const HEADER: u8 = 0x01;
    pub(in crate::mcap) const FOOTER: u8 = 0x02;
    pub(in crate::mcap) const SCHEMA: u8 = 0x03;
    pub(in crate::mcap) const CHANNEL: u8 = 0x04;
    pub(in crate::mcap) const MESSAGE: u8 = 0x05;
    pub(in crate::mcap) const CHUNK: u8 = 0x06;
    pub(in crate::mcap) const MESSAGE_INDEX: u8 = 0x07;
    pub(in crate::mcap) const CHUNK_INDEX: u8 = 0x08;
    pub(in crate::mcap) const STATISTICS: u8 = 0x0b;
    pub(in crate::mcap) const METADATA: u8 = 0x0c;
    pub(in crate::mcap) const METADATA_INDEX: u8 = 0x0d;
    pub(in crate::mcap) const SUMMARY_OFFSET: u8 = 0x0e;
    pub(in crate::mcap) const DATA_END: u8 = 0x0f;
}

/// Number of bytes before the body of a record: its opcode and its length.
pub(super) const HEAD: usize = 9;
/// Number of bytes before the payload of a message.
pub(super) const MESSAGE_HEAD: usize = 22;

/// Records in a part of a file: offset, opcode and body of each.
pub(super) struct Records<'r> {
    bytes: &'r [u8],
    at: usize,
}

impl<'r> Records<'r> {
    pub(super) fn new(bytes: &'r [u8]) -> Records<'r> {
        Records { bytes, at: 0 }
    }
}

impl<'r> Iterator for Records<'r> {
    type Item = (usize, u8, Result<&'r [u8], &'static str>);

    /// Returns the next record; the last one may be an error.
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (at, rest) = (self.at, self.bytes.get(self.at..)?);
        let (kind, length) = rest.split_first()?;
        let body = length.split_first_chunk().and_then(|(length, body)| {
            usize::try_from(u64::from_le_bytes(*length)).ok().and_then(|length| body.get(..length))
        });
        match body {
            Some(body) => {
                self.at += HEAD + body.len();
                Some((at, *kind, Ok(body)))
            }
            None => {
                self.at = self.bytes.len();
                Some((at, *kind, Err("a record is longer than the part that it is in")))
            }
        }
    }
}

/// Reader of the members of a record, in order.
#[derive(Clone, Copy)]
struct Members<'r>(&'r [u8]);

impl<'r> Members<'r> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads bytes after their length.
    fn bytes(&mut self) -> Option<&'r [u8]> {
        let length = self.u32()? as usize;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<String> {
        std::str::from_utf8(self.bytes()?).ok().map(str::to_owned)
    }

    /// Reads a map from texts to texts.
    fn pairs(&mut self) -> Option<Vec<(String, String)>> {
        let mut members = Members(self.bytes()?);
        let mut pairs = Vec::new();
        while !members.0.is_empty() {
            pairs.push((members.text()?, members.text()?));
        }
        Some(pairs)
    }

    /// Reads a map from channels to numbers.
    fn numbers(&mut self) -> Option<BTreeMap<u16, u64>> {
        let mut members = Members(self.bytes()?);
        let mut numbers = BTreeMap::new();
        while !members.0.is_empty() {
            numbers.insert(members.u16()?, members.u64()?);
        }
        Some(numbers)
    }
}

/// Reads the definition of a type, with its id.
pub(super) fn schema(body: &[u8]) -> Option<(u16, RecordedSchema)> {
    let mut members = Members(body);
    let id = members.u16()?;
    let (name, encoding) = (members.text()?, members.text()?);
    Some((id, RecordedSchema { name, encoding, data: members.bytes()?.to_owned() }))
}

/// Reads a channel: its id, the id of its type, and the topic.
pub(super) fn channel(body: &[u8]) -> Option<(u16, u16, RecordedTopic)> {
    let mut members = Members(body);
    let (id, schema) = (members.u16()?, members.u16()?);
    let (name, encoding) = (members.text()?, members.text()?);
    let metadata = members.pairs()?;
    Some((
        id,
        schema,
        RecordedTopic {
            name,
            label: format!("channel {id}"),
            encoding,
            metadata,
            ..RecordedTopic::default()
        },
    ))
}

/// Reads the name of the program that wrote a file, in its header.
pub(super) fn library(body: &[u8]) -> Option<String> {
    let mut members = Members(body);
    let _profile = members.bytes()?;
    members.text()
}

/// Reads a named map of texts.
pub(super) fn metadata(body: &[u8]) -> Option<(String, Vec<(String, String)>)> {
    let mut members = Members(body);
    Some((members.text()?, members.pairs()?))
}

/// Entry of a chunk in the index of a file.
pub(super) struct ChunkIndex {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) offset: u64,
    /// Length with its head.
    pub(super) length: u64,
    /// The channels of its messages.
    pub(super) channels: Vec<u16>,
    /// Length of the message indexes that follow it.
    pub(super) index_length: u64,
}

/// Reads an entry of the chunk index.
pub(super) fn chunk_index(body: &[u8]) -> Option<ChunkIndex> {
    let mut members = Members(body);
    Some(ChunkIndex {
        start: members.u64()?,
        end: members.u64()?,
        offset: members.u64()?,
        length: members.u64()?,
        channels: members.numbers()?.into_keys().collect(),
        index_length: members.u64()?,
    })
}

/// Reads the number of messages of each channel.
pub(super) fn statistics(body: &[u8]) -> Option<BTreeMap<u16, u64>> {
    // Skips the numbers of messages, types, channels, attachments, metadata and chunks, and the first and last time.
    let mut members = Members(body.get(8 + 2 + 4 + 4 + 4 + 4 + 8 + 8..)?);
    members.numbers()
}
