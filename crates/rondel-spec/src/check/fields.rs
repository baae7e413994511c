//! Lookup of fields in schemas.

use std::collections::HashMap;

use rondel_event::{Named, Segment, ValueType};

use crate::diagnostic::{Code, Diagnostic, Span};
use crate::spec::{Schema, SchemaType};
use crate::suggest::unknown;

/// The schema of a topic and its locations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    /// The name of the topic.
    pub(crate) topic: &'a str,
    pub(crate) schema: &'a Schema,
    /// The locations of the types; array elements are named `field[]`.
    pub(crate) places: &'a HashMap<String, Span>,
}

impl<'a> Fields<'a> {
    /// Returns the type at a path and its location; `whole` is the location of the use.
    pub(crate) fn find(
        &self,
        segments: &[(Segment, Span)],
        whole: Span,
    ) -> Result<(&'a SchemaType, Option<Span>), Box<Diagnostic>> {
        let object = |schema: &'a Schema| (Some(schema), None::<&'a SchemaType>);
        let (mut fields, mut found) = object(self.schema);
        // The object of which the last array is a member.
        let mut owner = fields;
        let mut place = String::new();
        for (at, (segment, span)) in segments.iter().enumerate() {
            let so_far = || {
                if place.is_empty() {
                    format!("topic '{}'", self.topic)
                } else {
                    format!("'{}.{place}'", self.topic)
                }
            };
            let next = match segment {
                Segment::Key(key) => {
                    let Some(schema) = fields else {
                        let what = found.map_or("an object", describe);
                        let message = format!("{} is {what} and has no field '{key}'", so_far());
                        let mut diagnostic = Diagnostic::new(Code::UnknownField, *span, message);
                        let has_length = matches!(
                            found,
                            Some(SchemaType::Array(..) | SchemaType::Value(ValueType::String))
                        );
                        if has_length && matches!(&**key, "length" | "len" | "size" | "count") {
                            diagnostic = diagnostic.help(format!("write `len({}.{place})`", self.topic));
                        } else if let Some(SchemaType::Array(element, _)) = found {
                            let array = format!("{}.{place}", self.topic);
                            diagnostic = diagnostic.help(match &**element {
                                SchemaType::Object(schema) => {
                                    let is_name = |(name, field): &&(String, SchemaType)| {
                                        matches!(field, SchemaType::Value(ValueType::String))
                                            && **name != **key
                                    };
                                    let by_name = schema
                                        .fields
                                        .iter()
                                        .find(is_name)
                                        .map(|(name, _)| format!(" or `{array}[{name} == \"…\"].{key}`"));
                                    let by_name = by_name.unwrap_or_default();
                                    format!(
                                        "write `{array}[0].{key}`{by_name} for one element, \
                                         `any x in {array}: x.{key} == …` for all"
                                    )
                                }
                                _ => format!(
                                    "write `{array}[0]` for one element, `any x in {array}: x == …` for all"
                                ),
                            });
                        }
                        return Err(Box::new(diagnostic));
                    };
                    let field = schema.fields.iter().find(|(name, _)| **name == **key);
                    let Some((_, field)) = field else {
                        let keys: Vec<&str> =
                            segments[at..].iter().map_while(|(step, _)| key_of(step)).collect();
                        let elsewhere = self.deeper(&place, schema, &keys);
                        let diagnostic = unknown_field(key, *span, &so_far(), schema);
                        return Err(Box::new(Diagnostic {
                            help: elsewhere.or(diagnostic.help),
                            ..diagnostic
                        }));
                    };
                    if !place.is_empty() {
                        place.push('.');
                    }
                    place.push_str(key);
                    owner = fields;
                    field
                }
                Segment::Named(named) => {
                    let Some(SchemaType::Array(element, _)) = found else {
                        let what = found.map_or("an object", describe);
                        let message = format!("{} is {what} and has no element with a name", so_far());
                        return Err(Box::new(Diagnostic::new(Code::UnknownField, *span, message)));
                    };
                    check_name(named, (element, owner), *span, &so_far())?;
                    place.push_str("[]");
                    &**element
                }
                Segment::Index(index) | Segment::FromEnd(index) => {
                    let is_from_end = matches!(segment, Segment::FromEnd(_));
                    let sign = if is_from_end { "-" } else { "" };
                    let Some(SchemaType::Array(element, size)) = found else {
                        let what = found.map_or("an object", describe);
                        let message = format!("{} is {what} and has no element [{sign}{index}]", so_far());
                        return Err(Box::new(Diagnostic::new(Code::UnknownField, *span, message)));
                    };
                    let is_beyond = |size: &u32| if is_from_end { index > size } else { index >= size };
                    if let Some(size) = size.filter(is_beyond) {
                        return Err(Box::new(no_element(&format!("{sign}{index}"), size, *span, &so_far())));
                    }
                    place.push_str("[]");
                    &**element
                }
            };
            fields = match next {
                SchemaType::Object(schema) | SchemaType::Stamp(_, schema) => Some(schema),
                // Nothing is known about what lies below.
                SchemaType::Open => return Ok((next, None)),
                SchemaType::Value(_) | SchemaType::Array(..) => None,
            };
            found = Some(next);
        }
        let declared = self.places.get(&place).copied();
        match found {
            Some(found) => Ok((found, declared)),
            None => {
                let message = format!("topic '{}' is not a value", self.topic);
                Err(Box::new(Diagnostic::new(Code::TopicIsNotAValue, whole, message)))
            }
        }
    }

    /// Returns advice for fields that lie deeper than they were looked for, below an object at a place of the topic.
    fn deeper(&self, place: &str, object: &Schema, keys: &[&str]) -> Option<String> {
        let place = if place.is_empty() { String::new() } else { format!(".{place}") };
        let mut found = below(object, keys, &format!("{}{place}", self.topic));
        if found.is_empty() {
            found = below(self.schema, keys, self.topic);
        }
        let written: Vec<String> = found.iter().take(LISTED).map(|path| format!("`{path}`")).collect();
        (!written.is_empty()).then(|| format!("write {}", written.join(" or ")))
    }

    /// Returns the type of the single value at a path, and the location of its declaration; `None` if its uses decide it.
    pub(crate) fn find_value(
        &self,
        segments: &[(Segment, Span)],
        whole: Span,
    ) -> Result<Option<(ValueType, Option<Span>)>, Box<Diagnostic>> {
        let (found, declared) = self.find(segments, whole)?;
        if let SchemaType::Value(value_type) | SchemaType::Stamp(value_type, _) = found {
            return Ok(Some((*value_type, declared)));
        }
        if matches!(found, SchemaType::Open) {
            return Ok(None);
        }
        let message = format!("expected a single value, found {}", describe(found));
        let mut diagnostic = Diagnostic::new(Code::NotASingleValue, whole, message);
        if let Some(declared) = declared {
            diagnostic = diagnostic.label(declared, "declared here");
        }
        diagnostic.help = match found {
            SchemaType::Object(schema) => {
                schema.fields.first().map(|(name, _)| format!("name one of its fields, such as `.{name}`"))
            }
            _ => {
                Some("name one of its elements, such as `[0]`, or write `len(…)` for their number".to_owned())
            }
        };
        Err(Box::new(diagnostic))
    }
}

