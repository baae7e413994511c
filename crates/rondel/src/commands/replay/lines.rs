//! Recordings as JSON lines, as a recording of messages.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rondel_decode::lines::{Published, PublishedLine, published};
use rondel_event::{TimeUnit, Timestamp};
use rondel_recording::{
    MAX_LINE, Piece, Progress, ReadError, RecordedMessage, RecordedTopic, Recording, RecordingError,
    Selection, TraceReader,
};

/// Maximum number of topics in a file.
const TOPICS: usize = 10_000;
/// The name of the topic of lines that name none.
const UNNAMED: &str = "trace";

/// Topics, times and counts of a file of lines, found by reading all of them once.
#[derive(Clone, Debug, Default)]
pub(super) struct Survey {
    topics: Vec<RecordedTopic>,
    positions: HashMap<String, usize>,
    /// The first line's time, and the latest.
    span: Option<(Timestamp, Timestamp)>,
    /// Number of lines that are events of topics: no publisher sent them.
    pub(super) events: u64,
    /// The number of messages before the first line with a time.
    pub(super) untimed: u64,
    /// Whether the time of a flat line is also a field of its message.
    keep_time: bool,
    /// The number of the first line that is no message, and why.
    wrong: Option<(u64, String)>,
}

impl Survey {
    /// Reads a file.
    ///
    /// # Errors
    /// The reason why the file cannot be read. Invalid lines are accepted unless all are invalid.
    pub(super) fn of(path: &Path, unit: TimeUnit, keep_time: bool) -> Result<Survey, String> {
        let mut reader = TraceReader::open(path).map_err(|error| error.to_string())?;
        let mut survey = Survey { keep_time, ..Survey::default() };
        let mut number = 0;
        loop {
            let Piece { text, start, end } = match reader.lines() {
                Ok(Some(piece)) => piece,
                Ok(None) => return survey.checked(path),
                // The part before the cut is replayed, and the cut is reported then.
                Err(error) if error.is_cut() => return survey.checked(path),
                Err(error) => return Err(error.to_string()),
            };
            for line in text[start..end].split_inclusive(|byte| *byte == b'\n') {
                number += 1;
                match published(line, unit, keep_time) {
                    Ok(PublishedLine::Event) => survey.events += 1,
                    Ok(PublishedLine::Message(message)) => survey.add(message, path)?,
                    Ok(PublishedLine::Empty) => {}
                    Ok(PublishedLine::WrongEvent(reason)) => {
                        survey.wrong.get_or_insert((number, reason));
                    }
                    Err((at, kind)) => {
                        survey.wrong.get_or_insert_with(|| (number, format!("byte {}: {kind}", at + 1)));
                    }
                }
            }
            reader.used(end);
        }
    }

    /// Refuses a file that has lines and no message: it is probably the wrong file.
    fn checked(self, path: &Path) -> Result<Survey, String> {
        match &self.wrong {
            Some((line, why)) if self.topics.is_empty() && self.events == 0 => {
                Err(format!("{}: no line of it is a message; line {line}: {why}", path.display()))
            }
            _ => Ok(self),
        }
    }

    fn add(&mut self, message: Published<'_>, path: &Path) -> Result<(), String> {
        let name = message.topic.as_deref().unwrap_or(UNNAMED);
        let position = match self.positions.get(name) {
            Some(position) => *position,
            None if self.topics.len() >= TOPICS => {
                let path = path.display();
                return Err(format!("{path} has more than {TOPICS} topics"));
            }
            None => {
                let encoding = "json".to_owned();
                self.topics.push(RecordedTopic {
                    name: name.to_owned(),
                    encoding,
                    ..RecordedTopic::default()
                });
                self.positions.insert(name.to_owned(), self.topics.len() - 1);
                self.topics.len() - 1
            }
        };
        *self.topics[position].messages.get_or_insert(0) += 1;
        match (message.time, &mut self.span) {
            (Some(time), Some((_, latest))) => *latest = time.max(*latest),
            (Some(time), span) => *span = Some((time, time)),
            (None, None) => self.untimed += 1,
            (None, Some(_)) => {}
        }
        Ok(())
    }
}

/// The messages of a file, in the order of its lines. A line without a time has that of the line before it.
pub(super) struct LineRecording {
    path: PathBuf,
    unit: TimeUnit,
    reader: TraceReader,
    consumed: Arc<AtomicU64>,
    survey: Survey,
    selection: Selection,
    /// The lines read so far.
    line: u64,
    time: Timestamp,
    /// Index of the topic of the current message.
    current: Option<usize>,
    payload: Vec<u8>,
    is_over: bool,
}

