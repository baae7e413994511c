//! Addresses on Kafka: `TOPIC`, or `TOPIC/KEY` for the records with a key, and `;NAME=VALUE` for those with a header. Parts of
//! keys and values may be parameters.

use rondel_event::AddressPattern;

use super::DeclareError;

/// Maximum length of the name of a topic.
const LONGEST: usize = 249;

/// A topic, and the keys and headers of its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The topic.
    pub topic: String,
    /// The key of the records, possibly with parameters in braces; `None` for all records.
    pub key: Option<String>,
    /// Headers of the records by name, with their values, possibly with parameters in braces.
    pub headers: Vec<(String, String)>,
}

impl Place {
    /// Parses `TOPIC`, `TOPIC/KEY` or, with parameters, `TOPIC/{vehicle}`, each possibly with headers such as
    /// `TOPIC;type=order;tenant={tenant}`.
    ///
    /// # Errors
    /// [`DeclareError::Topic`] with the reason.
    pub fn parse(text: &str) -> Result<Place, DeclareError> {
        let (keyed, headers) = match text.split_once(';') {
            Some((keyed, headers)) => (keyed, Some(headers)),
            None => (text, None),
        };
        let (topic, key) = match keyed.split_once('/') {
            Some((topic, key)) => (topic, Some(key)),
            None => (keyed, None),
        };
        if topic.contains(['{', '}']) {
            return Err(DeclareError::Topic(format!(
                "'{text}' is no address on Kafka: parameters stand for the key of a record, such as \
                 telemetry/{{vehicle}}, and not for a part of the name of a topic"
            )));
        }
        check_topic(topic)?;
        if key == Some("") {
            return Err(DeclareError::Topic(format!(
                "'{text}' is no address on Kafka: after the / stands the key of its records; leave the / out for all"
            )));
        }
        let headers = headers
            .map(parse_headers)
            .transpose()
            .map_err(|reason| DeclareError::Topic(format!("'{text}' is no address on Kafka: {reason}")))?;
        if let Err(fault) = AddressPattern::parse(text) {
            return Err(DeclareError::Topic(format!("'{text}': {}: {}", fault.message, fault.advice)));
        }
        let (key, headers) = (key.map(str::to_owned), headers.unwrap_or_default());
        Ok(Place { topic: topic.to_owned(), key, headers })
    }

    /// Whether the key or a header has parameters.
    pub fn has_parameters(&self) -> bool {
        let mut values = self.key.iter().chain(self.headers.iter().map(|(_, value)| value));
        values.any(|text| has_parameter(text))
    }
}

/// Whether a key, or the value of a header, has parameters.
pub(super) fn has_parameter(text: &str) -> bool {
    text.contains('{')
}

/// Parses headers, `NAME=VALUE` with semicolons between them.
fn parse_headers(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut headers: Vec<(String, String)> = Vec::new();
    for header in text.split(';') {
        let parts = header.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
        let (name, value) = parts.ok_or_else(|| {
            format!("after a ; stands a header as NAME=VALUE, such as ;tenant={{tenant}}, and not '{header}'")
        })?;
        if name.contains(['{', '}']) {
            return Err(format!(
                "a parameter stands for the value of a header, and not for its name '{name}'"
            ));
        }
        if headers.iter().any(|(known, _)| known == name) {
            return Err(format!("the header '{name}' stands twice"));
        }
        headers.push((name.to_owned(), value.to_owned()));
    }
    Ok(headers)
}

/// Checks the name of a topic.
///
/// # Errors
/// [`DeclareError::Topic`] with the reason.
pub fn check_topic(topic: &str) -> Result<(), DeclareError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if (1..=LONGEST).contains(&topic.len()) && topic.chars().all(is_allowed) && !matches!(topic, "." | "..") {
        return Ok(());
    }
    Err(DeclareError::Topic(format!(
        "'{topic}' is not a topic of Kafka: a name has 1 to {LONGEST} letters, digits, dots, hyphens and underscores"
    )))
}

