//! Types of JSON messages as recordings describe them: JSON Schema.

use std::collections::HashMap;

use rondel_event::ValueType;
use rondel_spec::{Definition, Schema, SchemaType};
use serde_json::Value;

/// Maximum nesting of types, references included; deeper types are open.
const DEPTH: usize = 32;
/// A type may have this many fields, those of nested types included.
const FIELDS: usize = 1 << 16;

/// Returns the fields of a type. A part that the schema leaves open, or restricts by other keywords than types,
/// properties, items and references into itself, has any fields.
///
/// # Errors
/// The reason why it cannot be used, as a sentence.
pub fn definition(name: &str, schema: &[u8]) -> Result<Definition, String> {
    let root: Value = serde_json::from_slice(schema).map_err(|error| format!("it is no JSON: {error}"))?;
    let mut reader = Reader { root: &root, left: FIELDS };
    let fields = match reader.part(&root, DEPTH)? {
        SchemaType::Object(schema) | SchemaType::Stamp(_, schema) => schema,
        _ => return Err("it describes no object with properties".to_owned()),
    };
    let short_name = name.rsplit(['/', ':', '.']).next().unwrap_or(name).to_owned();
    Ok(Definition { schema: fields, short_name, constants: Vec::new(), enumerations: HashMap::new() })
}

struct Reader<'s> {
    root: &'s Value,
    left: usize,
}

impl Reader<'_> {
    fn part(&mut self, schema: &Value, depth: usize) -> Result<SchemaType, String> {
        let Some(depth) = depth.checked_sub(1) else { return Ok(SchemaType::Open) };
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            return target.map_or(Ok(SchemaType::Open), |target| self.part(target, depth));
        }
        let kinds: Vec<&str> = match schema.get("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(kinds)) => {
                kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect()
            }
            _ if schema.get("properties").is_some() => vec!["object"],
            _ => Vec::new(),
        };
        let value = |kind| Ok(SchemaType::Value(kind));
        match (&kinds[..], schema.get("format").and_then(Value::as_str)) {
            (["boolean"], _) => value(ValueType::Bool),
            (["integer"], _) => value(ValueType::Int),
            (["number"] | ["integer", "number"] | ["number", "integer"], _) => value(ValueType::Float),
            (["string"], Some("date-time")) => value(ValueType::Time),
            (["string"], _) => value(ValueType::String),
            (["array"], _) => match schema.get("items") {
                Some(items @ Value::Object(_)) => {
                    Ok(SchemaType::Array(Box::new(self.part(items, depth)?), None))
                }
                _ => Ok(SchemaType::Open),
            },
            (["object"], _) => self.object(schema, depth),
            _ => Ok(SchemaType::Open),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Result<SchemaType, String> {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return Ok(SchemaType::Open);
        };
        let mut fields = Vec::new();
        for (name, property) in properties {
            self.left = self.left.checked_sub(1).ok_or("it has more than 65,536 fields")?;
            fields.push((name.clone(), self.part(property, depth)?));
        }
        let is_whole = |name: &str| {
            fields.iter().any(|(own, kind)| own == name && *kind == SchemaType::Value(ValueType::Int))
        };
        let nanos = ["nsec", "nanosec", "nsecs", "nanos"].into_iter().any(is_whole);
        let is_stamp = fields.len() == 2 && nanos && ["sec", "secs", "seconds"].into_iter().any(is_whole);
        let is_duration = schema.get("title").and_then(Value::as_str) == Some("duration");
        let schema = Schema { fields };
        Ok(match is_stamp {
            true if is_duration => SchemaType::Stamp(ValueType::Duration, schema),
            true => SchemaType::Stamp(ValueType::Time, schema),
            false => SchemaType::Object(schema),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read() {
        let text = r##"{"type":"object","$defs":{"v":{"type":"object","properties":{"x":{"type":"number"}}},
            "self":{"$ref":"#/$defs/self"}},
            "properties":{"stamp":{"type":"object","title":"time","properties":{"sec":{"type":"integer"},"nsec":{"type":"integer"}}},
            "speed":{"$ref":"#/$defs/v"},"names":{"type":"array","items":{"type":"string"}},"gear":{"type":["integer","null"]},
            "on":{"type":"boolean"},"more":{},"turns":{"$ref":"#/$defs/self"}}}"##;
        let found = definition("demo.Gear", text.as_bytes()).unwrap();
        assert_eq!(found.short_name, "Gear");
        let of = |name: &str| {
            let field = found.schema.fields.iter().find(|(own, _)| own == name);
            format!("{:?}", field.unwrap().1)
        };
        assert!(of("stamp").starts_with("Stamp(Time"), "{}", of("stamp"));
        assert!(of("speed").contains("\"x\", Value(Float)"), "{}", of("speed"));
        assert_eq!(of("names"), "Array(Value(String), None)");
        assert_eq!(of("gear"), "Value(Int)");
        assert_eq!(of("more"), "Open");
        assert_eq!(of("turns"), "Open");
        for cut in 0..text.len() {
            let _ = definition("a", &text.as_bytes()[..cut]);
        }
        assert!(definition("a", b"{\"type\":\"string\"}").is_err());
    }
}
