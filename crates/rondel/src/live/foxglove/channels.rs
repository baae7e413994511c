//! The channels of a specification: verdicts, events, the state of each property, and the signals of each topic.

use std::collections::HashSet;

use rondel_event::{Timestamp, ValueType};
use rondel_page::foxglove::{Hub, Schema};
use rondel_recording::RecordedSchema;
use serde_json::{Map, Value, json};

use super::signals::SignalTopic;
use crate::deployment::Deployment;
use crate::recorder::{EVENTS, VERDICTS, event_schema, verdict_schema};
use crate::warn;

/// Beginnings of the names of channels.
const PROPERTIES: &str = "rondel/properties/";
const SIGNALS: &str = "rondel/signals/";
/// Maximum number of properties, and of topics, with a channel.
const MOST: usize = 1_000;

/// The channels of a run, by their ids.
pub(super) struct Channels {
    pub(super) verdicts: u32,
    pub(super) events: u32,
    /// By position; those beyond [`MOST`] have none.
    pub(super) properties: Vec<PropertyChannel>,
    /// By topic.
    pub(super) signals: Vec<Option<u32>>,
}

/// The channel with the states of a property.
pub(super) struct PropertyChannel {
    pub(super) id: u32,
    pub(super) name: String,
    /// Whether it has instances.
    pub(super) by_key: bool,
}

impl Channels {
    /// Shows the channels of a deployment to the clients.
    pub(super) fn show(hub: &Hub, deployment: &Deployment, signals: &[Option<SignalTopic>]) -> Channels {
        let mut names = Names::default();
        let mut all = vec![
            (VERDICTS.to_owned(), written(&verdict_schema())),
            (EVENTS.to_owned(), written(&event_schema())),
        ];
        let properties = &deployment.specification.spec.properties;
        if properties.len() > MOST {
            let count = properties.len();
            warn(&format!("Foxglove shows the states of the first {MOST} properties of {count}"));
        }
        let state = property_schema();
        let shown = properties.iter().take(MOST);
        all.extend(shown.map(|property| (names.unique(PROPERTIES, &property.name), state.clone())));
        let first_signal = all.len();
        let drawn = signals.iter().flatten().take(MOST);
        all.extend(drawn.map(|topic| (names.unique(SIGNALS, topic.name()), topic.schema())));
        let ids = hub.show(all);
        let id = |at: usize| ids.get(at).copied().unwrap_or_default();
        let mut next = ids.get(first_signal..).unwrap_or_default().iter().copied();
        Channels {
            verdicts: id(0),
            events: id(1),
            properties: (2..first_signal)
                .zip(properties)
                .map(|(at, property)| PropertyChannel {
                    id: id(at),
                    name: property.name.clone(),
                    by_key: property.slice.is_some(),
                })
                .collect(),
            signals: signals.iter().map(|topic| topic.as_ref().and_then(|_| next.next())).collect(),
        }
    }
}

/// Names of channels.
#[derive(Default)]
struct Names(HashSet<String>);

impl Names {
    /// Returns a name that no other channel has. In paths of the application a point begins a field.
    fn unique(&mut self, prefix: &str, name: &str) -> String {
        let plain = format!("{prefix}{}", name.trim_start_matches('/').replace('.', "/"));
        let mut unique = plain.clone();
        for number in 2.. {
            if self.0.insert(unique.clone()) {
                break;
            }
            unique = format!("{plain}~{number}");
        }
        unique
    }
}

/// A schema of recordings as one of channels.
fn written(schema: &RecordedSchema) -> Schema {
    Schema { name: schema.name.as_str().into(), data: String::from_utf8_lossy(&schema.data).into() }
}

/// A time as the application reads it.
pub(super) fn stamp(time: Timestamp) -> Value {
    let nanos = time.as_nanos();
    json!({"sec": nanos.div_euclid(1_000_000_000), "nsec": nanos.rem_euclid(1_000_000_000)})
}

/// The type of times in messages.
fn time_schema() -> Value {
    json!({
        "type": "object",
        "title": "time",
        "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer", "minimum": 0}},
    })
}

/// The type of the states of properties.
fn property_schema() -> Schema {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rondel.PropertyState",
        "description": "The state of a property from this time on",
        "type": "object",
        "properties": {
            "timestamp": time_schema(),
            "property": {"type": "string"},
            "state": {"type": "string"},
            "violated": {"type": "integer"},
            "parameters": {"type": "string"},
            "robustness": {"type": "number"},
        },
        "required": ["timestamp", "property", "state", "violated", "parameters"],
    });
    Schema { name: "rondel.PropertyState".into(), data: schema.to_string().into() }
}

/// The type of the signals of a topic with these fields: the names of each, from the outermost one on.
pub(super) fn signal_schema<'f>(
    topic: &str,
    fields: impl Iterator<Item = (&'f [String], ValueType)>,
) -> Schema {
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("rondel.Signals.{topic}"),
        "description": "The fields of a message that properties read",
        "type": "object",
        "properties": {},
    });
    for (names, value_type) in fields {
        let Some((last, parents)) = names.split_last() else { continue };
        let mut place = &mut schema;
        for name in parents {
            place = &mut place["properties"][name.as_str()];
            if place.is_null() {
                *place = json!({"type": "object", "properties": {}});
            }
        }
        let own = match value_type {
            ValueType::Bool => "boolean",
            ValueType::String => "string",
            ValueType::Int | ValueType::Float | ValueType::Time | ValueType::Duration => "number",
        };
        place["properties"][last.as_str()] = json!({"type": own});
    }
    let stamp = &mut schema["properties"]["timestamp"];
    if stamp.is_null() {
        *stamp = time_schema();
    }
    Schema { name: format!("rondel.Signals.{topic}").into(), data: schema.to_string().into() }
}

/// Adds a value to a message below these names. One that a field with the same name already occupies is left out.
pub(super) fn insert(message: &mut Map<String, Value>, names: &[String], value: Value) {
    let Some((last, parents)) = names.split_last() else { return };
    let mut place = message;
    for name in parents {
        let inner = place.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(inner) = inner else { return };
        place = inner;
    }
    place.entry(last.clone()).or_insert(value);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_without_points() {
        let mut names = Names::default();
        let mut unique = |name: &str| names.unique(SIGNALS, name);
        let all = ["/odom", "a.b", "a/b", "a.b", "ä \"x\""].map(&mut unique);
        let expected = ["odom", "a/b", "a/b~2", "a/b~3", "ä \"x\""];
        assert_eq!(all.map(|name| name.strip_prefix(SIGNALS).unwrap().to_owned()), expected);
    }

    #[test]
    fn fields_are_nested_as_in_messages() {
        let path = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let (x, open) = (path(&["pose", "x"]), path(&["open"]));
        let fields = [(&x[..], ValueType::Float), (&open[..], ValueType::Bool)];
        let schema: Value = serde_json::from_str(&signal_schema("t", fields.into_iter()).data).unwrap();
        let members = &schema["properties"];
        assert_eq!(members["pose"]["properties"]["x"], json!({"type": "number"}));
        assert_eq!(members["open"], json!({"type": "boolean"}));
        assert_eq!(members["timestamp"]["title"], "time");
        let mut message = Map::new();
        insert(&mut message, &x, json!(1.5));
        insert(&mut message, &path(&["pose"]), json!(2));
        insert(&mut message, &open, json!(true));
        insert(&mut message, &path(&["open", "deeper"]), json!(3));
        assert_eq!(Value::Object(message), json!({"pose": {"x": 1.5}, "open": true}));
    }
}
