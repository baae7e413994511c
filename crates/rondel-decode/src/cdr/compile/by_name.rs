//! Elements identified by names: in themselves, or in another member.

use rondel_event::Quantifier;

use super::block::EVERYWHERE;
use super::{Compiler, PlanErrorKind};
use crate::cdr::plan::{ElementTest, FoundElement};
use crate::fields::Fields;
use crate::schema::{Extensibility, Member, Struct, Type};

/// Elements identified by the names in another member.
#[derive(Default)]
pub(super) struct ByName {
    pub(super) finds: Vec<(ElementTest, usize)>,
    pub(super) found: Vec<(usize, FoundElement)>,
}

impl Compiler<'_> {
    /// Checks that elements with names in another member can be read: both are arrays, and the names come first.
    pub(super) fn check_parallel(&mut self, structure: &Struct, fields: &Fields<'_>) {
        let extensibility = self.extensibility(structure.extensibility);
        for ((array, named), _) in &fields.parallel {
            let names = named.key().to_string();
            let place = |name: &str| structure.members.iter().position(|member| *member.name == *name);
            for member in [&*names, *array] {
                let found = place(member).map(|at| &structure.members[at]);
                let kind = match found {
                    None => {
                        let known = structure.members.iter().map(|member| member.name.clone()).collect();
                        PlanErrorKind::NoField(known)
                    }
                    Some(member) if member.optional => {
                        PlanErrorKind::Unsupported("an element of an optional array by names in another one")
                    }
                    Some(member) => match &member.member_type {
                        Type::Sequence { .. } => continue,
                        Type::Array { dimensions, .. } if dimensions.len() == 1 => continue,
                        _ => PlanErrorKind::NoElements,
                    },
                };
                self.below(member, |this| this.report.error(kind));
            }
            if extensibility == Extensibility::Mutable || place(&names) > place(array) {
                self.below(&format!("{array}{named}"), |this| {
                    this.report.error(PlanErrorKind::Unsupported("an element by names that stand behind it"));
                });
            }
        }
    }

    /// Records the searches for names in a member, and its elements with names in an earlier one. `first` is the index
    /// of the first position of the structure.
    pub(super) fn parallel_of(&mut self, member: &Member, fields: &Fields<'_>, first: usize) {
        let element = match &member.member_type {
            Type::Sequence { element, .. } | Type::Array { element, .. } => element,
            _ => return,
        };
        for (position, ((array, named), below)) in (first..).zip(&fields.parallel) {
            if named.key().to_string() == *member.name {
                let own = named.of_names();
                let conditions = std::slice::from_ref(&own.condition);
                let test = self.below(&member.name, |this| {
                    this.element_test(element, Quantifier::Any, conditions, None)
                });
                self.by_name.finds.push((test, position));
            }
            if **array == *member.name {
                let found = self.below(&member.name, |this| this.found(element, &named.to_string(), below));
                self.by_name.found.push((position, found));
            }
        }
    }

    /// Compiles the fields of a found element.
    pub(super) fn found(&mut self, element: &Type, written: &str, below: &Fields<'_>) -> FoundElement {
        let work = |this: &mut Self| this.part(EVERYWHERE, |this| this.value(element, Some(below)));
        let steps = self.below(written, work).into();
        let mut slots = Vec::new();
        below.slots(&mut slots);
        FoundElement { steps, slots: slots.into() }
    }
}
