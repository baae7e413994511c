//! Decoder of the payloads of a topic in any encoding.

use std::fmt;
use std::sync::Arc;

use rondel_event::{Block, Path, Projection, Read, Slot, TimeUnit, Timestamp, TopicId};

use crate::avro::{AvroDecoder, RegistryDecoder};
use crate::binary::{BinaryDecoder, BinaryFormat};
use crate::cdr::{CdrDecoder, CdrError, CdrErrorKind, Check, PlanError, WideForm};
use crate::encoding::{Encoding, MessageType};
use crate::error::{MessageError, MessageErrorKind};
use crate::flatbuffers::FlatbuffersDecoder;
use crate::json::{JsonDecoder, JsonError};
use crate::plain::{PlainDecoder, Words};
use crate::protobuf::ProtobufDecoder;
use crate::senml::SenmlDecoder;
use crate::sink::{FirstMistyped, NoNumber, Refused};
use crate::sparkplug::SparkplugDecoder;
use crate::tables::{TableDecoder, TooManyElements};
use crate::xml::XmlDecoder;

/// Decodes the payloads of one topic.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Decoder {
    /// JSON, which needs no schema.
    Json(JsonDecoder),
    /// CDR, by the schema of its type.
    Cdr(CdrDecoder),
    /// The encoding of ROS 1, by the schema of its type.
    Ros1(CdrDecoder),
    /// Protobuf, by its message type.
    Protobuf(ProtobufDecoder),
    /// FlatBuffers, by its message type.
    Flatbuffers(FlatbuffersDecoder),
    /// Avro, by the type of its writer.
    Avro(Box<AvroDecoder>),
    /// Avro, by the schemas that the messages name.
    Registry(Box<RegistryDecoder>),
    /// CBOR or MessagePack, which need no schema.
    Binary(BinaryDecoder),
    /// Plain payloads, which need no schema.
    Plain(PlainDecoder),
    /// Metrics by Sparkplug B, whose names come with the messages.
    Sparkplug(Box<SparkplugDecoder>),
    /// Measurements by SenML, which need no schema.
    Senml(SenmlDecoder),
    /// XML, which needs no schema.
    Xml(XmlDecoder),
    /// Any other decoder, with tables of the elements of arrays.
    Tables(Box<TableDecoder>),
    /// No decoder yet: the type is not [resolved](Decoder::resolve).
    Awaiting(Box<AwaitingDecoder>),
}

/// Parameters of a decoder whose message type is not known yet.
#[derive(Clone, Debug)]
pub struct AwaitingDecoder {
    encoding: Encoding,
    topic: TopicId,
    projection: Projection,
    time: Option<Path>,
    time_unit: TimeUnit,
}

/// Reason why there is no decoder.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DecoderError {
    /// Messages in this encoding cannot be read without a type.
    NoType(Encoding),
    /// The type belongs to another encoding than the messages.
    OtherType(Encoding, Encoding),
    /// The type does not have these fields, or has them with another type.
    Fields(Vec<PlanError>),
}

/// A field that a decoder omits, because the message type does not have it with the type that the program reads.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// Slot of the field.
    pub slot: Slot,
    /// Whether the type has no such field; otherwise it has another type.
    pub is_missing: bool,
    /// Whether only the presence of the field is read.
    pub is_presence: bool,
}

/// Error in a payload.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The payload is not JSON, or its time is invalid.
    Json(JsonError),
    /// The payload is not a message of the type.
    Cdr(CdrError),
    /// The payload is not a message of its encoding and type, or its time is invalid.
    Message(MessageError),
    /// The type of the messages in this encoding is not known yet.
    NoType(Encoding),
}

