//! Histories per instance: each sees its own messages.

use std::borrow::Cow;
use std::collections::HashMap;

use rondel_event::{Block, Read, Slot, TopicId, ValueType};
use rondel_spec::{Property, Slice, Spec};

use super::history::{Message, Place};
use super::{Histories, KEPT, KEPT_OF_KEY, Kept};
use crate::specification::Specification;
use crate::text::parameters_text;

/// The number of instances whose histories are kept. Violations of others are not explained.
const INSTANCES: usize = 10_000;

/// Where the messages of each topic carry the parameters of a property; empty without parameters.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyPlaces {
    /// The topics with parameters, and the slots of these in a block.
    topics: Vec<(TopicId, Vec<(Slot, ValueType)>)>,
    /// The topics of which every instance sees the messages without parameters.
    pub(super) shared: Vec<TopicId>,
}

/// The instances that see a message.
pub(super) enum KeyOf {
    /// The instance with these parameters; empty for a property without parameters.
    One(String),
    /// All instances.
    All,
    /// No instance: the message lacks a parameter.
    None,
}

fn slice_of<'a>(spec: &'a Spec, property: &Property) -> Option<&'a Slice> {
    property.slice.and_then(|slice| spec.slices.get(slice.0 as usize))
}

impl KeyPlaces {
    /// The topics of a property with and without parameters. [`KeyPlaces::find`] adds the slots.
    pub(super) fn new(spec: &Spec, property: &Property) -> KeyPlaces {
        let Some(slice) = slice_of(spec, property) else { return KeyPlaces::default() };
        let fields = slice.keys.first().into_iter().flat_map(|key| &key.fields);
        let topics: Vec<_> = fields.map(|(topic, _)| (*topic, Vec::new())).collect();
        let mut shared = spec.topics_of_property(property);
        let mut whole = spec.whole_events(property.formula);
        whole.extend(slice.until.into_iter().flat_map(|until| spec.whole_events(until)));
        shared.retain(|topic| topics.iter().all(|(keyed, _)| keyed != topic) || whole.contains(topic));
        // A message with elements of several instances is shown as one that all see.
        let fields = slice.keys.iter().flat_map(|key| &key.fields);
        let of_elements = fields.filter(|(_, path)| path.of_each().is_some());
        shared.extend(of_elements.map(|(topic, _)| *topic));
        KeyPlaces { topics, shared }
    }

    /// Finds the slots in the compiled program.
    pub(super) fn find(&mut self, specification: &Specification, property: &Property) {
        let Some(slice) = slice_of(&specification.spec, property) else { return };
        for (topic, places) in &mut self.topics {
            let projection = specification.program.projections().get(topic.index());
            for key in &slice.keys {
                let read = Read::Value(key.value_type);
                let path = key.fields.iter().find(|(keyed, _)| keyed == topic).map(|(_, path)| path);
                let mut fields = projection.into_iter().flat_map(|projection| &projection.fields);
                let field = fields.find(|field| Some(&field.path) == path && field.read == read);
                places.extend(field.map(|field| (field.slot, key.value_type)));
            }
        }
    }

    /// Whether the property has parameters.
    pub(super) fn by_key(&self) -> bool {
        !self.topics.is_empty()
    }

    /// Whether the messages of a topic carry the parameters, wherever a field of it is read.
    pub(super) fn is_keyed(&self, topic: TopicId) -> bool {
        self.topics.iter().any(|(keyed, _)| *keyed == topic) && !self.shared.contains(&topic)
    }

    /// The instances that see the message of this topic in a row.
    pub(super) fn key_of(&self, block: &Block, row: usize, topic: TopicId) -> KeyOf {
        if !self.by_key() {
            return KeyOf::One(String::new());
        }
        let Some((_, places)) = self.topics.iter().find(|(known, _)| *known == topic) else {
            return KeyOf::All;
        };
        if places.is_empty() {
            return KeyOf::All;
        }
        let keys: Option<Vec<_>> =
            places.iter().map(|(slot, value_type)| block.value(*slot, *value_type, row).flatten()).collect();
        match keys {
            Some(keys) => KeyOf::One(parameters_text(&keys)),
            // An event of the topic as a whole.
            None if self.shared.contains(&topic) => KeyOf::All,
            None => KeyOf::None,
        }
    }
}

/// The histories of all properties and instances.
#[derive(Clone, Debug, Default)]
pub(super) struct Keeping {
    /// One entry per property; with parameters, it holds the histories that all instances share.
    properties: Vec<Kept>,
    instances: HashMap<(usize, String), Kept>,
}

impl Keeping {
    /// Empty histories of properties with these numbers of rows.
    pub(super) fn new(properties: impl Iterator<Item = usize>) -> Keeping {
        let properties = properties.map(|rows| Kept::new(rows, KEPT)).collect();
        Keeping { properties, instances: HashMap::new() }
    }

    /// The histories of an instance, or of a property without parameters; none beyond the limit.
    pub(super) fn of(&mut self, property: usize, key: &str) -> Option<&mut Kept> {
        let Keeping { properties, instances } = self;
        let all = properties.get_mut(property)?;
        if key.is_empty() {
            return Some(all);
        }
        let at = (property, key.to_owned());
        if instances.len() >= INSTANCES && !instances.contains_key(&at) {
            return None;
        }
        Some(instances.entry(at).or_insert_with(|| Kept::new(all.histories.len(), KEPT_OF_KEY)))
    }

    /// The histories that all instances of a property share.
    pub(super) fn all(&mut self, property: usize) -> &mut Kept {
        &mut self.properties[property]
    }

    /// The histories of an instance for a verdict about a place, if they are kept.
    pub(super) fn histories<'a>(
        &'a self,
        property: usize,
        key: &str,
        shared: &'a [bool],
        about: Place,
    ) -> Option<Histories<'a>> {
        let all = self.properties.get(property)?;
        let own = if key.is_empty() { all } else { self.instances.get(&(property, key.to_owned()))? };
        let ended = own.ended.iter().copied().rfind(|ended| *ended < about);
        Some(Histories { own, all, shared, ended })
    }

    /// The messages that an instance sees: its own after the previous instance ended, and the shared ones. Without
    /// parameters these are all messages.
    pub(super) fn messages<'a>(
        &self,
        property: usize,
        key: &str,
        all: &'a [Message],
        ended: Option<Place>,
    ) -> Cow<'a, [Message]> {
        let instance = self.instances.get(&(property, key.to_owned())).filter(|_| !key.is_empty());
        let Some((own, shared)) = instance.zip(self.properties.get(property)) else {
            return Cow::Borrowed(all);
        };
        let own = own.messages.all();
        let step = ended.and_then(|ended| ended.step());
        let own = &own[step.map_or(0, |step| own.partition_point(|message| message.step <= step))..];
        let mut messages = [own, shared.messages.all()].concat();
        messages.sort_unstable_by_key(|message| message.step);
        Cow::Owned(messages)
    }
}
