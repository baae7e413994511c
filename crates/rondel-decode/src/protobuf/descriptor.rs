//! Message types from a `FileDescriptorSet`, which is itself a Protobuf message.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::wire::{FIXED32, FIXED64, LENGTH, Reader, VARINT};
use crate::error::Parsed;
use crate::schema::SchemaError;

/// Maximum nesting of message types.
const MAX_DEPTH: usize = 32;

/// The message types of a descriptor set.
#[derive(Clone, Debug, Default)]
pub struct Descriptors {
    pub(super) messages: Vec<Message>,
    pub(super) enums: Vec<Enum>,
    /// Indices in both lists, by full name.
    names: BTreeMap<Box<str>, Named>,
    /// Names of the files.
    files: Vec<Box<str>>,
    /// The descriptor set itself.
    source: Arc<[u8]>,
}

/// Type of the messages of a topic, with all types that it consists of.
#[derive(Clone, Debug)]
pub struct ProtobufType {
    pub(super) descriptors: Arc<Descriptors>,
    pub(super) root: usize,
}

#[derive(Clone, Copy, Debug)]
enum Named {
    Message(usize),
    Enum(usize),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    pub(super) name: Box<str>,
    pub(super) fields: Vec<Field>,
    /// Whether it is the entry of a map: a key and a value.
    pub(super) is_entry: bool,
    /// Index of its file.
    file: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: Box<str>,
    pub(super) number: u32,
    pub(super) is_repeated: bool,
    /// Whether it can be absent; otherwise a missing field has its default value.
    pub(super) is_optional: bool,
    pub(super) kind: Kind,
    pub(super) oneof: Option<usize>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Enum {
    pub(super) name: Box<str>,
    /// Names by value in ascending order, one for each value.
    pub(super) labels: Vec<(i64, Box<str>)>,
    /// All names, including further ones of a value.
    pub(super) values: Vec<(Box<str>, i64)>,
}

/// Type of a field. Messages and enumerations are indices in their lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Double,
    Float,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Sint32,
    Sint64,
    Fixed32,
    Fixed64,
    Sfixed32,
    Sfixed64,
    Bool,
    String,
    Bytes,
    Group,
    Message(usize),
    Enum(usize),
}

impl Kind {
    /// Returns the wire type of a single value.
    pub(super) fn wire(self) -> u8 {
        match self {
            Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => FIXED64,
            Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => FIXED32,
            Kind::String | Kind::Bytes | Kind::Message(_) => LENGTH,
            Kind::Group => super::wire::VARINT + 3,
            _ => VARINT,
        }
    }

    /// Whether repeated values may be packed.
    pub(super) fn is_packable(self) -> bool {
        matches!(self.wire(), VARINT | FIXED32 | FIXED64)
    }

    pub(super) fn is_float(self) -> bool {
        matches!(self, Kind::Double | Kind::Float)
    }

    pub(super) fn is_integer(self) -> bool {
        use Kind::{Fixed32, Fixed64, Int32, Int64, Sfixed32, Sfixed64, Sint32, Sint64, Uint32, Uint64};
        matches!(
            self,
            Int32 | Int64 | Uint32 | Uint64 | Sint32 | Sint64 | Fixed32 | Fixed64 | Sfixed32 | Sfixed64
        )
    }
}

/// Settings inherited by messages from their file or message, and by fields from these.
#[derive(Clone, Copy)]
struct Features {
    /// Whether fields have explicit presence.
    is_explicit: bool,
    is_delimited: bool,
}

/// A type name to resolve once all types are known: the field, by its indices, and the name.
struct Unresolved {
    message: usize,
    field: usize,
    name: Box<str>,
}

struct Builder {
    found: Descriptors,
    unresolved: Vec<Unresolved>,
}

impl Descriptors {
    /// Reads a `FileDescriptorSet`, as written by `protoc --include_imports --descriptor_set_out` and `buf build`.
    ///
    /// # Errors
    /// The bytes are no descriptor set, or lack the file of a type.
    pub fn from_bytes(bytes: &[u8]) -> Result<Descriptors, SchemaError> {
        let mut builder = Builder { found: Descriptors::default(), unresolved: Vec::new() };
        builder.set(Reader { bytes, at: 0 }).map_err(|fault| {
            let error = fault.into_error();
            SchemaError::new(format!("not a FileDescriptorSet: byte {}: {}", error.offset, error.kind))
        })?;
        builder.found.source = bytes.into();
        builder.resolve()
    }

