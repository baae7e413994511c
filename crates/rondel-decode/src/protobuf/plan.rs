//! Plan of a decoder: the reads of each field of a message.

use super::descriptor::Kind;
use crate::fields::Alternatives;
use crate::sink::{ElementTest, Scalar, Target};

/// Reads of a message.
///
/// State of the message while it is read is kept in a range of words: for an inner message, that it was begun; for a
/// repeated field, the number of elements; for a oneof, the last field; and two words for a time.
#[derive(Debug, Default)]
pub(super) struct MessagePlan {
    /// Targets for the presence of the message.
    pub(super) present: Box<[Target]>,
    pub(super) time: Option<TimePlan>,
    /// Fields by number, in ascending order.
    pub(super) fields: Box<[FieldPlan]>,
    /// Index of a field in the list by its number, from 1; 0 for others.
    pub(super) places: [u8; 32],
    /// Defaults of missing fields.
    pub(super) defaults: Box<[(Target, Scalar<'static>)]>,
    pub(super) first_word: usize,
    pub(super) words: usize,
}

#[derive(Debug)]
pub(super) struct FieldPlan {
    pub(super) number: u32,
    pub(super) name: Box<str>,
    pub(super) kind: Kind,
    /// Wire type of a value.
    pub(super) wire: u8,
    /// Word of its oneof.
    pub(super) oneof: Option<usize>,
    /// Word of the field, unless it is a single value without parts.
    pub(super) word: usize,
    pub(super) action: Action,
}

#[derive(Debug)]
pub(super) enum Action {
    /// A single value, of which the last occurrence counts; messages are merged.
    One(ValuePlan),
    Repeated(Box<Repeated>),
    Map(Box<MapPlan>),
    /// No read, but another field of its oneof is read.
    Replace,
}

/// Reads of a value.
#[derive(Debug)]
pub(super) enum ValuePlan {
    Scalar(Box<[Target]>),
    Message(Box<MessagePlan>),
}

#[derive(Debug, Default)]
pub(super) struct Repeated {
    /// Single elements, by index in ascending order.
    pub(super) picks: Box<[(u64, ValuePlan)]>,
    /// The last element: each one replaces the previous one.
    pub(super) last: Option<ValuePlan>,
    pub(super) tests: Box<[RepeatedTest]>,
    /// Elements identified by a name that they contain.
    pub(super) named: Box<[NamedElement]>,
    pub(super) lengths: Box<[Target]>,
}

/// Test of the elements of a repeated field.
#[derive(Debug)]
pub(super) struct RepeatedTest {
    pub(super) of: ElementTest<ValuePlan>,
    /// First of its words, of which there are `elements::WORDS`.
    pub(super) word: usize,
}

/// Element with a name.
#[derive(Debug)]
pub(super) struct NamedElement {
    /// Condition that an element has the name.
    pub(super) alternatives: Alternatives,
    pub(super) name: ValuePlan,
    pub(super) value: ValuePlan,
}

#[derive(Debug)]
pub(super) struct MapPlan {
    pub(super) key: Kind,
    pub(super) value: Kind,
    pub(super) lengths: Box<[Target]>,
    pub(super) entries: Box<[Entry]>,
}

/// An entry of a map that is read.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Box<str>,
    /// The name as a number, for keys of integers.
    pub(super) number: Option<i64>,
    pub(super) value: ValuePlan,
    /// Value of an entry without one.
    pub(super) default: Scalar<'static>,
}

/// A message of seconds and nanoseconds.
#[derive(Debug)]
pub(super) struct TimePlan {
    pub(super) seconds: (u32, Kind),
    pub(super) nanos: (u32, Kind),
    pub(super) form: TimeForm,
    pub(super) targets: Box<[Target]>,
    /// First of its two words.
    pub(super) word: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeForm {
    /// `google.protobuf.Timestamp`
    Timestamp,
    /// `google.protobuf.Duration`, whose nanoseconds have the sign of the seconds.
    Duration,
    /// Another message: a time or a duration.
    Either,
}

impl MessagePlan {
    #[inline(always)]
    pub(super) fn field(&self, number: u32) -> Option<&FieldPlan> {
        match self.places.get(number as usize) {
            Some(0) => None,
            Some(place) => self.fields.get(usize::from(*place) - 1),
            None => {
                let at = self.fields.binary_search_by_key(&number, |field| field.number).ok()?;
                Some(&self.fields[at])
            }
        }
    }
}
