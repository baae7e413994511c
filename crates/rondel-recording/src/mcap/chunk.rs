//! The records of a chunk, decompressed and checked.

use std::io::Read as _;

use zstd::stream::raw::{Decoder as ZstdDecoder, InBuffer, Operation as _, OutBuffer};

use crate::pieces::Pieces;
use crate::recording::RecordingError;

/// The largest chunk that is read, compressed or not: 1 GiB.
pub(super) const LARGEST: u64 = 1 << 30;

/// Limit of the memory reserved for the size that a chunk claims; larger chunks grow it while they are decompressed.
pub(super) const TRUSTED: usize = 16 << 20;

/// The header of a chunk: everything before its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChunkHeader<'r> {
    pub(super) start: u64,
    pub(super) end: u64,
    size: u64,
    crc: u32,
    compression: &'r [u8],
    /// Number of bytes of the records in the file, and their offset in the body of the chunk.
    compressed: u64,
    at: usize,
}

impl<'r> ChunkHeader<'r> {
    /// Reads the header at the beginning of the body of a chunk; `body` may be incomplete.
    pub(super) fn read(body: &'r [u8]) -> Option<ChunkHeader<'r>> {
        let u64_at = |at: usize| Some(u64::from_le_bytes(*body.get(at..)?.first_chunk()?));
        let u32_at = |at: usize| Some(u32::from_le_bytes(*body.get(at..)?.first_chunk()?));
        let name = u32_at(28)? as usize;
        let at = 32_usize.checked_add(name)?;
        Some(ChunkHeader {
            start: u64_at(0)?,
            end: u64_at(8)?,
            size: u64_at(16)?,
            crc: u32_at(24)?,
            compression: body.get(32..at)?,
            compressed: u64_at(at)?,
            at: at + 8,
        })
    }

    /// Whether the records are not compressed.
    fn is_stored(&self) -> bool {
        self.compression.is_empty()
    }

    /// Returns the number of bytes of the records, and of those of them in the file, of which `here` exist.
    fn sizes(&self, here: usize, is_cut: bool) -> Result<(usize, usize), Fault> {
        let ChunkHeader { size, compressed, .. } = *self;
        if compressed > here as u64 && !is_cut {
            return Err(Fault(format!("a chunk claims {compressed} compressed bytes, and has {here}")));
        }
        if size > LARGEST {
            return Err(Fault(format!("a chunk claims {size} bytes, and the limit is 1 GiB")));
        }
        // The header of an unfinished chunk has no sizes yet.
        if is_cut && compressed == 0 {
            return Ok((LARGEST as usize, here));
        }
        Ok((size as usize, here.min(compressed as usize)))
    }

    /// Limits stored records to those of the chunk.
    fn stored(&self, is_cut: bool, out: &mut Vec<u8>) -> Result<(), Fault> {
        let (size, compressed) = self.sizes(out.len(), is_cut).inspect_err(|_| out.clear())?;
        out.truncate(compressed);
        self.verify(size, out)
    }

    /// Compares the size and the checksum of records.
    fn verify(&self, size: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
        // A reused buffer may have capacity for more than the chunk claims.
        out.truncate(size);
        if out.len() < size {
            return Err(Fault(format!("a chunk of {size} bytes ends after {}", out.len())));
        }
        if self.crc != 0 && crc32fast::hash(out) != self.crc {
            out.clear();
            return Err(Fault("the checksum of a chunk is wrong".to_owned()));
        }
        Ok(())
    }
}

/// Bytes of a chunk that hold its header with every known compression; others are read whole.
const HEADER_ROOM: usize = 64;

/// Reads and decompresses chunks.
#[derive(Default)]
pub(super) struct ChunkReader {
    zstd: Option<ZstdDecoder<'static>>,
    /// The last compressed chunk.
    raw: Vec<u8>,
}

/// Reason why the records of a chunk are incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault(pub(super) String);

impl ChunkReader {
    /// Writes the records of the chunk whose body has this offset and length to `out`, which is cleared first.
    ///
    /// With a fault, `out` has the records before it; none if their checksum is wrong.
    ///
    /// # Errors
    /// [`RecordingError`] if the file cannot be read.
    pub(super) fn read(
        &mut self,
        file: &mut Pieces,
        body: u64,
        length: usize,
        is_cut: bool,
        out: &mut Vec<u8>,
    ) -> Result<Result<(), Fault>, RecordingError> {
        file.read(body, length.min(HEADER_ROOM), &mut self.raw)?;
        // Stored records are read to their place at once: copying them would take a tenth of a check.
        if let Some(header) = ChunkHeader::read(&self.raw).filter(ChunkHeader::is_stored) {
            file.read(body + header.at as u64, length.saturating_sub(header.at), out)?;
            return Ok(header.stored(is_cut, out));
        }
        let mut raw = std::mem::take(&mut self.raw);
        let read = file.read(body, length, &mut raw);
        let records = read.map(|()| self.decompress(&raw, is_cut, out));
        self.raw = raw;
        records
    }

