//! A plan: what to read at which place of a message.

use rondel_event::{Quantifier, Slot};

use super::schema::Number;
use crate::fields::Alternatives;
use crate::sink::{Scalar, Target};

/// What is read at a place.
#[derive(Debug)]
pub(super) enum Value {
    Number(Number, Box<[Target]>),
    /// An offset to a text.
    Text(Box<[Target]>),
    /// A structure in its place.
    Struct(Box<StructPlan>),
    /// An offset to a structure, in a union.
    FarStruct(Box<StructPlan>),
    /// An offset to a table.
    Table(Box<TablePlan>),
    /// An offset to elements.
    Vector(Box<VectorPlan>),
    /// Elements in their place, of this number.
    Array(Box<VectorPlan>, usize),
}

#[derive(Debug)]
pub(super) struct StructPlan {
    pub(super) size: usize,
    /// Targets for the structure as a whole: that it is there.
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

/// The element of a vector at the position at which its name stands in another vector.
#[derive(Debug)]
pub(super) struct Parallel {
    /// The entries of both vectors in the table, and the sizes of their elements.
    pub(super) names: (u16, usize),
    pub(super) array: (u16, usize),
    /// The name of the second one, for errors.
    pub(super) member: Box<str>,
    pub(super) element: NamedElement,
}

/// The element with a name.
#[derive(Debug)]
pub(super) struct NamedElement {
    /// The condition that the name of an element is this one.
    pub(super) alternatives: Alternatives,
    pub(super) name: Value,
    pub(super) value: Value,
    /// The slots of its fields, which are unknown where the element lacks them.
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
    /// A number, and what it is if it is missing; `None` if it is absent then.
    Number(Number, Box<[Target]>, Option<Scalar<'static>>),
    /// One of several, by the number at another entry; and that one is there.
    Union {
        case: u16,
        present: Box<[Target]>,
        cases: Box<[(u8, Box<str>, Value)]>,
    },
}

#[derive(Debug)]
pub(super) struct VectorPlan {
    /// The size of an element in its place.
    pub(super) size: usize,
    /// For the vector as a whole: its length, and that it is there.
    pub(super) whole: Box<[Target]>,
    pub(super) picks: Box<[(u32, Value)]>,
    /// Single elements by their positions from the end, from 1.
    pub(super) ends: Box<[(u32, Value)]>,
    pub(super) tests: Box<[ElementTest]>,
    /// Elements by the names that they hold.
    pub(super) named: Box<[NamedElement]>,
}

#[derive(Debug)]
pub(super) struct ElementTest {
    pub(super) quantifier: Quantifier,
    pub(super) slot: Slot,
    pub(super) alternatives: Alternatives,
    /// The paths that are tested, where the element that decides is wanted.
    pub(super) names: Box<[Box<str>]>,
    pub(super) element: Value,
}

/// Seconds and nanoseconds.
#[derive(Debug)]
pub(super) struct TimePlan {
    /// The place (or the entry, in a table), the type, and what it is if it is missing.
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
