//! The options of a session.

use std::sync::Arc;

use rondel_decode::plain::Words;
use rondel_decode::{Decoder, DecoderError, Encoding, LeftOut, MessageType};
use rondel_event::{Path, Projection, TimeUnit, TopicId};

use crate::alignment::{Alignment, Policy};
use crate::clock::{Clock, SystemClock};

/// The largest payload of a message by default, in bytes.
pub const LARGEST_MESSAGE: usize = 16 << 20;

/// The limit of instances by default in a deployment, in bytes: half of a container of 256 MiB.
pub const INSTANCE_BYTES: usize = 128 << 20;

/// Options of a session: reading, evaluation and reports.
#[derive(Clone)]
pub struct Options {
    /// Inputs of the topics, in the order of the specification; further topics use [`Input::default`].
    pub inputs: Vec<Input>,
    /// Alignment of messages; by default they are evaluated on arrival.
    pub alignment: Alignment,
    /// The verdicts that are reported.
    pub emit: Emit,
    /// Whether every violation is explained.
    pub explain: bool,
    /// Number of violations of each property whose explanation contains the signals before it; with
    /// [`Options::explain`].
    pub signals: u32,
    /// Whether the values of all fields are kept from the beginning on, for [`Session::courses`]; with
    /// [`Options::explain`].
    ///
    /// [`Session::courses`]: crate::Session::courses
    pub courses: bool,
    /// The name of the recording, which every report carries.
    pub recording: Option<String>,
    /// Time after the start, in nanoseconds of the clock's ticks, at which missing topics and fields are reported once
    /// as [notices](crate::Session::notices). The start is the first [`poll`](crate::Session::poll).
    pub missing_after: Option<i64>,
    /// Clock of the session, read where neither a message nor the caller gives the time.
    pub clock: Arc<dyn Clock>,
    /// The largest payload of a message in bytes; a larger one is refused.
    pub largest_message: usize,
    /// Limit of the instances of each slice, in bytes; messages with new parameters then do not count.
    pub instance_bytes: usize,
    /// Whether every verdict carries an id ([`Report::write_id`](crate::Report::write_id)).
    pub ids: bool,
    /// Whether every message counts exactly once, also across [snapshots](crate::Session::snapshot): these contain
    /// the sequence numbers of publishers, and messages that came before are ignored.
    pub exactly: bool,
    /// Whether messages come live, so that the clock shows the time of day: times too far from it are then
    /// refused on every route ([`Alignment::ahead`], [`Alignment::behind`]).
    pub live: bool,
    /// Whether topics may start without the type that their encoding needs: their messages are undecodable until it is
    /// [resolved](crate::Session::resolve_type). Otherwise a session without such a type does not start.
    pub types_later: bool,
    /// Treatment of verdicts that depend on missed messages.
    pub blind: Blind,
    /// Reaction to times that start over, as in a looped recording.
    pub reset: Reset,
    /// Minimum length, in nanoseconds of the clock's ticks, of a pause of the session, if any property measures time:
    /// [`Session::alive`](crate::Session::alive) must then be called several times as often. Verdicts that depend on a
    /// pause are treated like those that depend on missed messages. Without it, no pause is detected.
    pub paused_after: Option<i64>,
}

/// Reaction to times of all topics that step back together: see [`Notice`](crate::Notice) `reset`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reset {
    /// Reaction.
    pub policy: ResetPolicy,
    /// Minimum backward step of times, in nanoseconds. The default is [`Reset::AFTER`], or the maximum wait for
    /// messages if that is longer.
    pub after: Option<i64>,
}

/// Reaction when the times of all topics step back together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResetPolicy {
    /// Restart the session, as with another recording. Pending verdicts are inconclusive.
    #[default]
    Restart,
    /// All verdicts are inconclusive from there on.
    Inconclusive,
    /// Messages are evaluated as late ones.
    Ignore,
}

impl Reset {
    /// Default minimum backward step of times, in nanoseconds.
    pub const AFTER: i64 = 1_000_000_000;
}

/// Treatment of verdicts that depend on messages that were lost, late, or sent while a network was disconnected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Blind {
    /// They are inconclusive.
    #[default]
    Inconclusive,
    /// They stay as they are; losses are only reported.
    Report,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            inputs: Vec::new(),
            alignment: Alignment::new(Policy::Arrival),
            emit: Emit::Change,
            explain: false,
            signals: 0,
            courses: false,
            recording: None,
            missing_after: None,
            clock: Arc::new(SystemClock),
            largest_message: LARGEST_MESSAGE,
            instance_bytes: usize::MAX,
            ids: false,
            exactly: false,
            live: false,
            types_later: false,
            blind: Blind::default(),
            reset: Reset::default(),
            paused_after: None,
        }
    }
}

