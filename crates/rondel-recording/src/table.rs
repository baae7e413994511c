//! Tables with separated values: a row is a message, a column a field. Messages are JSON.
//!
//! The topic of a row is given by a column `topic`, by the user, or by the name of the file. In tables exported by
//! PlotJuggler, columns have names such as `/odom/twist/linear/x`, and a row has the messages of all topics at one
//! time.

mod cells;
mod columns;
mod influx;
mod input;
mod layout;
mod long;
#[cfg(feature = "parquet")]
mod parquet;
mod survey;
mod times;

#[cfg(feature = "parquet")]
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use csv::ByteRecord;
use rondel_event::{TimeUnit, Timestamp};

use crate::recording::{
    Progress, RecordedMessage, RecordedTopic, Recording, RecordingError, Selection, WantedField, shown,
};
use columns::{Columns, ColumnsError, Shape};
use input::{Rows, Unreadable};
use layout::{Form, Layout};

pub(crate) use input::is_recording;
pub use input::is_table;
pub(crate) use times::Times;
pub use times::check_time_format;

/// Options for tables.
#[derive(Clone, Copy, Default)]
pub struct TableOptions<'a> {
    /// Topic of all rows.
    pub topic: Option<&'a str>,
    /// Topic of a table that does not name one.
    pub only_topic: Option<&'a str>,
    /// Column with the times; or two, separated by a comma, with dates and with times of day.
    pub time: Option<&'a str>,
    /// Format of the times, as in `strptime`.
    pub time_format: Option<&'a str>,
    /// Names of the columns of a table without a header.
    pub columns: &'a [String],
    /// Unit of times that are plain numbers.
    pub unit: Option<TimeUnit>,
    /// Returns whether a name is that of a topic, to find topics in the names of columns.
    pub is_topic: Option<&'a dyn Fn(&str) -> bool>,
}

/// A table that is being read.
pub struct TableRecording {
    path: PathBuf,
    rows: Rows,
    consumed: Arc<AtomicU64>,
    size: u64,
    topics: Vec<RecordedTopic>,
    columns: Columns,
    layouts: Vec<Layout>,
    times: Times,
    selection: Selection,
    span: Option<(Timestamp, Timestamp)>,
    row: ByteRecord,
    /// First topic of the row whose message has not been returned yet.
    next_topic: usize,
    time: Timestamp,
    /// Whether the row itself has a time.
    is_timed: bool,
    /// Date and time of the row joined, if they are in two columns.
    joined: Vec<u8>,
    current: usize,
    payload: Vec<u8>,
    is_done: bool,
    /// Line and reason of a fault that prevents reading, until it is reported.
    fault: Option<(u64, String)>,
    is_begun: bool,
    /// Error about a wanted column that cannot be read, until it is reported.
    #[cfg(feature = "parquet")]
    unread: Option<String>,
}

