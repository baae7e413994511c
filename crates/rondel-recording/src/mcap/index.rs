//! Index of an MCAP file: its sections and topics, from its summary or by a walk over its records.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::chunk::{ChunkHeader, Decompressor, LARGEST};
use super::records::{self, ChunkIndex, HEAD, MAGIC, MESSAGE_HEAD, Records, op};
use crate::pieces::Pieces;
use crate::recording::{End, RecordedSchema, RecordedTopic, RecordingError};

/// Size of the footer with its head, and of the magic at the end of a file.
const END: u64 = HEAD as u64 + 20 + 8;
/// Records outside of chunks are read in sections of this many bytes.
const STRETCH: u64 = 1 << 20;
/// Maximum size of the definition of a type, and of the index.
const LARGEST_DEFINITION: u64 = 64 << 20;
const LARGEST_INDEX: u64 = 1 << 30;
/// Maximum size of a recorder's notes.
const LARGEST_NOTES: u64 = 64 << 10;
/// Number of bytes read for the header of a chunk: names of compressions are short.
const CHUNK_HEAD: usize = 40 + 256;

/// A part of the file with messages.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// Offset of its first record.
    pub(super) offset: u64,
    /// Length with its head, or with those of all its records.
    pub(super) length: u64,
    /// Whether it is one chunk.
    pub(super) is_chunk: bool,
    /// Whether the file ends within it.
    pub(super) is_cut: bool,
    /// The first and the last time of recording, by the file.
    pub(super) start: u64,
    pub(super) end: u64,
    /// The ids of its channels, if known.
    pub(super) channels: Option<Vec<u16>>,
    /// Number of its messages, if the index has it.
    pub(super) messages: Option<u64>,
}

/// Contents of a file as far as known before its messages are read.
#[derive(Default)]
pub(super) struct Index {
    pub(super) sections: Vec<Section>,
    /// The topics, one for each channel.
    pub(super) topics: Vec<RecordedTopic>,
    /// Position of the topic of each channel.
    pub(super) of_channel: BTreeMap<u16, usize>,
    schemas: BTreeMap<u16, Arc<RecordedSchema>>,
    /// Channel and schema id of each channel defined before its schema.
    waiting: Vec<(u16, u16)>,
    /// Offsets of the unusable parts with reasons; the last may be the end of the file.
    pub(super) faults: Vec<(u64, String)>,
    /// Offset at which the file is cut off, and the reason.
    pub(super) cut: Option<(u64, String)>,
    /// Whether Rondel wrote the file.
    pub(super) is_own: bool,
    /// Notes written by Rondel at the end of the recording.
    pub(super) end: End,
}

/// A record in the file.
struct Head {
    kind: u8,
    length: u64,
}

impl Index {
    pub(super) fn read(file: &mut Pieces) -> Result<Index, RecordingError> {
        let start = file.at(0, 16)?.to_vec();
        if !start.starts_with(MAGIC) {
            return Err(RecordingError::Form { path: file.path().to_owned(), reason: no_mcap(&start) });
        }
        let mut index = Index::default();
        let chunks = match index.summary(file)? {
            Ok(chunks) => chunks,
            Err(fault) => {
                index = Index { faults: fault.into_iter().collect(), ..Index::default() };
                BTreeMap::new()
            }
        };
        let counted = index.topics.iter().any(|topic| topic.messages.is_some());
        let known = index.topics.len();
        index.walk(file, &chunks, !counted)?;
        index.find_channels(file)?;
        index.link();
        if counted {
            index.topics[known..].iter_mut().for_each(|topic| topic.messages = None);
        }
        Ok(index)
    }

