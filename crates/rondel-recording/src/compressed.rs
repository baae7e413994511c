//! Files that are decompressed while they are read, by their names: `.gz` and `.zst`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns the extension of a file in small letters.
fn extension(path: &Path) -> Option<String> {
    path.extension().map(|extension| extension.to_string_lossy().to_lowercase())
}

/// Whether a file is compressed.
pub(crate) fn is_packed(path: &Path) -> bool {
    matches!(extension(path).as_deref(), Some("gz" | "zst"))
}

/// Returns the extension of the content of a file in small letters.
pub(crate) fn content(path: &Path) -> Option<String> {
    if is_packed(path) { extension(&path.with_extension("")) } else { extension(path) }
}

/// Returns the name of a file without its extensions.
pub(crate) fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.find('.').map_or(&*name, |at| &name[..at]).to_owned()
}

/// Returns the content of a file at this path. `consumed` counts the bytes that are read of the file.
///
/// # Errors
/// There is no memory for the decompressor.
pub(crate) fn read(path: &Path, file: File, consumed: &Arc<AtomicU64>) -> io::Result<Box<dyn Read + Send>> {
    let counted = Counted(file, Arc::clone(consumed));
    Ok(match extension(path).as_deref() {
        Some("gz") => Box::new(Decompressing(flate2::read::MultiGzDecoder::new(counted))),
        Some("zst") => Box::new(Decompressing(zstd::Decoder::new(counted)?)),
        _ => Box::new(counted),
    })
}

/// Reads a compressed file to its end. Returns the error if its data ends too early or is damaged: the content before may
/// differ from what was written, which only a checksum behind it shows.
pub fn damage(path: &Path) -> Option<io::Error> {
    if !is_packed(path) || !path.is_file() {
        return None;
    }
    let mut content = File::open(path).and_then(|file| read(path, file, &Arc::default())).ok()?;
    io::copy(&mut content, &mut io::sink()).err().filter(ends)
}

/// A decompressor whose errors say whether the input ends too early or is damaged.
pub(crate) struct Decompressing<R>(pub(crate) R);

impl<R: Read> Read for Decompressing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            // The system's errors of reading the file.
            _ if error.raw_os_error().is_some() => error,
            io::ErrorKind::UnexpectedEof => {
                io::Error::new(io::ErrorKind::UnexpectedEof, "the compressed data ends too early")
            }
            // zstd reports damage as an error of kind `Other`.
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other => {
                let reason = format!("the compressed data is damaged ({error})");
                io::Error::new(io::ErrorKind::InvalidData, reason)
            }
            _ => error,
        })
    }
}

/// Whether a reading error means that a compressed file is cut off or damaged.
pub(crate) fn ends(error: &io::Error) -> bool {
    is_cut(error) || error.kind() == io::ErrorKind::InvalidData
}

/// Whether a reading error means that a compressed file is cut off.
pub(crate) fn is_cut(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof
}

/// A file that counts the bytes read.
struct Counted(File, Arc<AtomicU64>);

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(buffer)?;
        self.1.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}
