//! What every format of recorded messages offers: the topics, and the messages in the order of their times.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rondel_event::{Timestamp, ValueType};

use crate::{CutOffs, SplitPart};

/// A recording of messages as they were on a network.
///
/// Choose topics with [`select`](Recording::select), then call [`next`](Recording::next) until it returns `None`.
pub trait Recording {
    /// The topics. Several may have the same name: with different publishers, encodings or types.
    fn topics(&self) -> &[RecordedTopic];

    /// Chooses the topics, by position, and the time span whose messages are read. Call it before the first message.
    fn select(&mut self, selection: Selection);

    /// Names fields of a topic that are read, with their types. Tables leave out all others, take cells as these types, and
    /// write a number that is none as `NaN`, which is not JSON; other recordings know the types of their fields. Call it
    /// before the first message.
    fn want(&mut self, topic: usize, fields: &[WantedField]) {
        let _ = (topic, fields);
    }

    /// Moves to the next message by time of recording, and returns this time; `None` at the end.
    ///
    /// # Errors
    /// [`RecordingError`]. After [`RecordingError::Damage`] the next call continues behind the damaged part.
    fn advance(&mut self) -> Result<Option<Timestamp>, RecordingError>;

    /// The message that [`advance`](Recording::advance) moved to.
    fn message(&self) -> Option<RecordedMessage<'_>>;

    /// Moves to the next message and returns it; `None` at the end.
    ///
    /// # Errors
    /// Those of [`advance`](Recording::advance).
    #[inline]
    fn next(&mut self) -> Result<Option<RecordedMessage<'_>>, RecordingError> {
        Ok(if self.advance()?.is_some() { self.message() } else { None })
    }

    /// The first and the last time of recording, as far as the recording says; `None` without messages.
    fn span(&self) -> Option<(Timestamp, Timestamp)>;

    /// What its recorder noted when it ended it; nothing unless Rondel did.
    fn end(&self) -> End {
        End::default()
    }

    /// Where reading is.
    fn progress(&self) -> Progress;
}

/// What a recorder noted about a recording when it ended it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Up to when messages were recorded: none came between the last one and this time.
    pub until: Option<Timestamp>,
    /// Messages that never reached the recorder, as far as it knows.
    pub lost: u64,
    /// Messages that it could not take.
    pub refused: u64,
    /// Messages that it took and that are in no file.
    pub unwritten: u64,
    /// Publishers and topics that it could not read, so that their messages are missing.
    pub unread: u64,
    /// The times in which it was cut off from a network.
    pub cut_offs: CutOffs,
    /// Whether these are times in which the recorder itself was too slow.
    pub dropped_out: bool,
    /// Which parts of recordings that were split this is.
    pub parts: Vec<SplitPart>,
}

impl End {
    /// Messages that should be in the recording and are not.
    pub fn missing(&self) -> u64 {
        self.lost.saturating_add(self.refused).saturating_add(self.unwritten)
    }

    /// Returns whether messages are missing, at no time that is known.
    pub fn is_missing(&self) -> bool {
        self.missing() > 0 || self.unread > 0
    }

    /// Returns whether nothing is known to be missing.
    pub fn is_complete(&self) -> bool {
        !self.is_missing() && self.cut_offs.is_empty()
    }

    /// The notes of two recordings of the same time.
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

    /// The notes as `rondel record` and the flight recorder write them: pairs of a name and a number. What is not
    /// known is ignored.
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
    /// Its place among others of the same name, such as `channel 3`; empty if it is the only one or has none.
    pub label: String,
    /// The encoding of its messages as the recording calls it: `cdr`, `json`, `protobuf` …
    pub encoding: String,
    /// The type of its messages, if the recording has it.
    pub schema: Option<Arc<RecordedSchema>>,
    /// The number of its messages, if it is known before they are read.
    pub messages: Option<u64>,
    /// Whether its messages are rows of a table: JSON in which `NaN` may stand for a number that is
    /// [wanted](Recording::want).
    pub is_rows: bool,
    /// The field whose times are those of the recording, if the reader was told to take them from there.
    pub time_field: Option<String>,
    /// What the recorder noted about it, such as `offered_qos_profiles`.
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
    /// When it was recorded.
    pub log_time: Timestamp,
    /// When it was published; the time of recording if that is not known.
    pub publish_time: Timestamp,
    /// Whether it has a time of its own. Otherwise it counts at that of the message before, and the first at 0.
    pub is_timed: bool,
    /// The number that the publisher or the recorder gave it; often zero.
    pub sequence: u32,
    /// The message.
    pub payload: &'r [u8],
}

