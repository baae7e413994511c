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
        Some("gz") => Box::new(flate2::read::MultiGzDecoder::new(counted)),
        Some("zst") => Box::new(zstd::Decoder::new(counted)?),
        _ => Box::new(counted),
    })
}

/// Whether a reading error means that a file is cut off or damaged.
pub(crate) fn is_cut(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    // zstd reports damage as an error of kind `Other`.
    matches!(error.kind(), UnexpectedEof | InvalidData | InvalidInput | Other)
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
