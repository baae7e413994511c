//! Discovery of publishers.

use std::ffi::CStr;
use std::ptr;
use std::time::{Duration, Instant};

use cyclors::{dds_instance_handle_t, dds_sample_info_t};

use super::DeclareError;
use super::domain::Domain;
use super::entity::{Entity, policy_name};

/// Time after discovery within which a publisher normally matches a reader; the library may have to
/// request its type first.
const GRACE: Duration = Duration::from_secs(1);

/// Detects publishers of a topic that do not match its reader because of their type or quality of
/// service. The library itself reports only some of them.
pub(super) struct PublisherWatch {
    reader: Entity,
    topic: String,
    type_name: String,
    pending: Vec<PendingPublisher>,
    warned: bool,
}

/// A publisher that was discovered and has not matched yet.
struct PendingPublisher {
    handle: dds_instance_handle_t,
    type_name: String,
    since: Instant,
}

impl PublisherWatch {
    pub(super) fn watch(
        domain: &Domain,
        topic: &str,
        type_name: &str,
    ) -> Result<PublisherWatch, DeclareError> {
        Ok(PublisherWatch {
            reader: publications(domain)?,
            topic: topic.to_owned(),
            type_name: type_name.to_owned(),
            pending: Vec::new(),
            warned: false,
        })
    }

    /// Returns the reader that has data when publishers have appeared or disappeared.
    pub(super) fn reader(&self) -> &Entity {
        &self.reader
    }

    /// Returns the time until [`PublisherWatch::unmatched`] is to be called; `None` if there is no need.
    pub(super) fn look_again_in(&self) -> Option<Duration> {
        let first = self.pending.iter().map(|p| p.since).min()?;
        Some((first + GRACE).saturating_duration_since(Instant::now()))
    }

    /// Records newly discovered publishers.
    pub(super) fn look(&mut self) {
        let PublisherWatch { reader, topic, pending, .. } = self;
        announced(reader, |handle, endpoint| {
            pending.retain(|p| p.handle != handle);
            if let Some(endpoint) = endpoint.filter(|endpoint| endpoint.topic.to_bytes() == topic.as_bytes())
            {
                let type_name = endpoint.type_name.to_string_lossy().into_owned();
                tracing::debug!(%topic, %type_name, "discovered a publisher");
                pending.push(PendingPublisher { handle, type_name, since: Instant::now() });
            }
        });
    }

    /// Returns how many publishers turned out not to match `reader` since the last call.
    pub(super) fn unmatched(&mut self, reader: &Entity) -> u64 {
        if !self.pending.iter().any(|p| p.since.elapsed() >= GRACE) {
            return 0;
        }
        let matched = matched(reader);
        let mut new = 0;
        self.pending.retain(|p| {
            if matched.contains(&p.handle) {
                return false;
            }
            let over = p.since.elapsed() >= GRACE;
            if over {
                new += 1;
                if !self.warned {
                    self.warned = true;
                    let (topic, theirs, ours) = (&self.topic, &p.type_name, &self.type_name);
                    if theirs != ours {
                        tracing::warn!(
                            %topic,
                            "messages of a publisher cannot be received: its type is {theirs}, the subscription has \
                             {ours}; further ones are only counted"
                        );
                    } else if let Some(policy) = incompatible_policy(reader) {
                        tracing::warn!(
                            %topic,
                            "messages of a publisher cannot be received: the {policy} of its QoS is incompatible with \
                             the subscription (reliable, volatile); further ones are only counted"
                        );
                    } else {
                        tracing::warn!(
                            %topic,
                            "messages of a publisher cannot be received: its partition or its definition of type \
                             {ours} differs; further ones are only counted"
                        );
                    }
                }
            }
            !over
        });
        new
    }
}

/// A publisher announced by discovery.
#[derive(Clone, Copy)]
pub(super) struct AnnouncedPublisher<'a> {
    pub(super) topic: &'a CStr,
    pub(super) type_name: &'a CStr,
}

