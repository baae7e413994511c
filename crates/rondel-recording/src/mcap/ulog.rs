//! ULog, the logs of PX4: definitions, followed by messages, each with its time in microseconds since the start of the
//! vehicle.
//!
//! A log has no chunks and no index: a walk over it finds its definitions and times, and divides it into sections. Its
//! messages are converted to messages of ROS 1, which are similar: texts of fixed length get a length, padding is
//! omitted.

mod conversion;
mod messages;

use std::collections::HashMap;
use std::sync::Arc;

use rondel_event::Timestamp;

use super::index::{Index, Section};
use crate::pieces::Pieces;
use crate::recording::{RecordedSchema, RecordedTopic, RecordingError};
use crate::{CutOff, CutOffs};
use conversion::{Conversion, Formats, Step, conversion, format};
use messages::parameter;

/// The first bytes of a log of any version.
pub(crate) const ULOG_MAGIC: &[u8] = b"ULog\x01\x12\x35";
/// Size of the magic with the version and the time of the beginning.
const HEADER: u64 = 16;
/// Size of the length and the kind before each message.
const HEAD: usize = 3;
/// A synchronisation message, after which reading continues behind damage.
const SYNC: &[u8] = b"\x08\0S\x2f\x73\x13\x20\x25\x0c\xbb\x12";
/// Maximum size of a section, in bytes.
const STRETCH: u64 = 1 << 20;
/// Maximum number of formats.
const FORMATS: usize = 4096;
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

/// Mapping from the messages of a section to topics and conversions.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    /// Number of the topic and index of the conversion, by subscription id.
    of_id: HashMap<u16, (u16, usize)>,
    conversions: Vec<Conversion>,
    texts: Option<u16>,
    parameters: Option<u16>,
}

/// Contents of a log found so far.
#[derive(Default)]
struct Reading {
    index: Index,
    subscriptions: Subscriptions,
    formats: Formats,
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

/// Position and length of a message in a log, including its head.
#[derive(Clone, Copy)]
struct Place {
    at: u64,
    length: u64,
}

/// Finds the sections and topics of a log.
pub(super) fn index(file: &mut Pieces) -> Result<(Index, Subscriptions), RecordingError> {
    let start = file.at(0, HEADER as usize)?.to_vec();
    let refused = |file: &Pieces, reason: &str| {
        Err(RecordingError::Form { path: file.path().to_owned(), reason: reason.to_owned() })
    };
    let Some(time) = u64_at(&start, 8).filter(|_| start.starts_with(ULOG_MAGIC)) else {
        return match ULOG_MAGIC.starts_with(&start[..start.len().min(ULOG_MAGIC.len())]) {
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
    fn take(&mut self, place: Place, number: u16, time: u64) {
        let Place { at, length } = place;
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
            match self.message(kind, &body, Place { at, length }) {
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

    fn message(&mut self, kind: u8, body: &[u8], place: Place) -> Result<(), Refused> {
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
                let (conversion, definition) = conversion(&self.formats, &name)
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