    /// Returns the full names of all message types, in order.
    pub fn message_names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().filter_map(|(name, named)| match named {
            Named::Message(at) => (!self.messages[*at].is_entry).then_some(&**name),
            Named::Enum(_) => None,
        })
    }

    /// Returns the name of the file in which the message type with this full name is defined.
    pub fn file(&self, name: &str) -> Option<&str> {
        match self.names.get(name)? {
            Named::Message(at) => self.files.get(self.messages[*at].file).map(|name| &**name),
            Named::Enum(_) => None,
        }
    }

    /// Returns the message type with this full name, such as `vehicle.v1.State`.
    ///
    /// # Errors
    /// There is no such message type.
    pub fn message(&self, name: &str) -> Result<ProtobufType, SchemaError> {
        match self.names.get(name.trim_start_matches('.')) {
            Some(Named::Message(root)) => {
                Ok(ProtobufType { descriptors: Arc::new(self.clone()), root: *root })
            }
            _ => {
                let known: Vec<&str> = self.message_names().take(12).collect();
                Err(SchemaError::new(format!("no message type `{name}`; there are {}", known.join(", "))))
            }
        }
    }
}

impl ProtobufType {
    /// Returns the full name.
    pub fn name(&self) -> &str {
        &self.descriptors.messages[self.root].name
    }

    /// Returns its descriptor set.
    pub fn source(&self) -> &[u8] {
        &self.descriptors.source
    }
}

/// Returns the fields of a message of descriptors: the number, the value of a varint, and the bytes of a part.
fn fields<'m>(
    mut reader: Reader<'m>,
    mut each: impl FnMut(u32, u64, Reader<'m>) -> Parsed<()>,
) -> Parsed<()> {
    while !reader.is_at_end() {
        let start = reader.at;
        let (number, wire) = reader.tag()?;
        let nothing = Reader { bytes: &[], at: 0 };
        match wire {
            VARINT => each(number, reader.varint()?, nothing)?,
            LENGTH => each(number, 0, reader.part()?)?,
            _ => reader.skip(wire, number, start)?,
        }
    }
    Ok(())
}

fn text(part: Reader<'_>) -> Box<str> {
    String::from_utf8_lossy(&part.bytes[part.at..]).into()
}

impl Features {
    /// Returns these settings with the changes of a `FeatureSet` among options, in the field with this number.
    fn with(self, options: Reader<'_>, of_features: u32) -> Parsed<Features> {
        let mut features = self;
        fields(options, |number, _, part| {
            if number != of_features {
                return Ok(());
            }
            fields(part, |number, value, _| {
                match number {
                    1 => features.is_explicit = value != 2,
                    5 => features.is_delimited = value == 2,
                    _ => {}
                }
                Ok(())
            })
        })?;
        Ok(features)
    }
}

impl Builder {
    fn set(&mut self, set: Reader<'_>) -> Parsed<()> {
        fields(set, |number, _, file| if number == 1 { self.file(file) } else { Ok(()) })
    }

    fn file(&mut self, file: Reader<'_>) -> Parsed<()> {
        let (mut package, mut is_proto3, mut is_edition) = (String::new(), false, false);
        let (mut options, mut name) = (None, Box::default());
        fields(file, |number, value, part| {
            match number {
                1 => name = text(part),
                2 => package = text(part).into(),
                8 => options = Some(part),
                12 => is_proto3 = &*text(part) == "proto3",
                14 => is_edition = value > 0,
                _ => {}
            }
            Ok(())
        })?;
        self.found.files.push(name);
        let mut features = Features { is_explicit: !is_proto3, is_delimited: false };
        if let (Some(options), true) = (options, is_edition) {
            features = features.with(options, 50)?;
        }
        fields(file, |number, _, part| match number {
            4 => self.message(part, &package, features, 0),
            5 => self.enumeration(part, &package),
            _ => Ok(()),
        })
    }

    fn message(&mut self, message: Reader<'_>, scope: &str, outer: Features, depth: usize) -> Parsed<()> {
        if depth >= MAX_DEPTH {
            return Err(crate::error::Fault::new(message.at, crate::MessageErrorKind::TooDeep));
        }
        let (mut name, mut features, mut is_entry) = (String::new(), outer, false);
        fields(message, |number, _, part| {
            match number {
                1 => name = full_name(scope, &text(part)),
                7 => {
                    features = outer.with(part, 12)?;
                    fields(part, |number, value, _| {
                        is_entry |= number == 7 && value == 1;
                        Ok(())
                    })?;
                }
                _ => {}
            }
            Ok(())
        })?;
        let at = self.found.messages.len();
        let file = self.found.files.len().saturating_sub(1);
        let found = Message { name: name.as_str().into(), fields: Vec::new(), is_entry, file };
        self.found.messages.push(found);
        self.found.names.insert(name.as_str().into(), Named::Message(at));
        fields(message, |number, _, part| match number {
            2 => self.field(part, at, features),
            3 => self.message(part, &name, features, depth + 1),
            4 => self.enumeration(part, &name),
            _ => Ok(()),
        })
    }

