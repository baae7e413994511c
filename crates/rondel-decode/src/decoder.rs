//! One decoder for the payloads of a topic, whatever their encoding.

use std::fmt;

use rondel_event::{Block, Path, Projection, TimeUnit, Timestamp, TopicId};

use crate::cdr::{CdrDecoder, CdrError, CdrErrorKind, Check, PlanError};
use crate::json::{JsonDecoder, JsonError};
use crate::schema::Schema;

/// The encoding of payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// JSON.
    #[default]
    Json,
    /// CDR, the encoding of DDS and ROS 2.
    Cdr,
}

impl Encoding {
    /// All encodings with their names.
    pub const ALL: [(&'static str, Encoding); 2] = [("json", Encoding::Json), ("cdr", Encoding::Cdr)];

    /// Returns the encoding of this name.
    pub fn named(name: &str) -> Option<Encoding> {
        Encoding::ALL.iter().find(|(known, _)| *known == name).map(|(_, encoding)| *encoding)
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        Encoding::ALL.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }

    /// Returns whether its payloads can be read only with the definition of their type.
    pub fn needs_schema(self) -> bool {
        match self {
            Encoding::Json => false,
            Encoding::Cdr => true,
        }
    }
}

/// Why there is no decoder for a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecoderError {
    /// The encoding needs the definition of the type.
    NoSchema(Encoding),
    /// These fields cannot be read from the type.
    Fields(Vec<PlanError>),
}

/// Decodes the payloads of one topic.
#[derive(Clone, Debug)]
pub enum Decoder {
    /// JSON, which needs no schema.
    Json(JsonDecoder),
    /// CDR, by the schema of its type.
    Cdr(CdrDecoder),
}

/// Why a payload is refused.
#[derive(Clone, Debug, PartialEq)]
pub enum DecodeError {
    /// It is not JSON, or its time is none.
    Json(JsonError),
    /// It is not a message of the type.
    Cdr(CdrError),
}

impl Decoder {
    /// Creates a decoder for messages on `topic`, of which the fields of `projection` are read. `time` names the field
    /// that holds the time of the event, and a time that is a plain number counts in `time_unit`.
    ///
    /// # Errors
    /// [`DecoderError`] if the encoding needs a schema and there is none, or the fields do not fit it.
    pub fn new(
        encoding: Encoding,
        schema: Option<&Schema>,
        topic: TopicId,
        projection: &Projection,
        time: Option<&Path>,
        time_unit: TimeUnit,
    ) -> Result<Decoder, DecoderError> {
        match (encoding, schema) {
            (Encoding::Json, _) => Ok(Decoder::Json(JsonDecoder::new(topic, projection, time, time_unit))),
            (Encoding::Cdr, Some(schema)) => {
                let decoder = CdrDecoder::new(topic, schema, projection, time, time_unit, Check::Prefix);
                decoder.map(Decoder::Cdr).map_err(DecoderError::Fields)
            }
            (Encoding::Cdr, None) => Err(DecoderError::NoSchema(encoding)),
        }
    }

    /// Adds the event that `payload` holds to the block, which must not be full. `time` is its time unless the
    /// payload holds one.
    ///
    /// # Errors
    /// [`DecodeError`] if the payload cannot be decoded; the block is as it was then.
    #[inline]
    pub fn decode(&mut self, payload: &[u8], time: Timestamp, block: &mut Block) -> Result<(), DecodeError> {
        match self {
            Decoder::Json(decoder) => decoder.decode(payload, time, block).map_err(DecodeError::Json),
            Decoder::Cdr(decoder) => decoder.decode(payload, time, block).map_err(DecodeError::Cdr),
        }
    }

    /// Returns how many values so far had another type than the program reads, or were out of its range.
    pub fn mistyped(&self) -> u64 {
        match self {
            Decoder::Json(decoder) => decoder.mistyped(),
            Decoder::Cdr(decoder) => decoder.mistyped(),
        }
    }
}

impl DecodeError {
    /// Returns whether it is only about the time of the event.
    pub fn is_about_time(&self) -> bool {
        match self {
            DecodeError::Json(error) => error.kind.is_about_time(),
            DecodeError::Cdr(error) => {
                matches!(error.kind, CdrErrorKind::TimeOutOfRange | CdrErrorKind::NotATime)
            }
        }
    }

    /// Returns the offset in the payload.
    pub fn offset(&self) -> usize {
        match self {
            DecodeError::Json(error) => error.offset,
            DecodeError::Cdr(error) => error.offset,
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Json(error) => error.fmt(f),
            DecodeError::Cdr(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DecodeError {}

impl fmt::Display for DecoderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecoderError::NoSchema(encoding) => {
                write!(
                    f,
                    "messages in {} can be read only with the definition of their type",
                    encoding.name()
                )
            }
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
