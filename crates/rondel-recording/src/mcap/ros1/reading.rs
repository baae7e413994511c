//! The sections and topics of a bag of ROS 1, from its index or from all of its records.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::chunk::LARGEST;
use super::super::index::{Index, Section};
use super::records::{Record, Records, connection_id, field, kind, op, text, time, u32_at, u64_of};
use super::{Connections, ROS1_MAGIC, VERSION, decompress};
use crate::pieces::Pieces;
use crate::recording::{RecordedSchema, RecordedTopic, RecordingError};

/// Maximum size of a record's header, and of the definition of a connection.
const LARGEST_HEADER: u32 = 1 << 20;
const LARGEST_DEFINITION: u64 = 64 << 20;
/// Maximum size of the index of a bag.
const LARGEST_INDEX: u64 = 1 << 30;
/// Quality of service of publishers that latch their last message, as recorders of ROS 2 note it.
const LATCHED: &str =
    "- history: keep_last\n  depth: 1\n  reliability: reliable\n  durability: transient_local\n";

/// Returns the id and the topic of a connection record.
fn topic(record: &Record<'_>) -> Option<(u32, RecordedTopic)> {
    let id = connection_id(record.header)?;
    let own = |name| field(record.data, name).map(text);
    let name = field(record.header, "topic").map(text).or_else(|| own("topic"))?;
    let schema = RecordedSchema {
        name: own("type").unwrap_or_default(),
        encoding: "ros1msg".to_owned(),
        data: field(record.data, "message_definition").unwrap_or_default().to_vec(),
    };
    let mut metadata: Vec<(String, String)> = ["callerid", "md5sum", "latching"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), own(name)?)))
        .collect();
    if field(record.data, "latching") == Some(b"1") {
        metadata.push(("offered_qos_profiles".to_owned(), LATCHED.to_owned()));
    }
    let topic = RecordedTopic {
        name,
        encoding: "ros1".to_owned(),
        schema: Some(Arc::new(schema)),
        metadata,
        ..RecordedTopic::default()
    };
    Some((id, topic))
}

/// Head of a record in the file: its header, and offset and length of its data.
struct Head {
    header: Vec<u8>,
    data_at: u64,
    length: u64,
}

impl Head {
    fn end(&self) -> u64 {
        self.data_at + self.length
    }
}

/// Reads the head of the record at an offset, or returns the reason why there is none.
fn head(file: &mut Pieces, at: u64) -> Result<Result<Head, String>, RecordingError> {
    let Some(length) = u32_at(file.at(at, 4)?, 0) else {
        return Ok(Err("a record begins there, and the file ends".to_owned()));
    };
    if length > LARGEST_HEADER {
        return Ok(Err("what follows is no record".to_owned()));
    }
    let bytes = file.at(at + 4, length as usize + 4)?;
    let Some(data) = u32_at(bytes, length as usize) else {
        return Ok(Err("the header of a record is cut off".to_owned()));
    };
    let header = bytes[..length as usize].to_vec();
    if kind(&header).is_none() {
        return Ok(Err("what follows is no record".to_owned()));
    }
    Ok(Ok(Head { header, data_at: at + 8 + u64::from(length), length: data.into() }))
}

/// Finds the sections and topics of a bag.
pub(in super::super) fn index(file: &mut Pieces) -> Result<(Index, Connections), RecordingError> {
    let start = file.at(0, 64)?.to_vec();
    let refused =
        |file: &Pieces, reason: String| RecordingError::Form { path: file.path().to_owned(), reason };
    if !start.starts_with(VERSION) {
        let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let reason = match start.starts_with(ROS1_MAGIC) {
            true => format!(
                "this bag of ROS 1 has the format {}, and 2.0 is read: `rosbag fix` converts it",
                text(&line[ROS1_MAGIC.len() - 1..])
            ),
            false if VERSION.starts_with(&start) => {
                format!("this bag of ROS 1 is cut off after {} bytes", start.len())
            }
            false => "this is no bag of ROS 1: it begins differently".to_owned(),
        };
        return Err(refused(file, reason));
    }
    let mut reading = Reading::default();
    let first = head(file, VERSION.len() as u64)?;
    let bag = first.as_ref().ok().filter(|head| kind(&head.header) == Some(op::BAG));
    if let Some(encryptor) =
        bag.and_then(|head| field(&head.header, "encryptor")).filter(|name| !name.is_empty())
    {
        let reason =
            format!("this bag is encrypted by {}: decrypt it with `rosbag decrypt`", text(encryptor));
        return Err(refused(file, reason));
    }
    let place = bag.and_then(|head| u64_of(field(&head.header, "index_pos")?)).unwrap_or(0);
    let counts = bag.and_then(|head| {
        let count = |name| u32_at(field(&head.header, name)?, 0);
        Some((count("conn_count")?, count("chunk_count")?))
    });
    // Recorders write the offset of the index last.
    if place > 0 {
        match reading.saved(file, place, counts)? {
            Ok(()) => return Ok(reading.finish()),
            Err(reason) => {
                reading = Reading::default();
                // A bag that is cut off has no index.
                if place < file.size() {
                    reading.index.faults.push((place, format!("the index cannot be used: {reason}")));
                }
            }
        }
    }
    reading.walk(file)?;
    Ok(reading.finish())
}