    /// Reads the summary at the end of the file; returns the chunks of the index by their offsets. The inner error
    /// states why a summary cannot be used; none is not an error.
    #[allow(clippy::type_complexity)]
    fn summary(
        &mut self,
        file: &mut Pieces,
    ) -> Result<Result<BTreeMap<u64, ChunkIndex>, Option<(u64, String)>>, RecordingError> {
        let Some(footer) = file.size().checked_sub(END) else { return Ok(Err(None)) };
        let mut bytes = Vec::new();
        file.read(footer, END as usize, &mut bytes)?;
        if bytes.len() < END as usize || !bytes.ends_with(MAGIC) || bytes[0] != op::FOOTER {
            return Ok(Err(None));
        }
        let Some(start) = bytes[HEAD..].first_chunk().copied().map(u64::from_le_bytes) else {
            return Ok(Err(None));
        };
        if start == 0 {
            return Ok(Err(None));
        }
        let fault = |reason: &str| Ok(Err(Some((start, format!("the summary cannot be used: {reason}")))));
        if start < MAGIC.len() as u64 || start >= footer {
            return fault("it is said to begin outside of the file");
        }
        if footer - start > LARGEST_INDEX {
            return fault("it is larger than 1 GiB");
        }
        let saved = bytes[HEAD + 16..].first_chunk().copied().map_or(0, u32::from_le_bytes);
        let mut crc = crc32fast::Hasher::new();
        let mut summary = Vec::new();
        file.read(start, (footer - start) as usize, &mut summary)?;
        crc.update(&summary);
        crc.update(&bytes[..HEAD + 16]);
        if saved != 0 && crc.finalize() != saved {
            return fault("its checksum is wrong");
        }
        let mut chunks = BTreeMap::new();
        let mut counts = BTreeMap::new();
        for (at, kind, body) in Records::new(&summary) {
            let body = match body {
                Ok(body) => body,
                Err(reason) => return fault(&format!("{reason}, {at} bytes after its beginning")),
            };
            match kind {
                op::CHUNK_INDEX => match records::chunk_index(body) {
                    Some(chunk) => drop(chunks.insert(chunk.offset, chunk)),
                    None => return fault("a record of it cannot be read"),
                },
                op::STATISTICS => counts = records::statistics(body).unwrap_or_default(),
                op::SCHEMA | op::CHANNEL => self.define(start + at as u64, kind, body),
                _ => {}
            }
        }
        self.link();
        for (channel, topic) in &self.of_channel {
            // A channel without messages is not counted.
            self.topics[*topic].messages =
                (!counts.is_empty()).then(|| counts.get(channel).copied().unwrap_or(0));
        }
        Ok(Ok(chunks))
    }

