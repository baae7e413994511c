//! FlatBuffers: messages read in place, by their types.
//!
//! [`BinarySchema`] reads message types from a binary schema (`.bfbs`), and a [`FlatbuffersDecoder`] compiles a plan
//! from one of them and the fields that a program reads. It only follows offsets to these fields, and checks every
//! offset and length on the way; other parts are not accessed. Schemas as text (`.fbs`) are compiled first.
//!
//! | field | read as |
//! |---|---|
//! | number | `int` (integers only) or `float`, `time` and `duration` in the unit of the topic |
//! | `bool`, `string` | `bool`, `string`; text also as `time`: a date, or a number with a unit |
//! | enumeration | `int`, or `string` with the name of its value; a value without a name is invalid, and counted |
//! | table or structure with integers `sec` and `nanosec` (or similar) | `time`, `duration` |
//! | vector, array of a structure | its elements by index, its length |
//! | `string` | its length in characters |
//! | union `u` | its members as `u.Case.member`; `u_type` as an enumeration |
//!
//! A missing number has its default value, unless the schema states `= null`; other missing fields are unknown, and so
//! are their members and the elements beyond a vector. Vectors of unions are not read. If a schema has a
//! `file_identifier`, messages of its root type must have it. A size before the message is part of a stream, not of the
//! message, and not expected.

mod buffer;
mod compile;
mod json;
mod outline;
mod plan;
mod schema;
mod text;
mod walk;

use std::sync::Arc;

use rondel_event::{Block, Path, Projection, Slot, TimeUnit, Timestamp, TopicId};

use crate::cdr::PlanError;
use crate::error::{Fault, MessageError, MessageErrorKind, Parsed};
use crate::fields::Fields;
use crate::sink::{Refused, Sink};
use crate::typed::Report;
use buffer::Buffer;
use compile::Compiler;
pub(crate) use json::write_json;
use plan::TablePlan;
pub use schema::{BinarySchema, FlatbuffersType};
use walk::Walk;

/// Decodes the FlatBuffers payloads of one topic.
#[derive(Clone, Debug)]
pub struct FlatbuffersDecoder {
    topic: TopicId,
    plan: Arc<TablePlan>,
    /// Slots that a message may omit: they have no default in the outermost table.
    optional: Arc<[Slot]>,
    identifier: Option<[u8; 4]>,
    time_unit: TimeUnit,
    refused: Refused,
}

impl FlatbuffersDecoder {
    /// Creates a decoder for messages of this type on `topic` that reads the fields of `projection`.
    ///
    /// `time` is the path of the event time; without it the event has the time passed to
    /// [`FlatbuffersDecoder::decode`]. Times that are plain numbers count in `time_unit`.
    ///
    /// # Errors
    /// All fields that the type does not have, or has with another type.
    pub fn new(
        topic: TopicId,
        message_type: &FlatbuffersType,
        projection: &Projection,
        time: Option<&Path>,
        time_unit: TimeUnit,
    ) -> Result<FlatbuffersDecoder, Vec<PlanError>> {
        let mut compiler = Compiler { types: &message_type.types, report: Report::default() };
        let fields = Fields::new(projection, time);
        let plan = Arc::new(compiler.table(message_type.root, &fields));
        if !compiler.report.errors.is_empty() {
            return Err(compiler.report.errors);
        }
        let mut optional = Vec::new();
        fields.slots(&mut optional);
        optional.retain(|slot| !plan.always_writes(*slot));
        let (optional, identifier) = (optional.into(), message_type.identifier());
        Ok(FlatbuffersDecoder { topic, plan, optional, identifier, time_unit, refused: Refused::default() })
    }

    /// Adds the event in `payload` to the block, which must not be full. `time` is its time unless the
    /// payload contains one.
    ///
    /// # Errors
    /// [`MessageError`] if a part of the payload that is read is invalid, or its time is; the block is then unchanged.
    pub fn decode(&mut self, payload: &[u8], time: Timestamp, block: &mut Block) -> Result<(), MessageError> {
        let root = root(payload, self.identifier).map_err(|fault| fault.into_error())?;
        let sink = Sink::begin(block, self.topic, time, self.time_unit);
        let mut walk = Walk { buffer: Buffer(payload), sink };
        let walked = walk.table(&self.plan, root);
        walk.sink.mark_missing(&self.optional);
        walk.sink.end(walked, &mut self.refused)?;
        Ok(())
    }

    /// Returns the counts of the values that could not be written so far.
    pub fn refused(&self) -> &Refused {
        &self.refused
    }
}

/// Returns the position of the root of a message, which must have the identifier.
#[inline(always)]
fn root(payload: &[u8], identifier: Option<[u8; 4]>) -> Parsed<usize> {
    let buffer = Buffer(payload);
    let root = buffer.follow(0)?;
    match identifier {
        Some(identifier) if buffer.array(4)? != identifier => {
            Err(Fault::new(4, MessageErrorKind::OtherIdentifier(identifier)))
        }
        _ => Ok(root),
    }
}
