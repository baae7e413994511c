//! Severities of properties.

/// Severity of a property, by the value of its attribute `@severity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// `info` and its synonyms.
    Info,
    /// `warning` and its synonyms.
    Warning,
    /// No severity, or any other.
    Error,
    /// `critical` and its synonyms.
    Critical,
}

/// The severities, with the values that have them. All others, and none, are errors.
const SEVERITIES: [(Severity, &[&str]); 4] = [
    (Severity::Info, &["info", "information", "notice", "note", "debug"]),
    (Severity::Warning, &["warning", "warn", "minor", "low", "advisory"]),
    (Severity::Error, &["error", "major", "medium"]),
    (Severity::Critical, &["critical", "fatal", "high", "severe", "blocker", "emergency"]),
];

impl Severity {
    /// Returns the severity of a property with this value of the attribute, in any case of letters.
    pub fn of(value: Option<&str>) -> Severity {
        let value = value.unwrap_or_default();
        let has = |names: &[&str]| names.iter().any(|name| value.eq_ignore_ascii_case(name));
        let found = SEVERITIES.iter().find(|(_, names)| has(names));
        found.map_or(Severity::Error, |(severity, _)| *severity)
    }

    /// Returns the severity with this name, one of `info`, `warning`, `error` and `critical`.
    pub fn named(name: &str) -> Option<Severity> {
        SEVERITIES.iter().find(|(_, names)| names.first() == Some(&name)).map(|(severity, _)| *severity)
    }

    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
            Severity::Critical => "critical",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_severities() {
        assert_eq!(Severity::of(Some("Critical")), Severity::Critical);
        assert_eq!(Severity::of(Some("my own")), Severity::Error);
        assert_eq!(Severity::of(None), Severity::Error);
        assert!(Severity::of(Some("note")) < Severity::of(Some("advisory")));
        assert_eq!(Severity::named("critical"), Some(Severity::Critical));
        assert_eq!((Severity::named("fatal"), Severity::named("")), (None, None));
    }
}
