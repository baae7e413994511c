//! Messages in the framing of the schema registries: a zero, the id of the writer's schema in four bytes, and the datum.

use std::fmt;
use std::sync::Arc;

use rondel_event::{Block, Path, Projection, Slot, TimeUnit, Timestamp, TopicId};

use super::{AvroType, FRAMING, write_json};
use crate::decoder::{DecodeError, Decoder};
use crate::encoding::{Encoding, MessageType};
use crate::error::{Fault, MessageError, MessageErrorKind, Parsed};
use crate::message::Text;

/// Schemas by their ids, such as those of a registry.
pub trait SchemaSource: fmt::Debug + Send + Sync {
    /// Returns where the schemas come from, for messages.
    fn place(&self) -> &str;

    /// Returns the schema with an id, and may wait for it within a time limit, unless schemas are requested
    /// [ahead](SchemaSource::request). A source returns a limited number of schemas that are found, and always the same one
    /// for an id.
    ///
    /// # Errors
    /// The reason why there is none now.
    fn schema(&self, id: u32) -> Result<AvroType, SchemaFault>;

    /// Requests the schema with an id ahead of a message that names it, and waits for it within a time limit. From the first
    /// call on, [`schema`](SchemaSource::schema) never waits: it returns the schemas that were found, so that a decoder may be
    /// called under a lock. By default the same as `schema`.
    ///
    /// # Errors
    /// The reason why there is none now.
    fn request(&self, id: u32) -> Result<AvroType, SchemaFault> {
        self.schema(id)
    }
}

/// Reason why there is no schema for an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaFault {
    /// The registry does not answer in time.
    Unanswered,
    /// The registry refuses the user or the request.
    Refused,
    /// The registry does not know the id.
    Unknown,
    /// The answer is not an Avro schema.
    Invalid,
    /// There is no request now, since those before have given no schema.
    Paused,
    /// There are too many schemas.
    TooMany,
    /// The schema lacks all fields that are read, or has one of them with another type.
    OtherFields,
}

impl fmt::Display for SchemaFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SchemaFault::Unanswered => "the registry does not answer",
            SchemaFault::Refused => "the registry refuses the request",
            SchemaFault::Unknown => "the registry does not know it",
            SchemaFault::Invalid => "the answer of the registry is not an Avro schema",
            SchemaFault::Paused => "requests are paused after others without a schema",
            SchemaFault::TooMany => "there are too many schemas",
            SchemaFault::OtherFields => "its fields are not those that are read",
        })
    }
}

/// Returns the id of the schema of a message in the framing of the schema registries, and its datum.
pub fn unframe(payload: &[u8]) -> Option<(u32, &[u8])> {
    let (framing, datum) = payload.split_first_chunk::<FRAMING>()?;
    let [0, id @ ..] = framing else { return None };
    Some((u32::from_be_bytes(*id), datum))
}

/// Decodes the messages of one topic, each by the schema that its framing names.
#[derive(Clone, Debug)]
pub struct RegistryDecoder {
    topic: TopicId,
    source: Arc<dyn SchemaSource>,
    projection: Projection,
    time: Option<Path>,
    time_unit: TimeUnit,
    /// The decoders of known schemas, by ascending id.
    known: Vec<Known>,
    /// Index of the last one.
    last: usize,
}

/// A schema, and the reading of its messages.
#[derive(Clone, Debug)]
struct Known {
    id: u32,
    /// `None` if its fields are not those that are read.
    decoder: Option<Decoder>,
    /// Slots of fields that it does not have.
    missing: Box<[Slot]>,
}

impl RegistryDecoder {
    /// Creates a decoder for messages on `topic` that reads the fields of `projection`: see
    /// [`AvroDecoder::new`](super::AvroDecoder::new). Fields that a schema does not have are unknown in its messages.
    pub fn new(
        topic: TopicId,
        source: &Arc<dyn SchemaSource>,
        projection: &Projection,
        time: Option<&Path>,
        time_unit: TimeUnit,
    ) -> RegistryDecoder {
        let (source, projection, time) = (Arc::clone(source), projection.clone(), time.cloned());
        RegistryDecoder { topic, source, projection, time, time_unit, known: Vec::new(), last: 0 }
    }

    /// Adds the event in `payload` to the block: see [`AvroDecoder::decode`](super::AvroDecoder::decode).
    ///
    /// # Errors
    /// Also [`MessageErrorKind::NotFramed`] and [`MessageErrorKind::NoSchema`]; the block is then unchanged.
    pub fn decode(&mut self, payload: &[u8], time: Timestamp, block: &mut Block) -> Result<(), DecodeError> {
        let fault = |kind| DecodeError::Message(Fault::new(0, kind).into_error());
        let (id, datum) = unframe(payload).ok_or_else(|| fault(MessageErrorKind::NotFramed))?;
        let at = match self.known.get(self.last) {
            Some(known) if known.id == id => self.last,
            _ => self.find(id).map_err(|why| fault(MessageErrorKind::NoSchema(id, why)))?,
        };
        self.last = at;
        let Known { decoder: Some(decoder), missing, .. } = &mut self.known[at] else {
            return Err(fault(MessageErrorKind::NoSchema(id, SchemaFault::OtherFields)));
        };
        decoder.decode(datum, time, block).map_err(|error| match error {
            DecodeError::Message(error) => {
                DecodeError::Message(MessageError { offset: error.offset + FRAMING, ..error })
            }
            other => other,
        })?;
        if let Some(row) = block.len().checked_sub(1) {
            missing.iter().for_each(|slot| block.mark_present(*slot, 1 << row));
        }
        Ok(())
    }

    /// Returns the index of the decoder of a schema, which is added if it is new.
    #[cold]
    fn find(&mut self, id: u32) -> Result<usize, SchemaFault> {
        let at = match self.known.binary_search_by_key(&id, |known| known.id) {
            Ok(at) => return Ok(at),
            Err(at) => at,
        };
        let message_type = MessageType::Avro(self.source.schema(id)?);
        let (projection, time) = (&self.projection, self.time.as_ref());
        let found = Decoder::of_known_fields(
            Encoding::Avro,
            Some(&message_type),
            self.topic,
            projection,
            time,
            self.time_unit,
        );
        let known = match found {
            Ok((decoder, left_out)) if left_out.iter().all(|field| field.is_missing) => {
                let missing = left_out.iter().filter(|field| !field.is_presence).map(|field| field.slot);
                Known { id, decoder: Some(decoder), missing: missing.collect() }
            }
            _ => Known { id, decoder: None, missing: Box::default() },
        };
        self.known.insert(at, known);
        Ok(at)
    }

    /// Returns the decoders of the schemas so far.
    pub(crate) fn decoders(&self) -> impl Iterator<Item = &Decoder> {
        self.known.iter().filter_map(|known| known.decoder.as_ref())
    }
}

/// Writes a message in the framing of the registries as one JSON value.
pub(crate) fn write_registered(source: &dyn SchemaSource, payload: &[u8], text: &mut Text<'_>) -> Parsed<()> {
    let fault = |kind| Fault::new(0, kind);
    let (id, datum) = unframe(payload).ok_or_else(|| fault(MessageErrorKind::NotFramed))?;
    let of = source.schema(id).map_err(|why| fault(MessageErrorKind::NoSchema(id, why)))?;
    write_json(&of, datum, text)
}
