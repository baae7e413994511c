//! Recordings in SQLite databases, as rosbag2 writes them: tables `topics` and `messages`, and in newer versions
//! `message_definitions`.
//!
//! A database is opened so that nothing is written beside it and no other program is kept from writing it. Messages are
//! read through the index of their times, by a separate thread ([`scan`]).

mod open;
mod scan;

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rondel_event::Timestamp;
use rusqlite::Connection;

use crate::recording::{
    Progress, RecordedMessage, RecordedSchema, RecordedTopic, Recording, RecordingError, Selection,
};
use crate::temporary::Space;
use scan::{Batch, Scan};

/// Maximum number of topics of a database.
const TOPICS: usize = 1 << 16;
/// Maximum size of the definition of a type, in bytes.
const DEFINITION: usize = 16 << 20;

/// A database that is being read.
pub(crate) struct SqliteRecording {
    path: PathBuf,
    file: File,
    /// Size and time of the last change when it was opened.
    state: (u64, i64, i64),
    topics: Vec<RecordedTopic>,
    /// Position of each topic, by its id in the database.
    numbers: HashMap<i64, usize>,
    selection: Selection,
    span: Option<(Timestamp, Timestamp)>,
    /// The database, until reading begins.
    database: Option<Connection>,
    stop: Arc<open::Limit>,
    scan: Option<Scan>,
    batch: Batch,
    /// Index of the next message in the batch; the one before it is the current one.
    next: usize,
    faults: VecDeque<RecordingError>,
    cut: Option<RecordingError>,
    bytes_read: u64,
    last: Timestamp,
    is_done: bool,
    _space: Option<Space>,
}

impl SqliteRecording {
    /// Opens a database and finds its topics.
    ///
    /// # Errors
    /// [`RecordingError`] if it cannot be read at all.
    pub(crate) fn open(
        path: &Path,
        content: Option<(&Path, Space)>,
    ) -> Result<SqliteRecording, RecordingError> {
        let (place, space) = content.map_or((path, None), |(place, space)| (place, Some(space)));
        let open::Opened { database, file, stop, faults, cut, space: copied } = open::open(path, place)?;
        let refused = |reason: String| RecordingError::Form { path: path.to_owned(), reason };
        let failed = |error: rusqlite::Error| refused(format!("its tables cannot be read: {error}"));
        let columns = open::columns(&database, &["topics", "messages"]).map_err(failed)?;
        let (in_topics, in_messages) = (&columns[0], &columns[1]);
        let has = |columns: &[String], names: &[&str]| {
            names.iter().all(|name| columns.iter().any(|column| column == name))
        };
        if !has(in_topics, &["id", "name", "type", "serialization_format"])
            || !has(in_messages, &["topic_id", "timestamp", "data"])
        {
            return Err(refused(
                "this SQLite database is no recording: it has not the tables `topics` and `messages` of rosbag2"
                    .to_owned(),
            ));
        }
        let definitions = definitions(&database).map_err(failed)?;
        let has_quality = has(in_topics, &["offered_qos_profiles"]);
        let (numbers, topics) = topics(&database, has_quality, &definitions).map_err(failed)?;
        let state = file.metadata().map(|metadata| state(&metadata));
        let state = state.map_err(|source| RecordingError::Open { path: path.to_owned(), source })?;
        let span = scan::span(&database);
        Ok(SqliteRecording {
            path: path.to_owned(),
            file,
            state,
            selection: Selection::of_topics(vec![true; topics.len()]),
            topics,
            numbers,
            span,
            database: Some(database),
            stop,
            scan: None,
            batch: Batch::default(),
            next: 0,
            faults: faults.into(),
            cut,
            bytes_read: 0,
            last: span.map(|(first, _)| first).unwrap_or_default(),
            is_done: false,
            _space: space.or(copied),
        })
    }

    /// Starts the reading thread.
    fn start(&mut self) {
        let Some(database) = self.database.take() else { return };
        let mut wanted: Vec<(i64, u32)> = self
            .numbers
            .iter()
            .filter(|(_, topic)| self.selection.has_topic(**topic))
            .map(|(number, topic)| (*number, *topic as u32))
            .collect();
        wanted.sort_unstable();
        let wanted = scan::Wanted {
            path: self.path.clone(),
            topics: wanted,
            known: self.numbers.keys().copied().collect(),
            from: self.selection.from.as_nanos(),
            until: self.selection.until.as_nanos(),
            // Missing messages at the end are reported as a cut.
            is_cut: self.cut.is_some(),
        };
        self.scan = Some(Scan::start(database, wanted, Arc::clone(&self.stop)));
    }

    /// Whether the file was written to since it was opened.
    fn is_changed(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| state(&metadata) != self.state)
    }
}

