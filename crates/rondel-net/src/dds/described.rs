//! Topics with a discovered type.

use std::ffi::{CStr, CString};
use std::ptr;
use std::time::{Duration, Instant};

use rondel_decode::schema::{Library, Schema, SchemaError};

use super::DeclareError;
use super::domain::Domain;
use super::dynamic::RegisteredType;
use super::entity::{Entity, c_name, check, message};
use super::publishers::{AnnouncedPublisher, DescribedType};

/// Time limit for a publisher to describe its type.
pub(super) const RESOLVE: Duration = Duration::from_secs(5);
/// Interval of checking for the end meanwhile.
const STEP: Duration = Duration::from_millis(50);

/// Type of a topic as its publisher announces it.
#[derive(Debug)]
pub(super) struct AnnouncedType {
    pub(super) name: CString,
    pub(super) keyed: bool,
    pub(super) described: Option<DescribedType>,
    /// Hash of the type in ROS 2.
    pub(super) hash: Option<String>,
}

impl AnnouncedType {
    pub(super) fn of(publisher: &AnnouncedPublisher<'_>) -> AnnouncedType {
        AnnouncedType {
            name: publisher.type_name.to_owned(),
            keyed: publisher.is_keyed(),
            described: publisher.type_info(),
            hash: publisher.type_hash(),
        }
    }

    /// Whether both have equal names and descriptions.
    pub(super) fn is_same(&self, other: &AnnouncedType) -> bool {
        let is_described = match (&self.described, &other.described) {
            (Some(own), Some(other)) => own.is_same(other),
            (own, other) => own.is_none() && other.is_none(),
        };
        self.name == other.name && self.keyed == other.keyed && is_described
    }
}

/// The library's description of a type, from which a topic can be created.
pub(super) struct Descriptor(*mut cyclors::dds_topic_descriptor_t);

impl Descriptor {
    /// Requests the description of a type from its publisher and waits for it.
    ///
    /// # Errors
    /// The library's reason; `None` if the wait was stopped, or the publisher did not answer in time.
    pub(super) fn resolve(
        domain: &Domain,
        described: &DescribedType,
        limit: Duration,
        is_stopping: impl Fn() -> bool,
    ) -> Result<Descriptor, Option<String>> {
        let deadline = Instant::now() + limit;
        loop {
            let mut descriptor = ptr::null_mut();
            // SAFETY: a live handle, a description of a type, and a place for a pointer.
            let code = unsafe {
                cyclors::dds_create_topic_descriptor(
                    cyclors::dds_find_scope_DDS_FIND_SCOPE_GLOBAL,
                    domain.participant(),
                    described.as_ptr(),
                    super::entity::duration(STEP),
                    &mut descriptor,
                )
            };
            match code {
                0.. => return Ok(Descriptor(descriptor)),
                cyclors::DDS_RETCODE_TIMEOUT | cyclors::DDS_RETCODE_PRECONDITION_NOT_MET => {
                    if is_stopping() || Instant::now() >= deadline {
                        return Err(None);
                    }
                    if code != cyclors::DDS_RETCODE_TIMEOUT {
                        // The call returned at once: there was no publisher to query yet.
                        std::thread::sleep(STEP);
                    }
                }
                code => return Err(Some(message(code))),
            }
        }
    }

    /// Returns the description of a type registered in this process.
    pub(super) fn local(domain: &Domain, registered: &RegisteredType) -> Result<Descriptor, DeclareError> {
        let mut descriptor = ptr::null_mut();
        // SAFETY: a live handle, the description of a type that is known here, so that nothing is waited for, and a place
        // for a pointer.
        let code = unsafe {
            cyclors::dds_create_topic_descriptor(
                cyclors::dds_find_scope_DDS_FIND_SCOPE_LOCAL_DOMAIN,
                domain.participant(),
                registered.info,
                0,
                &mut descriptor,
            )
        };
        check(code, "DDS type")?;
        Ok(Descriptor(descriptor))
    }

    /// Creates a topic of this type, under the publishers' name of the type.
    pub(super) fn topic(
        &self,
        domain: &Domain,
        name: &str,
        type_name: &CString,
    ) -> Result<Entity, DeclareError> {
        let topic_name = c_name(name)?;
        // SAFETY: made by the library, not null, and not changed as long as `self`. The copy borrows from it.
        let mut descriptor = unsafe { ptr::read(self.0) };
        descriptor.m_typename = type_name.as_ptr();
        // SAFETY: live handle; the name and all that the description refers to outlive the call, which copies them.
        let topic = unsafe {
            cyclors::dds_create_topic(
                domain.participant(),
                &descriptor,
                topic_name.as_ptr(),
                ptr::null(),
                ptr::null(),
            )
        };
        Entity::own(topic, "DDS topic")
    }

    /// Returns whether the type has a key.
    pub(super) fn is_keyed(&self) -> bool {
        // SAFETY: made by the library, not null.
        unsafe { (*self.0).m_nkeys > 0 }
    }

    /// Returns the name of the type in its own description.
    fn own_name(&self) -> String {
        // SAFETY: made by the library, not null, with a terminated name that lives as long.
        unsafe { CStr::from_ptr((*self.0).m_typename) }.to_string_lossy().into_owned()
    }

    /// Returns the serialised type objects of the type and of its parts.
    fn type_mapping(&self) -> &[u8] {
        // SAFETY: made by the library, not null.
        let mapping = unsafe { (*self.0).type_mapping };
        if mapping.data.is_null() {
            return &[];
        }
        // SAFETY: this number of bytes, which live as long as the description.
        unsafe { std::slice::from_raw_parts(mapping.data, mapping.sz as usize) }
    }

    /// Returns the type as a schema for decoders.
    pub(super) fn schema(&self) -> Result<Schema, SchemaError> {
        let mut library = Library::new();
        library.add_xtypes(self.type_mapping())?;
        library.schema(&self.own_name())
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: made by `dds_create_topic_descriptor`, freed once.
        unsafe { cyclors::dds_delete_topic_descriptor(self.0) };
    }
}

/// Creates a topic whose type is known only by its name. The library then takes all samples for those of one instance.
pub(super) fn opaque(
    domain: &Domain,
    name: &str,
    type_name: &CString,
    keyed: bool,
) -> Result<Entity, DeclareError> {
    let topic_name = c_name(name)?;
    // SAFETY: a live handle, and terminated names, which the call copies and does not write to.
    let topic = unsafe {
        cyclors::cdds_create_blob_topic(
            domain.participant(),
            topic_name.as_ptr().cast_mut(),
            type_name.as_ptr().cast_mut(),
            !keyed,
        )
    };
    Entity::own(topic, "DDS topic")
}