/// Creates a reader of the publishers in the domain.
pub(super) fn publications(domain: &Domain) -> Result<Entity, DeclareError> {
    // SAFETY: a live handle and the id of a built-in topic; the rest may be null.
    let reader = unsafe {
        cyclors::dds_create_reader(
            domain.participant(),
            cyclors::DDS_BUILTIN_TOPIC_DCPSPUBLICATION,
            ptr::null(),
            ptr::null(),
        )
    };
    Entity::own(reader, "DDS reader of publishers")
}

/// Calls `each` for every publisher that has appeared (with its names) or disappeared (`None`).
pub(super) fn announced(
    reader: &Entity,
    mut each: impl FnMut(dds_instance_handle_t, Option<AnnouncedPublisher<'_>>),
) {
    const AT_ONCE: usize = 16;
    loop {
        let mut samples = [ptr::null_mut(); AT_ONCE];
        // SAFETY: plain numbers, for which all zero is a value.
        let mut infos: [dds_sample_info_t; AT_ONCE] = unsafe { std::mem::zeroed() };
        // SAFETY: a live handle and room for the stated number of samples; with null pointers the
        // library lends its own memory.
        let count = unsafe {
            cyclors::dds_take(
                reader.handle(),
                samples.as_mut_ptr(),
                infos.as_mut_ptr(),
                AT_ONCE,
                AT_ONCE as u32,
            )
        };
        let Ok(taken @ 1..) = usize::try_from(count) else { return };
        for (sample, info) in samples.iter().zip(&infos).take(taken) {
            let is_there =
                info.valid_data && info.instance_state == cyclors::dds_instance_state_DDS_IST_ALIVE;
            // SAFETY: a sample of this topic is such a structure, lent until `dds_return_loan`.
            let endpoint = unsafe { sample.cast::<cyclors::dds_builtintopic_endpoint_t>().as_ref() };
            let named = |e: &&cyclors::dds_builtintopic_endpoint_t| {
                is_there && !e.topic_name.is_null() && !e.type_name.is_null()
            };
            let endpoint = endpoint.filter(named).map(|e| {
                // SAFETY: terminated texts, just seen not to be null, lent as above.
                let (topic, type_name) =
                    unsafe { (CStr::from_ptr(e.topic_name), CStr::from_ptr(e.type_name)) };
                AnnouncedPublisher { topic, type_name }
            });
            each(info.instance_handle, endpoint);
        }
        // SAFETY: gives back what was lent, once.
        unsafe { cyclors::dds_return_loan(reader.handle(), samples.as_mut_ptr(), count) };
    }
}

/// Returns the QoS policy in which a publisher was last found incompatible with a reader.
fn incompatible_policy(reader: &Entity) -> Option<&'static str> {
    // SAFETY: plain numbers, for which all zero is a value.
    let mut status: cyclors::dds_requested_incompatible_qos_status_t = unsafe { std::mem::zeroed() };
    // SAFETY: a live handle and a place for the status.
    let code = unsafe { cyclors::dds_get_requested_incompatible_qos_status(reader.handle(), &mut status) };
    (code >= 0 && status.total_count > 0).then(|| policy_name(status.last_policy_id))
}

/// Returns the publishers that match a reader.
fn matched(reader: &Entity) -> Vec<dds_instance_handle_t> {
    let mut handles = vec![0; 64];
    loop {
        // SAFETY: a live handle and room for the stated number of handles.
        let count = unsafe {
            cyclors::dds_get_matched_publications(reader.handle(), handles.as_mut_ptr(), handles.len())
        };
        // The library returns the number of publishers even if the buffer is too small for them.
        let count = usize::try_from(count).unwrap_or(0);
        if count <= handles.len() {
            handles.truncate(count);
            return handles;
        }
        handles.resize(count, 0);
    }
}
