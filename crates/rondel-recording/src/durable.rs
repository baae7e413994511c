//! Atomic and durable replacement of files.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

/// Replaces a file atomically: writes a new file beside it and renames that. Afterwards the new content survives a loss
/// of power.
///
/// # Errors
/// The reason for the failure. The file is then unchanged, or has the new content, which a loss of power may undo.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link stays a link, and a device is not replaced by a file.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(name);
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let moved = written.and_then(|()| fs::rename(&beside, path));
    if moved.is_err() {
        // The caller gets the reason of the failed write.
        let _ = fs::remove_file(&beside);
    }
    moved?;
    // The new name is durable once the folder is synchronised.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_or_left_as_it_was() {
        let folder = std::env::temp_dir().join(format!("rondel-durable-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("state");
        replace(&path, b"one").unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        std::os::unix::fs::symlink(&path, folder.join("link")).unwrap();
        replace(&folder.join("link"), b"three").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"three");
        assert!(replace(&folder, b"four").is_err());
        assert!(replace(&folder.join("nowhere/state"), b"four").is_err());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "nothing is left behind");
        fs::remove_dir_all(&folder).unwrap();
    }
}
