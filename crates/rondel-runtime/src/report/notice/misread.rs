//! Values that could not be read as what the specification reads.

use rondel_decode::NoNumber;
use rondel_event::{Countable, Field, Path, Projection, Read, Slot, TopicId};
use serde_json::json;

use super::Notice;
use crate::text::counted;

/// The reason for which an integer of an undeclared field is unknown, behind the name of the field.
pub(crate) const INEXACT: &str = "has an integer beyond 2^53, which is not exact while the type of the field is not declared: declare it as `int`";

/// The first value that could not be read as what the specification reads, and its field.
pub(crate) enum Misread<'p> {
    /// An integer of an undeclared field that a double rounds.
    Inexact(&'p Path),
    /// An integer beyond 64 bits with a sign.
    TooLarge(&'p Path),
    /// A text that should be a number.
    Text(&'p Path, NoNumber),
    /// A value of another type in an element of an array.
    Element(&'p Field),
    /// Any other value of another type.
    Field(&'p Field),
}

/// The field of a projection in a slot, or if a position in a table is given, the field of the table there.
pub(crate) fn field_in(projection: &Projection, slot: Slot, member: Option<u16>) -> Option<&Field> {
    let field = projection.fields.iter().find(|field| field.slot == slot)?;
    match (&field.read, member) {
        (Read::Table(table), Some(member)) => table.fields.get(usize::from(member)),
        _ => Some(field),
    }
}

/// The field with a value of another type, and the type that is read.
pub(crate) fn no_value_of(field: &Field) -> String {
    let path = field.path.as_listed();
    match &field.read {
        Read::Value(value_type) | Read::Number(value_type) => {
            format!("`{path}` has another type than `{value_type}`")
        }
        Read::LengthOf(Countable::Text) => format!("`{path}` is no text"),
        Read::Elements(..) | Read::Witness(..) => format!("`{path}` has a value of another type"),
        _ => format!("`{path}` is no array"),
    }
}

/// The reason for which a text is unknown where it should be a number, behind the name of the field.
pub(crate) fn no_number(text: &NoNumber) -> String {
    format!("is the text {}, which is not a number", text.quoted())
}

/// The sentence about values of another type, the first of which is of this field.
fn other_type(field: &Field, count: u64) -> String {
    format!(
        "{}; it counts as unknown ({} of another type so far)",
        no_value_of(field),
        counted(count, "value is", "values are")
    )
}

impl Notice {
    /// The first values of another type than the specification reads.
    pub(crate) fn mistyped(topic: TopicId, count: u64, first: Option<Misread<'_>>) -> Notice {
        let mut members = vec![("count", json!(count))];
        let sentence = match first {
            Some(Misread::Text(field, text)) => {
                members.push(("not_a_number", json!(field.to_string())));
                format!(
                    "`{field}` {}; it counts as unknown ({} of another type so far)",
                    no_number(&text),
                    counted(count, "value is", "values are")
                )
            }
            Some(Misread::Element(field)) => {
                members.push(("element", json!(field.path.as_listed().to_string())));
                other_type(field, count)
            }
            Some(Misread::Field(field)) => {
                members.push(("field", json!(field.path.as_listed().to_string())));
                other_type(field, count)
            }
            Some(Misread::Inexact(field)) => {
                members.push(("inexact", json!(field.to_string())));
                format!(
                    "`{field}` {INEXACT}; it counts as unknown ({} or of another type so far)",
                    counted(count, "value is so", "values are so")
                )
            }
            Some(Misread::TooLarge(field)) => {
                members.push(("too_large", json!(field.to_string())));
                format!(
                    "`{field}` has an integer beyond 9223372036854775807, the greatest that a specification can read (64 bits with \
                     a sign); it counts as unknown ({} or of another type so far)",
                    counted(count, "value is so", "values are so")
                )
            }
            None => format!(
                "{} of another type than the specification reads, or integers beyond 64 bits with a sign; they count as unknown",
                counted(count, "value is", "values are")
            ),
        };
        Notice::new("mistyped", Some(topic), members, sentence)
    }
}
