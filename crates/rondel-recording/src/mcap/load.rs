//! Reads a section of an MCAP file, decompressed, and lists its messages in the order of their times.

use std::path::Path;

use super::chunk::{ChunkReader, LARGEST};
use super::index::Section;
use super::records::{HEAD, MESSAGE_HEAD, Records, op};
use super::ros1::{self, Connections};
use super::ulog::Subscriptions;
use crate::pieces::Pieces;
use crate::recording::RecordingError;

/// Marks a channel that is not read; [`UNKNOWN`] one that is not defined.
pub(super) const UNREAD: u32 = u32::MAX;
pub(super) const UNKNOWN: u32 = u32::MAX - 1;

/// The messages to read.
#[derive(Clone, Default)]
pub(super) struct Wanted {
    /// Position of the topic of each channel id, [`UNREAD`] or [`UNKNOWN`].
    pub(super) channels: Vec<u32>,
    /// The first and the last time of recording, in nanoseconds.
    pub(super) from: u64,
    pub(super) until: u64,
}

/// A message in a section.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) log_time: u64,
    /// Range of its payload.
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) topic: u32,
}

/// Records of a section and its messages to read; reused.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) records: Vec<u8>,
    pub(super) entries: Vec<Entry>,
}

/// A section that was read.
pub(super) struct Loaded {
    pub(super) buffers: Buffers,
    /// Reason why the rest of it cannot be read.
    pub(super) fault: Option<String>,
    /// Number of bytes read from the file.
    pub(super) bytes_read: u64,
}

/// The format of the records.
pub(super) enum Format {
    Mcap,
    /// A bag of ROS 1 with its connections.
    Ros1(Connections),
    /// A log of PX4 with its subscriptions.
    Ulog(Subscriptions),
}

/// Reads sections.
pub(super) struct Loader {
    file: Pieces,
    format: Format,
    pub(super) wanted: Wanted,
    chunks: ChunkReader,
    /// The last compressed chunk of a bag of ROS 1.
    raw: Vec<u8>,
    /// Buffers of finished sections.
    pub(super) spare: Vec<Buffers>,
}

impl Loader {
    /// Creates a loader that reads nothing until `wanted` is set.
    pub(super) fn new(file: Pieces, format: Format) -> Loader {
        let (wanted, chunks) = (Wanted::default(), ChunkReader::default());
        Loader { file, format, wanted, chunks, raw: Vec::new(), spare: Vec::new() }
    }

    /// Whether messages have a head with their sequence number and the time of publishing.
    #[inline]
    pub(super) fn has_heads(&self) -> bool {
        matches!(self.format, Format::Mcap)
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(super) fn size(&self) -> u64 {
        self.file.size()
    }

    /// Reads a section.
    pub(super) fn load(&mut self, section: &Section) -> Result<Loaded, RecordingError> {
        let Section { offset, length, is_chunk, is_cut, .. } = *section;
        let Buffers { mut records, mut entries } = self.spare.pop().unwrap_or_default();
        let before = self.file.bytes_read();
        entries.clear();
        let mut fault = None;
        if length > LARGEST {
            records.clear();
            fault = Some("a chunk is larger than 1 GiB".to_owned());
        } else if let Format::Ros1(_) = self.format {
            self.file.read(offset, length as usize, &mut self.raw)?;
            fault = ros1::decompress(&self.raw, is_cut, &mut records).err();
        } else if is_chunk {
            let (body, length) = (offset + HEAD as u64, length as usize - HEAD);
            let read = self.chunks.read(&mut self.file, body, length, is_cut, &mut records)?;
            fault = read.err().map(|fault| fault.0);
        } else {
            self.file.read(offset, length as usize, &mut records)?;
        }
        let found = match &self.format {
            Format::Mcap => self.wanted.list(&records, &mut entries),
            Format::Ros1(connections) => {
                self.wanted.list_ros1(&records, section.messages, connections, &mut entries)
            }
            Format::Ulog(subscriptions) => {
                self.wanted.list_ulog(&mut records, section.start, subscriptions, &mut entries)
            }
        };
        // The end of a file that is cut off is reported separately.
        let fault = fault.or(found).filter(|_| !is_cut);
        if !entries.is_sorted_by_key(|entry| entry.log_time) {
            entries.sort_by_key(|entry| entry.log_time);
        }
        let bytes_read = self.file.bytes_read() - before;
        Ok(Loaded { buffers: Buffers { records, entries }, fault, bytes_read })
    }
}

impl Wanted {
    /// Lists the messages to read among records; returns the fault of the rest.
    fn list(&self, records: &[u8], entries: &mut Vec<Entry>) -> Option<String> {
        let (mut unknown, mut first) = (0_u64, 0);
        for (at, kind, body) in Records::new(records) {
            let body = match body {
                Ok(body) => body,
                Err(reason) => {
                    return Some(format!("{reason}, {at} bytes after the beginning of its records"));
                }
            };
            if kind != op::MESSAGE {
                continue;
            }
            let Some((head, _)) = body.split_first_chunk::<MESSAGE_HEAD>() else {
                return Some(format!(
                    "a message is too short, {at} bytes after the beginning of its records"
                ));
            };
            let channel = u16::from_le_bytes([head[0], head[1]]);
            let topic = self.channels.get(channel as usize).copied().unwrap_or(UNKNOWN);
            if topic == UNREAD {
                continue;
            }
            if topic == UNKNOWN {
                unknown += 1;
                first = channel;
                continue;
            }
            let log_time = head[6..].first_chunk().copied().map_or(0, u64::from_le_bytes);
            if log_time >= self.from && log_time <= self.until {
                let start = at + HEAD + MESSAGE_HEAD;
                entries.push(Entry { log_time, start, end: at + HEAD + body.len(), topic });
            }
        }
        (unknown > 0)
            .then(|| format!("{unknown} messages are on channels that are not defined, such as {first}"))
    }
}
