//! Definitions of message types: from files and folders that the user names, from an installation of ROS 2, and those
//! that are known without.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rondel_decode::avro::AvroSchema;
use rondel_decode::flatbuffers::BinarySchema;
use rondel_decode::protobuf::Descriptors;
use rondel_decode::schema::{Schema, SchemaError};
use rondel_decode::{Encoding, MessageType};
use rondel_recording::RecordedSchema;
use rondel_runtime::{Types, definition};
use rondel_spec::{Definition, Definitions, NoDefinition};

pub mod json_schema;
pub mod offered;
#[cfg(feature = "proto")]
mod proto;
pub mod recorded_types;
#[cfg(feature = "registry")]
pub mod registry;
pub mod text_files;
pub mod written;

use crate::schemas::recorded_types::{RecordedTypes, message_type};
use crate::schemas::text_files::{LARGEST, check_regular, read_text};
use crate::warn;
#[cfg(feature = "registry")]
pub use registry::is_schema_awaited;

/// Whether messages wait for a schema.
#[cfg(not(feature = "registry"))]
pub fn is_schema_awaited() -> bool {
    false
}

/// The endings of files of definitions.
#[cfg(feature = "proto")]
const FORMS: &[&str] = &["msg", "idl", "proto", "fbs", "bfbs", "avsc", "desc", "binpb", "pb"];
#[cfg(not(feature = "proto"))]
const FORMS: &[&str] = &["msg", "idl", "fbs", "bfbs", "avsc", "desc", "binpb", "pb"];
/// Files that define Protobuf types, for messages.
#[cfg(feature = "proto")]
const PROTOBUF: &str = "a file of Protobuf (*.proto) or a descriptor set (*.desc, *.binpb)";
#[cfg(not(feature = "proto"))]
const PROTOBUF: &str = "a descriptor set (*.desc, *.binpb)";
/// Folders may be nested this deep below one that is named.
const DEPTH: usize = 8;
/// Files of definitions that are read at most.
const FILES: usize = 20_000;

/// Message types of a specification. Only files that the user names are read before a type is needed.
#[derive(Debug, Default)]
pub struct Schemas {
    state: Mutex<State>,
    recordings: Vec<PathBuf>,
    /// The types of the recordings, once one is needed.
    recorded: OnceLock<RecordedTypes>,
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
    /// The sets of Protobuf types, of FlatBuffers types and of Avro types, in the order of the files.
    protobuf: Vec<Descriptors>,
    flatbuffers: Vec<BinarySchema>,
    avro: Vec<AvroSchema>,
    /// File of each type that Rondel does not know by itself.
    files: BTreeMap<String, PathBuf>,
    count: usize,
    /// The `.proto` files that are to be compiled.
    #[cfg(feature = "proto")]
    proto: proto::ProtoFiles,
}