    fn field(&mut self, field: Reader<'_>, message: usize, outer: Features) -> Parsed<()> {
        let (mut name, mut type_name): (Box<str>, Box<str>) = ("".into(), "".into());
        let (mut number, mut label, mut kind, mut oneof, mut is_marked) = (0, 1, 0, None, false);
        let mut features = outer;
        fields(field, |tag, value, part| {
            match tag {
                1 => name = text(part),
                3 => number = value as u32,
                4 => label = value,
                5 => kind = value,
                6 => type_name = text(part),
                8 => features = outer.with(part, 21)?,
                9 => oneof = Some(value as usize),
                17 => is_marked = value == 1,
                _ => {}
            }
            Ok(())
        })?;
        let kind = match kind {
            1 => Kind::Double,
            2 => Kind::Float,
            3 => Kind::Int64,
            4 => Kind::Uint64,
            5 => Kind::Int32,
            6 => Kind::Fixed64,
            7 => Kind::Fixed32,
            8 => Kind::Bool,
            9 => Kind::String,
            11 if !features.is_delimited => Kind::Message(usize::MAX),
            12 => Kind::Bytes,
            13 => Kind::Uint32,
            14 => Kind::Enum(usize::MAX),
            15 => Kind::Sfixed32,
            16 => Kind::Sfixed64,
            17 => Kind::Sint32,
            18 => Kind::Sint64,
            _ => Kind::Group,
        };
        let fields = &mut self.found.messages[message].fields;
        if matches!(kind, Kind::Message(_) | Kind::Enum(_)) {
            self.unresolved.push(Unresolved { message, field: fields.len(), name: type_name });
        }
        // An optional field of proto3 is described as a separate oneof.
        let oneof = oneof.filter(|_| !is_marked);
        let is_repeated = label == 3;
        let is_message = matches!(kind, Kind::Message(_) | Kind::Group);
        let is_optional = is_message || is_marked || oneof.is_some() || label == 2 || features.is_explicit;
        fields.push(Field { name, number, is_repeated, is_optional, kind, oneof });
        Ok(())
    }

    fn enumeration(&mut self, enumeration: Reader<'_>, scope: &str) -> Parsed<()> {
        let (mut name, mut values) = (String::new(), Vec::new());
        fields(enumeration, |number, _, part| {
            match number {
                1 => name = full_name(scope, &text(part)),
                2 => {
                    let (mut label, mut value) = (Box::from(""), 0);
                    fields(part, |number, found, part| {
                        match number {
                            1 => label = text(part),
                            2 => value = i64::from(found as i32),
                            _ => {}
                        }
                        Ok(())
                    })?;
                    values.push((label, value));
                }
                _ => {}
            }
            Ok(())
        })?;
        let mut labels: Vec<(i64, Box<str>)> =
            values.iter().map(|(label, value)| (*value, label.clone())).collect();
        // If a value has several names, the first one counts.
        labels.sort_by_key(|(value, _)| *value);
        labels.dedup_by_key(|(value, _)| *value);
        self.found.names.insert(name.as_str().into(), Named::Enum(self.found.enums.len()));
        self.found.enums.push(Enum { name: name.into(), labels, values });
        Ok(())
    }

    fn resolve(mut self) -> Result<Descriptors, SchemaError> {
        for Unresolved { message, field, name } in self.unresolved {
            let found = self.found.names.get(name.trim_start_matches('.'));
            let message = &mut self.found.messages[message];
            let field = &mut message.fields[field];
            field.kind = match (field.kind, found) {
                (Kind::Message(_), Some(Named::Message(at))) => Kind::Message(*at),
                (Kind::Enum(_), Some(Named::Enum(at))) => Kind::Enum(*at),
                _ => {
                    return Err(SchemaError::new(format!(
                        "type `{}` of the field `{}.{}` is missing; write the descriptor set with its imports \
                         (`protoc --include_imports`)",
                        name.trim_start_matches('.'),
                        message.name,
                        field.name
                    )));
                }
            };
        }
        Ok(self.found)
    }
}

fn full_name(scope: &str, name: &str) -> String {
    if scope.is_empty() { name.to_owned() } else { format!("{scope}.{name}") }
}
