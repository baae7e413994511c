//! Decodes JSON payloads into the slots that a program reads.
//!
//! The slow path ([`scan`], [`mod@walk`]) accepts any well-formed JSON and checks all of it. The fast path ([`shape`]) uses
//! the layouts of earlier messages of the topic; [`trace`] does so for lines in which messages of many topics
//! alternate.

mod array;
mod find;
mod plan;
mod scan;
mod shape;
mod table;
mod time;
mod trace;
mod walk;
mod words;
pub(crate) mod write;
mod writer;

use rondel_event::{Block, Path, Projection, Slot, TimeUnit, Timestamp, TopicId};

use crate::sink::{FirstMistyped, Refused};
pub(crate) use plan::{Action, Node};
pub use scan::{JsonError, JsonErrorKind, MAX_DEPTH};
pub(crate) use scan::{Kind, Scanner, float, unescape};
use shape::{Run, Shape};
pub(crate) use time::{Meaning, text_time};
pub(crate) use trace::{Named, TraceShapes};
pub(crate) use walk::walk;
pub use write::JsonForm;
pub(crate) use writer::{Writer, characters, time_at};

/// Returns text as JSON, in quotation marks.
pub fn quoted(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    write::quoted(text, &mut out);
    // A `str` is always valid.
    String::from_utf8(out).unwrap_or_default()
}

/// Checks that a payload is JSON.
pub(crate) fn check(payload: &[u8]) -> Result<(), JsonError> {
    let mut scanner = Scanner::new(payload);
    scanner.skip_space();
    scanner.skip(0)?;
    scanner.end()
}

/// Maximum size of payloads that use shapes, in bytes: for larger ones the gain is small compared with the cost of
/// Zenoh or DDS.
pub(crate) const SHORT: usize = 4096;

/// Decodes the JSON payloads of one topic.
#[derive(Clone, Debug)]
pub struct JsonDecoder {
    topic: TopicId,
    root: Node,
    time_unit: TimeUnit,
    shapes: Shapes,
    /// Whether payloads are rows of tables, in which a number may be `NaN`.
    takes_nan: bool,
    refused: Refused,
    /// The first value of another type in a table: the column of the table, and the field by its position.
    member: Option<(Slot, u16)>,
}

impl JsonDecoder {
    /// Creates a decoder for the messages of `topic` that reads the fields of `projection`.
    ///
    /// `time` is the path of the event time, with its unit; without it the event has the time passed to
    /// [`JsonDecoder::decode`]. The unit also applies to fields of type time and duration. It applies to plain numbers;
    /// a time may also be an object `{sec, nanosec}`, a number with a unit in a string (`"12.5 s"`), or a date and time
    /// by ISO 8601.
    pub fn new(
        topic: TopicId,
        projection: &Projection,
        time: Option<&Path>,
        time_unit: TimeUnit,
    ) -> JsonDecoder {
        JsonDecoder::of(Node::new(projection), topic, time, time_unit)
    }

    /// Like [`JsonDecoder::new`], for rows of tables: a number may be `NaN`.
    pub fn of_rows(
        topic: TopicId,
        projection: &Projection,
        time: Option<&Path>,
        time_unit: TimeUnit,
    ) -> JsonDecoder {
        let root = Node::of_rows(projection);
        JsonDecoder { takes_nan: true, ..JsonDecoder::of(root, topic, time, time_unit) }
    }

    fn of(mut root: Node, topic: TopicId, time: Option<&Path>, time_unit: TimeUnit) -> JsonDecoder {
        if let Some(path) = time {
            root.at(path).reads.push(Action::Time(time_unit));
        }
        JsonDecoder {
            topic,
            root,
            time_unit,
            shapes: Shapes::default(),
            takes_nan: false,
            refused: Refused::default(),
            member: None,
        }
    }

    /// Adds the event in `payload` to the block, which must not be full. `time` is its time unless the payload contains
    /// one.
    ///
    /// # Errors
    /// [`JsonError`] if the payload is not JSON or its time is invalid; the block is then unchanged. A missing field is
    /// no error; a field of another type is written as invalid (see [`Refused::mistyped`]).
    pub fn decode(&mut self, payload: &[u8], time: Timestamp, block: &mut Block) -> Result<(), JsonError> {
        if payload.len() <= SHORT && self.shapes.any() {
            let run = self.shapes.run(payload, &[0, payload.len()], block, time);
            if run.rows == 1 {
                self.refused.mistyped += run.mistyped;
                return Ok(());
            }
        }
        let row = block.push(self.topic, time);
        let mut writer = Writer::new(block, row, self.time_unit);
        let mut scanner = if self.takes_nan { Scanner::with_nan(payload) } else { Scanner::new(payload) };
        scanner.skip_space();
        let walked = walk(&mut scanner, Some(&self.root), 0, &mut writer).and_then(|()| scanner.end());
        let Writer { mistyped, not_numbers, left_out, large, no_number, time: own_time, .. } = writer;
        let member = writer.first_mistyped.zip(writer.first_member);
        let first_time = own_time.unwrap_or(time);
        let first = writer.first_mistyped;
        let first = first.map(|slot| FirstMistyped { slot, time: first_time, offset: None });
        if let Err(error) = walked {
            block.pop();
            return Err(error);
        }
        self.refused.add(Refused { mistyped, first, not_numbers, left_out, large, no_number: None });
        self.refused.add_text(no_number);
        self.member = self.member.or(member);
        if let Some(time) = own_time {
            block.set_time(row, time);
        }
        self.shapes.record(payload, &self.root, self.topic, self.time_unit);
        Ok(())
    }

    /// Returns the counts of the values that could not be written so far.
    pub fn refused(&self) -> &Refused {
        &self.refused
    }

    /// Returns of the first value of another type in a table the column of that, and the field by its position.
    pub(crate) fn mistyped_member(&self) -> Option<(Slot, u16)> {
        self.member
    }
}

/// Shapes recorded from the messages of a topic.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shapes {
    shapes: Vec<Shape>,
    last: usize,
}

impl Shapes {
    /// Maximum number of shapes. A source that writes its messages in more layouts gains little from shapes, and each
    /// further one costs all others a comparison.
    const MOST: usize = 32;

    pub(crate) fn any(&self) -> bool {
        !self.shapes.is_empty()
    }

    pub(crate) fn record(&mut self, text: &[u8], root: &Node, topic: TopicId, time_unit: TimeUnit) {
        if text.len() <= SHORT
            && self.shapes.len() < Shapes::MOST
            && let Some(shape) = Shape::record(text, root, Some(topic), time_unit)
        {
            self.shapes.push(shape);
            self.follow(self.shapes.len() - 1);
        }
    }

    /// Reads messages by the shape that fits the first one, if any does; message `i` is `text[starts[i]..starts[i +
    /// 1]]`.
    #[inline]
    pub(crate) fn run(&mut self, text: &[u8], starts: &[usize], block: &mut Block, time: Timestamp) -> Run {
        let guess = self.shapes.get(self.last).map_or(usize::MAX, |shape| shape.successor);
        let order = [guess, self.last].into_iter().chain(0..self.shapes.len());
        for index in order {
            let Some(shape) = self.shapes.get_mut(index) else { continue };
            let run = shape.run(text, starts, block, time);
            if run.rows > 0 {
                self.follow(index);
                return run;
            }
        }
        Run::default()
    }

    fn follow(&mut self, index: usize) {
        if let Some(shape) = self.shapes.get_mut(self.last) {
            shape.successor = index;
        }
        self.last = index;
    }
}
