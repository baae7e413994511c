//! Decoding: the bytes of a message into the typed slots of a [`Block`](rondel_event::Block).
//!
//! A decoder is made once from a [`Projection`](rondel_event::Projection), the fields that a program
//! reads, and then writes each message straight into a row. No I/O and no clock in here.
//!
//! - [`avro`]: Avro payloads of one topic, and their types.
//! - [`flatbuffers`]: FlatBuffers payloads of one topic, and their types.
//! - [`json`]: JSON payloads of one topic.
//! - [`lines`]: JSON lines, each a message with its topic and time.
//! - [`binary`]: CBOR and MessagePack payloads of one topic.
//! - [`cdr`]: messages of DDS and ROS 2, in every encoding of DDS-XTypes.
//! - [`plain`]: payloads of one topic that are one value as text.
//! - [`protobuf`]: Protobuf payloads of one topic, and their types.
//! - [`sparkplug`]: metrics of nodes and devices on one topic, by Sparkplug B.
//! - [`senml`]: lists of measurements of one topic, by RFC 8428.
//! - [`schema`]: types of messages, from ROS 2 `.msg`, OMG IDL and type objects of DDS.
//!
//! [`Decoder`] is one of these, chosen by an [`Encoding`]; [`MessageWriter`] writes whole messages as JSON.

pub mod avro;
pub mod binary;
pub mod cdr;
mod changes;
mod decoder;
mod elements;
mod encoding;
mod error;
mod fields;
pub mod flatbuffers;
pub mod json;
pub mod lines;
mod message;
mod outline;
mod parameters;
pub mod plain;
pub mod protobuf;
pub mod schema;
pub mod senml;
mod sink;
pub mod sparkplug;
mod tables;
mod topic_writer;
mod tree;
mod typed;
pub mod xml;

pub use cdr::{PlanError, PlanErrorKind};
pub use changes::{Change, ChangeKind};
pub use decoder::{DecodeError, Decoder, DecoderError, LeftOut};
pub use encoding::{Encoding, MessageType};
pub use error::{MessageError, MessageErrorKind};
pub use message::MessageWriter;
pub use outline::{NamedConstant, Outline, Part};
pub use parameters::Parameters;
pub use sink::{FirstMistyped, NoNumber, Refused};
pub use tables::TooManyElements;
pub use topic_writer::TopicWriter;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
