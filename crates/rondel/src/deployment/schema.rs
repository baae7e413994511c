//! Checks the time field of a topic against the schema of the specification.

use rondel_event::ValueType;
use rondel_spec::{Schema, SchemaType, Topic};

/// Checks that a time source (`arrival`, `source` or a field) fits the schema of a topic. A message may
/// carry more fields than its schema, so a field that is not in it is refused only where the schema
/// declares a time, or a field with nearly the same name.
///
/// # Errors
/// A message that names the field that is probably meant.
pub fn check_time_field(topic: &Topic, time: &str) -> Result<(), String> {
    let Some(schema) = &topic.schema else { return Ok(()) };
    if matches!(time, "arrival" | "source") {
        return Ok(());
    }
    let mut fields = Vec::new();
    collect(schema, "", &mut fields);
    if fields.iter().any(|(path, _)| path == time) {
        return Ok(());
    }
    let distance = |path: &str| strsim::osa_distance(path, time);
    let times = fields.iter().filter(|(_, kind)| *kind == Some(ValueType::Time));
    let declared = times.min_by_key(|(path, _)| distance(path));
    let similar = || {
        let close = |path: &str| distance(path) <= time.len().min(path.len()) / 4;
        let ends = |one: &str, other: &str| other.len() >= 4 && one.ends_with(other);
        let like = |path: &str| close(path) || ends(path, time) || ends(time, path);
        let holds_time =
            |kind: &Option<ValueType>| !matches!(kind, Some(ValueType::Bool | ValueType::Duration));
        fields
            .iter()
            .filter(|(path, kind)| holds_time(kind) && like(path))
            .min_by_key(|(path, _)| distance(path))
    };
    let Some((path, kind)) = declared.or_else(similar) else { return Ok(()) };
    let kind = kind.map_or_else(|| "{…}".to_owned(), |kind| kind.to_string());
    Err(format!(
        "topic '{}' has no field '{time}'; its schema has `{path}: {kind}`: name that field, or add '{time}' to \
         the schema",
        topic.name
    ))
}

/// Adds the paths of all fields with their types; objects have none. A time is not in an array.
fn collect(schema: &Schema, prefix: &str, fields: &mut Vec<(String, Option<ValueType>)>) {
    for (name, kind) in &schema.fields {
        let path = format!("{prefix}{name}");
        match kind {
            SchemaType::Value(kind) => fields.push((path, Some(*kind))),
            SchemaType::Object(inner) => {
                collect(inner, &format!("{path}."), fields);
                fields.push((path, None));
            }
            SchemaType::Stamp(kind, _) => fields.push((path, Some(*kind))),
            SchemaType::Array(..) | SchemaType::Open => {}
        }
    }
}
