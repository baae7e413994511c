//! ULog, the logs of PX4: definitions, followed by messages, each with its time in microseconds since the start of the
//! vehicle.
//!
//! A log has no chunks and no index: a walk over it finds its definitions and times, and divides it into sections. Its
//! messages are converted to messages of ROS 1, which are similar: texts of fixed length get a length, padding is
//! omitted.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rondel_event::Timestamp;

use super::index::{Index, Section};
use super::load::{Entry, UNKNOWN, UNREAD, Wanted};
use crate::pieces::Pieces;
use crate::recording::{RecordedSchema, RecordedTopic, RecordingError};
use crate::{CutOff, CutOffs};

/// The first bytes of a log of any version.
pub(crate) const MAGIC: &[u8] = b"ULog\x01\x12\x35";
/// Size of the magic with the version and the time of the beginning.
const HEADER: u64 = 16;
/// Size of the length and the kind before each message.
const HEAD: usize = 3;
/// A synchronisation message, after which reading continues behind damage.
const SYNC: &[u8] = b"\x08\0S\x2f\x73\x13\x20\x25\x0c\xbb\x12";
/// Maximum size of a section, in bytes.
const STRETCH: u64 = 1 << 20;
/// Maximum number of formats, and maximum nesting of one.
const FORMATS: usize = 4096;
const DEPTH: usize = 16;
/// Maximum number of steps of a conversion.
const STEPS: usize = 1 << 16;
/// Limit of the memory for the definitions and conversions of all formats, in bytes.
const MEMORY: usize = 64 << 20;
/// The topics of logged texts and of parameters.
const TEXTS: &str = "logged_messages";
const PARAMETERS: &str = "parameters";

/// Returns a time of a log in nanoseconds.
fn nanos(micros: u64) -> u64 {
    micros.saturating_mul(1000).min(i64::MAX as u64)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A step of the conversion of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Copy(usize),
    Skip(usize),
    /// A text of fixed length, ended by its first zero.
    Text(usize),
}

/// Conversion of the messages of a format.
#[derive(Clone, Debug, Default)]
struct Conversion {
    steps: Vec<Step>,
    /// Number of bytes of a message.
    size: usize,
    /// Number of fields visited, counting those of each element of an array.
    fields: usize,
    /// Offset of the time.
    time: usize,
}

/// Mapping from the messages of a section to topics and conversions.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    /// Number of the topic and index of the conversion, by subscription id.
    of_id: HashMap<u16, (u16, usize)>,
    conversions: Vec<Conversion>,
    texts: Option<u16>,
    parameters: Option<u16>,
}

/// A field of a format: its type, the number of elements of an array, and its name.
type Field = (String, Option<usize>, String);

/// Parses `name:type field;type[N] field;`.
fn format(text: &str) -> Option<(String, Vec<Field>)> {
    let (name, fields) = text.split_once(':')?;
    let field = |text: &str| {
        let (kind, name) = text.trim().split_once(' ')?;
        let (kind, size) = match kind.split_once('[') {
            Some((kind, size)) => (kind, Some(size.strip_suffix(']')?.parse().ok()?)),
            None => (kind, None),
        };
        Some((kind.to_owned(), size, name.trim().to_owned()))
    };
    let fields = fields.split(';').filter(|text| !text.trim().is_empty()).map(field);
    Some((name.to_owned(), fields.collect::<Option<_>>()?))
}

/// Returns the type in ROS 1 of a primitive type, and its size.
fn plain(kind: &str) -> Option<(&'static str, usize)> {
    Some(match kind {
        "int8_t" => ("int8", 1),
        "uint8_t" | "char" => ("uint8", 1),
        "bool" => ("bool", 1),
        "int16_t" => ("int16", 2),
        "uint16_t" => ("uint16", 2),
        "int32_t" => ("int32", 4),
        "uint32_t" => ("uint32", 4),
        "float" => ("float32", 4),
        "int64_t" => ("int64", 8),
        "uint64_t" => ("uint64", 8),
        "double" => ("float64", 8),
        _ => return None,
    })
}

