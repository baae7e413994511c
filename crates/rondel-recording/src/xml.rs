//! Archives of XML messages: files whose outermost elements contain the messages, as feeds of flight data have them.
//!
//! Each element in an outermost element is a message; a file may have several outermost elements one after another. All
//! messages have the topic that the user names, or that the file is named after. The time of a message is its attribute
//! `time` or `timestamp`. Messages are found by their tags alone: the decoder of the topic checks them.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memchr::{memchr, memchr_iter, memchr3_iter, memmem, memrchr};
use rondel_event::{TimeUnit, Timestamp};

use crate::compressed;
use crate::reader::MAX_LINE;
use crate::recording::{
    Progress, RecordedMessage, RecordedTopic, Recording, RecordingError, Selection, shown,
};
use crate::table::{TableOptions, Times};

/// Number of bytes read at a time, at least.
const STEP: usize = 256 << 10;

/// Attributes with the time of a message.
const TIMES: [&[u8]; 2] = [b"time", b"timestamp"];

/// Maximum number of characters of a time that are shown.
const SHOWN: usize = 40;

/// Encodings that the head of an archive may name.
const ENCODINGS: [&str; 4] = ["utf-8", "utf8", "us-ascii", "ascii"];

/// Reason of a fault in the markup.
const MALFORMED: &str = "the markup is not well formed";

/// Whether a file is an archive of XML messages, by its name.
pub fn is_xml(path: &Path) -> bool {
    compressed::content(path).as_deref() == Some("xml") && path.is_file()
}

/// An archive that is being read.
pub struct XmlRecording {
    path: PathBuf,
    input: Box<dyn Read + Send>,
    consumed: Arc<AtomicU64>,
    size: u64,
    topics: Vec<RecordedTopic>,
    selection: Selection,
    unit: Option<TimeUnit>,
    /// Whether attributes are the times; otherwise the user has named a field.
    reads_times: bool,
    /// Form of the times, once one has been read.
    times: Option<Times>,
    buffer: Vec<u8>,
    /// Beginning of the bytes that are not used yet.
    start: usize,
    /// Offset of the buffer in the content.
    before: u64,
    /// Whether an outermost element is open, its name, and whether there was one.
    is_inside: bool,
    outermost: Vec<u8>,
    has_begun: bool,
    /// Error of the input behind the buffer, until it is reported.
    fault: Option<io::Error>,
    /// Whether the input has ended, and whether all messages are read.
    has_ended: bool,
    is_done: bool,
    message: Range<usize>,
    time: Timestamp,
    is_timed: bool,
}

/// Markup at the beginning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Markup {
    Start,
    Empty,
    End,
    /// A comment, an instruction, a declaration or CDATA.
    Other,
}

