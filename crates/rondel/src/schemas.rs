//! Definitions of message types: from files and folders that the user names, from an installation of ROS 2, and those
//! that are known without.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rondel_decode::schema::{Schema, SchemaError};
use rondel_decode::{Encoding, MessageType};
use rondel_runtime::Types;
use rondel_spec::{Definition, Definitions, NoDefinition};

use crate::specification::read_text;
use crate::warn;

/// Folders may be nested this deep below one that is named.
const DEPTH: usize = 8;
/// Files of definitions that are read at most.
const FILES: usize = 20_000;

/// The message types of a specification. Nothing is read before a type is needed, except for what the user names.
#[derive(Debug, Default)]
pub struct Schemas {
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    types: Types,
    /// Whether the interfaces of ROS 2 were added.
    has_ros: bool,
    /// The installations of ROS 2.
    prefixes: Vec<PathBuf>,
    /// The packages that were looked for there.
    packages: BTreeSet<String>,
    /// The file of each type that is not known without.
    files: BTreeMap<String, PathBuf>,
    count: usize,
}

impl Schemas {
    /// Reads these files and folders.
    ///
    /// # Errors
    /// The first mistake, in words.
    pub fn read(paths: &[PathBuf]) -> Result<Schemas, String> {
        let prefixes = std::env::var_os("AMENT_PREFIX_PATH").map_or_else(installations, |paths| {
            std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty()).collect()
        });
        let mut state = State { prefixes, ..State::default() };
        if !paths.is_empty() {
            state.add_ros();
        }
        for path in paths {
            let count = state.count;
            state.add(path, DEPTH)?;
            if state.count == count {
                return Err(format!("{} contains no definitions (*.msg, *.idl)", path.display()));
            }
        }
        Ok(Schemas { state: RefCell::new(state) })
    }

    /// Returns the schema of a type.
    ///
    /// # Errors
    /// [`SchemaError`] if it is not defined or cannot be used.
    pub fn schema(&self, name: &str) -> Result<Schema, SchemaError> {
        let mut state = self.state.borrow_mut();
        state.find(name);
        state.types.schema(name)
    }

    /// Returns the type of messages in an encoding that needs one.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub fn message_type(&self, name: &str, encoding: Encoding) -> Result<MessageType, String> {
        match encoding {
            Encoding::Cdr => self.schema(name).map(MessageType::Cdr).map_err(|error| error.to_string()),
            _ => Err(format!("types of {encoding} cannot be read yet")),
        }
    }

    /// Returns where the definition of a type comes from, in words.
    pub fn origin(&self, name: &str) -> String {
        let mut state = self.state.borrow_mut();
        state.find(name);
        let Ok(schema) = state.types.schema(name) else { return "no definition is known".to_owned() };
        let name = schema.name().replace("::", "/");
        state.files.get(&name).map_or("known to Rondel".to_owned(), |path| path.display().to_string())
    }
}

impl Definitions for Schemas {
    fn definition(&self, name: &str) -> Result<Definition, NoDefinition> {
        let mut state = self.state.borrow_mut();
        state.find(name);
        state.types.definition(name)
    }
}

/// The installations of ROS 2 in their usual place.
fn installations() -> Vec<PathBuf> {
    let folders = std::fs::read_dir("/opt/ros").into_iter().flatten().flatten();
    folders.map(|folder| folder.path()).collect()
}

impl State {
    fn add_ros(&mut self) {
        if !std::mem::replace(&mut self.has_ros, true) {
            self.types = Types::ros();
        }
    }

    /// Reads what a type needs from an installation of ROS 2, unless the user named its file.
    fn find(&mut self, name: &str) {
        self.add_ros();
        if let Ok(schema) = self.types.schema(name)
            && self.files.contains_key(&schema.name().replace("::", "/"))
        {
            return;
        }
        if let Some(package) = name.split(['/', '.', ':']).next() {
            self.add_package(package.to_owned());
        }
    }

