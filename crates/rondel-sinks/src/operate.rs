//! Actions of operators on a store: values, rules and texts that all stores share.

use serde_json::{Value, json};

/// Acknowledgement of a violation. It counts until `until`, and no longer than the violation lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgement<'a> {
    /// Name of the operator.
    pub by: &'a str,
    /// Comment.
    pub comment: &'a str,
    /// Time of day, in nanoseconds since the Unix epoch.
    pub at: i64,
    /// Time of day until which it counts; `None`: until the violation ends.
    pub until: Option<i64>,
    /// Whether it may replace the acknowledgement of another operator.
    pub replaces: bool,
}

/// A new silence of a property. It ends by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewSilence<'a> {
    /// Name of the property.
    pub property: &'a str,
    /// JSON object of the parameters with a chosen value; empty or `{}` for all instances.
    pub parameters: &'a str,
    /// Time of day from which it counts, in nanoseconds since the Unix epoch.
    pub from: i64,
    /// Time of day until which it counts.
    pub until: i64,
    /// Name of the operator.
    pub by: &'a str,
    /// Comment.
    pub comment: &'a str,
}

/// An action of an operator, as the store records it.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Row in the table of actions.
    pub id: i64,
    /// Kind: `ack`, `silence` or `unsilence`.
    pub kind: String,
    /// Time of day in nanoseconds since the Unix epoch.
    pub at: i64,
    /// Name of the operator.
    pub operator: String,
    /// JSON object that describes it.
    pub members: Value,
    /// Row of the violation or the silence.
    pub subject: i64,
}

/// A violation that an operator names.
pub(crate) struct Found {
    pub(crate) property: String,
    /// JSON object.
    pub(crate) parameters: String,
    pub(crate) series: String,
    /// End, as views show it.
    pub(crate) end: Option<String>,
    /// Operator who has acknowledged it, and until when.
    pub(crate) acknowledged: Option<(String, Option<i64>)>,
}

impl Found {
    /// Returns why an operator cannot acknowledge it.
    pub(crate) fn refusal(&self, violation: i64, by: &Acknowledgement<'_>) -> Option<String> {
        let Found { property, end, acknowledged, .. } = self;
        if let Some(end) = end {
            return Some(format!(
                "violation {violation} of '{property}' ended at {end}: there is nothing to acknowledge"
            ));
        }
        let (other, until) = acknowledged.as_ref()?;
        let is_taken = other != by.by && until.is_none_or(|until| until > by.at) && !by.replaces;
        is_taken.then(|| {
            format!(
                "violation {violation} of '{property}' is acknowledged by {other}; to take it over, say so with --replace"
            )
        })
    }

    /// Returns the members of an acknowledgement, whose end is shown as `until`.
    pub(crate) fn members(&self, violation: i64, until: Option<String>, comment: &str) -> Value {
        let Found { property, parameters, series, .. } = self;
        let mut members = json!({"violation": violation, "series": series, "property": property});
        add(&mut members, "parameters", &object(parameters));
        add(&mut members, "until", &json!(until));
        add(&mut members, "comment", &json!(comment));
        members
    }
}

/// The refusal of a violation that does not exist.
pub(crate) fn no_violation(violation: i64) -> String {
    format!("no violation has the number {violation}; the view `open_violations` lists those that are open")
}

/// The refusal of a silence that does not exist.
pub(crate) fn no_silence(silence: i64) -> String {
    format!("no silence has the number {silence}; the view `present_silences` lists those that last")
}

/// The refusal of a silence that has ended.
pub(crate) fn silence_ended(silence: i64, property: &str, end: &str) -> String {
    format!("silence {silence} of '{property}' ended at {end}")
}

/// Returns the members of a silence; of its removal without `until`.
pub(crate) fn silence_members(
    silence: i64,
    property: &str,
    parameters: &Value,
    until: Option<String>,
    comment: &str,
) -> Value {
    let mut members = json!({"silence": silence, "property": property});
    add(&mut members, "parameters", parameters);
    add(&mut members, "until", &json!(until));
    add(&mut members, "comment", &json!(comment));
    members
}

/// The refusal of a property that the store does not know.
pub(crate) fn no_property(property: &str) -> String {
    format!("no run of the store has a property '{property}'")
}

/// Returns why a silence has a parameter that its property does not have, as far as the parameters of an instance show.
pub(crate) fn wrong_parameter(property: &str, instance: Option<&str>, parameters: &Value) -> Option<String> {
    let (Some(instance), Value::Object(chosen)) = (instance, parameters) else { return None };
    let known = object(instance);
    let name = chosen.keys().find(|name| known.get(name).is_none())?;
    let names: Vec<String> = known
        .as_object()
        .into_iter()
        .flat_map(|known| known.keys())
        .map(|name| format!("'{name}'"))
        .collect();
    Some(match names.is_empty() {
        true => format!("'{property}' has no parameters: silence it without '{name}'"),
        false => format!("'{property}' has no parameter '{name}'; it has {}", names.join(", ")),
    })
}

/// An action that was carried out.
pub(crate) struct Done<'a> {
    pub(crate) kind: &'static str,
    pub(crate) at: i64,
    pub(crate) by: &'a str,
    pub(crate) members: Value,
    pub(crate) subject: i64,
}

impl Done<'_> {
    /// Returns the action in this row of the table of actions.
    pub(crate) fn action(self, id: i64) -> Action {
        let Done { kind, at, by, members, subject } = self;
        Action { id, kind: kind.to_owned(), at, operator: by.to_owned(), members, subject }
    }
}

/// Whether a parameter has a value that an operator has chosen: a number or boolean may be chosen for a text that is written
/// like it, and the reverse.
pub fn is_same_value(own: &Value, chosen: &Value) -> bool {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let is_float = own.is_f64() || chosen.is_f64();
    let is_equal_number = || own.as_f64().is_some_and(|own| chosen.as_f64() == Some(own));
    own == chosen || text(own) == text(chosen) || is_float && is_equal_number()
}

/// Reads a JSON object; an empty one if the text is none.
pub(crate) fn object(text: &str) -> Value {
    serde_json::from_str(text).ok().filter(Value::is_object).unwrap_or_else(|| json!({}))
}

/// Adds a member to a JSON object, unless it says nothing.
fn add(members: &mut Value, name: &str, value: &Value) {
    let is_empty = match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(object) => object.is_empty(),
        _ => false,
    };
    if !is_empty {
        members[name] = value.clone();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_as_operators_write_them() {
        let same = |own: &str, chosen: &str| {
            let [own, chosen] = [own, chosen].map(|text| serde_json::from_str(text).unwrap_or(Value::Null));
            is_same_value(&own, &chosen)
        };
        for (own, chosen) in [("7", "7"), ("\"7\"", "7"), ("7", "\"7\""), ("7.0", "7"), ("true", "\"true\"")]
        {
            assert!(same(own, chosen), "{own} {chosen}");
        }
        for (own, chosen) in [
            ("7", "8"),
            ("\"a\"", "\"b\""),
            ("9007199254740993", "9007199254740992"),
            ("true", "1"),
            ("\"1\"", "true"),
            ("false", "0"),
        ] {
            assert!(!same(own, chosen), "{own} {chosen}");
        }
    }
}
