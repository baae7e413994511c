use std::ffi::CStr;
use std::ptr;
use std::time::{Duration, Instant};

use cyclors::{dds_instance_handle_t, dds_sample_info_t};

use super::DeclareError;
use super::domain::Domain;
use super::entity::Entity;

/// How long a publisher may take to be matched with a reader, once it is known: its type may have to
/// be asked for first.
const GRACE: Duration = Duration::from_secs(1);

/// Watches for publishers of a topic that do not match its reader, be it for their type or for their
/// quality of service. The library itself is silent about most of them.
pub(super) struct Publishers {
    reader: Entity,
    topic: String,
    type_name: String,
    pending: Vec<Pending>,
    warned: bool,
}

struct Pending {
    handle: dds_instance_handle_t,
    type_name: String,
    since: Instant,
}

impl Publishers {
    pub(super) fn watch(domain: &Domain, topic: &str, type_name: &str) -> Result<Publishers, DeclareError> {
        Ok(Publishers {
            reader: publications(domain)?,
            topic: topic.to_owned(),
            type_name: type_name.to_owned(),
            pending: Vec::new(),
            warned: false,
        })
    }

    /// Has data when publishers have come or gone.
    pub(super) fn reader(&self) -> &Entity {
        &self.reader
    }

    /// When [`Publishers::unmatched`] should be called, if it should.
    pub(super) fn look_again_in(&self) -> Option<Duration> {
        let first = self.pending.iter().map(|p| p.since).min()?;
        Some((first + GRACE).saturating_duration_since(Instant::now()))
    }

    /// Notes the publishers that have come.
    pub(super) fn look(&mut self) {
        let Publishers { reader, topic, pending, .. } = self;
        announced(reader, |handle, endpoint| {
            pending.retain(|p| p.handle != handle);
            if let Some(endpoint) = endpoint.filter(|endpoint| endpoint.topic.to_bytes() == topic.as_bytes())
            {
                let type_name = endpoint.type_name.to_string_lossy().into_owned();
                pending.push(Pending { handle, type_name, since: Instant::now() });
            }
        });
    }

    /// How many publishers have turned out not to match `reader` since the last call.
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
                    if theirs == ours {
                        tracing::warn!(%topic, "a publisher cannot be received: its quality of service \
                            (reliability, partition) or its definition of type {ours} is another");
                    } else {
                        tracing::warn!(%topic, "a publisher cannot be received: its type is {theirs}, and \
                            {ours} is asked for");
                    }
                }
            }
            !over
        });
        new
    }
}

/// A publisher that was announced.
#[derive(Clone, Copy)]
pub(super) struct Endpoint<'a> {
    pub(super) topic: &'a CStr,
    pub(super) type_name: &'a CStr,
}

/// A reader of what publishers there are in the domain.
pub(super) fn publications(domain: &Domain) -> Result<Entity, DeclareError> {
    // SAFETY: a live handle, and the number of a topic that every participant has; the rest may be null.
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

/// Takes what such a reader has: every publisher that has come, and every one that has gone.
pub(super) fn announced(reader: &Entity, mut each: impl FnMut(dds_instance_handle_t, Option<Endpoint<'_>>)) {
    const AT_ONCE: usize = 16;
    loop {
        let mut samples = [ptr::null_mut(); AT_ONCE];
        // SAFETY: plain numbers, for which all zero is a value.
        let mut infos: [dds_sample_info_t; AT_ONCE] = unsafe { std::mem::zeroed() };
        // SAFETY: a live handle and room for as many samples as is said; with null pointers the
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
                Endpoint { topic, type_name }
            });
            each(info.instance_handle, endpoint);
        }
        // SAFETY: gives back what was lent, once.
        unsafe { cyclors::dds_return_loan(reader.handle(), samples.as_mut_ptr(), count) };
    }
}

/// The publishers that match a reader.
fn matched(reader: &Entity) -> Vec<dds_instance_handle_t> {
    let mut handles = vec![0; 64];
    loop {
        // SAFETY: a live handle and room for as many numbers as is said.
        let count = unsafe {
            cyclors::dds_get_matched_publications(reader.handle(), handles.as_mut_ptr(), handles.len())
        };
        // The library says how many there are, not how many it had room for.
        let count = usize::try_from(count).unwrap_or(0);
        if count <= handles.len() {
            handles.truncate(count);
            return handles;
        }
        handles.resize(count, 0);
    }
}
