//! Messages made from the declarations of a specification.

use std::collections::BTreeSet;

use rondel_event::{
    Condition, Countable, NameId, Path, Quantifier, Read, Segment, Test, Timestamp, TopicId, TypeIndex,
    Value, ValueType,
};
use rondel_runtime::SessionPlan;
use rondel_spec::{Schema, SchemaType, Slice, Spec};
use serde_json::{Map, Value as Json, json};

use super::measure::is_named;
use crate::commands::check::{Sample, SampledMessage};

/// Time between two messages of a key on one topic, in nanoseconds. A workload stretches it.
const PERIOD_NS: f64 = 1e9;
/// Number of elements of arrays.
const ELEMENTS: usize = 3;
/// Deepest nesting of objects that is filled.
const DEEPEST: u32 = 8;

/// Makes `rounds` messages of each of `keys` keys on all topics that properties read, and lists fields that cannot be made.
pub fn sample(plan: SessionPlan, keys: u64, rounds: u64) -> (Sample, BTreeSet<String>) {
    let specification = plan.specification().clone();
    let spec = &*specification.spec;
    let read: BTreeSet<TopicId> =
        spec.properties.iter().flat_map(|property| spec.topics_of_property(property)).collect();
    let mut missing = BTreeSet::new();
    let topics = spec.declared().iter().zip((0..).map(TopicId)).filter_map(|(topic, id)| {
        let fields = specification.program.projections().get(id.index())?;
        let is_read = read.contains(&id) || !fields.fields.is_empty();
        is_read.then(|| Made { spec, id, topic, fields: &fields.fields, keys: keys_of(spec, id) })
    });
    let topics: Vec<Made<'_>> = topics.collect();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut messages = Vec::new();
    for round in 0..rounds {
        for key in 0..keys {
            let after = (round as f64 + key as f64 / keys as f64) * PERIOD_NS;
            for topic in &topics {
                // A message without a key concerns all instances: it is not sent by each of them.
                if topic.keys.is_empty() && key > 0 {
                    continue;
                }
                let time = Timestamp::from_nanos(after as i64);
                let payload = topic.payload(key, &mut random, &mut missing).to_string();
                let name = topic.name(&plan, key);
                messages.push(SampledMessage {
                    topic: topic.id,
                    name,
                    of_type: TypeIndex::default(),
                    time,
                    payload: payload.into_bytes().into(),
                });
            }
        }
    }
    (Sample { plan, messages, is_part: false, misordered: 0 }, missing)
}

/// The parameters that a topic has, with their fields and types.
fn keys_of(spec: &Spec, topic: TopicId) -> Vec<(Path, ValueType)> {
    let of_slice = |slice: &Slice| -> Vec<(Path, ValueType)> {
        let of_key = |key: &rondel_spec::Key| {
            let (_, path) = key.fields.iter().find(|(of, _)| *of == topic)?;
            Some((path.clone(), key.value_type))
        };
        slice.keys.iter().filter_map(of_key).collect()
    };
    spec.slices.iter().flat_map(of_slice).collect()
}

/// A topic whose messages are made.
struct Made<'s> {
    spec: &'s Spec,
    id: TopicId,
    topic: &'s rondel_spec::Topic,
    fields: &'s [rondel_event::Field],
    keys: Vec<(Path, ValueType)>,
}

impl Made<'_> {
    /// The number of the name under which messages of a key come, if the address has parameters.
    fn name(&self, plan: &SessionPlan, key: u64) -> Option<NameId> {
        let pattern = self.topic.pattern()?;
        let mut name = self.topic.address.clone();
        for parameter in pattern.parameters() {
            let is_key = self.keys.iter().any(|(path, _)| *path == Path::keys([parameter]));
            let text = if is_key { format!("v{key}") } else { "x".to_owned() };
            name = name.replace(&format!("{{{parameter}}}"), &text);
        }
        plan.names(self.id)?.number(&name)
    }

    /// A message of a key.
    fn payload(&self, key: u64, random: &mut Random, missing: &mut BTreeSet<String>) -> Json {
        let mut object = Json::Object(Map::new());
        if let Some(schema) = &self.topic.schema {
            fill(schema, &mut object, random, DEEPEST);
        }
        for field in self.fields {
            if is_named(self.spec, self.id, &field.path) {
                continue;
            }
            let is_set =
                of_read(&field.read, random).is_none_or(|value| set(&mut object, &field.path.0, value));
            if !is_set || matches!(field.read, Read::Table(_)) {
                missing.insert(format!("{}.{}", self.topic.name, field.path.as_listed()));
            }
        }
        for (path, value_type) in &self.keys {
            if is_named(self.spec, self.id, path) {
                continue;
            }
            let value = match value_type {
                ValueType::String => json!(format!("v{key}")),
                ValueType::Bool => json!(key % 2 == 1),
                ValueType::Float => json!(key as f64),
                ValueType::Int | ValueType::Time | ValueType::Duration => json!(key),
            };
            if !set(&mut object, &path.0, value) {
                missing.insert(format!("{}.{}", self.topic.name, path.as_listed()));
            }
        }
        object
    }
}

