//! Lines of a trace: one JSON object or array each, in one of these forms.
//!
//! | form | a line is of it if | payload | recorded time | time of arrival |
//! |---|---|---|---|---|
//! | `{"topic":…, "time":…, "data":{…}}` | `data` is an object | `data` | `time` | `arrival`, if it is there |
//! | `mosquitto_sub -F %J` or `-F %j` | it has `tst` and `payload` | `payload`; if that is a string, the object that is written in it | `tst` | `tst` |
//! | `rondel tap --format json` | it has `arrival` and, if `data` is no object, either `message` or no members but `topic`, `time`, `arrival` (a number), `origin` and `data` or `payload` (a string) | `data`; `message`, as older versions wrote it; or the object in `payload` | `time` | `arrival` |
//! | event | it has `event` with the name of a [`TopicEvent`](rondel_event::TopicEvent) and no members but `topic`, `time`, `arrival`, `origin` and an object `key`; that of an owner also a string `publisher`; a flat message if it has no `arrival` and a field `event` is read of its topic | | `time` | `arrival` |
//! | flat | it is of no other form | all members but `topic` and `time` | `time` | |
//! | array | it is an array | the array | | |
//!
//! The forms are tried in this order. Members that no form defines are ignored, except in a flat line.
//!
//! - **Topic.** `topic` is a name of a [`TraceTopic`], or matches one that is a pattern. It may include its network, as
//!   from `rondel tap` (`zenoh:fleet/r1`, `zenoh+cdr_string:fleet/r1`).
//! - **Time.** A number in the unit of the trace, an object `{"sec": 12, "nanosec": 5}`, a number with a unit
//!   (`"12.5 s"`), or a date and time by ISO 8601. `null` is no time. A line without a time has that of the
//!   line before it.
//! - **Origin.** In a line with `data` or `message`, `"origin": {"publisher": 7, "number": 3}` identifies the publisher
//!   of the message and its sequence number.
//! - **Undecodable payloads.** In the forms of `mosquitto_sub` and `rondel tap`, and in the first one with `arrival`, a
//!   payload that cannot be decoded is no error of the recording. It is counted ([`Lines::undecodable`]), as in a live
//!   run: a string without a JSON object, or an invalid event time. So is a flat line that is meant as an event, if
//!   events of its topic are read and no message of it has a field `event`: one with `event` that has no members but
//!   those of an event, or that is an owner without a string `publisher`. A message without a payload, which `mosquitto_sub`
//!   writes as `null`, is ignored and counted ([`Lines::empty`]), as in a live run. A line that is not JSON is an
//!   error, and so is an invalid `topic`, `time`, `arrival` or `tst`.

mod ahead;
mod events;
mod form;
mod line;
mod names;
mod published;
mod reports;
mod roots;

pub use ahead::{Ahead, Decoded, Part};
pub use names::{find_topic, is_matched, is_pattern, without_network};
pub use published::{Published, PublishedLine, published};
pub use reports::{LineError, LineErrorKind, Mistyped, Unseen, UnseenCause};

use std::sync::Arc;

use rondel_event::{Block, Origin, Path, Projection, Rows, TimeUnit, Timestamp, TopicId};

use wide::u8x16;

use crate::json::{Action, Node, TraceShapes};
use crate::plain::Words;
use roots::Roots;

/// A topic of a trace.
#[derive(Clone, Debug)]
pub struct TraceTopic {
    /// Names by which lines refer to it. Those with wildcards match the topics that MQTT (`fleet/+/pose`, `fleet/#`) or
    /// Zenoh (`fleet/*/pose`, `fleet/**`) would deliver; those with parameters (`fleet/{robot}/pose`) set the fields of
    /// the parameters.
    pub names: Vec<String>,
    /// Fields that are read of its messages.
    pub projection: Projection,
    /// Source of the time of a message.
    pub time: LineTime,
    /// Unit of times in its messages that are plain numbers.
    pub time_unit: TimeUnit,
    /// Topic of its events, if any are read.
    pub events: Option<TopicId>,
    /// Whether its messages may have a field `event`, also one that is not read.
    pub has_event: bool,
    /// Words for true and false, if its payloads are plain.
    pub plain: Option<Arc<Words>>,
}

impl TraceTopic {
    /// Returns a topic whose messages have the recorded time, in seconds.
    pub fn new(names: Vec<String>, projection: Projection) -> TraceTopic {
        TraceTopic {
            names,
            projection,
            time: LineTime::Recorded,
            time_unit: TimeUnit::Seconds,
            events: None,
            has_event: false,
            plain: None,
        }
    }
}

/// Source of the time of a recorded message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LineTime {
    /// The member `time` of the line, or `tst` in a line of `mosquitto_sub`.
    #[default]
    Recorded,
    /// The time of arrival; the recorded time without one.
    Arrival,
    /// A field of the message.
    Field(Path),
}

