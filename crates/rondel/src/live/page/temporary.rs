//! The store of a run or a check with a page that keeps no store: a file that is removed at the end.

#![cfg_attr(not(feature = "page"), allow(dead_code))]

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sinks::driven::StoreSettings;

/// Files in this folder are in memory.
const MEMORY: &str = "/dev/shm";
/// Bytes of a store in memory from which old verdicts are removed.
const BYTES: u64 = 32 << 20;

/// A folder with a store, removed when it is dropped.
#[derive(Debug)]
pub struct TemporaryStore {
    folder: PathBuf,
}

impl TemporaryStore {
    /// Creates the folder of a run, in memory where the system has a folder for that.
    ///
    /// # Errors
    /// The folder, and the reason why it cannot be created.
    pub fn of_run() -> Result<TemporaryStore, String> {
        TemporaryStore::create(Path::new(MEMORY)).or_else(|_| TemporaryStore::of_check())
    }

    /// Creates the folder of a check, whose store has no limit.
    ///
    /// # Errors
    /// The folder, and the reason why it cannot be created.
    pub fn of_check() -> Result<TemporaryStore, String> {
        let folder = std::env::temp_dir();
        TemporaryStore::create(&folder).map_err(|error| {
            format!("cannot keep verdicts for the page in {}: {error}; name a store", folder.display())
        })
    }

    fn create(parent: &Path) -> io::Result<TemporaryStore> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let folder = parent.join(format!("rondel-page-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => return Ok(TemporaryStore { folder }),
                // A process that was killed has left it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The file.
    pub fn path(&self) -> PathBuf {
        self.folder.join("verdicts.db")
    }

    /// The settings of the store of a run: nothing waits for it.
    pub fn settings(&self) -> StoreSettings {
        StoreSettings { bytes: Some(BYTES), wait: None, ..StoreSettings::of(self.path()) }
    }
}

impl Drop for TemporaryStore {
    fn drop(&mut self) {
        // The rest is in a folder for temporary files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn folders_are_private_and_removed() {
        let (one, other) = (TemporaryStore::of_run().unwrap(), TemporaryStore::of_check().unwrap());
        assert_ne!(one.path(), other.path());
        let folder = one.path().parent().unwrap().to_owned();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        drop(one);
        assert!(!folder.exists());
        assert_eq!(other.settings().bytes, Some(BYTES));
    }
}
