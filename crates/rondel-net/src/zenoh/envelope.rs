//! Metadata of a message beside its payload.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ::zenoh::sample::{Sample, SourceInfo};
use ::zenoh::session::ZenohId;
use rondel_event::{Origin, Timestamp, TypeIndex};

use super::ros2::types::FurtherTypes;
use crate::adapter::Problems;
use crate::ros2::{Attachment, keys};

/// Source time, origin and type of a message, where it has them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Metadata {
    pub(super) source_time: Option<Timestamp>,
    pub(super) origin: Option<Origin>,
    pub(super) of_type: TypeIndex,
}

/// Reader of the metadata of messages.
pub(super) trait Envelope: Send + Sync + 'static {
    /// Returns the metadata; `None` to drop the message.
    fn open(&self, sample: &Sample) -> Option<Metadata>;

    /// Returns the name of the topic of a message with this key.
    #[inline]
    fn topic<'k>(&self, key: &'k str) -> &'k str {
        key
    }
}

/// Metadata of Zenoh itself: the timestamp, and the source information.
pub(super) struct Plain;

impl Envelope for Plain {
    #[inline]
    fn open(&self, sample: &Sample) -> Option<Metadata> {
        Some(metadata(sample))
    }
}

/// Returns the publisher of a sample, as a hash, and its sequence number.
#[inline]
fn origin_of(info: &SourceInfo) -> Origin {
    let source = info.source_id();
    Origin { publisher: publisher_of(&source.zid(), source.eid()), number: info.source_sn().into() }
}

/// Returns the time of sending, the publisher and the number of a sample, as far as Zenoh itself provides them.
#[inline]
pub(super) fn metadata(sample: &Sample) -> Metadata {
    let time = sample
        .timestamp()
        .map(|time| Timestamp::from_nanos(i64::try_from(time.get_time().as_nanos()).unwrap_or(i64::MAX)));
    let origin = sample.source_info().map(origin_of);
    Metadata { source_time: time, origin, of_type: TypeIndex::default() }
}

/// Identity of a publisher: its session, and its number there.
#[derive(Clone, Copy, Debug)]
pub(super) struct PublisherId<'a> {
    pub(super) session: &'a ZenohId,
    pub(super) entity: u32,
}

/// Returns the hash of a publisher.
#[inline]
pub(super) fn publisher_of(session: &ZenohId, entity: u32) -> u64 {
    // The id of a session is random: folding it suffices as a hash.
    let session = u128::from_le_bytes(session.to_le_bytes());
    let entity = u64::from(entity).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (session as u64) ^ ((session >> 64) as u64).rotate_left(32) ^ entity
}

/// Metadata of rmw_zenoh: an attachment. Publishers that keep messages also number them by Zenoh's source information,
/// by which missed ones are fetched: then those numbers are used.
#[derive(Debug, Default)]
pub(super) struct Ros2Envelope {
    topic: String,
    /// Hash of the expected type; `None` accepts any.
    hash: Option<String>,
    /// Definitions of other publishers, if their messages are read.
    types: Option<Arc<FurtherTypes>>,
    /// Number of unread messages of another type.
    other_type: AtomicU64,
    /// Number of messages without an attachment of rmw_zenoh.
    unmarked: AtomicU64,
}

impl Ros2Envelope {
    pub(super) fn new(topic: &str, hash: Option<String>, types: Option<Arc<FurtherTypes>>) -> Ros2Envelope {
        Ros2Envelope { topic: topic.to_owned(), hash, types, ..Ros2Envelope::default() }
    }

    pub(super) fn types(&self) -> Option<Arc<FurtherTypes>> {
        self.types.clone()
    }

    pub(super) fn problems(&self) -> Problems {
        let [malformed, unmarked] =
            [&self.other_type, &self.unmarked].map(|count| count.load(Ordering::Relaxed));
        Problems { malformed, unmarked, ..Problems::default() }
    }

    #[cold]
    fn refuse(&self, sample: &Sample) {
        if self.other_type.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!(
                topic = %self.topic, key = %sample.key_expr(),
                "a message has another definition of its type, by its hash, and is not read; further ones are only counted"
            );
        }
    }

    #[cold]
    fn unmarked(&self, sample: &Sample) {
        if self.unmarked.fetch_add(1, Ordering::Relaxed) == 0 {
            let length = sample.attachment().map_or(0, |attachment| attachment.len());
            tracing::warn!(
                topic = %self.topic, key = %sample.key_expr(), length,
                "a message has no attachment of rmw_zenoh, so that its number and source time are unknown; further ones \
                 are only counted"
            );
        }
    }
}

impl Envelope for Arc<Ros2Envelope> {
    #[inline]
    fn open(&self, sample: &Sample) -> Option<Metadata> {
        let mut of_type = TypeIndex::default();
        let mut other = None;
        if let Some(hash) = &self.hash
            && keys::contradicts(sample.key_expr().as_str(), hash)
        {
            let Some(types) = &self.types else {
                self.refuse(sample);
                return None;
            };
            let hash = keys::hash_of(sample.key_expr().as_str());
            of_type = types.of_hash(hash);
            other = Some((types, hash));
        }
        // Borrowed: an attachment arrives contiguously.
        let attachment = sample.attachment().and_then(|bytes| Attachment::read(&bytes.to_bytes()));
        if attachment.is_none() {
            self.unmarked(sample);
        }
        let numbered = sample.source_info().map(origin_of);
        if let (Some((types, hash)), Some(origin)) = (other, numbered) {
            types.note_publisher(origin.publisher, hash);
        }
        let origin = numbered.or(attachment.and_then(|attachment| attachment.origin()));
        Some(Metadata { source_time: attachment.map(|attachment| attachment.source_time), origin, of_type })
    }

    #[inline]
    fn topic<'k>(&self, key: &'k str) -> &'k str {
        keys::topic_of(key).unwrap_or(key)
    }
}
