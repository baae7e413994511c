//! Events of topics.

use crate::{Path, Segment};

/// A kind of event of a topic, by its name in formulas: `missed_deadline(topic)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TopicEvent {
    /// No message of an instance came within the deadline.
    MissedDeadline,
    /// A publisher disposed of an instance of the topic.
    Disposed,
    /// An instance of the topic has no publisher any more.
    Unregistered,
    /// Liveness: a publisher of the topic is alive. A state, unlike the others.
    Alive,
    /// Ownership: a publisher owns an instance of the topic, or none does. A state with a text: the id of the publisher,
    /// empty for none.
    Owner,
}

impl TopicEvent {
    /// All kinds.
    pub const ALL: [TopicEvent; 5] = [
        TopicEvent::MissedDeadline,
        TopicEvent::Disposed,
        TopicEvent::Unregistered,
        TopicEvent::Alive,
        TopicEvent::Owner,
    ];

    /// Returns the name in formulas, which is also that of the field.
    pub fn name(self) -> &'static str {
        match self {
            TopicEvent::MissedDeadline => "missed_deadline",
            TopicEvent::Disposed => "disposed",
            TopicEvent::Unregistered => "unregistered",
            TopicEvent::Alive => "alive",
            TopicEvent::Owner => "owner",
        }
    }

    /// Returns the kind with this name.
    pub fn named(name: &str) -> Option<TopicEvent> {
        TopicEvent::ALL.into_iter().find(|event| event.name() == name)
    }

    /// Returns whether the event is one of a single instance of the topic, whose key the network names.
    pub fn has_key(self) -> bool {
        self != TopicEvent::Alive
    }

    /// Returns the field of the key in a message about the event of an instance, given the field in messages of the topic.
    pub fn key_path(field: &Path) -> Path {
        let key = Segment::Key(TopicEvent::KEY.into());
        Path(std::iter::once(key).chain(field.0.iter().cloned()).collect())
    }

    /// The name of the field with the key of an instance.
    pub const KEY: &str = "key";

    /// The name of the publisher that owns an instance in a recorded event.
    pub const PUBLISHER: &str = "publisher";

    /// Returns whether the event has a text: the publisher that owns an instance.
    pub fn has_publisher(self) -> bool {
        self == TopicEvent::Owner
    }

    /// Returns the message about the owner of a topic, or of its instance with this key, an object in JSON. `publisher` is
    /// a text in JSON, in quotation marks.
    pub fn owner_message(publisher: &str, key: Option<&str>) -> String {
        let name = TopicEvent::Owner.name();
        match key {
            Some(key) => format!("{{\"{name}\":{publisher},\"{}\":{key}}}", TopicEvent::KEY),
            None => format!("{{\"{name}\":{publisher}}}"),
        }
    }

    /// Returns the publisher and the key in a message that [`TopicEvent::owner_message`] returned.
    pub fn owner_in(message: &str) -> Option<(&str, Option<&str>)> {
        let head = format!("{{\"{}\":", TopicEvent::Owner.name());
        let rest = message.strip_prefix(&head)?.strip_suffix('}')?;
        let mut is_escaped = false;
        let end = rest.bytes().skip(1).position(|byte| {
            let ends = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            ends
        })?;
        let (publisher, rest) = rest.split_at(end + 2);
        let key = rest.strip_prefix(&format!(",\"{}\":", TopicEvent::KEY));
        Some((publisher, key))
    }

    /// Returns the field of a message about the event that names it.
    pub fn path(self) -> Path {
        Path::keys([self.name()])
    }

    /// Returns the message about the event, as JSON. `holds` is whether a publisher is alive; other events happened, so
    /// that it is true for them.
    pub fn message(self, holds: bool) -> String {
        format!("{{\"{}\":{holds}}}", self.name())
    }

    /// Returns the message about an event of the instance with this key, an object in JSON.
    pub fn message_of(self, key: &str) -> String {
        format!("{{\"{}\":true,\"{}\":{key}}}", self.name(), TopicEvent::KEY)
    }

    /// Returns the key in a message that [`TopicEvent::message_of`] returned.
    pub fn key_in(self, message: &str) -> Option<&str> {
        let head = format!("{{\"{}\":true,\"{}\":", self.name(), TopicEvent::KEY);
        message.strip_prefix(&head)?.strip_suffix('}')
    }

    /// Returns how a recording writes the event: by its name, and `not_alive` if no publisher is alive.
    pub fn written(self, holds: bool) -> &'static str {
        if self == TopicEvent::Alive && !holds { "not_alive" } else { self.name() }
    }

    /// Returns the event that a recording writes so, and whether it holds.
    pub fn read(written: &str) -> Option<(TopicEvent, bool)> {
        match written {
            "not_alive" => Some((TopicEvent::Alive, false)),
            _ => TopicEvent::named(written).map(|event| (event, true)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_is_read_as_it_is_written() {
        for publisher in [r#""""#, r#""front""#, r#""a\"b\\""#, r#""{\"key\":1}""#] {
            for key in [None, Some(r#"{"id":1}"#)] {
                let message = TopicEvent::owner_message(publisher, key);
                assert_eq!(TopicEvent::owner_in(&message), Some((publisher, key)), "{message}");
                assert_eq!(TopicEvent::Owner.key_in(&message), None, "{message}");
            }
        }
        assert_eq!(TopicEvent::owner_in(r#"{"alive":true}"#), None);
        assert_eq!(TopicEvent::owner_in(r#"{"owner":"a"#), None);
    }

    #[test]
    fn every_event_is_read_by_its_name() {
        for event in TopicEvent::ALL {
            assert_eq!(TopicEvent::named(event.name()), Some(event));
            assert_eq!(TopicEvent::read(event.written(true)), Some((event, true)));
        }
        assert_eq!(TopicEvent::read("not_alive"), Some((TopicEvent::Alive, false)));
    }
}
