//! Types of fixed size: the reach of a value from each position modulo 8.

use std::collections::BTreeMap;

use super::super::plan::Version;
use super::block::phases;
use crate::schema::{Definition, Extensibility, Schema, Type, TypeId};

/// Reaches of the types of a schema in one encoding, computed once.
#[derive(Default)]
pub(super) struct Reaches {
    known: BTreeMap<TypeId, Option<[u32; 8]>>,
}

/// Returns the size of a number, boolean, character, enumeration or bit mask.
pub(super) fn scalar(schema: &Schema, value_type: &Type) -> Option<u32> {
    match value_type {
        Type::Primitive(primitive) => Some(primitive.size()),
        Type::Named(id) => match schema.definition(*id) {
            Definition::Enum(enumeration) => Some(enumeration.holder().size()),
            Definition::Bitmask(mask) => Some(mask.holder().size()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the set of possible positions after a value.
pub(super) fn after(reach: &[u32; 8], before: u8) -> u8 {
    phases(before).fold(0, |set, phase| set | 1 << ((phase + reach[phase as usize]) % 8))
}

impl Reaches {
    /// Returns the reach of a value including padding before it; `None` if it depends on the value.
    pub(super) fn of(
        &mut self,
        schema: &Schema,
        version: Version,
        unstated: Extensibility,
        value_type: &Type,
    ) -> Option<[u32; 8]> {
        if let Some(size) = scalar(schema, value_type) {
            let align = version.align(size);
            return Some(std::array::from_fn(|phase| ((phase as u32).wrapping_neg() & (align - 1)) + size));
        }
        match value_type {
            Type::Array { element, dimensions } => {
                if version == Version::Two && !matches!(**element, Type::Primitive(_)) {
                    return None;
                }
                let element = self.of(schema, version, unstated, element)?;
                let count = dimensions.iter().fold(1, |count: u32, size| count.saturating_mul(*size));
                let reach = |phase: usize| u32::try_from(advance(&element, phase, u64::from(count))).ok();
                let mut reaches = [0; 8];
                for (phase, reached) in reaches.iter_mut().enumerate() {
                    *reached = reach(phase)?;
                }
                Some(reaches)
            }
            Type::Named(id) => {
                if let Some(known) = self.known.get(id) {
                    return *known;
                }
                let found = self.structure(schema, version, unstated, *id);
                self.known.insert(*id, found);
                found
            }
            _ => None,
        }
    }

    fn structure(
        &mut self,
        schema: &Schema,
        version: Version,
        unstated: Extensibility,
        id: TypeId,
    ) -> Option<[u32; 8]> {
        let Definition::Struct(structure) = schema.definition(id) else { return None };
        match structure.extensibility.unwrap_or(unstated) {
            Extensibility::Mutable => return None,
            Extensibility::Appendable if version == Version::Two => return None,
            _ => {}
        }
        let mut reaches = [0_u32; 8];
        for member in &structure.members {
            if member.optional {
                return None;
            }
            let member = self.of(schema, version, unstated, &member.member_type)?;
            for (phase, reached) in reaches.iter_mut().enumerate() {
                *reached = reached.checked_add(member[(phase + *reached as usize) % 8])?;
            }
        }
        Some(reaches)
    }
}

/// Returns the reach of `count` values from a position. After at most eight of them, their positions modulo 8 repeat.
#[inline]
pub(in crate::cdr) fn advance(reach: &[u32; 8], start: usize, count: u64) -> u64 {
    let mut at = start as u64;
    let mut seen: [Option<(u64, u64)>; 8] = [None; 8];
    let mut done = 0;
    while done < count {
        let phase = (at % 8) as usize;
        if let Some((before, position)) = seen[phase] {
            let (round, length) = (done - before, at - position);
            let rounds = (count - done) / round;
            at = at.saturating_add(rounds.saturating_mul(length));
            done += rounds * round;
            // Less than a period remains.
            while done < count {
                at = at.saturating_add(u64::from(reach[(at % 8) as usize]));
                done += 1;
            }
            break;
        }
        seen[phase] = Some((done, at));
        at += u64::from(reach[phase]);
        done += 1;
    }
    at - start as u64
}
