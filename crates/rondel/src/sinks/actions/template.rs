//! Values of actions with placeholders, such as `{robot}` and `{property} at {time}`.

use std::fmt;

use serde_json::Value;

/// Meaning of a placeholder. A parameter of the instance with the name of a fact is meant instead of the fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placeholder {
    /// The name of the property.
    Property,
    /// The verdict.
    Verdict,
    /// The time of the verdict, as a date.
    Time,
    /// The severity of the property.
    Severity,
    /// The robustness.
    Robustness,
    /// The id of the verdict.
    Id,
    /// A parameter of the instance, or else a value of the explanation.
    Named(String),
}

impl Placeholder {
    fn parse(name: &str) -> Placeholder {
        match name {
            "property" => Placeholder::Property,
            "verdict" => Placeholder::Verdict,
            "time" => Placeholder::Time,
            "severity" => Placeholder::Severity,
            "robustness" => Placeholder::Robustness,
            "id" => Placeholder::Id,
            other => Placeholder::Named(other.to_owned()),
        }
    }

    /// Its name, without braces.
    pub fn name(&self) -> &str {
        match self {
            Placeholder::Property => "property",
            Placeholder::Verdict => "verdict",
            Placeholder::Time => "time",
            Placeholder::Severity => "severity",
            Placeholder::Robustness => "robustness",
            Placeholder::Id => "id",
            Placeholder::Named(name) => name,
        }
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}}}", self.name())
    }
}

/// Source of the values of placeholders.
pub trait Facts {
    /// Returns the value of a placeholder; `null` if it is not known.
    fn value(&self, of: &Placeholder) -> Value;
}

/// A text with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextTemplate(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Place(Placeholder),
}

impl TextTemplate {
    /// Parses a text. `{{` and `}}` stand for a brace.
    ///
    /// # Errors
    /// The mistake.
    pub fn parse(text: &str) -> Result<TextTemplate, String> {
        let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let (brace, after) = rest[at..].split_at(1);
            if let Some(after) = after.strip_prefix(brace) {
                plain.push_str(brace);
                rest = after;
                continue;
            }
            let name = after.split_once('}').filter(|_| brace == "{");
            let Some((name, after)) = name else {
                return Err(match brace {
                    "{" => {
                        "a `{` is not closed: write `{{` for a brace, or a placeholder such as `{property}`"
                    }
                    _ => "a `}` closes nothing: write `}}` for a brace",
                }
                .to_owned());
            };
            if name.is_empty() || name.contains(|c: char| c.is_whitespace() || "{\",".contains(c)) {
                return Err(format!(
                    "`{{{name}}}` is no placeholder such as `{{property}}`: write `{{{{` for a brace"
                ));
            }
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Place(Placeholder::parse(name)));
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() || parts.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(TextTemplate(parts))
    }

    /// Returns the placeholders.
    pub fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.0.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Place(of) => Some(of),
        })
    }

    /// Returns the placeholder, if the text is nothing else.
    pub fn only(&self) -> Option<&Placeholder> {
        match &self.0[..] {
            [Part::Place(of)] => Some(of),
            _ => None,
        }
    }

    /// Returns the text between the placeholders.
    pub fn plain(&self) -> String {
        self.0
            .iter()
            .filter_map(|part| match part {
                Part::Text(plain) => Some(plain.as_str()),
                Part::Place(_) => None,
            })
            .collect()
    }

    /// Returns the text with values; one that is not known is `unknown`.
    pub fn text(&self, facts: &impl Facts) -> String {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Place(of) => match facts.value(of) {
                    Value::Null => text.push_str("unknown"),
                    Value::String(value) => text.push_str(&value),
                    value => text.push_str(&value.to_string()),
                },
            }
        }
        text
    }
}

/// A value with placeholders.
#[derive(Clone, Debug, PartialEq)]
pub enum Template {
    /// A value without any.
    Fixed(Value),
    /// A text with some. A text that is only a placeholder has the type of its value.
    Text(TextTemplate),
    /// A list.
    List(Vec<Template>),
    /// A mapping, in the order in which it is written.
    Mapping(Vec<(String, Template)>),
}

impl Template {
    /// Returns the value with those of the placeholders.
    pub fn render(&self, facts: &impl Facts) -> Value {
        match self {
            Template::Fixed(value) => value.clone(),
            Template::Text(text) => match text.only() {
                Some(of) => facts.value(of),
                None => Value::String(text.text(facts)),
            },
            Template::List(items) => items.iter().map(|item| item.render(facts)).collect(),
            Template::Mapping(members) => {
                let members = members.iter().map(|(name, member)| (name.clone(), member.render(facts)));
                Value::Object(members.collect())
            }
        }
    }

    /// Visits every placeholder.
    pub fn visit(&self, visit: &mut dyn FnMut(&Placeholder)) {
        match self {
            Template::Fixed(_) => {}
            Template::Text(text) => text.placeholders().for_each(visit),
            Template::List(items) => items.iter().for_each(|item| item.visit(visit)),
            Template::Mapping(members) => members.iter().for_each(|(_, member)| member.visit(visit)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Known;

    impl Facts for Known {
        fn value(&self, of: &Placeholder) -> Value {
            match of {
                Placeholder::Property => json!("gap"),
                Placeholder::Robustness => json!(-0.5),
                Placeholder::Named(name) if name == "robot" => json!(7),
                Placeholder::Named(name) if name == "on" => json!(true),
                _ => Value::Null,
            }
        }
    }

    fn text(text: &str) -> TextTemplate {
        TextTemplate::parse(text).unwrap()
    }

    #[test]
    fn texts_are_rendered() {
        for (template, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("{property}", "gap"),
            ("{property} of {robot}: {robustness}", "gap of 7: -0.5"),
            ("{on}{on}", "truetrue"),
            ("{scan.distance} {id}", "unknown unknown"),
            ("{{property}} }}{{", "{property} }{"),
            ("{{{property}}}", "{gap}"),
            ("ä{robot}ö", "ä7ö"),
        ] {
            assert_eq!(text(template).text(&Known), expected, "{template}");
        }
    }

    #[test]
    fn lone_placeholder_keeps_the_type() {
        let template = Template::Mapping(vec![
            ("robot".to_owned(), Template::Text(text("{robot}"))),
            ("name".to_owned(), Template::Text(text("r{robot}"))),
            ("value".to_owned(), Template::Text(text("{other}"))),
            (
                "list".to_owned(),
                Template::List(vec![Template::Fixed(json!(1)), Template::Text(text("{on}"))]),
            ),
        ]);
        let expected = json!({"robot": 7, "name": "r7", "value": null, "list": [1, true]});
        assert_eq!(template.render(&Known), expected);
        let mut found = Vec::new();
        template.visit(&mut |of| found.push(of.to_string()));
        assert_eq!(found, ["{robot}", "{robot}", "{other}", "{on}"]);
    }

    #[test]
    fn mistakes_name_the_way_out() {
        for (template, words) in [
            ("{", "not closed"),
            ("a {property", "not closed"),
            ("a }", "closes nothing"),
            ("{}", "no placeholder"),
            ("{a b}", "no placeholder"),
            ("{\"a\": 1}", "write `{{`"),
        ] {
            let error = TextTemplate::parse(template).unwrap_err();
            assert!(error.contains(words), "{template}: {error}");
        }
    }
}
