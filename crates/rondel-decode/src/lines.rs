//! Lines of a trace: one JSON object or array each, in one of these forms.
//!
//! | form | a line is of it if | payload | recorded time | time of arrival |
//! |---|---|---|---|---|
//! | `{"topic":…, "time":…, "data":{…}}` | `data` is an object | `data` | `time` | `arrival`, if it is there |
//! | `mosquitto_sub -F %J` or `-F %j` | it has `tst` and `payload` | `payload`; if that is a string, the object that is written in it | `tst` | `tst` |
//! | `rondel tap --format json` | it has `arrival` and, if `data` is no object, either `message` or no members but `topic`, `time`, `arrival` (a number), `origin` and `data` or `payload` (a string) | `data`; `message`, as older versions wrote it; or the object in `payload` | `time` | `arrival` |
//! | event | it has `event` with the name of a [`TopicEvent`](rondel_event::TopicEvent) and no members but `topic`, `time`, `arrival`, `origin` and an object `key`; a flat message if it has no `arrival` and a field `event` is read of its topic | | `time` | `arrival` |
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
//!   run: a string without a JSON object, or an invalid event time. A message without a payload, which `mosquitto_sub`
//!   writes as `null`, is ignored and counted ([`Lines::empty`]), as in a live run. A line that is not JSON is an
//!   error, and so is an invalid `topic`, `time`, `arrival` or `tst`.

mod ahead;
mod events;
mod names;
mod published;

pub use ahead::{Ahead, Decoded, Part};
pub use names::{find as find_topic, is_matched, is_pattern, without_network};
pub use published::{Published, PublishedLine, published};

use std::fmt;
use std::sync::Arc;

use rondel_event::{Block, Origin, Path, Projection, Rows, Slot, TimeUnit, Timestamp, TopicId};

use wide::u8x16;

use crate::Parameters;
use crate::json::{
    Action, JsonError, JsonErrorKind, Kind, Named, Node, Scanner, TraceShapes, Writer, unescape, walk,
};
use crate::plain::{PlainPlan, VALUE, Words, is_plain};
use crate::sink::NoNumber;

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
    /// Words for true and false, if its payloads are plain.
    pub plain: Option<Arc<Words>>,
}

