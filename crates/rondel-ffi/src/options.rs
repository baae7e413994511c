//! Options of a monitor, and the encodings of its topics.

use std::ffi::c_void;
use std::sync::Arc;

use rondel_decode::flatbuffers::BinarySchema;
use rondel_decode::protobuf::Descriptors;
use rondel_decode::schema::Library;
use rondel_decode::{Encoding, MessageType};
use rondel_runtime::{Emit, Types};
use rondel_spec::Spec;

use crate::arguments::{payload, slice, text};
use crate::status::Failure;
use crate::text::Text;

/// Reports verdicts that differ from the one before, and the first.
pub const RONDEL_EMIT_CHANGE: i32 = 0;
/// Reports a verdict for every message and property.
pub const RONDEL_EMIT_EVERY: i32 = 1;
/// Reports verdicts that become violated.
pub const RONDEL_EMIT_VIOLATIONS: i32 = 2;

/// JSON, in which a number may be `NaN`; also the encoding of topics whose messages are columns.
pub const RONDEL_JSON: i32 = 0;
/// CDR, as DDS and ROS 2 use it.
pub const RONDEL_CDR: i32 = 1;
/// Protocol Buffers.
pub const RONDEL_PROTOBUF: i32 = 2;
/// FlatBuffers.
pub const RONDEL_FLATBUFFERS: i32 = 3;
/// CBOR.
pub const RONDEL_CBOR: i32 = 4;
/// MessagePack.
pub const RONDEL_MSGPACK: i32 = 5;
/// One value as text.
pub const RONDEL_PLAIN: i32 = 6;
/// Metrics by Sparkplug B.
pub const RONDEL_SPARKPLUG_B: i32 = 7;
/// Measurements by SenML, in JSON or CBOR.
pub const RONDEL_SENML: i32 = 8;
/// XML.
pub const RONDEL_XML: i32 = 9;

/// Reading of the messages of a topic.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Input {
    /// The name of the topic in the specification.
    pub topic: Text,
    /// The name of the message type, for encodings that need one.
    pub type_name: Text,
    /// Its definition: IDL for CDR, or null for a common type of ROS 2; a `FileDescriptorSet` for Protobuf; a binary
    /// schema for FlatBuffers.
    pub definition: *const c_void,
    /// The length of the definition in bytes.
    pub definition_length: usize,
    /// The encoding of its payloads.
    pub encoding: i32,
}

/// Options of a monitor. All zero are the defaults.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Topics whose encoding is not [`Options::encoding`].
    pub inputs: *const Input,
    /// Their number.
    pub input_count: usize,
    /// Limit of the instances of `for each`, in bytes; 0: none.
    pub instance_bytes: usize,
    /// The reported verdicts.
    pub emit: i32,
    /// The encoding of the payloads.
    pub encoding: i32,
    /// Not 0: explain violations.
    pub explain: i32,
}

/// Reads options for this specification; null has the defaults.
///
/// # Errors
/// Unknown constants and topics, and types that cannot be read.
///
/// # Safety
/// See [pointers](crate#pointers).
pub(crate) unsafe fn read(spec: &Spec, options: *const Options) -> Result<rondel_runtime::Options, Failure> {
    // SAFETY: the contract of this function.
    let Some(options) = (unsafe { options.as_ref() }) else {
        return Ok(session_options(spec, Encoding::Row));
    };
    let mut all = session_options(spec, encoding(options.encoding)?);
    all.emit = match options.emit {
        RONDEL_EMIT_CHANGE => Emit::Change,
        RONDEL_EMIT_EVERY => Emit::Every,
        RONDEL_EMIT_VIOLATIONS => Emit::Violations,
        other => return Err(Failure::argument(format!("`emit` is {other}: use a constant RONDEL_EMIT_…"))),
    };
    all.explain = options.explain != 0;
    if options.instance_bytes > 0 {
        all.instance_bytes = options.instance_bytes;
    }
    // SAFETY: the contract of this function.
    for input in unsafe { slice("inputs", options.inputs, options.input_count)? } {
        // SAFETY: the contract of this function.
        let (topic, own) = unsafe { read_input(input)? };
        let is_meant = |of: &rondel_spec::Topic| of.name == topic || of.address == topic;
        let Some(at) = spec.declared().iter().position(is_meant) else {
            let known: Vec<&str> = spec.declared().iter().map(|topic| topic.name.as_str()).collect();
            let text = format!("the specification has no topic '{topic}'; it has {}", known.join(", "));
            return Err(Failure::argument(text));
        };
        all.inputs[at] = own;
    }
    Ok(all)
}