/// Returns the topic of an address, without key and headers.
pub fn without_key(text: &str) -> &str {
    text.split_once(['/', ';']).map_or(text, |(topic, _)| topic)
}

/// Whether a record published at one address may be received from the other.
pub fn places_meet(one: &str, other: &str) -> bool {
    let (Ok(one), Ok(other)) = (Place::parse(one), Place::parse(other)) else { return false };
    let may_be = |one: &str, other: &str| has_parameter(one) || has_parameter(other) || one == other;
    let have_keys = match (&one.key, &other.key) {
        (Some(one), Some(other)) => may_be(one, other),
        _ => true,
    };
    // A publisher without headers may publish records for which a subscription to one does not ask.
    let mut headers = one.headers.iter().flat_map(|(name, value)| {
        let same = other.headers.iter().filter(move |(other, _)| other == name);
        same.map(move |(_, other)| (value, other))
    });
    one.topic == other.topic && have_keys && headers.all(|(one, other)| may_be(one, other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_a_topic_with_a_key_and_headers() {
        let place = |text: &str| Place::parse(text).unwrap();
        assert_eq!(place("fleet.telemetry-7_a").key, None);
        let keyed = place("telemetry/north/car 7");
        assert_eq!((keyed.topic.as_str(), keyed.key.as_deref()), ("telemetry", Some("north/car 7")));
        assert!(!keyed.has_parameters() && place("telemetry/{site}/{vehicle}").has_parameters());
        let headed = place("telemetry/{vehicle};type=order;path=a/b");
        assert_eq!((headed.topic.as_str(), headed.key.as_deref()), ("telemetry", Some("{vehicle}")));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(headed.headers, [pair("type", "order"), pair("path", "a/b")]);
        assert!(place("telemetry;tenant={tenant}").has_parameters());
        assert!(!place("telemetry;tenant=north").has_parameters());
        assert_eq!(without_key("telemetry;tenant=a/b"), "telemetry");
        for (bad, reason) in [
            ("", "1 to 249"),
            ("..", "1 to 249"),
            ("a b", "1 to 249"),
            ("größe", "1 to 249"),
            ("*", "1 to 249"),
            ("/a", "1 to 249"),
            ("a/", "leave the / out"),
            ("fleet.{robot}", "the key of a record"),
            ("a/{", "not closed"),
            ("a/{x}/{x}", "stands twice"),
            ("a/{x}//b", "is empty"),
            ("a;", "NAME=VALUE"),
            ("a;tenant", "NAME=VALUE"),
            ("a;tenant=", "NAME=VALUE"),
            ("a;=north", "NAME=VALUE"),
            ("a;tenant=x;tenant=y", "stands twice"),
            ("a;{name}=x", "the value of a header"),
            ("a/{x};tenant={x}", "stands twice"),
        ] {
            let error = Place::parse(bad).unwrap_err().to_string();
            assert!(error.contains(reason), "{bad}: {error}");
        }
        assert!(check_topic(&"x".repeat(249)).is_ok() && check_topic(&"x".repeat(250)).is_err());
    }

    #[test]
    fn addresses_of_one_topic_meet_unless_their_keys_or_headers_differ() {
        for (one, other, meet) in [
            ("a", "a", true),
            ("a", "b", false),
            ("a", "a/x", true),
            ("a/x", "a/x", true),
            ("a/x", "a/y", false),
            ("a/{k}", "a/y", true),
            ("a/{k}", "b/{k}", false),
            ("a", "a;tenant=x", true),
            ("a;tenant=x", "a;tenant=y", false),
            ("a;tenant={t}", "a/k;tenant=y", true),
            ("a;tenant=x", "a;type=y", true),
        ] {
            assert_eq!((places_meet(one, other), places_meet(other, one)), (meet, meet), "{one} {other}");
        }
    }
}
