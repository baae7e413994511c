//! Topics and fields of a recording.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rondel_decode::Encoding;
use rondel_event::Timestamp;
use rondel_recording::{
    OpenError, Opened, RecordedTopic, Recording, RecordingError, Selection, TableOptions, TraceReader,
};
use rondel_runtime::survey::{PayloadKind, RecordedSurvey, Survey, Unreadable};
use rondel_runtime::text::counted;

use super::super::selecting::span;
use crate::recorder::ADDRESS;
use crate::schemas::Schemas;
use crate::schemas::offered;
use crate::schemas::recorded_types::encoding;
use crate::{complain, exit, warn};

/// A survey with a recording.
pub struct Surveyed {
    /// The survey.
    pub survey: Survey,
    /// Whether the recording has no further messages.
    #[cfg_attr(not(any(feature = "lsp", feature = "repl")), allow(dead_code))]
    pub is_whole: bool,
    /// Whether a part of it could not be read; the error was reported.
    pub is_damaged: bool,
    /// Place of the first line that could not be read.
    pub unreadable: Option<String>,
}

/// The part of a recording to survey.
#[derive(Clone, Copy)]
pub struct Part<'p> {
    /// Maximum size of messages, in bytes.
    pub most: u64,
    /// The first time, as `--from` writes it.
    pub from: Option<&'p str>,
    /// The last time, as `--to` writes it.
    pub to: Option<&'p str>,
    /// Options for tables.
    pub tables: TableOptions<'p>,
}

impl Part<'_> {
    /// The first bytes of a recording.
    #[cfg(any(feature = "lsp", feature = "repl"))]
    pub fn first(most: u64) -> Part<'static> {
        Part { most, from: None, to: None, tables: TableOptions::default() }
    }

    /// The first and the last time in a recording that begins at a time.
    fn span(&self, begin: Timestamp) -> Result<(Timestamp, Timestamp), String> {
        span([("--from", self.from), ("--to", self.to)], begin)
    }
}

/// Adds a part of a recording to a survey.
///
/// # Errors
/// The exit status, after the reason was shown.
pub fn survey(
    file: &Path,
    survey: Survey,
    schemas: Option<&Arc<Mutex<Schemas>>>,
    part: Part<'_>,
) -> Result<Surveyed, u8> {
    let opened = rondel_recording::open_with(file, &part.tables).map_err(|error| match error {
        OpenError::Messages(RecordingError::Choice { .. }) => misused(&error.to_string()),
        _ => unread(&error),
    })?;
    match opened {
        Opened::Lines(reader) => lines(file, reader, survey, part),
        Opened::Messages(recording) => messages(recording, survey, schemas, part),
    }
}

/// Reports why a part of a recording cannot be selected; returns the exit status.
fn misused(error: &str) -> u8 {
    complain(error);
    exit::USAGE
}

