//! A plan: what to do with which field of a message.

use rondel_event::{Quantifier, Slot};

use super::descriptor::Kind;
use crate::fields::Alternatives;
use crate::sink::{Scalar, Target};

/// What is read of a message.
///
/// What must be remembered of the message while it is read is kept in a range of words: of an inner message that it
/// was begun, of a repeated field how many elements came, of a oneof the field that came last; and two for a time.
#[derive(Debug, Default)]
pub(super) struct MessagePlan {
    /// Targets for the message as a whole: that it is there.
    pub(super) present: Box<[Target]>,
    pub(super) time: Option<TimePlan>,
    /// By number, in ascending order.
    pub(super) fields: Box<[FieldPlan]>,
    /// The place of a field in the list by its number, from 1; 0 for others.
    pub(super) places: [u8; 32],
    /// What the fields are that do not come.
    pub(super) defaults: Box<[(Target, Scalar<'static>)]>,
    pub(super) first_word: usize,
    pub(super) words: usize,
}

#[derive(Debug)]
pub(super) struct FieldPlan {
    pub(super) number: u32,
    pub(super) name: Box<str>,
    pub(super) kind: Kind,
    /// How a value is written.
    pub(super) wire: u8,
    /// The word of its oneof.
    pub(super) oneof: Option<usize>,
    /// Its own word, unless it is one value without parts.
    pub(super) word: usize,
    pub(super) action: Action,
}

#[derive(Debug)]
pub(super) enum Action {
    /// One value, the last one; messages are merged.
    One(ValuePlan),
    Repeated(Box<Repeated>),
    Map(Box<MapPlan>),
    /// Nothing, but another field of its oneof is read.
    Replace,
}

/// What is read of a value.
#[derive(Debug)]
pub(super) enum ValuePlan {
    Scalar(Box<[Target]>),
    Message(Box<MessagePlan>),
}

#[derive(Debug, Default)]
pub(super) struct Repeated {
    /// Single elements, by index in ascending order.
    pub(super) picks: Box<[(u64, ValuePlan)]>,
    /// The last element: each one that comes replaces the one before.
    pub(super) last: Option<ValuePlan>,
    pub(super) tests: Box<[ElementTest]>,
    /// Elements by the names that they hold.
    pub(super) named: Box<[NamedElement]>,
    pub(super) lengths: Box<[Target]>,
}

#[derive(Debug)]
pub(super) struct ElementTest {
    pub(super) quantifier: Quantifier,
    pub(super) slot: Slot,
    pub(super) alternatives: Alternatives,
    /// The paths that are tested, where the element that decides is wanted.
    pub(super) names: Box<[Box<str>]>,
    pub(super) element: ValuePlan,
    /// The first of its words, `elements::WORDS`.
    pub(super) word: usize,
}

/// The element with a name.
#[derive(Debug)]
pub(super) struct NamedElement {
    /// The condition that the name of an element is this one.
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
    /// The name as the number that a key of integers is.
    pub(super) number: Option<i64>,
    pub(super) value: ValuePlan,
    /// What the value is if the entry has none.
    pub(super) default: Scalar<'static>,
}

/// A message of seconds and nanoseconds.
#[derive(Debug)]
pub(super) struct TimePlan {
    pub(super) seconds: (u32, Kind),
    pub(super) nanos: (u32, Kind),
    pub(super) form: TimeForm,
    pub(super) targets: Box<[Target]>,
    /// The first of its two words.
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
