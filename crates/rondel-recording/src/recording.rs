//! Interface of all recordings of messages: topics, and messages in the order of their times.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rondel_event::terminal::escaped;
use rondel_event::{Timestamp, ValueType};

use crate::{CutOffs, SplitPart, compressed};

/// A recording of messages as they were on a network.
///
/// Choose topics with [`select`](Recording::select), then call [`next`](Recording::next) until it returns `None`.
pub trait Recording {
    /// Returns the topics. Several may have the same name, with different publishers, encodings or types.
    fn topics(&self) -> &[RecordedTopic];

    /// Selects the topics, by position, and the time span to read. Must be called before the first message.
    fn select(&mut self, selection: Selection);

    /// Sets the fields of a topic that are read, with their types. Tables omit all others, read cells as these types,
    /// and write a number that is NaN as `NaN`, which is not JSON; other recordings have types of their own. Must be
    /// called before the first message.
    fn want(&mut self, topic: usize, fields: &[WantedField]) {
        let _ = (topic, fields);
    }

    /// Moves to the next message by time of recording and returns this time; `None` at the end.
    ///
    /// # Errors
    /// [`RecordingError`]. After [`RecordingError::Damage`] the next call continues behind the damaged part.
    fn advance(&mut self) -> Result<Option<Timestamp>, RecordingError>;

    /// Returns the message that [`advance`](Recording::advance) moved to.
    fn message(&self) -> Option<RecordedMessage<'_>>;

    /// Returns the place of a byte of this message in a file of text: `FILE:LINE` in a table, `FILE:LINE:COLUMN` in XML,
    /// with columns in bytes and both from 1. May read the file again.
    fn place(&self, offset: Option<usize>) -> Option<String> {
        let _ = offset;
        None
    }

    /// Moves to the next message and returns it; `None` at the end.
    ///
    /// # Errors
    /// Those of [`advance`](Recording::advance).
    #[inline]
    fn next(&mut self) -> Result<Option<RecordedMessage<'_>>, RecordingError> {
        Ok(if self.advance()?.is_some() { self.message() } else { None })
    }

    /// Returns the first and the last time of recording, as far as the recording states them; `None` without messages.
    fn span(&self) -> Option<(Timestamp, Timestamp)>;

    /// Returns the recorder's notes at the end of the recording; empty unless Rondel recorded it.
    fn end(&self) -> End {
        End::default()
    }

    /// Returns the position of reading.
    fn progress(&self) -> Progress;
}

/// Notes of a recorder at the end of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Time up to which messages were recorded: none arrived between the last one and this time.
    pub until: Option<Timestamp>,
    /// Number of messages that never reached the recorder, as far as it knows.
    pub lost: u64,
    /// Number of messages that it refused.
    pub refused: u64,
    /// Number of messages that it accepted and that are in no file.
    pub unwritten: u64,
    /// Number of publishers and topics that it could not read, so that their messages are missing.
    pub unread: u64,
    /// Intervals in which it was cut off from a network.
    pub cut_offs: CutOffs,
    /// Whether these are intervals in which the recorder itself was too slow.
    pub dropped_out: bool,
    /// Parts of split recordings that the file contains.
    pub parts: Vec<SplitPart>,
}

impl End {
    /// Returns the number of messages that should be in the recording and are not.
    pub fn missing(&self) -> u64 {
        self.lost.saturating_add(self.refused).saturating_add(self.unwritten)
    }

    /// Whether messages are missing at unknown times.
    pub fn is_missing(&self) -> bool {
        self.missing() > 0 || self.unread > 0
    }

    /// Whether nothing is known to be missing.
    pub fn is_complete(&self) -> bool {
        !self.is_missing() && self.cut_offs.is_empty()
    }

    /// Combines the notes of two recordings of the same time.
    pub(crate) fn and(self, other: End) -> End {
        End {
            until: self.until.max(other.until),
            lost: self.lost.saturating_add(other.lost),
            refused: self.refused.saturating_add(other.refused),
            unwritten: self.unwritten.saturating_add(other.unwritten),
            unread: self.unread.saturating_add(other.unread),
            cut_offs: self.cut_offs.and(other.cut_offs),
            dropped_out: self.dropped_out || other.dropped_out,
            parts: [self.parts, other.parts].concat(),
        }
    }