impl Conversion {
    fn add(&mut self, step: Step) {
        let (Step::Copy(size) | Step::Skip(size) | Step::Text(size)) = step;
        self.size += size;
        match (self.steps.last_mut(), step) {
            (Some(Step::Copy(size)), Step::Copy(more)) | (Some(Step::Skip(size)), Step::Skip(more)) => {
                *size += more;
            }
            _ => self.steps.push(step),
        }
    }

    /// Appends a message of ROS 1 to `out`; fields that the message lacks are omitted.
    fn write(&self, mut message: &[u8], out: &mut Vec<u8>) {
        for step in &self.steps {
            let (Step::Copy(size) | Step::Skip(size) | Step::Text(size)) = *step;
            let (part, rest) = message.split_at(size.min(message.len()));
            message = rest;
            match step {
                Step::Copy(_) => out.extend_from_slice(part),
                Step::Text(_) if part.len() == size => {
                    let text = part.split(|byte| *byte == 0).next().unwrap_or_default();
                    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
                    out.extend_from_slice(text);
                }
                Step::Text(_) | Step::Skip(_) => {}
            }
        }
    }
}

/// Contents of a log found so far.
#[derive(Default)]
struct Reading {
    index: Index,
    subscriptions: Subscriptions,
    formats: BTreeMap<String, Vec<Field>>,
    names: HashMap<u16, String>,
    /// Conversion and definition of each format with a subscription.
    converted: HashMap<String, (usize, Arc<RecordedSchema>)>,
    memory: usize,
    /// The latest time so far, in nanoseconds.
    latest: u64,
    open: Option<Section>,
    /// End of the main part, and offsets of the appended parts.
    appended: Vec<u64>,
    cut_offs: CutOffs,
}

/// Finds the sections and topics of a log.
pub(super) fn index(file: &mut Pieces) -> Result<(Index, Subscriptions), RecordingError> {
    let start = file.at(0, HEADER as usize)?.to_vec();
    let refused = |file: &Pieces, reason: &str| {
        Err(RecordingError::Form { path: file.path().to_owned(), reason: reason.to_owned() })
    };
    let Some(time) = u64_at(&start, 8).filter(|_| start.starts_with(MAGIC)) else {
        return match MAGIC.starts_with(&start[..start.len().min(MAGIC.len())]) {
            true => refused(file, "this log (ULog) is cut off in its header"),
            false => refused(file, "this is no ULog: it begins differently"),
        };
    };
    let mut reading = Reading { latest: nanos(time), ..Reading::default() };
    if let Err(reason) = reading.walk(file)? {
        return refused(file, &reason);
    }
    reading.close();
    reading.index.end.dropped_out = !reading.cut_offs.is_empty();
    reading.index.end.cut_offs = reading.cut_offs;
    Ok((reading.index, reading.subscriptions))
}

impl Reading {
    /// Ends the open section.
    fn close(&mut self) {
        self.index.sections.extend(self.open.take());
    }

    /// Adds a message of a topic to the open section.
    fn take(&mut self, (at, length): (u64, u64), number: u16, time: u64) {
        if let Some(topic) = self.index.topics.get_mut(usize::from(number)) {
            *topic.messages.get_or_insert(0) += 1;
        }
        let section = self.open.get_or_insert_with(|| Section {
            offset: at,
            length: 0,
            is_chunk: false,
            is_cut: false,
            start: time,
            end: time,
            channels: Some(Vec::new()),
            messages: None,
        });
        section.length = at + length - section.offset;
        (section.start, section.end) = (section.start.min(time), section.end.max(time));
        if let Some(channels) = section.channels.as_mut().filter(|channels| !channels.contains(&number)) {
            channels.push(number);
        }
        if section.length >= STRETCH {
            self.close();
        }
    }

