//! The messages of a topic as JSON, one after another.

use std::sync::Arc;

use rondel_event::{NameId, Timestamp};

use crate::decoder::{DecodeError, DecoderError};
use crate::encoding::{Encoding, MessageType};
use crate::json::JsonForm;
use crate::message::{MessageWriter, Text};
use crate::senml;
use crate::sparkplug::SparkplugWriter;

/// Writes the messages of a topic as JSON in the order in which they come, since what one means may depend on those before.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TopicWriter {
    /// Each message means the same whatever came before.
    Single(MessageWriter),
    /// Metrics by Sparkplug B, whose names come with births.
    Sparkplug(Box<SparkplugWriter>),
    /// Measurements by SenML, whose times may be relative to that of arrival.
    Senml(JsonForm),
}

impl TopicWriter {
    /// A writer for messages in this encoding, and of this type where the encoding needs one.
    ///
    /// # Errors
    /// A type that is missing or of another encoding.
    pub fn new(
        encoding: Encoding,
        message_type: Option<Arc<MessageType>>,
        form: JsonForm,
    ) -> Result<TopicWriter, DecoderError> {
        match (encoding, &message_type) {
            (Encoding::SparkplugB, None) => Ok(TopicWriter::Sparkplug(Box::new(SparkplugWriter::new(form)))),
            (Encoding::Senml, None) => Ok(TopicWriter::Senml(form)),
            _ => MessageWriter::new(encoding, message_type, form).map(TopicWriter::Single),
        }
    }

    /// Reads commands of Sparkplug as messages of the node.
    pub fn read_commands(&mut self) {
        if let TopicWriter::Sparkplug(writer) = self {
            writer.read_commands();
        }
    }

    /// Sets the name of the topic of the following messages, if the encoding [reads it](Encoding::reads_name). `name`
    /// returns the name with a number, and is called when the number is first used.
    pub fn set_name<N: AsRef<str>>(&mut self, id: Option<NameId>, name: impl FnOnce(NameId) -> Option<N>) {
        if let TopicWriter::Sparkplug(writer) = self {
            writer.set_name(id, name);
        }
    }

    /// Writes a message that came at this time after what is in `out`, in at most `limit` bytes.
    ///
    /// # Errors
    /// As [`MessageWriter::write`]; of Sparkplug also a metric that no birth has named.
    pub fn write(
        &mut self,
        payload: &[u8],
        arrival: Timestamp,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), DecodeError> {
        match self {
            TopicWriter::Single(writer) => writer.write(payload, limit, out),
            TopicWriter::Sparkplug(writer) => writer.write(payload, arrival, limit, out),
            TopicWriter::Senml(form) => {
                Text::write(limit, *form, out, |text| senml::write_json(payload, Some(arrival), text))
                    .map_err(DecodeError::Message)
            }
        }
    }

    /// Returns the messages that a payload that came at this time is, if it holds several events: see [`senml::split`].
    pub fn split(&self, payload: &[u8], arrival: Timestamp) -> Option<Vec<Vec<u8>>> {
        match self {
            TopicWriter::Senml(_) => senml::split(payload, arrival),
            TopicWriter::Single(_) | TopicWriter::Sparkplug(_) => None,
        }
    }

    /// Writes the key of an instance: see [`MessageWriter::write_key`].
    ///
    /// # Errors
    /// As [`MessageWriter::write_key`].
    pub fn write_key(
        &self,
        payload: &[u8],
        is_message: bool,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<bool, DecodeError> {
        match self {
            TopicWriter::Single(writer) => writer.write_key(payload, is_message, limit, out),
            TopicWriter::Sparkplug(_) | TopicWriter::Senml(_) => Ok(false),
        }
    }
}