    /// Parses the notes of `rondel record` and the flight recorder: pairs of a name and a number. Unknown names are
    /// ignored.
    pub(crate) fn of_notes(notes: &[(String, String)]) -> End {
        notes.iter().fold(End::default(), |end, (name, text)| {
            let number = || text.parse().unwrap_or(0);
            end.and(match name.as_str() {
                "until" => End { until: text.parse().ok().map(Timestamp::from_nanos), ..End::default() },
                "lost" => End { lost: number(), ..End::default() },
                "refused" | "not_kept" => End { refused: number(), ..End::default() },
                "unwritten" => End { unwritten: number(), ..End::default() },
                "unread" => End { unread: number(), ..End::default() },
                "part" => End { parts: SplitPart::read(text).into_iter().collect(), ..End::default() },
                "cut_offs" => End { cut_offs: CutOffs::read(text), ..End::default() },
                _ => End::default(),
            })
        })
    }
}

/// A topic of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedTopic {
    /// The name.
    pub name: String,
    /// Label that distinguishes topics of the same name, such as `channel 3`; empty if there is only one, or it has
    /// none.
    pub label: String,
    /// Encoding of its messages as the recording names it: `cdr`, `json`, `protobuf` …
    pub encoding: String,
    /// Type of its messages, if the recording has it.
    pub schema: Option<Arc<RecordedSchema>>,
    /// Number of its messages, if known before they are read.
    pub messages: Option<u64>,
    /// Whether its messages are rows of a table: JSON in which a number may be `NaN` if it is
    /// [wanted](Recording::want).
    pub is_rows: bool,
    /// Whether messages may lack a time of their own. Such recordings are text.
    pub may_lack_times: bool,
    /// Field whose times are those of the recording, if the reader was configured to use them.
    pub time_field: Option<String>,
    /// Metadata from the recorder, such as `offered_qos_profiles`.
    pub metadata: Vec<(String, String)>,
}

/// The type of the messages of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedSchema {
    /// Its name, such as `nav_msgs/msg/Odometry`.
    pub name: String,
    /// The language of the definition: `ros2msg`, `ros2idl`, `protobuf`, `flatbuffer`, `jsonschema` …
    pub encoding: String,
    /// The definition.
    pub data: Vec<u8>,
}

/// A recorded message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedMessage<'r> {
    /// The position of its topic in [`Recording::topics`].
    pub topic: usize,
    /// Time of recording.
    pub log_time: Timestamp,
    /// Time of publishing; the time of recording if unknown.
    pub publish_time: Timestamp,
    /// Whether the message has a time. Otherwise it has that of the previous message; the first one has 0.
    pub is_timed: bool,
    /// Sequence number from the publisher or the recorder; often zero.
    pub sequence: u32,
    /// The message.
    pub payload: &'r [u8],
}

/// A field to read of the messages of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedField {
    /// Its path.
    pub path: rondel_event::Path,
    /// Its type, if it is known.
    pub kind: Option<ValueType>,
    /// Whether `kind` is the type of the elements of the array at the path.
    pub of_elements: bool,
}

/// The messages to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// For each topic of the recording, whether its messages are read; false beyond the end.
    pub topics: Vec<bool>,
    /// The first time of recording.
    pub from: Timestamp,
    /// The last time of recording.
    pub until: Timestamp,
}

impl Selection {
    /// Selects all messages of these topics.
    pub fn of_topics(topics: Vec<bool>) -> Selection {
        let (from, until) = (Timestamp::from_nanos(i64::MIN), Timestamp::from_nanos(i64::MAX));
        Selection { topics, from, until }
    }

    /// Whether the messages of a topic are read.
    pub fn has_topic(&self, topic: usize) -> bool {
        self.topics.get(topic).copied().unwrap_or(false)
    }
}