/// Returns the metadata that change when a file is written to.
fn state(metadata: &std::fs::Metadata) -> (u64, i64, i64) {
    (metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

/// Returns the definitions of types by name: language and text.
fn definitions(database: &Connection) -> rusqlite::Result<HashMap<String, (String, Vec<u8>)>> {
    let mut found = HashMap::new();
    let columns = open::columns(database, &["message_definitions"])?;
    let wanted = ["topic_type", "encoding", "encoded_message_definition"];
    if !wanted.iter().all(|name| columns[0].iter().any(|column| column == name)) {
        return Ok(found);
    }
    let query = "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions";
    let mut statement = database.prepare(query)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (name, language, text) = (text(row, 0)?, text(row, 1)?, text(row, 2)?);
        if !text.trim().is_empty() && text.len() <= DEFINITION && found.len() < TOPICS {
            found.entry(name).or_insert((language, text.into_bytes()));
        }
    }
    Ok(found)
}

/// Returns the topics, and their positions by id.
fn topics(
    database: &Connection,
    has_quality: bool,
    definitions: &HashMap<String, (String, Vec<u8>)>,
) -> rusqlite::Result<(HashMap<i64, usize>, Vec<RecordedTopic>)> {
    let quality = if has_quality { "offered_qos_profiles" } else { "''" };
    let query = format!("SELECT id, name, type, serialization_format, {quality} FROM topics ORDER BY id");
    let mut statement = database.prepare(&query)?;
    let mut rows = statement.query([])?;
    let (mut numbers, mut topics) = (HashMap::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let rusqlite::types::ValueRef::Integer(number) = row.get_ref(0)? else { continue };
        if numbers.contains_key(&number) || topics.len() >= TOPICS {
            continue;
        }
        let type_name = text(row, 2)?;
        let (encoding, data) = definitions.get(&type_name).cloned().unwrap_or_default();
        let quality = text(row, 4)?;
        let metadata =
            if quality.is_empty() { Vec::new() } else { vec![("offered_qos_profiles".to_owned(), quality)] };
        numbers.insert(number, topics.len());
        topics.push(RecordedTopic {
            name: text(row, 1)?,
            label: format!("topic {number}"),
            encoding: text(row, 3)?,
            schema: (!type_name.is_empty())
                .then(|| Arc::new(RecordedSchema { name: type_name, encoding, data })),
            metadata,
            ..RecordedTopic::default()
        });
    }
    Ok((numbers, topics))
}

/// Returns a text; empty for other values.
fn text(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<String> {
    let value = row.get_ref(column)?;
    let bytes = value.as_bytes_or_null().ok().flatten().unwrap_or_default();
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

impl Recording for SqliteRecording {
    fn topics(&self) -> &[RecordedTopic] {
        &self.topics
    }

    fn select(&mut self, selection: Selection) {
        self.selection = selection;
    }

    fn advance(&mut self) -> Result<Option<Timestamp>, RecordingError> {
        loop {
            if let Some(entry) = self.batch.entries.get(self.next) {
                self.next += 1;
                self.last = Timestamp::from_nanos(entry.time);
                return Ok(Some(self.last));
            }
            if let Some(fault) = self.faults.pop_front() {
                return Err(fault);
            }
            self.start();
            let Some(scan) = &self.scan else { return Ok(None) };
            match scan.next(std::mem::take(&mut self.batch)) {
                Some(Ok(batch)) => {
                    self.bytes_read += batch.data.len() as u64;
                    for (number, count) in &batch.others {
                        if let Some(topic) = self.numbers.get(number) {
                            self.topics[*topic].messages = Some(*count);
                        }
                    }
                    (self.batch, self.next) = (batch, 0);
                }
                Some(Err(fault)) => return Err(fault),
                None if self.is_done => return Ok(None),
                None => {
                    self.is_done = true;
                    if self.is_changed() {
                        let reason =
                            "it was written to while it was read: messages may be missing".to_owned();
                        let path = self.path.clone();
                        self.faults.push_back(RecordingError::Damage {
                            path,
                            offset: 0,
                            reason,
                            topics: Vec::new(),
                        });
                    }
                    self.faults.extend(self.cut.take());
                }
            }
        }
    }

    fn message(&self) -> Option<RecordedMessage<'_>> {
        let entry = self.batch.entries.get(self.next.checked_sub(1)?)?;
        let time = Timestamp::from_nanos(entry.time);
        Some(RecordedMessage {
            topic: entry.topic as usize,
            log_time: time,
            publish_time: time,
            is_timed: true,
            sequence: 0,
            payload: self.batch.data.get(entry.start..entry.end)?,
        })
    }

    fn span(&self) -> Option<(Timestamp, Timestamp)> {
        self.span
    }

    fn progress(&self) -> Progress {
        let size = self.state.0;
        let of = |time: Timestamp, first: Timestamp| time.as_nanos().saturating_sub(first.as_nanos()).max(0);
        let position = match self.span {
            Some((first, last)) if last > first => {
                (size as f64 * of(self.last, first) as f64 / of(last, first) as f64) as u64
            }
            _ => 0,
        };
        Progress { position: position.min(size), size, bytes_read: self.bytes_read }
    }
}

impl Drop for SqliteRecording {
    fn drop(&mut self) {
        self.stop.is_stopped.store(true, Ordering::Relaxed);
    }
}
