//! A writer of CDR: little endian, first version, as ROS 2 writes it.

use rondel_event::Timestamp;

/// The encapsulation: plain CDR, little endian, no options.
const HEADER: [u8; 4] = [0, 1, 0, 0];

/// Writes the members of a message one after the other.
pub(super) struct CdrWriter<'b> {
    out: &'b mut Vec<u8>,
}

impl<'b> CdrWriter<'b> {
    /// Begins a message; the buffer is cleared.
    pub(super) fn new(out: &'b mut Vec<u8>) -> CdrWriter<'b> {
        out.clear();
        out.extend_from_slice(&HEADER);
        CdrWriter { out }
    }

    /// Pads to a multiple of `size` after the header.
    fn align(&mut self, size: usize) {
        let body = self.out.len() - HEADER.len();
        self.out.resize(HEADER.len() + body.next_multiple_of(size), 0);
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.align(4);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn i64(&mut self, value: i64) {
        self.align(8);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn f64(&mut self, value: f64) {
        self.align(8);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes text up to its first NUL, which ends a string in CDR.
    pub(super) fn string(&mut self, text: &str) {
        let text = text.split('\0').next().unwrap_or_default();
        self.u32(text.len() as u32 + 1);
        self.out.extend_from_slice(text.as_bytes());
        self.out.push(0);
    }

    pub(super) fn time(&mut self, time: Timestamp) {
        let (seconds, nanos) = super::parts(time);
        self.u32(seconds as u32);
        self.u32(nanos);
    }
}
