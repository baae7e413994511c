//! Bags of ROS 1, format 2.0: chunks with messages as an MCAP file has them, with other records and another index.

use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;
use std::sync::Arc;

use super::chunk::{LARGEST, TRUSTED};
use super::index::{Index, Section};
use super::load::{Entry, UNKNOWN, UNREAD, Wanted};
use crate::pieces::Pieces;
use crate::recording::{RecordedSchema, RecordedTopic, RecordingError};

/// The first bytes of a bag of any version, and of one that is read.
pub(crate) const MAGIC: &[u8] = b"#ROSBAG V";
const VERSION: &[u8] = b"#ROSBAG V2.0\n";
/// The largest header of a record, and the largest definition of a connection.
const LARGEST_HEADER: u32 = 1 << 20;
const LARGEST_DEFINITION: u64 = 64 << 20;
/// The largest index of a bag.
const LARGEST_INDEX: u64 = 1 << 30;
/// The quality of service of publishers that latch their last message, as recorders of ROS 2 note it.
const LATCHED: &str =
    "- history: keep_last\n  depth: 1\n  reliability: reliable\n  durability: transient_local\n";

/// Kinds of records.
mod op {
    pub(super) const MESSAGE: u8 = 2;
    pub(super) const BAG: u8 = 3;
    pub(super) const INDEX: u8 = 4;
    pub(super) const CHUNK: u8 = 5;
    pub(super) const CHUNK_INFO: u8 = 6;
    pub(super) const CONNECTION: u8 = 7;
}

/// For the id of every connection its number among all, from 0.
#[derive(Default)]
pub(super) struct Connections {
    of_id: HashMap<u32, u16>,
    /// The numbers of small ids, which recorders choose; [`NONE`] where there is none.
    small: Vec<u16>,
}

/// Stands for no connection.
const NONE: u16 = u16::MAX;

impl Connections {
    #[inline]
    fn get(&self, id: u32) -> Option<u16> {
        match self.small.get(id as usize) {
            Some(number) => Some(*number).filter(|number| *number != NONE),
            None => self.of_id.get(&id).copied(),
        }
    }

    fn insert(&mut self, id: u32, number: u16) {
        self.of_id.insert(id, number);
        if let Some(id) = usize::try_from(id).ok().filter(|id| *id < usize::from(NONE)) {
            if self.small.len() <= id {
                let of_id = &self.of_id;
                let begin = self.small.len();
                let number = |id: usize| of_id.get(&(id as u32)).copied().unwrap_or(NONE);
                self.small.extend((begin..=id).map(number));
            }
            self.small[id] = number;
        }
    }

    fn len(&self) -> usize {
        self.of_id.len()
    }
}

/// The longest header of a message that is compared as a whole.
const SHAPE: usize = 64;

/// The header of the message before, with zeros for connection and time: most have the same.
struct Shape {
    bytes: [u8; SHAPE],
    length: usize,
    /// Where the values of connection and time are.
    connection: usize,
    time: usize,
}

impl Shape {
    /// The shape of the header of a message.
    fn of(header: &[u8]) -> Option<Shape> {
        let place = |name: &str, size: usize| {
            let value = field(header, name).filter(|value| value.len() == size)?;
            Some(value.as_ptr() as usize - header.as_ptr() as usize)
        };
        let (connection, time) = (place("conn", 4)?, place("time", 8)?);
        let mut shape = Shape { bytes: [0; SHAPE], length: header.len(), connection, time };
        shape.bytes = shape.without_values(header)?;
        Some(shape)
    }

    #[inline]
    fn without_values(&self, header: &[u8]) -> Option<[u8; SHAPE]> {
        let mut bytes = [0; SHAPE];
        bytes.get_mut(..header.len())?.copy_from_slice(header);
        bytes.get_mut(self.connection..self.connection + 4)?.fill(0);
        bytes.get_mut(self.time..self.time + 8)?.fill(0);
        Some(bytes)
    }

    /// The connection and the time of a header of this shape.
    #[inline]
    fn read(&self, header: &[u8]) -> Option<(u32, u64)> {
        if header.len() != self.length || self.without_values(header)? != self.bytes {
            return None;
        }
        Some((u32_at(header, self.connection)?, time(header.get(self.time..)?)?))
    }
}

/// A record: its header, and its data as far as they are there.
#[derive(Clone, Copy)]
struct Record<'r> {
    header: &'r [u8],
    data: &'r [u8],
    /// Where the data begin, and where the next record does.
    data_at: usize,
    end: usize,
}

/// The records of a chunk or an index, in order; the last may be an error.
struct Records<'r> {
    bytes: &'r [u8],
    at: usize,
}

impl<'r> Iterator for Records<'r> {
    type Item = Result<Record<'r>, String>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let record = record(self.bytes, self.at);
        self.at = record.as_ref().map_or(self.bytes.len(), |record| record.end);
        Some(record)
    }
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_of(value: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(value.try_into().ok()?))
}

/// A time, in nanoseconds: seconds and nanoseconds of four bytes each.
#[inline]
fn time(value: &[u8]) -> Option<u64> {
    let (seconds, nanos) = (u32_at(value, 0)?, u32_at(value, 4)?);
    Some(u64::from(seconds) * 1_000_000_000 + u64::from(nanos))
}

/// The record at a place.
#[inline]
fn record(bytes: &[u8], at: usize) -> Result<Record<'_>, String> {
    let cut = || "a record is cut off".to_owned();
    let header_length = u32_at(bytes, at).ok_or_else(cut)? as usize;
    let header_end = (at + 4).saturating_add(header_length);
    let header = bytes.get(at + 4..header_end).ok_or_else(cut)?;
    let length = u32_at(bytes, header_end).ok_or_else(cut)? as usize;
    let data_at = header_end + 4;
    let end = data_at.saturating_add(length);
    Ok(Record { header, data: bytes.get(data_at..end).ok_or_else(cut)?, data_at, end })
}