/// Reading of the messages of a topic.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// The source of a message's time.
    pub time: TimeSource,
    /// The unit of times in a message that are plain numbers.
    pub time_unit: TimeUnit,
    /// The address of the topic, under which recordings may name it too.
    pub address: Option<String>,
    /// The encoding of the payloads that are [pushed](crate::Session::push); lines are always JSON.
    pub encoding: Encoding,
    /// The type of the messages, for encodings that need one.
    pub message_type: Option<Arc<MessageType>>,
    /// The words for true and false in plain payloads beside the usual ones.
    pub words: Arc<Words>,
    /// Whether texts that are numbers count as numbers, where numbers are read.
    pub number_texts: bool,
    /// Whether a field that a message leaves out has the default of its type, as in the JSON mapping of Protobuf. Otherwise it
    /// keeps its value.
    pub absent_is_default: bool,
    /// The types of publishers that have another one: see [`SessionPlan::set_types`](crate::SessionPlan::set_types).
    pub further: Vec<PublisherType>,
    /// Whether fields that the type does not have are unknown in its messages, as a further type has them.
    pub is_partial: bool,
}

/// A type that publishers of a topic have.
#[derive(Clone, Debug, Default)]
pub struct PublisherType {
    /// The encoding of their messages.
    pub encoding: Encoding,
    /// The type of their messages, for encodings that need one.
    pub message_type: Option<Arc<MessageType>>,
    /// The publisher in words, such as `channel 3`.
    pub publisher: String,
}

impl Input {
    /// Input of the events of a topic: they use the clock of its messages, except for an event that carries its time in
    /// a field.
    pub(crate) fn of_events(of: &Input) -> Input {
        let time = match of.time {
            TimeSource::Arrival => TimeSource::Arrival,
            TimeSource::Source | TimeSource::Field(_) => TimeSource::Source,
        };
        Input { time, ..Input::default() }
    }

    /// Whether the messages cannot be read before their type is known.
    pub fn awaits_type(&self) -> bool {
        self.message_type.is_none() && self.encoding.needs_schema()
    }

    /// Creates a decoder for messages on `topic` of which these fields are read.
    ///
    /// # Errors
    /// A type that is missing or of another encoding, and fields that the type does not have.
    pub fn decoder(&self, topic: TopicId, fields: &Projection) -> Result<Decoder, DecoderError> {
        if self.encoding == Encoding::Plain {
            let words = Arc::clone(&self.words);
            return Decoder::plain(words, topic, fields, self.time.field(), self.time_unit);
        }
        let message_type = self.message_type.as_deref();
        Decoder::new(self.encoding, message_type, topic, fields, self.time.field(), self.time_unit)
    }

    /// As [`Input::decoder`], for the fields that the type has; returns also those that it does not have.
    pub(crate) fn known_fields(
        &self,
        topic: TopicId,
        fields: &Projection,
    ) -> Result<(Decoder, Vec<LeftOut>), DecoderError> {
        let (message_type, time) = (self.message_type.as_deref(), self.time.field());
        Decoder::of_known_fields(self.encoding, message_type, topic, fields, time, self.time_unit)
    }
}

/// The source of a message's time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TimeSource {
    /// The time of arrival.
    Arrival,
    /// The time at which it was sent, where that is known; otherwise the time of arrival.
    #[default]
    Source,
    /// A field of the message.
    Field(Path),
}

impl TimeSource {
    /// The field that holds the time, if one does.
    pub fn field(&self) -> Option<&Path> {
        if let TimeSource::Field(path) = self { Some(path) } else { None }
    }
}

/// The verdicts that are reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emit {
    /// A verdict that differs from the one before it, and the first.
    #[default]
    Change,
    /// A verdict for every event and property.
    Every,
    /// A verdict that becomes violated.
    Violations,
}

impl Emit {
    /// Whether this report of the engine is emitted.
    #[inline]
    pub(crate) fn wants(self, report: &rondel_engine::Report) -> bool {
        match self {
            Emit::Every => true,
            Emit::Change => report.changed,
            Emit::Violations => report.changed && report.verdict == rondel_event::Verdict::Violated,
        }
    }
}
