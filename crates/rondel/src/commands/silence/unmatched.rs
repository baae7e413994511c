//! Silences that cover no instance of their property in the store.

use rondel_runtime::text::counted;
use rondel_sinks::sqlite::is_same_value;
use rondel_spec::nearest;
use serde_json::{Map, Value};

/// Values that a message lists.
const LISTED: usize = 3;

/// Returns the reason why a silence with these parameters covers none of the instances of its property, if so. All are JSON
/// objects.
pub(super) fn unmatched(property: &str, parameters: &str, instances: &[String]) -> Option<String> {
    let object = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap_or_default();
    let chosen = object(parameters);
    if chosen.is_empty() {
        return None;
    }
    let text = Value::Object(chosen.clone());
    if instances.is_empty() {
        return Some(format!(
            "the store has no instance of '{property}' yet: whether the silence of {text} covers one is unknown"
        ));
    }
    let instances: Vec<Map<String, Value>> = instances.iter().map(|instance| object(instance)).collect();
    let has = |instance: &Map<String, Value>, name: &str, value: &Value| {
        instance.get(name).is_some_and(|own| is_same_value(own, value))
    };
    if instances.iter().any(|instance| chosen.iter().all(|(name, value)| has(instance, name, value))) {
        return None;
    }
    let absent = chosen.iter().find(|(name, value)| !instances.iter().any(|own| has(own, name, value)));
    let Some((name, value)) = absent else {
        return Some(format!("no present instance of '{property}' has all of {text}"));
    };
    let own: Vec<&Value> = instances.iter().filter_map(|instance| instance.get(name)).collect();
    Some(format!("no present instance of '{property}' has {name}={}{}", written(value), values(value, &own)))
}

/// The values that a parameter has, with their type where the chosen value cannot be one of them, and the nearest of texts.
fn values(chosen: &Value, own: &[&Value]) -> String {
    let is_text = chosen.is_string();
    let chosen = written(chosen);
    let mut texts: Vec<String> = own.iter().map(|value| written(value)).collect();
    texts.sort_unstable();
    texts.dedup();
    if texts.is_empty() {
        return String::new();
    }
    if is_text && let Some(near) = nearest(&chosen, texts.iter().map(String::as_str)) {
        return format!("; did you mean {near}?");
    }
    let kind = match chosen.parse::<f64>().is_err() && chosen != "true" && chosen != "false" {
        true if own.iter().all(|value| value.is_number()) => ", whose values are numbers",
        true if own.iter().all(|value| value.is_boolean()) => ", whose values are booleans",
        _ => "",
    };
    let further = match texts.len().saturating_sub(LISTED) {
        0 => String::new(),
        further => format!(" and {}", counted(further as u64, "other", "others")),
    };
    texts.truncate(LISTED);
    format!("{kind}; it has {}{further}", texts.join(", "))
}

/// A value as `--where` takes it.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => rondel_event::terminal::escaped(text).into_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_values_are_compared_with_those_of_instances() {
        let all = |instances: &[&str]| instances.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let robots = all(&[r#"{"id":1,"arm":"left"}"#, r#"{"id":2,"arm":"right"}"#]);
        for covered in ["{}", r#"{"id":1}"#, r#"{"id":"2"}"#, r#"{"id":1.0,"arm":"left"}"#] {
            assert_eq!(unmatched("p", covered, &robots), None, "{covered}");
        }
        let many = all(&[r#"{"id":1}"#, r#"{"id":2}"#, r#"{"id":3}"#, r#"{"id":40}"#, r#"{"id":40}"#]);
        let flags = all(&[r#"{"on":true}"#]);
        for (instances, parameters, expected) in [
            (&robots, r#"{"id":7}"#, "no present instance of 'p' has id=7; it has 1, 2"),
            (&robots, r#"{"arm":"lefft"}"#, "no present instance of 'p' has arm=lefft; did you mean left?"),
            (
                &robots,
                r#"{"id":1,"arm":"right"}"#,
                r#"no present instance of 'p' has all of {"arm":"right","id":1}"#,
            ),
            (
                &many,
                r#"{"id":"gripper"}"#,
                "no present instance of 'p' has id=gripper, whose values are numbers; it has 1, 2, 3 and 1 other",
            ),
            (
                &flags,
                r#"{"on":"open"}"#,
                "no present instance of 'p' has on=open, whose values are booleans; it has true",
            ),
            (
                &Vec::new(),
                r#"{"id":7}"#,
                r#"the store has no instance of 'p' yet: whether the silence of {"id":7} covers one is unknown"#,
            ),
        ] {
            assert_eq!(unmatched("p", parameters, instances).as_deref(), Some(expected));
        }
    }
}
