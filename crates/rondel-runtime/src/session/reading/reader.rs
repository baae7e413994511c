//! Reading the messages of all topics into the rows of a block.

use rondel_event::{Projection, TopicId};

use super::decoders::TopicDecoder;
use super::defaults::LineDefaults;
use crate::session::SessionPlan;
use crate::session::snapshot::saved::StartError;
use crate::specification::input::{Input, TimeSource};
use crate::specification::names::NamedTopics;

/// Decoders of all topics, with the values that come from outside of payloads.
pub(in crate::session) struct MessageReader {
    pub(in crate::session) decoders: Vec<TopicDecoder>,
    /// Values of fields that messages in lines leave out.
    pub(in crate::session) line_defaults: LineDefaults,
    /// Parameters of the addresses of messages.
    pub(in crate::session) named: NamedTopics,
    pub(in crate::session) inputs: Vec<Input>,
}

impl MessageReader {
    /// A reader of these fields.
    ///
    /// # Errors
    /// [`StartError`] when a topic cannot be decoded.
    pub(in crate::session) fn new(
        plan: &SessionPlan,
        projections: &[Projection],
    ) -> Result<MessageReader, StartError> {
        Ok(MessageReader {
            decoders: plan.decoders(projections)?,
            line_defaults: plan.line_defaults(projections),
            named: plan.named_topics(projections),
            inputs: plan.options.inputs.clone(),
        })
    }

    /// Source of the times of a topic.
    #[inline]
    pub(in crate::session) fn time_of(&self, topic: TopicId) -> &TimeSource {
        &self.inputs[topic.index()].time
    }

    /// Whether messages of a topic have their time in a field.
    #[inline]
    pub(in crate::session) fn has_time_field(&self, topic: TopicId) -> bool {
        self.time_of(topic).field().is_some()
    }

    /// Whether messages of some topic count at their arrival.
    pub(in crate::session) fn is_any_by_arrival(&self) -> bool {
        self.inputs.iter().any(|input| input.time == TimeSource::Arrival)
    }

    /// Whether messages of some topic have their time in a field.
    pub(in crate::session) fn has_any_time_field(&self) -> bool {
        self.inputs.iter().any(|input| input.time.field().is_some())
    }

    /// Number of values of another type in decoded messages.
    pub(in crate::session) fn mistyped(&self) -> u64 {
        self.decoders.iter().map(TopicDecoder::mistyped).sum()
    }
}
