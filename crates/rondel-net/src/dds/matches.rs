//! Participants of DDS that lose each other and meet again.
//!
//! A participant that is stopped for longer than its lease of 10 s is taken for gone: its readers and writers
//! match no more, and samples that were not acknowledged are dropped. When it runs again, they match anew. A
//! participant that was closed and started again has other ids, so an id that returns was lost.

use std::collections::BTreeMap;

use cyclors::{dds_builtintopic_endpoint_t, dds_entity_t, dds_instance_handle_t};
use rondel_event::Timestamp;

use super::entity::Entity;
use crate::adapter::{Outage, now};

/// Limit of remembered participants.
const KNOWN: usize = 1024;
/// Limit of participants that are looked at.
const AT_ONCE: usize = 256;

/// The readers of a writer, or the writers of a reader, that matched so far.
#[derive(Debug, Default)]
pub(super) struct Matches {
    /// When each left, unless it matches now.
    known: BTreeMap<[u8; 16], Option<Timestamp>>,
}

impl Matches {
    /// Notes which ones match now, and passes those that have returned to `lost`.
    pub(super) fn update(&mut self, present: &[[u8; 16]], mut lost: impl FnMut(Timestamp, Timestamp)) {
        for (id, left) in &mut self.known {
            if left.is_none() && !present.contains(id) {
                *left = Some(now());
            }
        }
        for id in present {
            if let Some(left) = self.known.get_mut(id) {
                if let Some(from) = left.take() {
                    lost(from, now());
                }
            } else if self.known.len() < KNOWN {
                self.known.insert(*id, None);
            }
        }
    }
}

/// A topic's match that was lost and returned.
pub(super) fn outage(topic: &str, (from, until): (Timestamp, Timestamp)) -> Outage {
    tracing::warn!(
        %topic,
        "a DDS participant was not heard of for longer than its lease, and is back; messages meanwhile may be lost"
    );
    Outage { network: "dds", neighbour: Some(topic.to_owned()), from, until: Some(until) }
}

/// The ids of the readers that match a writer.
pub(super) fn readers(writer: &Entity) -> Vec<[u8; 16]> {
    // SAFETY: the functions of the library for writers, called with a live one.
    unsafe { ids(writer, cyclors::dds_get_matched_subscriptions, cyclors::dds_get_matched_subscription_data) }
}

/// The ids of the writers that match a reader.
pub(super) fn writers(reader: &Entity) -> Vec<[u8; 16]> {
    // SAFETY: the functions of the library for readers, called with a live one.
    unsafe { ids(reader, cyclors::dds_get_matched_publications, cyclors::dds_get_matched_publication_data) }
}

type Handles = unsafe extern "C" fn(dds_entity_t, *mut dds_instance_handle_t, usize) -> i32;
type Data = unsafe extern "C" fn(dds_entity_t, dds_instance_handle_t) -> *mut dds_builtintopic_endpoint_t;

/// The ids of what matches an entity.
///
/// # Safety
/// The functions must be those of the library for this kind of entity.
unsafe fn ids(entity: &Entity, handles: Handles, data: Data) -> Vec<[u8; 16]> {
    let mut all: [dds_instance_handle_t; AT_ONCE] = [0; AT_ONCE];
    // SAFETY: a live entity, and room for the stated number of handles.
    let count = unsafe { handles(entity.handle(), all.as_mut_ptr(), AT_ONCE) };
    let count = usize::try_from(count).unwrap_or(0).min(AT_ONCE);
    let id = |handle: &dds_instance_handle_t| {
        // SAFETY: a live entity; a handle of something that has left gives null.
        let endpoint = unsafe { data(entity.handle(), *handle) };
        // SAFETY: null, or a description that is ours until it is freed.
        let id = unsafe { endpoint.as_ref() }?.key.v;
        // SAFETY: made by the library for us, freed once.
        unsafe { cyclors::dds_builtintopic_free_endpoint(endpoint) };
        Some(id)
    };
    all[..count].iter().filter_map(id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_returns_was_lost() {
        let mut matches = Matches::default();
        let mut lost = 0;
        for present in [&[[1; 16], [2; 16]][..], &[[2; 16]], &[[2; 16], [3; 16]], &[[1; 16], [2; 16]], &[]] {
            matches.update(present, |from, until| {
                assert!(from <= until);
                lost += 1;
            });
        }
        assert_eq!(lost, 1);
    }
}