fn session_options(spec: &Spec, encoding: Encoding) -> rondel_runtime::Options {
    let input = rondel_runtime::Input { encoding, ..Default::default() };
    rondel_runtime::Options { inputs: vec![input; spec.topics.len()], ..rondel_runtime::Options::immediate() }
}

fn encoding(constant: i32) -> Result<Encoding, Failure> {
    Ok(match constant {
        RONDEL_JSON => Encoding::Row,
        RONDEL_CDR => Encoding::Cdr,
        RONDEL_PROTOBUF => Encoding::Protobuf,
        RONDEL_FLATBUFFERS => Encoding::Flatbuffers,
        RONDEL_CBOR => Encoding::Cbor,
        RONDEL_MSGPACK => Encoding::Msgpack,
        RONDEL_PLAIN => Encoding::Plain,
        RONDEL_SPARKPLUG_B => Encoding::SparkplugB,
        RONDEL_SENML => Encoding::Senml,
        RONDEL_XML => Encoding::Xml,
        other => {
            let text = format!("`encoding` is {other}: use a constant such as RONDEL_JSON or RONDEL_CBOR");
            return Err(Failure::argument(text));
        }
    })
}

/// Reads the name of a topic and its input.
///
/// # Safety
/// See [pointers](crate#pointers).
unsafe fn read_input(input: &Input) -> Result<(&str, rondel_runtime::Input), Failure> {
    // SAFETY: the contract of this function.
    let (topic, name, definition) = unsafe {
        (
            text("topic", input.topic.data, input.topic.length)?,
            text("type_name", input.type_name.data, input.type_name.length)?,
            payload("definition", input.definition, input.definition_length)?,
        )
    };
    let encoding = encoding(input.encoding)?;
    let mut own = rondel_runtime::Input { encoding, ..Default::default() };
    if encoding.needs_schema() {
        let found = message_type(encoding, name, definition);
        let found = found.map_err(|error| Failure::argument(format!("topic '{topic}': {error}")))?;
        own.message_type = Some(Arc::new(found));
    } else if !name.is_empty() {
        let text =
            format!("topic '{topic}': messages in {encoding} have no type, and `type_name` is '{name}'");
        return Err(Failure::argument(text));
    }
    Ok((topic, own))
}

/// Reads the definition of a message type.
fn message_type(encoding: Encoding, name: &str, definition: &[u8]) -> Result<MessageType, String> {
    if name.is_empty() {
        return Err(format!("messages in {encoding} need a type: name it by `type_name`"));
    }
    let found = match encoding {
        Encoding::Protobuf => Descriptors::from_bytes(definition)
            .and_then(|descriptors| descriptors.message(name))
            .map(MessageType::Protobuf),
        Encoding::Flatbuffers => BinarySchema::from_bytes(definition)
            .and_then(|schema| schema.table(name))
            .map(MessageType::Flatbuffers),
        _ if definition.is_empty() => Types::ros().schema(name).map(MessageType::Cdr),
        _ => {
            let idl = std::str::from_utf8(definition);
            let idl = idl.map_err(|error| format!("the IDL is not UTF-8 at byte {}", error.valid_up_to()))?;
            let mut types = Types { library: Library::new() };
            let added = types.library.add_idl(idl, &|_| None);
            added.and_then(|()| types.schema(name)).map(MessageType::Cdr)
        }
    };
    found.map_err(|error| error.to_string())
}
