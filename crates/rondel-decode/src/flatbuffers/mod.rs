//! FlatBuffers: messages that are read in their place, by their types.
//!
//! [`BinarySchema`] reads message types from a binary schema (`.bfbs`), and a [`FlatbuffersDecoder`] compiles a plan
//! from one of them and the fields that a program reads. It follows offsets to these fields only, and checks every
//! offset and length on the way; what is not read is not looked at. Schemas as text (`.fbs`) are compiled first.
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
//! A number that is missing is its default value, unless the schema says `= null`; other fields that are missing
//! are unknown, and so are what is in them and the elements of a shorter vector. Vectors of unions are not read. A schema with a `file_identifier` demands it of messages of its
//! root type. A size before the message is part of a stream, not of the message, and not expected.

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
use crate::sink::{NoNumber, Refused, Sink};
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
    /// The slots that a message may leave out: they have no default in the outermost table.
    optional: Arc<[Slot]>,
    identifier: Option<[u8; 4]>,
    time_unit: TimeUnit,
    refused: Refused,
}

impl FlatbuffersDecoder {
    /// A decoder for messages of this type on `topic`, of which the fields of `projection` are read.
    ///
    /// `time` names the field that holds the time of the event; without it the time is the one given to
    /// [`FlatbuffersDecoder::decode`]. Times that are plain numbers count in `time_unit`.
    ///
    /// # Errors
    /// All fields that the type does not have, or that have another type.
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

    /// Adds the event that `payload` holds to the block, which must not be full. `time` is its time unless the
    /// payload holds one.
    ///
    /// # Errors
    /// [`MessageError`] when what is read of the payload is not where it should be, or its time is none; the block
    /// is as it was then.
    pub fn decode(&mut self, payload: &[u8], time: Timestamp, block: &mut Block) -> Result<(), MessageError> {
        let root = root(payload, self.identifier).map_err(|fault| fault.into_error())?;
        let sink = Sink::begin(block, self.topic, time, self.time_unit);
        let mut walk = Walk { buffer: Buffer(payload), sink };
        let walked = walk.table(&self.plan, root);
        walk.sink.mark_missing(&self.optional);
        walk.sink.end(walked, &mut self.refused)?;
        Ok(())
    }

    /// Returns how many values so far had no meaning in their type, or were out of the range of their column.
    pub fn mistyped(&self) -> u64 {
        self.refused.count
    }

    /// Returns how many numbers so far were NaN.
    pub fn not_numbers(&self) -> u64 {
        self.refused.not_numbers
    }

    /// Returns how many elements of arrays so far were NaN, and were left out.
    pub fn left_out(&self) -> u64 {
        self.refused.left_out
    }

    /// Returns the slot of an integer beyond the signed 64-bit range, if one was read so far.
    pub fn too_large(&self) -> Option<Slot> {
        self.refused.too_large()
    }

    /// Returns the first text so far that should be a number and is none.
    pub fn no_number(&self) -> Option<NoNumber> {
        self.refused.no_number
    }
}

/// The place of the root, of a message with the right identifier.
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
