//! Messages of actions: their templates, and the check against the type of the messages.

use rondel_decode::schema::{Definition, Primitive, Schema, Struct, Type};
use serde_json::Value;

use super::known::{Kind, Known};
use crate::deployment::yaml::{Form, Item, Mistakes, hint};
use crate::schemas::written::{check_value, is_empty};
use crate::sinks::actions::{Template, TextTemplate};

/// Largest depth of a message.
const DEPTH: usize = 32;

/// Reads a text with placeholders.
pub(super) fn text(
    item: Item<'_>,
    setting: &str,
    known: Option<&Known>,
    mistakes: &mut Mistakes,
) -> Option<TextTemplate> {
    let text = item.text(setting, mistakes)?;
    let template = TextTemplate::parse(&text).map_err(|error| mistakes.at(item, error)).ok()?;
    if let Some(known) = known {
        let wrong = template.placeholders().filter_map(|of| known.kind(of).err());
        wrong.for_each(|error| mistakes.at(item, error));
    }
    Some(template)
}

/// Reads a value with placeholders.
pub(super) fn template(item: Item<'_>, known: Option<&Known>, mistakes: &mut Mistakes) -> Option<Template> {
    nested(item, known, DEPTH, mistakes)
}

fn nested(item: Item<'_>, known: Option<&Known>, depth: usize, mistakes: &mut Mistakes) -> Option<Template> {
    if depth == 0 {
        mistakes.at(item, format!("the message is nested more than {DEPTH} deep"));
        return None;
    }
    Some(match item.form() {
        Some(Form::Mapping) => {
            let entries = item.entries("message", mistakes);
            let members = entries
                .into_iter()
                .map(|(name, _, value)| Some((name, nested(value, known, depth - 1, mistakes)?)));
            // Every mistake is reported, not only the first one.
            let members: Vec<Option<(String, Template)>> = members.collect();
            Template::Mapping(members.into_iter().collect::<Option<_>>()?)
        }
        Some(Form::List) => {
            let items = item.items().into_iter().map(|item| nested(item, known, depth - 1, mistakes));
            let items: Vec<Option<Template>> = items.collect();
            Template::List(items.into_iter().collect::<Option<_>>()?)
        }
        Some(Form::Text(_)) => {
            let template = text(item, "message", known, mistakes)?;
            let has_placeholders = template.placeholders().next().is_some();
            match has_placeholders {
                true => Template::Text(template),
                // With the braces that stand for one.
                false => Template::Fixed(Value::String(template.plain())),
            }
        }
        Some(Form::Null) => Template::Fixed(Value::Null),
        Some(Form::Boolean(value)) => Template::Fixed(value.into()),
        Some(Form::Integer(value)) => Template::Fixed(value.into()),
        Some(Form::Number(value)) => Template::Fixed(value.into()),
        None => {
            mistakes.at(item, "a message consists of mappings, lists, texts, numbers and booleans");
            return None;
        }
    })
}

/// Checks a message against a type.
pub(super) fn check(
    item: Item<'_>,
    message: &Template,
    schema: &Schema,
    known: Option<&Known>,
    mistakes: &mut Mistakes,
) {
    Fit { schema, known, mistakes }.structure(item, message, schema.root(), schema.name());
}

/// A check of a message.
struct Fit<'f> {
    schema: &'f Schema,
    known: Option<&'f Known>,
    mistakes: &'f mut Mistakes,
}