/// Maximum number of names kept of topics that are not read; the last one represents all further ones.
const OTHERS: usize = 256;

/// Source of lines.
#[derive(Debug)]
pub enum Source<'s> {
    /// The complete lines `text[at..end]`.
    Text {
        /// The buffer, with other bytes before and after them.
        text: &'s [u8],
        /// Offset of the first line.
        at: usize,
        /// Offset behind the line break of the last line.
        end: usize,
    },
    /// Lines that were decoded [ahead](Ahead).
    Part(&'s mut Part),
}

/// Decoder of the lines of a trace, each one message, in the forms of the [module](self).
#[derive(Clone, Debug)]
pub struct Lines {
    topics: Vec<Roots>,
    /// Number of topics that a line can name; those of events follow them.
    named: usize,
    any_topic: bool,
    time_unit: TimeUnit,
    shapes: TraceShapes,
    /// Plan for a line on a topic that is not read.
    unread: Node,
    /// Time of the last event, also used for a line without one.
    time: Timestamp,
    lines: u64,
    /// Names of the topics that are not read.
    others: Vec<String>,
    /// Rows of the last call whose lines have no time.
    untimed: Rows,
    /// Origins of the last call, with their rows.
    origins: Vec<(usize, Origin)>,
    /// Messages of the last call that could not be read.
    unseen: Vec<Unseen>,
    /// First value of another type than is read, for each topic with one in the last call.
    first_mistyped: Vec<Mistyped>,
    /// Number of array elements omitted by the last call because they are null, for each topic with some.
    left_out: Vec<(TopicId, u64)>,
    undecodable: u64,
    /// Number of messages without a payload.
    empty: u64,
    /// Line of the first payload that could not be decoded, with the reason.
    first_undecodable: Option<(u64, String)>,
    /// Maximum size of a payload, in bytes.
    largest: usize,
    /// Whether invalid lines are skipped.
    skips: bool,
    /// Number of skipped lines, and the error of the first.
    skipped: (u64, Option<LineError>),
    /// Expected number of line breaks in a chunk.
    few: usize,
}

/// Number of bytes that [`line_starts`] examines at a time.
const CHUNK: usize = 64;
/// Maximum number of line breaks taken from a chunk without checking their number.
const MOST_FEW: usize = 3;
/// Space for the lines of a block, and for those written beyond them.
const STARTS: usize = Block::CAPACITY + 1 + CHUNK;

/// Finds the beginnings of the lines from `at` on, `starts[0]` being `at`; returns how many of them end with a line
/// break: at least as many as a block holds, if there are that many.
///
/// Takes `FEW` line breaks from each chunk without checking their number, which the processor predicts badly: a
/// misprediction costs more. The best number depends on the length of lines.
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