impl XmlRecording {
    /// Opens an archive.
    ///
    /// # Errors
    /// [`RecordingError::Open`].
    pub fn open(path: &Path, options: &TableOptions<'_>) -> Result<XmlRecording, RecordingError> {
        let failed = |source| RecordingError::Open { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let consumed = Arc::new(AtomicU64::new(0));
        let input = compressed::read(path, file, &consumed).map_err(failed)?;
        let stem = compressed::stem(path);
        let name = options.topic.or(options.only_topic).unwrap_or(&stem).to_owned();
        Ok(XmlRecording {
            path: path.to_owned(),
            input,
            consumed,
            size,
            topics: vec![RecordedTopic {
                name,
                encoding: "xml".to_owned(),
                may_lack_times: true,
                ..RecordedTopic::default()
            }],
            selection: Selection::of_topics(vec![true]),
            unit: options.unit,
            reads_times: options.time.is_none(),
            times: None,
            buffer: Vec::new(),
            start: 0,
            before: 0,
            is_inside: false,
            outermost: Vec::new(),
            has_begun: false,
            fault: None,
            has_ended: false,
            is_done: false,
            message: 0..0,
            time: Timestamp::default(),
            is_timed: false,
        })
    }

    /// Reads further bytes, at least as many as are not used yet, so that a long message is scanned a few times only.
    /// Returns whether there were any.
    fn read_on(&mut self) -> Result<bool, RecordingError> {
        if self.has_ended {
            return Ok(false);
        }
        self.buffer.drain(..self.start);
        self.before += self.start as u64;
        self.start = 0;
        let known = self.buffer.len();
        if known > MAX_LINE {
            self.is_done = true;
            return Err(self.wrong(format!("a message is longer than {} MiB", MAX_LINE >> 20)));
        }
        let wanted = known.max(STEP) as u64;
        if self.fault.is_none() {
            let read = (&mut self.input).take(wanted).read_to_end(&mut self.buffer);
            self.fault = read.err();
        }
        let is_more = self.buffer.len() > known;
        match self.fault.take_if(|_| !is_more) {
            Some(error) => {
                self.is_done = true;
                Err(self.unreadable(error))
            }
            None => {
                self.has_ended = !is_more;
                Ok(is_more)
            }
        }
    }

    fn unreadable(&self, source: io::Error) -> RecordingError {
        let (path, offset) = (self.path.clone(), self.consumed.load(Ordering::Relaxed));
        if compressed::ends(&source) {
            RecordingError::of_compression(path, offset, &source)
        } else {
            RecordingError::Read { path, offset, source }
        }
    }

    /// Returns the error at the first byte that is not used.
    fn wrong(&self, reason: String) -> RecordingError {
        let offset = self.before + self.start as u64;
        RecordingError::Damage { path: self.path.clone(), offset, reason, topics: vec![0] }
    }

    /// Ends reading because of a fault.
    fn refuse(&mut self, reason: &str) -> RecordingError {
        self.is_done = true;
        self.wrong(format!("{reason}; nothing from here on is read"))
    }

    /// Returns the result at the end of the input.
    fn finish(&mut self) -> Result<Option<Timestamp>, RecordingError> {
        self.is_done = true;
        let path = self.path.clone();
        let is_whole = !self.is_inside && self.start == self.buffer.len();
        match (self.has_begun, is_whole) {
            (true, true) => Ok(None),
            (false, true) => {
                let reason = "it has no element, and is no archive of XML messages".to_owned();
                Err(RecordingError::Form { path, reason })
            }
            (_, false) => {
                let reason = "an element is not closed".to_owned();
                let offset = self.before + self.start as u64;
                Err(RecordingError::Cut { path, offset, reason, is_damaged: false })
            }
        }
    }

    /// Moves to the next markup. Returns whether there is one in the buffer.
    fn seek(&mut self) -> Result<bool, RecordingError> {
        let rest = &self.buffer[self.start..];
        let place = memchr(b'<', rest);
        let length = place.unwrap_or(rest.len());
        let between = &rest[..length];
        let is_first = self.before + self.start as u64 == 0;
        if is_first && (rest.starts_with(b"\xff\xfe") || rest.starts_with(b"\xfe\xff")) {
            return Err(self.refuse("it is in UTF-16, and only UTF-8 is read"));
        }
        let text = if is_first { between.strip_prefix(b"\xef\xbb\xbf").unwrap_or(between) } else { between };
        let is_space = text.iter().all(u8::is_ascii_whitespace);
        let fault = (!is_space).then(|| self.wrong("there is text between messages".to_owned()));
        self.start += length;
        fault.map_or(Ok(place.is_some()), Err)
    }

    /// Takes the time from the tag with which the message begins. A message without one keeps that of the message before.
    ///
    /// # Errors
    /// A time that cannot be read: the message is left out.
    fn stamp(&mut self) -> Result<(), RecordingError> {
        let message = &self.buffer[self.message.clone()];
        let tag = &message[..tag_end(message).unwrap_or(message.len())];
        let found = attribute(tag, &TIMES).filter(|_| self.reads_times);
        self.is_timed = found.is_some();
        let Some(text) = found else { return Ok(()) };
        let times = self.times.get_or_insert_with(|| Times::new(self.unit, Some(text), false));
        match times.time(text) {
            Some(nanos) => {
                self.time = Timestamp::from_nanos(nanos);
                Ok(())
            }
            None => {
                let (path, offset) = (self.path.clone(), self.before + self.message.start as u64);
                let shown: String = String::from_utf8_lossy(text).chars().take(SHOWN).collect();
                let reason = format!(
                    "the time '{shown}' of a message is no time; --time-field chooses a field instead"
                );
                Err(RecordingError::Damage { path, offset, reason, topics: vec![0] })
            }
        }
    }

    /// Notes the begin of an outermost element.
    fn enter(&mut self) {
        (self.is_inside, self.has_begun) = (true, true);
        self.outermost.clear();
        self.outermost.extend_from_slice(name(&self.buffer[self.start..]));
    }

    /// Returns the reason why the markup at hand cannot stand there.
    fn misplaced(&self, kind: Markup) -> Option<String> {
        let rest = &self.buffer[self.start..];
        match kind {
            Markup::End if !self.is_inside => Some(MALFORMED.to_owned()),
            Markup::End if name(rest) != self.outermost => {
                let [end, begin] = [name(rest), &self.outermost].map(String::from_utf8_lossy);
                Some(format!("the end tag `{end}` does not end the outermost element `{begin}`"))
            }
            Markup::Other if rest.starts_with(b"<?xml") => {
                let tag = &rest[..tag_end(rest).unwrap_or(rest.len())];
                let named = String::from_utf8_lossy(attribute(tag, &[b"encoding"])?).to_lowercase();
                (!ENCODINGS.contains(&named.as_str()))
                    .then(|| format!("the encoding {named} is not read; use UTF-8"))
            }
            _ => None,
        }
    }

    fn is_selected(&self) -> bool {
        let Selection { from, until, .. } = &self.selection;
        self.selection.has_topic(0) && (*from..=*until).contains(&self.time)
    }
}

impl Recording for XmlRecording {
    fn topics(&self) -> &[RecordedTopic] {
        &self.topics
    }

