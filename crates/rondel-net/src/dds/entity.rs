use std::ffi::{CStr, CString};
use std::time::Duration;

use cyclors::{dds_duration_t, dds_entity_t, dds_qos_t, dds_return_t};

use super::DeclareError;

/// A handle of CycloneDDS. Deleting it deletes all that was made from it.
///
/// Handles are numbers that the library looks up, under its own locks, in every call: a stale one
/// gives an error, and any thread may use any of them.
#[derive(Debug)]
pub(super) struct Entity(dds_entity_t);

impl Entity {
    /// Takes over what a function of the library has returned: a handle, or an error below zero.
    pub(super) fn own(returned: dds_entity_t, what: &'static str) -> Result<Entity, DeclareError> {
        check(returned, what).map(Entity)
    }

    pub(super) fn handle(&self) -> dds_entity_t {
        self.0
    }
}

impl Drop for Entity {
    fn drop(&mut self) {
        // SAFETY: takes a number; one whose parent is deleted already is refused, which is fine.
        unsafe { cyclors::dds_delete(self.0) };
    }
}

/// Turns a return code of the library into a result.
pub(super) fn check(code: dds_return_t, what: &'static str) -> Result<dds_return_t, DeclareError> {
    if code >= 0 { Ok(code) } else { Err(DeclareError::Network { what, reason: message(code) }) }
}

/// What the library calls a return code.
pub(super) fn message(code: dds_return_t) -> String {
    // SAFETY: returns a pointer to a constant, terminated text for every number.
    unsafe { CStr::from_ptr(cyclors::dds_strretcode(code)) }.to_string_lossy().into_owned()
}

/// A name for the library: without zero bytes.
pub(super) fn c_name(name: &str) -> Result<CString, DeclareError> {
    let refuse = || DeclareError::Name(name.to_owned());
    if name.is_empty() { Err(refuse()) } else { CString::new(name).map_err(|_| refuse()) }
}

/// A duration as the library counts it, in nanoseconds; beyond 292 years it is infinite there too.
pub(super) fn duration(d: Duration) -> dds_duration_t {
    dds_duration_t::try_from(d.as_nanos()).unwrap_or(dds_duration_t::MAX)
}

/// Qualities of service, for the time of a call.
pub(super) struct Qos(*mut dds_qos_t);

impl Qos {
    pub(super) fn new() -> Qos {
        // SAFETY: allocates; the library ends the process when there is no memory, as Rust does.
        Qos(unsafe { cyclors::dds_create_qos() })
    }

    /// No sample is lost: every one is kept until it is acknowledged or handed over. A write blocks
    /// for `max_blocking` at most, a reader keeps `max_samples` at most.
    pub(super) fn reliable(self, max_blocking: Duration, max_samples: Option<u32>) -> Qos {
        let limit = max_samples.map_or(-1, |n| i32::try_from(n.max(1)).unwrap_or(i32::MAX));
        // SAFETY: `self.0` is a live object of `dds_create_qos`; the rest are plain numbers.
        unsafe {
            cyclors::dds_qset_reliability(
                self.0,
                cyclors::dds_reliability_kind_DDS_RELIABILITY_RELIABLE,
                duration(max_blocking),
            );
            cyclors::dds_qset_history(self.0, cyclors::dds_history_kind_DDS_HISTORY_KEEP_ALL, 0);
            cyclors::dds_qset_resource_limits(self.0, limit, -1, -1);
        }
        self
    }

    /// Offers, or accepts, these data representations.
    pub(super) fn representations(self, ids: &[i16]) -> Qos {
        // SAFETY: as above; the library copies the numbers of the given count.
        unsafe { cyclors::dds_qset_data_representation(self.0, ids.len() as u32, ids.as_ptr()) };
        self
    }

    pub(super) fn batching(self, on: bool) -> Qos {
        // SAFETY: as above.
        unsafe { cyclors::dds_qset_writer_batching(self.0, on) };
        self
    }

    pub(super) fn as_ptr(&self) -> *const dds_qos_t {
        self.0
    }
}

impl Drop for Qos {
    fn drop(&mut self) {
        // SAFETY: made by `dds_create_qos`, freed once; calls that were given it made their copies.
        unsafe { cyclors::dds_delete_qos(self.0) };
    }
}
