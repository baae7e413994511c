//! Owners of the instances of a topic with exclusive ownership.
//!
//! The library delivers only the samples of the owner and does not name it: it is the publisher of the last sample of the
//! instance, until that leaves or unregisters the instance.

use std::collections::{BTreeMap, BTreeSet};

use cyclors::{dds_instance_handle_t, dds_sample_info_t};

use super::Ownership;
use super::base::Opened;
use super::entity::Entity;
use super::further::Delivery;
use super::missed;
use crate::adapter::{Change, ChangeTime, Instance, PublisherId, Receiver};

/// Limit of instances whose owner is remembered. Owners of others are not reported.
const LIMIT: usize = 65_536;

/// The publisher that owns an instance, and the serialised key of the instance if it has one.
#[derive(Debug)]
struct Owned {
    publisher: dds_instance_handle_t,
    key: Option<Vec<u8>>,
}

/// Reported owners of the instances of a reader.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// Instance and publisher of the last sample; `None` if the next one may change an owner.
    last: Option<(dds_instance_handle_t, dds_instance_handle_t)>,
    owned: BTreeMap<dds_instance_handle_t, Owned>,
}

impl Owners {
    /// Whether the owners of a reader's instances are reported. Publishers with another type than the subscription have
    /// a reader of their own, whose instances are owned separately.
    #[inline]
    pub(super) fn are_reported<R: Receiver + ?Sized>(opened: &Opened, delivery: &Delivery<R>) -> bool {
        opened.qos.ownership == Some(Ownership::Exclusive)
            && !delivery.part.is_further()
            && delivery.receiver.wants_owner(delivery.part.topic)
    }

    /// Logs why no owner is reported although one is wanted.
    pub(super) fn begin<R: Receiver + ?Sized>(&self, topic: &str, opened: &Opened, delivery: &Delivery<R>) {
        let is_shared = opened.qos.ownership != Some(Ownership::Exclusive);
        if is_shared && delivery.receiver.wants_owner(delivery.part.topic) {
            tracing::info!(%topic, "no publisher owns the topic: its ownership is shared");
        }
    }

    /// Reports that the publisher of a sample owns its instance.
    #[cold]
    pub(super) fn report<R: Receiver + ?Sized>(
        &mut self,
        opened: &Opened,
        info: &dds_sample_info_t,
        time: ChangeTime,
        delivery: &Delivery<R>,
    ) {
        let reader = &opened.reader;
        // A publisher that has left may have left samples behind.
        let Some(id) = id(reader, info.publication_handle) else { return };
        let key = opened.has_keys.then(|| missed::key(reader, info.instance_handle)).flatten();
        let of = key.as_deref().map_or(Instance::Unnamed, Instance::Key);
        delivery.receiver.changed(delivery.part.topic, Change::Owner(of, Some(id)), time);
        self.own(info.instance_handle, info.publication_handle, key);
    }

    /// Reports that no publisher owns the instances of owners that have left.
    pub(super) fn look<R: Receiver + ?Sized>(
        &mut self,
        opened: &Opened,
        time: ChangeTime,
        delivery: &Delivery<R>,
    ) {
        for key in self.leave(|publisher| id(&opened.reader, publisher).is_some()) {
            disown(key.as_deref(), time, delivery);
        }
    }

    /// Reports that no publisher owns an instance that has none any more.
    pub(super) fn end<R: Receiver + ?Sized>(
        &mut self,
        instance: dds_instance_handle_t,
        time: ChangeTime,
        delivery: &Delivery<R>,
    ) {
        if let Some(owned) = self.unregister(instance) {
            disown(owned.key.as_deref(), time, delivery);
        }
    }

    /// Whether a sample of an instance may change its owner.
    #[inline]
    pub(super) fn change(
        &mut self,
        instance: dds_instance_handle_t,
        publisher: dds_instance_handle_t,
    ) -> bool {
        self.last != Some((instance, publisher)) && self.differ(instance, publisher)
    }

    fn differ(&mut self, instance: dds_instance_handle_t, publisher: dds_instance_handle_t) -> bool {
        self.last = Some((instance, publisher));
        match self.owned.get(&instance) {
            Some(owned) => owned.publisher != publisher,
            None => self.owned.len() < LIMIT,
        }
    }