/// Returns the positions of the line breaks in a chunk: bit `i` for byte `i`.
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
    /// Creates a decoder for traces of these topics; a topic's position is its [`TopicId`]. The topics of
    /// [events](TraceTopic::events) are the last ones.
    ///
    /// With `any_topic` and a single topic, every line belongs to it, whichever topic it names. `time_unit` is the unit
    /// of the members `time`, `arrival` and `tst` if they are plain numbers.
    pub fn new(topics: &[TraceTopic], any_topic: bool, time_unit: TimeUnit) -> Lines {
        let mut unread = Node::default();
        unread.replace("topic", Node::leaf(Action::Topic));
        let named = topics.len() - topics.iter().filter(|topic| topic.events.is_some()).count();
        Lines {
            topics: topics.iter().map(|topic| Roots::new(topic, time_unit)).collect(),
            named,
            any_topic: any_topic && named == 1,
            time_unit,
            shapes: TraceShapes::default(),
            unread,
            time: Timestamp::ZERO,
            lines: 0,
            others: Vec::new(),
            untimed: 0,
            origins: Vec::new(),
            unseen: Vec::new(),
            first_mistyped: Vec::new(),
            left_out: Vec::new(),
            undecodable: 0,
            empty: 0,
            first_undecodable: None,
            largest: usize::MAX,
            skips: false,
            skipped: (0, None),
            few: MOST_FEW,
        }
    }

    /// Refuses payloads larger than this number of bytes: see [`UnseenCause::TooLarge`].
    #[must_use]
    pub fn with_largest(mut self, largest: usize) -> Lines {
        self.largest = largest;
        self
    }

    /// Skips and counts invalid lines, instead of ending at the first one.
    #[must_use]
    pub fn skip_errors(mut self, skips: bool) -> Lines {
        self.skips = skips;
        self
    }

    /// Also reads the times of arrival, if lines have them.
    #[must_use]
    pub fn with_arrivals(mut self, reads: bool) -> Lines {
        for roots in self.topics.iter_mut().filter(|_| reads) {
            roots.read_arrivals(self.time_unit);
        }
        self
    }

    /// Also reads the origins of messages, if lines have them: see [`Lines::origin`].
    #[must_use]
    pub fn with_origins(mut self) -> Lines {
        for roots in &mut self.topics {
            for root in [&mut roots.data, &mut roots.message] {
                root.at(&Path::keys(["origin", "publisher"])).reads.push(Action::Publisher);
                root.at(&Path::keys(["origin", "number"])).reads.push(Action::Number);
            }
        }
        self
    }

    /// Continues after events up to this time, which is the time of a first line without one.
    #[must_use]
    pub fn from_time(mut self, time: Timestamp) -> Lines {
        self.time = time;
        self
    }

    /// Returns the time of the last event.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// Starts a new trace: lines are counted from 1 again, and time starts at zero.
    pub fn restart(&mut self) {
        self.lines = 0;
        self.time = Timestamp::ZERO;
    }

    /// Adds the events of lines to the block like [`Lines::decode`], or replaces the contents of the block with all
    /// events of a part.
    ///
    /// # Errors
    /// As [`Lines::decode`].
    #[inline]
    pub fn take(&mut self, source: Source<'_>, block: &mut Block) -> Result<usize, LineError> {
        match source {
            Source::Text { text, at, end } => self.decode(text, at, end, block),
            Source::Part(part) => Ok(self.adopt(part, block)),
        }
    }

    /// Adds the events of the lines of `text[at..end]` to the block until it is full or the lines are used up; returns
    /// the offset of the first unread line. Only lines with a line break are read.
    ///
    /// # Errors
    /// [`LineError`] at the first invalid line, unless [`skip_errors`](Lines::skip_errors) was set; the lines before it
    /// are in the block.
    pub fn decode(
        &mut self,
        text: &[u8],
        at: usize,
        end: usize,
        block: &mut Block,
    ) -> Result<usize, LineError> {
        self.untimed = 0;
        self.origins.clear();
        self.unseen.clear();
        self.first_mistyped.clear();
        self.left_out.clear();
        let mut starts = [0; STARTS];
        let mut at = at;
        while at < end && !block.is_full() {
            // Only the lines that may go into the block.
            let lines = &text[..end];
            let found = match self.few {
                1 => line_starts::<1>(lines, at, &mut starts),
                2 => line_starts::<2>(lines, at, &mut starts),
                _ => line_starts::<MOST_FEW>(lines, at, &mut starts),
            };
            // One more than the average number in a chunk, rounded down.
            self.few = (1 + found * CHUNK / (starts[found] - at).max(1)).min(MOST_FEW);
            let found = found.min(Block::CAPACITY - block.len());
            let mut done = 0;
            while done < found {
                let few = match self.largest {
                    usize::MAX => found,
                    largest => fitting(&starts[done..=found], largest) + done,
                };
                if few == done {
                    let line = &text[starts[done]..starts[done + 1]];
                    self.counted(line, block)?;
                    done += 1;
                    continue;
                }
                let read = self.shapes.read(text, &starts[done..=few], block, self.time);
                done += read.lines;
                self.lines += read.lines as u64;
                self.untimed |= read.untimed;
                if let Some(last) = block.len().checked_sub(1) {
                    self.time = block.time(last);
                }
                if !read.refused {
                    continue;
                }
                self.counted(&text[starts[done]..starts[done + 1]], block)?;
                done += 1;
            }
            if found == 0 {
                break;
            }
            at = starts[found];
        }
        Ok(at)
    }

    /// Decodes a line, given with its line break, and counts it.
    ///
    /// # Errors
    /// [`LineError`] unless such lines are skipped.
    fn counted(&mut self, line: &[u8], block: &mut Block) -> Result<(), LineError> {
        self.lines += 1;
        if let Err((column, kind)) = self.line(line, block) {
            let error = LineError { line: self.lines, column: column + 1, kind };
            if !self.skips {
                return Err(error);
            }
            self.skipped.0 += 1;
            let (cause, line, row) = (UnseenCause::Skipped, self.lines, block.len());
            self.unseen.push(Unseen { cause, line, row, topic: None, origin: None });
            self.skipped.1.get_or_insert(error);
        }
        if let Some(last) = block.len().checked_sub(1) {
            self.time = block.time(last);
        }
        Ok(())
    }

    /// Returns the number of a topic that is not read.
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
}

/// Returns the number of successive first lines up to this size; `starts` includes the end of the last one.
fn fitting(starts: &[usize], largest: usize) -> usize {
    let long = starts.windows(2).position(|line| line[1] - line[0] > largest);
    long.unwrap_or(starts.len() - 1)
}
