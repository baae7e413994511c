//! Text files of users: specifications, deployments and definitions, up to a size.

use std::cell::Cell;
use std::io::Read;
use std::path::Path;

/// The limit of such a file, in bytes.
pub const LARGEST: u64 = 16 << 20;

thread_local! {
    /// Whether this thread reads regular files only.
    static ONLY_REGULAR: Cell<bool> = const { Cell::new(false) };
}

/// Calls a function that reads only regular files: another thread may wait for its result, and a FIFO has no end.
pub fn of_regular_files<T>(read: impl FnOnce() -> T) -> T {
    ONLY_REGULAR.set(true);
    let result = read();
    ONLY_REGULAR.set(false);
    result
}

/// Refuses a file that would block the thread, within [`of_regular_files`].
///
/// # Errors
/// The reason, without the name of the file.
pub fn check_regular(path: &Path) -> Result<(), String> {
    // Before it is opened: that of a FIFO waits for a writer.
    if ONLY_REGULAR.get() && std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err("it is not a regular file, and reading it could block the run".to_owned());
    }
    Ok(())
}

/// Reads a file of at most 16 MiB. A longer one, or a device without an end, is not read to its end.
///
/// # Errors
/// The reason, without the name of the file.
pub fn read_text(path: &Path) -> Result<String, String> {
    check_regular(path)?;
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if metadata.is_file() && metadata.len() > LARGEST {
        let size = rondel_runtime::text::grouped(metadata.len());
        return Err(format!("it has {size} bytes, and the limit is 16 MiB"));
    }
    text_of(file)
}

/// Reads at most 16 MiB of text.
///
/// # Errors
/// The reason.
pub fn text_of(source: impl Read) -> Result<String, String> {
    let mut bytes = Vec::new();
    source.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST {
        return Err("it has more than 16 MiB, which is the limit".to_owned());
    }
    String::from_utf8(bytes).map_err(|error| {
        let line =
            error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count();
        format!("it is not UTF-8 text: line {} contains other bytes", line + 1)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn other_files_are_refused_where_they_would_block() {
        let folder = rondel_testkit::Folder::new();
        let (fifo, file) = (folder.as_path().join("fifo"), folder.as_path().join("file"));
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::write(&file, "text").unwrap();
        let read = |path: &Path| of_regular_files(|| read_text(path));
        assert!(read(&fifo).unwrap_err().contains("not a regular file"));
        assert_eq!(read(&file).unwrap(), "text");
        assert!(check_regular(&fifo).is_ok(), "only there");
    }
}
