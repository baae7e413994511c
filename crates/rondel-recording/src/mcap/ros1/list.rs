//! The messages in a chunk of a bag of ROS 1.

use super::super::load::{Entry, UNKNOWN, UNREAD, Wanted};
use super::Connections;
use super::records::{Records, connection_id, field, kind, op, time, u32_at};

/// Maximum length of a message header that is compared as a whole, in words of eight bytes.
const WORDS: usize = 8;

/// Header of the previous message as words: most headers differ only in connection and time.
struct Shape {
    /// For each word the mask of the bits that must agree, and these bits; the last word ends with the header.
    words: [(u64, u64); WORDS],
    length: usize,
    /// Offsets of the values of connection and time.
    connection: usize,
    time: usize,
}

impl Shape {
    /// Returns the shape of a message header.
    fn of(header: &[u8]) -> Option<Shape> {
        let place = |name: &str, size: usize| {
            let value = field(header, name).filter(|value| value.len() == size)?;
            Some(value.as_ptr() as usize - header.as_ptr() as usize)
        };
        let (connection, time) = (place("conn", 4)?, place("time", 8)?);
        if header.len() > 8 * WORDS {
            return None;
        }
        let mut mask = vec![0xff_u8; header.len()];
        mask[connection..connection + 4].fill(0);
        mask[time..time + 8].fill(0);
        let mut shape = Shape { words: [(0, 0); WORDS], length: header.len(), connection, time };
        for i in 0..header.len().div_ceil(8) {
            let mask = shape.word(&mask, i)?;
            shape.words[i] = (shape.word(header, i)? & mask, mask);
        }
        Some(shape)
    }

    /// Returns a word of a header.
    #[inline]
    fn word(&self, header: &[u8], i: usize) -> Option<u64> {
        let at = (8 * i).min(self.length.checked_sub(8)?);
        Some(u64::from_le_bytes(*header.get(at..)?.first_chunk()?))
    }

    /// Returns the connection and the time of a header of this shape.
    #[inline]
    fn read(&self, header: &[u8]) -> Option<(u32, u64)> {
        if header.len() != self.length {
            return None;
        }
        let mut differs = 0;
        for (i, (word, mask)) in self.words.iter().enumerate().take(self.length.div_ceil(8)) {
            differs |= self.word(header, i)? & mask ^ word;
        }
        if differs != 0 {
            return None;
        }
        Some((u32_at(header, self.connection)?, time(header.get(self.time..)?)?))
    }
}

impl Wanted {
    /// Lists the messages to read among the records of a chunk of a bag; `expected` is their number, if known. Returns
    /// the fault of the rest.
    pub(in super::super) fn list_ros1(
        &self,
        records: &[u8],
        expected: Option<u64>,
        connections: &Connections,
        entries: &mut Vec<Entry>,
    ) -> Option<String> {
        let (mut unknown, mut first, mut all) = (0_u64, 0, 0_u64);
        let mut shape: Option<Shape> = None;
        let mut at = 0;
        for record in (Records { bytes: records, at: 0 }) {
            let record = match record {
                Ok(record) => record,
                Err(reason) => {
                    return Some(format!("{reason}, {at} bytes after the beginning of its chunk"));
                }
            };
            at = record.end;
            let read = shape.as_ref().and_then(|shape| shape.read(record.header));
            let (id, log_time) = match read {
                Some(read) => read,
                None => {
                    match kind(record.header) {
                        Some(op::MESSAGE) => {}
                        Some(op::CONNECTION | op::INDEX) => continue,
                        _ => {
                            return Some(format!(
                                "an unknown record ends {at} bytes after the beginning of its chunk"
                            ));
                        }
                    }
                    shape = Shape::of(record.header);
                    let id = connection_id(record.header);
                    let Some(read) = id.zip(field(record.header, "time").and_then(time)) else {
                        return Some(format!(
                            "a message has no time, {at} bytes after the beginning of its chunk"
                        ));
                    };
                    read
                }
            };
            let channel = connections.get(id).map(usize::from);
            let topic = channel.and_then(|channel| self.channels.get(channel)).copied().unwrap_or(UNKNOWN);
            all += 1;
            if topic == UNREAD {
                continue;
            }
            if topic == UNKNOWN {
                (unknown, first) = (unknown + 1, id);
                continue;
            }
            if log_time >= self.from && log_time <= self.until {
                entries.push(Entry { log_time, start: record.data_at, end: record.end, topic });
            }
        }
        match expected {
            _ if unknown > 0 => {
                Some(format!("{unknown} messages are on connections that are not described, such as {first}"))
            }
            Some(expected) if expected != all => {
                Some(format!("a chunk has {all} messages, and {expected} by the index"))
            }
            _ => None,
        }
    }
}
