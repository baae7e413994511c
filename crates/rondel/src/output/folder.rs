//! Folders and files that commands write.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

/// Checks whether files can be made in a folder, or the folder itself where there is none. Makes nothing.
///
/// # Errors
/// The reason why not.
pub fn check_writable(folder: &Path) -> Result<(), String> {
    let mut found: PathBuf = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    while !found.exists() && found.pop() {}
    if !found.is_dir() {
        return Err(format!("{} is not a folder", found.display()));
    }
    access(&found, AccessFlags::W_OK | AccessFlags::X_OK)
        .map_err(|error| format!("{} is not writable: {}", found.display(), error.desc()))
}

/// Writes files that do not exist yet, with these texts. If one cannot be written whole, removes all of them, so that they
/// do not block the next attempt.
///
/// # Errors
/// The file that cannot be written, and the reason.
pub fn write_new<'f>(
    files: impl IntoIterator<Item = (&'f Path, &'f str)>,
) -> Result<(), (&'f Path, io::Error)> {
    let mut made: Vec<&Path> = Vec::new();
    for (path, text) in files {
        let written = OpenOptions::new().write(true).create_new(true).open(path).and_then(|mut file| {
            made.push(path);
            file.write_all(text.as_bytes())
        });
        if let Err(error) = written {
            // The first error is the one to report.
            made.iter().for_each(|path| drop(std::fs::remove_file(path)));
            return Err((path, error));
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_not_written_whole_are_removed() {
        let folder = std::env::temp_dir().join(format!("rondel-new-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (first, second) = (folder.join("a"), folder.join("none/b"));
        let failed = write_new([(&*first, "1"), (&*second, "2")]).unwrap_err();
        assert_eq!(failed.0, second);
        assert!(!first.exists());
        write_new([(&*first, "1")]).unwrap();
        let failed = write_new([(&*first, "2")]).unwrap_err();
        assert_eq!(failed.1.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&first).unwrap(), "1", "a file of others stays");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