impl Decoder {
    /// Creates a decoder for messages on `topic` that reads the fields of `projection`.
    ///
    /// `message_type` is required if [`Encoding::needs_schema`]. `time` is the path of the event time; without it the
    /// event has the time passed to [`Decoder::decode`]. Times that are plain numbers count in `time_unit`.
    ///
    /// # Errors
    /// The type is missing or of another encoding, or does not have some of the fields.
    pub fn new(
        encoding: Encoding,
        message_type: Option<&MessageType>,
        topic: TopicId,
        projection: &Projection,
        time: Option<&Path>,
        time_unit: TimeUnit,
    ) -> Result<Decoder, DecoderError> {
        if let (Encoding::Avro, Some(MessageType::Registered(source))) = (encoding, message_type) {
            // Tables of elements are those of the decoders of the schemas.
            let decoder = RegistryDecoder::new(topic, source, projection, time, time_unit);
            return Ok(Decoder::Registry(Box::new(decoder)));
        }
        let has_table = projection.fields.iter().any(|field| matches!(field.read, Read::Table(_)));
        if has_table && encoding != Encoding::Json {
            let decoder = TableDecoder::new(encoding, message_type, topic, projection, time, time_unit)?;
            return Ok(Decoder::Tables(Box::new(decoder)));
        }
        let binary = |format| {
            let decoder = BinaryDecoder::new(format, topic, projection, time, time_unit);
            decoder.map(Decoder::Binary).map_err(DecoderError::Fields)
        };
        match (encoding, message_type) {
            (Encoding::Json, None) => Ok(Decoder::Json(JsonDecoder::new(topic, projection, time, time_unit))),
            (Encoding::Row, None) => {
                Ok(Decoder::Json(JsonDecoder::of_rows(topic, projection, time, time_unit)))
            }
            (Encoding::Cbor, None) => binary(BinaryFormat::Cbor),
            (Encoding::Msgpack, None) => binary(BinaryFormat::Msgpack),
            (Encoding::Plain, None) => Decoder::plain(Arc::default(), topic, projection, time, time_unit),
            (Encoding::Senml, None) => {
                SenmlDecoder::new(topic, projection, time).map(Decoder::Senml).map_err(DecoderError::Fields)
            }
            (Encoding::Xml, None) => XmlDecoder::new(topic, projection, time, time_unit)
                .map(Decoder::Xml)
                .map_err(DecoderError::Fields),
            (Encoding::SparkplugB, None) => SparkplugDecoder::new(topic, projection, time)
                .map(|decoder| Decoder::Sparkplug(Box::new(decoder)))
                .map_err(DecoderError::Fields),
            (Encoding::Cdr, Some(MessageType::Cdr(schema))) => {
                CdrDecoder::new(topic, schema, projection, time, time_unit, Check::Trusted)
                    .map(Decoder::Cdr)
                    .map_err(DecoderError::Fields)
            }
            (Encoding::Ros1, Some(MessageType::Ros1(schema))) => {
                CdrDecoder::packed(topic, schema, projection, time, time_unit, Check::Trusted)
                    .map(Decoder::Ros1)
                    .map_err(DecoderError::Fields)
            }
            (Encoding::Protobuf, Some(MessageType::Protobuf(message_type))) => {
                ProtobufDecoder::new(topic, message_type, projection, time, time_unit)
                    .map(Decoder::Protobuf)
                    .map_err(DecoderError::Fields)
            }
            (Encoding::Flatbuffers, Some(MessageType::Flatbuffers(message_type))) => {
                FlatbuffersDecoder::new(topic, message_type, projection, time, time_unit)
                    .map(Decoder::Flatbuffers)
                    .map_err(DecoderError::Fields)
            }
            (Encoding::Avro, Some(MessageType::Avro(message_type))) => {
                AvroDecoder::new(topic, message_type, projection, time, time_unit)
                    .map(|decoder| Decoder::Avro(Box::new(decoder)))
                    .map_err(DecoderError::Fields)
            }
            (encoding, Some(found)) => Err(DecoderError::OtherType(encoding, found.encoding())),
            (encoding, None) => Err(DecoderError::NoType(encoding)),
        }
    }

