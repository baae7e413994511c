//! Discovery of publishers.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::time::{Duration, Instant};

use cyclors::{dds_instance_handle_t, dds_sample_info_t};

use super::DeclareError;
use super::described::AnnouncedType;
use super::discovery::DiscoveredEndpoint;
use super::domain::Domain;
use super::entity::{Entity, policy_name};
use super::offered::OfferedQos;

/// Time after discovery within which a publisher normally matches a reader; the library may have to
/// request its type first.
const GRACE: Duration = Duration::from_secs(1);

/// Detects publishers of a topic that do not match its reader because of their type or quality of
/// service. The library itself reports only some of them.
pub(super) struct PublisherWatch {
    reader: Entity,
    topic: String,
    /// Type of the subscription, once known.
    type_name: Option<String>,
    /// Partitions of the subscription. Publishers in other ones are ignored.
    partitions: Vec<String>,
    pending: Vec<PendingPublisher>,
    /// Whether there is a reader.
    has_reader: bool,
    warned: bool,
}

/// A discovered publisher that has not matched yet.
struct PendingPublisher {
    handle: dds_instance_handle_t,
    announced: AnnouncedType,
    since: Instant,
}

impl PublisherWatch {
    pub(super) fn watch(
        domain: &Domain,
        topic: &str,
        type_name: Option<&str>,
        partitions: &[String],
    ) -> Result<PublisherWatch, DeclareError> {
        Ok(PublisherWatch {
            reader: publications(domain)?,
            topic: topic.to_owned(),
            type_name: type_name.map(str::to_owned),
            partitions: partitions.to_vec(),
            pending: Vec::new(),
            has_reader: false,
            warned: false,
        })
    }

    /// Returns the reader that has data when publishers have appeared or disappeared.
    pub(super) fn reader(&self) -> &Entity {
        &self.reader
    }

    /// Returns the time until [`PublisherWatch::unmatched`] must be called; `None` if it need not be.
    pub(super) fn look_again_in(&self) -> Option<Duration> {
        let is_due = |p: &&PendingPublisher| self.has_reader || self.is_other(&p.announced);
        let first = self.pending.iter().filter(is_due).map(|p| p.since).min()?;
        Some((first + GRACE).saturating_duration_since(Instant::now()))
    }

    /// Sets the type of the reader, which begins to match now.
    pub(super) fn begin(&mut self, type_name: &str) {
        self.type_name = Some(type_name.to_owned());
        self.has_reader = true;
        self.pending.iter_mut().for_each(|p| p.since = Instant::now());
    }

    /// Whether a type is not that of the subscription.
    fn is_other(&self, announced: &AnnouncedType) -> bool {
        self.type_name.as_ref().is_some_and(|ours| ours.as_bytes() != announced.name.to_bytes())
    }

    /// Records newly discovered publishers.
    pub(super) fn look(&mut self) {
        self.look_for(|_, _| {});
    }

    /// Like [`PublisherWatch::look`]; calls `each` for each publisher of the topic that has appeared, and without a
    /// description for each publisher that has disappeared.
    pub(super) fn look_for(
        &mut self,
        mut each: impl FnMut(dds_instance_handle_t, Option<&AnnouncedPublisher<'_>>),
    ) {
        let PublisherWatch { reader, topic, pending, partitions, .. } = self;
        announced(reader, |handle, endpoint| {
            pending.retain(|p| p.handle != handle);
            let Some(endpoint) = endpoint else { return each(handle, None) };
            if endpoint.topic.to_bytes() != topic.as_bytes()
                || (!partitions.is_empty() && !endpoint.offered().is_in(partitions))
            {
                return;
            }
            let announced = AnnouncedType::of(&endpoint);
            tracing::debug!(%topic, type_name = ?announced.name, "discovered a publisher");
            pending.push(PendingPublisher { handle, announced, since: Instant::now() });
            each(handle, Some(&endpoint));
        });
    }

    /// Forgets a publisher that was already reported.
    pub(super) fn forget(&mut self, handle: dds_instance_handle_t) {
        self.pending.retain(|p| p.handle != handle);
    }

    /// Returns the number of publishers found not to match `reader` since the last call; without a reader, those of
    /// another type. Publishers for which `differs` returns `true` are neither counted nor reported.
    pub(super) fn unmatched(
        &mut self,
        reader: Option<&Entity>,
        mut differs: impl FnMut(&AnnouncedType) -> bool,
    ) -> u64 {
        if !self.pending.iter().any(|p| p.since.elapsed() >= GRACE) {
            return 0;
        }
        let matched = reader.map(matched).unwrap_or_default();
        let mut new = 0;
        self.pending.retain(|p| {
            if matched.contains(&p.handle) {
                return false;
            }
            let over = p.since.elapsed() >= GRACE;
            let (topic, theirs) = (&self.topic, p.announced.name.to_string_lossy());
            let other_type = self.type_name.as_ref().filter(|ours| **ours != theirs);
            if !over || (reader.is_none() && other_type.is_none()) {
                return true;
            }
            if other_type.is_none() && differs(&p.announced) {
                return false;
            }
            new += 1;
            if !std::mem::replace(&mut self.warned, true) {
                if let Some(ours) = other_type {
                    tracing::warn!(
                        %topic,
                        "messages of a publisher cannot be received: its type is {theirs}, the subscription has \
                         {ours}; further ones are only counted"
                    );
                } else if let Some(policy) = reader.and_then(incompatible_policy) {
                    tracing::warn!(
                        %topic,
                        "messages of a publisher cannot be received: the {policy} of its QoS is incompatible with \
                         the subscription; further ones are only counted"
                    );
                } else {
                    tracing::warn!(
                        %topic,
                        "messages of a publisher cannot be received: its partition or its definition of type \
                         {theirs} differs; further ones are only counted"
                    );
                }
            }
            false
        });
        new
    }
}

/// A publisher announced by discovery.
#[derive(Clone, Copy)]
pub(super) struct AnnouncedPublisher<'a> {
    pub(super) topic: &'a CStr,
    pub(super) type_name: &'a CStr,
    endpoint: &'a cyclors::dds_builtintopic_endpoint_t,
}

