//! Surveys: contents of topics from the messages on them, and a first specification derived from them.
//!
//! A [`Survey`] counts messages, measures rates and gaps, guesses the encoding of payloads and infers their fields.
//! [`draft()`] writes a specification and a deployment from that: bounds that a longer healthy run keeps, and a report of single
//! silences and values far from all others. No I/O and no clock.

mod binary;
mod declare;
mod draft;
mod fields;
mod guess;
mod lengths;
mod names;
mod pace;
mod recorded;
mod roles;
mod rules;
mod series;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rondel_decode::json::JsonForm;
use rondel_decode::{DecodeError, Encoding, MessageType, MessageWriter, NamedConstant, sparkplug};
use rondel_event::Timestamp;

pub use declare::{Declaration, declarations};
pub use draft::{Draft, DraftOptions, TOPICS as DRAFT_TOPICS, draft};
pub use fields::{ELEMENTS, FIELDS, Field, FieldKind};
pub use guess::PayloadKind;
pub use pace::{Gap, Pace, RecordedTime, Rhythm};
pub use recorded::{Choice, RecordedSurvey, Unreadable};
pub use table::{json, text, unlisted};

/// Default number of topics of a survey.
pub const TOPICS: usize = 1_000;

/// Fields of all topics together: each takes some kilobytes.
const FIELDS_OF_ALL: usize = 30_000;

/// Survey of several topics.
#[derive(Clone, Debug)]
pub struct Survey {
    topics: BTreeMap<String, Topic>,
    limit: usize,
    unlisted: u64,
    /// Number of further fields allowed.
    fields: usize,
    /// The first and the last time of the recording that is read.
    span: Option<(Timestamp, Timestamp)>,
    /// The first times of the recordings.
    starts: Vec<Timestamp>,
    /// When the recording begins, if it was not read from its beginning.
    begin: Option<Timestamp>,
    /// Total length of the earlier recordings, in nanoseconds.
    before: u64,
}

/// Survey of one topic.
#[derive(Clone, Debug, Default)]
pub struct Topic {
    /// The name to show, where it is not the address.
    pub name: Option<String>,
    /// The message type, as far as the network announces one.
    pub message_type: Option<String>,
    /// The publishers, where the network announces them or messages name them.
    pub publishers: Option<usize>,
    /// The quality of service of the publishers, where it is known.
    pub qos: Option<String>,
    /// The number of messages.
    pub messages: u64,
    /// The number of their bytes.
    pub bytes: u64,
    /// The sizes of the smallest and the largest message.
    pub sizes: Option<(usize, usize)>,
    /// When messages came.
    pub pace: Pace,
    /// The fields of messages that describe themselves.
    pub fields: fields::Fields,
    kinds: BTreeMap<PayloadKind, u64>,
    origins: Vec<u64>,
    /// Writer of its messages as JSON, where the definition of their type is known.
    writer: Option<MessageWriter>,
    /// The encoding, where it is known and need not be guessed.
    known: Option<PayloadKind>,
    /// Whether its messages may have the framing of the schema registries.
    may_be_framed: bool,
    /// The first ids of schemas in this framing.
    schema_ids: BTreeSet<u32>,
    /// The constants of its message type.
    constants: Vec<NamedConstant>,
    unreadable: u64,
}

/// The largest message of a known type that is looked into, and the largest text that it may be, in bytes.
const LARGEST: usize = 1 << 20;
/// In a survey a number beyond all bounds has none.
const FORM: JsonForm = JsonForm { names: false, infinite: false };

/// Maximum number of ids of schemas of a topic.
const SCHEMAS: usize = 8;
/// Maximum number of publishers of a topic distinguished by their messages.
const ORIGINS: usize = 256;

impl Survey {
    /// Creates a survey of at most `limit` topics; messages on further ones are only counted.
    pub fn new(limit: usize) -> Survey {
        Survey {
            topics: BTreeMap::new(),
            limit,
            unlisted: 0,
            fields: FIELDS_OF_ALL,
            span: None,
            starts: Vec::new(),
            begin: None,
            before: 0,
        }
    }

    /// Returns the account of a topic, by its address. `None` if there are too many.
    ///
    /// All messages of a node of Sparkplug and its devices are of one topic.
    pub fn topic(&mut self, address: &str) -> Option<&mut Topic> {
        let of_node = sparkplug::Address::of_node(address);
        let address = of_node.as_deref().unwrap_or(address);
        if !self.topics.contains_key(address) {
            if self.topics.len() >= self.limit {
                return None;
            }
            let mut topic = if of_node.is_some() { Topic::of_sparkplug() } else { Topic::default() };
            topic.may_be_framed = address.starts_with("kafka:");
            self.topics.insert(address.to_owned(), topic);
        }
        self.topics.get_mut(address)
    }