/// Position of reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of bytes of the files already processed.
    pub position: u64,
    /// The size of the files, in bytes.
    pub size: u64,
    /// Number of bytes read from them.
    pub bytes_read: u64,
}

/// Returns a path in one line and without characters that a terminal obeys: they are written as
/// `\u{1b}`.
pub fn shown(path: &Path) -> String {
    escaped(&path.display().to_string()).into_owned()
}

/// Reason why a recording cannot be read, or not further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The recording cannot be opened.
    #[error("cannot open {}: {source}", shown(path))]
    Open {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Reading failed.
    #[error("cannot read {} at byte {offset}: {source}", shown(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// Offset of the failure.
        offset: u64,
        /// The reason.
        source: io::Error,
    },
    /// The file is no recording.
    #[error("{}: {reason}", shown(path))]
    Form {
        /// The file.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// The chosen options do not fit the recording.
    #[error("{}: {reason}", shown(path))]
    Choice {
        /// The file.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// A part of it cannot be used; reading continues behind it.
    #[error("{}: {}{reason}", shown(path), place(*offset))]
    Damage {
        /// The file.
        path: PathBuf,
        /// Offset of the part; 0 for the file as a whole.
        offset: u64,
        /// Description of the fault.
        reason: String,
        /// Positions of the topics that may lack messages.
        topics: Vec<usize>,
    },
    /// A row of a table cannot be used; reading continues with the next one.
    #[error("{}:{line}: {reason}", shown(path))]
    Row {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// Description of the fault.
        reason: String,
        /// Positions of the topics of which the row may have been a message.
        topics: Vec<usize>,
    },
    /// The recording ends too early; the messages read before are all there are.
    #[error("{}: {}: {reason}", shown(path), ending(*offset, *is_damaged))]
    Cut {
        /// The file.
        path: PathBuf,
        /// Offset of the end of the complete part.
        offset: u64,
        /// Description of the missing part.
        reason: String,
        /// Whether the rest is there, but damaged.
        is_damaged: bool,
    },
}

impl RecordingError {
    /// Returns the error of a compressed recording that cannot be read beyond an offset.
    pub fn of_compression(path: PathBuf, offset: u64, source: &io::Error) -> RecordingError {
        let is_damaged = !compressed::is_cut(source);
        RecordingError::Cut { path, offset, reason: source.to_string(), is_damaged }
    }

    /// Returns the error without the name of its file at the beginning, for use after it.
    pub(crate) fn without(&self, path: &Path) -> String {
        let text = self.to_string();
        text.strip_prefix(&format!("{}: ", shown(path))).map_or(text.clone(), str::to_owned)
    }
}

impl RecordingError {
    /// Returns the error with these topics, if it is damage.
    #[cfg(feature = "parquet")]
    pub(crate) fn about(self, topics: Vec<usize>) -> RecordingError {
        match self {
            RecordingError::Damage { path, offset, reason, .. } => {
                RecordingError::Damage { path, offset, reason, topics }
            }
            other => other,
        }
    }

    /// Returns the error as damage of a part that ends there.
    pub(crate) fn into_damage(self, topics: Vec<usize>) -> RecordingError {
        let (path, reason) = match &self {
            RecordingError::Open { path, source } => (path, format!("cannot open it: {source}")),
            RecordingError::Read { path, offset, source } => {
                (path, format!("cannot read it at byte {offset}: {source}"))
            }
            RecordingError::Form { path, reason } | RecordingError::Choice { path, reason } => {
                (path, reason.clone())
            }
            RecordingError::Damage { .. } | RecordingError::Row { .. } | RecordingError::Cut { .. } => {
                return self;
            }
        };
        RecordingError::Damage { path: path.clone(), offset: 0, reason, topics }
    }
}

/// Returns where a recording ends too early.
fn ending(offset: u64, is_damaged: bool) -> String {
    if is_damaged { format!("unreadable from byte {offset} on") } else { format!("cut off at byte {offset}") }
}

/// Returns an offset in a file as the beginning of an error.
fn place(offset: u64) -> String {
    if offset == 0 { String::new() } else { format!("at byte {offset}: ") }
}