impl TableRecording {
    /// Opens a table and finds its topics.
    ///
    /// # Errors
    /// [`RecordingError`] if it cannot be read at all.
    pub fn open(path: &Path, options: &TableOptions<'_>) -> Result<TableRecording, RecordingError> {
        let refused = |reason: String| RecordingError::Form { path: path.to_owned(), reason };
        let source = input::Source { path, columns: options.columns };
        let input::Opened { mut rows, separator, consumed, size } = source.open()?;
        let mut header = ByteRecord::new();
        let is_there = rows.read(&mut header).map_err(|error| error.at(path, 0))?;
        if !is_there {
            return Err(refused("this table is empty: its first line must name the columns".to_owned()));
        }
        if rows.is_open() {
            let reason = "its first line must name the columns, and the file ends in a quoted cell of it";
            return Err(refused(reason.to_owned()));
        }
        let wrong = |wrong: ColumnsError| match wrong {
            ColumnsError::Header(reason) => refused(reason),
            ColumnsError::Choice(reason) => RecordingError::Choice { path: path.to_owned(), reason },
        };
        let mut columns = Columns::new(&header, separator, options).map_err(wrong)?;
        let timeless = match columns.timeless(options.time) {
            Some(chosen @ ColumnsError::Choice(_)) => return Err(wrong(chosen)),
            Some(ColumnsError::Header(reason)) => Some((1, reason)),
            None => None,
        };
        columns.take(&mut rows, options);
        let survey::Ends { first, last } = columns.ends(source, options)?;
        let (names, layouts) = survey::named(source, &columns, options)?;
        let time_field = options.time.filter(|_| columns.is_chosen);
        let topic = |(name, messages): (String, Option<u64>)| RecordedTopic {
            name,
            encoding: "json".to_owned(),
            is_rows: true,
            may_lack_times: true,
            messages,
            time_field: time_field.map(str::to_owned),
            ..RecordedTopic::default()
        };
        let topics: Vec<RecordedTopic> = names.into_iter().map(topic).collect();
        let times = match options.time_format {
            Some(format) => Times::in_format(format),
            None => Times::new(columns.unit.or(options.unit), first.as_deref(), separator == b';'),
        };
        let of = |cell: &Option<Vec<u8>>| times.time(cell.as_ref()?).map(Timestamp::from_nanos);
        let span = of(&first).map(|first| (first, of(&last).map_or(first, |last| last.max(first))));
        let next_topic = topics.len();
        Ok(TableRecording {
            path: path.to_owned(),
            rows,
            consumed,
            size,
            selection: Selection::of_topics(vec![true; topics.len()]),
            topics,
            fault: timeless,
            is_begun: false,
            #[cfg(feature = "parquet")]
            unread: None,
            columns,
            layouts,
            times,
            span,
            row: ByteRecord::new(),
            next_topic,
            time: Timestamp::default(),
            is_timed: true,
            joined: Vec::new(),
            current: 0,
            payload: Vec::new(),
            is_done: false,
        })
    }

    /// Reads the next row and its time; returns whether there was one in the time span.
    fn read(&mut self) -> Result<bool, RecordingError> {
        let offset = self.consumed.load(Ordering::Relaxed);
        match self.rows.read(&mut self.row) {
            Ok(true) => {}
            Ok(false) => {
                self.is_done = true;
                return Ok(false);
            }
            Err(Unreadable::Row(line, reason)) => {
                let topics = self.selected();
                return Err(RecordingError::Row { path: self.path.clone(), line, reason, topics });
            }
            #[cfg(feature = "parquet")]
            Err(Unreadable::Part(error)) => return Err(error.about(self.selected())),
            Err(error) => {
                self.is_done = true;
                return Err(error.at(&self.path, offset));
            }
        }
        if self.rows.is_open() {
            self.is_done = true;
            return Err(self.unclosed());
        }
        let (own, expected) = (self.row.len(), self.columns.names.len());
        if own != expected {
            let cells = if own == 1 { "cell" } else { "cells" };
            return Err(self.wrong(format!("the row has {own} {cells}, and the header {expected}")));
        }
        if let Some(of) = self.columns.time {
            if let Some(lacking) = of.lacking(&self.row) {
                let [lacking, there] = lacking.map(|column| &*self.columns.names[column]);
                let reason = format!(
                    "the cell in column `{lacking}` is empty, and that in column `{there}` is not: a time has both"
                );
                return Err(self.wrong(reason));
            }
            let cell = of.cell(&self.row, &mut self.joined);
            self.is_timed = !cell.is_empty();
            if self.is_timed {
                let Some(time) = self.times.time(cell) else {
                    let reason = self.times.refused(cell, &self.columns.names[of.time]);
                    return Err(self.wrong(reason));
                };
                self.time = Timestamp::from_nanos(time);
            }
        }
        let Selection { from, until, .. } = &self.selection;
        Ok((*from..=*until).contains(&self.time))
    }

    /// Returns the error that the row cannot be used.
    fn wrong(&self, reason: String) -> RecordingError {
        let line = self.row.position().map_or(0, csv::Position::line);
        let topics = self.of_cell().map_or_else(|| self.selected(), |topic| vec![topic]);
        #[cfg(feature = "parquet")]
        if let Rows::Parquet(rows) = &self.rows {
            let reason = format!("row {}: {reason}", rows.number());
            return RecordingError::Damage { path: self.path.clone(), offset: 0, reason, topics };
        }
        RecordingError::Row { path: self.path.clone(), line, reason, topics }
    }

