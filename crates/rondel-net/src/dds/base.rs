//! Common parts of the threads of all subscriptions: waiting, and creating the reader.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cyclors::dds_attach_t;

use super::announced_node::Member;
use super::declared::Declared;
use super::described::AnnouncedType;
use super::domain::Domain;
use super::entity::{Entity, Qos, check, duration, message};
use super::further::Delivery;
use super::missed::MissedDeadlines;
use super::publishers::PublisherWatch;
use super::subscription::SubscriptionState;
use super::{DeclareError, TopicQos};
use crate::adapter::Receiver;

/// Ids of the entities attached to the thread's wait set.
const DATA: dds_attach_t = 1;
pub(super) const STATUS: dds_attach_t = 2;
pub(super) const PUBLISHERS: dds_attach_t = 3;
pub(super) const STOP: dds_attach_t = 4;

/// Ids of both data representations.
pub(super) const XCDR1_AND_2: [i16; 2] = [0, 2];

/// The parts of a subscription that exist before its reader. The fields are dropped, and their entities deleted, in
/// this order.
pub(super) struct Base {
    pub(super) waitset: Entity,
    pub(super) publishers: PublisherWatch,
    pub(super) _stop: Arc<Entity>,
    pub(super) domain: Arc<Domain>,
    pub(super) state: Arc<SubscriptionState>,
    pub(super) name: String,
    pub(super) queue: u32,
    /// Type by which samples are read, if known.
    pub(super) declared: Option<Declared>,
}

/// A reader and its topic, deleted in this order after the reader has left the graph of ROS 2.
pub(super) struct Opened {
    pub(super) _member: Option<Member>,
    pub(super) reader: Entity,
    pub(super) topic: Entity,
    /// Instances that missed their deadline, if instances are distinguished and have one.
    pub(super) missed: Option<MissedDeadlines>,
    /// Whether instances are distinguished.
    pub(super) has_keys: bool,
    pub(super) qos: TopicQos,
}

impl Opened {
    /// Whether the matches of the reader have changed since the last look.
    #[inline]
    pub(super) fn has_new_matches(&self) -> bool {
        let mut changed = 0;
        // SAFETY: a live handle and a place for the flags.
        let code = unsafe { cyclors::dds_get_status_changes(self.reader.handle(), &mut changed) };
        code >= 0 && changed & (1 << cyclors::dds_status_id_DDS_SUBSCRIPTION_MATCHED_STATUS_ID) != 0
    }
}

impl Base {
    pub(super) fn attach(&self, entity: i32, why: dds_attach_t) -> Result<(), DeclareError> {
        // SAFETY: live handles; the number comes back from the wait.
        let code = unsafe { cyclors::dds_waitset_attach(self.waitset.handle(), entity, why) };
        check(code, "DDS wait set").map(drop)
    }

    /// Wakes the thread when a reader has data.
    pub(super) fn attach_condition(&self, reader: &Entity, why: dds_attach_t) -> Result<(), DeclareError> {
        // SAFETY: a live handle. The condition is deleted with its reader.
        let condition = unsafe { cyclors::dds_create_readcondition(reader.handle(), cyclors::DDS_ANY_STATE) };
        self.attach(check(condition, "DDS condition")?, why)
    }

    /// Creates the reader of a topic.
    pub(super) fn open(
        &self,
        topic: Entity,
        has_keys: bool,
        type_name: &str,
        qos: &TopicQos,
    ) -> Result<Opened, DeclareError> {
        let requested = Qos::new().requesting(qos, self.queue)?.representations(&XCDR1_AND_2);
        let missed = (has_keys && qos.deadline.is_some()).then(MissedDeadlines::new);
        let listener = missed.as_ref().map_or(ptr::null(), MissedDeadlines::listener);
        // SAFETY: live handles, and qualities of service that outlive the call, as does the listener, which is copied.
        let reader = unsafe {
            let participant = self.domain.participant();
            cyclors::dds_create_reader(participant, topic.handle(), requested.as_ptr(), listener)
        };
        let reader = Entity::own(reader, "DDS reader")?;
        let status = 1 << cyclors::dds_status_id_DDS_SAMPLE_LOST_STATUS_ID
            | 1 << cyclors::dds_status_id_DDS_SUBSCRIPTION_MATCHED_STATUS_ID
            | 1 << cyclors::dds_status_id_DDS_REQUESTED_DEADLINE_MISSED_STATUS_ID
            | 1 << cyclors::dds_status_id_DDS_LIVELINESS_CHANGED_STATUS_ID;
        // SAFETY: a live handle.
        check(unsafe { cyclors::dds_set_status_mask(reader.handle(), status) }, "DDS reader")?;
        if qos.poll.is_none() {
            self.attach_condition(&reader, DATA)?;
        }
        self.attach(reader.handle(), STATUS)?;
        tracing::info!(topic = %self.name, %type_name, "subscribed");
        tracing::debug!(
            topic = %self.name, ?qos, representation = "XCDR1, XCDR2", max_samples = self.queue, has_keys,
            "QoS of the subscription"
        );
        let member = self.domain.announce(&self.name, &reader, false);
        Ok(Opened { _member: member, reader, topic, missed, has_keys, qos: qos.clone() })
    }

    /// Waits for the attached entities, at most for `limit`. Returns `false` if waiting failed.
    pub(super) fn wait(&self, limit: Option<Duration>, mut each: impl FnMut(dds_attach_t)) -> bool {
        let mut woken: [dds_attach_t; 4] = [0; 4];
        let next = self.publishers.look_again_in().into_iter().chain(limit).min();
        // SAFETY: a live handle, and room for the stated number of handles.
        let count = unsafe {
            cyclors::dds_waitset_wait(
                self.waitset.handle(),
                woken.as_mut_ptr(),
                woken.len(),
                next.map_or(cyclors::dds_duration_t::MAX, duration),
            )
        };
        let Ok(count) = usize::try_from(count) else {
            let reason = message(count);
            tracing::error!(topic = %self.name, "waiting for DDS samples failed: {reason}; the subscription ends");
            return false;
        };
        woken[..count.min(woken.len())].iter().for_each(|why| each(*why));
        true
    }

    /// Handles publishers that do not match: those with another type may be read by that type, others are counted.
    pub(super) fn look_at_unmatched<R: Receiver + ?Sized>(
        &mut self,
        reader: Option<&Entity>,
        delivery: &Delivery<R>,
    ) {
        let Base { publishers, declared, domain, state, .. } = self;
        let mut differing = Vec::new();
        let differs = |announced: &AnnouncedType| {
            let Some(declared) = declared else { return false };
            let checked = declared.check(domain, announced, || state.is_stopping());
            checked.map_err(|difference| differing.push(difference)).is_err()
        };
        let new = publishers.unmatched(reader, differs);
        // The first reader counts them.
        if !delivery.part.is_further() {
            state.incompatible.fetch_add(new, Ordering::Relaxed);
        }
        for difference in differing {
            delivery.differs(self, difference, false);
        }
    }

    /// Counts a publisher whose samples are not read, and logs the reason.
    pub(super) fn refuse(&mut self, reason: &str) {
        self.state.incompatible.fetch_add(1, Ordering::Relaxed);
        if let Some(declared) = &mut self.declared {
            declared.log_once(&self.name, reason);
        }
    }
}