    /// Like [`Decoder::new`], for plain payloads with these words for true and false.
    ///
    /// # Errors
    /// All fields except `value`.
    pub fn plain(
        words: Arc<Words>,
        topic: TopicId,
        projection: &Projection,
        time: Option<&Path>,
        time_unit: TimeUnit,
    ) -> Result<Decoder, DecoderError> {
        let decoder = PlainDecoder::new(topic, projection, time, time_unit, words);
        decoder.map(Decoder::Plain).map_err(DecoderError::Fields)
    }

    /// Like [`Decoder::new`], but reads only the fields that the type has. Returns also the omitted fields.
    ///
    /// # Errors
    /// Those of [`Decoder::new`], if the type has none of the fields in any form, or not the one with the event time.
    pub fn of_known_fields(
        encoding: Encoding,
        message_type: Option<&MessageType>,
        topic: TopicId,
        projection: &Projection,
        time: Option<&Path>,
        time_unit: TimeUnit,
    ) -> Result<(Decoder, Vec<LeftOut>), DecoderError> {
        let decoder =
            |fields: &Projection, time| Decoder::new(encoding, message_type, topic, fields, time, time_unit);
        let error = match decoder(projection, time) {
            Ok(decoder) => return Ok((decoder, Vec::new())),
            Err(error) => error,
        };
        let (mut known, mut left_out) = (Projection::default(), Vec::new());
        for field in &projection.fields {
            match decoder(&Projection { fields: vec![field.clone()] }, None) {
                Ok(_) => known.fields.push(field.clone()),
                Err(DecoderError::Fields(errors)) => {
                    let is_missing = errors.iter().all(PlanError::is_about_absence);
                    let is_presence = field.read == Read::Presence;
                    left_out.push(LeftOut { slot: field.slot, is_missing, is_presence });
                }
                Err(other) => return Err(other),
            }
        }
        let is_found = |field: &LeftOut| !field.is_missing;
        if known.fields.is_empty() && !projection.fields.is_empty() && !left_out.iter().any(is_found) {
            return Err(error);
        }
        Ok((decoder(&known, time)?, left_out))
    }

    /// Like [`Decoder::new`], for messages whose type is not known yet: until it is [resolved](Decoder::resolve), every
    /// payload is an error.
    pub fn awaiting(
        encoding: Encoding,
        topic: TopicId,
        projection: &Projection,
        time: Option<&Path>,
        time_unit: TimeUnit,
    ) -> Decoder {
        let (projection, time) = (projection.clone(), time.cloned());
        Decoder::Awaiting(Box::new(AwaitingDecoder { encoding, topic, projection, time, time_unit }))
    }

    /// Sets the type of the messages; does nothing if it is already known.
    ///
    /// # Errors
    /// The type belongs to another encoding, or does not have some of the fields. It is then still unknown.
    pub fn resolve(&mut self, message_type: &MessageType) -> Result<(), DecoderError> {
        if let Decoder::Awaiting(awaiting) = self {
            let AwaitingDecoder { encoding, topic, projection, time, time_unit } = &**awaiting;
            *self =
                Decoder::new(*encoding, Some(message_type), *topic, projection, time.as_ref(), *time_unit)?;
        }
        Ok(())
    }

    /// Adds the event in `payload` to the block, which must not be full. `time` is its time unless the
    /// payload contains one.
    ///
    /// # Errors
    /// [`DecodeError`] if the payload cannot be decoded; the block is then unchanged.
    #[inline]
    pub fn decode(&mut self, payload: &[u8], time: Timestamp, block: &mut Block) -> Result<(), DecodeError> {
        match self {
            Decoder::Json(decoder) => decoder.decode(payload, time, block).map_err(DecodeError::Json),
            Decoder::Cdr(decoder) => decoder.decode(payload, time, block).map_err(DecodeError::Cdr),
            Decoder::Ros1(decoder) => decoder.decode_packed(payload, time, block).map_err(DecodeError::Cdr),
            Decoder::Protobuf(decoder) => decoder.decode(payload, time, block).map_err(DecodeError::Message),
            Decoder::Flatbuffers(decoder) => {
                decoder.decode(payload, time, block).map_err(DecodeError::Message)
            }
            Decoder::Avro(decoder) => decoder.decode(payload, time, block).map_err(DecodeError::Message),
            Decoder::Registry(decoder) => decoder.decode(payload, time, block),
            Decoder::Binary(decoder) => decoder.decode(payload, time, block).map_err(DecodeError::Message),
            Decoder::Plain(decoder) => decoder.decode(payload, time, block).map_err(DecodeError::Message),
            Decoder::Sparkplug(decoder) => decoder.decode(payload, time, block).map_err(DecodeError::Message),
            Decoder::Senml(decoder) => decoder.decode(payload, time, block).map_err(DecodeError::Message),
            Decoder::Xml(decoder) => decoder.decode(payload, time, block).map_err(DecodeError::Message),
            Decoder::Tables(decoder) => decoder.decode(payload, time, block),
            Decoder::Awaiting(awaiting) => Err(DecodeError::NoType(awaiting.encoding)),
        }
    }

