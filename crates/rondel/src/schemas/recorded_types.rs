//! The types of messages that recordings describe themselves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rondel_decode::avro::AvroSchema;
use rondel_decode::flatbuffers::BinarySchema;
use rondel_decode::protobuf::Descriptors;
use rondel_decode::schema::Library;
use rondel_decode::{Encoding, MessageType, sparkplug};
use rondel_recording::{RecordedSchema, RecordedTopic, is_table, open_messages};
use rondel_runtime::definition;
use rondel_spec::Definition;

use crate::schemas::json_schema;
use crate::warn;

/// A type as a recording describes it.
type Version = (Encoding, Arc<RecordedSchema>, PathBuf);

/// The versions of a type that are remembered.
const VERSIONS: usize = 256;

/// The types of some recordings by name, each with its versions. A type may be used with the fields of all of them.
#[derive(Debug, Default)]
pub struct RecordedTypes {
    types: BTreeMap<String, Vec<Version>>,
}

impl RecordedTypes {
    /// Reads the types of these recordings. One that cannot be read has none, which is shown: its types may be missing.
    pub fn read(recordings: &[PathBuf]) -> RecordedTypes {
        let mut types: BTreeMap<String, Vec<Version>> = BTreeMap::new();
        for path in recordings {
            if is_table(path) {
                continue;
            }
            let opened = open_messages(path).unwrap_or_else(|error| {
                warn(&format!("the types of messages are not known: {error}"));
                None
            });
            let Some(recording) = opened else { continue };
            for topic in recording.topics() {
                let Some((encoding, schema)) = encoding(topic).zip(topic.schema.as_ref()) else { continue };
                // Of older bags in SQLite only the name is known.
                if schema.encoding.is_empty() && schema.data.is_empty() {
                    continue;
                }
                let versions = types.entry(full_name(&schema.name)).or_default();
                let is_known = |(known, of, _): &Version| *known == encoding && of == schema;
                if versions.len() < VERSIONS && !versions.iter().any(is_known) {
                    versions.push((encoding, Arc::clone(schema), path.clone()));
                }
            }
        }
        RecordedTypes { types }
    }

    /// Returns the first version of a type, unless no recording has it, with the recording.
    ///
    /// # Errors
    /// The reason why its definition cannot be used.
    pub fn find(&self, name: &str) -> Option<(Result<MessageType, String>, &Path)> {
        let (encoding, schema, path) = self.types.get(&full_name(name))?.first()?;
        Some((message_type(schema, *encoding), path))
    }

    /// Returns the fields that a type has in any version, with the recording of the first; also of messages in JSON with a
    /// JSON Schema.
    ///
    /// # Errors
    /// The reason why its definition cannot be used.
    pub fn definition(&self, name: &str) -> Option<(Result<Definition, String>, &Path)> {
        let (first @ (_, _, path), others) = self.types.get(&full_name(name))?.split_first()?;
        let found = version(first).map(|mut found| {
            // A version that cannot be used is reported where its messages are read.
            others.iter().filter_map(|other| version(other).ok()).for_each(|other| found.add_version(other));
            found
        });
        Some((found, path))
    }
}

/// The fields of one version of a type.
fn version(version: &Version) -> Result<Definition, String> {
    let (encoding, schema, _) = version;
    match (encoding, schema.encoding.as_str()) {
        (Encoding::Json, "jsonschema") => json_schema::definition(&schema.name, &schema.data)
            .map_err(|error| format!("the definition of {} cannot be used: {error}", schema.name)),
        _ => message_type(schema, *encoding).and_then(|found| definition(&found).map_err(str::to_owned)),
    }
}

/// A name as recordings have it: ROS 2 types as `package/msg/Type`.
fn full_name(name: &str) -> String {
    let name = name.replace("::", "/").replace("dds_/", "");
    let name = if name.contains('/') { name } else { return name };
    let name = name.strip_suffix('_').map_or(name.clone(), str::to_owned);
    match name.split('/').collect::<Vec<_>>()[..] {
        [package, own] => format!("{package}/msg/{own}"),
        _ => name,
    }
}

