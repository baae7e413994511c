//! CBOR (RFC 8949) and MessagePack: self-describing messages of maps, arrays and values, like JSON.
//!
//! A [`BinaryDecoder`] walks over every message once, enters only the parts that lead to a field, and skips the rest by
//! its length. Maps have texts as keys, or integers, which a path names in decimal digits. Other keys, and values of
//! other types, are skipped. Missing fields are absent, as in JSON.
//!
//! | value | read as |
//! |---|---|
//! | integer, floating-point number (16, 32 and 64 bits) | `int` if it is whole, `float`; NaN is invalid |
//! | text, also in several parts | `string`, and as in JSON a time: a date, or a number with a unit |
//! | map `{sec, nanosec}`, number in the unit of the topic | `time`, `duration` |
//! | CBOR: number with tag 1 | `time` in seconds, whatever the unit of the topic |
//! | MessagePack: extension of type -1 | `time` |
//! | other tags of CBOR | their value, without the tag |
//! | null, undefined | invalid |
//! | integer beyond 64 bits, byte string, other simple values and extensions | present, but of another type |
//!
//! Skipped parts are checked only for their structure: a text is checked for UTF-8 where it is read. If a map repeats a
//! key, the last value counts.

pub(crate) mod cbor;
mod json;
mod msgpack;
mod plan;
pub(crate) mod put;
mod walk;

use std::sync::Arc;

use rondel_event::{Block, Path, Projection, Segment, TimeUnit, Timestamp, TopicId};

use crate::cdr::{PlanError, PlanErrorKind};
use crate::error::{Fault, MessageError, MessageErrorKind, Parsed};
use crate::fields::Fields;
use crate::sink::{Refused, Scalar, Sink};
use crate::typed::Report;
pub(crate) use json::write_json;
use plan::Node;
use walk::Walk;

/// Maximum size in bytes of a conversion buffer that is kept for the next message.
pub(crate) const KEPT: usize = 1 << 20;

/// Checks that every field begins with one of these members, which are all members of a message.
///
/// # Errors
/// The other fields.
pub(crate) fn check_members<'p>(
    fields: impl Iterator<Item = &'p Path>,
    members: &[&str],
) -> Result<(), Vec<PlanError>> {
    let is_other = |path: &&Path| match path.0.first() {
        Some(Segment::Key(key)) => !members.contains(&&**key),
        _ => true,
    };
    let error = |path: &Path| {
        let known = members.iter().map(|name| Box::from(*name)).collect();
        PlanError { path: path.to_string().into(), kind: PlanErrorKind::NoField(known) }
    };
    let errors: Vec<PlanError> = fields.filter(is_other).map(error).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// A self-describing encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryFormat {
    /// CBOR, RFC 8949.
    Cbor,
    /// MessagePack, with timestamps.
    Msgpack,
}

/// Decodes the CBOR or MessagePack payloads of one topic.
#[derive(Clone, Debug)]
pub struct BinaryDecoder {
    format: BinaryFormat,
    topic: TopicId,
    root: Arc<Node>,
    time_unit: TimeUnit,
    refused: Refused,
    /// Buffer to join the parts of a text.
    scratch: Vec<u8>,
}

impl BinaryDecoder {
    /// Creates a decoder for messages on `topic` that reads the fields of `projection`.
    ///
    /// `time` is the path of the event time; without it the event has the time passed to [`BinaryDecoder::decode`].
    /// Times that are plain numbers count in `time_unit`.
    ///
    /// # Errors
    /// An array whose elements have more than 64 conditions.
    pub fn new(
        format: BinaryFormat,
        topic: TopicId,
        projection: &Projection,
        time: Option<&Path>,
        time_unit: TimeUnit,
    ) -> Result<BinaryDecoder, Vec<PlanError>> {
        let mut report = Report::default();
        let fields = Fields::new(projection, time);
        let decoder = BinaryDecoder::of_fields(format, topic, &fields, time_unit, &mut report);
        if report.errors.is_empty() { Ok(decoder) } else { Err(report.errors) }
    }

    /// Creates a decoder that reads these fields, if it reports no error.
    pub(crate) fn of_fields(
        format: BinaryFormat,
        topic: TopicId,
        fields: &Fields<'_>,
        time_unit: TimeUnit,
        report: &mut Report,
    ) -> BinaryDecoder {
        let (root, refused) = (Arc::new(Node::new(fields, report)), Refused::default());
        BinaryDecoder { format, topic, root, time_unit, refused, scratch: Vec::new() }
    }

    /// Adds the event in `payload` to the block, which must not be full. `time` is its time unless the
    /// payload contains one.
    ///
    /// [`MessageError`] if the payload is not one value of the encoding, or its time is invalid; the block is then
    /// unchanged. A field of another type is written as invalid (see [`Refused::mistyped`]).
    pub fn decode(&mut self, payload: &[u8], time: Timestamp, block: &mut Block) -> Result<(), MessageError> {
        self.complete(payload, Sink::begin(block, self.topic, time, self.time_unit))
    }