impl LineRecording {
    /// Opens a surveyed file.
    ///
    /// # Errors
    /// [`RecordingError::Open`].
    pub(super) fn open(path: &Path, unit: TimeUnit, survey: Survey) -> Result<LineRecording, RecordingError> {
        let reader = TraceReader::open(path).map_err(|error| unread(path, error, 0))?;
        let time = survey.span.map(|(first, _)| first).unwrap_or_default();
        Ok(LineRecording {
            path: path.to_owned(),
            unit,
            consumed: reader.consumed(),
            reader,
            selection: Selection::of_topics(vec![true; survey.topics.len()]),
            survey,
            line: 0,
            time,
            current: None,
            payload: Vec::new(),
            is_over: false,
        })
    }

    fn damage(&self, reason: &dyn std::fmt::Display) -> RecordingError {
        let reason = format!("line {}: {reason}", self.line);
        RecordingError::Damage { path: self.path.clone(), offset: 0, reason, topics: Vec::new() }
    }
}

impl Recording for LineRecording {
    fn topics(&self) -> &[RecordedTopic] {
        &self.survey.topics
    }

    fn select(&mut self, selection: Selection) {
        self.selection = selection;
    }

    fn advance(&mut self) -> Result<Option<Timestamp>, RecordingError> {
        self.current = None;
        while !self.is_over {
            let (path, consumed) = (&self.path, &self.consumed);
            let piece = self.reader.lines().map_err(|error| {
                self.is_over = true;
                unread(path, error, consumed.load(Ordering::Relaxed))
            })?;
            let Some(Piece { text, start, end }) = piece else { break };
            let length = memchr::memchr(b'\n', &text[start..end]).map_or(end - start, |at| at + 1);
            self.line += 1;
            let read = published(&text[start..start + length], self.unit, self.survey.keep_time);
            let found = match read {
                Ok(PublishedLine::Message(Published { topic, time, payload })) => {
                    let name = topic.as_deref().unwrap_or(UNNAMED);
                    let position = self.survey.positions.get(name).copied();
                    self.time = time.unwrap_or(self.time);
                    let Selection { from, until, .. } = self.selection;
                    let is_read = self.time >= from && self.time <= until;
                    let position = position.filter(|topic| is_read && self.selection.has_topic(*topic));
                    match (position, payload) {
                        (Some(position), Some(payload)) => {
                            self.payload.clear();
                            self.payload.extend_from_slice(&payload);
                            Ok(Some(position))
                        }
                        (Some(_), None) => Err(
                            "its payload was no JSON, and stands there with escapes: it cannot be restored"
                                .to_owned(),
                        ),
                        (None, _) => Ok(None),
                    }
                }
                Ok(PublishedLine::Empty | PublishedLine::Event) => Ok(None),
                Ok(PublishedLine::WrongEvent(reason)) => Err(reason),
                Err((at, kind)) => Err(format!("byte {}: {kind}", at + 1)),
            };
            self.reader.used(start + length);
            match found {
                Ok(Some(position)) => {
                    self.current = Some(position);
                    return Ok(Some(self.time));
                }
                Ok(None) => {}
                Err(reason) => return Err(self.damage(&reason)),
            }
        }
        self.is_over = true;
        Ok(None)
    }

    fn message(&self) -> Option<RecordedMessage<'_>> {
        Some(RecordedMessage {
            topic: self.current?,
            log_time: self.time,
            publish_time: self.time,
            is_timed: true,
            sequence: 0,
            payload: &self.payload,
        })
    }

    fn span(&self) -> Option<(Timestamp, Timestamp)> {
        self.survey.span
    }

    fn progress(&self) -> Progress {
        let position = self.consumed.load(Ordering::Relaxed);
        Progress { position, size: self.reader.size().unwrap_or(0), bytes_read: position }
    }
}

/// Error for a file that cannot be read beyond an offset.
fn unread(path: &Path, error: ReadError, offset: u64) -> RecordingError {
    let path = path.to_owned();
    let is_cut = error.is_cut();
    match error {
        ReadError::Open { source, .. } => RecordingError::Open { path, source },
        ReadError::Read { source, .. } if is_cut => RecordingError::of_compression(path, offset, &source),
        ReadError::Read { source, .. } => RecordingError::Read { path, offset, source },
        ReadError::LineTooLong { .. } => {
            let reason =
                format!("a line is longer than {} MiB; is this a file of JSON lines?", MAX_LINE >> 20);
            RecordingError::Form { path, reason }
        }
    }
}
