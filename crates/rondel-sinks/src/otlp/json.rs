//! The messages of the protocol in JSON: names in lower camel case, 64-bit integers as texts.

use rondel_event::terminal;
use serde::{Deserialize, Serialize, Serializer};

use super::Origin;

/// An attribute.
#[derive(Serialize)]
pub(super) struct KeyValue<'a> {
    pub(super) key: &'a str,
    pub(super) value: AnyValue<'a>,
}

/// A value of an attribute.
#[derive(Serialize)]
pub(super) enum AnyValue<'a> {
    #[serde(rename = "stringValue")]
    Text(&'a str),
    #[serde(rename = "boolValue")]
    Bool(bool),
    #[serde(rename = "intValue", serialize_with = "text")]
    Int(i64),
    #[serde(rename = "doubleValue", serialize_with = "double")]
    Double(f64),
}

/// Attributes of the program that sends.
#[derive(Serialize)]
pub(super) struct Resource<'a> {
    pub(super) attributes: Vec<KeyValue<'a>>,
}

/// Name and version of the library that sends.
#[derive(Serialize)]
pub(super) struct Scope {
    name: &'static str,
    version: &'static str,
}

pub(super) const SCOPE: Scope = Scope { name: "rondel", version: env!("CARGO_PKG_VERSION") };

/// Returns a resource: the attributes of its origin, except those that are configured, and the configured ones.
pub(super) fn resource<'a>(origin: &'a Origin, configured: &'a [(String, String)]) -> Resource<'a> {
    let own = [
        ("service.name", "rondel"),
        ("service.version", &origin.version),
        ("service.instance.id", &origin.instance),
        ("host.name", &origin.host),
        ("rondel.series", &origin.series),
    ];
    let is_configured = |name: &str| configured.iter().any(|(configured, _)| configured == name);
    let own = own.into_iter().filter(|(name, value)| !value.is_empty() && !is_configured(name));
    let configured = configured.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    Resource { attributes: own.chain(configured).map(|(name, value)| attribute(name, value)).collect() }
}

/// Returns an attribute.
pub(super) fn attribute<'a>(key: &'a str, value: &'a str) -> KeyValue<'a> {
    KeyValue { key, value: AnyValue::Text(value) }
}

/// Writes an integer as a text, as the protocol demands it for 64 bits.
pub(super) fn text<S: Serializer>(value: &impl ToString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&value.to_string())
}

/// Writes integers as texts.
pub(super) fn texts<S: Serializer>(values: &&[u64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(ToString::to_string))
}

/// Writes a number, also an infinite one or none.
pub(super) fn double<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() {
        serializer.serialize_f64(*value)
    } else if value.is_nan() {
        serializer.serialize_str("NaN")
    } else {
        serializer.serialize_str(if *value > 0.0 { "Infinity" } else { "-Infinity" })
    }
}

/// Checks attributes of a resource.
pub(super) fn check_resource(resource: &[(String, String)]) -> Result<(), String> {
    if resource.len() > 64 {
        return Err("a resource has at most 64 attributes; remove some".to_owned());
    }
    match resource.iter().find(|(name, _)| name.is_empty()) {
        Some((_, value)) => {
            Err(format!("an attribute of the resource has no name; name it, its value is {value}"))
        }
        None => Ok(()),
    }
}

/// Records or points that a receiver rejects, beside those it accepts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PartialSuccess {
    pub(super) refused: u64,
    pub(super) message: String,
}

/// The same as it is received.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Received {
    partial_success: Option<Counts>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    #[serde(default, alias = "rejectedDataPoints")]
    rejected_log_records: Count,
    #[serde(default)]
    error_message: String,
}

/// A count as a text or as a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Count {
    Number(u64),
    Text(String),
}

impl Default for Count {
    fn default() -> Count {
        Count::Number(0)
    }
}

impl PartialSuccess {
    /// Reads the body of an answer; `None` if it says nothing about rejected records.
    pub(super) fn parse(body: &[u8]) -> Option<PartialSuccess> {
        let Counts { rejected_log_records, error_message } =
            serde_json::from_slice::<Received>(body).ok()?.partial_success?;
        let refused = match rejected_log_records {
            Count::Number(number) => number,
            Count::Text(text) => text.parse().ok()?,
        };
        let message = terminal::escaped_beginning(&error_message, 200);
        Some(PartialSuccess { refused, message })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn partial_success_is_read() {
        let parse = |text: &str| PartialSuccess::parse(text.as_bytes());
        let some = |refused, message: &str| Some(PartialSuccess { refused, message: message.to_owned() });
        assert_eq!(
            parse(r#"{"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"too\nold"}}"#),
            some(3, "too\\nold")
        );
        assert_eq!(parse(r#"{"partialSuccess":{"rejectedDataPoints":7}}"#), some(7, ""));
        assert_eq!(parse(r#"{"partialSuccess":{}}"#), some(0, ""));
        for nothing in
            ["", "{}", r#"{"partialSuccess":null}"#, "[]", r#"{"partialSuccess":{"rejectedLogRecords":"x"}}"#]
        {
            assert_eq!(parse(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn numbers_have_the_forms_of_the_protocol() {
        let of = |value| serde_json::to_string(&value).unwrap();
        assert_eq!(of(AnyValue::Int(i64::MIN)), r#"{"intValue":"-9223372036854775808"}"#);
        assert_eq!(of(AnyValue::Double(f64::NEG_INFINITY)), r#"{"doubleValue":"-Infinity"}"#);
        assert_eq!(of(AnyValue::Double(f64::NAN)), r#"{"doubleValue":"NaN"}"#);
        assert_eq!(of(AnyValue::Double(0.5)), r#"{"doubleValue":0.5}"#);
    }

    #[test]
    fn resource_is_checked() {
        assert!(check_resource(&[(String::new(), "x".to_owned())]).unwrap_err().contains("no name"));
        assert!(check_resource(&vec![("a".to_owned(), String::new()); 65]).is_err());
    }
}