    /// Finds the sections: skips the chunks of the index, and reads the heads of all other records.
    fn walk(
        &mut self,
        file: &mut Pieces,
        chunks: &BTreeMap<u64, ChunkIndex>,
        counts: bool,
    ) -> Result<(), RecordingError> {
        let mut at = MAGIC.len() as u64;
        let mut channels = Vec::new();
        let mut loose: Option<Section> = None;
        loop {
            if let Some(chunk) = chunks.get(&at)
                && let Some(end) = chunk.length.checked_add(at).filter(|end| *end <= file.size())
                && let Some(next) = end.checked_add(chunk.index_length).filter(|end| *end <= file.size())
                && chunk.length > HEAD as u64
            {
                self.sections.extend(loose.take());
                self.sections.push(Section {
                    offset: at,
                    length: chunk.length,
                    is_chunk: true,
                    is_cut: false,
                    start: chunk.start,
                    end: chunk.end,
                    channels: (!chunk.channels.is_empty()).then(|| chunk.channels.clone()),
                    messages: None,
                });
                at = next;
                continue;
            }
            let head = match head(file, at)? {
                Ok(head) => head,
                Err(reason) => {
                    self.cut = Some((at, reason));
                    break;
                }
            };
            let (length, body) = (HEAD as u64 + head.length, at + HEAD as u64);
            let Some(end) = at.checked_add(length).filter(|end| *end <= file.size()) else {
                let length = file.size() - at;
                let claimed = HEAD as u64 + head.length;
                let reason = format!("the record at byte {at} claims {claimed} bytes, and {length} follow");
                self.cut = Some((file.size(), reason));
                if head.kind == op::CHUNK {
                    self.sections.extend(loose.take());
                    if let Some(found) = ChunkHeader::read(file.at(body, CHUNK_HEAD)?) {
                        // These are the times of a chunk that may be unfinished.
                        let start = found.start;
                        self.sections.push(Section {
                            offset: at,
                            length,
                            is_chunk: true,
                            is_cut: true,
                            start,
                            end: u64::MAX,
                            channels: None,
                            messages: None,
                        });
                    }
                }
                break;
            };
            match head.kind {
                op::CHUNK => {
                    self.sections.extend(loose.take());
                    match ChunkHeader::read(file.at(body, CHUNK_HEAD.min(head.length as usize))?) {
                        Some(found) => self.sections.push(Section {
                            offset: at,
                            length,
                            is_chunk: true,
                            is_cut: false,
                            start: found.start,
                            end: found.end,
                            channels: None,
                            messages: None,
                        }),
                        None => self.faults.push((at, "the header of a chunk cannot be read".to_owned())),
                    }
                }
                op::MESSAGE_INDEX => {
                    let id = file.at(body, 2)?.first_chunk().copied().map(u16::from_le_bytes);
                    if let (Some(id), Some(section)) = (id, self.sections.last_mut()) {
                        let ids = section.channels.get_or_insert_default();
                        if head.length > 6 && !ids.contains(&id) {
                            ids.push(id);
                        }
                        if counts {
                            channels.push((id, head.length.saturating_sub(6) / 16));
                        }
                    }
                }
                op::SCHEMA | op::CHANNEL if head.length <= LARGEST_DEFINITION => {
                    let record = file.at(body, head.length as usize)?.to_vec();
                    self.define(at, head.kind, &record);
                }
                op::SCHEMA | op::CHANNEL => {
                    self.faults.push((at, "a definition is larger than 64 MiB".to_owned()));
                }
                op::HEADER if head.length <= LARGEST_NOTES => {
                    let library = records::library(file.at(body, head.length as usize)?);
                    self.is_own = library.is_some_and(|library| library.starts_with("rondel "));
                }
                op::METADATA if head.length <= LARGEST_NOTES => {
                    let record = file.at(body, head.length as usize)?;
                    if let Some((name, notes)) = records::metadata(record)
                        && name == "rondel"
                    {
                        self.end = End::of_notes(&notes);
                    }
                }
                op::MESSAGE if head.length > LARGEST => {
                    self.faults.push((at, "a message is larger than 1 GiB".to_owned()));
                    self.sections.extend(loose.take());
                }
                op::MESSAGE => {
                    let record = file.at(body, MESSAGE_HEAD.min(head.length as usize))?;
                    let id = record.first_chunk().copied().map_or(0, u16::from_le_bytes);
                    let time = record
                        .get(6..)
                        .and_then(|time| time.first_chunk().copied())
                        .map_or(0, u64::from_le_bytes);
                    let section = match loose.take() {
                        Some(section)
                            if section.offset + section.length == at && section.length < STRETCH =>
                        {
                            Some(section)
                        }
                        other => {
                            self.sections.extend(other);
                            None
                        }
                    };
                    let mut section = section.unwrap_or(Section {
                        offset: at,
                        length: 0,
                        is_chunk: false,
                        is_cut: false,
                        start: time,
                        end: time,
                        channels: Some(Vec::new()),
                        messages: None,
                    });
                    section.length += length;
                    (section.start, section.end) = (section.start.min(time), section.end.max(time));
                    if let Some(ids) = section.channels.as_mut().filter(|ids| !ids.contains(&id)) {
                        ids.push(id);
                    }
                    loose = Some(section);
                    if counts {
                        channels.push((id, 1));
                    }
                }
                op::DATA_END | op::FOOTER => {
                    let last = file.at(file.size() - MAGIC.len() as u64, MAGIC.len())?;
                    if last != MAGIC {
                        self.cut =
                            Some((end, "the end of the file is missing; all messages are before".to_owned()));
                    }
                    break;
                }
                0 => {
                    self.cut = Some((at, "what follows is no record".to_owned()));
                    break;
                }
                _ => {}
            }
            at = end;
            if channels.len() > 1024 {
                self.count(&mut channels);
            }
        }
        self.sections.extend(loose);
        self.count(&mut channels);
        Ok(())
    }

