//! The files that a specification imports.

use std::cell::RefCell;
use std::collections::HashMap;
#[cfg(feature = "page")]
use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use rondel_spec::{ImportedFile, Imports, Sources};

use crate::schemas::text_files::read_text;

/// Loads the imports of the specification in a file. `text` is the text of the file.
pub fn load(path: &Path, name: &str, text: String) -> Sources {
    // A pipe has no other path.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let main = ImportedFile { path: real.clone(), name: name.to_owned() };
    Sources::load(main, text, &Files { opened: RefCell::new(HashMap::from([(real, path.to_owned())])) })
}

/// The real paths of the files that a specification imports, and its own; none if it cannot be read.
#[cfg(feature = "page")]
pub fn imported(path: &Path) -> Vec<PathBuf> {
    let Ok(text) = read_text(path) else { return Vec::new() };
    let sources = load(path, &path.display().to_string(), text);
    sources.files().map(|(path, _)| path.to_owned()).collect()
}

/// Loads the imports of a text in the place of a file, among the files with these real paths: a viewer who edits the text
/// reads no other files, and does not see which there are. The file on disk does not count, as viewers may write it.
#[cfg(feature = "page")]
pub fn load_edited(path: &Path, name: &str, text: String, known: HashSet<PathBuf>) -> Sources {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let main = ImportedFile { path: real.clone(), name: name.to_owned() };
    let files = Files { opened: RefCell::new(HashMap::from([(real, path.to_owned())])) };
    Sources::load(main, text, &Known { files, known })
}

/// Files that a specification imports already.
#[cfg(feature = "page")]
struct Known {
    files: Files,
    known: HashSet<PathBuf>,
}

#[cfg(feature = "page")]
impl Imports for Known {
    fn find(&self, from: &ImportedFile, written: &str) -> Result<ImportedFile, String> {
        let found = self.files.find(from, written).ok().filter(|file| self.known.contains(&file.path));
        found.ok_or_else(|| {
            "only files that the specification imports already can be imported here".to_owned()
        })
    }

    fn read(&self, file: &ImportedFile) -> Result<String, String> {
        self.files.read(file)
    }
}

/// Files of the file system.
struct Files {
    /// For the real path of a file, the path by which it was found first: imports are sought beside it, so that a
    /// link to a file imports what is beside the link.
    opened: RefCell<HashMap<PathBuf, PathBuf>>,
}

impl Imports for Files {
    fn find(&self, from: &ImportedFile, written: &str) -> Result<ImportedFile, String> {
        let mut opened = self.opened.borrow_mut();
        let importing = opened.get(&from.path).unwrap_or(&from.path);
        let beside = importing.with_file_name("");
        let sought = beside.join(written);
        let real = sought.canonicalize().map_err(|error| format!("{}: {error}", sought.display()))?;
        let short = shortened(&sought);
        // `a/..` is another folder, where `a` is a link.
        let path = if short.canonicalize().is_ok_and(|other| other == real) { short } else { sought };
        let name = path.display().to_string();
        opened.entry(real.clone()).or_insert(path);
        Ok(ImportedFile { path: real, name })
    }

    fn read(&self, file: &ImportedFile) -> Result<String, String> {
        let metadata = std::fs::metadata(&file.path).map_err(|error| error.to_string())?;
        // Opening a pipe would wait for its writer.
        match (metadata.is_file(), metadata.is_dir()) {
            (true, _) => read_text(&file.path),
            (_, true) => Err("it is a folder".to_owned()),
            _ => Err("it is a pipe or a device, and imports are read from files".to_owned()),
        }
    }
}

/// A path without `.`, and without folders that are left at once by `..`.
fn shortened(path: &Path) -> PathBuf {
    let mut short = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(short.components().next_back(), Some(Component::Normal(_))) => {
                short.pop();
            }
            other => short.push(other),
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shortened() {
        let cases = [("a/./b/../c", "a/c"), ("../../a", "../../a"), ("./a", "a"), ("/../a", "/../a")];
        for (path, expected) in cases {
            assert_eq!(shortened(Path::new(path)), Path::new(expected), "{path}");
        }
    }
}
