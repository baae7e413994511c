//! Messages that a run publishes on a topic that it reads, such as `/diagnostics`: they are left out when they come back.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use rondel_decode::schema::Schema;
use rondel_event::{NameId, Timestamp, TopicId, TypeIndex};
use rondel_net::adapter::{Change, ChangeTime, Receiver, Sample};

/// Number of remembered messages. A message that returns after more later ones counts as that of another publisher.
const REMEMBERED: usize = 4_096;

/// The messages in CDR that the run has published last, by their hashes.
#[derive(Debug, Default)]
pub struct Own(Mutex<VecDeque<u64>>);

impl Own {
    /// Remembers a message, before it is published.
    pub fn note(&self, payload: &[u8]) {
        let mut hashes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if hashes.len() == REMEMBERED {
            hashes.pop_front();
        }
        hashes.push_back(hash(payload));
    }

    /// Whether the run has published a message.
    fn has(&self, payload: &[u8]) -> bool {
        let hash = hash(payload);
        let hashes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hashes.iter().rev().any(|known| *known == hash)
    }
}

/// The hash of a message without its header and its padding, which networks may change.
fn hash(payload: &[u8]) -> u64 {
    let content = payload.get(4..).unwrap_or_default();
    let end = content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let mut hasher = DefaultHasher::new();
    content[..end].hash(&mut hasher);
    hasher.finish()
}

/// Receives the messages of others.
pub struct Others<R> {
    /// The receiver of all other messages.
    pub receiver: Arc<R>,
    /// The messages that are left out.
    pub own: Arc<Own>,
}

impl<R: Receiver> Receiver for Others<R> {
    fn receive(&self, topic: TopicId, samples: &[Sample<'_>]) {
        let others: Vec<Sample<'_>> =
            samples.iter().filter(|sample| !self.own.has(sample.payload)).copied().collect();
        if !others.is_empty() {
            self.receiver.receive(topic, &others);
        }
    }

    fn refusal(&self, topic: TopicId) -> Option<Box<str>> {
        self.receiver.refusal(topic)
    }

    fn receive_unnamed(&self, topic: TopicId, sample: Sample<'_>, why: &str) -> bool {
        self.receiver.receive_unnamed(topic, sample, why)
    }

    fn idle(&self) {
        self.receiver.idle();
    }

    fn missed(&self, topic: TopicId, from: Timestamp, until: Option<Timestamp>) {
        self.receiver.missed(topic, from, until);
    }

    fn changed(&self, topic: TopicId, change: Change<'_>, time: ChangeTime) {
        self.receiver.changed(topic, change, time);
    }

    fn wants_owner(&self, topic: TopicId) -> bool {
        self.receiver.wants_owner(topic)
    }

    fn wants_names(&self, topic: TopicId) -> bool {
        self.receiver.wants_names(topic)
    }

    fn number(&self, topic: TopicId, name: &str) -> Option<NameId> {
        self.receiver.number(topic, name)
    }

    fn wants_own(&self, _: TopicId) -> bool {
        false
    }

    fn wants_types(&self, topic: TopicId) -> bool {
        self.receiver.wants_types(topic)
    }

    fn further_type(&self, topic: TopicId, publisher: &str, schema: &Schema) -> Option<TypeIndex> {
        self.receiver.further_type(topic, publisher, schema)
    }

    fn wants_idle(&self) -> bool {
        self.receiver.wants_idle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_padding_do_not_count() {
        let own = Own::default();
        own.note(&[0, 1, 0, 0, 5, 6]);
        assert!(own.has(&[0, 1, 0, 2, 5, 6, 0, 0]));
        assert!(!own.has(&[0, 1, 0, 0, 5, 7]) && !own.has(&[]));
        (0..REMEMBERED).for_each(|i| own.note(&[&[0, 1, 0, 0, 9][..], &i.to_le_bytes()].concat()));
        assert!(!own.has(&[0, 1, 0, 0, 5, 6]));
    }
}