/// Contents of a bag found so far.
#[derive(Default)]
struct Reading {
    index: Index,
    connections: Connections,
    /// Number of messages of each connection, as far as the bag states it.
    messages: BTreeMap<u16, u64>,
}

impl Reading {
    fn finish(mut self) -> (Index, Connections) {
        for (channel, topic) in &self.index.of_channel {
            self.index.topics[*topic].messages = self.messages.get(channel).copied();
        }
        (self.index, self.connections)
    }

    /// Returns the number of a connection, adding it if it is new.
    fn connect(&mut self, record: &Record<'_>) -> Result<(), String> {
        let (id, topic) = topic(record).ok_or("a connection has no id or no topic")?;
        if let Some(known) =
            self.connections.get(id).and_then(|number| self.index.topics.get(usize::from(number)))
        {
            if known.name != topic.name || known.schema != topic.schema {
                let (name, other) = (&known.name, &topic.name);
                return Err(format!(
                    "connection {id} is defined twice, for {name} and {other}; the first counts"
                ));
            }
            return Ok(());
        }
        let number =
            u16::try_from(self.index.topics.len()).map_err(|_| "it has more than 65,536 connections")?;
        self.connections.insert(id, number);
        self.index.of_channel.insert(number, number as usize);
        self.index.topics.push(topic);
        Ok(())
    }

    /// Reads the index at the end of a bag; the inner error states why it cannot be used.
    fn saved(
        &mut self,
        file: &mut Pieces,
        place: u64,
        counts: Option<(u32, u32)>,
    ) -> Result<Result<(), String>, RecordingError> {
        let Some(length) = file.size().checked_sub(place).filter(|_| place >= VERSION.len() as u64) else {
            return Ok(Err("it is said to begin outside of the file".to_owned()));
        };
        if length > LARGEST_INDEX {
            return Ok(Err("it is larger than 1 GiB".to_owned()));
        }
        let mut bytes = Vec::new();
        file.read(place, length as usize, &mut bytes)?;
        let mut infos = Vec::new();
        for record in (Records { bytes: &bytes, at: 0 }) {
            let record = match record {
                Ok(record) => record,
                Err(reason) => return Ok(Err(reason)),
            };
            match kind(record.header) {
                Some(op::CONNECTION) => {
                    if let Err(reason) = self.connect(&record) {
                        return Ok(Err(reason));
                    }
                }
                Some(op::CHUNK_INFO) => match ChunkInfo::read(&record) {
                    Some(info) => infos.push(info),
                    None => return Ok(Err("the description of a chunk cannot be read".to_owned())),
                },
                _ => return Ok(Err("it has other records".to_owned())),
            }
        }
        if counts.is_some_and(|counts| {
            (self.connections.len(), infos.len()) != (counts.0 as usize, counts.1 as usize)
        }) {
            return Ok(Err("it does not have as many connections and chunks as the bag".to_owned()));
        }
        self.index.topics.iter_mut().for_each(|topic| topic.messages = Some(0));
        infos.sort_by_key(|info| info.place);
        for info in infos {
            let found = head(file, info.place)?;
            let is_chunk = |head: &Head| {
                kind(&head.header) == Some(op::CHUNK) && head.end() <= place && info.place < place
            };
            let Some(found) = found.ok().filter(is_chunk) else {
                return Ok(Err(format!("no chunk is at byte {}", info.place)));
            };
            let (mut channels, mut all) = (Vec::new(), 0_u64);
            for (id, count) in &info.counts {
                all = all.saturating_add((*count).into());
                let Some(number) = self.connections.get(*id) else {
                    return Ok(Err(format!("connection {id} is not described")));
                };
                let messages = self.messages.entry(number).or_default();
                *messages = messages.saturating_add((*count).into());
                channels.push(number);
            }
            let mut section = chunk_section(info.place, &found);
            (section.start, section.end, section.channels) = (info.start, info.end, Some(channels));
            section.messages = Some(all);
            self.index.sections.push(section);
        }
        let numbers = self.index.of_channel.keys().copied();
        for number in numbers {
            self.messages.entry(number).or_default();
        }
        Ok(Ok(()))
    }

