//! Published samples without acknowledgement.
//!
//! CycloneDDS only states whether all samples of a writer are acknowledged. But it releases its references to a sample
//! once that one is acknowledged, so an additional reference to each sample shows which ones are, and gives access to
//! their bytes without a copy. CycloneDDS keeps some references longer than necessary: a retransmission may be queued,
//! or a thread may be about to release them. So both are used: all samples are acknowledged if CycloneDDS says so,
//! otherwise those that it has released.
//!
//! If a reader is lost, the samples are released too: samples older than [`SILENT`] whose readers have all left were
//! not acknowledged. A reader that closes leaves at most younger ones.

use std::collections::VecDeque;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cyclors::{dds_instance_handle_t, ddsi_serdata, ddsrt_iovec_t};

use super::entity::Entity;
use super::published::Form;
use crate::adapter::now;
use rondel_decode::cdr;

/// Time in nanoseconds within which an existing reader acknowledges a sample.
const SILENT: i64 = 1_000_000_000;

/// An additional reference to a sample of the library.
#[derive(Debug)]
pub(super) struct SampleReference {
    data: *mut ddsi_serdata,
    /// Bytes of the sample.
    part: ddsrt_iovec_t,
}

// SAFETY: the library counts references atomically, and does not change the bytes of a sample.
unsafe impl Send for SampleReference {}

impl SampleReference {
    /// Creates a reference to this sample in addition to that of the caller.
    ///
    /// # Safety
    /// The sample is live, and the type that it belongs to outlives the reference.
    pub(super) unsafe fn new(data: *mut ddsi_serdata) -> SampleReference {
        let mut part = ddsrt_iovec_t { iov_base: std::ptr::null_mut(), iov_len: 0 };
        // SAFETY: a live sample; the library fills in where its bytes are, and counts the reference.
        let data = unsafe {
            let size = cyclors::ddsi_serdata_size(data) as usize;
            cyclors::ddsi_serdata_to_ser_ref(data, 0, size, &mut part)
        };
        SampleReference { data, part }
    }

    /// Whether the library has released its references.
    fn is_alone(&self) -> bool {
        // SAFETY: a live sample, whose counter is only used atomically; no reference to all of it is made.
        let count = unsafe { AtomicU32::from_ptr(&raw mut (*self.data).refc.v) };
        count.load(Ordering::Acquire) == 1
    }

    /// Returns the time since its publication, in nanoseconds.
    fn age(&self) -> i64 {
        // SAFETY: a live sample; its time is set before it is published.
        now().as_nanos() - unsafe { (*self.data).timestamp.v }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: filled in by the library, valid until `drop`, and never written to.
        unsafe { std::slice::from_raw_parts(self.part.iov_base.cast::<u8>(), self.part.iov_len) }
    }
}

impl Drop for SampleReference {
    fn drop(&mut self) {
        // SAFETY: releases the reference from `new`.
        unsafe { cyclors::ddsi_serdata_to_ser_unref(self.data, &self.part) };
    }
}

/// The unacknowledged samples of a writer.
#[derive(Debug)]
pub(super) struct Unacknowledged {
    samples: Mutex<Samples>,
    /// Whether the writer keeps samples after they are acknowledged.
    keeps: bool,
}

/// Samples in the order of publication, `lost` before `waiting`.
#[derive(Debug, Default)]
struct Samples {
    /// Samples that will not be acknowledged any more.
    lost: VecDeque<SampleReference>,
    waiting: VecDeque<SampleReference>,
    /// Readers that matched at the last look. A reader that returns has another handle.
    readers: Vec<dds_instance_handle_t>,
    /// Whether every reader was lost, and no other has matched since.
    is_abandoned: bool,
}

impl Unacknowledged {
    /// Creates an empty list.
    pub(super) fn new(keeps: bool) -> Unacknowledged {
        Unacknowledged { samples: Mutex::default(), keeps }
    }

    fn samples(&self) -> MutexGuard<'_, Samples> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a published sample.
    pub(super) fn add(&self, sample: SampleReference, writer: &Entity) {
        let mut samples = self.samples();
        samples.waiting.push_back(sample);
        if samples.pass_young() {
            samples.look(writer, self.keeps);
        }
    }

