//! Folders that a run writes to.

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
