//! Walk over the heads of the records of an MCAP file, which finds the sections that its index lacks.

use std::collections::BTreeMap;

use super::super::chunk::{ChunkHeader, LARGEST};
use super::super::records::{self, ChunkIndex, HEAD, MAGIC, MESSAGE_HEAD, op};
use super::{Index, Section};
use crate::pieces::Pieces;
use crate::recording::{End, RecordingError};

/// Records outside of chunks are read in sections of this many bytes.
const STRETCH: u64 = 1 << 20;
/// Maximum size of the definition of a type.
const LARGEST_DEFINITION: u64 = 64 << 20;
/// Maximum size of a recorder's notes.
const LARGEST_NOTES: u64 = 64 << 10;
/// Number of bytes read for the header of a chunk: names of compressions are short.
const CHUNK_HEAD: usize = 40 + 256;
/// Number of message counts that are added to the topics together.
const COUNTS: usize = 1024;

/// Head of a record in the file.
struct Head {
    kind: u8,
    length: u64,
}

/// State of a walk.
struct Walk<'i> {
    index: &'i mut Index,
    /// The section of the last records outside of chunks.
    loose: Option<Section>,
    /// Whether messages are counted.
    counts: bool,
    /// Message counts of channels that are not added to the topics yet.
    channels: Vec<(u16, u64)>,
}

impl Index {
    /// Finds the sections: skips the chunks of the index, and reads the heads of all other records.
    pub(super) fn walk(
        &mut self,
        file: &mut Pieces,
        chunks: &BTreeMap<u64, ChunkIndex>,
        counts: bool,
    ) -> Result<(), RecordingError> {
        let mut walk = Walk { index: self, loose: None, counts, channels: Vec::new() };
        let mut at = MAGIC.len() as u64;
        loop {
            if let Some(chunk) = chunks.get(&at)
                && let Some(end) = chunk.length.checked_add(at).filter(|end| *end <= file.size())
                && let Some(next) = end.checked_add(chunk.index_length).filter(|end| *end <= file.size())
                && chunk.length > HEAD as u64
            {
                let channels = (!chunk.channels.is_empty()).then(|| chunk.channels.clone());
                walk.add_chunk(Section {
                    channels,
                    ..Section::chunk(at, chunk.length, chunk.start, chunk.end)
                });
                at = next;
                continue;
            }
            let head = match head(file, at)? {
                Ok(head) => head,
                Err(reason) => {
                    walk.index.cut = Some((at, reason));
                    break;
                }
            };
            let length = HEAD as u64 + head.length;
            let Some(end) = at.checked_add(length).filter(|end| *end <= file.size()) else {
                walk.cut_record(file, at, &head)?;
                break;
            };
            if walk.record(file, at, &head)? {
                break;
            }
            at = end;
            if walk.channels.len() > COUNTS {
                walk.count();
            }
        }
        walk.end_loose();
        walk.count();
        Ok(())
    }
}

