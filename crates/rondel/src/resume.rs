//! Snapshots in files.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rondel_runtime::{Session, SessionPlan};

/// Replaces a file atomically: writes a new file beside it and renames that.
///
/// # Errors
/// The reason why it could not be written; the file is then as it was.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link keeps being one, and a device is not replaced by a file.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside: PathBuf = path.with_file_name(name);
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let moved = written.and_then(|()| fs::rename(&beside, path));
    if moved.is_err() {
        let _ = fs::remove_file(&beside);
    }
    moved
}

/// A session that continues from the snapshot in a file. `note` must be that of the snapshot.
///
/// # Errors
/// The reason in a sentence.
pub fn restore(path: &Path, plan: &SessionPlan, note: &str) -> Result<Session, String> {
    let name = path.display();
    let bytes = fs::read(path).map_err(|error| format!("cannot read the snapshot {name}: {error}"))?;
    plan.restore(&bytes, note).map_err(|error| format!("cannot resume from {name}: {error}"))
}
