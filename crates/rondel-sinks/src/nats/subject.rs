//! Subjects of verdicts: a template with placeholders.

use crate::entry::VerdictEntry;

/// Placeholders of a template.
const PLACEHOLDERS: [(&str, Placeholder); 3] =
    [("property", Placeholder::Property), ("series", Placeholder::Series), ("verdict", Placeholder::Verdict)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placeholder {
    Property,
    Series,
    Verdict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(Placeholder),
}

/// Template of subjects, such as `rondel.{property}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template(Vec<Part>);

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// A sentence with the template and the way out.
    pub(super) fn parse(text: &str) -> Result<Template, String> {
        let wrong = |reason: &str| Err(format!("cannot use the subject `{text}` of NATS: {reason}"));
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(begin) = rest.find(['{', '}']) {
            let inside = &rest[begin..];
            let Some(end) = inside.find('}').filter(|_| inside.starts_with('{')) else {
                return wrong("a brace has no partner; write placeholders as `{property}`");
            };
            let name = &inside[1..end];
            let Some((_, placeholder)) = PLACEHOLDERS.iter().find(|(known, _)| *known == name) else {
                let names = PLACEHOLDERS.map(|(name, _)| format!("`{{{name}}}`")).join(", ");
                return wrong(&format!("there is no placeholder `{{{name}}}`; use {names}"));
            };
            parts.extend((begin > 0).then(|| Part::Text(rest[..begin].to_owned())));
            parts.push(Part::Value(*placeholder));
            rest = &inside[end + 1..];
        }
        parts.extend((!rest.is_empty()).then(|| Part::Text(rest.to_owned())));
        // Values are never empty, and contain no character with a meaning.
        let example: String =
            parts.iter().map(|part| if let Part::Text(text) = part { text.as_str() } else { "x" }).collect();
        if example.split('.').any(str::is_empty) {
            return wrong("a part between dots is empty; write it like `rondel.{property}`");
        }
        if let Some(found) = example.chars().find(|&c| is_special(c) && c != '.' && c != '$') {
            return wrong(&format!(
                "{found:?} is not allowed in it; verdicts need a subject without wildcards and spaces"
            ));
        }
        if example.starts_with(['$', '_']) {
            return wrong(
                "subjects that begin with `$` or `_` belong to the server and its clients; begin with a name",
            );
        }
        Ok(Template(parts))
    }

    /// Returns the subject of a verdict.
    pub(super) fn subject(&self, verdict: &VerdictEntry<'_>, series: &str) -> String {
        let mut subject = String::with_capacity(64);
        for part in &self.0 {
            match part {
                Part::Text(text) => subject.push_str(text),
                Part::Value(Placeholder::Property) => push_token(verdict.property, &mut subject),
                Part::Value(Placeholder::Series) => push_token(series, &mut subject),
                Part::Value(Placeholder::Verdict) => subject.push_str(verdict.verdict.as_str()),
            }
        }
        subject
    }

    /// Returns the subjects of all verdicts, with wildcards, as a stream names them.
    pub(super) fn pattern(&self) -> String {
        let all: String =
            self.0.iter().map(|part| if let Part::Text(text) = part { text.as_str() } else { "*" }).collect();
        // A wildcard is a whole token.
        let tokens = all.split('.').map(|token| if token.contains('*') { "*" } else { token });
        tokens.collect::<Vec<_>>().join(".")
    }
}

/// Whether a character separates subjects, or has a meaning in them.
fn is_special(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, '.' | '*' | '>' | '$')
}

/// Appends a value as part of one token: characters with a meaning become `_`.
fn push_token(value: &str, out: &mut String) {
    out.extend(value.chars().map(|c| if is_special(c) { '_' } else { c }));
    if value.is_empty() {
        out.push('_');
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::outgoing::sample;

    #[test]
    fn placeholders_are_replaced() {
        let template = Template::parse("rondel.{series}.{property}.{verdict}").unwrap();
        assert_eq!(template.subject(&sample("brakes", None, ""), "car-7"), "rondel.car-7.brakes.violated");
        assert_eq!(
            template.subject(&sample("limits.v x", None, ""), "a>b*$"),
            "rondel.a_b__.limits_v_x.violated"
        );
        assert_eq!(template.subject(&sample("größe", None, ""), ""), "rondel._.größe.violated");
        assert_eq!(template.pattern(), "rondel.*.*.*");
        let template = Template::parse("a-{property}").unwrap();
        assert_eq!(
            (template.subject(&sample("p", None, ""), ""), template.pattern()),
            ("a-p".to_owned(), "*".to_owned())
        );
        let template = Template::parse("verdicts").unwrap();
        assert_eq!(
            (template.subject(&sample("p", None, ""), ""), template.pattern()),
            ("verdicts".to_owned(), "verdicts".to_owned())
        );
    }

    #[test]
    fn wrong_templates_are_refused() {
        for (text, reason) in [
            ("", "a part between dots is empty"),
            ("rondel..{property}", "a part between dots is empty"),
            ("rondel.", "a part between dots is empty"),
            (
                "rondel.{propery}",
                "there is no placeholder `{propery}`; use `{property}`, `{series}`, `{verdict}`",
            ),
            ("rondel.{property", "a brace has no partner"),
            ("rondel.property}", "a brace has no partner"),
            ("rondel.>", "'>' is not allowed"),
            ("rondel.*", "'*' is not allowed"),
            ("ron del", "' ' is not allowed"),
            ("$JS.{property}", "belong to the server"),
            ("_INBOX.{property}", "belong to the server"),
        ] {
            let error = Template::parse(text).unwrap_err();
            assert!(error.contains(reason) && error.contains(&format!("`{text}`")), "{error}");
        }
    }
}
