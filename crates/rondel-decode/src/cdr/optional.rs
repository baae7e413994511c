//! Slots of fields that a message of a type may omit.

use rondel_event::Slot;

use super::plan::Version;
use crate::fields::Fields;
use crate::schema::{DISCRIMINATOR, Definition, Extensibility, Schema, Type};

/// Returns the slots of fields that a message need not have: in optional members, in members of types that may be
/// extended, in cases of unions, and in elements of sequences.
pub(super) fn optional_slots(
    schema: &Schema,
    version: Version,
    unstated: Extensibility,
    fields: &Fields<'_>,
) -> Box<[Slot]> {
    let mut search = Search { schema, version, unstated, slots: Vec::new() };
    search.structure(schema.root(), fields);
    search.slots.into()
}

struct Search<'s> {
    schema: &'s Schema,
    version: Version,
    /// Extensibility of types whose definition does not state it.
    unstated: Extensibility,
    slots: Vec<Slot>,
}

impl Search<'_> {
    fn value(&mut self, value_type: &Type, fields: &Fields<'_>) {
        match value_type {
            Type::Primitive(_) | Type::String { .. } => {}
            Type::Array { element, dimensions } => self.array(element, dimensions.len(), fields),
            Type::Sequence { .. } => {
                fields.indices.iter().chain(&fields.ends).for_each(|(_, below)| below.slots(&mut self.slots));
            }
            Type::Named(id) => match self.schema.definition(*id) {
                Definition::Struct(structure) => self.structure(structure, fields),
                Definition::Union(_) => {
                    let cases = fields.keys.iter().filter(|(key, _)| *key != DISCRIMINATOR);
                    cases.for_each(|(_, below)| below.slots(&mut self.slots));
                }
                Definition::Enum(_) | Definition::Bitmask(_) | Definition::Alias(_) => {}
            },
        }
    }

    fn array(&mut self, element: &Type, dimensions: usize, fields: &Fields<'_>) {
        if dimensions == 0 {
            return self.value(element, fields);
        }
        for (_, below) in fields.indices.iter().chain(&fields.ends) {
            self.array(element, dimensions - 1, below);
        }
    }

    fn structure(&mut self, structure: &crate::schema::Struct, fields: &Fields<'_>) {
        let may_lack = match structure.extensibility.unwrap_or(self.unstated) {
            Extensibility::Final => false,
            Extensibility::Appendable => self.version == Version::Two,
            Extensibility::Mutable => true,
        };
        if may_lack {
            return fields.slots(&mut self.slots);
        }
        for (key, below) in &fields.keys {
            match structure.members.iter().find(|member| &*member.name == *key) {
                Some(member) if member.optional => below.slots(&mut self.slots),
                Some(member) => self.value(&member.member_type, below),
                None => {}
            }
        }
    }
}
