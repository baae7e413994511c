//! The names of types in messages.

use rondel_event::ValueType;

use crate::spec::SchemaType;

/// Returns a type with its article.
pub(crate) fn article(value_type: ValueType) -> &'static str {
    match value_type {
        ValueType::Bool => "a bool",
        ValueType::Int => "an int",
        ValueType::Float => "a float",
        ValueType::Time => "a time",
        ValueType::Duration => "a duration",
        ValueType::String => "a string",
    }
}

/// Returns the type of a field with its article.
pub(crate) fn describe(found: &SchemaType) -> &'static str {
    match found {
        SchemaType::Object(_) => "an object",
        SchemaType::Array(..) => "an array",
        SchemaType::Open => "of unknown type",
        SchemaType::Value(value_type) | SchemaType::Stamp(value_type, _) => article(*value_type),
    }
}
