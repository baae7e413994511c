//! Publishers of a topic with another type than the subscription.
//!
//! The library matches publishers without a description of their type by its name alone: their samples come to the
//! reader of the subscription. Others need a reader of their own type, which is a separate subscription.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError};

use rondel_event::{NameId, TopicId, TypeIndex};

use super::base::Base;
use super::declared::Difference;
use super::described::AnnouncedType;
use super::{DeclaredTopic, RawType, Subscription, TopicQos, TopicType};
use crate::adapter::Receiver;

/// Limit of further readers of a topic: each has a thread and a cache.
const READERS: usize = 16;

/// Topic, name and type of all samples of a reader.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) topic: TopicId,
    /// Number of the name of the topic, if it matches a pattern.
    pub(super) name: Option<NameId>,
    /// Type, for a reader of publishers with another type.
    pub(super) of_type: TypeIndex,
    /// Number of readers of the topic that have a live publisher.
    pub(super) alive: Arc<AtomicU32>,
}

impl Part {
    pub(super) fn first(topic: TopicId, name: Option<NameId>) -> Part {
        Part { topic, name, of_type: TypeIndex::default(), alive: Arc::default() }
    }

    /// Whether the reader is not the first.
    pub(super) fn is_further(&self) -> bool {
        self.of_type != TypeIndex::default()
    }

    /// Records whether this reader has a live publisher. Returns whether that has changed for the topic.
    pub(super) fn note_alive(&self, is_alive: bool) -> bool {
        match is_alive {
            true => self.alive.fetch_add(1, Ordering::Relaxed) == 0,
            false => self.alive.fetch_sub(1, Ordering::Relaxed) == 1,
        }
    }
}

/// The receiver of a subscription, and the settings for reading its samples.
pub(super) struct Delivery<R: ?Sized> {
    pub(super) receiver: Arc<R>,
    pub(super) part: Part,
    pub(super) wants_types: bool,
    pub(super) raw: Option<RawType>,
    pub(super) qos: TopicQos,
}

impl<R: Receiver + ?Sized> Delivery<R> {
    /// Whether the reader ignores a publisher although there is no difference: further readers take only described
    /// types; publishers without a description come to the first reader.
    pub(super) fn leaves_out(&self, announced: &AnnouncedType) -> bool {
        self.part.is_further() && announced.described.is_none()
    }

    /// Returns the type of the samples of a publisher with another type; `None` if they are refused, which is counted
    /// and logged. If it `is_matched`, they come to this reader; otherwise another reader is created.
    pub(super) fn differs(
        &self,
        base: &mut Base,
        difference: Difference,
        is_matched: bool,
    ) -> Option<TypeIndex> {
        if self.part.is_further() {
            // Another reader takes it.
            return None;
        }
        let Difference { reason, schema } = difference;
        let schema = schema.filter(|_| self.wants_types);
        let found = schema.map(|schema| {
            let index = self.receiver.further_type(self.part.topic, "", &schema);
            index.map(|index| (index, schema))
        });
        match found {
            Some(Some((index, _))) if is_matched => return Some(index),
            Some(Some((index, schema))) => match self.open(base, index, *schema) {
                Ok(()) => return Some(index),
                Err(why) => base.refuse(&format!("{reason}; {why}")),
            },
            Some(None) => base.refuse(&format!("{reason}; messages with its definition cannot be decoded")),
            None => base.refuse(&reason),
        }
        self.wants_types.then_some(TypeIndex::UNREAD)
    }

    /// Creates a reader of a type, unless there is one.
    fn open(
        &self,
        base: &Base,
        of_type: TypeIndex,
        schema: rondel_decode::schema::Schema,
    ) -> Result<(), String> {
        let mut further = base.state.further.lock().unwrap_or_else(PoisonError::into_inner);
        if further.iter().any(|(known, _)| *known == of_type) {
            return Ok(());
        }
        if further.len() >= READERS {
            return Err(format!("there are {READERS} other types already"));
        }
        let raw = TopicType::Raw(self.raw.clone().unwrap_or_default());
        let subscription = Subscription::create(
            Arc::clone(&base.domain),
            &base.name,
            DeclaredTopic { topic_type: &raw, qos: &self.qos, schema: Some(&schema) },
            base.queue,
            Part { of_type, ..self.part.clone() },
            Arc::clone(&self.receiver),
        );
        further.push((of_type, subscription.map_err(|error| error.to_string())?));
        Ok(())
    }
}