    /// Adds a message that came at a time. `origin` is its publisher, where it is known.
    pub fn message(&mut self, address: &str, time: Timestamp, payload: &[u8], origin: Option<u64>) {
        let (at, mut left) = (self.at(time), self.fields);
        let Some(topic) = self.topic(address) else {
            self.unlisted += 1;
            return;
        };
        let (kind, value) = topic.read(payload);
        topic.count(kind, payload.len(), at);
        if let Some(value) = value {
            topic.fields.add(&value, at, &mut left);
        }
        if let Some(origin) = origin
            && topic.origins.len() < ORIGINS
            && !topic.origins.contains(&origin)
        {
            topic.origins.push(origin);
            topic.publishers = topic.publishers.max(Some(topic.origins.len()));
        }
        self.fields = left;
    }

    /// Adds a message of a recording, of which the value is known already.
    fn value(
        &mut self,
        address: &str,
        time: Timestamp,
        bytes: usize,
        kind: PayloadKind,
        value: &serde_json::Value,
    ) {
        let (at, mut left) = (self.at(time), self.fields);
        match self.topic(address) {
            Some(topic) => {
                topic.count(kind, bytes, at);
                topic.fields.add(value, at, &mut left);
            }
            None => self.unlisted += 1,
        }
        self.fields = left;
    }

    /// Sets when the recording that is read next begins, if not with the first message that is added.
    pub fn begin_at(&mut self, time: Timestamp) {
        self.begin = Some(time);
    }

    /// Advances the time: no further message came before it.
    pub fn pass(&mut self, time: Timestamp) {
        let _ = self.at(time);
    }

    /// Advances the time, and returns it with the recording.
    fn at(&mut self, time: Timestamp) -> RecordedTime {
        let (first, last) = self.span.unwrap_or((time, time));
        if self.span.is_none() {
            self.starts.push(self.begin.take().unwrap_or(time));
        }
        self.span = Some((first.min(time), last.max(time)));
        RecordedTime { part: self.part(), time }
    }

