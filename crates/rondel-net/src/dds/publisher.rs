use std::ptr;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use cyclors::{ddsi_sertype, ddsrt_iovec_t};

use super::domain::Domain;
use super::entity::{Entity, Qos, check, duration, message};
use super::{DeclareError, PublisherSettings, StringType, topic};
use crate::adapter::{self, PublishError};
use rondel_decode::cdr;

/// How long the library blocks before a blocked writer looks whether it should give up.
const BLOCK: Duration = Duration::from_millis(100);
const POLL: Duration = Duration::from_millis(2);
/// The classic encoding: every reader understands it.
const XCDR1: i16 = 0;

/// A publisher of strings on DDS. Dropping it withdraws it; samples not yet acknowledged are still
/// delivered for up to a second.
#[derive(Debug)]
pub struct Publisher {
    writer: Arc<Writer>,
}

#[derive(Debug)]
pub(super) struct Writer {
    /// The library's description of the topic's type. Valid as long as `topic`.
    serialised_type: *const ddsi_sertype,
    writer: Entity,
    _topic: Entity,
    /// Dropped last: see the order of the fields.
    domain: Arc<Domain>,
}

// SAFETY: handles may be used by any thread (see `Entity`). The type description is only read and
// counted by the library, which does so atomically; it lives as long as the topic, which lives as long
// as this.
unsafe impl Send for Writer {}
// SAFETY: as above: calls that write take the writer's lock inside the library.
unsafe impl Sync for Writer {}

impl Publisher {
    pub(super) fn create(
        domain: Arc<Domain>,
        name: &str,
        string_type: &StringType,
        settings: PublisherSettings,
    ) -> Result<Publisher, DeclareError> {
        let topic = topic::create(&domain, name, string_type)?;
        let qos = Qos::new().reliable(BLOCK, None).representations(&[XCDR1]).batching(settings.batching);
        // SAFETY: live handles, and qualities of service that outlive the call; no listener.
        let writer = unsafe {
            cyclors::dds_create_writer(domain.participant(), topic.handle(), qos.as_ptr(), ptr::null())
        };
        let writer = Entity::own(writer, "DDS writer")?;
        // A topic without a key has one instance. While nothing refers to it, as after every
        // acknowledgement, each sample would have the library make it anew and take it down again by a
        // thread of its own: a good part of what publishing costs. A registered one stays.
        let (mut instance, no_text) = (0, c"".as_ptr());
        // SAFETY: a live handle, a place for the number, and a sample as the type describes it: a
        // structure with one pointer to terminated text. The call copies what it needs.
        let code = unsafe {
            cyclors::dds_register_instance(writer.handle(), &mut instance, (&raw const no_text).cast())
        };
        check(code, "DDS instance")?;
        let mut serialised_type = ptr::null();
        // SAFETY: a live handle and a place for a pointer.
        let code = unsafe { cyclors::dds_get_entity_sertype(writer.handle(), &mut serialised_type) };
        check(code, "DDS type")?;
        Ok(Publisher { writer: Arc::new(Writer { serialised_type, writer, _topic: topic, domain }) })
    }

    pub(super) fn writer(&self) -> Weak<Writer> {
        Arc::downgrade(&self.writer)
    }
}

impl Writer {
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        let header = cdr::header(payload).map_err(PublishError::Payload)?;
        let tail = &[0; 4][..1 + cdr::padding(payload.len())];
        let part =
            |bytes: &[u8]| ddsrt_iovec_t { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let parts = [part(&header), part(payload), part(tail)];
        let size = header.len() + payload.len() + tail.len();
        loop {
            if self.domain.is_closing() {
                return Err(PublishError::Closed);
            }
            // SAFETY: the type is valid as long as `self`; the parts are valid for the call, which
            // copies from them `size` bytes, their sum, and does not write to them.
            let data = unsafe {
                cyclors::ddsi_serdata_from_ser_iov(
                    self.serialised_type,
                    cyclors::ddsi_serdata_kind_SDK_DATA,
                    parts.len(),
                    parts.as_ptr(),
                    size,
                )
            };
            if data.is_null() {
                return Err(PublishError::Payload("the library does not take it as a string"));
            }
            // SAFETY: a live handle; `data` is our only reference, and the call takes it over whatever
            // it returns.
            match unsafe { cyclors::dds_writecdr(self.writer.handle(), data) } {
                // Nothing was written: the readers have not acknowledged enough yet.
                cyclors::DDS_RETCODE_TIMEOUT => {}
                code if code < 0 => return Err(PublishError::Network(message(code))),
                _ => return Ok(()),
            }
        }
    }

    fn release(&self) {
        // SAFETY: a live handle. It fails only for one that is not.
        unsafe { cyclors::dds_write_flush(self.writer.handle()) };
    }

    pub(super) fn flush(&self, limit: Duration) -> bool {
        self.release();
        // SAFETY: a live handle.
        unsafe { cyclors::dds_wait_for_acks(self.writer.handle(), duration(limit)) >= 0 }
    }

    fn is_matched(&self) -> bool {
        // SAFETY: plain numbers, for which all zero is a value.
        let mut status: cyclors::dds_publication_matched_status_t = unsafe { std::mem::zeroed() };
        // SAFETY: a live handle and a place for the status.
        let code = unsafe { cyclors::dds_get_publication_matched_status(self.writer.handle(), &mut status) };
        code >= 0 && status.current_count > 0
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.release();
    }
}

impl adapter::Publisher for Publisher {
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        self.writer.publish(payload)
    }

    fn release(&self) {
        self.writer.release();
    }

    fn is_matched(&self) -> bool {
        self.writer.is_matched()
    }

    fn wait_matched(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            if self.is_matched() {
                return true;
            }
            if Instant::now() >= deadline || self.writer.domain.is_closing() {
                return false;
            }
            std::thread::sleep(POLL);
        }
    }

    fn flush(&self, limit: Duration) -> bool {
        self.writer.flush(limit)
    }
}