/// The name of a type in one form, `nav_msgs/Odometry`: recorders and networks write it differently.
pub fn type_name(name: &str) -> String {
    let parts =
        name.split("::").flat_map(|part| part.split('/')).filter(|part| !matches!(*part, "msg" | "dds_"));
    let short = parts.collect::<Vec<_>>().join("/");
    match short.strip_suffix('_') {
        Some(own) if name.contains("dds_") => own.to_owned(),
        _ => short,
    }
}

/// Returns the encoding of the messages of a recorded topic, if it is one that is decoded.
pub fn encoding(topic: &RecordedTopic) -> Option<Encoding> {
    match topic.encoding.as_str() {
        "flatbuffer" => Some(Encoding::Flatbuffers),
        // The messages of ULog are read as those of ROS 1.
        "ros1" | "ulog" => Some(Encoding::Ros1),
        "" | "protobuf" if is_sparkplug(topic) => Some(Encoding::SparkplugB),
        name => Encoding::from_name(name),
    }
}

/// Whether the messages of a topic are metrics by Sparkplug B, which its type or its name says.
fn is_sparkplug(topic: &RecordedTopic) -> bool {
    topic.schema.as_ref().is_some_and(|schema| schema.name == sparkplug::TYPE)
        || sparkplug::Address::parse(&topic.name).is_some()
}

/// Returns the type that a recording describes.
///
/// # Errors
/// The reason why it cannot be used.
pub fn message_type(schema: &RecordedSchema, encoding: Encoding) -> Result<MessageType, String> {
    let RecordedSchema { name, encoding: language, data } = schema;
    let said = |error: &dyn std::fmt::Display| format!("the definition of {name} cannot be used: {error}");
    let text = || std::str::from_utf8(data).map_err(|_| said(&"it is not UTF-8 text"));
    match (encoding, language.as_str()) {
        (Encoding::Cdr, "ros2msg") => {
            let mut library = Library::new();
            library.add_msg(&full_name(name), text()?).map_err(|error| said(&error))?;
            library.schema(name).map(MessageType::Cdr).map_err(|error| said(&error))
        }
        (Encoding::Ros1, "ros1msg") => {
            let mut library = Library::new();
            library.add_ros1_msg(&full_name(name), text()?).map_err(|error| said(&error))?;
            library.schema(name).map(MessageType::Ros1).map_err(|error| said(&error))
        }
        (Encoding::Cdr, "ros2idl" | "omgidl") => {
            let mut library = Library::new();
            for part in idl_parts(text()?) {
                library.add_idl(&part, &|_| None).map_err(|error| said(&error))?;
            }
            library.schema(name).map(MessageType::Cdr).map_err(|error| said(&error))
        }
        (Encoding::Protobuf, "protobuf") => {
            let set = Descriptors::from_bytes(data).map_err(|error| said(&error))?;
            set.message(name).map(MessageType::Protobuf).map_err(|error| said(&error))
        }
        (Encoding::Flatbuffers, "flatbuffer") => {
            let set = BinarySchema::from_bytes(data).map_err(|error| said(&error))?;
            set.table(name).map(MessageType::Flatbuffers).map_err(|error| said(&error))
        }
        (Encoding::Avro, "avro") => {
            let schema = AvroSchema::from_json(data).map_err(|error| said(&error))?;
            schema.record(name).map(MessageType::Avro).map_err(|error| said(&error))
        }
        (_, "") => Err(format!("the recording has no definition of {name}")),
        (_, other) => Err(said(&format!("it is in {other}, and the messages are in {encoding}"))),
    }
}

/// The files in a text of IDL as ROS 2 records it: each after a line of `=` and a line `IDL: package/msg/Type`. Those
/// that others refer to stand behind them, so they come in reverse.
fn idl_parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for line in text.lines() {
        if line.len() >= 20 && line.bytes().all(|byte| byte == b'=') {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut()
            && !line.starts_with("IDL: ")
        {
            part.push_str(line);
            part.push('\n');
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts.reverse();
    parts
}
