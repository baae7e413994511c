//! Temporary folders of tests.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A temporary folder, removed on drop.
pub struct Folder(PathBuf);

impl Folder {
    /// Creates an empty folder that no other test has, in Cargo's folder for tests if there is one.
    pub fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent().join(format!("rondel-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// Writes a file, with the folders above it, and returns its path as text.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Returns the path of the folder.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a file in the folder, which need not exist.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Returns the names of the files and folders in it, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Default for Folder {
    fn default() -> Folder {
        Folder::new()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the folder `target/tmp`, which Cargo creates for integration tests, or else that of the system.
fn parent() -> PathBuf {
    // `CARGO_TARGET_TMPDIR` is set only where a test is compiled. The test itself is target/debug/deps/NAME.
    let program = std::env::current_exe().unwrap();
    let tmp = program.ancestors().nth(3).map(|target| target.join("tmp"));
    tmp.filter(|tmp| tmp.is_dir()).unwrap_or_else(std::env::temp_dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_separate_and_removed() {
        let (one, other) = (Folder::new(), Folder::new());
        let file = one.file("a/b", "text");
        assert_eq!((one.names(), other.names()), (vec!["a".to_owned()], Vec::new()));
        assert_eq!(std::fs::read(&file).unwrap(), b"text");
        drop(one);
        assert!(!Path::new(&file).exists());
    }
}
