//! Addresses on Kafka: `TOPIC`, or `TOPIC/KEY` for the records with a key, whose parts may be parameters.

use rondel_event::AddressPattern;

use super::DeclareError;

/// Maximum length of the name of a topic.
const LONGEST: usize = 249;

/// A topic, and the keys of its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The topic.
    pub topic: String,
    /// The key of the records, possibly with parameters in braces; `None` for all records.
    pub key: Option<String>,
}

impl Place {
    /// Parses `TOPIC`, `TOPIC/KEY` or, with parameters, `TOPIC/{vehicle}`.
    ///
    /// # Errors
    /// [`DeclareError::Topic`] with the reason.
    pub fn parse(text: &str) -> Result<Place, DeclareError> {
        let (topic, key) = match text.split_once('/') {
            Some((topic, key)) => (topic, Some(key)),
            None => (text, None),
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
        if let Err(fault) = AddressPattern::parse(text) {
            return Err(DeclareError::Topic(format!("'{text}': {}: {}", fault.message, fault.advice)));
        }
        Ok(Place { topic: topic.to_owned(), key: key.map(str::to_owned) })
    }

    /// Whether the key has parameters.
    pub fn has_parameters(&self) -> bool {
        self.key.as_ref().is_some_and(|key| key.contains('{'))
    }
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

/// Returns the topic of an address.
pub fn without_key(text: &str) -> &str {
    text.split_once('/').map_or(text, |(topic, _)| topic)
}

/// Whether a record published at one address may be received from the other.
pub fn places_meet(one: &str, other: &str) -> bool {
    let key = |text: &str| text.split_once('/').map(|(_, key)| key.to_owned());
    let is_literal = |key: &String| !key.contains('{');
    without_key(one) == without_key(other)
        && match (key(one).filter(is_literal), key(other).filter(is_literal)) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_a_topic_and_a_key() {
        let place = |text: &str| Place::parse(text).unwrap();
        assert_eq!(place("fleet.telemetry-7_a").key, None);
        let keyed = place("telemetry/north/car 7");
        assert_eq!((keyed.topic.as_str(), keyed.key.as_deref()), ("telemetry", Some("north/car 7")));
        assert!(!keyed.has_parameters() && place("telemetry/{site}/{vehicle}").has_parameters());
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
        ] {
            let error = Place::parse(bad).unwrap_err().to_string();
            assert!(error.contains(reason), "{bad}: {error}");
        }
        assert!(check_topic(&"x".repeat(249)).is_ok() && check_topic(&"x".repeat(250)).is_err());
    }

    #[test]
    fn addresses_of_one_topic_meet_unless_their_keys_differ() {
        for (one, other, meet) in [
            ("a", "a", true),
            ("a", "b", false),
            ("a", "a/x", true),
            ("a/x", "a/x", true),
            ("a/x", "a/y", false),
            ("a/{k}", "a/y", true),
            ("a/{k}", "b/{k}", false),
        ] {
            assert_eq!((places_meet(one, other), places_meet(other, one)), (meet, meet), "{one} {other}");
        }
    }
}