impl Schemas {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

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
        #[cfg(feature = "proto")]
        {
            state.proto = proto::ProtoFiles::of(paths);
        }
        for path in paths {
            let count = state.count;
            state.add(path, DEPTH)?;
            if state.count == count {
                if let Some(file) = uncompiled(path, DEPTH) {
                    // Fails with the command that compiles it.
                    state.add(&file, DEPTH)?;
                }
                return Err(format!("{} contains no definitions ({})", path.display(), forms().join(", ")));
            }
        }
        #[cfg(feature = "proto")]
        for (set, files) in std::mem::take(&mut state.proto).compile()? {
            state.files.extend(files);
            state.protobuf.push(set);
        }
        Ok(Schemas { state: Mutex::new(state), ..Schemas::default() })
    }

    /// Adds the types that recordings have, for those that no file and no installation of ROS 2 defines.
    #[must_use]
    pub fn with_recordings(self, recordings: &[PathBuf]) -> Schemas {
        Schemas { recordings: recordings.to_owned(), ..self }
    }

    /// The types of the recordings, unless a file or an installation defines this one.
    fn types_in_recordings(&self, name: &str) -> Option<&RecordedTypes> {
        if self.recordings.is_empty() || self.state().is_defined(name) {
            return None;
        }
        Some(self.recorded.get_or_init(|| RecordedTypes::read(&self.recordings)))
    }

    /// Finds a type in the recordings.
    fn in_recordings(&self, name: &str) -> Option<(Result<MessageType, String>, &Path)> {
        self.types_in_recordings(name)?.find(name)
    }

    /// Returns the type of the messages that a recording describes: as a file or an installation of ROS 2 defines it, or
    /// as the recording does.
    ///
    /// # Errors
    /// The reason why there is none, as a sentence.
    pub fn recorded(&self, schema: &RecordedSchema, encoding: Encoding) -> Result<MessageType, String> {
        // Older bags in SQLite have the names of types alone.
        if schema.encoding.is_empty() && schema.data.is_empty() {
            return self.message_type(&schema.name, encoding);
        }
        // The files of ROS 2 define other types of the same names.
        if encoding == Encoding::Ros1 || !self.state().is_defined(&schema.name) {
            return message_type(schema, encoding);
        }
        let defined = self.message_type(&schema.name, encoding)?;
        if let (MessageType::Cdr(defined), Ok(MessageType::Cdr(own))) =
            (&defined, message_type(schema, encoding))
            && defined.rihs01() != own.rihs01()
        {
            let (name, file) = (&schema.name, self.origin(&schema.name));
            warn(&format!("{name} is defined differently in the recording and in {file}, which is used"));
        }
        Ok(defined)
    }

    /// Returns the schema of a type.
    ///
    /// # Errors
    /// [`SchemaError`] if it is not defined or cannot be used.
    pub fn schema(&self, name: &str) -> Result<Schema, SchemaError> {
        if let Some((Ok(MessageType::Cdr(schema)), _)) = self.in_recordings(name) {
            return Ok(schema);
        }
        let mut state = self.state();
        state.find(name);
        state.types.schema(name)
    }

    /// Returns the type of messages in an encoding that needs one.
    ///
    /// # Errors
    /// The reason why there is none, as a sentence.
    pub fn message_type(&self, name: &str, encoding: Encoding) -> Result<MessageType, String> {
        if let Some((Ok(found), _)) = self.in_recordings(name)
            && found.encoding() == encoding
        {
            return Ok(found);
        }
        let state = self.state();
        match encoding {
            Encoding::Protobuf => state.protobuf(name).ok_or(PROTOBUF),
            Encoding::Flatbuffers => state.flatbuffers(name).ok_or("a schema (*.fbs, *.bfbs)"),
            Encoding::Avro => state.avro(name).ok_or("a schema (*.avsc)"),
            Encoding::Ros1 => {
                return Err(format!(
                    "the recording has no definition of {name}, which ROS 1 writes into bags"
                ));
            }
            _ => {
                drop(state);
                return self.schema(name).map(MessageType::Cdr).map_err(|error| error.to_string());
            }
        }
        .map_err(|file| {
            format!("the type '{name}' of {encoding} is not defined; name {file} with `schemas:`")
        })
    }

    /// Returns where the definition of a type comes from, in words.
    pub fn origin(&self, name: &str) -> String {
        if let Some((Ok(_), path)) = self.in_recordings(name) {
            return path.display().to_string();
        }
        let mut state = self.state();
        state.find(name);
        let name = match state.types.schema(name) {
            Ok(schema) => schema.name().replace("::", "/"),
            Err(_) if state.files.contains_key(name) => name.to_owned(),
            Err(_) => return "no definition is known".to_owned(),
        };
        state.files.get(&name).map_or("known to Rondel".to_owned(), |path| path.display().to_string())
    }
}

impl Definitions for Schemas {
    fn definition(&self, name: &str) -> Result<Definition, NoDefinition> {
        let recorded = self.types_in_recordings(name).and_then(|types| types.definition(name));
        if let Some((found, path)) = recorded {
            return found.map_err(|reason| NoDefinition::Invalid(format!("{}: {reason}", path.display())));
        }
        let mut state = self.state();
        state.find(name);
        let other = || state.protobuf(name).or_else(|| state.flatbuffers(name)).or_else(|| state.avro(name));
        match state.types.definition(name) {
            Err(NoDefinition::Invalid(reason)) => Err(NoDefinition::Invalid(reason)),
            Err(none) => match other() {
                Some(found) => definition(&found).map_err(|reason| NoDefinition::Invalid(reason.to_owned())),
                None => Err(none),
            },
            found => found,
        }
    }
}

/// The installations of ROS 2 in their usual place.
fn installations() -> Vec<PathBuf> {
    let folders = std::fs::read_dir("/opt/ros").into_iter().flatten().flatten();
    folders.map(|folder| folder.path()).collect()
}

impl State {
    fn protobuf(&self, name: &str) -> Option<MessageType> {
        self.protobuf.iter().find_map(|set| set.message(name).ok()).map(MessageType::Protobuf)
    }

    fn flatbuffers(&self, name: &str) -> Option<MessageType> {
        self.flatbuffers.iter().find_map(|set| set.table(name).ok()).map(MessageType::Flatbuffers)
    }

    fn avro(&self, name: &str) -> Option<MessageType> {
        self.avro.iter().find_map(|schema| schema.record(name).ok()).map(MessageType::Avro)
    }

    /// Whether a file or an installation of ROS 2 defines a type.
    fn is_defined(&mut self, name: &str) -> bool {
        self.find(name);
        let full = self.types.schema(name).map(|schema| schema.name().replace("::", "/"));
        self.files.contains_key(name) || full.is_ok_and(|full| self.files.contains_key(&full))
    }