    /// Returns the error that the file ends in a quoted cell of the row.
    fn unclosed(&self) -> RecordingError {
        let cell = self.row.iter().next_back().unwrap_or_default();
        let inside = cell.iter().filter(|byte| **byte == b'\n').count() as u64;
        // Both count the line break added at the end.
        let end = match &self.rows {
            Rows::Separated(rows, _) => rows.position().line(),
            Rows::Long(rows) => rows.line(),
            Rows::Influx(_) => 0,
            #[cfg(feature = "parquet")]
            Rows::Parquet(rows) => rows.number(),
        };
        let line = end.saturating_sub(inside);
        let cell = cell.trim_ascii_end();
        let last = line + cell.iter().filter(|byte| **byte == b'\n').count() as u64;
        let reason = format!(
            "the quotation mark before {} is not closed: the file ends in line {last}, and nothing from here on is read",
            cells::shown(cell)
        );
        RecordingError::Row { path: self.path.clone(), line, reason, topics: self.selected() }
    }

    /// Returns the topics that are read.
    fn selected(&self) -> Vec<usize> {
        (0..self.topics.len()).filter(|topic| self.selection.has_topic(*topic)).collect()
    }

    /// Prepares reading, once the selection is known.
    fn begin(&mut self) {
        self.is_begun = true;
        let numbered = self.topics.iter().enumerate();
        self.columns.by_name = numbered.map(|(topic, of)| (of.name.clone().into_bytes(), topic)).collect();
        #[cfg(feature = "parquet")]
        if let Rows::Parquet(rows) = &mut self.rows {
            let with_all = self.columns.shape == Shape::ByColumn;
            let selected = (0..self.topics.len()).filter(|topic| self.selection.has_topic(*topic));
            let mut needed: HashSet<usize> =
                selected.flat_map(|topic| self.layouts[topic].columns(with_all)).collect();
            needed.extend(self.columns.time.into_iter().flat_map(|of| of.date.into_iter().chain([of.time])));
            if let Shape::ByCell(column) = self.columns.shape {
                needed.insert(column);
            }
            rows.only(|column| needed.contains(&column));
        }
    }

    /// Returns the error that the row names no topic.
    fn without_topic(&self) -> RecordingError {
        let Shape::ByCell(column) = self.columns.shape else { return self.wrong(String::new()) };
        let (cell, name) = (self.row.get(column).unwrap_or_default(), &self.columns.names[column]);
        self.wrong(match cell.trim_ascii() {
            b"" => format!(
                "the cell in column `{name}`, which names the topic, is empty; --topic names that of all rows"
            ),
            cell => format!("the topic {} was not there before", cells::shown(cell)),
        })
    }

    /// Returns the topic that the row names.
    fn of_cell(&self) -> Option<usize> {
        let Shape::ByCell(column) = self.columns.shape else { return None };
        let name = Some(self.row.get(column)?.trim_ascii()).filter(|name| !name.is_empty())?;
        let is_it =
            |topic: &usize| self.topics.get(*topic).is_some_and(|topic| topic.name.as_bytes() == name);
        Some(self.current).filter(is_it).or_else(|| self.columns.by_name.get(name).copied())
    }

    /// Writes the message of a topic in the row; returns whether there is one.
    fn write(&mut self, topic: usize) -> Result<bool, RecordingError> {
        self.payload.clear();
        if matches!(self.columns.shape, Shape::ByColumn) && !self.layouts[topic].is_in(&self.row) {
            return Ok(false);
        }
        match self.layouts[topic].write(&self.row, &mut self.payload) {
            Ok(()) => {
                self.current = topic;
                Ok(true)
            }
            Err(column) => {
                let name = self.columns.names.get(column).cloned().unwrap_or_default();
                Err(self.wrong(format!("the cell in column `{name}` is no UTF-8 text")))
            }
        }
    }
}