    /// Returns the counts of the values that could not be written so far, without those of tables.
    pub(crate) fn refused(&self) -> &Refused {
        match self {
            Decoder::Json(decoder) => decoder.refused(),
            Decoder::Cdr(decoder) | Decoder::Ros1(decoder) => decoder.refused(),
            Decoder::Protobuf(decoder) => decoder.refused(),
            Decoder::Flatbuffers(decoder) => decoder.refused(),
            Decoder::Avro(decoder) => decoder.refused(),
            Decoder::Binary(decoder) => decoder.refused(),
            Decoder::Plain(decoder) => decoder.refused(),
            Decoder::Sparkplug(decoder) => decoder.refused(),
            Decoder::Senml(decoder) => decoder.refused(),
            Decoder::Xml(decoder) => decoder.refused(),
            Decoder::Tables(decoder) => decoder.messages.refused(),
            Decoder::Registry(_) | Decoder::Awaiting(_) => &Refused::NONE,
        }
    }

    /// Returns a count of the values of messages and tables that could not be written so far.
    fn count(&self, of: impl Fn(&Refused) -> u64) -> u64 {
        let inner = match self {
            Decoder::Tables(decoder) => decoder.count(&of),
            Decoder::Registry(decoder) => decoder.decoders().map(|decoder| decoder.count_by(&of)).sum(),
            _ => 0,
        };
        of(self.refused()) + inner
    }

    /// Like [`Decoder::count`], for a decoder in another one.
    fn count_by(&self, of: &dyn Fn(&Refused) -> u64) -> u64 {
        self.count(of)
    }

    /// Returns the number of values so far of another type than the program reads, or out of its range.
    pub fn mistyped(&self) -> u64 {
        self.count(Refused::mistyped)
    }

    /// Returns the first value of another type so far, where it is known; its offset in CBOR, MessagePack and XML.
    pub fn first_mistyped(&self) -> Option<FirstMistyped> {
        match self {
            Decoder::Registry(decoder) => {
                decoder.decoders().filter_map(Decoder::first_mistyped).min_by_key(|first| first.time)
            }
            Decoder::Tables(decoder) => decoder.messages.first_mistyped(),
            Decoder::Binary(_) | Decoder::Xml(_) => self.refused().first_mistyped(),
            // Offsets are those in a message that a decoder has converted, or not known.
            _ => self.refused().first_mistyped().map(|first| FirstMistyped { offset: None, ..first }),
        }
    }

    /// Returns of the first value of another type in a [table](rondel_event::Table) the column of the table, and the field
    /// of it by its position.
    pub fn mistyped_member(&self) -> Option<(Slot, u16)> {
        match self {
            Decoder::Json(decoder) => decoder.mistyped_member(),
            Decoder::Tables(decoder) => decoder.mistyped_member(),
            _ => None,
        }
    }

    /// Returns the messages so far with more elements than a table holds; they are written as
    /// [`TableWriter::TOO_MANY`](rondel_event::TableWriter::TOO_MANY).
    pub fn too_many_elements(&self) -> Option<TooManyElements> {
        match self {
            Decoder::Tables(decoder) => decoder.too_many(),
            _ => None,
        }
    }

