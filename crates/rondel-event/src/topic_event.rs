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
}

impl TopicEvent {
    /// All kinds.
    pub const ALL: [TopicEvent; 4] =
        [TopicEvent::MissedDeadline, TopicEvent::Disposed, TopicEvent::Unregistered, TopicEvent::Alive];

    /// Returns the name in formulas, which is also that of the field.
    pub fn name(self) -> &'static str {
        match self {
            TopicEvent::MissedDeadline => "missed_deadline",
            TopicEvent::Disposed => "disposed",
            TopicEvent::Unregistered => "unregistered",
            TopicEvent::Alive => "alive",
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