impl Columns {
    /// Applies the properties of columns that the file states beside their names.
    fn take(&mut self, rows: &mut Rows, options: &TableOptions<'_>) {
        match rows {
            Rows::Influx(rows) => {
                if rows.has_measurements && options.topic.is_none() {
                    self.shape = Shape::ByCell(influx::MEASUREMENT);
                }
                self.forms = rows.kinds.iter().map(|kind| Form::Cell(*kind)).collect();
            }
            #[cfg(feature = "parquet")]
            Rows::Parquet(rows) => {
                // Texts of these columns are not fields.
                if let Shape::ByCell(topic) = self.shape {
                    rows.take_names(topic);
                }
                if let Some(date) = self.time.and_then(|of| of.date) {
                    rows.take_names(date);
                }
                if self.time.is_some_and(|of| rows.take_times(of.time)) {
                    self.unit = Some(TimeUnit::Nanoseconds);
                }
                self.forms = rows.forms();
            }
            Rows::Separated(..) | Rows::Long(_) => {}
        }
    }
}

impl Recording for TableRecording {
    fn topics(&self) -> &[RecordedTopic] {
        &self.topics
    }

    fn select(&mut self, selection: Selection) {
        self.selection = selection;
    }

    fn want(&mut self, topic: usize, fields: &[WantedField]) {
        #[cfg(feature = "parquet")]
        if let Rows::Parquet(rows) = &self.rows {
            let names = rows.unread(fields);
            if !names.is_empty() {
                let names = names.join("`, `");
                self.unread = Some(format!(
                    "column `{names}` is not read: of lists only those of plain values are, and no bytes of fixed length"
                ));
            }
        }
        if let Some(layout) = self.layouts.get_mut(topic) {
            layout.want(fields);
        }
    }

    fn advance(&mut self) -> Result<Option<Timestamp>, RecordingError> {
        if let Some((line, reason)) = self.fault.take() {
            self.is_done = true;
            return Err(RecordingError::Row {
                path: self.path.clone(),
                line,
                reason,
                topics: self.selected(),
            });
        }
        if !self.is_begun {
            self.begin();
        }
        #[cfg(feature = "parquet")]
        if let Some(reason) = self.unread.take() {
            let topics = self.selected();
            return Err(RecordingError::Damage { path: self.path.clone(), offset: 0, reason, topics });
        }
        loop {
            while self.next_topic < self.topics.len() {
                let topic = self.next_topic;
                self.next_topic += 1;
                if self.selection.has_topic(topic) && self.write(topic)? {
                    return Ok(Some(self.time));
                }
            }
            if self.is_done {
                return Ok(None);
            }
            if !self.read()? {
                continue;
            }
            match self.columns.shape {
                Shape::ByColumn | Shape::One => self.next_topic = 0,
                Shape::ByCell(_) => {
                    let Some(topic) = self.of_cell() else { return Err(self.without_topic()) };
                    if self.selection.has_topic(topic) && self.write(topic)? {
                        return Ok(Some(self.time));
                    }
                }
            }
        }
    }

    fn message(&self) -> Option<RecordedMessage<'_>> {
        Some(RecordedMessage {
            topic: self.current,
            log_time: self.time,
            publish_time: self.time,
            is_timed: self.is_timed,
            sequence: 0,
            payload: &self.payload,
        })
    }

    fn place(&self, _offset: Option<usize>) -> Option<String> {
        #[cfg(feature = "parquet")]
        if let Rows::Parquet(rows) = &self.rows {
            return Some(format!("{}, row {}", shown(&self.path), rows.number()));
        }
        let line = self.row.position()?.line();
        Some(format!("{}:{line}", shown(&self.path)))
    }

    fn span(&self) -> Option<(Timestamp, Timestamp)> {
        self.span
    }

    fn progress(&self) -> Progress {
        let position = self.consumed.load(Ordering::Relaxed);
        Progress { position, size: self.size, bytes_read: position }
    }
}