impl Walk<'_> {
    /// Ends the section of records outside of chunks.
    fn end_loose(&mut self) {
        self.index.sections.extend(self.loose.take());
    }

    /// Adds the section of a chunk.
    fn add_chunk(&mut self, section: Section) {
        self.end_loose();
        self.index.sections.push(section);
    }

    /// Reports the record at which the file ends, and adds its section if it is a chunk.
    fn cut_record(&mut self, file: &mut Pieces, at: u64, head: &Head) -> Result<(), RecordingError> {
        let length = file.size() - at;
        let claimed = HEAD as u64 + head.length;
        let reason = format!("the record at byte {at} claims {claimed} bytes, and {length} follow");
        self.index.cut = Some((file.size(), reason));
        if head.kind == op::CHUNK {
            self.end_loose();
            if let Some(found) = ChunkHeader::read(file.at(at + HEAD as u64, CHUNK_HEAD)?) {
                // These are the times of a chunk that may be unfinished.
                let section = Section::chunk(at, length, found.start, u64::MAX);
                self.index.sections.push(Section { is_cut: true, ..section });
            }
        }
        Ok(())
    }

    /// Reads a record; returns whether the walk ends with it.
    fn record(&mut self, file: &mut Pieces, at: u64, head: &Head) -> Result<bool, RecordingError> {
        let body = at + HEAD as u64;
        match head.kind {
            op::CHUNK => self.chunk(file, at, head)?,
            op::MESSAGE_INDEX => self.message_index(file, at, head)?,
            op::SCHEMA | op::CHANNEL if head.length <= LARGEST_DEFINITION => {
                let record = file.at(body, head.length as usize)?.to_vec();
                self.index.define(at, head.kind, &record);
            }
            op::SCHEMA | op::CHANNEL => {
                self.index.faults.push((at, "a definition is larger than 64 MiB".to_owned()));
            }
            op::HEADER if head.length <= LARGEST_NOTES => {
                let library = records::library(file.at(body, head.length as usize)?);
                self.index.is_own = library.is_some_and(|library| library.starts_with("rondel "));
            }
            op::METADATA if head.length <= LARGEST_NOTES => {
                let record = file.at(body, head.length as usize)?;
                if let Some((name, notes)) = records::metadata(record)
                    && name == "rondel"
                {
                    self.index.end = End::of_notes(&notes);
                }
            }
            op::MESSAGE if head.length > LARGEST => {
                self.index.faults.push((at, "a message is larger than 1 GiB".to_owned()));
                self.end_loose();
            }
            op::MESSAGE => self.message(file, at, head)?,
            op::DATA_END | op::FOOTER => {
                let last = file.at(file.size() - MAGIC.len() as u64, MAGIC.len())?;
                if last != MAGIC {
                    let reason = "the end of the file is missing; all messages are before".to_owned();
                    self.index.cut = Some((body + head.length, reason));
                }
                return Ok(true);
            }
            0 => {
                self.index.cut = Some((at, "what follows is no record".to_owned()));
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    }

    /// Adds the section of a chunk that the index lacks.
    fn chunk(&mut self, file: &mut Pieces, at: u64, head: &Head) -> Result<(), RecordingError> {
        self.end_loose();
        let length = HEAD as u64 + head.length;
        match ChunkHeader::read(file.at(at + HEAD as u64, CHUNK_HEAD.min(head.length as usize))?) {
            Some(found) => self.index.sections.push(Section::chunk(at, length, found.start, found.end)),
            None => self.index.faults.push((at, "the header of a chunk cannot be read".to_owned())),
        }
        Ok(())
    }

    /// Adds a channel to the chunk before, and the number of its messages there.
    fn message_index(&mut self, file: &mut Pieces, at: u64, head: &Head) -> Result<(), RecordingError> {
        let id = file.at(at + HEAD as u64, 2)?.first_chunk().copied().map(u16::from_le_bytes);
        if let (Some(id), Some(section)) = (id, self.index.sections.last_mut()) {
            let ids = section.channels.get_or_insert_default();
            if head.length > 6 && !ids.contains(&id) {
                ids.push(id);
            }
            if self.counts {
                self.channels.push((id, head.length.saturating_sub(6) / 16));
            }
        }
        Ok(())
    }

    /// Adds a message outside of chunks to the section of those before it, or to a new one.
    fn message(&mut self, file: &mut Pieces, at: u64, head: &Head) -> Result<(), RecordingError> {
        let record = file.at(at + HEAD as u64, MESSAGE_HEAD.min(head.length as usize))?;
        let id = record.first_chunk().copied().map_or(0, u16::from_le_bytes);
        let time = record.get(6..).and_then(|time| time.first_chunk().copied()).map_or(0, u64::from_le_bytes);
        if self
            .loose
            .as_ref()
            .is_some_and(|section| section.offset + section.length != at || section.length >= STRETCH)
        {
            self.end_loose();
        }
        let section = self.loose.get_or_insert_with(|| Section {
            offset: at,
            length: 0,
            is_chunk: false,
            is_cut: false,
            start: time,
            end: time,
            channels: Some(Vec::new()),
            messages: None,
        });
        section.length += HEAD as u64 + head.length;
        (section.start, section.end) = (section.start.min(time), section.end.max(time));
        if let Some(ids) = section.channels.as_mut().filter(|ids| !ids.contains(&id)) {
            ids.push(id);
        }
        if self.counts {
            self.channels.push((id, 1));
        }
        Ok(())
    }

    /// Adds the message counts of channels to their topics.
    fn count(&mut self) {
        for (channel, messages) in self.channels.drain(..) {
            if let Some(topic) = self.index.of_channel.get(&channel) {
                *self.index.topics[*topic].messages.get_or_insert(0) += messages;
            }
        }
    }
}

impl Section {
    /// Returns the section of a complete chunk with unknown channels.
    fn chunk(offset: u64, length: u64, start: u64, end: u64) -> Section {
        Section { offset, length, is_chunk: true, is_cut: false, start, end, channels: None, messages: None }
    }
}

/// Returns the head of the record at an offset, or the reason why there is none.
fn head(file: &mut Pieces, at: u64) -> Result<Result<Head, String>, RecordingError> {
    let bytes = file.at(at, HEAD)?;
    Ok(match bytes.split_first() {
        Some((kind, length)) => match length.first_chunk() {
            Some(length) => {
                let length = u64::from_le_bytes(*length);
                // No record of any file is longer.
                if length > u64::MAX >> 1 {
                    Err("what follows is no record".to_owned())
                } else {
                    Ok(Head { kind: *kind, length })
                }
            }
            None => Err("a record begins there, and the file ends".to_owned()),
        },
        None => Err("the file ends without a footer".to_owned()),
    })
}