    /// Writes the records of a chunk with this body to `out`, which is cleared first. The body may be cut off.
    fn decompress(&mut self, body: &[u8], is_cut: bool, out: &mut Vec<u8>) -> Result<(), Fault> {
        out.clear();
        let Some(header) = ChunkHeader::read(body) else {
            return Err(Fault("the header of a chunk is cut off".to_owned()));
        };
        let here = &body[header.at..];
        let (size, compressed) = header.sizes(here.len(), is_cut)?;
        let input = &here[..compressed];
        let read = match header.compression {
            b"zstd" => self.zstd(input, size, out),
            b"lz4" => lz4(input, size, out),
            other => Err(format!("the compression '{}' is not known", String::from_utf8_lossy(other))),
        };
        if let Err(reason) = read {
            return Err(Fault(format!("a chunk cannot be decompressed: {reason}")));
        }
        header.verify(size, out)
    }

    fn zstd(&mut self, input: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), String> {
        let text = |error: std::io::Error| error.to_string();
        let decoder = match &mut self.zstd {
            Some(decoder) => decoder,
            none => none.insert(ZstdDecoder::new().map_err(text)?),
        };
        decoder.reinit().map_err(text)?;
        let mut source = InBuffer::around(input);
        // Frames that fit are decompressed at once. Above that, the buffer grows only with the decompressed bytes.
        let mut room = size.min(TRUSTED.max(input.len().saturating_mul(8)));
        loop {
            out.reserve_exact(room.saturating_sub(out.len()));
            let start = out.len();
            let mut target = OutBuffer::around_pos(out, start);
            let before = (source.pos, target.pos());
            let hint = decoder.run(&mut source, &mut target).map_err(text)?;
            let after = (source.pos, target.pos());
            if out.len() >= size || hint == 0 && source.pos == input.len() {
                return Ok(());
            }
            if out.len() == out.capacity() {
                room = out.len().saturating_mul(2).min(size);
            } else if after == before || source.pos == input.len() && after.1 == before.1 {
                return Ok(());
            }
        }
    }
}

fn lz4(input: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), String> {
    let decoder = lz4::Decoder::new(input).map_err(|error| error.to_string())?;
    out.reserve(size.min(TRUSTED.max(input.len().saturating_mul(8))));
    decoder.take(size as u64).read_to_end(out).map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_limited_to_its_claimed_size_in_any_buffer() {
        let (whole, claimed) = ([7_u8; 100], 60_u64);
        let mut compressed = Vec::new();
        zstd::stream::copy_encode(&whole[..], &mut compressed, 0).unwrap();
        let mut body = [1_u64, 2, claimed].map(u64::to_le_bytes).concat();
        body.extend(crc32fast::hash(&whole[..claimed as usize]).to_le_bytes());
        body.extend(4_u32.to_le_bytes());
        body.extend(b"zstd");
        body.extend((compressed.len() as u64).to_le_bytes());
        body.extend(&compressed);
        for capacity in [0, 4096] {
            let mut out = Vec::with_capacity(capacity);
            assert_eq!(ChunkReader::default().decompress(&body, false, &mut out), Ok(()));
            assert_eq!(out.len() as u64, claimed, "capacity {capacity}");
        }
    }
}
