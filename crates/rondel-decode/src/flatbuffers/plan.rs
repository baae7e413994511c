//! Plan of a decoder: the reads of each part of a message.

use rondel_event::Slot;

use super::schema::Number;
use crate::fields::Alternatives;
use crate::sink::{ElementTest, Scalar, Target};

/// Reads of a value.
#[derive(Debug)]
pub(super) enum Value {
    Number(Number, Box<[Target]>),
    /// An offset to a text.
    Text(Box<[Target]>),
    /// A structure in place.
    Struct(Box<StructPlan>),
    /// An offset to a structure, in a union.
    FarStruct(Box<StructPlan>),
    /// An offset to a table.
    Table(Box<TablePlan>),
    /// An offset to elements.
    Vector(Box<VectorPlan>),
    /// This number of elements in place.
    Array(Box<VectorPlan>, usize),
}

#[derive(Debug)]
pub(super) struct StructPlan {
    pub(super) size: usize,
    /// Targets for the presence of the structure.
    pub(super) present: Box<[Target]>,
    pub(super) time: Option<TimePlan>,
    pub(super) members: Box<[(usize, Box<str>, Value)]>,
}

#[derive(Debug)]
pub(super) struct TablePlan {
    pub(super) present: Box<[Target]>,
    pub(super) time: Option<TimePlan>,
    pub(super) fields: Box<[FieldPlan]>,
    pub(super) parallel: Box<[Parallel]>,
}

/// Element of a vector at the position of its name in another vector.
#[derive(Debug)]
pub(super) struct Parallel {
    /// Entries of both vectors in the table, each with the size of an element.
    pub(super) names: (u16, usize),
    pub(super) array: (u16, usize),
    /// Name of the second vector, for errors.
    pub(super) member: Box<str>,
    pub(super) element: NamedElement,
}

/// Element with a name.
#[derive(Debug)]
pub(super) struct NamedElement {
    /// Condition that an element has the name.
    pub(super) alternatives: Alternatives,
    pub(super) name: Value,
    pub(super) value: Value,
    /// Slots of its fields, which are unknown if the element lacks them.
    pub(super) slots: Box<[Slot]>,
}

#[derive(Debug)]
pub(super) struct FieldPlan {
    pub(super) entry: u16,
    pub(super) name: Box<str>,
    pub(super) action: Action,
}

#[derive(Debug)]
pub(super) enum Action {
    Value(Value),
    /// A number, and its default; without one, it is absent if it is missing.
    Number(Number, Box<[Target]>, Option<Scalar<'static>>),
    /// One of several types, by the number at another entry; with targets for its presence.
    Union {
        case: u16,
        present: Box<[Target]>,
        cases: Box<[(u8, Box<str>, Value)]>,
    },
}

#[derive(Debug)]
pub(super) struct VectorPlan {
    /// Size of an element in place.
    pub(super) size: usize,
    /// Targets for the vector as a whole: its length, and its presence.
    pub(super) whole: Box<[Target]>,
    pub(super) picks: Box<[(u32, Value)]>,
    /// Single elements by their positions from the end, from 1.
    pub(super) ends: Box<[(u32, Value)]>,
    pub(super) tests: Box<[ElementTest<Value>]>,
    /// Elements identified by a name that they contain.
    pub(super) named: Box<[NamedElement]>,
}

/// Seconds and nanoseconds.
#[derive(Debug)]
pub(super) struct TimePlan {
    /// Offset (or entry, in a table), type and default.
    pub(super) seconds: (u16, Number, i64),
    pub(super) nanos: (u16, Number, i64),
    pub(super) targets: Box<[Target]>,
}

impl TablePlan {
    /// Whether every message writes to the slot: a number with a default, or a time.
    pub(super) fn always_writes(&self, slot: Slot) -> bool {
        let writes = |targets: &[Target]| targets.iter().any(|target| target.slot() == Some(slot));
        let is_default = |field: &FieldPlan| match &field.action {
            Action::Number(_, targets, Some(_)) => writes(targets),
            _ => false,
        };
        self.fields.iter().any(is_default) || self.time.as_ref().is_some_and(|time| writes(&time.targets))
    }
}