    fn select(&mut self, selection: Selection) {
        self.selection = selection;
    }

    fn advance(&mut self) -> Result<Option<Timestamp>, RecordingError> {
        while !self.is_done {
            if !self.seek()? {
                if !self.read_on()? {
                    return self.finish();
                }
                continue;
            }
            let rest = &self.buffer[self.start..];
            let found = markup(rest).and_then(|found| match found {
                Some((Markup::Start | Markup::Empty, _)) if self.is_inside => {
                    Ok(element(rest)?.map(|length| (Markup::Empty, length)))
                }
                found => Ok(found),
            });
            let (kind, length) = match found {
                Ok(Some(found)) => found,
                Ok(None) if self.read_on()? => continue,
                Ok(None) => return self.finish(),
                Err(reason) => return Err(self.refuse(reason)),
            };
            let begin = self.start;
            if let Some(reason) = self.misplaced(kind) {
                return Err(self.refuse(&reason));
            }
            match kind {
                Markup::Start => self.enter(),
                Markup::End => self.is_inside = false,
                Markup::Empty => self.has_begun = true,
                Markup::Other => {}
            }
            self.start += length;
            if (kind, self.is_inside) == (Markup::Empty, true) {
                self.message = begin..self.start;
                self.stamp()?;
                if self.is_selected() {
                    return Ok(Some(self.time));
                }
            }
        }
        Ok(None)
    }

    fn message(&self) -> Option<RecordedMessage<'_>> {
        Some(RecordedMessage {
            topic: 0,
            log_time: self.time,
            publish_time: self.time,
            is_timed: self.is_timed,
            sequence: 0,
            payload: self.buffer.get(self.message.clone())?,
        })
    }

    fn place(&self, offset: Option<usize>) -> Option<String> {
        let at = self.before + (self.message.start + offset.unwrap_or(0)) as u64;
        let (line, column) = line_and_column(&self.path, at).ok()?;
        Some(format!("{}:{line}:{column}", shown(&self.path)))
    }

    fn span(&self) -> Option<(Timestamp, Timestamp)> {
        None
    }

    fn progress(&self) -> Progress {
        let position = self.consumed.load(Ordering::Relaxed);
        Progress { position, size: self.size, bytes_read: position }
    }
}

/// Returns the line of a byte in the content of a file, and its place in the line, both from 1.
fn line_and_column(path: &Path, at: u64) -> io::Result<(u64, u64)> {
    let content = compressed::read(path, File::open(path)?, &Arc::default())?;
    let (mut line, mut column) = (1, 1);
    let mut before = BufReader::with_capacity(STEP, content).take(at);
    loop {
        let bytes = before.fill_buf()?;
        if bytes.is_empty() {
            return Ok((line, column));
        }
        line += memchr_iter(b'\n', bytes).count() as u64;
        column = match memrchr(b'\n', bytes) {
            Some(end) => (bytes.len() - end) as u64,
            None => column + bytes.len() as u64,
        };
        let length = bytes.len();
        before.consume(length);
    }
}

