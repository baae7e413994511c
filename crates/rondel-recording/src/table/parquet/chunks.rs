//! Parts of a Parquet file, with limits for what pages claim.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Take};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// The largest page, decompressed, in bytes. Writers make pages of one MiB.
const PAGE: u64 = 256 << 20;
/// The largest header of a page, in bytes.
const HEADER: u64 = 1 << 20;

/// A file of which parts are read.
pub(super) struct Chunks {
    file: File,
    size: u64,
    consumed: Arc<AtomicU64>,
    /// Whether what is read now are pages; before, it is the list of them.
    has_pages: Arc<AtomicBool>,
}

impl Chunks {
    pub(super) fn new(file: File, consumed: Arc<AtomicU64>, has_pages: Arc<AtomicBool>) -> Chunks {
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        Chunks { file, size, consumed, has_pages }
    }

    fn at(&self, start: u64) -> Result<File> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(start))?;
        Ok(file)
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for Chunks {
    type T = Take<BufReader<File>>;

    /// What begins at a place: a page with its header.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        let mut reader = BufReader::with_capacity(4096, self.at(start)?);
        if !self.has_pages.load(Ordering::Relaxed) {
            return Ok(reader.take(self.size));
        }
        // Behind a header that the library has looked at already comes the page itself.
        let claimed = page_size(reader.fill_buf()?).unwrap_or(0);
        if claimed > PAGE {
            let reason =
                format!("the page at byte {start} claims {claimed} bytes, more than {} MiB", PAGE >> 20);
            return Err(ParquetError::General(reason));
        }
        Ok(reader.take(HEADER))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.size) {
            let reason = format!("{length} bytes at byte {start} are beyond the end of the file");
            return Err(ParquetError::EOF(reason));
        }
        let mut bytes = Vec::with_capacity(length);
        self.at(start)?.take(length as u64).read_to_end(&mut bytes)?;
        if bytes.len() != length {
            return Err(ParquetError::EOF(format!("the file ends within {length} bytes at byte {start}")));
        }
        self.consumed.fetch_add(length as u64, Ordering::Relaxed);
        Ok(bytes.into())
    }
}

/// The larger size that the header of a page claims: its first fields are the type and both sizes, in Thrift's compact
/// form.
fn page_size(header: &[u8]) -> Option<u64> {
    let (mut rest, mut numbers) = (header, [0_u64; 3]);
    for number in &mut numbers {
        // One field further, a number of 32 bits.
        rest = rest.strip_prefix(b"\x15")?;
        let mut shift = 0;
        loop {
            let (byte, after) = rest.split_first()?;
            rest = after;
            *number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
            if shift > 28 {
                return None;
            }
        }
        // Even numbers are twice what is meant, odd ones are negative.
        if *number & 1 == 1 {
            return None;
        }
        *number /= 2;
    }
    Some(numbers[1].max(numbers[2]))
}