/// Last bytes of the ids of writers and readers whose topic has a key; defined by the protocol, RTPS.
const WITH_KEY: [u8; 2] = [0x02, 0x07];

impl AnnouncedPublisher<'_> {
    /// Whether its type has a key.
    pub(super) fn is_keyed(&self) -> bool {
        WITH_KEY.contains(&(self.endpoint.key.v[15] & 0x3f))
    }

    /// Returns its entry for lists.
    pub(super) fn listed(&self, publishes: bool) -> DiscoveredEndpoint {
        DiscoveredEndpoint {
            id: self.endpoint.key.v,
            participant: self.endpoint.participant_key.v,
            publishes,
            topic: self.topic.to_string_lossy().into_owned(),
            type_name: self.type_name.to_string_lossy().into_owned(),
            keyed: self.is_keyed(),
            is_described: self.type_info().is_some(),
            type_hash: self.type_hash(),
            qos: self.offered(),
        }
    }

    /// Returns its quality of service.
    pub(super) fn offered(&self) -> OfferedQos {
        // SAFETY: null or a QoS that belongs to the endpoint, which is borrowed.
        unsafe { OfferedQos::read(self.endpoint.qos) }
    }

    /// Returns the hash of its type, which ROS 2 writes into the user data: `typehash=RIHS01_…;`.
    pub(super) fn type_hash(&self) -> Option<String> {
        let (mut data, mut size): (*mut c_void, usize) = (ptr::null_mut(), 0);
        // SAFETY: a QoS that belongs to the endpoint, and places for a pointer and a size. The library makes a copy of so
        // many bytes, which is ours.
        let is_set = !self.endpoint.qos.is_null()
            && unsafe { cyclors::dds_qget_userdata(self.endpoint.qos, &mut data, &mut size) };
        if !is_set || data.is_null() {
            return None;
        }
        // SAFETY: checked just above.
        let text = String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) });
        let hash = text.split(';').find_map(|part| part.strip_prefix("typehash=")).map(str::to_owned);
        // SAFETY: made by the library for us, freed once.
        unsafe { cyclors::dds_free(data) };
        hash.filter(|hash| hash.starts_with("RIHS01_"))
    }

    /// Returns the description of its type, if it has one.
    pub(super) fn type_info(&self) -> Option<DescribedType> {
        let mut info = ptr::null();
        let endpoint = ptr::from_ref(self.endpoint).cast_mut();
        // SAFETY: a live endpoint, which the call does not write to, and a place for a pointer.
        let code = unsafe { cyclors::dds_builtintopic_get_endpoint_type_info(endpoint, &mut info) };
        if code < 0 || info.is_null() {
            return None;
        }
        // SAFETY: the description belongs to the endpoint, which is borrowed; the copy is ours.
        let copy = unsafe { cyclors::ddsi_typeinfo_dup(info) };
        (!copy.is_null()).then_some(DescribedType(copy))
    }
}

/// A description of a type.
#[derive(Debug)]
pub(super) struct DescribedType(*mut cyclors::ddsi_typeinfo_t);

