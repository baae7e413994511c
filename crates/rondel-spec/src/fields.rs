//! Lookup of fields in schemas.

use std::collections::HashMap;

use rondel_event::{Named, Segment, ValueType};

use crate::diagnostic::{Code, Diagnostic, Span};
use crate::spec::{Schema, SchemaType};
use crate::suggest::unknown;
use crate::type_names::{article, describe};

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
        let mut walk = Walk {
            topic: self.topic,
            object: Some(self.schema),
            found: None,
            owner: Some(self.schema),
            place: String::new(),
        };
        for (at, (segment, span)) in segments.iter().enumerate() {
            let next = match segment {
                Segment::Key(key) => self.field(&mut walk, key, *span, &segments[at..])?,
                Segment::Named(named) => walk.named(named, *span)?,
                Segment::Index(index) => walk.indexed(*index, false, *span)?,
                Segment::FromEnd(index) => walk.indexed(*index, true, *span)?,
            };
            walk.object = match next {
                SchemaType::Object(schema) | SchemaType::Stamp(_, schema) => Some(schema),
                // Nothing is known about what lies below.
                SchemaType::Open => return Ok((next, None)),
                SchemaType::Value(_) | SchemaType::Array(..) => None,
            };
            walk.found = Some(next);
        }
        let declared = self.places.get(&walk.place).copied();
        match walk.found {
            Some(found) => Ok((found, declared)),
            None => {
                let message = format!("topic '{}' is not a value", self.topic);
                Err(Box::new(Diagnostic::new(Code::TopicIsNotAValue, whole, message)))
            }
        }
    }

    /// Goes to a field of the object at a place; `ahead` is the rest of the path, from this field on.
    fn field(
        &self,
        walk: &mut Walk<'a>,
        key: &str,
        span: Span,
        ahead: &[(Segment, Span)],
    ) -> Result<&'a SchemaType, Box<Diagnostic>> {
        let Some(schema) = walk.object else { return Err(Box::new(walk.no_field(key, span))) };
        let field = schema.fields.iter().find(|(name, _)| **name == *key);
        let Some((_, field)) = field else {
            let keys: Vec<&str> = ahead.iter().map_while(|(step, _)| key_of(step)).collect();
            let elsewhere = self.deeper(&walk.place, schema, &keys);
            let diagnostic = unknown_field(key, span, &walk.name(), schema);
            return Err(Box::new(Diagnostic { help: elsewhere.or(diagnostic.help), ..diagnostic }));
        };
        if !walk.place.is_empty() {
            walk.place.push('.');
        }
        walk.place.push_str(key);
        walk.owner = walk.object;
        Ok(field)
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

/// A place in the schema of a topic, on the way along a path.
struct Walk<'a> {
    /// The name of the topic.
    topic: &'a str,
    /// The object at the place, if its type is one.
    object: Option<&'a Schema>,
    /// The type at the place; none for the topic itself.
    found: Option<&'a SchemaType>,
    /// The object of which the last array is a member.
    owner: Option<&'a Schema>,
    /// The path to the place; array elements are named `field[]`.
    place: String,
}

impl<'a> Walk<'a> {
    /// Returns the place for a message.
    fn name(&self) -> String {
        if self.place.is_empty() {
            format!("topic '{}'", self.topic)
        } else {
            format!("'{}.{}'", self.topic, self.place)
        }
    }

    /// Goes to the element of an array with a name.
    fn named(&mut self, named: &Named, span: Span) -> Result<&'a SchemaType, Box<Diagnostic>> {
        let Some(SchemaType::Array(element, _)) = self.found else {
            return Err(Box::new(self.has_no("element with a name", span)));
        };
        self.check_name(named, element, span)?;
        self.place.push_str("[]");
        Ok(&**element)
    }

    /// Goes to the element of an array with an index, which counts from the end if `is_from_end`.
    fn indexed(
        &mut self,
        index: u32,
        is_from_end: bool,
        span: Span,
    ) -> Result<&'a SchemaType, Box<Diagnostic>> {
        let sign = if is_from_end { "-" } else { "" };
        let Some(SchemaType::Array(element, size)) = self.found else {
            return Err(Box::new(self.has_no(&format!("element [{sign}{index}]"), span)));
        };
        let is_beyond = |size: &u32| if is_from_end { index > *size } else { index >= *size };
        if let Some(size) = size.filter(is_beyond) {
            return Err(Box::new(no_element(&format!("{sign}{index}"), size, span, &self.name())));
        }
        self.place.push_str("[]");
        Ok(&**element)
    }

    /// Returns the error for a step that the type at the place does not have.
    fn has_no(&self, step: &str, span: Span) -> Diagnostic {
        let what = self.found.map_or("an object", describe);
        Diagnostic::new(Code::UnknownField, span, format!("{} is {what} and has no {step}", self.name()))
    }

    /// Returns the error for a field of a type without fields.
    fn no_field(&self, key: &str, span: Span) -> Diagnostic {
        let diagnostic = self.has_no(&format!("field '{key}'"), span);
        let has_length =
            matches!(self.found, Some(SchemaType::Array(..) | SchemaType::Value(ValueType::String)));
        if has_length && matches!(key, "length" | "len" | "size" | "count") {
            return diagnostic.help(format!("write `len({}.{})`", self.topic, self.place));
        }
        let Some(SchemaType::Array(element, _)) = self.found else { return diagnostic };
        let array = format!("{}.{}", self.topic, self.place);
        let SchemaType::Object(schema) = &**element else {
            let help = format!("write `{array}[0]` for one element, `any x in {array}: x == …` for all");
            return diagnostic.help(help);
        };
        let is_name = |(name, field): &&(String, SchemaType)| {
            matches!(field, SchemaType::Value(ValueType::String)) && **name != *key
        };
        let by_name = schema.fields.iter().find(is_name);
        let by_name = by_name.map(|(name, _)| format!(" or `{array}[{name} == \"…\"].{key}`"));
        let by_name = by_name.unwrap_or_default();
        diagnostic.help(format!(
            "write `{array}[0].{key}`{by_name} for one element, `any x in {array}: x.{key} == …` for all"
        ))
    }

    /// Checks that elements of an array have names of the type of this one.
    fn check_name(&self, named: &Named, element: &SchemaType, span: Span) -> Result<(), Box<Diagnostic>> {
        let array = self.name();
        let wrong = |code, message: String| Diagnostic::new(code, span, message);
        let mut key = named.key().0.iter();
        let mut object = match (named.is_parallel, element) {
            (true, SchemaType::Object(_)) => {
                let message = format!("each element of {array} is an object and no value");
                let help = format!("name a field of it after the brackets, such as `{named}.value`");
                return Err(Box::new(wrong(Code::NotASingleValue, message).help(help)));
            }
            (true, _) => self.owner,
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
                Some(name) => article(name.value_type()),
                None => "a parameter, which is a single value",
            }
        );
        Err(Box::new(wrong(Code::TypeMismatch, message)))
    }
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
pub(crate) fn unknown_field(field: &str, span: Span, object: &str, schema: &Schema) -> Diagnostic {
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
