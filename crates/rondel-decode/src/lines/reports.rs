//! Counts and reports of a trace: lines that cannot be used, messages that were not read, and values of another type
//! than the program reads.

use std::fmt;

use rondel_event::{Origin, Rows, Slot, Timestamp, TopicId};

use super::Lines;
use crate::json::JsonErrorKind;
use crate::sink::NoNumber;

/// Reason why a message in a recording was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnseenCause {
    /// Its payload cannot be decoded.
    Undecodable,
    /// Its payload has this size in bytes, which exceeds the limit.
    TooLarge(usize),
    /// Its line cannot be used and was skipped.
    Skipped,
}

/// A value of another type than the program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mistyped {
    /// The topic of its message.
    pub topic: TopicId,
    /// The column of its field.
    pub slot: Slot,
    /// If that is a [table](rondel_event::Table), its field, by its position.
    pub member: Option<u16>,
    /// Whether it is an integer that a double rounds.
    pub is_inexact: bool,
    /// The text, if it is not a number although one is read.
    pub no_number: Option<NoNumber>,
    /// The time of its message.
    pub time: Timestamp,
    /// The row of its message in the block.
    pub(super) row: usize,
}

/// A message in a recording that was not read, or that a skipped line may have contained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// The reason.
    pub cause: UnseenCause,
    /// Number of its line, from 1.
    pub line: u64,
    /// The row before which it occurred.
    pub row: usize,
    /// Its topic, if known.
    pub topic: Option<TopicId>,
    /// Its publisher and number, if the line states them.
    pub origin: Option<Origin>,
}

/// Reason why a line cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineError {
    /// Number of the line, from 1.
    pub line: u64,
    /// Number of the byte in the line, from 1.
    pub column: usize,
    /// Description of the error.
    pub kind: LineErrorKind,
}

/// Kind of an error in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineErrorKind {
    /// The line is not JSON, or in no form of a line.
    Json(JsonErrorKind),
    /// The line names no topic although the specification has several.
    NoTopic,
}

impl fmt::Display for LineErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineErrorKind::Json(kind) => kind.fmt(f),
            LineErrorKind::NoTopic => f.write_str(
                "the line names no topic and the specification has several; \
                 add a member such as \"topic\": \"NAME\"",
            ),
        }
    }
}

impl Lines {
    /// Returns the number of lines read so far of this trace.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Returns the names of the topics that are not read, with the number of lines of each.
    pub fn other_topics(&self) -> impl Iterator<Item = (&str, u64)> {
        let counts = self.shapes.other_counts().iter().copied().chain(std::iter::repeat(0));
        self.others.iter().map(String::as_str).zip(counts)
    }

    /// Returns the rows of the last call whose lines have no time.
    pub fn take_untimed(&mut self) -> Rows {
        std::mem::take(&mut self.untimed)
    }

    /// Returns the origin of the message in a row of the last call, if the line states it.
    pub fn origin(&self, row: usize) -> Option<Origin> {
        let at = self.origins.binary_search_by_key(&row, |(row, _)| *row).ok()?;
        self.origins.get(at).map(|(_, origin)| *origin)
    }

    /// Returns the origins of the messages of the last call, with their rows.
    pub fn origins(&self) -> &[(usize, Origin)] {
        &self.origins
    }

    /// Returns the messages of the last call that could not be read, or that skipped lines may have contained.
    pub fn unseen(&self) -> &[Unseen] {
        &self.unseen
    }

    /// Returns the number of values on each topic of another type than the program reads; topics beyond the end have
    /// none.
    pub fn mistyped(&self) -> &[u64] {
        self.shapes.mistyped()
    }

    /// Returns the number of array elements omitted by the last call from conditions and measures because they are
    /// null, by topic.
    pub fn left_out(&self) -> &[(TopicId, u64)] {
        &self.left_out
    }

    /// Returns the first value of another type than the program reads, for each topic with one in the last
    /// [`Lines::take`].
    pub fn first_mistyped(&self) -> &[Mistyped] {
        &self.first_mistyped
    }

    /// Returns the number of lines whose payload could not be decoded, of forms where that is no error of the line.
    pub fn undecodable(&self) -> u64 {
        self.undecodable
    }

    /// Returns the number of messages without a payload, which are ignored.
    pub fn empty(&self) -> u64 {
        self.empty
    }

    /// Returns the number of skipped invalid lines, and the error of the first.
    pub fn skipped(&self) -> (u64, Option<&LineError>) {
        (self.skipped.0, self.skipped.1.as_ref())
    }

    /// Returns the line, from 1, of the first payload that could not be decoded, and the reason.
    pub fn first_undecodable(&self) -> Option<(u64, &str)> {
        self.first_undecodable.as_ref().map(|(line, reason)| (*line, reason.as_str()))
    }

    /// Returns the reason why the message of this line was not read; empty if it is no longer known.
    pub fn why_unseen(&self, line: u64) -> String {
        let undecodable = self.first_undecodable.as_ref().filter(|(first, _)| *first == line);
        let skipped = self.skipped.1.as_ref().filter(|error| error.line == line);
        let undecodable = undecodable.map(|(_, reason)| reason.clone());
        undecodable
            .or_else(|| skipped.map(|error| format!("column {}: {}", error.column, error.kind)))
            .unwrap_or_default()
    }
}
