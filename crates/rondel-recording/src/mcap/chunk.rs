//! The records of a chunk, decompressed and checked.

use std::io::Read as _;

use zstd::stream::raw::{Decoder as ZstdDecoder, InBuffer, Operation as _, OutBuffer};

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
}

/// Decompresses chunks.
#[derive(Default)]
pub(super) struct Decompressor {
    zstd: Option<ZstdDecoder<'static>>,
}

/// Reason why the records of a chunk are incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault(pub(super) String);

impl Decompressor {
    /// Writes the records of a chunk with this body to `out`, which is cleared first. The body may be cut off.
    ///
    /// With a fault, `out` has the records before it; none if their checksum is wrong.
    pub(super) fn records(&mut self, body: &[u8], is_cut: bool, out: &mut Vec<u8>) -> Result<(), Fault> {
        out.clear();
        let fault = |reason: &str| Err(Fault(reason.to_owned()));
        let Some(header) = ChunkHeader::read(body) else { return fault("the header of a chunk is cut off") };
        let ChunkHeader { size, crc, compression, compressed, at, .. } = header;
        let here = &body[at..];
        if compressed > here.len() as u64 && !is_cut {
            return Err(Fault(format!(
                "a chunk claims {compressed} compressed bytes, and has {}",
                here.len()
            )));
        }
        if size > LARGEST {
            return Err(Fault(format!("a chunk claims {size} bytes, and the limit is 1 GiB")));
        }
        // The header of an unfinished chunk has no sizes yet.
        let is_open = is_cut && compressed == 0;
        let (size, compressed) =
            if is_open { (LARGEST as usize, here.len() as u64) } else { (size as usize, compressed) };
        let input = &here[..here.len().min(compressed as usize)];
        let read = match compression {
            b"" => {
                out.extend_from_slice(&input[..input.len().min(size)]);
                Ok(())
            }
            b"zstd" => self.zstd(input, size, out),
            b"lz4" => lz4(input, size, out),
            other => Err(format!("the compression '{}' is not known", String::from_utf8_lossy(other))),
        };
        if let Err(reason) = read {
            return Err(Fault(format!("a chunk cannot be decompressed: {reason}")));
        }
        // A reused buffer may have capacity for more than the chunk claims.
        out.truncate(size);
        if out.len() < size {
            return Err(Fault(format!("a chunk of {size} bytes ends after {}", out.len())));
        }
        if crc != 0 && crc32fast::hash(out) != crc {
            out.clear();
            return fault("the checksum of a chunk is wrong");
        }
        Ok(())
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
            assert_eq!(Decompressor::default().records(&body, false, &mut out), Ok(()));
            assert_eq!(out.len() as u64, claimed, "capacity {capacity}");
        }
    }
}
