//! Errors of plans and messages.

use std::fmt;
use std::sync::Arc;

use rondel_event::{Countable, ValueType};

/// Error in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CdrError {
    /// Offset in bytes of the invalid part of the message.
    pub offset: usize,
    /// Path of the field, with `[]` for an element; empty for the message as a whole.
    pub path: Arc<str>,
    /// The reason.
    pub kind: CdrErrorKind,
}

/// Reason why a message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CdrErrorKind {
    /// The message has fewer than four bytes.
    NoEncapsulation,
    /// The first two bytes are no encoding of CDR.
    UnknownEncapsulation(u16),
    /// The first two bytes are an encoding that the type does not have.
    WrongEncapsulation(u16),
    /// The message ends within the field.
    Truncated,
    /// The length extends beyond the end of the message, or of the structure around the field.
    LengthBeyondEnd(u32),
    /// The length exceeds the bound of the type.
    LengthAboveBound(u32),
    /// The text does not end with a zero byte.
    Unterminated,
    /// The text is not UTF-8, or not UTF-16.
    NotText,
    /// A boolean is neither 0 nor 1.
    NotABoolean(u8),
    /// The enumeration has no such value.
    NotInEnumeration(i32),
    /// The type has another member there.
    UnexpectedMember(u32),
    /// The member with this id is repeated.
    RepeatedMember(u32),
    /// The time of the event is out of range.
    TimeOutOfRange,
    /// The event time is no time: more nanoseconds than a second, or not a number.
    NotATime,
    /// The message is followed by further bytes.
    TrailingBytes,
    /// The message exceeds this number of bytes as JSON.
    TooLarge(usize),
    /// The member with this id is missing: the one selected by the discriminator, or the discriminator itself.
    MissingMember(u32),
    /// The type does not have a member that its writer marks as required to understand.
    MustUnderstand(u32),
}

impl fmt::Display for CdrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "field `{}`, ", self.path)?;
        }
        write!(f, "byte {}: {}", self.offset, self.kind)
    }
}

impl fmt::Display for CdrErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CdrErrorKind::NoEncapsulation => {
                f.write_str("the message is shorter than the four bytes that state its encoding")
            }
            CdrErrorKind::UnknownEncapsulation(_) => {
                f.write_str("the first two bytes name no encoding of CDR")
            }
            CdrErrorKind::WrongEncapsulation(id) => {
                write!(f, "the encoding {id:#06x} does not fit the extensibility of the type")
            }
            CdrErrorKind::Truncated => f.write_str("the message ends here"),
            CdrErrorKind::LengthBeyondEnd(length) => write!(f, "the length {length} reaches beyond the end"),
            CdrErrorKind::LengthAboveBound(length) => {
                write!(f, "the length {length} is above the bound of the type")
            }
            CdrErrorKind::Unterminated => f.write_str("the text does not end with a zero byte"),
            CdrErrorKind::NotText => f.write_str("not valid text"),
            CdrErrorKind::NotABoolean(byte) => write!(f, "the boolean is {byte}, neither 0 nor 1"),
            CdrErrorKind::NotInEnumeration(value) => write!(f, "{value} is not a value of the enumeration"),
            CdrErrorKind::UnexpectedMember(id) => write!(f, "another member follows, with the id {id}"),
            CdrErrorKind::RepeatedMember(id) => write!(f, "the member with the id {id} comes twice"),
            CdrErrorKind::TimeOutOfRange => f.write_str("the time lies beyond the years 1678 to 2262"),
            CdrErrorKind::NotATime => f.write_str("not a time"),
            CdrErrorKind::TooLarge(limit) => write!(f, "as JSON, the message has more than {limit} bytes"),
            CdrErrorKind::MissingMember(id) => write!(f, "the member with the id {id} is missing"),
            CdrErrorKind::MustUnderstand(id) => {
                write!(f, "the member with the id {id} must be understood, and the type has none")
            }
            CdrErrorKind::TrailingBytes => f.write_str("bytes follow after the last field"),
        }
    }
}

impl std::error::Error for CdrError {}

/// Reason why a field cannot be read, with its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// Path of the field; empty if the error concerns no field.
    pub path: Box<str>,
    /// The reason.
    pub kind: PlanErrorKind,
}

/// Reason why a field cannot be read from a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanErrorKind {
    /// The type has no such field; the existing ones, none for a value without fields.
    NoField(Vec<Box<str>>),
    /// The array has only this number of elements.
    NoElement(u32),
    /// The field has another type, which is named.
    OtherType(ValueType, Box<str>),
    /// The condition on an element does not fit its type, which is named.
    OtherCondition(Box<str>),
    /// The field is no array with elements to test.
    NoElements,
    /// The field has no length, or is not of the kind of which the length is read; its type is named.
    NoLength(Option<Countable>, Box<str>),
    /// The enumeration has no such constant.
    NoConstant(Box<str>),
    /// The type contains this part, which plans do not support.
    Unsupported(&'static str),
}

impl PlanError {
    /// Whether the type has no such field or element. A part of a value without fields counts as another type.
    pub(crate) fn is_about_absence(&self) -> bool {
        match &self.kind {
            PlanErrorKind::NoField(known) => !known.is_empty(),
            PlanErrorKind::NoElement(_) => true,
            _ => false,
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "field `{}`: ", self.path)?;
        }
        match &self.kind {
            PlanErrorKind::NoField(known) if known.is_empty() => {
                f.write_str("the message type has no such field: what it would be part of has no fields")
            }
            PlanErrorKind::NoField(known) => {
                f.write_str("the message type has no such field; there are ")?;
                for (i, name) in known.iter().take(12).enumerate() {
                    write!(f, "{}`{name}`", if i == 0 { "" } else { ", " })?;
                }
                if known.len() > 12 { write!(f, " and {} more", known.len() - 12) } else { Ok(()) }
            }
            PlanErrorKind::NoElement(size) => write!(f, "the array has {size} elements, counted from 0"),
            PlanErrorKind::OtherType(wanted, found) => {
                write!(f, "expected {wanted}, but the field is {found}")
            }
            PlanErrorKind::OtherCondition(found) => write!(f, "the condition does not fit the type, {found}"),
            PlanErrorKind::NoElements => f.write_str("the field is no array of one dimension"),
            PlanErrorKind::NoLength(Some(Countable::Array), found) => {
                write!(f, "expected an array, of which the length is read, but the field is {found}")
            }
            PlanErrorKind::NoLength(Some(Countable::Text), found) => {
                write!(f, "expected a text, of which the length is read, but the field is {found}")
            }
            PlanErrorKind::NoLength(None, found) => {
                write!(f, "expected an array or text, which have a length, but the field is {found}")
            }
            PlanErrorKind::NoConstant(name) => write!(f, "the enumeration has no constant `{name}`"),
            PlanErrorKind::Unsupported(what) => write!(f, "{what} cannot be read"),
        }
    }
}

impl std::error::Error for PlanError {}