/// Checks that elements of an array have names of the type of this one.
fn check_name(
    named: &Named,
    (element, owner): (&SchemaType, Option<&Schema>),
    span: Span,
    array: &str,
) -> Result<(), Box<Diagnostic>> {
    let wrong = |code, message: String| Diagnostic::new(code, span, message);
    let mut key = named.key().0.iter();
    let mut object = match (named.is_parallel, element) {
        (true, SchemaType::Object(_)) => {
            let message = format!("each element of {array} is an object and no value");
            let help = format!("name a field of it after the brackets, such as `{named}.value`");
            return Err(Box::new(wrong(Code::NotASingleValue, message).help(help)));
        }
        (true, _) => owner,
        (false, SchemaType::Object(schema) | SchemaType::Stamp(_, schema)) => Some(schema),
        (false, SchemaType::Open) => None,
        (false, other) => {
            let message = format!("each element of {array} is {} and has no name in it", describe(other));
            return Err(Box::new(wrong(Code::UnknownField, message)));
        }
    };
    let mut found: Option<&SchemaType> = None;
    while let Some(Segment::Key(step)) = key.next() {
        let Some(schema) = object else { return Ok(()) };
        let Some((_, field)) = schema.fields.iter().find(|(name, _)| **name == **step) else {
            let of = if named.is_parallel { "the object of the array" } else { "the elements" };
            return Err(Box::new(unknown_field(step, span, of, schema)));
        };
        object = match field {
            SchemaType::Object(schema) | SchemaType::Stamp(_, schema) => Some(schema),
            _ => None,
        };
        found = Some(field);
    }
    let found = match (named.is_parallel, found) {
        (_, None | Some(SchemaType::Open)) => return Ok(()),
        (false, Some(found)) => found,
        (true, Some(SchemaType::Array(name, _))) => &**name,
        (true, Some(other)) => {
            let message = format!("'{}' is {} and no array of names", named.key(), describe(other));
            let help =
                "the names of the elements stand in another array of the same object, in the same order";
            return Err(Box::new(wrong(Code::TypeMismatch, message).help(help)));
        }
    };
    let fits = match (found, named.name()) {
        (SchemaType::Open, _) => true,
        (SchemaType::Value(value_type), Some(name)) => *value_type == name.value_type(),
        // The type of a parameter is that of this field.
        (SchemaType::Value(_) | SchemaType::Stamp(..), None) => named.parameter.is_some(),
        _ => false,
    };
    if fits {
        return Ok(());
    }
    let message = format!(
        "'{}' is {}, and this name is {}",
        named.key(),
        describe(found),
        match named.name() {
            Some(name) => super::kinds::article(name.value_type()),
            None => "a parameter, which is a single value",
        }
    );
    Err(Box::new(wrong(Code::TypeMismatch, message)))
}