/// Returns the markup at the beginning of a text and its length; `None` if it needs further bytes.
fn markup(text: &[u8]) -> Result<Option<(Markup, usize)>, &'static str> {
    let until = |from: usize, end: &[u8]| Some(from + memmem::find(text.get(from..)?, end)? + end.len());
    let (kind, end) = match text {
        [b'<'] | [b'<', b'!'] | [b'<', b'!', b'-'] => return Ok(None),
        [b'<', b'!', b'-', b'-', ..] => (Markup::Other, until(4, b"-->")),
        [b'<', b'!', b'[', ..] => (Markup::Other, until(3, b"]]>")),
        [b'<', b'!', b'D' | b'd', ..] => return Err("a document type definition is not read"),
        [b'<', b'!', ..] => return Err(MALFORMED),
        [b'<', b'?', ..] => (Markup::Other, until(2, b"?>")),
        [b'<', b'/', ..] => (Markup::End, until(2, b">")),
        _ => {
            let end = tag_end(text);
            let is_empty = end.is_some_and(|end| text[..end].ends_with(b"/>"));
            (if is_empty { Markup::Empty } else { Markup::Start }, end)
        }
    };
    Ok(end.map(|end| (kind, end)))
}

/// Returns the name in the tag at the beginning of a text.
fn name(tag: &[u8]) -> &[u8] {
    let begin = if tag.starts_with(b"</") { 2 } else { 1 };
    let rest = tag.get(begin..).unwrap_or_default();
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>');
    &rest[..rest.iter().position(is_end).unwrap_or(rest.len())]
}

/// Returns the length of the tag at the beginning of a text.
fn tag_end(text: &[u8]) -> Option<usize> {
    let mut quote = None;
    for at in memchr3_iter(b'>', b'"', b'\'', text) {
        match (quote, text[at]) {
            (None, b'>') => return Some(at + 1),
            (None, found) => quote = Some(found),
            (Some(open), found) if open == found => quote = None,
            _ => {}
        }
    }
    None
}

/// Returns the length of the element at the beginning of a text; `None` if it needs further bytes.
fn element(text: &[u8]) -> Result<Option<usize>, &'static str> {
    let (mut at, mut depth) = (0, 0_usize);
    loop {
        let Some((kind, length)) = markup(&text[at..])? else { return Ok(None) };
        at += length;
        match kind {
            Markup::Start => depth += 1,
            Markup::End => depth = depth.saturating_sub(1),
            Markup::Empty | Markup::Other => {}
        }
        if depth == 0 {
            return Ok(Some(at));
        }
        let Some(next) = memchr(b'<', &text[at..]) else { return Ok(None) };
        at += next;
    }
}

/// Returns the first attribute of a tag with one of these names.
fn attribute<'t>(tag: &'t [u8], names: &[&[u8]]) -> Option<&'t [u8]> {
    let mut rest = tag;
    loop {
        let equals = memchr(b'=', rest)?;
        let name = rest[..equals].trim_ascii_end().rsplit(u8::is_ascii_whitespace).next()?;
        let (quote, value) = rest[equals + 1..].trim_ascii_start().split_first()?;
        let end = memchr(*quote, value).filter(|_| matches!(quote, b'"' | b'\''))?;
        if names.contains(&name) {
            return Some(&value[..end]);
        }
        rest = &value[end + 1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_end_at_their_tags() {
        for (text, expected) in [
            ("<a/>x", Ok(Some(4))),
            ("<a><b></b></a><c/>", Ok(Some(14))),
            ("<a b='>'>x</a>", Ok(Some(14))),
            ("<a><!-- </a> --><![CDATA[</a>]]><?x </a>?></a>", Ok(Some(46))),
            ("<a><b></b>", Ok(None)),
            ("<a><!", Ok(None)),
            ("<a", Ok(None)),
            ("<a><!X></a>", Err(MALFORMED)),
        ] {
            assert_eq!(element(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn attributes_are_found_by_name() {
        let of = |tag: &'static str| attribute(tag.as_bytes(), &TIMES);
        assert_eq!(of("<m timestamp = \"5\" time='6'>"), Some(&b"5"[..]));
        assert_eq!(of("<m a='time=3' time=\"6\"/>"), Some(&b"6"[..]));
        for tag in ["<m>", "<m sometime='1'>", "<m time=1>", "<m time='1>", "<m =''"] {
            assert_eq!(of(tag), None, "{tag}");
        }
    }
}
