//! Violations of properties that reloads have changed or removed: the end of the run still knows of them.

use std::collections::BTreeMap;

use rondel_runtime::text::counted;
use serde_json::{Value, json};

/// The violations of a property that does not keep its state in a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastViolations {
    /// Position of the property before the reload.
    pub property: u32,
    /// Number of times that it became violated.
    pub violations: u64,
    /// Whether an assert judges it instead.
    pub is_asserted: bool,
    /// Whether it, or an instance of it, is violated at the reload.
    pub lasts: bool,
}

/// All of them in a run.
#[derive(Clone, Debug, Default)]
pub struct PastViolations {
    violations: BTreeMap<String, u64>,
    is_violated: bool,
}

impl PastViolations {
    /// Adds those of a property.
    pub fn add(&mut self, name: &str, last: &LastViolations) {
        *self.violations.entry(name.to_owned()).or_default() += last.violations;
        self.is_violated |= !last.is_asserted;
    }

    /// Whether they make the run a violated one.
    pub fn is_violated(&self) -> bool {
        self.is_violated
    }

    /// Returns them as a JSON array.
    pub fn json(&self) -> Value {
        self.violations.iter().map(|(name, count)| json!({"property": name, "violations": count})).collect()
    }

    /// Returns a sentence for each property.
    pub fn sentences(&self) -> Vec<String> {
        let sentence = |(name, count): (&String, &u64)| {
            format!("{name}: violated {} before it was changed by a reload", counted(*count, "time", "times"))
        };
        self.violations.iter().map(sentence).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_of_a_name_are_added() {
        let mut past = PastViolations::default();
        let mut last = LastViolations { property: 0, violations: 2, is_asserted: true, lasts: false };
        past.add("judged", &last);
        assert!(!past.is_violated());
        (last.violations, last.is_asserted) = (1, false);
        past.add("judged", &last);
        assert!(past.is_violated());
        assert_eq!(past.json(), json!([{"property": "judged", "violations": 3}]));
        assert_eq!(past.sentences(), ["judged: violated 3 times before it was changed by a reload"]);
    }
}