    /// Like [`BinaryDecoder::decode`], for a row that was already begun.
    pub(crate) fn complete(&mut self, payload: &[u8], sink: Sink<'_>) -> Result<(), MessageError> {
        let scratch = std::mem::take(&mut self.scratch);
        let mut walk = Walk { reader: Reader::new(payload), sink, scratch };
        let walked = match self.format {
            BinaryFormat::Cbor => walk.message::<cbor::Cbor>(&self.root),
            BinaryFormat::Msgpack => walk.message::<msgpack::Msgpack>(&self.root),
        };
        self.scratch = walk.scratch;
        walk.sink.end(walked, &mut self.refused)?;
        Ok(())
    }

    /// Returns the counts of the values that could not be written so far.
    pub fn refused(&self) -> &Refused {
        &self.refused
    }

    /// Returns the counts for values that are written beside this decoder.
    pub(crate) fn refused_mut(&mut self) -> &mut Refused {
        &mut self.refused
    }
}

/// A position in a message.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'m> {
    bytes: &'m [u8],
    at: usize,
    /// Whether the last value was tagged as a number of seconds since 1970.
    is_epoch: bool,
}

/// The beginning of a value.
pub(crate) enum Token<'m> {
    /// The whole value.
    Scalar(Scalar<'m>),
    /// Elements, and their number; `None`: up to an end.
    Array(Option<u64>),
    /// Keys, each followed by its value.
    Map(Option<u64>),
    /// Text in several parts.
    OpenText,
    /// End of an array or map of indefinite length.
    End,
}

/// An encoding.
pub(crate) trait Format {
    /// Size of a value by its first byte, including it; 0 if the byte does not determine it.
    const SIZES: [u8; 256];

    /// First byte of an empty text, and the number of successive bytes that state further lengths.
    const SHORT_TEXT: (u8, u8);

    /// Reads the beginning of a value. A stated number of elements is at most the number of bytes that follow.
    fn token<'m>(reader: &mut Reader<'m>) -> Parsed<Token<'m>>;

    /// Skips `count` values.
    fn skip(reader: &mut Reader<'_>, count: u64, depth: u32) -> Parsed<()>;

    /// Skips the end of an array or map of indefinite length, if it is next.
    fn end(reader: &mut Reader<'_>) -> bool;

    /// Reads the parts of a text after [`Token::OpenText`].
    fn text_parts(reader: &mut Reader<'_>, text: &mut Vec<u8>) -> Parsed<()>;

    /// Reads the bytes of a value that is a byte string.
    fn bytes(reader: &mut Reader<'_>, bytes: &mut Vec<u8>) -> Parsed<()>;
}

impl<'m> Reader<'m> {
    /// Skips a value whose first byte states its size, if it is one and complete.
    #[inline(always)]
    fn skip_plain<F: Format>(&mut self) -> bool {
        let Some(first) = self.bytes.get(self.at) else { return false };
        let size = usize::from(F::SIZES[usize::from(*first)]);
        let is_plain = size > 0 && size <= self.bytes.len() - self.at;
        self.at += if is_plain { size } else { 0 };
        is_plain
    }

    /// Reads a text whose first byte states its length, if it is one and complete.
    #[inline(always)]
    fn short_text<F: Format>(&mut self) -> Option<&'m [u8]> {
        let (first, lengths) = F::SHORT_TEXT;
        let length = self.bytes.get(self.at)?.wrapping_sub(first);
        if length >= lengths {
            return None;
        }
        let start = self.at + 1;
        let text = self.bytes.get(start..start + usize::from(length))?;
        self.at = start + text.len();
        Some(text)
    }

    pub(crate) fn new(bytes: &'m [u8]) -> Reader<'m> {
        Reader { bytes, at: 0, is_epoch: false }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Returns a reader of the same message from an offset on.
    pub(crate) fn from(&self, at: usize) -> Reader<'m> {
        Reader { at, ..*self }
    }

    pub(crate) fn rest(&self) -> u64 {
        (self.bytes.len() - self.at) as u64
    }

    #[inline(always)]
    fn byte(&mut self) -> Parsed<u8> {
        let Some(&byte) = self.bytes.get(self.at) else { return Err(self.truncated()) };
        self.at += 1;
        Ok(byte)
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        let Some(&bytes) = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk()) else {
            return Err(self.truncated());
        };
        self.at += N;
        Ok(bytes)
    }

    /// Reads `length` bytes.
    #[inline(always)]
    fn take(&mut self, length: u64) -> Parsed<&'m [u8]> {
        if length > self.rest() {
            return Err(self.beyond(length));
        }
        let start = self.at;
        self.at += length as usize;
        Ok(&self.bytes[start..self.at])
    }

    /// Checks that `count` values, of at least one byte each, can follow.
    #[inline(always)]
    fn room(&self, count: u64) -> Parsed<()> {
        if count > self.rest() { Err(self.beyond(count)) } else { Ok(()) }
    }

    #[cold]
    fn truncated(&self) -> Box<Fault> {
        Fault::new(self.bytes.len(), MessageErrorKind::Truncated)
    }

    #[cold]
    fn beyond(&self, length: u64) -> Box<Fault> {
        Fault::new(self.at, MessageErrorKind::LengthBeyondEnd(length))
    }
}