    /// Walks over the messages of a log; the inner error states why it cannot be read at all.
    fn walk(&mut self, file: &mut Pieces) -> Result<Result<(), String>, RecordingError> {
        let mut at = HEADER;
        let size = file.size();
        while at < size {
            let limit =
                self.appended.iter().copied().filter(|place| *place > at).min().unwrap_or(size).min(size);
            let head = file.at(at, HEAD)?;
            let length = u16_at(head, 0).map_or(u64::MAX, |length| HEAD as u64 + u64::from(length));
            let kind = head.get(2).copied().unwrap_or(0);
            if at + length.min(size) > limit {
                self.close();
                if limit < size {
                    // Appended parts begin behind an unfinished message.
                    at = limit;
                    continue;
                }
                let reason = format!("a message begins there, and {} bytes follow", size - at);
                self.index.cut = Some((at, reason));
                break;
            }
            if !b"BFIMPQARDLCSO".contains(&kind) {
                self.close();
                let reason = "what follows is no message; reading goes on at the next mark".to_owned();
                let Some(next) = find_sync(file, at + 1)? else {
                    self.index.cut = Some((at, "what follows is no message".to_owned()));
                    break;
                };
                self.index.faults.push((at, reason));
                at = next;
                continue;
            }
            let body = file.at(at + HEAD as u64, length as usize - HEAD)?.to_vec();
            match self.message(kind, &body, (at, length)) {
                Ok(()) => {}
                Err(Refused::All(reason)) => return Ok(Err(reason)),
                Err(Refused::One(reason)) => self.index.faults.push((at, reason)),
                Err(Refused::Rest(reason)) => {
                    self.index.cut = Some((at, reason));
                    break;
                }
            }
            at += length;
        }
        Ok(Ok(()))
    }

    fn message(&mut self, kind: u8, body: &[u8], place: (u64, u64)) -> Result<(), Refused> {
        match kind {
            b'B' => self.flags(body),
            b'F' => self.format(body),
            b'A' => self.subscribe(body),
            b'D' => {
                let id = u16_at(body, 0).ok_or_else(short)?;
                let Some((number, conversion)) = self.subscriptions.of_id.get(&id).copied() else {
                    // They are counted when the messages are listed.
                    self.take(place, u16::MAX, self.latest);
                    return Ok(());
                };
                let at = 2 + self.subscriptions.conversions[conversion].time;
                let time = u64_at(body, at).ok_or_else(short)?;
                self.latest = nanos(time);
                self.take(place, number, self.latest);
                Ok(())
            }
            b'L' | b'C' => {
                let at = if kind == b'L' { 1 } else { 3 };
                let time = nanos(u64_at(body, at).ok_or_else(short)?);
                let number = self.texts()?;
                self.take(place, number, time);
                Ok(())
            }
            b'P' => {
                if parameter(body).is_none() {
                    return Err(Refused::One("a parameter cannot be read".to_owned()));
                }
                let number = self.parameters()?;
                self.take(place, number, self.latest);
                Ok(())
            }
            b'O' => {
                let millis = u16_at(body, 0).ok_or_else(short)?;
                let from = i64::try_from(self.latest).unwrap_or(i64::MAX);
                let until = from.saturating_add(i64::from(millis) * 1_000_000);
                self.cut_offs.note(CutOff {
                    from: Timestamp::from_nanos(from),
                    until: Some(Timestamp::from_nanos(until)),
                    topics: Vec::new(),
                });
                Ok(())
            }
            // Information, default parameters, removed subscriptions and marks.
            _ => Ok(()),
        }
    }

    /// Reads the flags, which state the features that a reader must support.
    fn flags(&mut self, body: &[u8]) -> Result<(), Refused> {
        let incompatible = body.get(8..16).unwrap_or_default();
        let (first, others) = incompatible.split_first().unwrap_or((&0, &[]));
        if first & !1 != 0 || others.iter().any(|byte| *byte != 0) {
            return Err(Refused::All("this log (ULog) uses features of a later version".to_owned()));
        }
        if first & 1 != 0 {
            self.appended = (0..3).filter_map(|i| u64_at(body, 16 + 8 * i)).filter(|at| *at > 0).collect();
        }
        Ok(())
    }