impl Fit<'_> {
    fn structure(&mut self, item: Item<'_>, message: &Template, structure: &Struct, name: &str) {
        // A placeholder for a date fits a structure that is a time.
        if structure.stamp().is_some() && !matches!(message, Template::Mapping(_) | Template::List(_)) {
            return self.time(item, message, name);
        }
        let Template::Mapping(members) = message else {
            return self.mistakes.at(item, format!("{name} is a mapping of fields"));
        };
        let entries = item.entries("message", self.mistakes);
        for ((field, key, value), (_, member)) in entries.iter().zip(members) {
            match structure.members.iter().find(|own| *own.name == **field) {
                Some(own) => self.value(*value, member, &own.member_type),
                None => {
                    let hint =
                        hint(field, "its fields are", || structure.members.iter().map(|own| &*own.name));
                    self.mistakes.at(*key, format!("{name} has no field '{field}'; {hint}"));
                }
            }
        }
        if is_empty(structure) {
            return;
        }
        let is_missing = |field: &str| entries.iter().all(|(own, ..)| own != field);
        for own in structure.members.iter().filter(|own| is_missing(&own.name)) {
            self.mistakes.at(item, format!("the field '{}' of {name} is missing", own.name));
        }
    }

    fn value(&mut self, item: Item<'_>, message: &Template, of: &Type) {
        match (of, message) {
            (Type::Named(id), _) => match self.schema.definition(*id) {
                Definition::Struct(structure) => {
                    // Both are borrowed from the schema, not from the check.
                    let name = self.schema.type_name(*id).replace("::", "/");
                    self.structure(item, message, structure, &name);
                }
                Definition::Alias(of) => self.value(item, message, of),
                Definition::Enum(_) | Definition::Bitmask(_) | Definition::Union(_) => {
                    self.single(item, message, of)
                }
            },
            (Type::Array { element, dimensions }, Template::List(items)) => {
                let size = dimensions.first().copied().unwrap_or(0) as usize;
                if items.len() != size {
                    self.mistakes.at(item, format!("{} elements instead of {size}", items.len()));
                }
                for (item, message) in item.items().into_iter().zip(items) {
                    match dimensions.split_first() {
                        Some((_, rest)) if !rest.is_empty() => {
                            let inner = Type::Array { element: element.clone(), dimensions: rest.into() };
                            self.value(item, message, &inner);
                        }
                        _ => self.value(item, message, element),
                    }
                }
            }
            (Type::Sequence { element, bound }, Template::List(items)) => {
                if let Some(bound) = bound.filter(|bound| items.len() > *bound as usize) {
                    self.mistakes.at(item, format!("{} elements, and at most {bound} fit", items.len()));
                }
                for (item, message) in item.items().into_iter().zip(items) {
                    self.value(item, message, element);
                }
            }
            _ => self.single(item, message, of),
        }
    }

    /// Checks a fixed value, or the type of a placeholder.
    fn single(&mut self, item: Item<'_>, message: &Template, of: &Type) {
        let given = match message {
            Template::Fixed(value) => {
                if let Err(error) = check_value(self.schema, of, value) {
                    self.mistakes.at(item, error.to_string());
                }
                return;
            }
            Template::Text(text) => match text.only() {
                None => Kind::Text,
                Some(of) => match self.known.map(|known| known.kind(of)) {
                    Some(Ok(kind)) => kind,
                    // The mistake is known.
                    Some(Err(_)) | None => return,
                },
            },
            Template::List(_) | Template::Mapping(_) => {
                return self.mistakes.at(item, "the field has one value, and no list or mapping");
            }
        };
        let wanted = match of {
            Type::Primitive(Primitive::Bool) => Kind::Boolean,
            Type::Primitive(Primitive::Char) => return,
            Type::Primitive(_) => Kind::Number,
            Type::String { .. } => Kind::Text,
            // An enumeration has names and numbers.
            Type::Named(_) => return,
            Type::Array { .. } | Type::Sequence { .. } => {
                return self.mistakes.at(item, "the field is a list");
            }
        };
        let fits = given == wanted || given == Kind::Any || (given, wanted) == (Kind::Time, Kind::Text);
        if !fits {
            self.mistakes.at(item, format!("the field is {}, and the value {}", wanted.name(), given.name()));
        }
    }

    fn time(&mut self, item: Item<'_>, message: &Template, name: &str) {
        let kind = match message {
            Template::Text(text) => text.only().zip(self.known).map(|(of, known)| known.kind(of)),
            _ => None,
        };
        let is_date = match (&kind, message) {
            (Some(Ok(kind)), _) => matches!(kind, Kind::Time | Kind::Any),
            (Some(Err(_)), _) => true,
            (None, Template::Fixed(Value::String(text))) => text.parse::<jiff::Timestamp>().is_ok(),
            (None, _) => self.known.is_none(),
        };
        if !is_date {
            let why =
                format!("{name} is a mapping of fields, a date such as 2026-11-29T10:00:00Z, or `{{time}}`");
            self.mistakes.at(item, why);
        }
    }
}
