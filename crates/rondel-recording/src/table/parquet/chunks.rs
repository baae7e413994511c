//! Parts of a Parquet file, with limits on the sizes that pages claim.

use std::fs::File;
use std::io::{Cursor, Read as _, Seek as _, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

use super::thrift;

/// Maximum size of a decompressed page, in bytes. Writers make pages of one MiB.
const PAGE: i64 = 256 << 20;
/// Maximum size of the header of a page, in bytes.
const HEADER: u64 = 1 << 20;
/// Number of header bytes read at first: nearly all headers are shorter.
const FIRST: u64 = 512;
/// Number of bytes at the end of a file: the size of the metadata and the magic.
const END: u64 = 8;

/// A file read in parts.
pub(super) struct Chunks {
    file: File,
    size: u64,
    consumed: Arc<AtomicU64>,
    /// Whether pages are read; before, the metadata are read.
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
    type T = Cursor<Vec<u8>>;

    /// Returns the bytes at an offset: the header of a page, or the last bytes of the file.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        let mut file = self.at(start)?;
        if !self.has_pages.load(Ordering::Relaxed) {
            return Ok(Cursor::new(read(&mut file, END)?));
        }
        let mut claimed = 0;
        let mut size = |header: &[u8]| {
            thrift::length(header, |number, value| {
                // The uncompressed and the compressed size of the page.
                if number == 2 || number == 3 {
                    claimed = claimed.max(value);
                }
            })
        };
        let mut header = read(&mut file, FIRST)?;
        let mut end = size(&header);
        if end.is_none() && header.len() as u64 == FIRST {
            header.extend(read(&mut file, HEADER - FIRST)?);
            end = size(&header);
        }
        // If the library has already read the header, it only requests the page, and nothing is read here.
        header.truncate(end.unwrap_or(0));
        if end.is_some() && claimed > PAGE {
            let reason =
                format!("the page at byte {start} claims {claimed} bytes, more than {} MiB", PAGE >> 20);
            return Err(ParquetError::General(reason));
        }
        Ok(Cursor::new(header))
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
        let is_list = !self.has_pages.load(Ordering::Relaxed) && length as u64 != END;
        if is_list && thrift::length(&bytes, |_, _| {}).is_none() {
            return Err(ParquetError::General(format!("what begins at byte {start} is no list of columns")));
        }
        self.consumed.fetch_add(length as u64, Ordering::Relaxed);
        Ok(bytes.into())
    }
}

/// Reads up to `most` bytes, or to the end of the file.
fn read(file: &mut File, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(FIRST as usize);
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