    fn format(&mut self, body: &[u8]) -> Result<(), Refused> {
        let text = String::from_utf8_lossy(body);
        let Some((name, fields)) = format(&text) else {
            return Err(Refused::One("a format cannot be read".to_owned()));
        };
        if self.formats.len() >= FORMATS {
            return Err(Refused::Rest(format!("it has more than {FORMATS} formats")));
        }
        match self.formats.get(&name) {
            Some(known) if *known != fields => {
                Err(Refused::Rest(format!("the format {name} is defined twice, in different ways")))
            }
            _ => {
                self.formats.insert(name, fields);
                Ok(())
            }
        }
    }

    fn subscribe(&mut self, body: &[u8]) -> Result<(), Refused> {
        let (instance, id) = (*body.first().ok_or_else(short)?, u16_at(body, 1).ok_or_else(short)?);
        let name = String::from_utf8_lossy(&body[3..]).into_owned();
        let topic = if instance == 0 { name.clone() } else { format!("{name}/{instance}") };
        if let Some(known) = self.names.get(&id) {
            if *known == topic {
                return Ok(());
            }
            return Err(Refused::Rest(format!(
                "the id {id} is that of {known}, and of {topic} from here on"
            )));
        }
        let (place, schema) = match self.converted.get(&name) {
            Some((place, schema)) => (*place, Arc::clone(schema)),
            None => {
                let (conversion, definition) = self
                    .conversion(&name)
                    .map_err(|reason| Refused::One(format!("{topic} is not read: {reason}")))?;
                self.memory += definition.len() + conversion.steps.len() * size_of::<Step>();
                if self.memory > MEMORY {
                    return Err(Refused::Rest("its formats take more than 64 MiB".to_owned()));
                }
                let schema = Arc::new(RecordedSchema {
                    name: format!("ulog/{name}"),
                    encoding: "ros1msg".to_owned(),
                    data: definition.into_bytes(),
                });
                let place = self.subscriptions.conversions.len();
                self.subscriptions.conversions.push(conversion);
                self.converted.insert(name, (place, Arc::clone(&schema)));
                (place, schema)
            }
        };
        let number = self.topic(&topic, schema)?;
        self.subscriptions.of_id.insert(id, (number, place));
        self.names.insert(id, topic);
        Ok(())
    }

    /// Adds a topic and returns its number.
    fn topic(&mut self, name: &str, schema: Arc<RecordedSchema>) -> Result<u16, Refused> {
        let number = u16::try_from(self.index.topics.len()).ok().filter(|number| *number < u16::MAX);
        let number = number.ok_or_else(|| Refused::Rest("it has too many topics".to_owned()))?;
        self.index.of_channel.insert(number, usize::from(number));
        self.index.topics.push(RecordedTopic {
            name: name.to_owned(),
            encoding: "ulog".to_owned(),
            schema: Some(schema),
            messages: Some(0),
            ..RecordedTopic::default()
        });
        Ok(number)
    }

    fn texts(&mut self) -> Result<u16, Refused> {
        if let Some(number) = self.subscriptions.texts {
            return Ok(number);
        }
        let data = b"uint64 timestamp\nuint8 level\nuint16 tag\nstring text\n".to_vec();
        let schema =
            RecordedSchema { name: "ulog/LoggedMessage".to_owned(), encoding: "ros1msg".to_owned(), data };
        let number = self.topic(TEXTS, Arc::new(schema))?;
        self.subscriptions.texts = Some(number);
        Ok(number)
    }

    fn parameters(&mut self) -> Result<u16, Refused> {
        if let Some(number) = self.subscriptions.parameters {
            return Ok(number);
        }
        let data = b"string name\nfloat64 value\n".to_vec();
        let schema =
            RecordedSchema { name: "ulog/Parameter".to_owned(), encoding: "ros1msg".to_owned(), data };
        let number = self.topic(PARAMETERS, Arc::new(schema))?;
        self.subscriptions.parameters = Some(number);
        Ok(number)
    }

