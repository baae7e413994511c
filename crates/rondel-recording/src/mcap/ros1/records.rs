//! Records of bags of ROS 1: a header of named fields, and data.

/// Opcodes of the records.
pub(super) mod op {
    pub(in super::super) const MESSAGE: u8 = 2;
    pub(in super::super) const BAG: u8 = 3;
    pub(in super::super) const INDEX: u8 = 4;
    pub(in super::super) const CHUNK: u8 = 5;
    pub(in super::super) const CHUNK_INFO: u8 = 6;
    pub(in super::super) const CONNECTION: u8 = 7;
}

/// A record: its header, and its data as far as present.
#[derive(Clone, Copy)]
pub(super) struct Record<'r> {
    pub(super) header: &'r [u8],
    pub(super) data: &'r [u8],
    /// Offsets of the data and of the next record.
    pub(super) data_at: usize,
    pub(super) end: usize,
}

/// Records of a chunk or an index, in order; the last may be an error.
pub(super) struct Records<'r> {
    pub(super) bytes: &'r [u8],
    pub(super) at: usize,
}

impl<'r> Iterator for Records<'r> {
    type Item = Result<Record<'r>, String>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let record = record(self.bytes, self.at);
        self.at = record.as_ref().map_or(self.bytes.len(), |record| record.end);
        Some(record)
    }
}

#[inline]
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u64_of(value: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(value.try_into().ok()?))
}

/// Returns a time in nanoseconds; it is stored as seconds and nanoseconds of four bytes each.
#[inline]
pub(super) fn time(value: &[u8]) -> Option<u64> {
    let (seconds, nanos) = (u32_at(value, 0)?, u32_at(value, 4)?);
    Some(u64::from(seconds) * 1_000_000_000 + u64::from(nanos))
}

/// Reads the record at an offset.
#[inline]
pub(super) fn record(bytes: &[u8], at: usize) -> Result<Record<'_>, String> {
    let cut = || "a record is cut off".to_owned();
    let header_length = u32_at(bytes, at).ok_or_else(cut)? as usize;
    let header_end = (at + 4).saturating_add(header_length);
    let header = bytes.get(at + 4..header_end).ok_or_else(cut)?;
    let length = u32_at(bytes, header_end).ok_or_else(cut)? as usize;
    let data_at = header_end + 4;
    let end = data_at.saturating_add(length);
    Ok(Record { header, data: bytes.get(data_at..end).ok_or_else(cut)?, data_at, end })
}

/// Returns the fields of a header with their names, up to the first invalid one.
pub(super) fn fields(header: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = header;
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let field = behind.get(..u32::from_le_bytes(*length) as usize)?;
        rest = &behind[field.len()..];
        let at = memchr::memchr(b'=', field)?;
        Some((&field[..at], &field[at + 1..]))
    })
}

/// Returns a field of a header.
pub(super) fn field<'h>(header: &'h [u8], name: &str) -> Option<&'h [u8]> {
    fields(header).find(|(own, _)| *own == name.as_bytes()).map(|(_, value)| value)
}

/// Returns the opcode of a record.
pub(super) fn kind(header: &[u8]) -> Option<u8> {
    field(header, "op")?.first().copied()
}

pub(super) fn connection_id(header: &[u8]) -> Option<u32> {
    u32_at(field(header, "conn")?, 0)
}

/// Returns a text of a header.
pub(super) fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}
