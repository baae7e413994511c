//! Instances of a topic without a sample within the deadline.

use std::ffi::c_void;
use std::ptr;
use std::sync::Mutex;

use cyclors::{
    dds_entity_t, dds_instance_handle_t, dds_listener_t, dds_requested_deadline_missed_status_t,
    ddsi_sertype, ddsrt_iovec_t,
};
use rondel_event::Timestamp;

use super::entity::Entity;
use crate::adapter;

/// Limit of reports that the thread of the subscription has not taken yet, and of instances that it remembers.
pub(super) const LIMIT: usize = 65_536;

/// An instance, and the time at which it missed its deadline.
pub(super) type Missed = (dds_instance_handle_t, Timestamp);

/// The library's reports about the instances of a reader: its status names only the last one. Outlives the reader.
pub(super) struct MissedDeadlines {
    listener: *mut dds_listener_t,
    /// Boxed, because the library keeps its address.
    reports: Box<Mutex<Reports>>,
}

// SAFETY: the listener is changed by `new` and `drop` only, and the reports are behind a lock.
unsafe impl Send for MissedDeadlines {}

#[derive(Default)]
struct Reports {
    missed: Vec<Missed>,
    /// Number of reports beyond the limit.
    dropped: u64,
}

impl MissedDeadlines {
    pub(super) fn new() -> MissedDeadlines {
        let reports = Box::<Mutex<Reports>>::default();
        let address = ptr::from_ref(&*reports).cast_mut().cast();
        // SAFETY: allocates a listener, which calls `note` with the address of the reports. These live as long as `self`,
        // which outlives its reader; deleting a reader waits for its callbacks. The status stays set, which wakes the
        // thread of the subscription.
        let listener = unsafe {
            let listener = cyclors::dds_create_listener(ptr::null_mut());
            cyclors::dds_lset_requested_deadline_missed_arg(listener, Some(note), address, false);
            listener
        };
        MissedDeadlines { listener, reports }
    }

    /// Returns the listener for the reader.
    pub(super) fn listener(&self) -> *const dds_listener_t {
        self.listener
    }

    /// Takes the reports so far, and the number of dropped ones.
    pub(super) fn take(&self) -> (Vec<Missed>, u64) {
        let mut reports = self.reports.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        (std::mem::take(&mut reports.missed), std::mem::take(&mut reports.dropped))
    }
}

impl Drop for MissedDeadlines {
    fn drop(&mut self) {
        // SAFETY: of `dds_create_listener`, and deleted once.
        unsafe { cyclors::dds_delete_listener(self.listener) };
    }
}

/// Called by a thread of the library, once for each instance.
unsafe extern "C" fn note(
    _: dds_entity_t,
    status: dds_requested_deadline_missed_status_t,
    reports: *mut c_void,
) {
    // SAFETY: the address that `new` gave, of reports that outlive the reader.
    let reports = unsafe { &*reports.cast::<Mutex<Reports>>() };
    let mut reports = reports.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if reports.missed.len() < LIMIT {
        reports.missed.push((status.last_instance_handle, adapter::now()));
    } else {
        reports.dropped += 1;
    }
}

/// Returns the serialised key of an instance of a reader, as samples without data carry it; `None` if the instance is gone.
pub(super) fn key(reader: &Entity, instance: dds_instance_handle_t) -> Option<Vec<u8>> {
    let mut kind: *const ddsi_sertype = ptr::null();
    // SAFETY: a live handle and a place for the type, which lives as long as its reader.
    let kind = unsafe {
        (cyclors::dds_get_entity_sertype(reader.handle(), &mut kind) >= 0).then_some(kind.as_ref()).flatten()
    }?;
    // SAFETY: the operations of a type are constants of the library.
    let (operations, of_samples) = unsafe { (kind.ops.as_ref()?, kind.serdata_ops.as_ref()?) };
    let (from_sample, free) = (of_samples.from_sample?, operations.free_samples?);
    // As large as one sample in memory, and aligned for each type of a member.
    let mut sample = vec![0u64; (kind.sizeof_type as usize).div_ceil(size_of::<u64>()).max(1)];
    let mut address: *mut c_void = sample.as_mut_ptr().cast();
    // SAFETY: a live handle, and room for a sample of its type. The library fills in the key, with texts of its own, which
    // are freed below; the serialised sample is ours.
    unsafe {
        let found = cyclors::dds_instance_get_key(reader.handle(), instance, address) >= 0;
        let serialised = if found {
            from_sample(kind, cyclors::ddsi_serdata_kind_SDK_KEY, address)
        } else {
            ptr::null_mut()
        };
        let key = (!serialised.is_null()).then(|| {
            let mut part = ddsrt_iovec_t { iov_base: ptr::null_mut(), iov_len: 0 };
            let size = cyclors::ddsi_serdata_size(serialised) as usize;
            let reference = cyclors::ddsi_serdata_to_ser_ref(serialised, 0, size, &mut part);
            let bytes = std::slice::from_raw_parts(part.iov_base.cast::<u8>(), part.iov_len).to_vec();
            cyclors::ddsi_serdata_to_ser_unref(reference, &part);
            cyclors::ddsi_serdata_unref(serialised);
            bytes
        });
        if found {
            free(kind, &mut address, 1, cyclors::dds_free_op_t_DDS_FREE_CONTENTS);
        }
        key
    }
}