impl TraceTopic {
    /// Returns a topic whose messages have the recorded time, in seconds.
    pub fn new(names: Vec<String>, projection: Projection) -> TraceTopic {
        let time_unit = TimeUnit::Seconds;
        TraceTopic { names, projection, time: LineTime::Recorded, time_unit, events: None, plain: None }
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
    row: usize,
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

/// Plans for the parts of a line on a topic.
#[derive(Clone, Debug)]
struct Roots {
    names: Vec<String>,
    /// Parameters of its address.
    parameters: Option<Arc<Parameters>>,
    /// Plan for a payload that is written in a string.
    payload: Node,
    flat: Node,
    data: Node,
    message: Node,
    broker: Node,
    /// Plan for a line of a broker without its payload, which is written in a string.
    broker_frame: Node,
    time_unit: TimeUnit,
    events: Option<TopicId>,
    /// Whether its payloads are plain, in any of these parts.
    is_plain: bool,
    /// Whether a field `event` is read, so that a flat line with one is a message.
    reads_event: bool,
}

impl Roots {
    fn new(topic: &TraceTopic, time_unit: TimeUnit) -> Roots {
        let plain = topic.plain.as_ref().map(|words| {
            let time = if let LineTime::Field(path) = &topic.time { Some(path) } else { None };
            Node::leaf(Action::Plain(PlainPlan::new(&topic.projection, time, Arc::clone(words)).0))
        });
        let mut payload = match &plain {
            None => Node::new(&topic.projection),
            Some(value) => {
                let mut payload = Node::default();
                payload.replace(VALUE, value.clone());
                payload
            }
        };
        let mut flat = payload.clone(); // `data` in it is a field, as it is no object there
        let recorded = || Node::leaf(Action::Recorded(time_unit));
        // The reserved names are not fields of the payload, even if a formula uses them.
        let is_field = matches!(topic.time, LineTime::Field(_));
        flat.replace("time", if is_field { Node::default() } else { recorded() });
        flat.replace("topic", Node::leaf(Action::Topic));
        if let LineTime::Field(path) = &topic.time
            && plain.is_none()
        {
            for root in [&mut payload, &mut flat] {
                root.at(path).actions.push(Action::Time(topic.time_unit));
            }
        }
        let frame = |times: &[&str]| {
            let mut root = Node::default();
            root.replace("topic", Node::leaf(Action::Topic));
            times.iter().filter(|_| !is_field).for_each(|time| root.replace(time, recorded()));
            root
        };
        let below = |name: &str, times: &[&str]| {
            let mut root = frame(times);
            root.replace(name, payload.clone());
            root
        };
        let is_arrival = topic.time == LineTime::Arrival;
        let times: &[&str] = if is_arrival { &["time", "arrival"] } else { &["time"] };
        Roots {
            parameters: Parameters::of(&topic.names, &topic.projection).map(Arc::new),
            names: topic.names.clone(),
            data: below("data", times),
            message: below("message", times),
            broker: {
                let mut broker = below("payload", &["tst"]);
                plain.iter().for_each(|value| broker.replace("payload", value.clone()));
                broker
            },
            is_plain: plain.is_some(),
            broker_frame: frame(&["tst"]),
            payload,
            flat,
            time_unit: topic.time_unit,
            events: topic.events,
            reads_event: events::reads_field(&topic.projection),
        }
    }

    fn read_arrivals(&mut self, unit: TimeUnit) {
        for (root, name) in [
            (&mut self.data, "arrival"),
            (&mut self.message, "arrival"),
            (&mut self.broker, "tst"),
            (&mut self.broker_frame, "tst"),
        ] {
            root.at(&Path::keys([name])).actions.push(Action::Arrival(unit));
        }
    }
}

/// Value of a member: its kind and its bounds in the line.
#[derive(Clone, Copy, Debug)]
struct Member {
    kind: Kind,
    start: usize,
    end: usize,
}

/// Members of a line that determine its form.
#[derive(Clone, Copy, Debug, Default)]
struct Members {
    topic: Option<Member>,
    data: Option<Member>,
    message: Option<Member>,
    payload: Option<Member>,
    arrival: Option<Member>,
    time: Option<Member>,
    event: Option<Member>,
    /// Key of the instance of an event: an object.
    key: Option<Member>,
    tst: Option<Member>,
    /// Whether there are members that `rondel tap` does not write.
    has_others: bool,
}

/// Form of a line, with its payload if a failure to decode it is no error of the line.
#[derive(Clone, Copy, Debug)]
enum Form {
    Flat,
    Data(Option<Member>),
    Message(Member),
    /// From `mosquitto_sub`: the payload is JSON, or a string with JSON.
    Broker(Member),
    /// From `rondel tap`: the payload could not be decoded, and is an escaped string.
    Escaped(Member),
}

impl Form {
    /// Whether it is a message without a payload, by which a broker removes a retained message; `mosquitto_sub` writes
    /// null or an empty string.
    fn is_empty(&self) -> bool {
        match self {
            Form::Broker(payload) if payload.kind == Kind::String => payload.end - payload.start == 2,
            Form::Broker(payload) => payload.kind == Kind::Null,
            _ => false,
        }
    }
}

impl Members {
    fn find(scanner: &mut Scanner<'_>) -> Result<Members, JsonError> {
        let mut members = Members::default();
        scanner.members(0, |scanner, key| {
            let (start, kind) = (scanner.at, scanner.kind()?);
            scanner.skip(1)?;
            let member = Some(Member { kind, start, end: scanner.at });
            if key.is("topic") {
                if kind != Kind::String {
                    let kind = JsonErrorKind::Expected("a string as the topic");
                    return Err(JsonError { offset: start, kind });
                }
                members.topic = member;
            } else if key.is("data") {
                members.data = member;
            } else if key.is("message") {
                members.message = member;
            } else if key.is("payload") {
                members.payload = member;
            } else if key.is("arrival") {
                members.arrival = member;
            } else if key.is("time") {
                members.time = member;
            } else if key.is("event") {
                members.event = member;
            } else if key.is("key") && kind == Kind::Object {
                members.key = member;
            } else if key.is("tst") {
                members.tst = member;
                members.has_others = true;
            } else {
                members.has_others |= !key.is("origin");
            }
            Ok(())
        })?;
        Ok(members)
    }

    /// Determined only by keys and kinds of values, so that lines of one shape have one form.
    fn form(&self) -> Form {
        let is_tap = !self.has_others
            && self.event.is_none()
            && self.key.is_none()
            && self.arrival.is_some_and(|arrival| arrival.kind == Kind::Number);
        match (self.data, self.message, self.payload) {
            (Some(data), ..) if data.kind == Kind::Object => Form::Data(self.arrival.map(|_| data)),
            (.., Some(payload)) if self.tst.is_some() => Form::Broker(payload),
            (_, Some(message), _) if self.arrival.is_some() => Form::Message(message),
            (Some(data), ..) if is_tap => Form::Data(Some(data)),
            (.., Some(payload)) if is_tap && payload.kind == Kind::String => Form::Escaped(payload),
            _ => Form::Flat,
        }
    }
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

/// Error of an array as a line if the specification has several topics.
const NAMED_OBJECT: &str = "an object, found an array; with several topics a line is an object with a member such as \"topic\": \"NAME\"";

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
                root.at(&Path::keys(["origin", "publisher"])).actions.push(Action::Publisher);
                root.at(&Path::keys(["origin", "number"])).actions.push(Action::Number);
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

    /// Decodes a line, given with its line break.
    fn line(&mut self, with_break: &[u8], block: &mut Block) -> Result<(), (usize, LineErrorKind)> {
        let line = &with_break[..with_break.len() - 1];
        let json = |e: JsonError| (e.offset, LineErrorKind::Json(e.kind));
        let mut scanner = Scanner::new(line);
        scanner.skip_space();
        if scanner.peek().is_none() {
            return Ok(());
        }
        // A row that is an array has no names, and is all payload.
        let is_array = scanner.peek() == Some(b'[');
        let members =
            if is_array { scanner.skip(0).map(|()| Members::default()) } else { Members::find(&mut scanner) };
        let members = members.and_then(|members| scanner.end().map(|()| members)).map_err(json)?;

        let topic = members.topic.map(|topic| &line[topic.start + 1..topic.end - 1]);
        let mut named = None;
        let index = match topic {
            _ if self.any_topic => 0,
            None if self.named == 1 => 0,
            None if is_array => return Err((0, LineErrorKind::Json(JsonErrorKind::Expected(NAMED_OBJECT)))),
            None => return Err((0, LineErrorKind::NoTopic)),
            Some(raw) => {
                let name = unescape(raw).unwrap_or_default();
                match names::find(self.topics[..self.named].iter().map(|topic| &*topic.names), &name) {
                    Some(index) => {
                        named = self.topics[index].parameters.is_some().then_some(name);
                        index
                    }
                    None => {
                        let other = self.other(name);
                        self.shapes.record(with_break, &self.unread, Err(other), None, self.time_unit);
                        self.shapes.count_other(Some(other), 1);
                        return Ok(());
                    }
                }
            }
        };
        let roots = &self.topics[index];
        if let Some(event) = members.event(line, roots) {
            return self.event(line, &members, (index, event), block);
        }
        let form = members.form();
        let (root, payload) = match form {
            Form::Flat => (&roots.flat, None),
            Form::Data(payload) => (&roots.data, payload),
            Form::Message(payload) => (&roots.message, Some(payload)),
            Form::Broker(payload) if payload.kind == Kind::String && !roots.is_plain => {
                (&roots.broker_frame, Some(payload))
            }
            Form::Broker(payload) => (&roots.broker, Some(payload)),
            Form::Escaped(payload) => (&roots.data, Some(payload)),
        };
        if form.is_empty() {
            self.empty += 1;
            return Ok(());
        }
        let (id, time_unit) = (TopicId(index as u32), roots.time_unit);
        // Without a frame, the whole line is the payload.
        let framed = payload.or(members.data.filter(|_| matches!(form, Form::Data(_))));
        let size = framed.map_or(line.len(), |payload| payload.end - payload.start);
        if size > self.largest {
            let (cause, line, row) = (UnseenCause::TooLarge(size), self.lines, block.len());
            self.unseen.push(Unseen { cause, line, row, topic: Some(id), origin: None });
            return Ok(());
        }
        let row = block.push(id, self.time);
        let mut writer = Writer::new(block, row, time_unit);
        let mut scanner = Scanner::new(line);
        scanner.skip_space();
        let walked = walk(&mut scanner, Some(root), 0, &mut writer);
        // The text in a string is decoded separately. It differs in more than its values, so there is no shape to
        // record.
        let text = payload
            .filter(|_| !(roots.is_plain && matches!(form, Form::Broker(_))))
            .filter(|text| text.kind == Kind::String && matches!(form, Form::Broker(_) | Form::Escaped(_)))
            .map(|text| unescape(&line[text.start + 1..text.end - 1]).unwrap_or_default());
        let undecodable = match (&walked, &text) {
            (Err(error), _) => {
                let inside = payload.filter(|payload| (payload.start..payload.end).contains(&error.offset));
                inside.map(|payload| JsonError { offset: error.offset - payload.start, ..*error }.to_string())
            }
            // A text with a second level of escapes is not the original payload any more.
            (Ok(()), Some(text)) if matches!(form, Form::Escaped(_)) && text.contains('\\') => {
                Some(NO_OBJECT.to_owned())
            }
            (Ok(()), Some(text)) => object(text.as_bytes(), &roots.payload, &mut writer).err(),
            (Ok(()), None) => None,
        };
        let (mistyped, time, origin) = (writer.mistyped, writer.time, writer.origin);
        let (first_mistyped, left_out) = (writer.first_mistyped, writer.left_out);
        let member = writer.first_member;
        let no_number = writer.no_number.filter(|text| Some(text.slot()) == first_mistyped);
        let is_inexact = first_mistyped.is_some() && first_mistyped == writer.large;
        if let Some(reason) = undecodable {
            block.pop();
            if self.undecodable == 0 {
                self.first_undecodable = Some((self.lines, reason));
            }
            self.undecodable += 1;
            let (publisher, number) = origin;
            let origin = publisher.zip(number).map(|(publisher, number)| Origin { publisher, number });
            let (cause, line) = (UnseenCause::Undecodable, self.lines);
            self.unseen.push(Unseen { cause, line, row, topic: Some(id), origin });
            return Ok(());
        }
        if let Err(error) = walked {
            block.pop();
            return Err(json(error));
        }
        if left_out > 0 {
            self.left_out.push((id, left_out));
        }
        if let Some(slot) = first_mistyped {
            if self.shapes.mistyped().get(id.index()).is_none_or(|count| *count == 0) {
                let time = time.unwrap_or(self.time);
                let first = Mistyped { topic: id, slot, member, is_inexact, no_number, time, row };
                self.first_mistyped.push(first);
            }
            self.shapes.add_mistyped(Some(id), mistyped);
        }
        let named = roots.parameters.as_ref().zip(named.as_deref()).and_then(|(parameters, name)| {
            let texts = parameters.captures(name)?.into_iter().map(Box::from).collect();
            Some(Named { parameters: Arc::clone(parameters), texts })
        });
        if let Some(Named { parameters, texts }) = &named {
            parameters.write(texts, block, row);
        }
        block.set_time(row, time.unwrap_or(self.time));
        self.untimed |= Rows::from(time.is_none()) << row;
        if let (Some(publisher), Some(number)) = origin {
            self.origins.push((row, Origin { publisher, number }));
        }
        if text.is_none() && !members.may_be_event() {
            self.shapes.record(with_break, root, Ok(id), named, time_unit);
        }
        Ok(())
    }

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

/// Returns the number of successive first lines up to this size; `starts` includes the end of the last one.
fn fitting(starts: &[usize], largest: usize) -> usize {
    let long = starts.windows(2).position(|line| line[1] - line[0] > largest);
    long.unwrap_or(starts.len() - 1)
}

/// Error of a payload that is a text without an object.
const NO_OBJECT: &str = "the payload is no JSON object";

/// Decodes the object in a text.
///
/// # Errors
/// The reason why it cannot be decoded.
fn object(text: &[u8], payload: &Node, writer: &mut Writer<'_>) -> Result<(), String> {
    let mut scanner = Scanner::new(text);
    scanner.skip_space();
    if scanner.peek() != Some(b'{') {
        return Err(match is_plain(text) {
            true => format!("{NO_OBJECT}; a topic of plain values needs `encoding: plain` in a deployment"),
            false => NO_OBJECT.to_owned(),
        });
    }
    let walked = walk(&mut scanner, Some(payload), 0, writer).and_then(|()| scanner.end());
    walked.map_err(|error| error.to_string())
}
