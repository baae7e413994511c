//! The lines of a trace: one JSON object or array each. `topic` and `time` are reserved names.

mod names;

use std::fmt;

use rondel_event::{Block, Path, Projection, Rows, TimeUnit, Timestamp, TopicId};

use wide::u8x16;

use crate::json::{
    Action, JsonError, JsonErrorKind, Kind, Node, Scanner, TraceShapes, Writer, unescape, walk,
};

/// A topic that may stand in a trace.
#[derive(Clone, Debug)]
pub struct TraceTopic {
    /// The names by which a line can call it. Those with wildcards match the topics that MQTT
    /// (`fleet/+/pose`, `fleet/#`) or Zenoh (`fleet/*/pose`, `fleet/**`) would deliver.
    pub names: Vec<String>,
    /// The fields that are read of its messages.
    pub projection: Projection,
    /// Where the time of a message comes from.
    pub time: LineTime,
    /// The unit of times in its messages that are plain numbers.
    pub time_unit: TimeUnit,
}

impl TraceTopic {
    /// A topic whose messages have the time that stands beside them, in seconds.
    pub fn new(names: Vec<String>, projection: Projection) -> TraceTopic {
        TraceTopic { names, projection, time: LineTime::Recorded, time_unit: TimeUnit::Seconds }
    }
}

/// Where the time of a recorded message comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LineTime {
    /// The member `time` of the line.
    #[default]
    Recorded,
    /// The member `arrival` of the line, or `time` where there is none.
    Arrival,
    /// A field of the message.
    Field(Path),
}

/// How many names of topics that are not read are kept; the last stands for all further ones.
const OTHERS: usize = 256;

/// Decodes the lines of a trace.
///
/// A line is one message. Its payload is the object `data` if there is one, otherwise all members
/// but `topic` and `time`. A line may also be an array, which is the payload then.
#[derive(Clone, Debug)]
pub struct Lines {
    topics: Vec<Roots>,
    any_topic: bool,
    time_unit: TimeUnit,
    shapes: TraceShapes,
    /// What to do with a line on a topic that is not read.
    unread: Node,
    /// The time of the last event: also that of a line without a time.
    time: Timestamp,
    lines: u64,
    /// The names of the topics that are not read.
    others: Vec<String>,
    /// The rows of the last call whose lines carry no time.
    untimed: Rows,
    mistyped: u64,
    /// How many line breaks to expect in a piece.
    few: usize,
}

/// What to read of a line on one topic, in its two forms.
#[derive(Clone, Debug)]
struct Roots {
    names: Vec<String>,
    flat: Node,
    data: Node,
    time_unit: TimeUnit,
}

