//! Events of topics.

use crate::Path;

/// A kind of event of a topic, by its name in formulas: `missed_deadline(topic)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TopicEvent {
    /// No message came within the deadline.
    MissedDeadline,
    /// A publisher disposed of an instance of the topic.
    Disposed,
    /// An instance of the topic has no publisher any more.
    Unregistered,
    /// Whether some publisher of the topic is alive. A state, unlike the others.
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

    /// Returns the only field of a message about the event.
    pub fn path(self) -> Path {
        Path::keys([self.name()])
    }

    /// Returns the message about the event, as JSON. `holds` is whether a publisher is alive; other events happened, so
    /// that it is true for them.
    pub fn message(self, holds: bool) -> String {
        format!("{{\"{}\":{holds}}}", self.name())
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
