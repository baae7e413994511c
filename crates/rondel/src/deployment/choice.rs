//! The choice of properties by name and severity, in all sections.

use rondel_runtime::Severity;
use rondel_spec::{Property, Spec};

use super::yaml::{Item, Mistakes, hint};

/// Returns the position of a property. An assert is named as in addresses, such as `assert_1`, or by its text.
pub(super) fn position(spec: &Spec, name: &str) -> Option<usize> {
    let names = spec.address_names();
    let is_named = |position: &usize| names[*position] == name || spec.properties[*position].name == name;
    (0..names.len()).find(is_named)
}

/// Returns the position of a property that `item` names; notes a mistake if there is none.
pub(super) fn named(spec: &Spec, name: &str, item: Item<'_>, mistakes: &mut Mistakes) -> Option<usize> {
    let found = position(spec, name);
    if found.is_none() {
        let names = spec.address_names();
        let hint = hint(name, "its properties are", || names.iter().map(String::as_str));
        mistakes.at(item, format!("the specification has no property '{name}'; {hint}"));
    }
    found
}

/// Reads the least severity of chosen properties.
pub(super) fn read_severity(item: Item<'_>, mistakes: &mut Mistakes) -> Option<Severity> {
    let severity = Severity::named(&item.text("severity", mistakes)?);
    if severity.is_none() {
        mistakes.at(item, "`severity` must be info, warning, error or critical");
    }
    severity
}

/// Returns the severity of a property.
pub(super) fn severity_of(property: &Property) -> Severity {
    let mut attributes = property.attributes.iter();
    Severity::of(attributes.find(|(name, _)| name == "severity").map(|(_, value)| value.as_str()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn asserts_are_named_as_in_addresses_or_by_text() {
        let text =
            "topic t { x: float } property p = t.x > 0 assert always p assert mostly = share(p) >= 0.9";
        let spec = rondel_spec::parse(text).spec.unwrap();
        let own = spec.properties[1].name.clone();
        let found =
            ["p", "assert_1", own.as_str(), "mostly", "assert_2", "q"].map(|name| position(&spec, name));
        assert_eq!(found, [Some(0), Some(1), Some(1), Some(2), None, None]);
    }

    #[test]
    fn severity_is_that_of_the_attribute() {
        let text = "topic t { x: float } @severity(fatal) property p = t.x > 0 property q = t.x > 1";
        let spec = rondel_spec::parse(text).spec.unwrap();
        let found: Vec<Severity> = spec.properties.iter().map(severity_of).collect();
        assert_eq!(found, [Severity::Critical, Severity::Error]);
    }
}
