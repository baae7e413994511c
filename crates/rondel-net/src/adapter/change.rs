//! Changes of a topic that a network reports beside its samples.

use rondel_event::{Timestamp, TopicEvent};

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

/// Time of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeTime {
    /// Time of the day at which the network reported it; of a disposal, that of its publication.
    pub reported: Timestamp,
    /// Time of the change among the source times of samples, where one of them shows it or follows it.
    pub source: Option<Timestamp>,
}

impl ChangeTime {
    /// Time of a change that is reported at a time, before samples of which the first has a source time. In their time it is
    /// not after that sample.
    pub fn before(reported: Timestamp, first: Option<Timestamp>) -> ChangeTime {
        ChangeTime { reported, source: first.map(|first| first.min(reported)) }
    }

    /// Returns the time on a topic whose times are source times or not.
    pub fn among(self, are_source_times: bool) -> Timestamp {
        self.source.filter(|_| are_source_times).unwrap_or(self.reported)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_not_after_the_sample_that_follows_it() {
        let at = Timestamp::from_nanos;
        for (first, among_source_times) in [(Some(5), 5), (Some(9), 7), (None, 7)] {
            let time = ChangeTime::before(at(7), first.map(at));
            assert_eq!((time.among(true), time.among(false)), (at(among_source_times), at(7)));
        }
    }
}
