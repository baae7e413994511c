//! Subscriptions that wait for a publisher to take over the type of their topic.

use std::sync::atomic::Ordering;

use cyclors::dds_instance_handle_t;

use super::base::{Base, Opened};
use super::declared::Difference;
use super::described::{self, AnnouncedType, Descriptor, RESOLVE};
use super::entity::has_both_versions;
use super::further::Delivery;
use super::offered::{OfferedQos, requested};
use super::{DeclareError, RawType, TopicQos};
use crate::adapter::Receiver;

/// Limit of remembered publishers.
const CANDIDATES: usize = 1024;

/// A subscription whose type is unknown yet.
pub(super) struct Awaiting {
    pub(super) raw: RawType,
    pub(super) qos: TopicQos,
}

/// A publisher whose type the subscription may take over.
struct Candidate {
    handle: dds_instance_handle_t,
    announced: AnnouncedType,
    offered: OfferedQos,
}

/// Reason why the type of a publisher is not used.
enum Refusal {
    /// It differs from the declared one.
    Type(Difference),
    Error(DeclareError),
}

impl From<DeclareError> for Refusal {
    fn from(error: DeclareError) -> Refusal {
        Refusal::Error(error)
    }
}

impl Awaiting {
    /// Waits for a publisher and creates a reader of its type; `None` if the subscription ends before.
    pub(super) fn wait<R: Receiver + ?Sized>(
        self,
        base: &mut Base,
        delivery: &Delivery<R>,
    ) -> Option<Opened> {
        let mut candidates: Vec<Candidate> = Vec::new();
        while !base.state.is_stopping() {
            self.look(base, &mut candidates);
            if delivery.part.is_further() {
                candidates.retain(|candidate| !delivery.leaves_out(&candidate.announced));
            }
            base.look_at_unmatched(None, delivery);
            if candidates.is_empty() {
                if !base.wait(None, |_| {}) {
                    return None;
                }
                continue;
            }
            match self.open(base, &mut candidates) {
                Ok(Some(opened)) => return Some(opened),
                // The subscription was stopped, or the publisher has left.
                Ok(None) => {}
                Err(refusal) => {
                    let refused = candidates.remove(0);
                    base.publishers.forget(refused.handle);
                    match refusal {
                        Refusal::Type(difference) => {
                            delivery.differs(base, difference, false);
                        }
                        Refusal::Error(error) => {
                            base.state.incompatible.fetch_add(1, Ordering::Relaxed);
                            tracing::warn!(topic = %base.name, "messages of a publisher cannot be received: {error}");
                        }
                    }
                }
            }
        }
        None
    }

    /// Updates the list of publishers.
    fn look(&self, base: &mut Base, candidates: &mut Vec<Candidate>) {
        base.publishers.look_for(|handle, endpoint| {
            candidates.retain(|candidate| candidate.handle != handle);
            let Some(endpoint) = endpoint else { return };
            let named = |name: &String| name.as_bytes() == endpoint.type_name.to_bytes();
            if self.raw.name.as_ref().is_none_or(named) && candidates.len() < CANDIDATES {
                let mut announced = AnnouncedType::of(endpoint);
                announced.keyed = self.raw.keyed.unwrap_or(announced.keyed);
                candidates.push(Candidate { handle, announced, offered: endpoint.offered() });
            }
        });
    }

    /// Creates a reader of the type of the first publisher; `None` if that has left, or the subscription ends.
    fn open(&self, base: &mut Base, candidates: &mut Vec<Candidate>) -> Result<Option<Opened>, Refusal> {
        let Some(Candidate { handle, announced, .. }) = candidates.first() else { return Ok(None) };
        let handle = *handle;
        let state = &base.state;
        let described = announced
            .described
            .as_ref()
            .map(|type_info| Descriptor::resolve(&base.domain, type_info, RESOLVE, || state.is_stopping()));
        // The list may have changed meanwhile.
        self.look(base, candidates);
        let Some(Candidate { announced, .. }) = candidates.first().filter(|first| first.handle == handle)
        else {
            return Ok(None);
        };
        if base.state.is_stopping() {
            return Ok(None);
        }
        if let Some(declared) = &base.declared {
            let descriptor = described.as_ref().and_then(|described| described.as_ref().ok());
            declared.compare(announced, descriptor).map_err(Refusal::Type)?;
        }
        let type_name = announced.name.to_string_lossy().into_owned();
        let (topic, has_keys) = match described {
            Some(Ok(descriptor)) => {
                let topic = descriptor.topic(&base.domain, &base.name, &announced.name)?;
                if has_both_versions(&topic) {
                    (topic, descriptor.is_keyed())
                } else {
                    drop(topic);
                    tracing::debug!(topic = %base.name, %type_name, "the instances of the type are not kept apart");
                    let keyed = descriptor.is_keyed();
                    (described::opaque(&base.domain, &base.name, &announced.name, keyed)?, false)
                }
            }
            failed => {
                let why = match failed {
                    Some(Err(Some(reason))) => reason,
                    Some(_) => "its publisher does not describe it in time".to_owned(),
                    None => "its publisher does not describe it".to_owned(),
                };
                tracing::debug!(topic = %base.name, %type_name, "the type is known by its name only: {why}");
                (described::opaque(&base.domain, &base.name, &announced.name, announced.keyed)?, false)
            }
        };
        let same = candidates.iter().filter(|other| other.announced.name == announced.name);
        let offers: Vec<OfferedQos> = same.map(|other| other.offered.clone()).collect();
        let opened = base.open(topic, has_keys, &type_name, &requested(&self.qos, &offers))?;
        base.publishers.begin(&type_name);
        Ok(Some(opened))
    }
}
