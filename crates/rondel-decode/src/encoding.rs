//! Encodings of payloads, and the types of their messages.

use std::fmt;
use std::sync::Arc;

use crate::avro::{AvroType, SchemaSource};
use crate::flatbuffers::FlatbuffersType;
use crate::protobuf::ProtobufType;
use crate::schema::Schema;

/// The encoding of the payloads of a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// JSON text.
    #[default]
    Json,
    /// CDR, as DDS and ROS 2 use it.
    Cdr,
    /// Protocol Buffers.
    Protobuf,
    /// FlatBuffers.
    Flatbuffers,
    /// Avro, one datum without a header.
    Avro,
    /// CBOR, RFC 8949.
    Cbor,
    /// MessagePack.
    Msgpack,
    /// One value as text: see [`plain`](crate::plain).
    Plain,
    /// Metrics by Sparkplug B: see [`sparkplug`](crate::sparkplug).
    SparkplugB,
    /// Measurements by SenML, in JSON or CBOR: see [`senml`](crate::senml).
    Senml,
    /// XML: see [`xml`](crate::xml).
    Xml,
    /// The encoding of ROS 1, in recordings.
    Ros1,
    /// JSON of a row of a table, in recordings: a number may be `NaN`.
    Row,
}

impl Encoding {
    /// The encodings that a deployment can state, in the order in which documents list them.
    pub const ALL: [Encoding; 11] = [
        Encoding::Json,
        Encoding::Cdr,
        Encoding::Protobuf,
        Encoding::Flatbuffers,
        Encoding::Avro,
        Encoding::Cbor,
        Encoding::Msgpack,
        Encoding::Plain,
        Encoding::SparkplugB,
        Encoding::Senml,
        Encoding::Xml,
    ];

    /// Returns its name in deployments.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Json | Encoding::Row => "json",
            Encoding::Cdr => "cdr",
            Encoding::Protobuf => "protobuf",
            Encoding::Flatbuffers => "flatbuffers",
            Encoding::Avro => "avro",
            Encoding::Cbor => "cbor",
            Encoding::Msgpack => "msgpack",
            Encoding::Plain => "plain",
            Encoding::SparkplugB => "sparkplug_b",
            Encoding::Senml => "senml",
            Encoding::Xml => "xml",
            Encoding::Ros1 => "ros1",
        }
    }

    /// Returns the encoding with this name in deployments.
    pub fn from_name(name: &str) -> Option<Encoding> {
        Encoding::ALL.into_iter().find(|encoding| encoding.name() == name)
    }

    /// Whether the fields of a message are known: from its type, or from the encoding.
    pub fn lists_fields(self) -> bool {
        self.needs_schema() || matches!(self, Encoding::Plain | Encoding::SparkplugB | Encoding::Senml)
    }

    /// Whether the meaning of a message depends on the name of its topic.
    pub fn reads_name(self) -> bool {
        self == Encoding::SparkplugB
    }

    /// Whether times in a message may be relative to its arrival.
    pub fn has_relative_times(self) -> bool {
        self == Encoding::Senml
    }

    /// Whether a message cannot be read without its type.
    pub fn needs_schema(self) -> bool {
        match self {
            Encoding::Cdr | Encoding::Ros1 | Encoding::Protobuf | Encoding::Flatbuffers | Encoding::Avro => {
                true
            }
            Encoding::Json | Encoding::Row | Encoding::Cbor | Encoding::Msgpack | Encoding::Plain => false,
            Encoding::SparkplugB | Encoding::Senml | Encoding::Xml => false,
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The type of the messages of a topic, in the language of its encoding.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum MessageType {
    /// Of CDR: from ROS 2 `.msg` or OMG IDL.
    Cdr(Schema),
    /// Of ROS 1: from its definitions.
    Ros1(Schema),
    /// Of Protobuf: from a descriptor set.
    Protobuf(ProtobufType),
    /// Of FlatBuffers: from a binary schema.
    Flatbuffers(FlatbuffersType),
    /// Of Avro: from a schema in JSON.
    Avro(AvroType),
    /// Of Avro: each message names its schema, which comes from this source.
    Registered(Arc<dyn SchemaSource>),
}

impl MessageType {
    /// Whether both are the same definition.
    pub fn is_same(&self, other: &MessageType) -> bool {
        match (self, other) {
            (MessageType::Cdr(own), MessageType::Cdr(other))
            | (MessageType::Ros1(own), MessageType::Ros1(other)) => own == other,
            (MessageType::Protobuf(own), MessageType::Protobuf(other)) => {
                own.name() == other.name() && own.source() == other.source()
            }
            (MessageType::Flatbuffers(own), MessageType::Flatbuffers(other)) => {
                own.name() == other.name() && own.source() == other.source()
            }
            (MessageType::Avro(own), MessageType::Avro(other)) => {
                own.name() == other.name() && own.source() == other.source()
            }
            (MessageType::Registered(own), MessageType::Registered(other)) => Arc::ptr_eq(own, other),
            _ => false,
        }
    }

    /// Returns the full name.
    pub fn name(&self) -> &str {
        match self {
            MessageType::Cdr(schema) | MessageType::Ros1(schema) => schema.name(),
            MessageType::Protobuf(message_type) => message_type.name(),
            MessageType::Flatbuffers(message_type) => message_type.name(),
            MessageType::Avro(message_type) => message_type.name(),
            MessageType::Registered(source) => source.place(),
        }
    }

    /// Returns the encoding of its messages.
    pub fn encoding(&self) -> Encoding {
        match self {
            MessageType::Cdr(_) => Encoding::Cdr,
            MessageType::Ros1(_) => Encoding::Ros1,
            MessageType::Protobuf(_) => Encoding::Protobuf,
            MessageType::Flatbuffers(_) => Encoding::Flatbuffers,
            MessageType::Avro(_) | MessageType::Registered(_) => Encoding::Avro,
        }
    }
}
