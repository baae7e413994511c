//! Samples taken from a reader.

use cyclors::{dds_sample_info_t, ddsi_serdata, ddsrt_iovec_t};

use super::entity::Entity;

/// Number of samples taken and delivered at a time.
pub(super) const BATCH: usize = 64;
/// Number of samples of several instances taken at a time.
const LARGEST: usize = 1 << 18;

/// Buffer of samples, reused for each take.
///
/// A reader keeps the samples of each instance separately and returns them instance by instance. If there may be
/// several, all samples of the cache are taken at once and sorted by their publication.
#[derive(Default)]
pub(super) struct SampleBuffer {
    data: Vec<*mut ddsi_serdata>,
    infos: Vec<dds_sample_info_t>,
    parts: Vec<ddsrt_iovec_t>,
    /// Order of publication, if it differs.
    order: Vec<u32>,
    size: usize,
    /// Whether there may be several instances, each with a key.
    has_keys: bool,
}

/// A function of the library that gets samples of a reader.
type Get = unsafe extern "C" fn(
    cyclors::dds_entity_t,
    *mut *mut ddsi_serdata,
    u32,
    *mut dds_sample_info_t,
    u32,
) -> cyclors::dds_return_t;

impl SampleBuffer {
    /// Creates a buffer for the samples of a reader with one instance, or for all samples in its cache if it has
    /// several.
    pub(super) fn new(has_keys: bool, cache: u32) -> SampleBuffer {
        let size = if has_keys { (cache as usize).clamp(BATCH, LARGEST) } else { BATCH };
        // The system does not back memory that was never written to.
        SampleBuffer {
            data: Vec::with_capacity(size),
            infos: Vec::with_capacity(size),
            parts: Vec::with_capacity(size),
            order: Vec::new(),
            size,
            has_keys,
        }
    }

    /// Takes samples; `None` if there are none.
    pub(super) fn take(&mut self, reader: &Entity) -> Option<TakenSamples<'_>> {
        self.get(reader, cyclors::dds_takecdr, cyclors::DDS_ANY_STATE)
    }

    /// Like [`SampleBuffer::take`], but for samples neither taken nor read before, which can still be taken.
    pub(super) fn look(&mut self, reader: &Entity) -> Option<TakenSamples<'_>> {
        let states = cyclors::DDS_NOT_READ_SAMPLE_STATE
            | cyclors::DDS_ANY_VIEW_STATE
            | cyclors::DDS_ANY_INSTANCE_STATE;
        self.get(reader, cyclors::dds_readcdr, states)
    }

    /// Like [`SampleBuffer::take`], but for samples that stay in the cache as they are.
    pub(super) fn peek(&mut self, reader: &Entity) -> Option<TakenSamples<'_>> {
        self.get(reader, cyclors::dds_peekcdr, cyclors::DDS_ANY_STATE)
    }

    fn get(&mut self, reader: &Entity, get: Get, states: u32) -> Option<TakenSamples<'_>> {
        // SAFETY: a live handle, and room for the stated number of samples. The library leaves a
        // reference to each with us.
        let count = unsafe {
            get(reader.handle(), self.data.as_mut_ptr(), self.size as u32, self.infos.as_mut_ptr(), states)
        };
        let count = usize::try_from(count).ok().filter(|n| (1..=self.size).contains(n))?;
        // SAFETY: both have room for `size` elements, and the library has filled in `count`.
        unsafe {
            self.data.set_len(count);
            self.infos.set_len(count);
        }
        for (data, info) in self.data.iter().zip(&self.infos) {
            let mut part = ddsrt_iovec_t { iov_base: std::ptr::null_mut(), iov_len: 0 };
            // A sample without valid data has the key of its instance, unless the type is unknown.
            if info.valid_data || self.has_keys {
                // SAFETY: `data` is a live sample; the library fills in where its bytes are. They do not move until
                // `dds_serdata_to_ser_unref`.
                unsafe {
                    let size = cyclors::ddsi_serdata_size(*data) as usize;
                    cyclors::ddsi_serdata_to_ser_ref(*data, 0, size, &mut part);
                }
            }
            self.parts.push(part);
        }
        let is_earlier = |pair: &[dds_sample_info_t]| pair[1].source_timestamp < pair[0].source_timestamp;
        if self.has_keys && self.infos.windows(2).any(is_earlier) {
            self.order.extend(0..count as u32);
            let infos = &self.infos;
            self.order.sort_by_key(|i| infos[*i as usize].source_timestamp);
        }
        Some(TakenSamples { buffer: self })
    }
}

/// Samples taken from a reader, still serialised; dropping returns them to the library.
pub(super) struct TakenSamples<'a> {
    buffer: &'a mut SampleBuffer,
}

impl TakenSamples<'_> {
    /// Returns the number of samples, including those without a payload.
    pub(super) fn count(&self) -> usize {
        self.buffer.data.len()
    }

    /// Returns the samples of each publisher in the order of publication.
    #[inline]
    pub(super) fn samples(&self) -> impl Iterator<Item = (&[u8], &dds_sample_info_t)> {
        let SampleBuffer { order, parts, infos, .. } = &*self.buffer;
        (0..parts.len()).map(|i| {
            let i = if order.is_empty() { i } else { order[i] as usize };
            let part = &parts[i];
            let bytes = if part.iov_base.is_null() {
                &[]
            } else {
                // SAFETY: filled in by the library, valid until `drop`, and never written to: samples
                // are state and immutable.
                unsafe { std::slice::from_raw_parts(part.iov_base.cast::<u8>(), part.iov_len) }
            };
            (bytes, &infos[i])
        })
    }
}

impl Drop for TakenSamples<'_> {
    fn drop(&mut self) {
        for (data, part) in self.buffer.data.iter().zip(&self.buffer.parts) {
            // SAFETY: every reference from `take` is released once: the one to the bytes, if there are any, and the one
            // to the sample.
            unsafe {
                if !part.iov_base.is_null() {
                    cyclors::ddsi_serdata_to_ser_unref(*data, part);
                }
                cyclors::ddsi_serdata_unref(*data);
            }
        }
        self.buffer.data.clear();
        self.buffer.infos.clear();
        self.buffer.parts.clear();
        self.buffer.order.clear();
    }
}