/// Fills an object with values of the declared types.
fn fill(schema: &Schema, object: &mut Json, random: &mut Random, depth: u32) {
    for (name, of) in &schema.fields {
        if let Some(value) = of_schema(of, random, depth) {
            set(object, &[Segment::Key(name.as_str().into())], value);
        }
    }
}

fn of_schema(of: &SchemaType, random: &mut Random, depth: u32) -> Option<Json> {
    if depth == 0 {
        return None;
    }
    match of {
        SchemaType::Value(value_type) | SchemaType::Stamp(value_type, _) => Some(random.value(*value_type)),
        SchemaType::Object(schema) => {
            let mut object = Json::Object(Map::new());
            fill(schema, &mut object, random, depth - 1);
            Some(object)
        }
        SchemaType::Array(element, length) => {
            let length = length.map_or(ELEMENTS, |length| (length as usize).min(64));
            (0..length)
                .map(|_| of_schema(element, random, depth - 1))
                .collect::<Option<Vec<_>>>()
                .map(Json::Array)
        }
        SchemaType::Open => None,
    }
}

/// A value at which a field can be read; `None` where any other value will do.
fn of_read(read: &Read, random: &mut Random) -> Option<Json> {
    match read {
        Read::Value(value_type) | Read::Number(value_type) => Some(random.value(*value_type)),
        Read::Presence => Some(json!(true)),
        Read::IsNan => Some(random.value(ValueType::Float)),
        Read::LengthOf(Countable::Text) => Some(random.value(ValueType::String)),
        Read::Length | Read::LengthOf(Countable::Array) => Some(json!([1, 2, 3])),
        Read::Elements(quantifier, conditions) => Some(elements(*quantifier, conditions, random)),
        Read::Witness(..) | Read::Table(_) => None,
    }
}

/// An array whose elements some conditions can test.
fn elements(quantifier: Quantifier, conditions: &[Condition], random: &mut Random) -> Json {
    let element = |_| {
        let mut element = if quantifier.is_measure() { random.value(ValueType::Float) } else { json!({}) };
        for condition in conditions {
            let value = match &condition.test {
                Test::Present => json!(true),
                Test::Equals(value) => of_value(value),
                Test::OtherText(_) => random.value(ValueType::String),
                Test::Number(..) => random.value(ValueType::Float),
                Test::Integer(..) => random.value(ValueType::Int),
            };
            set(&mut element, &condition.path.0, value);
        }
        element
    };
    Json::Array((0..ELEMENTS).map(element).collect())
}

fn of_value(value: &Value) -> Json {
    match value {
        Value::Bool(truth) => json!(truth),
        Value::Int(number) => json!(number),
        Value::Float(number) => json!(number),
        Value::Time(nanos) | Value::Duration(nanos) => json!(*nanos as f64 / 1e9),
        Value::String(text) => json!(text),
    }
}

/// Sets the value at a path, and returns whether a message can have this path.
fn set(at: &mut Json, path: &[Segment], value: Json) -> bool {
    let Some((first, rest)) = path.split_first() else {
        // For the presence of a field, its members will do, which other fields read.
        if !(at.is_object() || at.is_array()) || value != json!(true) {
            *at = value;
        }
        return true;
    };
    match first {
        Segment::Key(name) => {
            if !at.is_object() {
                *at = Json::Object(Map::new());
            }
            let Some(object) = at.as_object_mut() else { return false };
            set(object.entry(&**name).or_insert(Json::Null), rest, value)
        }
        Segment::Index(index) => set_element(at, *index as usize + 1, *index as usize, rest, value),
        Segment::FromEnd(back) => {
            let length = at.as_array().map_or(0, Vec::len).max(*back as usize);
            set_element(at, length, length - *back as usize, rest, value)
        }
        Segment::Named(named) => {
            let Some(name) = named.name().filter(|_| !named.is_parallel) else { return false };
            let length = at.as_array().map_or(0, Vec::len);
            let name = of_value(name);
            let is_it = |element: &Json| at_path(element, &named.key().0) == Some(&name);
            let index = at.as_array().and_then(|array| array.iter().position(is_it)).unwrap_or(length);
            set_element(at, index + 1, index, &named.key().0, name)
                && set_element(at, index + 1, index, rest, value)
        }
    }
}

