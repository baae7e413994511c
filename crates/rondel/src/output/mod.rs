//! Output for people and programs: verdicts as text, messages, summaries and exit statuses.

pub mod blocks;
pub mod exit;
pub mod folder;
pub mod summary;
pub mod terminal;
pub mod time_text;

use std::borrow::Cow;
use std::io::{self, Write};

use rondel_event::terminal::{escaped, escaped_json};
use rondel_event::{Timestamp, Verdict};
use rondel_runtime::text::{value_text, write_count, write_parameters, write_seconds};
use rondel_runtime::{PropertyInfo, Report};

use crate::output::time_text::{TimeText, is_calendar, offset};

/// Writes verdicts as lines of text or JSON.
#[derive(Clone, Debug)]
pub struct VerdictWriter {
    format: Format,
    colour: bool,
    /// The name of each property, padded to its column.
    columns: Vec<Vec<u8>>,
    times: TimeText,
    /// The beginning of the recording, from which offsets are counted, once it is known.
    begin: Option<Timestamp>,
    /// The number of columns of a table.
    width: usize,
    /// The position and time written last, with their text: one event often changes several verdicts.
    last_point: Option<(Option<u64>, Timestamp, Vec<u8>)>,
}

impl VerdictWriter {
    /// Creates a writer for these properties, in this format; `colour` for text on a terminal.
    pub fn new(properties: &[PropertyInfo], format: Format, colour: bool) -> VerdictWriter {
        let column = |property: &PropertyInfo| {
            let mut column = Vec::new();
            padded(&mut column, |out| out.extend_from_slice(property.name.as_bytes()));
            column
        };
        VerdictWriter {
            format,
            colour,
            columns: properties.iter().map(column).collect(),
            times: TimeText::default(),
            begin: None,
            width: terminal::width(),
            last_point: None,
        }
    }

    /// Sets the beginning of the recording: times of the calendar are offsets from there.
    pub fn set_begin(&mut self, begin: Option<Timestamp>) {
        if self.begin != begin {
            (self.begin, self.last_point) = (begin, None);
        }
    }

    /// Appends a line with its line break.
    pub fn write(&mut self, report: &Report<'_>, out: &mut Vec<u8>) {
        match self.format {
            Format::Json => {
                let begin = out.len();
                report.json(out);
                escape_from(out, begin);
                out.push(b'\n');
            }
            Format::Text => self.text(report, out),
        }
    }

    /// Appends a line of text with its line break, and the explanation below it. Not inlined: the many registers that it
    /// needs would be saved for JSON as well.
    #[inline(never)]
    fn text(&mut self, report: &Report<'_>, out: &mut Vec<u8>) {
        // By hand and not by `write!`, and in few pieces: where one event in ten is a violation, this took a
        // fifth of the time.
        let word = match report.verdict() {
            Verdict::Satisfied => b"satisfied     ",
            Verdict::Violated => b"violated      ",
            Verdict::Inconclusive => b"inconclusive  ",
        };
        if self.colour {
            let (word, blanks) = word.split_at(12);
            for part in [colour_of(report.verdict()).as_bytes(), word, b"\x1b[0m", blanks] {
                out.extend_from_slice(part);
            }
        } else {
            out.extend_from_slice(word);
        }
        if report.parameters().is_empty() {
            let column = self.columns.get(report.property().position as usize);
            out.extend_from_slice(column.map_or(&[][..], Vec::as_slice));
        } else {
            padded(out, |out| {
                out.extend_from_slice(report.property().name.as_bytes());
                write_parameters(report.parameters(), out);
            });
        }
        let (step, time) = (report.step(), report.time());
        match &self.last_point {
            Some((last, at, text)) if (*last, *at) == (step, time) => out.extend_from_slice(text),
            _ => {
                let start = out.len();
                self.write_point(step, time, out);
                let mut text = self.last_point.take().map_or_else(Vec::new, |(_, _, text)| text);
                text.clear();
                text.extend_from_slice(&out[start..]);
                self.last_point = Some((step, time, text));
            }
        }
        if let Some(about) = report.about() {
            out.extend_from_slice(b", about ");
            self.write_time(about, out);
        }
        if let Some(robustness) = report.robustness() {
            // Writing to a vector does not fail.
            let _ = write!(out, ", robustness {robustness}");
        }
        for (name, value) in report.values() {
            let _ = write!(out, ", {name} = {}", value_text(value));
        }
        if let Some(latency) = report.latency() {
            out.extend_from_slice(b", latency ");
            out.extend_from_slice(value_text(&rondel_event::Value::Duration(latency)).as_bytes());
        }
        if let Some(topic) = report.missing() {
            out.extend_from_slice(b", missing on ");
            out.extend_from_slice(topic.as_bytes());
        }
        for (name, value) in
            [("severity", &report.property().severity), ("requirement", &report.property().requirement)]
        {
            if let Some(value) = value {
                let _ = write!(out, ", {name} {}", escaped(value));
            }
        }
        if report.lap() > 1 {
            let _ = write!(out, ", lap {}", report.lap());
        }
        if let Some(other) = report.because_of() {
            let _ = write!(out, " (because of {other})");
        }
        out.push(b'\n');
        if let Some(explanation) = report.explanation() {
            let times = &mut self.times;
            let shown = &mut |time| match times.time_of_day(time) {
                Some(local) => (offset(time, explanation.begin), Some(local)),
                None => (times.text(time), None),
            };
            explanation.text(self.width, shown, out);
        }
    }