    /// Records the owner of an instance.
    fn own(
        &mut self,
        instance: dds_instance_handle_t,
        publisher: dds_instance_handle_t,
        key: Option<Vec<u8>>,
    ) {
        self.owned.insert(instance, Owned { publisher, key });
    }

    /// Removes the owner of an instance, and returns it.
    fn unregister(&mut self, instance: dds_instance_handle_t) -> Option<Owned> {
        if self.owned.is_empty() {
            return None;
        }
        self.last = None;
        self.owned.remove(&instance)
    }

    /// Removes the owners that have left. Returns the keys of their instances.
    fn leave(&mut self, is_present: impl Fn(dds_instance_handle_t) -> bool) -> Vec<Option<Vec<u8>>> {
        self.last = None;
        let publishers: BTreeSet<_> = self.owned.values().map(|owned| owned.publisher).collect();
        let left: BTreeSet<_> = publishers.into_iter().filter(|publisher| !is_present(*publisher)).collect();
        let is_left = |(instance, owned): (&dds_instance_handle_t, &Owned)| {
            left.contains(&owned.publisher).then_some(*instance)
        };
        let instances: Vec<_> = self.owned.iter().filter_map(is_left).collect();
        let removed = instances.iter().filter_map(|instance| self.owned.remove(instance));
        removed.map(|owned| owned.key).collect()
    }
}

/// Returns the id of a publisher that matches a reader; `None` if it has left.
fn id(reader: &Entity, publisher: dds_instance_handle_t) -> Option<PublisherId> {
    // SAFETY: a live handle; a handle of something that has left gives null.
    let endpoint = unsafe { cyclors::dds_get_matched_publication_data(reader.handle(), publisher) };
    // SAFETY: null, or a description that is ours until it is freed.
    let id = unsafe { endpoint.as_ref() }.map(|described| PublisherId(described.key.v));
    if !endpoint.is_null() {
        // SAFETY: made by the library for us, freed once.
        unsafe { cyclors::dds_builtintopic_free_endpoint(endpoint) };
    }
    id
}

/// Reports that no publisher owns an instance, given with its serialised key if it has one.
fn disown<R: Receiver + ?Sized>(key: Option<&[u8]>, time: ChangeTime, delivery: &Delivery<R>) {
    let of = key.map_or(Instance::Unnamed, Instance::Key);
    delivery.receiver.changed(delivery.part.topic, Change::Owner(of, None), time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_changes_with_another_publisher() {
        let mut owners = Owners::default();
        assert!(owners.change(1, 7));
        owners.own(1, 7, None);
        assert!(!owners.change(1, 7) && !owners.change(1, 7));
        assert!(owners.change(1, 8));
        owners.own(1, 8, None);
        assert!(!owners.change(1, 8) && owners.change(1, 7));
    }

    #[test]
    fn instances_are_owned_separately() {
        let mut owners = Owners::default();
        for (instance, publisher) in [(1, 7), (2, 8), (3, 7)] {
            assert!(owners.change(instance, publisher));
            owners.own(instance, publisher, Some(vec![instance as u8]));
        }
        assert!(!owners.change(1, 7) && !owners.change(2, 8) && !owners.change(3, 7) && !owners.change(2, 8));
        assert!(owners.unregister(4).is_none());
        assert_eq!(owners.leave(|_| true), Vec::<Option<Vec<u8>>>::new());
        assert_eq!(owners.leave(|publisher| publisher != 7), [Some(vec![1]), Some(vec![3])]);
        assert_eq!(owners.unregister(2).and_then(|owned| owned.key), Some(vec![2]));
        assert!(owners.unregister(2).is_none());
    }

    /// The same publisher may own an instance again.
    #[test]
    fn an_owner_that_returns_is_a_new_one() {
        let mut owners = Owners::default();
        owners.own(1, 7, None);
        assert!(!owners.change(1, 7));
        assert_eq!(owners.leave(|_| false), [None]);
        assert!(owners.change(1, 7));
        // A sample that a publisher left behind changes no owner, and is not considered again.
        assert!(!owners.change(1, 7));
        assert_eq!(owners.leave(|_| true), Vec::<Option<Vec<u8>>>::new());
        assert!(owners.change(1, 7));
    }

    #[test]
    fn owners_beyond_the_limit_are_not_reported() {
        let mut owners = Owners::default();
        (0..LIMIT as u64).for_each(|instance| owners.own(instance, 7, None));
        assert!(!owners.change(LIMIT as u64, 8) && owners.change(0, 8));
    }
}
