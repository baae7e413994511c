//! Inputs: how the messages of a topic are read.

use std::sync::Arc;

use rondel_decode::plain::Words;
use rondel_decode::{Decoder, DecoderError, Encoding, LeftOut, MessageType};
use rondel_event::{Path, Projection, TimeUnit, TopicId};

/// Reading of the messages of a topic.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// The source of a message's time.
    pub time: TimeSource,
    /// The unit of times in a message that are plain numbers.
    pub time_unit: TimeUnit,
    /// The address of the topic, under which recordings may name it too.
    pub address: Option<String>,
    /// The encoding of the payloads that are [pushed](crate::Session::push); lines are always JSON.
    pub encoding: Encoding,
    /// The type of the messages, for encodings that need one.
    pub message_type: Option<Arc<MessageType>>,
    /// The words for true and false in plain payloads beside the usual ones.
    pub words: Arc<Words>,
    /// Whether texts that are numbers count as numbers, where numbers are read.
    pub number_texts: bool,
    /// Whether a field that a message leaves out has the default of its type, as in the JSON mapping of Protobuf. Otherwise it
    /// keeps its value.
    pub absent_is_default: bool,
    /// The types of publishers that have another one: see [`SessionPlan::set_types`](crate::SessionPlan::set_types).
    pub further: Vec<PublisherType>,
    /// Whether fields that the type does not have are unknown in its messages, as a further type has them.
    pub is_partial: bool,
}

/// A type that publishers of a topic have.
#[derive(Clone, Debug, Default)]
pub struct PublisherType {
    /// The encoding of their messages.
    pub encoding: Encoding,
    /// The type of their messages, for encodings that need one.
    pub message_type: Option<Arc<MessageType>>,
    /// The publisher in words, such as `channel 3`.
    pub publisher: String,
}

impl Input {
    /// Input of the events of a topic: they use the clock of its messages, except for an event that carries its time in
    /// a field.
    pub(crate) fn of_events(of: &Input) -> Input {
        let time = match of.time {
            TimeSource::Arrival => TimeSource::Arrival,
            TimeSource::Source | TimeSource::Field(_) => TimeSource::Source,
        };
        Input { time, ..Input::default() }
    }

    /// Whether the messages cannot be read before their type is known.
    pub fn awaits_type(&self) -> bool {
        self.message_type.is_none() && self.encoding.needs_schema()
    }

    /// Creates a decoder for messages on `topic` of which these fields are read.
    ///
    /// # Errors
    /// A type that is missing or of another encoding, and fields that the type does not have.
    pub fn decoder(&self, topic: TopicId, fields: &Projection) -> Result<Decoder, DecoderError> {
        if self.encoding == Encoding::Plain {
            let words = Arc::clone(&self.words);
            return Decoder::plain(words, topic, fields, self.time.field(), self.time_unit);
        }
        let message_type = self.message_type.as_deref();
        Decoder::new(self.encoding, message_type, topic, fields, self.time.field(), self.time_unit)
    }

    /// As [`Input::decoder`], for the fields that the type has; returns also those that it does not have.
    pub(crate) fn known_fields(
        &self,
        topic: TopicId,
        fields: &Projection,
    ) -> Result<PartialDecoder, DecoderError> {
        let (message_type, time) = (self.message_type.as_deref(), self.time.field());
        let (encoding, unit) = (self.encoding, self.time_unit);
        let (decoder, left_out) =
            Decoder::of_known_fields(encoding, message_type, topic, fields, time, unit)?;
        Ok(PartialDecoder { decoder, left_out })
    }
}

/// The source of a message's time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TimeSource {
    /// The time of arrival.
    Arrival,
    /// The time at which it was sent, where that is known; otherwise the time of arrival.
    #[default]
    Source,
    /// A field of the message.
    Field(Path),
}

impl TimeSource {
    /// The field that holds the time, if one does.
    pub fn field(&self) -> Option<&Path> {
        if let TimeSource::Field(path) = self { Some(path) } else { None }
    }
}

/// Decoder of a type, and the fields that the specification reads and the type does not have.
pub(crate) struct PartialDecoder {
    pub(crate) decoder: Decoder,
    pub(crate) left_out: Vec<LeftOut>,
}

impl PartialDecoder {
    /// Decoder of a type that has all fields.
    pub(crate) fn whole(decoder: Decoder) -> PartialDecoder {
        PartialDecoder { decoder, left_out: Vec::new() }
    }
}