    /// Appends the position of an event and its time.
    fn write_point(&mut self, step: Option<u64>, time: Timestamp, out: &mut Vec<u8>) {
        match step {
            None => out.extend_from_slice(b"                 time "),
            Some(step) if step < 1_000_000_000 => {
                let mut column = *b"step         0   time ";
                let (mut place, mut rest) = (13, step as u32);
                while rest > 0 {
                    column[place] = b'0' + (rest % 10) as u8;
                    (place, rest) = (place - 1, rest / 10);
                }
                out.extend_from_slice(&column);
            }
            Some(step) => {
                out.extend_from_slice(b"step ");
                write_count(step, out);
                out.extend_from_slice(b"   time ");
            }
        }
        self.write_time(time, out);
    }

    /// Appends a time: one of the calendar by its offset, and as local time.
    fn write_time(&mut self, time: Timestamp, out: &mut Vec<u8>) {
        match self.begin.filter(|_| is_calendar(time)) {
            Some(begin) => {
                let offset = Timestamp::from_nanos(time.as_nanos().saturating_sub(begin.as_nanos()));
                out.extend_from_slice(if offset < Timestamp::ZERO { b"" } else { b"+" });
                write_seconds(offset, out);
                out.extend_from_slice(b" s (");
                self.times.write(time, out);
                out.push(b')');
            }
            None => self.times.write(time, out),
        }
    }
}

/// Escapes the characters of a JSON text, from this byte on, that a terminal obeys. JSON itself escapes none beyond ASCII.
fn escape_from(out: &mut Vec<u8>, begin: usize) {
    let json = out.get(begin..).unwrap_or_default();
    if json.is_ascii() && !json.contains(&0x7f) {
        return;
    }
    if let Ok(Cow::Owned(escaped)) = std::str::from_utf8(json).map(escaped_json) {
        out.truncate(begin);
        out.extend_from_slice(escaped.as_bytes());
    }
}

/// Appends a name, and blanks up to the next column, at least one.
fn padded(out: &mut Vec<u8>, name: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    name(out);
    // A byte that does not begin a character continues one.
    let characters = out[begin..].iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
    out.resize(out.len() + 33_usize.saturating_sub(characters).max(1), b' ');
}

/// The colour of a verdict on a terminal: green, red, yellow.
pub fn colour_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Satisfied => "\x1b[32m",
        Verdict::Violated => "\x1b[1;31m",
        Verdict::Inconclusive => "\x1b[33m",
    }
}

/// The format of verdicts and summaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Lines for people, coloured on a terminal
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// The verdicts that are emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Emit {
    /// A verdict that differs from the one before it, and the first
    Change,
    /// A verdict for every event and property
    Every,
    /// Each violation, when it begins
    Violations,
}

impl From<Emit> for rondel_runtime::Emit {
    fn from(emit: Emit) -> rondel_runtime::Emit {
        match emit {
            Emit::Change => rondel_runtime::Emit::Change,
            Emit::Every => rondel_runtime::Emit::Every,
            Emit::Violations => rondel_runtime::Emit::Violations,
        }
    }
}

/// A writer that stops after its first failure.
pub struct Output<W: Write> {
    out: W,
    failed: Option<io::Error>,
}

impl<W: Write> Output<W> {
    /// An output to `out`.
    pub fn new(out: W) -> Output<W> {
        Output { out, failed: None }
    }

    /// Writes, unless writing failed before.
    pub fn write(&mut self, bytes: &[u8]) {
        if self.failed.is_none()
            && let Err(error) = self.out.write_all(bytes)
        {
            self.failed = Some(error);
        }
    }

    /// Writes out the buffer.
    ///
    /// # Errors
    /// The first failure: the disk is full, for example.
    pub fn finish(mut self) -> io::Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    /// Writes out the buffer.
    pub fn flush(&mut self) {
        if self.failed.is_none()
            && let Err(error) = self.out.flush()
        {
            self.failed = Some(error);
        }
    }

    /// The first failure, if there was one.
    pub fn failure(&self) -> Option<&io::Error> {
        self.failed.as_ref()
    }

    /// Whether the reader has closed its end, so that there is no use in continuing.
    pub fn is_closed(&self) -> bool {
        self.failed.as_ref().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    }
}
