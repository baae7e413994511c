//! Changes of a topic that a network reports beside its samples.

use rondel_event::TopicEvent;

use super::PublisherId;

/// A change of a topic other than a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// A publisher disposed of an instance.
    Disposed(Instance<'a>),
    /// An instance has no publishers any more.
    Unregistered(Instance<'a>),
    /// An instance received no sample within the deadline of the subscription.
    MissedDeadline(Instance<'a>),
    /// The topic has a live publisher, or has lost the last one.
    Alive(bool),
    /// A publisher owns an instance, or none does.
    Owner(Instance<'a>, Option<PublisherId>),
}

impl Change<'_> {
    /// Returns the event of the topic, and its value: `false` only for the loss of the last live publisher. An owner has
    /// a [text](Change::owner) instead.
    pub fn event(&self) -> (TopicEvent, bool) {
        match self {
            Change::Disposed(_) => (TopicEvent::Disposed, true),
            Change::Unregistered(_) => (TopicEvent::Unregistered, true),
            Change::MissedDeadline(_) => (TopicEvent::MissedDeadline, true),
            Change::Alive(is_alive) => (TopicEvent::Alive, *is_alive),
            Change::Owner(..) => (TopicEvent::Owner, true),
        }
    }

    /// Returns the id of the publisher that owns the instance, empty if none does; `None` for other changes.
    pub fn owner(&self) -> Option<String> {
        match self {
            Change::Owner(_, publisher) => Some(publisher.map(|id| id.to_string()).unwrap_or_default()),
            _ => None,
        }
    }
}

impl<'a> Change<'a> {
    /// Returns the changed instance; none for a change of the topic.
    pub fn instance(&self) -> Option<Instance<'a>> {
        match self {
            Change::Disposed(instance)
            | Change::Unregistered(instance)
            | Change::MissedDeadline(instance)
            | Change::Owner(instance, _) => Some(*instance),
            Change::Alive(_) => None,
        }
    }
}

impl<'a> Instance<'a> {
    /// Returns the bytes that name the instance, and whether they are a whole sample and not only the key; `None` for
    /// an unnamed one.
    pub fn payload(&self) -> Option<(&'a [u8], bool)> {
        match self {
            Instance::Unnamed => None,
            Instance::Key(key) => Some((key, false)),
            Instance::Sample(sample) => Some((sample, true)),
        }
    }
}

/// An instance of a topic: the samples with equal keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instance<'a> {
    /// The only instance of a topic without a key, or one whose key is unknown.
    Unnamed,
    /// By its serialised key members.
    Key(&'a [u8]),
    /// By its last sample.
    Sample(&'a [u8]),
}