    /// Returns the number of NaN values so far; JSON has none, except in rows of tables.
    pub fn not_numbers(&self) -> u64 {
        self.count(Refused::not_numbers)
    }

    /// Returns the first text so far that is not a number although one is read.
    pub fn no_number(&self) -> Option<NoNumber> {
        self.refused().no_number()
    }

    /// Returns the number of messages so far whose form of wide strings was a guess, and the last such form.
    pub fn guessed_wide(&self) -> Option<(u64, WideForm)> {
        match self {
            Decoder::Cdr(decoder) | Decoder::Ros1(decoder) => decoder.guessed_wide(),
            Decoder::Tables(decoder) => decoder.messages.guessed_wide(),
            _ => None,
        }
    }

    /// Returns the number of array elements omitted so far from conditions and measures because they were NaN or null.
    pub fn left_out(&self) -> u64 {
        self.count(Refused::left_out)
    }

    /// Returns the slot of an integer beyond the signed 64-bit range, if one of the mistyped values is one.
    pub fn too_large(&self) -> Option<Slot> {
        match self {
            Decoder::Registry(decoder) => decoder.decoders().find_map(Decoder::too_large),
            Decoder::Tables(decoder) => decoder.messages.too_large(),
            _ => self.refused().too_large(),
        }
    }
}

impl DecodeError {
    /// Returns the offset in bytes of the invalid part of the payload.
    pub fn offset(&self) -> usize {
        match self {
            DecodeError::Json(error) => error.offset,
            DecodeError::Cdr(error) => error.offset,
            DecodeError::Message(error) => error.offset,
            DecodeError::NoType(_) => 0,
        }
    }

    /// Returns the path of the field, if it is known and not the message as a whole.
    pub fn path(&self) -> Option<&str> {
        match self {
            DecodeError::Json(_) | DecodeError::NoType(_) => None,
            DecodeError::Cdr(error) => Some(&*error.path),
            DecodeError::Message(error) => Some(&*error.path),
        }
        .filter(|path| !path.is_empty())
    }

    /// Whether the message is too large to be written.
    pub fn is_about_size(&self) -> bool {
        match self {
            DecodeError::Json(_) | DecodeError::NoType(_) => false,
            DecodeError::Cdr(error) => matches!(error.kind, CdrErrorKind::TooLarge(_)),
            DecodeError::Message(error) => matches!(error.kind, MessageErrorKind::TooLarge(_)),
        }
    }

    /// Whether the payload is well formed and holds several events: see [`senml::split`](crate::senml::split).
    pub fn is_about_series(&self) -> bool {
        matches!(self, DecodeError::Message(error) if error.kind == MessageErrorKind::Series)
    }

    /// Whether the payload is well formed, but its time cannot be used.
    pub fn is_about_time(&self) -> bool {
        match self {
            DecodeError::Json(error) => error.kind.is_about_time(),
            DecodeError::Cdr(error) => {
                matches!(error.kind, CdrErrorKind::NotATime | CdrErrorKind::TimeOutOfRange)
            }
            DecodeError::Message(error) => error.kind.is_about_time(),
            DecodeError::NoType(_) => false,
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Json(error) => error.fmt(f),
            DecodeError::Cdr(error) => error.fmt(f),
            DecodeError::Message(error) => error.fmt(f),
            DecodeError::NoType(encoding) => DecoderError::NoType(*encoding).fmt(f),
        }
    }
}

impl std::error::Error for DecodeError {}

impl fmt::Display for DecoderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecoderError::NoType(encoding) => {
                write!(f, "messages in {encoding} cannot be read without their type")
            }
            DecoderError::OtherType(encoding, found) if encoding.needs_schema() => {
                write!(f, "the type is one of {found}, but the messages are in {encoding}")
            }
            DecoderError::OtherType(encoding, _) => write!(f, "messages in {encoding} have no type"),
            DecoderError::Fields(errors) => {
                for (i, error) in errors.iter().enumerate() {
                    write!(f, "{}{error}", if i == 0 { "" } else { "; " })?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for DecoderError {}
