//! Differences between two types of messages, by the fields that a specification can name.

use std::fmt;

use crate::encoding::MessageType;
use crate::outline::Part;

/// A difference between two types of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path of the field, with `[]` for an element; empty for the message itself.
    pub path: String,
    /// The difference.
    pub kind: ChangeKind,
}

/// Kind of a difference between fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// Only the second type has it.
    New,
    /// Only the first type has it.
    Missing,
    /// Its types in the second and in the first type, as text.
    OtherType(String, String),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.path {
            "" => f.write_str("the message")?,
            path => write!(f, "field `{path}`")?,
        }
        match &self.kind {
            ChangeKind::New => f.write_str(" is new"),
            ChangeKind::Missing => f.write_str(" is missing"),
            ChangeKind::OtherType(own, other) => write!(f, " is {own} instead of {other}"),
        }
    }
}

impl MessageType {
    /// Returns the differences of `other` from this type: fields that are new, missing or of another type. If no field
    /// that a specification can name differs, returns the first difference between two types of CDR.
    pub fn changes(&self, other: &MessageType) -> Vec<Change> {
        let mut changes = Vec::new();
        if let (Ok(own), Ok(other)) = (self.outline(), other.outline()) {
            objects(&own.fields, &other.fields, "", &mut changes);
        }
        if let (true, MessageType::Cdr(own), MessageType::Cdr(other)) = (changes.is_empty(), self, other) {
            changes.extend(own.difference(other).map(|difference| {
                let shown = |text: Option<String>| text.unwrap_or_else(|| "nothing".to_owned());
                let kind = ChangeKind::OtherType(shown(difference.described), shown(difference.declared));
                Change { path: difference.path, kind }
            }));
        }
        changes
    }
}

type Fields = [(Box<str>, Part)];

fn objects(own: &Fields, other: &Fields, place: &str, changes: &mut Vec<Change>) {
    let dot = if place.is_empty() { "" } else { "." };
    let find = |fields: &'_ Fields, name: &str| fields.iter().position(|(field, _)| **field == *name);
    for (name, part) in own {
        let path = format!("{place}{dot}{name}");
        match find(other, name) {
            Some(at) => parts(part, &other[at].1, path, changes),
            None => changes.push(Change { path, kind: ChangeKind::Missing }),
        }
    }
    let new = other.iter().filter(|(name, _)| find(own, name).is_none());
    changes
        .extend(new.map(|(name, _)| Change { path: format!("{place}{dot}{name}"), kind: ChangeKind::New }));
}

fn parts(own: &Part, other: &Part, path: String, changes: &mut Vec<Change>) {
    match (own, other) {
        (Part::Object(own) | Part::Stamp(_, own), Part::Object(other) | Part::Stamp(_, other)) => {
            objects(own, other, &path, changes);
        }
        (Part::Array(own, size), Part::Array(other, other_size)) if size == other_size => {
            parts(own, other, format!("{path}[]"), changes);
        }
        (own, other) if own == other => {}
        (own, other) => {
            changes.push(Change { path, kind: ChangeKind::OtherType(shown(other), shown(own)) });
        }
    }
}

/// Returns a type as text.
fn shown(part: &Part) -> String {
    match part {
        Part::Value(value_type) => value_type.to_string(),
        Part::Enumeration(name) => format!("the enumeration {name}"),
        Part::Object(_) => "a structure".to_owned(),
        Part::Array(element, None) => format!("a sequence of {}", shown(element)),
        Part::Array(element, Some(size)) => format!("an array of {size} {}", shown(element)),
        Part::Stamp(value_type, _) => value_type.to_string(),
        Part::Open => "of an open type".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Library;

    fn changes(first: &str, second: &str) -> Vec<String> {
        let of = |text: &str| {
            let mut library = Library::new();
            library.add_msg("p/msg/A", text).unwrap();
            MessageType::Cdr(library.schema("p/msg/A").unwrap())
        };
        of(first).changes(&of(second)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn changes_name_new_missing_and_other_fields() {
        let part = "\n================\nMSG: p/B\n";
        for (first, second, expected) in [
            ("float64 v", "float64 v\nint32 extra", &["field `extra` is new"] as &[&str]),
            ("float64 v\nint32 w", "float64 v", &["field `w` is missing"]),
            ("float64 v", "string v", &["field `v` is string instead of float"]),
            ("int32[] v", "int32[4] v", &["field `v` is an array of 4 int instead of a sequence of int"]),
            ("int32 v", "int64 v", &["field `v` is int64 instead of int32"]),
            ("int32 v", "int32 v  # the same", &[]),
            (
                &format!("B b{part}int32 x\nint32 y"),
                &format!("B b{part}int32 x\nbool z"),
                &["field `b.y` is missing", "field `b.z` is new"],
            ),
        ] {
            assert_eq!(changes(first, second), expected, "{first} / {second}");
        }
    }
}
