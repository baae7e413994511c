//! The fields of a projection as a tree: what to do at which place of a message.

use rondel_event::{Condition, Path, Projection, Quantifier, Read, Segment, Slot, Test, ValueType};

/// A place in a message and the places below it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields<'p> {
    pub(crate) keys: Vec<(&'p str, Fields<'p>)>,
    pub(crate) indices: Vec<(u32, Fields<'p>)>,
    pub(crate) wants: Vec<Want<'p>>,
}

/// What to do with the value at a place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Want<'p> {
    /// Write it to a slot.
    Value(ValueType, Slot),
    /// Note that it is there.
    Presence(Slot),
    /// Test the elements of the array that it is.
    Elements(Quantifier, &'p [Condition], Slot),
    /// Write its length to a slot.
    Length(Slot),
    /// It is the time of the event.
    EventTime,
    /// Test it, as this condition on an element.
    Test(u8, &'p Test),
}

impl<'p> Fields<'p> {
    /// The fields of a projection, and that with the time of the event.
    pub(crate) fn new(projection: &'p Projection, time: Option<&'p Path>) -> Fields<'p> {
        let mut root = Fields::default();
        for field in &projection.fields {
            root.at(&field.path).wants.push(match &field.read {
                Read::Value(value_type) => Want::Value(*value_type, field.slot),
                Read::Presence => Want::Presence(field.slot),
                Read::Elements(quantifier, conditions) => Want::Elements(*quantifier, conditions, field.slot),
                Read::Length => Want::Length(field.slot),
            });
        }
        if let Some(time) = time {
            root.at(time).wants.push(Want::EventTime);
        }
        root
    }

    /// The fields of an element that conditions test.
    pub(crate) fn of_conditions(conditions: &'p [Condition]) -> Fields<'p> {
        let mut root = Fields::default();
        for (bit, condition) in (0..).zip(conditions) {
            root.at(&condition.path).wants.push(Want::Test(bit, &condition.test));
        }
        root
    }

    fn at(&mut self, path: &'p Path) -> &mut Fields<'p> {
        path.0.iter().fold(self, |fields, segment| match segment {
            Segment::Key(key) => child(&mut fields.keys, &**key),
            Segment::Index(index) => child(&mut fields.indices, *index),
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.indices.is_empty() && self.wants.is_empty()
    }

    pub(crate) fn key(&self, name: &str) -> Option<&Fields<'p>> {
        self.keys.iter().find(|(key, _)| *key == name).map(|(_, fields)| fields)
    }

    /// How many values are read here and below.
    pub(crate) fn count(&self) -> usize {
        let below = |sum: usize, fields: &Fields<'_>| sum + fields.count();
        let keys = self.keys.iter().map(|(_, fields)| fields).fold(0, below);
        self.wants.len() + self.indices.iter().map(|(_, fields)| fields).fold(keys, below)
    }
}

fn child<K: PartialEq, V: Default>(children: &mut Vec<(K, V)>, key: K) -> &mut V {
    let found = children.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
        children.push((key, V::default()));
        children.len() - 1
    });
    &mut children[found].1
}