/// A field of the messages of a topic that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedField {
    /// Its path.
    pub path: rondel_event::Path,
    /// Its type, if it is known.
    pub kind: Option<ValueType>,
    /// Whether this is the type of the elements of the array there.
    pub of_elements: bool,
}

/// The messages to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// For each topic of the recording whether its messages are read; topics beyond the end are not.
    pub topics: Vec<bool>,
    /// The first time of recording.
    pub from: Timestamp,
    /// The last time of recording.
    pub until: Timestamp,
}

impl Selection {
    /// All messages of these topics.
    pub fn of_topics(topics: Vec<bool>) -> Selection {
        let (from, until) = (Timestamp::from_nanos(i64::MIN), Timestamp::from_nanos(i64::MAX));
        Selection { topics, from, until }
    }

    /// Whether the messages of a topic are read.
    pub fn has_topic(&self, topic: usize) -> bool {
        self.topics.get(topic).copied().unwrap_or(false)
    }
}

/// Where reading is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The position up to which the files are done, in bytes.
    pub position: u64,
    /// The size of the files, in bytes.
    pub size: u64,
    /// How many bytes were read from them.
    pub bytes_read: u64,
}

/// A path in one line and without control characters, which a terminal would obey: they are written as in `\u{1b}`.
pub fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    if !text.contains(char::is_control) {
        return text;
    }
    let character = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(character).collect()
}

/// Why a recording cannot be read, or not on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// It cannot be opened.
    #[error("cannot open {}: {source}", shown(path))]
    Open {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It cannot be read on.
    #[error("cannot read {} at byte {offset}: {source}", shown(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// The reason.
        source: io::Error,
    },
    /// It is something else, or cannot be a recording.
    #[error("{}: {reason}", shown(path))]
    Form {
        /// The file.
        path: PathBuf,
        /// Why it is no recording, in words.
        reason: String,
    },
    /// What was chosen to read it does not fit it.
    #[error("{}: {reason}", shown(path))]
    Choice {
        /// The file.
        path: PathBuf,
        /// Why it does not fit, in words.
        reason: String,
    },
    /// A part of it cannot be used; reading continues behind it.
    #[error("{}: {}{reason}", shown(path), place(*offset))]
    Damage {
        /// The file.
        path: PathBuf,
        /// Where the part begins; 0 for the file as a whole.
        offset: u64,
        /// What is wrong, in words.
        reason: String,
        /// The positions of the topics of which messages may be missing; empty if none is.
        topics: Vec<usize>,
    },
    /// A row of a table cannot be used; reading continues with the next one.
    #[error("{}:{line}: {reason}", shown(path))]
    Row {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
        /// What is wrong, in words.
        reason: String,
        /// The positions of the topics of which it may have been a message.
        topics: Vec<usize>,
    },
    /// It ends too early: what was read before is all that there is.
    #[error("{}: cut off at byte {offset}: {reason}", shown(path))]
    Cut {
        /// The file.
        path: PathBuf,
        /// The last offset at which it was whole.
        offset: u64,
        /// What is missing, in words.
        reason: String,
    },
}

impl RecordingError {
    /// The error without the name of its file at the beginning, to stand behind it.
    pub(crate) fn without(&self, path: &Path) -> String {
        let text = self.to_string();
        text.strip_prefix(&format!("{}: ", shown(path))).map_or(text.clone(), str::to_owned)
    }
}

impl RecordingError {
    /// The error with these topics, if it is damage.
    #[cfg(feature = "parquet")]
    pub(crate) fn about(self, topics: Vec<usize>) -> RecordingError {
        match self {
            RecordingError::Damage { path, offset, reason, .. } => {
                RecordingError::Damage { path, offset, reason, topics }
            }
            other => other,
        }
    }

    /// The error as one of a part of which nothing more is read.
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

/// A place in a file, to stand before what is wrong there.
fn place(offset: u64) -> String {
    if offset == 0 { String::new() } else { format!("at byte {offset}: ") }
}