/// Why a line cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineError {
    /// The line, from 1.
    pub line: u64,
    /// The byte in the line, from 1.
    pub column: usize,
    /// What is wrong there.
    pub kind: LineErrorKind,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineErrorKind {
    /// It is not JSON, or not of the form of a line.
    Json(JsonErrorKind),
    /// It names no topic although the specification has several.
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

/// How many bytes [`line_starts`] looks at together.
const CHUNK: usize = 64;
/// The most line breaks that it takes from them without looking whether there are as many.
const MOST_FEW: usize = 3;
/// Room for the lines of a block, and for what is written beyond them.
const STARTS: usize = Block::CAPACITY + 1 + CHUNK;

/// Finds where the lines from `at` on begin, `starts[0]` being `at`; returns how many of them end
/// with a line break, which are at least as many as a block holds if there are so many.
///
/// So `FEW` line breaks it takes from each piece without looking whether there are as many: their number
/// is hard to guess for the processor, and a wrong guess costs more. How many are right depends on how long
/// lines are.
#[inline]
fn line_starts<const FEW: usize>(text: &[u8], at: usize, starts: &mut [usize; STARTS]) -> usize {
    let mut found = 0;
    let mut base = at;
    starts[0] = at;
    while found < Block::CAPACITY && base < text.len() {
        let mut breaks = match text[base..].first_chunk::<CHUNK>() {
            Some(chunk) => line_breaks(chunk),
            None => {
                let mut chunk = [0; CHUNK];
                chunk[..text.len() - base].copy_from_slice(&text[base..]);
                line_breaks(&chunk)
            }
        };
        for _ in 0..FEW {
            starts[found + 1] = base + breaks.trailing_zeros() as usize + 1;
            found += usize::from(breaks != 0);
            breaks &= breaks.wrapping_sub(1);
        }
        while breaks != 0 {
            starts[found + 1] = base + breaks.trailing_zeros() as usize + 1;
            found += 1;
            breaks &= breaks - 1;
        }
        base += CHUNK;
    }
    found
}

/// Where the line breaks are in a piece: bit `i` for byte `i`.
#[inline(always)]
fn line_breaks(chunk: &[u8; CHUNK]) -> u64 {
    let mut bits = 0;
    for (i, part) in chunk.as_chunks::<16>().0.iter().enumerate() {
        let breaks = u8x16::new(*part).simd_eq(u8x16::splat(b'\n'));
        bits |= u64::from(breaks.to_bitmask()) << (16 * i);
    }
    bits
}

impl Lines {
    /// A decoder for traces of these topics; a topic's position is its [`TopicId`].
    ///
    /// With `any_topic` and a single topic, a line belongs to it whatever topic it names.
    /// `time_unit` is the unit of the members `time` and `arrival`, where they are plain numbers.
    pub fn new(topics: &[TraceTopic], any_topic: bool, time_unit: TimeUnit) -> Lines {
        let roots = |topic: &TraceTopic| {
            let payload = Node::new(&topic.projection);
            let mut flat = payload.clone(); // `data` in it is a field, as it is no object there
            let mut data = Node::default();
            data.replace("data", payload);
            // The reserved names are not fields of the payload, even where a formula asks for them.
            let recorded = || Node::leaf(Action::Time(time_unit));
            for root in [&mut flat, &mut data] {
                let is_field = matches!(topic.time, LineTime::Field(_));
                root.replace("time", if is_field { Node::default() } else { recorded() });
                root.replace("topic", Node::leaf(Action::Topic));
            }
            match &topic.time {
                LineTime::Recorded => {}
                LineTime::Arrival => data.replace("arrival", recorded()),
                LineTime::Field(path) => {
                    let action = || Action::Time(topic.time_unit);
                    flat.at(path).actions.push(action());
                    data.at(&Path::keys(["data"])).at(path).actions.push(action());
                }
            }
            Roots { names: topic.names.clone(), flat, data, time_unit: topic.time_unit }
        };
        let mut unread = Node::default();
        unread.replace("topic", Node::leaf(Action::Topic));
        Lines {
            topics: topics.iter().map(roots).collect(),
            any_topic: any_topic && topics.len() == 1,
            time_unit,
            shapes: TraceShapes::default(),
            unread,
            time: Timestamp::ZERO,
            lines: 0,
            others: Vec::new(),
            untimed: 0,
            mistyped: 0,
            few: MOST_FEW,
        }
    }

    /// Reads the times of arrival too, where the lines have them.
    #[must_use]
    pub fn with_arrivals(mut self, reads: bool) -> Lines {
        for roots in self.topics.iter_mut().filter(|_| reads) {
            roots.data.at(&Path::keys(["arrival"])).actions.push(Action::Arrival(self.time_unit));
        }
        self
    }

    /// Goes on after events up to this time: that is the time of a first line without one.
    #[must_use]
    pub fn from_time(mut self, time: Timestamp) -> Lines {
        self.time = time;
        self
    }

    /// The time of the last event.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// Begins a new trace: lines are counted from 1 again, time from zero.
    pub fn restart(&mut self) {
        self.lines = 0;
        self.time = Timestamp::ZERO;
    }

    /// Adds the events of the lines of `text[at..end]` to the block until it is full or the lines
    /// are used up; returns where the first line begins that was not read. Only lines with their
    /// line break are read.
    ///
    /// # Errors
    /// [`LineError`] at the first line that cannot be used; the lines before it are in the block.
    pub fn decode(
        &mut self,
        text: &[u8],
        at: usize,
        end: usize,
        block: &mut Block,
    ) -> Result<usize, LineError> {
        self.untimed = 0;
        let mut starts = [0; STARTS];
        let mut at = at;
        while at < end && !block.is_full() {
            // Of as many as may go into the block.
            let lines = &text[..end];
            let found = match self.few {
                1 => line_starts::<1>(lines, at, &mut starts),
                2 => line_starts::<2>(lines, at, &mut starts),
                _ => line_starts::<MOST_FEW>(lines, at, &mut starts),
            };
            // One more than there are in a piece on average, rounded down.
            self.few = (1 + found * CHUNK / (starts[found] - at).max(1)).min(MOST_FEW);
            let found = found.min(Block::CAPACITY - block.len());
            let mut done = 0;
            while done < found {
                let read = self.shapes.read(text, &starts[done..=found], block, self.time);
                done += read.lines;
                self.lines += read.lines as u64;
                self.mistyped += read.mistyped;
                self.untimed |= read.untimed;
                if let Some(last) = block.len().checked_sub(1) {
                    self.time = block.time(last);
                }
                if !read.refused {
                    continue;
                }
                self.lines += 1;
                let line = &text[starts[done]..starts[done + 1]];
                self.line(line, block).map_err(|(column, kind)| LineError {
                    line: self.lines,
                    column: column + 1,
                    kind,
                })?;
                done += 1;
                if let Some(last) = block.len().checked_sub(1) {
                    self.time = block.time(last);
                }
            }
            if found == 0 {
                break;
            }
            at = starts[found];
        }
        Ok(at)
    }

    /// Decodes a line, given with its line break.
    fn line(&mut self, with_break: &[u8], block: &mut Block) -> Result<(), (usize, LineErrorKind)> {
        let line = &with_break[..with_break.len() - 1];
        let json = |e: JsonError| (e.offset, LineErrorKind::Json(e.kind));
        let mut scanner = Scanner::new(line);
        scanner.skip_space();
        if scanner.peek().is_none() {
            return Ok(());
        }
        let (mut topic, mut data) = (None, false);
        // A row that is an array has no names, and is all payload.
        let walked = if scanner.peek() == Some(b'[') {
            scanner.skip(0)
        } else {
            scanner.members(0, |scanner, key| {
                let (start, kind) = (scanner.at, scanner.kind()?);
                scanner.skip(1)?;
                if key.is("topic") {
                    if kind != Kind::String {
                        let kind = JsonErrorKind::Expected("a string as the topic");
                        return Err(JsonError { offset: start, kind });
                    }
                    topic = Some(&line[start + 1..scanner.at - 1]);
                } else if key.is("data") {
                    data = kind == Kind::Object;
                }
                Ok(())
            })
        };
        walked.and_then(|()| scanner.end()).map_err(json)?;

        let index = match topic {
            _ if self.any_topic => 0,
            None if self.topics.len() == 1 => 0,
            None => return Err((0, LineErrorKind::NoTopic)),
            Some(raw) => {
                let name = unescape(raw).unwrap_or_default();
                match names::find(self.topics.iter().map(|topic| &*topic.names), &name) {
                    Some(index) => index,
                    None => {
                        let other = self.other(name);
                        self.shapes.learn(with_break, &self.unread, Err(other), self.time_unit);
                        self.shapes.count_other(Some(other), 1);
                        return Ok(());
                    }
                }
            }
        };
        let root = if data { &self.topics[index].data } else { &self.topics[index].flat };
        let (id, time_unit) = (TopicId(index as u32), self.topics[index].time_unit);
        let row = block.push(id, self.time);
        let mut writer = Writer { block, row, time_unit, time: None, mistyped: 0 };
        let mut scanner = Scanner::new(line);
        scanner.skip_space();
        let walked = walk(&mut scanner, Some(root), 0, &mut writer);
        let (mistyped, time) = (writer.mistyped, writer.time);
        if let Err(error) = walked {
            block.pop();
            return Err(json(error));
        }
        self.mistyped += mistyped;
        block.set_time(row, time.unwrap_or(self.time));
        self.untimed |= Rows::from(time.is_none()) << row;
        self.shapes.learn(with_break, root, Ok(id), time_unit);
        Ok(())
    }

    /// Lines read so far of this trace.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// The topics that are not read, by name, and how many lines each has.
    pub fn other_topics(&self) -> impl Iterator<Item = (&str, u64)> {
        let counts = self.shapes.other_counts().iter().copied().chain(std::iter::repeat(0));
        self.others.iter().map(String::as_str).zip(counts)
    }

    /// The rows that the last call added whose lines carry no time.
    pub fn take_untimed(&mut self) -> Rows {
        std::mem::take(&mut self.untimed)
    }

    /// The number of a topic that is not read.
    fn other(&mut self, name: String) -> u32 {
        let known = self.others.iter().position(|other| *other == name);
        let at = known.unwrap_or_else(|| {
            if self.others.len() + 1 < OTHERS {
                self.others.push(name);
            } else if self.others.len() < OTHERS {
                self.others.push("further topics".to_owned());
            }
            self.others.len() - 1
        });
        at as u32
    }

    /// Values that had another type than the program reads.
    pub fn mistyped(&self) -> u64 {
        self.mistyped
    }
}
