//! Avro: binary data without names or types, read by the schema of their writer.
//!
//! [`AvroSchema`] reads schemas in JSON, and an [`AvroDecoder`] compiles a plan from one of their types and the fields that
//! a program reads. A datum is walked once: every part is read or skipped in its order.
//!
//! | type | read as |
//! |---|---|
//! | `int`, `long` | `int`, `float`; `time` and `duration` in the unit of the topic |
//! | `float`, `double` | `float`; `time` and `duration` in the unit of the topic. NaN is invalid |
//! | `boolean`, `string`, `enum` | `bool`, `string`, `string`; text also as `time`: a date, or a number with a unit |
//! | `timestamp-…`, `local-timestamp-…`, `date` | `time`, whatever the unit of the topic; also as the number |
//! | `time-millis`, `time-micros` | `duration` since midnight; also as the number |
//! | `decimal` | `float`, the nearest one; with the scale 0 `int`. Beyond 128 bits it counts as another type |
//! | `bytes`, `fixed`, `duration` | their length |
//! | union | the value of its branch; null is unknown, and a branch of another type counts as mistyped |
//! | `array` | its elements by index or condition, its length |
//! | `map` | its values by key |
//!
//! Fields are found by their names in the schema of the writer, so that schemas with other fields before or behind them are
//! read alike. Aliases and defaults belong to the schema of a reader, and are ignored. Skipped parts are checked for their
//! structure only; a block that states its size is skipped as a whole.

mod json;
mod outline;
mod plan;
mod registry;
mod schema;
mod walk;
mod wire;

use std::sync::Arc;

use rondel_event::{Block, Path, Projection, TimeUnit, Timestamp, TopicId};

use crate::binary::{self, BinaryDecoder, BinaryFormat, put};
use crate::cdr::PlanError;
use crate::error::MessageError;
use crate::fields::Fields;
use crate::sink::{Refused, Sink};
pub(crate) use json::write_json;
use plan::{Compiler, Read};
pub(crate) use registry::write_registered;
pub use registry::{RegistryDecoder, SchemaFault, SchemaSource, unframe};
pub use schema::{AvroSchema, AvroType};
use walk::Walk;
use wire::Reader;

/// Length of the framing by which schema registries mark a message: a zero, and the id of its schema in four bytes.
pub const FRAMING: usize = 5;

/// Decodes the Avro payloads of one topic.
#[derive(Clone, Debug)]
pub struct AvroDecoder {
    topic: TopicId,
    message_type: AvroType,
    plan: Arc<Read>,
    time_unit: TimeUnit,
    /// Reads converted values.
    inner: BinaryDecoder,
    has_converted: bool,
    converted: Vec<u8>,
}

impl AvroDecoder {
    /// Creates a decoder for messages of this type on `topic` that reads the fields of `projection`.
    ///
    /// `time` is the path of the event time; without it the event has the time passed to [`AvroDecoder::decode`]. Times that
    /// are plain numbers count in `time_unit`.
    ///
    /// # Errors
    /// All fields that the type does not have, or has with another type.
    pub fn new(
        topic: TopicId,
        message_type: &AvroType,
        projection: &Projection,
        time: Option<&Path>,
        time_unit: TimeUnit,
    ) -> Result<AvroDecoder, Vec<PlanError>> {
        let mut compiler = Compiler::new(&message_type.types);
        let plan = Arc::new(compiler.read(message_type.root, &Fields::new(projection, time)));
        let Compiler { mut report, converted, .. } = compiler;
        let keys = converted.iter().map(|(name, fields)| (&**name, fields.clone())).collect();
        let rest = Fields { keys, ..Fields::default() };
        let inner = BinaryDecoder::of_fields(BinaryFormat::Cbor, topic, &rest, time_unit, &mut report);
        if !report.errors.is_empty() {
            return Err(report.errors);
        }
        let (message_type, has_converted) = (message_type.clone(), !converted.is_empty());
        Ok(AvroDecoder { topic, message_type, plan, time_unit, inner, has_converted, converted: Vec::new() })
    }

    /// Adds the event in `payload` to the block, which must not be full. `time` is its time unless the
    /// payload contains one.
    ///
    /// # Errors
    /// [`MessageError`] if the payload is no datum of the type, or its time is invalid; the block is then unchanged. A value
    /// of another branch of a union than is read is written as invalid (see [`Refused::mistyped`]).
    pub fn decode(&mut self, payload: &[u8], time: Timestamp, block: &mut Block) -> Result<(), MessageError> {
        let AvroDecoder { message_type, plan, inner, converted, .. } = self;
        converted.clear();
        if self.has_converted {
            put::open_map(converted);
        }
        let sink = Sink::begin(block, self.topic, time, self.time_unit);
        let mut walk =
            Walk { reader: Reader::new(payload), types: &message_type.types, sink, out: &mut *converted };
        let walked = walk.message(plan, message_type.root);
        let Walk { sink, .. } = walk;
        let result = match walked {
            Ok(()) if self.has_converted => {
                put::close(converted);
                // Offsets in the converted values say nothing about the payload.
                let of_payload = |error| MessageError { offset: 0, ..error };
                inner.complete(converted, sink).map_err(of_payload)
            }
            walked => sink.end(walked, inner.refused_mut()),
        };
        if converted.capacity() > binary::KEPT {
            *converted = Vec::new();
        }
        result
    }

    /// Returns the counts of the values that could not be written so far.
    pub fn refused(&self) -> &Refused {
        self.inner.refused()
    }
}
