//! Definitions in `.proto` files: which files there are, and from where they import others.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use rondel_decode::protobuf::Descriptors;

use crate::schemas::text_files::read_text;

/// The `.proto` files that were found, by the folder that their names begin in.
#[derive(Debug, Default)]
pub(super) struct ProtoFiles {
    /// The folders that were named.
    roots: Vec<PathBuf>,
    files: BTreeMap<PathBuf, Vec<String>>,
}

/// Types of `.proto` files, and the file of each.
pub(super) type Compiled = (Descriptors, Vec<(String, PathBuf)>);

impl ProtoFiles {
    /// The folders and files that the user names: imports begin in folders, or next to a file.
    pub(super) fn of(paths: &[PathBuf]) -> ProtoFiles {
        ProtoFiles {
            roots: paths.iter().filter(|path| path.is_dir()).cloned().collect(),
            files: BTreeMap::new(),
        }
    }

    /// Adds a file; returns whether it is a new one. Its name begins in the innermost folder that was named.
    pub(super) fn add(&mut self, path: &Path) -> bool {
        let innermost = self.roots.iter().filter_map(|root| Some((root, path.strip_prefix(root).ok()?)));
        let innermost = innermost.min_by_key(|(_, rest)| rest.components().count());
        let (root, name) = match innermost {
            Some((root, rest)) => (root.clone(), name(rest)),
            None => (folder(path), path.file_name().map(|name| name.to_string_lossy().into_owned())),
        };
        let Some(name) = name else { return false };
        let names = self.files.entry(root).or_default();
        let is_new = !names.contains(&name);
        if is_new {
            names.push(name);
        }
        is_new
    }

    /// Compiles all files.
    ///
    /// # Errors
    /// The first error, with file and line.
    pub(super) fn compile(self) -> Result<Vec<Compiled>, String> {
        let ProtoFiles { roots, files } = self;
        let compile = |(root, names): (PathBuf, Vec<String>)| {
            let others: Vec<PathBuf> = roots.iter().filter(|other| **other != root).cloned().collect();
            let folders = [vec![root.clone()], others].concat();
            let place = move |name: &str| {
                let mut all = folders.iter().map(|folder| folder.join(name));
                all.find(|path| is_inside(name) && path.is_file())
            };
            let text = {
                let place = place.clone();
                move |name: &str| place(name).and_then(|path| read_text(&path).ok())
            };
            let set = Descriptors::from_proto(&names, text);
            let set = set.map_err(|error| {
                let hint = match error.to_string().contains("import '") {
                    true => {
                        "; imports are looked for in the folders of `schemas:`: name the one where they begin"
                    }
                    false => "",
                };
                format!("in {}: {error}{hint}", shown(&root))
            })?;
            let file = |name: &str| Some((name.to_owned(), place(set.file(name)?)?));
            let places = set.message_names().filter_map(file).collect();
            Ok((set, places))
        };
        files.into_iter().map(compile).collect()
    }
}

/// Whether an imported name stays in the folders: `../x` and `/x` do not.
fn is_inside(name: &str) -> bool {
    Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}

/// The folder of a file.
fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn shown(root: &Path) -> String {
    if root == Path::new(".") { "this folder".to_owned() } else { root.display().to_string() }
}

/// The name of a file as others import it.
fn name(rest: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = rest.components().map(|part| part.as_os_str().to_str()).collect();
    parts.filter(|parts| !parts.is_empty()).map(|parts| parts.join("/"))
}