/// Paths that advice names at most.
const LISTED: usize = 3;
/// Objects in which a field is looked for.
const OBJECTS: usize = 1_000;

/// The name of a field in a path.
fn key_of(segment: &Segment) -> Option<&str> {
    match segment {
        Segment::Key(key) => Some(key),
        _ => None,
    }
}

/// Returns the paths below an object at which fields of these names lie, those with the fewest objects around them.
fn below(object: &Schema, keys: &[&str], path: &str) -> Vec<String> {
    let has = |schema: &Schema| {
        let (mut schema, mut fields) = (Some(schema), keys.iter());
        fields.all(|key| {
            let field = schema.and_then(|schema| schema.fields.iter().find(|(name, _)| name == key));
            schema = field.and_then(|(_, field)| inner(field));
            field.is_some()
        })
    };
    let mut level = vec![(object, path.to_owned())];
    let mut seen = 0;
    while !level.is_empty() && seen < OBJECTS && !keys.is_empty() {
        let found = level.iter().filter(|(schema, _)| has(schema));
        let found: Vec<String> = found.map(|(_, path)| format!("{path}.{}", keys.join("."))).collect();
        if !found.is_empty() {
            return found;
        }
        seen += level.len();
        let next = level.iter().flat_map(|(schema, path)| {
            let objects = schema.fields.iter().filter_map(|(name, field)| Some((name, inner(field)?)));
            objects.map(move |(name, schema)| (schema, format!("{path}.{name}")))
        });
        level = next.take(OBJECTS).collect();
    }
    Vec::new()
}

/// The fields of an object.
fn inner(field: &SchemaType) -> Option<&Schema> {
    match field {
        SchemaType::Object(schema) => Some(schema),
        _ => None,
    }
}

/// Returns the error for an unknown field, with the nearest field or a list of all fields.
pub(super) fn unknown_field(field: &str, span: Span, object: &str, schema: &Schema) -> Diagnostic {
    let names: Vec<_> = schema.fields.iter().map(|(name, _)| name.as_str()).collect();
    let message = format!("unknown field '{field}' in {object}");
    unknown(Diagnostic::new(Code::UnknownField, span, message), field, &names, &format!("fields of {object}"))
}

/// Returns the error for an element that a fixed array does not have.
fn no_element(index: &str, size: u32, span: Span, array: &str) -> Diagnostic {
    let elements = if size == 1 { "element" } else { "elements" };
    let message = format!("{array} has {size} {elements}, and none at [{index}]");
    let mut diagnostic = Diagnostic::new(Code::UnknownField, span, message);
    diagnostic.help = size.checked_sub(1).map(|last| format!("the last one is [{last}]"));
    diagnostic
}

pub(super) fn describe(found: &SchemaType) -> &'static str {
    match found {
        SchemaType::Object(_) => "an object",
        SchemaType::Array(..) => "an array",
        SchemaType::Open => "of unknown type",
        SchemaType::Value(value_type) | SchemaType::Stamp(value_type, _) => {
            super::kinds::article(*value_type)
        }
    }
}
