//! The attributes of the language, and the values that they take.

/// The value that an attribute takes.
pub(crate) enum AttributeValue {
    Nothing,
    /// A positive number of instances.
    Count,
    Word(&'static [&'static str]),
    /// A duration or a number of steps.
    Length,
    /// A truth.
    Condition,
    /// The name of a property.
    Property,
}

/// The attribute that names the property whose violations mute those of its own.
pub(crate) const CAUSE: &str = "because_of";

/// The attributes of the language; all others are passed on with the verdicts.
pub(crate) const LANGUAGE_ATTRIBUTES: [(&str, AttributeValue); 12] = [
    ("limit", AttributeValue::Count),
    ("unbounded", AttributeValue::Nothing),
    ("plan", AttributeValue::Word(&["relations"])),
    ("time", AttributeValue::Word(&["steps", "points", "dense"])),
    ("robust", AttributeValue::Nothing),
    ("interpolate", AttributeValue::Word(&["constant", "linear"])),
    ("linear", AttributeValue::Nothing),
    ("warmup", AttributeValue::Length),
    ("while", AttributeValue::Condition),
    ("hold", AttributeValue::Length),
    ("latch", AttributeValue::Nothing),
    (CAUSE, AttributeValue::Property),
];

/// The attributes that the language knows, each as it is written: `@time(steps)`.
pub(crate) fn attribute_forms() -> impl Iterator<Item = (&'static str, String)> {
    let advice =
        |takes: &AttributeValue, name: &str| takes.advice(name).trim_start_matches("write ").to_owned();
    LANGUAGE_ATTRIBUTES.iter().map(move |(name, takes)| (*name, advice(takes, name)))
}

impl AttributeValue {
    /// Returns the value that a known attribute takes.
    pub(crate) fn named(name: &str) -> Option<&'static AttributeValue> {
        LANGUAGE_ATTRIBUTES.iter().find(|(known, _)| *known == name).map(|(_, takes)| takes)
    }

    /// Returns whether an attribute can have this value; none if it is bare.
    pub(crate) fn fits(&self, value: Option<&str>) -> bool {
        match (self, value) {
            (AttributeValue::Nothing, value) => value.is_none(),
            (AttributeValue::Count, Some(value)) => count(value).is_some(),
            (AttributeValue::Word(words), Some(value)) => words.contains(&value),
            // The parser has read them with the formula.
            (AttributeValue::Length | AttributeValue::Condition, Some(_)) => true,
            // Checked once all properties are known.
            (AttributeValue::Property, Some(_)) => true,
            (_, None) => false,
        }
    }

    /// Returns advice on how to write the attribute.
    pub(crate) fn advice(&self, name: &str) -> String {
        match self {
            AttributeValue::Nothing => format!("write `@{name}`"),
            AttributeValue::Count => format!("write `@{name}(100000)`"),
            AttributeValue::Length => format!("write `@{name}(5 s)`, or in steps `@{name}(5)`"),
            AttributeValue::Condition => format!("write a condition: `@{name}(topic.field > 0)`"),
            AttributeValue::Property => format!("write the name of a property: `@{name}(other)`"),
            AttributeValue::Word(words) => {
                let forms: Vec<_> = words.iter().map(|word| format!("`@{name}({word})`")).collect();
                match forms.split_last() {
                    Some((last, others)) if !others.is_empty() => {
                        format!("write {} or {last}", others.join(", "))
                    }
                    _ => format!("write {}", forms.concat()),
                }
            }
        }
    }
}

/// Parses a limit on the number of instances.
pub(crate) fn count(value: &str) -> Option<u64> {
    value.replace('_', "").parse().ok().filter(|limit| *limit > 0)
}