/// The messages of a recording.
fn messages(
    mut recording: Box<dyn Recording>,
    mut survey: Survey,
    schemas: Option<&Arc<Mutex<Schemas>>>,
    part: Part<'_>,
) -> Result<Surveyed, u8> {
    let most = part.most;
    let topics = recording.topics().to_vec();
    let addresses: Vec<String> = topics.iter().map(recorded_address).collect();
    for (recorded, address) in topics.iter().zip(&addresses) {
        let Some(topic) = survey.topic(address) else { continue };
        if !topic.is_of_node() {
            topic.name = Some(recorded.name.clone());
        }
        let profiles = recorded.metadata.iter().find(|(name, _)| name == offered::PROFILES);
        topic.qos = profiles.and_then(|(_, text)| {
            offered::described(text).unwrap_or_else(|error| {
                warn(&format!("{}: cannot read {}: {error}", recorded.name, offered::PROFILES));
                None
            })
        });
        match encoding(recorded) {
            Some(Encoding::Ros1) => {
                let is_ulog = recorded.encoding == "ulog";
                topic.set_kind(if is_ulog { PayloadKind::Ulog } else { PayloadKind::Ros1 });
            }
            Some(Encoding::Xml) => topic.set_xml(),
            Some(Encoding::Avro) if recorded.schema.is_none() => topic.expect_framing(),
            _ => {}
        }
        let Some(schema) = recorded.schema.as_ref().filter(|_| !topic.is_of_node()) else { continue };
        topic.message_type = Some(schema.name.clone());
        let Some(encoding) = encoding(recorded).filter(|encoding| encoding.needs_schema()) else {
            continue;
        };
        let Some(schemas) = schemas else { continue };
        match schemas.lock().unwrap_or_else(PoisonError::into_inner).recorded(schema, encoding) {
            Ok(message_type) => topic.describe(Arc::new(message_type)),
            Err(error) => warn(&format!("{}: {error}", recorded.name)),
        }
    }
    let mut selection = Selection::of_topics(vec![true; topics.len()]);
    if let Some((begin, _)) = recording.span() {
        (selection.from, selection.until) = part.span(begin).map_err(|error| misused(&error))?;
        survey.begin_at(begin);
    }
    let last = selection.until;
    recording.select(selection);
    let mut unreadable = (0, None);
    let (mut read, mut is_damaged) = (0, false);
    while read < most {
        match recording.next() {
            Ok(Some(message)) => {
                survey.message(&addresses[message.topic], message.log_time, message.payload, None);
                read = read.saturating_add(message.payload.len() as u64);
            }
            Ok(None) => break,
            Err(error @ RecordingError::Row { .. }) => {
                unreadable.0 += 1;
                unreadable.1.get_or_insert(error);
            }
            // The readable rest is examined.
            Err(error @ RecordingError::Damage { .. }) => {
                warn(&error.to_string());
                is_damaged = true;
            }
            Err(error @ RecordingError::Cut { .. }) => {
                warn(&format!("{error}; it is looked at up to there"));
                is_damaged = true;
                break;
            }
            Err(error) => return Err(unread(&error)),
        }
    }
    if let (rows, Some(first)) = unreadable {
        let rows = counted(rows, "row is", "rows are");
        warn(&format!("{rows} left out; the first is {first}"));
        is_damaged = true;
    }
    survey.end_at(recording.end().until.filter(|until| read < most && *until <= last));
    Ok(Surveyed { survey, is_whole: read < most, is_damaged, unreadable: None })
}

/// The lines of a recording.
fn lines(file: &Path, mut reader: TraceReader, survey: Survey, part: Part<'_>) -> Result<Surveyed, u8> {
    let choice = |begin| part.span(begin);
    let mut survey = RecordedSurvey::after(survey, &choice);
    let (mut read, most) = (0, part.most);
    while read < most
        && let Some(piece) = reader.lines().map_err(|error| unread(&error))?
    {
        let end = piece.end;
        let text = &piece.text[piece.start..end];
        let mut lines = text.split_inclusive(|byte| *byte == b'\n');
        lines.try_for_each(|line| survey.line(line)).map_err(|error| misused(&error))?;
        read = read.saturating_add(text.len() as u64);
        reader.used(end);
    }
    let (survey, Unreadable { count, first }) = survey.end();
    let is_damaged = count > 0;
    if is_damaged {
        let (file, lines) = (file.display(), counted(count, "line", "lines"));
        warn(&format!(
            "{file}: {lines} could not be read as messages and are left out, the first is line {first}"
        ));
    }
    let unreadable = is_damaged.then(|| format!("{}:{first}", file.display()));
    Ok(Surveyed { survey, is_whole: read < most, is_damaged, unreadable })
}

/// Returns the address of a recorded topic: as noted by its recorder, on ROS 2 by its type, otherwise the name alone.
fn recorded_address(topic: &RecordedTopic) -> String {
    let noted = topic.metadata.iter().find(|(name, _)| name == ADDRESS).map(|(_, address)| address);
    let address = noted.and_then(|noted| {
        let (network, own) = noted.split_once(':')?;
        // The name of the topic replaces a pattern; the address on ROS 2 follows from its type below. The encoding in the
        // prefix is dropped: the recording states it.
        let is_pattern = own.contains(['*', '+', '#', '?', '$', '{']);
        let is_of_ros2 = network == "dds" && topic.name.starts_with('/');
        match (is_pattern, is_of_ros2) {
            (true, true) => None,
            (true, false) => Some(format!("{}:{}", network.split('+').next().unwrap_or(network), topic.name)),
            (false, _) => Some(format!("{}:{own}", network.split('+').next().unwrap_or(network))),
        }
    });
    if let Some(address) = address {
        return address;
    }
    let is_ros2 = topic.schema.as_ref().is_some_and(|schema| schema.name.contains("/msg/"));
    if is_ros2 && topic.encoding == "cdr" { format!("ros2:{}", topic.name) } else { topic.name.clone() }
}

/// Reports why a recording cannot be read; returns the exit status.
fn unread(error: &dyn std::fmt::Display) -> u8 {
    complain(&error.to_string());
    exit::TRACE
}