    /// The recording that is read, counted from 0.
    fn part(&self) -> u32 {
        u32::try_from(self.starts.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// Returns the nanoseconds from the beginning of its recording to a time.
    pub(crate) fn offset(&self, at: RecordedTime) -> u64 {
        self.starts.get(at.part as usize).map_or(0, |start| pace::between(*start, at.time))
    }

    /// Returns the number of recordings.
    pub fn recordings(&self) -> usize {
        self.starts.len()
    }

    /// Ends a recording or a look at networks: gaps reach to its end. Further messages belong to another recording, whose
    /// times are compared with none of this one.
    pub fn end(&mut self) {
        self.end_at(None);
    }

    /// Ends the survey at this time, if it is after the last message: up to then it is known that none came.
    pub fn end_at(&mut self, until: Option<Timestamp>) {
        if let (Some((_, last)), Some(until)) = (&mut self.span, until) {
            *last = (*last).max(until);
        }
        let part = self.part();
        if let Some((first, last)) = self.span.take() {
            self.before = self.before.saturating_add(pace::between(first, last));
            self.topics.values_mut().for_each(|topic| topic.pace.end(RecordedTime { part, time: last }));
        }
    }

    /// Gives a topic another address, unless there is a topic of this one.
    pub fn rename(&mut self, address: &str, to: &str) {
        if !self.topics.contains_key(to)
            && let Some(topic) = self.topics.remove(address)
        {
            self.topics.insert(to.to_owned(), topic);
        }
    }

    /// Leaves out topics by their addresses.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&str) -> bool) {
        self.topics.retain(|address, _| is_kept(address));
    }

    /// Returns the topics with their addresses, in alphabetical order.
    pub fn topics(&self) -> impl ExactSizeIterator<Item = (&str, &Topic)> {
        self.topics.iter().map(|(address, topic)| (&**address, topic))
    }

    /// Returns the number of messages on topics beyond the limit.
    pub fn unlisted(&self) -> u64 {
        self.unlisted
    }

    /// Returns the largest number of topics.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Returns how long the survey took, in nanoseconds: all recordings together.
    pub fn span(&self) -> u64 {
        self.before.saturating_add(self.span.map_or(0, |(first, last)| pace::between(first, last)))
    }
}

/// The value of a message: of one that describes itself, or of a known type.
pub(crate) fn value_of(payload: &[u8], writer: Option<&MessageWriter>) -> Option<serde_json::Value> {
    let Some(writer) = writer else { return guess::read(payload).1 };
    let mut text = Vec::new();
    writer.write(payload, LARGEST, &mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

impl Topic {
    /// A topic of metrics by Sparkplug B.
    fn of_sparkplug() -> Topic {
        let writer = MessageWriter::new(Encoding::SparkplugB, None, FORM).ok();
        Topic { known: Some(PayloadKind::SparkplugB), writer, ..Topic::default() }
    }

    /// Whether its messages, which have several names, are those of a node of Sparkplug.
    pub fn is_of_node(&self) -> bool {
        self.known == Some(PayloadKind::SparkplugB)
    }

    /// Sets the type of its messages, so that their fields are read.
    pub fn describe(&mut self, message_type: Arc<MessageType>) {
        let mut constants = message_type.outline().map(|outline| outline.constants).unwrap_or_default();
        constants.retain(|constant| *constant.owner == *message_type.short_name());
        self.constants = constants;
        self.writer = MessageWriter::new(message_type.encoding(), Some(message_type), FORM).ok();
    }

    /// Sets that its messages are XML: one that is malformed counts as unreadable, and is no text.
    pub fn set_xml(&mut self) {
        self.known = Some(PayloadKind::Xml);
        self.writer = MessageWriter::new(Encoding::Xml, None, FORM).ok();
    }

    /// Sets that its messages are Avro without a type: they may have the framing of the schema registries, as those on Kafka.
    pub fn expect_framing(&mut self) {
        self.may_be_framed = true;
    }

    /// Returns the ids of schemas in the framing of the schema registries, at most 8.
    pub fn schema_ids(&self) -> impl Iterator<Item = u32> {
        self.schema_ids.iter().copied()
    }

    /// Returns these ids in words; `None` without any.
    pub(crate) fn schemas(&self) -> Option<String> {
        let ids: Vec<String> = self.schema_ids().map(|id| id.to_string()).collect();
        let more = if ids.len() == SCHEMAS { " and perhaps others" } else { "" };
        let noun = if ids.len() == 1 { "id" } else { "ids" };
        (!ids.is_empty()).then(|| format!("schema {noun} {}{more}", ids.join(", ")))
    }

    /// Whether a message has the framing of the schema registries. Records the id of its schema.
    fn is_registered(&mut self, payload: &[u8]) -> bool {
        if !self.may_be_framed || self.writer.is_some() {
            return false;
        }
        let id = guess::registered(payload);
        if self.schema_ids.len() < SCHEMAS {
            self.schema_ids.extend(id);
        }
        id.is_some()
    }

    /// Sets the encoding of its messages, where a guess may be wrong.
    pub fn set_kind(&mut self, kind: PayloadKind) {
        self.known = Some(kind);
    }

    /// Whether the definition of the type of its messages is known.
    pub fn is_described(&self) -> bool {
        self.writer.is_some()
    }

    /// Returns the number of messages that are none of the type.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    fn read(&mut self, payload: &[u8]) -> (PayloadKind, Option<serde_json::Value>) {
        let known = self.known;
        let (kind, value) = match known {
            Some(kind) => (kind, None),
            None if self.is_registered(payload) => (PayloadKind::Registered, None),
            None => guess::read(payload),
        };
        let Some(writer) = self.writer.as_ref().filter(|_| value.is_none() && payload.len() <= LARGEST)
        else {
            return (kind, value);
        };
        let mut text = Vec::new();
        let written = writer.write(payload, LARGEST, &mut text);
        let is_large = written.as_ref().is_err_and(DecodeError::is_about_size);
        self.unreadable += u64::from(written.is_err() && !is_large);
        // An element of XML with a text alone has no fields.
        let value = written.ok().and_then(|()| serde_json::from_slice(&text).ok());
        (kind, value.filter(serde_json::Value::is_object))
    }

    fn count(&mut self, kind: PayloadKind, bytes: usize, at: RecordedTime) {
        self.messages += 1;
        self.bytes += bytes as u64;
        let (least, most) = self.sizes.unwrap_or((bytes, bytes));
        self.sizes = Some((least.min(bytes), most.max(bytes)));
        *self.kinds.entry(kind).or_default() += 1;
        self.pace.add(at);
    }

    /// Returns the encoding of most messages; `None` without messages.
    pub fn kind(&self) -> Option<PayloadKind> {
        self.kinds.iter().max_by_key(|(_, count)| **count).map(|(kind, _)| *kind)
    }

    /// Whether all messages have one encoding.
    pub fn is_uniform(&self) -> bool {
        self.kinds.len() < 2
    }

    /// Returns the mean number of bytes of a message.
    pub fn mean_size(&self) -> u64 {
        self.bytes.checked_div(self.messages).unwrap_or(0)
    }
}