    /// Returns the conversion of the messages of a format.
    fn conversion(&self, name: &str) -> Result<(Conversion, String), String> {
        let fields = self.formats.get(name).ok_or_else(|| format!("the format {name} is not defined"))?;
        let mut found = Conversion::default();
        let mut time = None;
        let mut types = vec![name.to_owned()];
        for (kind, size, own) in fields {
            if own == "timestamp" && kind == "uint64_t" && size.is_none() {
                time = Some(found.size);
            }
            self.field((kind, *size, own), &mut found, &mut types, DEPTH)?;
        }
        // Padding at the end may be missing.
        found.steps.pop_if(|step| matches!(step, Step::Skip(_)));
        found.time = time.ok_or("it has no field `timestamp`")?;
        if found.size > usize::from(u16::MAX) {
            return Err("its messages are too large".to_owned());
        }
        let mut definition = String::new();
        for (i, own) in types.iter().enumerate() {
            if i > 0 {
                definition += &format!("{}\nMSG: ulog/{own}\n", "=".repeat(80));
            }
            for (kind, size, name) in self.formats.get(own).into_iter().flatten() {
                definition += &defined(kind, *size, name);
            }
        }
        Ok((found, definition))
    }

    /// Adds the steps of a field.
    fn field(
        &self,
        (kind, size, name): (&str, Option<usize>, &str),
        found: &mut Conversion,
        types: &mut Vec<String>,
        depth: usize,
    ) -> Result<(), String> {
        let count = size.unwrap_or(1);
        found.fields += 1;
        if found.fields > STEPS {
            return Err("it has too many fields".to_owned());
        }
        if count > usize::from(u16::MAX) {
            return Err(format!("the field {name} has more than 65,535 elements"));
        }
        if let Some((_, bytes)) = plain(kind) {
            found.add(match (kind, size) {
                _ if name.starts_with("_padding") => Step::Skip(bytes * count),
                ("char", Some(size)) => Step::Text(size),
                _ => Step::Copy(bytes * count),
            });
            return Ok(());
        }
        let fields = self.formats.get(kind).ok_or_else(|| format!("the type {kind} is not defined"))?;
        if depth == 0 {
            return Err("its types are nested too deeply".to_owned());
        }
        if !types.iter().any(|known| known == kind) {
            types.push(kind.to_owned());
        }
        for _ in 0..count {
            for (kind, size, name) in fields {
                self.field((kind, *size, name), found, types, depth - 1)?;
            }
            if found.size > usize::from(u16::MAX) {
                return Err("its messages are too large".to_owned());
            }
        }
        Ok(())
    }
}

/// Returns a field in the syntax of ROS 1; empty for padding.
fn defined(kind: &str, size: Option<usize>, name: &str) -> String {
    let array = size.map_or(String::new(), |size| format!("[{size}]"));
    match plain(kind) {
        Some(_) if name.starts_with("_padding") => String::new(),
        Some(_) if kind == "char" && size.is_some() => format!("string {name}\n"),
        Some((own, _)) => format!("{own}{array} {name}\n"),
        None => format!("ulog/{kind}{array} {name}\n"),
    }
}

/// Fault of a message, by its extent: the whole log, this message, or the rest of the log.
enum Refused {
    All(String),
    One(String),
    Rest(String),
}

fn short() -> Refused {
    Refused::One("a message is too short".to_owned())
}

/// Returns the offset of the next synchronisation mark.
fn find_sync(file: &mut Pieces, from: u64) -> Result<Option<u64>, RecordingError> {
    let finder = memchr::memmem::Finder::new(SYNC);
    let mut at = from;
    while at < file.size() {
        let window = file.at(at, 64 << 10)?;
        if let Some(found) = finder.find(window) {
            return Ok(Some(at + found as u64));
        }
        // A mark may begin at the end of the window.
        let passed = window.len().saturating_sub(SYNC.len() - 1).max(1);
        at += passed as u64;
    }
    Ok(None)
}

