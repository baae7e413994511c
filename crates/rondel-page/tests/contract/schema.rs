//! The part of JSON Schema that the description of the API uses, checked strictly: an answer has no member that its schema
//! does not name.

use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use serde_json::{Map, Number, Value};

/// The description of the API.
pub(crate) struct Api(Value);

/// A node of YAML as JSON.
fn json(node: &Yaml<'_>) -> Value {
    match node {
        Yaml::Value(Scalar::Boolean(truth)) => Value::Bool(*truth),
        Yaml::Value(Scalar::Integer(number)) => Value::from(*number),
        Yaml::Value(Scalar::FloatingPoint(number)) => {
            Number::from_f64(number.into_inner()).map_or(Value::Null, Value::Number)
        }
        Yaml::Value(Scalar::String(text)) => Value::String(text.to_string()),
        Yaml::Sequence(elements) => Value::Array(elements.iter().map(json).collect()),
        Yaml::Mapping(members) => {
            let member = |(name, value): (&Yaml<'_>, &Yaml<'_>)| {
                (name.as_str().expect("names are texts").to_owned(), json(value))
            };
            Value::Object(members.iter().map(member).collect::<Map<_, _>>())
        }
        _ => Value::Null,
    }
}

impl Api {
    pub(crate) fn new() -> Api {
        let text = include_str!("../../../../docs/reference/openapi.yaml");
        Api(json(&Yaml::load_from_str(text).unwrap()[0]))
    }

    /// The paths with their methods.
    pub(crate) fn operations(&self) -> Vec<(String, String)> {
        let paths = self.0["paths"].as_object().unwrap();
        let methods = |(path, methods): (&String, &Value)| {
            let names = methods.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
            names.into_iter().map(|name| (name, path.clone())).collect::<Vec<_>>()
        };
        paths.iter().flat_map(methods).collect()
    }

    /// Checks the answer to an operation.
    pub(crate) fn check(&self, method: &str, path: &str, answer: &Value) {
        let content = &self.0["paths"][path][method]["responses"]["200"]["content"];
        let schema = &content["application/json"]["schema"];
        assert!(schema.is_object(), "{method} {path} is not described");
        self.check_value(schema, answer, path);
    }

    /// Checks a value against a named schema.
    pub(crate) fn check_named(&self, name: &str, value: &Value) {
        self.check_value(&self.0["components"]["schemas"][name], value, name);
    }

    fn check_value(&self, schema: &Value, value: &Value, place: &str) {
        if let Err(why) = self.matches(schema, value, place) {
            panic!("{why}");
        }
    }

    fn matches(&self, schema: &Value, value: &Value, place: &str) -> Result<(), String> {
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.strip_prefix("#/components/schemas/").expect("references are to schemas");
            let schema = &self.0["components"]["schemas"][name];
            assert!(schema.is_object(), "{place}: there is no schema {name}");
            return self.matches(schema, value, place);
        }
        if let Some(choices) = schema["oneOf"].as_array() {
            let found = choices.iter().filter(|choice| self.matches(choice, value, place).is_ok()).count();
            return match found {
                1 => Ok(()),
                _ => Err(format!("{place}: {found} schemas of oneOf match {value}")),
            };
        }
        let types = match &schema["type"] {
            Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
            Value::String(name) => vec![name.as_str()],
            _ => Vec::new(),
        };
        if !types.is_empty() && !types.iter().any(|name| is_of_type(value, name)) {
            return Err(format!("{place}: {value} is not of type {types:?}"));
        }
        if let Some(allowed) = schema["enum"].as_array()
            && !allowed.contains(value)
        {
            return Err(format!("{place}: {value} is none of {allowed:?}"));
        }
        for (bound, is_kept) in [
            ("minimum", (|a, b| a >= b) as fn(f64, f64) -> bool),
            ("maximum", (|a, b| a <= b) as fn(f64, f64) -> bool),
        ] {
            if let Some((number, bound)) = value.as_f64().zip(schema[bound].as_f64())
                && !is_kept(number, bound)
            {
                return Err(format!("{place}: {number} exceeds {bound}"));
            }
        }
        for (at, element) in value.as_array().into_iter().flatten().enumerate() {
            self.matches(&schema["items"], element, &format!("{place}[{at}]"))?;
        }
        self.members(schema, value, place)
    }

    fn members(&self, schema: &Value, value: &Value, place: &str) -> Result<(), String> {
        let (Some(properties), Some(members)) = (schema["properties"].as_object(), value.as_object()) else {
            return Ok(());
        };
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                return Err(format!("{place}: `{name}` is missing in {value}"));
            }
        }
        for (name, member) in members {
            match properties.get(name) {
                Some(schema) => self.matches(schema, member, &format!("{place}.{name}"))?,
                None => return Err(format!("{place}: `{name}` is not described")),
            }
        }
        Ok(())
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("unknown type {other}"),
    }
}

#[test]
fn checker_finds_mistakes() {
    let api = Api::new();
    let schema = serde_json::json!({
        "type": "object", "required": ["a"],
        "properties": {"a": {"type": ["integer", "null"], "minimum": 1}, "b": {"enum": ["x"]}, "c": {"type": "array", "items": {"type": "number"}}},
    });
    let fits = |value: Value| api.matches(&schema, &value, "").is_ok();
    for right in [r#"{"a": 1}"#, r#"{"a": null, "b": "x", "c": []}"#, r#"{"a": 2, "c": [1, 2.5]}"#] {
        assert!(fits(serde_json::from_str(right).unwrap()), "{right}");
    }
    for wrong in [
        "{}",
        r#"{"a": 0}"#,
        r#"{"a": 1.5}"#,
        r#"{"a": 1, "b": "y"}"#,
        r#"{"a": 1, "c": ["x"]}"#,
        r#"{"a": 1, "d": 1}"#,
        "[]",
    ] {
        assert!(!fits(serde_json::from_str(wrong).unwrap()), "{wrong}");
    }
}
