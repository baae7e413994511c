//! Protocol Buffers: messages of numbered fields, read by their types.
//!
//! [`Descriptors`] reads message types from a `FileDescriptorSet` (with the feature `proto` also from `.proto`
//! files), and a [`ProtobufDecoder`] compiles a plan from
//! one of them and the fields that a program reads. A message is walked once: fields that are not read are
//! passed by their length, and only messages that lead to a field are entered.
//!
//! | field | read as |
//! |---|---|
//! | number | `int` (integers only) or `float`, `time` and `duration` in the unit of the topic |
//! | `bool`, `string` | `bool`, `string`; text also as `time`: a date, or a number with a unit |
//! | enumeration | `int`, or `string` with the name of its value; a value without a name is invalid, and counted |
//! | `google.protobuf.Timestamp`, another message with integers `sec` and `nanosec` (or similar) | `time` |
//! | `google.protobuf.Duration`, another message with integers `sec` and `nanosec` (or similar) | `duration` |
//! | `repeated` | its elements by index, its length; packed or not |
//! | `map` | its values by key, integers and booleans as text; its length |
//! | `string`, `bytes` | its length in characters, or bytes |
//!
//! A field without presence (proto3 without `optional`) that does not come is its default value: 0, false, an
//! empty text. A field with presence that does not come is unknown, also with a default value in proto2, and so are
//! what is in it, elements of a shorter `repeated` and entries that a `map` does not have. Of a
//! field or oneof that comes several times, the last one counts; messages are merged. A field written in another
//! way than its type is an unknown one. Groups are passed.

mod compile;
mod descriptor;
mod json;
mod outline;
mod plan;
#[cfg(feature = "proto")]
mod text;
mod walk;
pub(crate) mod wire;

use std::sync::Arc;

use rondel_event::{Block, Path, Projection, Slot, TimeUnit, Timestamp, TopicId};

use crate::cdr::PlanError;
use crate::error::MessageError;
use crate::fields::Fields;
use crate::sink::{NoNumber, Refused, Sink};
use compile::Compiler;
pub use descriptor::{Descriptors, ProtobufType};
pub(crate) use json::write_json;
use plan::MessagePlan;
use walk::Walk;
use wire::Reader;

/// Decodes the Protobuf payloads of one topic.
#[derive(Clone, Debug)]
pub struct ProtobufDecoder {
    topic: TopicId,
    plan: Arc<MessagePlan>,
    /// The slots that a message may leave out: they have no default in the outermost message.
    optional: Arc<[Slot]>,
    time_unit: TimeUnit,
    refused: Refused,
    words: Vec<u64>,
}

impl ProtobufDecoder {
    /// A decoder for messages of this type on `topic`, of which the fields of `projection` are read.
    ///
    /// `time` names the field that holds the time of the event; without it the time is the one given to
    /// [`ProtobufDecoder::decode`]. Times that are plain numbers count in `time_unit`.
    ///
    /// # Errors
    /// All fields that the type does not have, or that have another type.
    pub fn new(
        topic: TopicId,
        message_type: &ProtobufType,
        projection: &Projection,
        time: Option<&Path>,
        time_unit: TimeUnit,
    ) -> Result<ProtobufDecoder, Vec<PlanError>> {
        let mut compiler = Compiler::new(&message_type.descriptors);
        let fields = Fields::new(projection, time);
        let plan = Arc::new(compiler.message(message_type.root, &fields));
        if !compiler.report.errors.is_empty() {
            return Err(compiler.report.errors);
        }
        let mut optional = Vec::new();
        fields.slots(&mut optional);
        optional.retain(|slot| plan.defaults.iter().all(|(target, _)| target.slot().as_ref() != Some(slot)));
        Ok(ProtobufDecoder {
            topic,
            plan,
            optional: optional.into(),
            time_unit,
            refused: Refused::default(),
            words: vec![0; compiler.words],
        })
    }

    /// Adds the event that `payload` holds to the block, which must not be full. `time` is its time unless the
    /// payload holds one.
    ///
    /// # Errors
    /// [`MessageError`] when the payload is no message, or its time is none; the block is as it was then.
    pub fn decode(&mut self, payload: &[u8], time: Timestamp, block: &mut Block) -> Result<(), MessageError> {
        let sink = Sink::begin(block, self.topic, time, self.time_unit);
        let mut walk = Walk { sink, words: &mut self.words };
        let walked = walk.whole(&self.plan, Reader { bytes: payload, at: 0 });
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