    fn add_ros(&mut self) {
        if !std::mem::replace(&mut self.has_ros, true) {
            self.types = Types::ros();
        }
    }

    /// Reads the definitions that a type needs from an installation of ROS 2, unless the user named its file.
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
            let is_wanted = |path: &Path| path.is_dir() || FORMS.contains(&extension(path));
            return entries
                .iter()
                .filter(|path| is_wanted(path))
                .try_for_each(|path| self.add(path, depth - 1));
        }
        match extension(path) {
            "msg" => self.add_msg(path).map(drop),
            "idl" => self.add_idl(path),
            "bfbs" => {
                let set = BinarySchema::from_bytes(&self.bytes(path)?).map_err(|error| cannot(&error))?;
                self.add_flatbuffers(path, set);
                Ok(())
            }
            "fbs" => {
                let text = self.text(path)?;
                let folder = path.parent().unwrap_or(Path::new(""));
                let include = |name: &str| read_text(&folder.join(name)).ok();
                let set = BinarySchema::from_text(&text, &include)
                    .map_err(|error| format!("{}: {error}", path.display()))?;
                self.add_flatbuffers(path, set);
                Ok(())
            }
            "avsc" => {
                let schema = AvroSchema::from_json(&self.bytes(path)?)
                    .map_err(|error| format!("{}: {error}", path.display()))?;
                let names = schema.record_names().map(|name| (name.to_owned(), path.to_owned()));
                self.files.extend(names);
                self.avro.push(schema);
                Ok(())
            }
            "desc" | "binpb" | "pb" => {
                let set = Descriptors::from_bytes(&self.bytes(path)?).map_err(|error| cannot(&error))?;
                let names = set.message_names().map(|name| (name.to_owned(), path.to_owned()));
                self.files.extend(names);
                self.protobuf.push(set);
                Ok(())
            }
            #[cfg(feature = "proto")]
            "proto" => {
                // It is read with those that it imports.
                self.proto.add(path);
                self.counted()
            }
            #[cfg(not(feature = "proto"))]
            "proto" => {
                let set = path.with_extension("desc");
                let (path, set) = (path.display(), set.display());
                let command = format!("protoc --include_imports --descriptor_set_out={set} {path}");
                Err(cannot(&format!(
                    "compile it to a descriptor set first: `{command}`, or `buf build -o {set}`; or build Rondel so that \
                     it reads text: `cargo build --release --package rondel --features proto`"
                )))
            }
            _ => Err(cannot(&format!("definitions are files {}", forms().join(", ")))),
        }
    }

    fn add_flatbuffers(&mut self, path: &Path, set: BinarySchema) {
        let names = set.table_names().map(|name| (name.to_owned(), path.to_owned()));
        self.files.extend(names);
        self.flatbuffers.push(set);
    }

    /// Returns the content of a binary file.
    fn bytes(&mut self, path: &Path) -> Result<Vec<u8>, String> {
        self.counted()?;
        check_regular(path).map_err(|why| format!("cannot read {}: {why}", path.display()))?;
        let file = std::fs::File::open(path).and_then(|file| {
            let mut bytes = Vec::new();
            file.take(LARGEST + 1).read_to_end(&mut bytes).map(|_| bytes)
        });
        match file {
            Ok(bytes) if bytes.len() as u64 > LARGEST => {
                Err(format!("cannot read {}: it has more than 16 MiB", path.display()))
            }
            Ok(bytes) => Ok(bytes),
            Err(error) => Err(format!("cannot read {}: {error}", path.display())),
        }
    }

    /// Counts a file.
    fn counted(&mut self) -> Result<(), String> {
        self.count += 1;
        if self.count > FILES {
            return Err(format!("more than {FILES} files of definitions: name smaller folders"));
        }
        Ok(())
    }

    fn text(&mut self, path: &Path) -> Result<String, String> {
        self.counted()?;
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

/// The first file below a folder whose definitions must be compiled before they are read.
fn uncompiled(folder: &Path, depth: usize) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).ok()?.flatten().take(FILES).map(|entry| entry.path()).collect();
    entries.sort();
    entries.into_iter().find_map(|path| match extension(&path) {
        "proto" if path.is_file() => Some(path),
        _ if depth > 0 && path.is_dir() => uncompiled(&path, depth - 1),
        _ => None,
    })
}

/// The files of definitions, as patterns.
fn forms() -> Vec<String> {
    FORMS.iter().map(|ending| format!("*.{ending}")).collect()
}

/// The ending of a name.
fn extension(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or("")
}

/// The packages that definitions refer to.
fn packages(text: &str) -> impl Iterator<Item = String> {
    let types = text.lines().filter_map(|line| line.split_whitespace().next()?.split_once('/'));
    types.filter(|(package, _)| !package.starts_with('#')).map(|(package, _)| package.to_owned())
}