/// Sets a value in an element of an array that has at least this length.
fn set_element(at: &mut Json, length: usize, index: usize, rest: &[Segment], value: Json) -> bool {
    if !at.is_array() {
        *at = Json::Array(Vec::new());
    }
    let Some(array) = at.as_array_mut().filter(|_| length <= 4096) else { return false };
    if array.len() < length {
        array.resize(length, Json::Null);
    }
    array.get_mut(index).is_some_and(|element| set(element, rest, value))
}

/// The value at a path of names.
fn at_path<'j>(at: &'j Json, path: &[Segment]) -> Option<&'j Json> {
    path.iter().try_fold(at, |at, segment| match segment {
        Segment::Key(name) => at.get(&**name),
        _ => None,
    })
}

/// Numbers that look random, the same in each run.
struct Random(u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn value(&mut self, value_type: ValueType) -> Json {
        match value_type {
            ValueType::Bool => json!(self.number() % 2 == 1),
            ValueType::Int => json!(self.number() % 100),
            ValueType::Float => json!((self.number() % 10_000) as f64 / 100.0),
            ValueType::Time | ValueType::Duration => json!((self.number() % 100) as f64),
            ValueType::String => {
                let words = ["idle", "moving", "charging"];
                json!(words[(self.number() % 3) as usize])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rondel_runtime::Options;

    use super::*;

    fn made(text: &str, keys: u64) -> (Vec<Json>, BTreeSet<String>) {
        let spec = rondel_spec::parse(text).spec.unwrap();
        let plan = SessionPlan::new(&spec, Options::immediate()).unwrap();
        let (sample, missing) = sample(plan, keys, 4);
        let parsed = sample.messages.iter().map(|message| serde_json::from_slice(&message.payload).unwrap());
        (parsed.collect(), missing)
    }

    #[test]
    fn messages_have_declared_and_read_fields() {
        let text = r#"topic car { id: int, pose: { x: float, tags: [string] }, mode: string }
                      property p for each c in car.id = car.pose.x < 1000 and car.mode != """#;
        let (messages, missing) = made(text, 3);
        assert_eq!(messages.len() as u64, 3 * 4);
        assert!(missing.is_empty(), "{missing:?}");
        for (i, message) in messages.iter().enumerate() {
            assert_eq!(message["id"], json!(i % 3));
            assert!(message["pose"]["x"].is_number() && message["mode"].is_string(), "{message}");
            assert_eq!(message["pose"]["tags"].as_array().unwrap().len(), ELEMENTS);
        }
        assert!(messages.iter().any(|message| message["pose"]["x"] != messages[0]["pose"]["x"]));
    }

    #[test]
    fn paths_lead_into_arrays() {
        let mut object = json!({});
        let key = |name: &str| Segment::Key(name.into());
        assert!(set(&mut object, &[key("a"), Segment::Index(1), key("b")], json!(2)));
        assert!(set(&mut object, &[key("c"), Segment::FromEnd(2)], json!(3)));
        assert_eq!(object, json!({"a": [null, {"b": 2}], "c": [3, null]}));
        // Presence leaves an array as it is.
        assert!(set(&mut object, &[key("a")], json!(true)) && object["a"].is_array());
    }

    #[test]
    fn a_topic_without_the_key_is_sent_once_a_round() {
        let text = "topic car { id: int, v: float } topic mode { on: bool }
                    property p for each c in car.id = mode.on -> car.v < 200";
        let (messages, _) = made(text, 5);
        assert_eq!(messages.len() as u64, 6 * 4);
    }

    #[test]
    fn addresses_name_the_key() {
        let text = r#"topic car "fleet/{id}/pose" { v: float }
                      property p for each c in car.id = car.v < 200"#;
        let spec = rondel_spec::parse(text).spec.unwrap();
        let (sample, _) = sample(SessionPlan::new(&spec, Options::immediate()).unwrap(), 4, 2);
        let names: BTreeSet<Option<NameId>> = sample.messages.iter().map(|message| message.name).collect();
        assert_eq!(names.len(), 4);
        assert!(!names.contains(&None));
    }
}
