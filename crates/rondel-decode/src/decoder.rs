//! One decoder for the payloads of a topic, whatever their encoding.

use std::fmt;

use rondel_event::{Block, Timestamp};

use crate::cdr::{CdrDecoder, CdrError};
use crate::json::{JsonDecoder, JsonError};

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

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Json(error) => error.fmt(f),
            DecodeError::Cdr(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DecodeError {}