// SAFETY: memory without other references that is not bound to a thread.
unsafe impl Send for DescribedType {}

impl DescribedType {
    /// Whether both describe the same type, by its hashes.
    pub(super) fn is_same(&self, other: &DescribedType) -> bool {
        let all = cyclors::ddsi_type_include_deps_DDSI_TYPE_INCLUDE_DEPS;
        // SAFETY: two live descriptions, which the call only reads.
        unsafe { cyclors::ddsi_typeinfo_equal(self.0, other.0, all) }
    }

    pub(super) fn copy(&self) -> Option<DescribedType> {
        // SAFETY: a live description; the copy is ours.
        let copy = unsafe { cyclors::ddsi_typeinfo_dup(self.0) };
        (!copy.is_null()).then_some(DescribedType(copy))
    }

    pub(super) fn as_ptr(&self) -> *const cyclors::ddsi_typeinfo_t {
        self.0
    }
}

impl Drop for DescribedType {
    fn drop(&mut self) {
        // SAFETY: made by `ddsi_typeinfo_dup`, freed once.
        unsafe { cyclors::ddsi_typeinfo_free(self.0) };
    }
}

/// Creates a reader of the publishers in the domain.
pub(super) fn publications(domain: &Domain) -> Result<Entity, DeclareError> {
    builtin(domain, cyclors::DDS_BUILTIN_TOPIC_DCPSPUBLICATION)
}

/// Creates a reader of the subscriptions in the domain.
pub(super) fn subscriptions(domain: &Domain) -> Result<Entity, DeclareError> {
    builtin(domain, cyclors::DDS_BUILTIN_TOPIC_DCPSSUBSCRIPTION)
}

fn builtin(domain: &Domain, topic: cyclors::dds_entity_t) -> Result<Entity, DeclareError> {
    // SAFETY: a live handle and the id of a built-in topic; the rest may be null.
    let reader = unsafe { cyclors::dds_create_reader(domain.participant(), topic, ptr::null(), ptr::null()) };
    Entity::own(reader, "DDS reader of publishers")
}

/// Calls `each` for every publisher or subscription that has appeared (with its names) or disappeared (`None`).
pub(super) fn announced(
    reader: &Entity,
    mut each: impl FnMut(dds_instance_handle_t, Option<AnnouncedPublisher<'_>>),
) {
    changed(reader, |handle, endpoint, is_there| each(handle, endpoint.filter(|_| is_there)));
}

/// Like [`announced`], but also names publishers and subscriptions that appeared and have left since; `each` gets
/// whether they exist.
pub(super) fn changed(
    reader: &Entity,
    mut each: impl FnMut(dds_instance_handle_t, Option<AnnouncedPublisher<'_>>, bool),
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
            let is_there = info.instance_state == cyclors::dds_instance_state_DDS_IST_ALIVE;
            // SAFETY: a sample of this topic is such a structure, lent until `dds_return_loan`.
            let endpoint = unsafe { sample.cast::<cyclors::dds_builtintopic_endpoint_t>().as_ref() };
            let endpoint = endpoint.filter(|_| info.valid_data).and_then(named);
            each(info.instance_handle, endpoint, is_there);
        }
        // SAFETY: gives back what was lent, once.
        unsafe { cyclors::dds_return_loan(reader.handle(), samples.as_mut_ptr(), count) };
    }
}

/// Returns the type of a publisher that matches a reader; `None` if it has left.
pub(super) fn type_of_match(reader: &Entity, publisher: dds_instance_handle_t) -> Option<AnnouncedType> {
    // SAFETY: a live handle; a handle of something that has left gives null.
    let endpoint = unsafe { cyclors::dds_get_matched_publication_data(reader.handle(), publisher) };
    // SAFETY: null, or a description that is ours until it is freed.
    let announced =
        unsafe { endpoint.as_ref() }.and_then(named).map(|publisher| AnnouncedType::of(&publisher));
    if !endpoint.is_null() {
        // SAFETY: made by the library for us, freed once.
        unsafe { cyclors::dds_builtintopic_free_endpoint(endpoint) };
    }
    announced
}

/// Reads the names of an endpoint.
fn named(endpoint: &cyclors::dds_builtintopic_endpoint_t) -> Option<AnnouncedPublisher<'_>> {
    if endpoint.topic_name.is_null() || endpoint.type_name.is_null() {
        return None;
    }
    // SAFETY: terminated texts, just seen not to be null, which belong to the endpoint.
    let (topic, type_name) =
        unsafe { (CStr::from_ptr(endpoint.topic_name), CStr::from_ptr(endpoint.type_name)) };
    Some(AnnouncedPublisher { topic, type_name, endpoint })
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