    /// Removes the samples acknowledged by now.
    fn look(&self, writer: &Entity) -> MutexGuard<'_, Samples> {
        let mut samples = self.samples();
        samples.look(writer, self.keeps);
        samples
    }

    /// Returns the number of samples.
    pub(super) fn count(&self, writer: &Entity) -> u64 {
        let samples = self.look(writer);
        (samples.lost.len() + samples.waiting.len()) as u64
    }

    /// Visits the payload of each sample.
    pub(super) fn visit(&self, writer: &Entity, form: Form, visit: &mut dyn FnMut(&[u8])) {
        let samples = self.look(writer);
        samples.lost.iter().chain(&samples.waiting).for_each(|sample| visit(payload(sample.bytes(), form)));
    }

    /// Removes the samples that will not be acknowledged any more, and visits their payloads.
    pub(super) fn take_lost(&self, writer: &Entity, form: Form, visit: &mut dyn FnMut(&[u8])) {
        let lost = std::mem::take(&mut self.look(writer).lost);
        lost.iter().for_each(|sample| visit(payload(sample.bytes(), form)));
    }
}

impl Samples {
    /// Removes young samples that the library has released. Returns whether the readers must be checked.
    #[inline]
    fn pass_young(&mut self) -> bool {
        while let Some(first) = self.waiting.front().filter(|_| !self.is_abandoned) {
            if !first.is_alone() {
                return false;
            }
            if first.age() >= SILENT {
                return true;
            }
            self.waiting.pop_front();
        }
        self.is_abandoned
    }

    /// Removes acknowledged samples, and sets aside those that will not be acknowledged any more.
    #[cold]
    fn look(&mut self, writer: &Entity, keeps: bool) {
        // Before the list of readers: a reader in that list has then acknowledged everything.
        let is_acknowledged = is_acknowledged(writer);
        let present = readers(writer);
        self.take(&present, is_acknowledged, keeps);
        self.readers = present;
    }

    fn take(&mut self, present: &[dds_instance_handle_t], is_acknowledged: bool, keeps: bool) {
        let is_left = !self.readers.is_empty() && !self.readers.iter().any(|one| present.contains(one));
        // Samples published after a lost one are lost, too.
        let is_old = self.waiting.front().is_some_and(|first| first.age() >= SILENT);
        let is_lost = self.is_abandoned && present.is_empty() || is_left && is_old;
        if is_lost && !keeps {
            self.lost.extend(self.waiting.drain(..));
            self.is_abandoned = present.is_empty();
            return;
        }
        self.is_abandoned = false;
        if is_acknowledged && (keeps || !present.is_empty() && !is_left) {
            self.waiting.clear();
        }
        while self.waiting.front().is_some_and(SampleReference::is_alone) {
            self.waiting.pop_front();
        }
    }
}

/// Whether all matching readers have acknowledged everything.
fn is_acknowledged(writer: &Entity) -> bool {
    // SAFETY: a live handle.
    unsafe { cyclors::dds_wait_for_acks(writer.handle(), 0) >= 0 }
}

/// Returns the matching readers.
fn readers(writer: &Entity) -> Vec<dds_instance_handle_t> {
    let mut readers = Vec::new();
    loop {
        let room = if readers.is_empty() { ptr::null_mut() } else { readers.as_mut_ptr() };
        // SAFETY: a live handle, and room for the stated number of handles, which may be none; their number is
        // returned.
        let count = unsafe { cyclors::dds_get_matched_subscriptions(writer.handle(), room, readers.len()) };
        let (count, length) = (usize::try_from(count).unwrap_or(0), readers.len());
        readers.resize(count, 0);
        if count <= length {
            return readers;
        }
    }
}

/// Returns the payload published as these bytes.
fn payload(bytes: &[u8], form: Form) -> &[u8] {
    match form {
        Form::Text => cdr::string(bytes).unwrap_or_default(),
        Form::FirstVersion | Form::SecondVersion => bytes,
    }
}