    /// Walks over all records of a bag without an index. Its chunks are decompressed for their connections and times.
    fn walk(&mut self, file: &mut Pieces) -> Result<(), RecordingError> {
        let mut at = VERSION.len() as u64;
        let (mut raw, mut records) = (Vec::new(), Vec::new());
        let mut loose = 0_u64;
        while at < file.size() {
            let head = match head(file, at)? {
                Ok(head) => head,
                Err(reason) => {
                    self.index.cut = Some((at, reason));
                    break;
                }
            };
            let is_cut = head.end() > file.size();
            if is_cut {
                let (claimed, there) = (head.end() - at, file.size() - at);
                let reason = format!("the record at byte {at} claims {claimed} bytes, and {there} follow");
                self.index.cut = Some((file.size(), reason));
            }
            match kind(&head.header) {
                Some(op::CHUNK) => {
                    let mut section = chunk_section(at, &head);
                    if is_cut {
                        (section.is_cut, section.length) = (true, file.size() - at);
                    }
                    if section.length <= LARGEST {
                        file.read(at, section.length as usize, &mut raw)?;
                        let read = decompress(&raw, is_cut, &mut records);
                        self.look(at, &records, &mut section);
                        if read.is_err() {
                            // The missing part may have messages of any topic and time.
                            (section.end, section.channels) = (u64::MAX, None);
                        }
                    }
                    self.index.sections.push(section);
                }
                Some(op::CONNECTION) if head.length <= LARGEST_DEFINITION && !is_cut => {
                    let data = file.at(head.data_at, head.length as usize)?.to_vec();
                    let record = Record { header: &head.header, data: &data, data_at: 0, end: 0 };
                    let connected = self.connect(&record);
                    self.index.faults.extend(connected.err().map(|reason| (at, reason)));
                }
                Some(op::MESSAGE) => {
                    loose += 1;
                    if loose == 1 {
                        let reason = "messages that are in no chunk are not read";
                        self.index.faults.push((at, reason.to_owned()));
                    }
                }
                _ => {}
            }
            at = head.end();
        }
        if self.index.cut.is_none() {
            let reason = "the bag has no index: its recorder did not end it; all messages are before";
            self.index.cut = Some((file.size(), reason.to_owned()));
        }
        Ok(())
    }

    /// Finds the connections and times in a chunk.
    fn look(&mut self, at: u64, records: &[u8], section: &mut Section) {
        let (mut start, mut end) = (u64::MAX, 0);
        let mut ids: Vec<u32> = Vec::new();
        for record in (Records { bytes: records, at: 0 }).map_while(Result::ok) {
            match kind(record.header) {
                Some(op::CONNECTION) => {
                    let connected = self.connect(&record);
                    self.index.faults.extend(connected.err().map(|reason| (at, reason)));
                }
                Some(op::MESSAGE) => {
                    let own = field(record.header, "time").and_then(time).unwrap_or(0);
                    (start, end) = (start.min(own), end.max(own));
                    let id = connection_id(record.header).unwrap_or(u32::MAX);
                    if ids.last() != Some(&id) && !ids.contains(&id) {
                        ids.push(id);
                    }
                    if let Some(number) = self.connections.get(id) {
                        *self.messages.entry(number).or_default() += 1;
                    }
                }
                _ => {}
            }
        }
        if start <= end {
            (section.start, section.end) = (start, end);
        }
        let numbers: Option<Vec<u16>> = ids.iter().map(|id| self.connections.get(*id)).collect();
        section.channels = numbers;
    }
}

/// Returns the section of a chunk whose times and channels are unknown.
fn chunk_section(at: u64, head: &Head) -> Section {
    Section {
        offset: at,
        length: head.end() - at,
        is_chunk: true,
        is_cut: false,
        start: 0,
        end: u64::MAX,
        channels: None,
        messages: None,
    }
}

/// Index entry of a chunk.
struct ChunkInfo {
    place: u64,
    start: u64,
    end: u64,
    /// Number of messages of each connection.
    counts: Vec<(u32, u32)>,
}

impl ChunkInfo {
    fn read(record: &Record<'_>) -> Option<ChunkInfo> {
        let of = |name| field(record.header, name);
        let count = u32_at(of("count")?, 0)? as usize;
        if record.data.len() / 8 < count {
            return None;
        }
        let counts = record.data.chunks_exact(8).take(count);
        Some(ChunkInfo {
            place: u64_of(of("chunk_pos")?)?,
            start: time(of("start_time")?)?,
            end: time(of("end_time")?)?,
            counts: counts.filter_map(|pair| Some((u32_at(pair, 0)?, u32_at(pair, 4)?))).collect(),
        })
    }
}
