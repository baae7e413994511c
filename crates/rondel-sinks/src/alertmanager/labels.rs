//! Labels, which identify an alert.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Labels of an alert. The same violation has the same labels in every run.
pub(crate) type Labels = BTreeMap<String, String>;

/// Parameters that become labels.
const PARAMETERS: usize = 16;
/// Bytes of a value.
const LONGEST: usize = 256;
/// Labels that Rondel sets.
const OWN: [&str; 4] = ["alertname", "severity", "series", "instance_hash"];
/// Configured labels.
const CONFIGURED: usize = 16;

/// Checks configured labels.
pub(super) fn check_labels(labels: Vec<(String, String)>) -> Result<Labels, String> {
    if labels.len() > CONFIGURED {
        return Err(format!("an alert has at most {CONFIGURED} configured labels; remove some"));
    }
    for (name, value) in &labels {
        if OWN.contains(&name.as_str()) {
            return Err(format!("the label `{name}` is set by Rondel; choose another name"));
        }
        if valid_name(name) != *name {
            return Err(format!(
                "`{name}` is not a name of a label; use letters, digits and _, such as `{}`",
                valid_name(name)
            ));
        }
        if value.is_empty() || value.len() > LONGEST {
            return Err(format!("the label `{name}` needs a value of 1 to {LONGEST} bytes"));
        }
    }
    Ok(labels.into_iter().collect())
}

/// An instance of a property, in a run.
#[derive(Clone, Copy)]
pub(super) struct Instance<'a> {
    pub(super) property: &'a str,
    /// Parameters as a JSON object.
    pub(super) parameters: &'a str,
    pub(super) severity: &'a str,
    pub(super) series: &'a str,
}

/// Returns the labels of an instance.
pub(super) fn labels(configured: &Labels, instance: Instance<'_>) -> Labels {
    let mut labels = configured.clone();
    let mut is_cut = false;
    let mut insert = |name: String, value: &str| {
        let kept = cut(value, LONGEST);
        is_cut |= kept.len() < value.len();
        // Alertmanager takes a label without a value for none.
        if !kept.is_empty() {
            labels.insert(name, kept.to_owned());
        }
    };
    insert("alertname".to_owned(), instance.property);
    insert("severity".to_owned(), instance.severity);
    insert("series".to_owned(), instance.series);
    let parameters: BTreeMap<String, Value> = serde_json::from_str(instance.parameters).unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    for (name, value) in parameters.iter().take(PARAMETERS) {
        let mut name = valid_name(cut(name, LONGEST));
        let is_taken = |name: &String| {
            OWN.contains(&name.as_str()) || configured.contains_key(name) || names.contains(name)
        };
        if is_taken(&name) {
            name = format!("parameter_{name}");
        }
        while is_taken(&name) {
            name.push('_');
        }
        match value {
            Value::String(text) => insert(name.clone(), text),
            value => insert(name.clone(), &value.to_string()),
        }
        names.push(name);
    }
    if is_cut || parameters.len() > PARAMETERS || !instance.parameters.is_empty() && parameters.is_empty() {
        labels.insert("instance_hash".to_owned(), instance_hash(instance));
    }
    labels
}

/// A hash that distinguishes instances whose labels were cut.
fn instance_hash(instance: Instance<'_>) -> String {
    let mut hash = Sha256::new();
    hash.update(instance.property);
    hash.update([0]);
    hash.update(instance.parameters);
    let mut text = String::new();
    for byte in &hash.finalize()[..8] {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Replaces what a name of a label cannot contain by `_`.
fn valid_name(name: &str) -> String {
    let mut valid: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if valid.is_empty() || valid.starts_with(|c: char| c.is_ascii_digit()) {
        valid.insert(0, '_');
    }
    // Names with two at the begin are reserved.
    while valid.starts_with("__") {
        valid.remove(0);
    }
    valid
}

/// Returns the begin of a text, at most `longest` bytes.
pub(super) fn cut(text: &str, longest: usize) -> &str {
    let mut end = text.len().min(longest);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(parameters: &str) -> Labels {
        let configured = check_labels(vec![("site".to_owned(), "north".to_owned())]).unwrap();
        labels(&configured, Instance { property: "gap", parameters, severity: "critical", series: "car-7" })
    }

    fn text(labels: &Labels) -> String {
        labels.iter().map(|(name, value)| format!("{name}={value} ")).collect()
    }

    #[test]
    fn parameters_become_labels() {
        assert_eq!(text(&of("")), "alertname=gap series=car-7 severity=critical site=north ");
        let own =
            r#"{"robot":7,"site":"south","a.b":"x","a-b":"y","severity":true,"1":2,"empty":"","__x":1}"#;
        assert_eq!(
            text(&of(own)),
            "_1=2 _x=1 a_b=y alertname=gap parameter_a_b=x parameter_severity=true parameter_site=south robot=7 \
             series=car-7 severity=critical site=north "
        );
    }

    #[test]
    fn labels_are_bounded_and_distinct() {
        let long = |end: &str| format!(r#"{{"text":"{}{end}"}}"#, "\u{fc}".repeat(1000));
        let (one, other) = (of(&long("a")), of(&long("b")));
        assert!(one != other && one["text"] == other["text"] && one["text"].len() <= LONGEST);
        assert_eq!(one, of(&long("a")), "the hash is the same in every run");
        let many: Vec<String> = (0..1000).map(|i| format!(r#""p{i:04}":{i}"#)).collect();
        let many = of(&format!("{{{}}}", many.join(",")));
        assert_eq!(many.len(), 4 + PARAMETERS + 1);
        assert!(of("no object").contains_key("instance_hash"));
    }

    #[test]
    fn configured_labels_are_checked() {
        let of = |name: &str, value: &str| check_labels(vec![(name.to_owned(), value.to_owned())]);
        assert!(of("a b", "x").unwrap_err().contains("such as `a_b`"));
        assert!(of("alertname", "x").unwrap_err().contains("set by Rondel"));
        assert!(of("__x", "x").is_err() && of("a", "").is_err() && of("a", &"x".repeat(300)).is_err());
        assert!(check_labels(vec![(String::new(), String::new()); 17]).unwrap_err().contains("at most 16"));
    }
}
