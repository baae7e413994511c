//! Index of an MCAP file: its sections and topics, from its summary or by a walk over its records.

mod walk;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::chunk::{ChunkReader, LARGEST};
use super::records::{self, ChunkIndex, HEAD, MAGIC, Records, op};
use crate::pieces::Pieces;
use crate::recording::{End, RecordedSchema, RecordedTopic, RecordingError};

/// Size of the footer with its head, and of the magic at the end of a file.
const END: u64 = HEAD as u64 + 20 + 8;
/// Maximum size of the index.
const LARGEST_INDEX: u64 = 1 << 30;

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

    /// Finds the channels that are defined only inside chunks.
    fn find_channels(&mut self, file: &mut Pieces) -> Result<(), RecordingError> {
        let mut records = Vec::new();
        let mut chunks = ChunkReader::default();
        for i in 0..self.sections.len() {
            let Section { offset, length, is_chunk, is_cut, .. } = self.sections[i];
            let ids = &self.sections[i].channels;
            let is_known =
                ids.as_ref().is_some_and(|ids| ids.iter().all(|id| self.of_channel.contains_key(id)));
            if !is_chunk || is_known || length > LARGEST {
                continue;
            }
            // Faults are reported when the messages are read.
            let _ = chunks.read(file, offset + HEAD as u64, length as usize - HEAD, is_cut, &mut records)?;
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

/// Returns the reason why a file with these first bytes is no MCAP file.
fn no_mcap(start: &[u8]) -> String {
    match crate::open::foreign(start) {
        Some(found) => format!("this is no MCAP file, but {found}"),
        None if start.is_empty() => "this is no MCAP file: it is empty".to_owned(),
        None if MAGIC.starts_with(start) => format!("this MCAP file is cut off after {} bytes", start.len()),
        None => "this is no MCAP file: it begins differently".to_owned(),
    }
}