/// The fields of a header, with their names; what is no field ends them.
fn fields(header: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = header;
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let field = behind.get(..u32::from_le_bytes(*length) as usize)?;
        rest = &behind[field.len()..];
        let at = memchr::memchr(b'=', field)?;
        Some((&field[..at], &field[at + 1..]))
    })
}

/// A field of a header.
fn field<'h>(header: &'h [u8], name: &str) -> Option<&'h [u8]> {
    fields(header).find(|(own, _)| *own == name.as_bytes()).map(|(_, value)| value)
}

/// The kind of a record.
fn kind(header: &[u8]) -> Option<u8> {
    field(header, "op")?.first().copied()
}

fn connection_id(header: &[u8]) -> Option<u32> {
    u32_at(field(header, "conn")?, 0)
}

/// A text of a header.
fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

/// The topic that a record of a connection describes.
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

/// The head of a record in the file: its header, the place of its data, and their length.
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

/// Reads the head of the record at a place, or why there is none.
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
pub(super) fn index(file: &mut Pieces) -> Result<(Index, Connections), RecordingError> {
    let start = file.at(0, 64)?.to_vec();
    let refused =
        |file: &Pieces, reason: String| RecordingError::Form { path: file.path().to_owned(), reason };
    if !start.starts_with(VERSION) {
        let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let reason = match start.starts_with(MAGIC) {
            true => format!(
                "this bag of ROS 1 has the format {}, and 2.0 is read: `rosbag fix` writes it anew",
                text(&line[MAGIC.len() - 1..])
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
    // A recorder writes the place of the index at the end.
    if place > 0 {
        match reading.saved(file, place, counts)? {
            Ok(()) => return Ok(reading.finish()),
            Err(reason) => {
                reading = Reading::default();
                // Of a file that is cut off the index is not there.
                if place < file.size() {
                    reading.index.faults.push((place, format!("the index cannot be used: {reason}")));
                }
            }
        }
    }
    reading.walk(file)?;
    Ok(reading.finish())
}

/// What was found of a bag.
#[derive(Default)]
struct Reading {
    index: Index,
    connections: Connections,
    /// The number of messages of each connection, where the bag says it.
    messages: BTreeMap<u16, u64>,
}

impl Reading {
    fn finish(mut self) -> (Index, Connections) {
        for (channel, topic) in &self.index.of_channel {
            self.index.topics[*topic].messages = self.messages.get(channel).copied();
        }
        (self.index, self.connections)
    }

    /// The number of a connection, which is added if it is new.
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

    /// Reads the index at the end of a bag; the inner error says why it cannot be used.
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

    /// Goes through all records of a bag without an index. Its chunks are decompressed for the connections and times in
    /// them.
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
                            // What is missing may be of any topic and time.
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

    /// Finds the connections and the times in a chunk.
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

/// The section of a chunk, whose times and channels are not known.
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

/// What the index says about a chunk.
struct ChunkInfo {
    place: u64,
    start: u64,
    end: u64,
    /// The messages of each connection.
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

/// Writes the records of a chunk, of which `raw` is the whole record, to `out`, which is emptied first. The chunk may be cut
/// off.
///
/// # Errors
/// Why they are not all there; `out` then has the others.
pub(super) fn decompress(raw: &[u8], is_cut: bool, out: &mut Vec<u8>) -> Result<(), String> {
    out.clear();
    let cut = || "the header of a chunk is cut off".to_owned();
    let length = u32_at(raw, 0).ok_or_else(cut)? as usize;
    let header = raw.get(4..length.saturating_add(4)).ok_or_else(cut)?;
    let claimed = u32_at(raw, length + 4).ok_or_else(cut)? as usize;
    let data = &raw[length + 8..];
    if claimed > data.len() && !is_cut {
        return Err(format!("a chunk claims {claimed} compressed bytes, and has {}", data.len()));
    }
    let data = &data[..claimed.min(data.len())];
    let size = field(header, "size").and_then(|size| u32_at(size, 0));
    let size = size.ok_or("the header of a chunk does not say its size")? as usize;
    if size as u64 > LARGEST {
        return Err(format!("a chunk claims {size} bytes, and the limit is 1 GiB"));
    }
    let compression = field(header, "compression").unwrap_or_default();
    // Only what is there makes the buffer grow beyond this.
    out.reserve(size.min(TRUSTED.max(data.len().saturating_mul(8))));
    let limit = size as u64 + 1;
    let read = match compression {
        b"none" => {
            out.extend_from_slice(data);
            Ok(0)
        }
        b"bz2" => bzip2::read::BzDecoder::new(data).take(limit).read_to_end(out),
        b"lz4" => lz4::Decoder::new(data).and_then(|decoder| decoder.take(limit).read_to_end(out)),
        other => {
            let name = String::from_utf8_lossy(other);
            return Err(format!("the compression '{name}' of a chunk is not known"));
        }
    };
    read.map_err(|error| format!("a chunk cannot be decompressed: {error}"))?;
    match out.len() {
        length if length < size => Err(format!("a chunk of {size} bytes ends after {length}")),
        length if length > size => Err(format!("a chunk of {size} bytes has more")),
        _ => Ok(()),
    }
}

impl Wanted {
    /// Lists the messages to read among the records of a chunk of a bag, which has so many messages if that is known;
    /// returns what is wrong with the rest.
    pub(super) fn list_ros1(
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
