//! Folders with many recordings.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::packed;
use crate::recording::RecordingError;
use crate::rosbag2;
use crate::table::{self, TableOptions};

/// The recordings in a folder and the folders below it.
#[derive(Debug, Default)]
pub struct Library {
    /// The files, and the folders of rosbag2, in the order of their names.
    pub recordings: Vec<PathBuf>,
    /// The other files, which are no recordings by their names, and everything that is no file: pipes, sockets,
    /// devices.
    pub others: Vec<PathBuf>,
    /// Hidden files with names of recordings, which are not in `recordings`. Hidden folders are not searched.
    pub hidden: Vec<PathBuf>,
    /// Folders with numbered parts of what may be one recording, each with its first missing part.
    pub incomplete: Vec<(PathBuf, String)>,
    /// Subfolders that cannot be read.
    pub unreadable: Vec<RecordingError>,
}

/// Maximum depth of the search.
const DEPTH: usize = 32;
/// Extensions of files with lines of JSON.
const LINES: [&str; 2] = ["jsonl", "ndjson"];

impl Library {
    /// Returns the recordings in a folder; `None` if it is no folder, or is itself a recording of rosbag2. `tables`
    /// states which columns have times.
    ///
    /// # Errors
    /// [`RecordingError`] if the folder cannot be read, or contains no recording.
    pub fn find(folder: &Path, tables: &TableOptions<'_>) -> Result<Option<Library>, RecordingError> {
        if !folder.is_dir() || rosbag2::is_bag(folder) {
            return Ok(None);
        }
        let mut library = Library::default();
        library.search(folder, tables, DEPTH, &mut BTreeSet::new())?;
        if library.recordings.is_empty() {
            if !library.unreadable.is_empty() {
                return Err(library.unreadable.remove(0));
            }
            let reason = "this folder has no recording: neither a folder of rosbag2 nor *.mcap, *.db3, *.bag, *.ulg, *.jsonl, *.ndjson, \
                          *.gz, *.zst or a table (*.csv, *.tsv) with a column `time`"
                .to_owned();
            return Err(RecordingError::Form { path: folder.to_owned(), reason });
        }
        Ok(Some(library))
    }

    fn search(
        &mut self,
        folder: &Path,
        tables: &TableOptions<'_>,
        depth: usize,
        seen: &mut BTreeSet<PathBuf>,
    ) -> Result<(), RecordingError> {
        // A link may lead back.
        let is_new = seen.insert(fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned()));
        if !is_new || depth == 0 {
            return Ok(());
        }
        let missing = rosbag2::missing_part(folder);
        self.incomplete.extend(missing.map(|name| (folder.to_owned(), name)));
        let open = |source| RecordingError::Open { path: folder.to_owned(), source };
        let entries = fs::read_dir(folder).map_err(open)?;
        let mut paths = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(open)?;
        paths.sort();
        for path in paths {
            let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
            // A dangling link, for example: opening it reports the reason.
            let is_file = fs::metadata(&path).map_or(true, |metadata| metadata.is_file());
            match path.is_dir() {
                true if is_hidden => {}
                true if rosbag2::is_bag(&path) => self.recordings.push(path),
                true => {
                    let searched = self.search(&path, tables, depth - 1, seen);
                    self.unreadable.extend(searched.err());
                }
                // Opening a pipe would wait for a writer.
                false if !is_file || !is_recording(&path) && !table::is_recording(&path, tables) => {
                    self.others.extend((!is_hidden).then_some(path))
                }
                false if is_hidden => self.hidden.push(path),
                false => self.recordings.push(path),
            }
        }
        Ok(())
    }
}

/// Whether a file is a recording by its name; a table need not be one.
pub(crate) fn is_recording(path: &Path) -> bool {
    if packed::form(path).is_some() {
        return true;
    }
    let ending = |path: &Path| path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    let own = match ending(path).as_deref() {
        Some("gz" | "zst") => ending(&path.with_extension("")),
        other => other.map(str::to_owned),
    };
    own.is_some_and(|own| LINES.contains(&own.as_str()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_found_in_order() {
        let root = std::env::temp_dir().join(format!("rondel-library-{}", std::process::id()));
        let files = [
            "b.jsonl",
            "a/2.mcap",
            "a/1.jsonl.zst",
            "a/notes.txt",
            "bag/metadata.yaml",
            "bag/x_0.mcap",
            "crashed/c_0.mcap",
            "crashed/c_1.mcap",
            "drives/one.mcap",
            "drives/two.MCAP",
            ".hidden/z.mcap",
            ".hidden.jsonl",
            ".notes",
            "mixed/m.jsonl",
            "mixed/m_0.mcap",
            "mixed/m_1.mcap",
            "runs/run_1.mcap",
            "runs/run_2.mcap",
        ];
        for file in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let library = Library::find(&root, &TableOptions::default()).unwrap().unwrap();
        let names = |paths: &[PathBuf]| -> Vec<String> {
            paths.iter().map(|path| path.strip_prefix(&root).unwrap().display().to_string()).collect()
        };
        let expected = [
            "a/1.jsonl.zst",
            "a/2.mcap",
            "b.jsonl",
            "bag",
            "crashed",
            "drives/one.mcap",
            "drives/two.MCAP",
            "mixed/m.jsonl",
            "mixed/m_0.mcap",
            "mixed/m_1.mcap",
            "runs/run_1.mcap",
            "runs/run_2.mcap",
        ];
        assert_eq!(names(&library.recordings), expected);
        assert_eq!(names(&library.others), ["a/notes.txt"]);
        assert_eq!(names(&library.hidden), [".hidden.jsonl"]);
        assert!(library.unreadable.is_empty());
        assert!(Library::find(&root.join("bag"), &TableOptions::default()).unwrap().is_none());
        assert!(Library::find(&root.join("b.jsonl"), &TableOptions::default()).unwrap().is_none());
        fs::create_dir_all(root.join("empty")).unwrap();
        assert!(Library::find(&root.join("empty"), &TableOptions::default()).is_err());
        fs::remove_dir_all(root).unwrap();
    }
}
