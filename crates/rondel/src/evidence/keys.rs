//! Evidence by key: an instance has moments of its own.

use std::collections::HashMap;

use rondel_event::{Block, Read, Slot, TopicId, ValueType};
use rondel_spec::Property;

use super::{Kept, value};
use crate::output::key_text;
use crate::specification::Specification;

/// Of so many instances evidence is kept. Violations of others have none.
const INSTANCES: usize = 10_000;

/// Where the messages of each topic have the keys of a property; empty without keys.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyPlaces {
    by_key: bool,
    topics: Vec<(TopicId, Vec<(Slot, ValueType)>)>,
}

/// Whom a message concerns.
pub(super) enum KeyOf {
    /// The instance of this key; of a property without keys, itself.
    One(String),
    /// All instances.
    All,
    /// Nobody: it has no key.
    None,
}

impl KeyPlaces {
    pub(super) fn new(specification: &Specification, property: &Property) -> KeyPlaces {
        let slice = property.slice.and_then(|slice| specification.spec.slices.get(slice.0 as usize));
        let Some(slice) = slice else { return KeyPlaces::default() };
        let mut topics: Vec<(TopicId, Vec<(Slot, ValueType)>)> = Vec::new();
        for key in &slice.keys {
            for (topic, path) in &key.fields {
                let read = Read::Value(key.value_type);
                let projection = specification.program.projections().get(topic.index());
                let mut places = projection.into_iter().flat_map(|projection| &projection.fields);
                let Some(field) = places.find(|f| f.path == *path && f.read == read) else { continue };
                let place = (field.slot, key.value_type);
                match topics.iter_mut().find(|(known, _)| known == topic) {
                    Some((_, places)) => places.push(place),
                    None => topics.push((*topic, vec![place])),
                }
            }
        }
        KeyPlaces { by_key: true, topics }
    }

    /// Whom the message in a row, which came on this topic, concerns.
    pub(super) fn key_of(&self, block: &Block, row: usize, topic: TopicId) -> KeyOf {
        if !self.by_key {
            return KeyOf::One(String::new());
        }
        let Some((_, places)) = self.topics.iter().find(|(known, _)| *known == topic) else {
            return KeyOf::All;
        };
        let keys: Option<Vec<_>> =
            places.iter().map(|(slot, value_type)| value(block, *slot, *value_type, row).flatten()).collect();
        keys.map_or(KeyOf::None, |keys| KeyOf::One(key_text(&keys)))
    }
}

/// The moments of all properties.
#[derive(Clone, Debug, Default)]
pub(super) struct Keeping {
    /// Of properties without keys; of the others what a new instance begins with.
    properties: Vec<Kept>,
    instances: HashMap<(usize, String), Kept>,
}

impl Keeping {
    /// For properties each with so many columns, and so many moments at most.
    pub(super) fn new(properties: impl Iterator<Item = (usize, usize)>) -> Keeping {
        let kept = |(columns, most)| Kept { now: vec![None; columns], most, ..Kept::default() };
        Keeping { properties: properties.map(kept).collect(), instances: HashMap::new() }
    }

    /// The moments of an instance; without a key, of the property itself.
    pub(super) fn of(&mut self, property: usize, key: &str) -> Option<&mut Kept> {
        if key.is_empty() {
            return self.properties.get_mut(property);
        }
        let at = (property, key.to_owned());
        if self.instances.len() >= INSTANCES && !self.instances.contains_key(&at) {
            return None;
        }
        let Kept { now, most, .. } = self.properties.get(property)?;
        let new = || Kept { now: now.clone(), most: *most, ..Kept::default() };
        Some(self.instances.entry(at).or_insert_with(new))
    }

    /// Those of all instances, and what new ones begin with.
    pub(super) fn all(&mut self, property: usize) -> impl Iterator<Item = &mut Kept> {
        let instances = self.instances.iter_mut().filter(move |((of, _), _)| *of == property);
        self.properties.get_mut(property).into_iter().chain(instances.map(|(_, kept)| kept))
    }
}