/// Returns the name and the value of a parameter.
fn parameter(body: &[u8]) -> Option<(&str, f64)> {
    let length = usize::from(*body.first()?);
    let key = std::str::from_utf8(body.get(1..=length)?).ok()?;
    let (kind, name) = key.split_once(' ')?;
    let value = *body.get(length + 1..)?.first_chunk::<4>()?;
    match kind {
        "int32_t" => Some((name, i32::from_le_bytes(value).into())),
        "float" => Some((name, f32::from_le_bytes(value).into())),
        _ => None,
    }
}

impl Wanted {
    /// Lists the messages to read of a section that begins at this time, and appends the converted ones to the records;
    /// returns the fault of the rest.
    pub(super) fn list_ulog(
        &self,
        records: &mut Vec<u8>,
        start: u64,
        subscriptions: &Subscriptions,
        entries: &mut Vec<Entry>,
    ) -> Option<String> {
        let source = std::mem::take(records);
        let (mut at, mut latest) = (0, start);
        let (mut unknown, mut first) = (0_u64, 0);
        while let Some(head) = source.get(at..at + HEAD) {
            let length = u16_at(head, 0).map_or(0, usize::from);
            let Some(body) = source.get(at + HEAD..at + HEAD + length) else { break };
            at += HEAD + length;
            let (number, own) = match head[2] {
                b'D' => {
                    let Some(id) = u16_at(body, 0) else { continue };
                    let Some((number, conversion)) = subscriptions.of_id.get(&id) else {
                        (unknown, first) = (unknown + 1, id);
                        continue;
                    };
                    let conversion = &subscriptions.conversions[*conversion];
                    let Some(time) = u64_at(body, 2 + conversion.time) else { continue };
                    latest = nanos(time);
                    (Some(*number), Some(conversion))
                }
                b'L' | b'C' => (subscriptions.texts, None),
                b'P' => (subscriptions.parameters, None),
                _ => continue,
            };
            let topic = number.and_then(|number| self.channels.get(usize::from(number)).copied());
            let topic = topic.unwrap_or(UNKNOWN);
            if topic == UNREAD || topic == UNKNOWN {
                continue;
            }
            let begin = records.len();
            let log_time = match (head[2], own) {
                (b'D', Some(conversion)) => {
                    conversion.write(&body[2..], records);
                    latest
                }
                (b'P', _) => {
                    let Some((name, value)) = parameter(body) else { continue };
                    records.extend_from_slice(&(name.len() as u32).to_le_bytes());
                    records.extend_from_slice(name.as_bytes());
                    records.extend_from_slice(&value.to_le_bytes());
                    latest
                }
                (kind, _) => match text(kind, body, records) {
                    Some(time) => time,
                    None => continue,
                },
            };
            if log_time >= self.from && log_time <= self.until {
                entries.push(Entry { log_time, start: begin, end: records.len(), topic });
            } else {
                records.truncate(begin);
            }
        }
        (unknown > 0)
            .then(|| format!("{unknown} messages have no subscription, such as those of the id {first}"))
    }
}

/// Writes a logged text as a message of ROS 1; returns its time.
fn text(kind: u8, body: &[u8], out: &mut Vec<u8>) -> Option<u64> {
    let (tag, at) = if kind == b'L' { (0, 1) } else { (u16_at(body, 1)?, 3) };
    let (level, time) = (*body.first()?, u64_at(body, at)?);
    let text = String::from_utf8_lossy(body.get(at + 8..)?);
    out.extend_from_slice(&time.to_le_bytes());
    // The levels are those of Linux, as digits.
    out.push(if level.is_ascii_digit() { level - b'0' } else { level });
    out.extend_from_slice(&tag.to_le_bytes());
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    Some(nanos(time))
}
