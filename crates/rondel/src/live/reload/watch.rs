//! Changes of the files of a run. A file counts as changed once its new content has stayed for one interval, so that
//! nothing half-written is read; each content counts once.

use std::path::PathBuf;
use std::time::SystemTime;
use std::{fs, io};

use crate::sinks::origin::sha256_text;

/// Maximum size of a watched file in bytes, as of a deployment; a larger one is known by its size and time alone.
const LARGEST: u64 = 16 << 20;

/// The time of modification, the size and the hash of the content of a file; `None` if it cannot be read.
type Content = Option<(SystemTime, u64, String)>;

/// Watches the files of a run.
#[derive(Debug, Default)]
pub struct Watch {
    files: Vec<PathBuf>,
    /// The contents that were read last.
    known: Vec<Content>,
    /// Contents that have not stayed for an interval yet.
    fresh: Option<Vec<Content>>,
}

/// A file that is watched, as a run has read it.
#[derive(Debug)]
pub struct WatchedFile {
    path: PathBuf,
    hash: String,
}

impl WatchedFile {
    /// A file with this text.
    pub fn new(path: PathBuf, text: &str) -> WatchedFile {
        WatchedFile { path, hash: sha256_text(text.as_bytes()) }
    }
}

impl Watch {
    /// Starts to watch files. A change since they were read counts, too.
    pub fn new(files: Vec<WatchedFile>) -> Watch {
        // A time and a size that no file has, so that its content is looked at.
        let content = |hash| Some((SystemTime::UNIX_EPOCH, u64::MAX, hash));
        let (files, known) = files.into_iter().map(|file| (file.path, content(file.hash))).unzip();
        Watch { files, known, fresh: None }
    }

    /// Watches these files from now on. The contents of those that were watched before stay known.
    pub fn set_files(&mut self, files: Vec<WatchedFile>) {
        if !self.files.iter().eq(files.iter().map(|file| &file.path)) {
            *self = Watch::new(files);
        }
    }

    /// Looks at the files, once each interval. Returns whether new contents have stayed since the last look.
    pub fn has_changed(&mut self) -> bool {
        let before = self.fresh.as_deref().unwrap_or(&self.known);
        let now = contents(&self.files, before);
        if hashes(&now) == hashes(&self.known) {
            (self.known, self.fresh) = (now, None);
            return false;
        }
        match self.fresh.take() {
            // A file that is missing, while an editor replaces it, is no change.
            Some(fresh) if fresh == now && now.iter().all(Option::is_some) => {
                self.known = now;
                true
            }
            _ => {
                self.fresh = Some(now);
                false
            }
        }
    }
}

/// The present contents; those of files with the same time and size as `before` are not read.
fn contents(files: &[PathBuf], before: &[Content]) -> Vec<Content> {
    let content = |(at, file): (usize, &PathBuf)| -> io::Result<(SystemTime, u64, String)> {
        let found = fs::metadata(file)?;
        if !found.is_file() {
            // Reading a FIFO would wait for a writer.
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (modified, size) = (found.modified()?, found.len());
        if let Some(Some(known)) = before.get(at)
            && (known.0, known.1) == (modified, size)
        {
            return Ok(known.clone());
        }
        let hash =
            if size <= LARGEST { sha256_text(&fs::read(file)?) } else { format!("{modified:?} {size}") };
        Ok((modified, size, hash))
    };
    files.iter().enumerate().map(|file| content(file).ok()).collect()
}

fn hashes(contents: &[Content]) -> Vec<Option<&str>> {
    contents.iter().map(|content| content.as_ref().map(|(.., hash)| hash.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A file whose time of modification a test sets.
    struct Edited {
        file: PathBuf,
        second: u64,
    }

    impl Edited {
        fn write(&mut self, text: &str) {
            fs::write(&self.file, text).unwrap();
            self.second += 1;
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(self.second);
            fs::File::options().write(true).open(&self.file).unwrap().set_modified(time).unwrap();
        }
    }

    #[test]
    fn content_counts_once_it_has_stayed_for_an_interval() {
        let folder = rondel_testkit::Folder::new();
        let mut edited = Edited { file: folder.as_path().join("p.rondel"), second: 1 };
        edited.write("one");
        let mut watch = Watch::new(vec![WatchedFile::new(edited.file.clone(), "one")]);
        assert!(!watch.has_changed());
        edited.write("two, half");
        assert!(!watch.has_changed());
        edited.write("two, whole");
        assert!(!watch.has_changed());
        assert!(watch.has_changed());
        assert!(!watch.has_changed(), "each content counts once");
        // Touched, or written again with the same content.
        edited.write("two, whole");
        assert!(!watch.has_changed() && !watch.has_changed());
        // An editor removes the file before it writes the next.
        fs::remove_file(&edited.file).unwrap();
        assert!(!watch.has_changed() && !watch.has_changed());
        edited.write("three");
        assert!(!watch.has_changed());
        assert!(watch.has_changed());
        // Back to a known content before it was taken.
        edited.write("four");
        assert!(!watch.has_changed());
        edited.write("three");
        assert!(!watch.has_changed() && !watch.has_changed());
    }
}
