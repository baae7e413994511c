//! Protocol Buffers: messages of numbered fields, read by their types.
//!
//! [`Descriptors`] reads message types from a `FileDescriptorSet` (with the feature `proto` also from `.proto` files),
//! and a [`ProtobufDecoder`] compiles a plan from one of them and the fields that a program reads. A message is walked
//! once: fields that are not read are skipped by their length, and only messages that lead to a field are entered.
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
//! A missing field without presence (proto3 without `optional`) has its default value: 0, false, an empty text. A
//! missing field with presence is unknown, also if it has a default value in proto2, and so are its members, elements
//! beyond a `repeated` field and missing entries of a `map`. If a field or oneof is repeated, the last occurrence
//! counts; messages are merged. A field with another wire type than its type counts as unknown. Groups are skipped.

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
use crate::sink::{Refused, Sink};
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
    /// Slots that a message may omit: they have no default in the outermost message.
    optional: Arc<[Slot]>,
    time_unit: TimeUnit,
    refused: Refused,
    words: Vec<u64>,
}

impl ProtobufDecoder {
    /// Creates a decoder for messages of this type on `topic` that reads the fields of `projection`.
    ///
    /// `time` is the path of the event time; without it the event has the time passed to [`ProtobufDecoder::decode`].
    /// Times that are plain numbers count in `time_unit`.
    ///
    /// # Errors
    /// All fields that the type does not have, or has with another type.
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

    /// Adds the event in `payload` to the block, which must not be full. `time` is its time unless the
    /// payload contains one.
    ///
    /// # Errors
    /// [`MessageError`] if the payload is no message, or its time is invalid; the block is then unchanged.
    pub fn decode(&mut self, payload: &[u8], time: Timestamp, block: &mut Block) -> Result<(), MessageError> {
        let sink = Sink::begin(block, self.topic, time, self.time_unit);
        let mut walk = Walk { sink, words: &mut self.words };
        let walked = walk.whole(&self.plan, Reader { bytes: payload, at: 0 });
        walk.sink.mark_missing(&self.optional);
        walk.sink.end(walked, &mut self.refused)?;
        Ok(())
    }

    /// Returns the counts of the values that could not be written so far.
    pub fn refused(&self) -> &Refused {
        &self.refused
    }
}