    /// Adds the message counts of channels.
    fn count(&mut self, channels: &mut Vec<(u16, u64)>) {
        for (channel, messages) in channels.drain(..) {
            if let Some(topic) = self.of_channel.get(&channel) {
                *self.topics[*topic].messages.get_or_insert(0) += messages;
            }
        }
    }

    /// Finds the channels that are defined only inside chunks.
    fn find_channels(&mut self, file: &mut Pieces) -> Result<(), RecordingError> {
        let (mut raw, mut records) = (Vec::new(), Vec::new());
        let mut decompressor = Decompressor::default();
        for i in 0..self.sections.len() {
            let Section { offset, length, is_chunk, is_cut, .. } = self.sections[i];
            let ids = &self.sections[i].channels;
            let is_known =
                ids.as_ref().is_some_and(|ids| ids.iter().all(|id| self.of_channel.contains_key(id)));
            if !is_chunk || is_known || length > LARGEST {
                continue;
            }
            file.read(offset + HEAD as u64, length as usize - HEAD, &mut raw)?;
            // Faults are reported when the messages are read.
            let _ = decompressor.records(&raw, is_cut, &mut records);
            for (_, kind, body) in Records::new(&records) {
                if let (op::SCHEMA | op::CHANNEL, Ok(body)) = (kind, body) {
                    self.define(offset, kind, body);
                }
            }
        }
        Ok(())
    }

    /// Adds a type or a channel.
    fn define(&mut self, offset: u64, kind: u8, body: &[u8]) {
        let fault = if kind == op::SCHEMA { self.define_type(body) } else { self.define_channel(body) };
        self.faults.extend(fault.err().map(|reason| (offset, reason)));
    }

    fn define_type(&mut self, body: &[u8]) -> Result<(), String> {
        let (id, schema) = records::schema(body).ok_or("the definition of a type cannot be read")?;
        let known = self.schemas.entry(id).or_insert_with(|| Arc::new(schema.clone()));
        if **known == schema {
            return Ok(());
        }
        Err(format!("type {id} is defined twice, in different ways; the first counts"))
    }

    fn define_channel(&mut self, body: &[u8]) -> Result<(), String> {
        let (id, schema, topic) =
            records::channel(body).ok_or("the definition of a channel cannot be read")?;
        match self.of_channel.get(&id).map(|at| &self.topics[*at]) {
            None => {
                self.of_channel.insert(id, self.topics.len());
                if schema != 0 {
                    self.waiting.push((id, schema));
                }
                self.topics.push(topic);
                Ok(())
            }
            Some(known) if (&known.name, &known.encoding) == (&topic.name, &topic.encoding) => Ok(()),
            Some(known) => {
                let (name, other) = (&known.name, &topic.name);
                Err(format!("channel {id} is defined twice, for {name} and {other}; the first counts"))
            }
        }
    }

    /// Assigns the types to their channels.
    fn link(&mut self) {
        let Index { waiting, schemas, topics, of_channel, .. } = self;
        waiting.retain(|(channel, schema)| {
            let (Some(schema), Some(topic)) = (schemas.get(schema), of_channel.get(channel)) else {
                return true;
            };
            topics[*topic].schema = Some(Arc::clone(schema));
            false
        });
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

/// Returns the reason why a file with these first bytes is no MCAP file.
fn no_mcap(start: &[u8]) -> String {
    match crate::open::foreign(start) {
        Some(found) => format!("this is no MCAP file, but {found}"),
        None if start.is_empty() => "this is no MCAP file: it is empty".to_owned(),
        None if MAGIC.starts_with(start) => format!("this MCAP file is cut off after {} bytes", start.len()),
        None => "this is no MCAP file: it begins differently".to_owned(),
    }
}
