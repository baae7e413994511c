//! The messages that the state of another member contains.

use std::collections::HashMap;
use std::hash::Hasher as _;
use std::sync::Arc;

use rondel_event::{Origin, StableHasher, TopicId, snapshot};
use rondel_net::adapter::Sample;
use rondel_runtime::{Session, TopicNames};

/// Relation of a message to the messages that a state contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live::pipeline) enum Found {
    /// It is not.
    Not,
    /// It is.
    Contained,
    /// An equal one is, which may be another message.
    Uncertain,
}

/// The messages that the state of another member contains.
pub(in crate::live::pipeline) struct Contained {
    names: Vec<Option<Arc<TopicNames>>>,
    /// Number of messages without numbers by their identities.
    counts: HashMap<u64, u32>,
    /// The number expected next from each publisher of a topic.
    expected: HashMap<(TopicId, u64), u64>,
}

/// Returns the hash by which two members know a message without a number: of its topic, its time of publication and its
/// payload.
pub(super) fn identity(names: &[Option<Arc<TopicNames>>], topic: TopicId, sample: &Sample<'_>) -> u64 {
    let mut hasher = StableHasher::default();
    hasher.write_u32(topic.0);
    let known = names.get(topic.index()).and_then(Option::as_ref);
    if let Some(name) = known.zip(sample.name).and_then(|(names, number)| names.name(number)) {
        hasher.write(name.as_bytes());
    }
    hasher.write_u64(sample.source_time.map_or(u64::MAX, |time| time.as_nanos() as u64));
    hasher.write_u64(sample.payload.len() as u64);
    hasher.write_u64(snapshot::sum(sample.payload));
    hasher.finish()
}

impl Contained {
    /// The messages of a session that continues from the state, and of `identities`.
    pub(super) fn new(
        session: &Session,
        names: Vec<Option<Arc<TopicNames>>>,
        identities: &[u64],
    ) -> Contained {
        let mut counts = HashMap::new();
        for identity in identities {
            *counts.entry(*identity).or_insert(0_u32) += 1;
        }
        let topics = (0..names.len() as u32).map(TopicId);
        let expected = topics.flat_map(|topic| {
            let of_topic = session.expected(topic).into_iter();
            of_topic.map(move |next| ((topic, next.publisher), next.number))
        });
        let expected = expected.collect();
        Contained { names, counts, expected }
    }

    /// Looks for a message with a number.
    pub(super) fn has_number(&self, topic: TopicId, origin: Option<Origin>) -> Found {
        let next = origin.and_then(|origin| self.expected.get(&(topic, origin.publisher)));
        match origin.zip(next) {
            Some((origin, next)) if origin.number < *next => Found::Contained,
            _ => Found::Not,
        }
    }

    /// Looks for a message without a number. `is_single`: no equal one was received.
    pub(super) fn has_identity(&self, identity: u64, is_single: bool) -> Found {
        match self.counts.get(&identity) {
            None => Found::Not,
            Some(1) if is_single => Found::Contained,
            Some(_) => Found::Uncertain,
        }
    }

    /// Whether a message that came long before the snapshot must be contained. The gap before one with a known
    /// publisher shows without that.
    pub(super) fn should_have(&self, topic: TopicId, origin: Option<Origin>) -> bool {
        origin.is_none_or(|origin| !self.expected.contains_key(&(topic, origin.publisher)))
    }

    /// Forgets messages that were received before, by their identities.
    pub(super) fn forget_seen(&mut self, seen: &HashMap<u64, u32>) {
        self.counts.retain(|identity, count| {
            *count = count.saturating_sub(seen.get(identity).copied().unwrap_or(0));
            *count > 0
        });
    }

    /// Looks for a message that arrives after the exchange. One that equals a contained one without a time of
    /// publication may be another.
    pub(super) fn arrives(&mut self, topic: TopicId, sample: &Sample<'_>) -> Found {
        if sample.origin.is_some() {
            return self.has_number(topic, sample.origin);
        }
        if self.counts.is_empty() {
            return Found::Not;
        }
        let Some(count) = self.counts.get_mut(&identity(&self.names, topic, sample)) else {
            return Found::Not;
        };
        if *count == 0 {
            return Found::Not;
        }
        *count -= 1;
        if sample.source_time.is_some() { Found::Contained } else { Found::Uncertain }
    }
}
