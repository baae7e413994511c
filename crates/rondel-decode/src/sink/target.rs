//! Targets of values: columns, the time of the event and conditions on elements.

use rondel_event::{Countable, Slot, Test, ValueType};

use crate::fields::Want;

/// Target of a value.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// Columns.
    Bool(u32),
    Int(u32),
    Float(u32),
    /// A column of floats, for numbers that are exact there.
    Exact(u32),
    Text(u32),
    Time(u32),
    Duration(u32),
    /// A column of numbers, which may be written as texts.
    Decimal(Box<Target>),
    /// A column of booleans, for the presence of the field.
    Present(u32),
    /// A column of integers: the number of elements, characters or bytes of a value of this kind.
    Length(u32, Option<Countable>),
    /// A column of booleans, for whether the number is NaN.
    IsNan(u32),
    /// A column of text, for the name of a constant: values in ascending order.
    Label(u32, Box<[(i64, Box<str>)]>),
    /// The time of the event.
    EventTime,
    /// A condition on an element, by its number.
    Test(u8, Test),
    /// A condition on an element, met by these integers in ascending order: the other constants of an enumeration.
    OneOf(u8, Box<[i64]>),
    /// The measured element.
    Element,
}

impl Target {
    /// Returns the target of a read; `None` for conditions on elements.
    pub(crate) fn new(want: &Want<'_>) -> Option<Target> {
        Some(match want {
            Want::Value(ValueType::Bool, Slot::Bool(column)) => Target::Bool(*column),
            Want::Value(ValueType::Int, Slot::Int(column)) => Target::Int(*column),
            Want::Value(ValueType::Float, Slot::Float(column)) => Target::Float(*column),
            Want::Exact(Slot::Float(column)) => Target::Exact(*column),
            Want::Value(ValueType::String, Slot::String(column)) => Target::Text(*column),
            Want::Value(ValueType::Time, Slot::Int(column)) => Target::Time(*column),
            Want::Value(ValueType::Duration, Slot::Int(column)) => Target::Duration(*column),
            Want::Presence(Slot::Bool(column)) => Target::Present(*column),
            Want::Length(Slot::Int(column), of) => Target::Length(*column, *of),
            Want::IsNan(Slot::Bool(column)) => Target::IsNan(*column),
            Want::Number(..) => Target::Decimal(Box::new(Target::new(&want.of_number())?)),
            Want::EventTime => Target::EventTime,
            Want::Test(bit, test) => Target::Test(*bit, (*test).clone()),
            Want::Element => Target::Element,
            Want::Value(..) | Want::Exact(_) | Want::Presence(_) => return None,
            Want::Length(..) | Want::IsNan(_) | Want::Elements(..) => return None,
        })
    }

    /// Returns the slot of the target, if it has one.
    pub(crate) fn slot(&self) -> Option<Slot> {
        Some(match self {
            Target::Bool(column) | Target::Present(column) | Target::IsNan(column) => Slot::Bool(*column),
            Target::Int(column) | Target::Length(column, _) => Slot::Int(*column),
            Target::Time(column) | Target::Duration(column) => Slot::Int(*column),
            Target::Float(column) | Target::Exact(column) => Slot::Float(*column),
            Target::Text(column) | Target::Label(column, _) => Slot::String(*column),
            Target::Decimal(number) => return number.slot(),
            Target::EventTime | Target::Test(..) | Target::OneOf(..) | Target::Element => return None,
        })
    }

    /// Whether a time is read.
    pub(crate) fn is_time(&self) -> bool {
        matches!(self, Target::Time(_) | Target::Duration(_) | Target::EventTime)
    }
}

/// Returns the target that is cleared if there is no array to test.
pub(crate) fn elements_target(slot: Slot) -> Option<Target> {
    match slot {
        Slot::Bool(column) => Some(Target::Bool(column)),
        Slot::Int(column) => Some(Target::Int(column)),
        Slot::Float(column) => Some(Target::Float(column)),
        // The deciding element.
        Slot::String(column) => Some(Target::Text(column)),
    }
}