    /// Reads a package of an installation, and those that it refers to.
    fn add_package(&mut self, package: String) {
        let mut waiting = vec![package];
        while let Some(package) = waiting.pop() {
            let is_name = package.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if self.prefixes.is_empty() || !is_name || !self.packages.insert(package.clone()) {
                continue;
            }
            let folders = self.prefixes.iter().map(|prefix| prefix.join("share").join(&package).join("msg"));
            let Some(folder) = folders.into_iter().find(|folder| folder.is_dir()) else { continue };
            let mut files: Vec<PathBuf> =
                std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|file| file.path()).collect();
            files.sort();
            for file in files.iter().filter(|file| file.extension().is_some_and(|e| e == "msg")) {
                match self.add_msg(file) {
                    Ok(text) => waiting.extend(packages(&text)),
                    Err(error) => warn(&error),
                }
            }
        }
    }

    /// Reads a file, or all files below a folder.
    fn add(&mut self, path: &Path, depth: usize) -> Result<(), String> {
        let cannot = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", path.display());
        if std::fs::metadata(path).map_err(|error| cannot(&error))?.is_dir() {
            if depth == 0 {
                return Err(cannot(&format!("folders are nested more than {DEPTH} deep")));
            }
            let entries = std::fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let mut entries: Vec<PathBuf> =
                entries.map_err(|error| cannot(&error))?.iter().map(std::fs::DirEntry::path).collect();
            entries.sort();
            let is_wanted = |path: &Path| {
                path.is_dir()
                    || path.extension().is_some_and(|extension| extension == "msg" || extension == "idl")
            };
            return entries
                .iter()
                .filter(|path| is_wanted(path))
                .try_for_each(|path| self.add(path, depth - 1));
        }
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("msg") => self.add_msg(path).map(drop),
            Some("idl") => self.add_idl(path),
            _ => Err(cannot(&"definitions are files *.msg and *.idl")),
        }
    }

    fn text(&mut self, path: &Path) -> Result<String, String> {
        self.count += 1;
        if self.count > FILES {
            return Err(format!("more than {FILES} files of definitions: name smaller folders"));
        }
        read_text(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    }

    /// Reads `PACKAGE/msg/NAME.msg`; returns the text.
    fn add_msg(&mut self, path: &Path) -> Result<String, String> {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let part = |path: Option<&Path>| Some(path?.file_name()?.to_str()?.to_owned());
        let folder = absolute.parent();
        let name = absolute.file_stem().and_then(|name| name.to_str());
        let package = part(folder).filter(|folder| folder == "msg").and(part(folder.and_then(Path::parent)));
        let (Some(name), Some(package)) = (name, package) else {
            let path = path.display();
            return Err(format!(
                "{path}: the package is not known; the path must end with PACKAGE/msg/TYPE.msg"
            ));
        };
        let full = format!("{package}/msg/{name}");
        let text = self.text(path)?;
        let added = self.types.library.add_msg(&full, &text);
        added.map_err(|error| format!("{}: {error}", path.display()))?;
        self.files.insert(full, path.to_owned());
        Ok(text)
    }

    fn add_idl(&mut self, path: &Path) -> Result<(), String> {
        let text = self.text(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let include = |name: &str| read_text(&folder.join(name)).ok();
        let library = &mut self.types.library;
        let before: BTreeSet<String> = library.names().map(str::to_owned).collect();
        let added = library.add_idl(&text, &include);
        added.map_err(|error| format!("{}: {error}", path.display()))?;
        let new = library.names().filter(|name| !before.contains(*name));
        self.files.extend(new.map(|name| (name.replace("::", "/"), path.to_owned())));
        Ok(())
    }
}

/// The packages that definitions refer to.
fn packages(text: &str) -> impl Iterator<Item = String> {
    let types = text.lines().filter_map(|line| line.split_whitespace().next()?.split_once('/'));
    types.filter(|(package, _)| !package.starts_with('#')).map(|(package, _)| package.to_owned())
}
