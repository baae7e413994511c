//! Shapes: the messages of a topic are nearly always written by one program and differ only in their values. A shape is
//! recorded from a message that was decoded by the slow path: the text between the values, which the next message must
//! repeat byte for byte, and the target of each value. If the text is equal, the message is as well formed as the
//! recorded one, and only its values must be read. If it is not, the slow path decides: a shape can refuse a message,
//! but never misread it.

mod messages;
mod record;
mod step;
#[cfg(test)]
mod tests;

use rondel_event::{Block, Rows, Slot, TimeUnit, Timestamp, TopicId};

use super::time::{Meaning, Part};
use super::words::Words;
pub(crate) use messages::Goal;
use messages::{Consecutive, Group, Messages, Single};
use step::Context;

/// Layout of a message, recorded from one.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// `None` if messages of this shape are read but are no events.
    topic: Option<TopicId>,
    /// Position of the topic's name in the recorded message, if it has one.
    pub(crate) topic_at: Option<usize>,
    /// Whether the messages have a time.
    timed: bool,
    steps: Vec<Step>,
    /// Slots with the same value for every message of the shape.
    constants: Vec<Constant>,
    mistyped_per_row: u64,
    time_unit: TimeUnit,
    /// Length of the time unit in nanoseconds.
    time_scale: i64,
    /// Index of the shape of the message after the last one of this shape, as a prediction.
    pub(crate) successor: usize,
}

/// A literal text followed by a value.
#[derive(Clone, Debug)]
struct Step {
    /// First eight bytes of the text, and a mask of the significant ones.
    head: u64,
    mask: u64,
    /// Last eight bytes, if the text is longer than eight.
    last: u64,
    len: usize,
    /// Bytes between them, if the text is longer than sixteen; the end may overlap with `last`.
    middle: Box<[u64]>,
    value: Expected,
    /// Booleans of the rows of a run.
    bools: Rows,
}

/// Expected value after the text of a step, and its target.
#[derive(Clone, Copy, Debug)]
enum Expected {
    Bool(Option<u32>),
    Number(Target),
    String(Option<u32>),
    /// A time that is no plain number.
    Time(TimeForm, TimeTarget),
    /// No value: the end of the message.
    End,
}

/// Form of a time.
#[derive(Clone, Copy, Debug)]
enum TimeForm {
    /// One of the numbers of an object `{sec, nanosec}`.
    Part(Part),
    /// A string.
    Text(Meaning),
}

/// Target of a time that is no plain number.
#[derive(Clone, Copy, Debug)]
enum TimeTarget {
    Event,
    Field(u32),
}

#[derive(Clone, Copy, Debug)]
enum Target {
    Skip,
    Int(u32),
    Float(u32),
    /// A float, unless it is an integer that would be rounded.
    Exact(u32),
    TimeField(u32),
    EventTime,
}

#[derive(Clone, Copy, Debug)]
enum Constant {
    Invalid(Slot),
    /// A boolean that is false.
    False(Slot),
    Present(Slot),
}

/// Result of [`Shape::run`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Run {
    /// Number of messages.
    pub(crate) rows: usize,
    /// Number of values of another type than the program reads.
    pub(crate) mistyped: u64,
}

impl Shape {
    /// Reads messages of this shape into the block, message `i` being `text[starts[i]..starts[i + 1]]`, until the block
    /// is full or a message differs. An event whose message has no time gets `time`.
    ///
    /// Runs each step over all messages, not each message through all steps: the data of a step stay in registers, and
    /// the next message can begin before the end of the previous one is known.
    pub(crate) fn run(&mut self, text: &[u8], starts: &[usize], block: &mut Block, time: Timestamp) -> Run {
        let Some(words) = Words::new(text).filter(|_| self.topic.is_some()) else { return Run::default() };
        let (first, text_before) = (block.len(), block.text_len());
        let count = (starts.len() - 1).min(Block::CAPACITY - first);
        if !self.timed {
            for row in first..first + count {
                block.set_time(row, time);
            }
        }
        let rows = match starts {
            // A network often delivers one message at a time.
            [start, end] if count == 1 => {
                usize::from(self.run_one(words, *start, first, block) == Some(*end))
            }
            _ => {
                let mut places = [0; Block::CAPACITY];
                places[..count].copy_from_slice(&starts[..count]);
                let mut run = Consecutive { places: &mut places[..count], count, first };
                self.steps(words, &mut run, block);
                let ends = run.places[..run.count].iter().zip(&starts[1..]);
                ends.take_while(|(place, end)| place == end).count()
            }
        };
        if rows > 0 {
            self.settle(block, (Rows::MAX >> (Block::CAPACITY - rows)) << first);
        } else {
            block.truncate_text(text_before);
        }
        Run { rows, mistyped: self.mistyped_per_row * rows as u64 }
    }

    /// Reads one message into a row; returns its end, if it has this shape. Not inlined, so that the loops over many
    /// messages keep more in registers.
    #[inline(never)]
    fn run_one(&mut self, words: Words<'_>, start: usize, row: usize, block: &mut Block) -> Option<usize> {
        let mut message = Single { place: Some(start), row };
        self.steps(words, &mut message, block);
        message.place
    }

    /// Reads messages of this shape at any positions in the text into separate rows; returns which of them have it.
    /// They become events of the block only by [`Shape::settle`].
    pub(crate) fn gather<'p>(
        &mut self,
        words: Words<'_>,
        starts: &[usize],
        places: &'p mut [usize],
        goals: &'p mut [Goal],
        block: &mut Block,
    ) -> &'p [Goal] {
        let mut group = Group { places, goals };
        self.steps(words, &mut group, block);
        group.each(|goal, at| (at == starts[usize::from(goal.line) + 1]).then_some(at));
        group.goals
    }

    fn steps(&mut self, words: Words<'_>, messages: &mut impl Messages, block: &mut Block) {
        let context = Context { words, time_unit: self.time_unit, time_scale: self.time_scale };
        for step in &mut self.steps {
            step.run(context, messages, block);
        }
    }

    pub(crate) fn is_event(&self) -> bool {
        self.topic.is_some()
    }

    pub(crate) fn is_timed(&self) -> bool {
        self.timed
    }

    /// Returns the topic of its messages; none if it is not read.
    pub(crate) fn topic(&self) -> Option<TopicId> {
        self.topic
    }

    /// Returns the number of values of a message of another type than the program reads.
    pub(crate) fn mistyped_per_row(&self) -> u64 {
        self.mistyped_per_row
    }

    /// Makes the rows of a mask events of the block: their values are written.
    pub(crate) fn settle(&self, block: &mut Block, mask: Rows) {
        let Some(topic) = self.topic else { return };
        block.extend(topic, mask);
        for step in &self.steps {
            match step.value {
                Expected::Bool(Some(column)) => {
                    let c = block.bools_mut(column);
                    c.present |= mask;
                    c.valid |= mask;
                    c.values |= step.bools & mask;
                }
                Expected::Number(Target::Int(column) | Target::TimeField(column))
                | Expected::Time(_, TimeTarget::Field(column)) => {
                    block.mark_valid(Slot::Int(column), mask);
                }
                Expected::Number(Target::Float(column) | Target::Exact(column)) => {
                    block.mark_valid(Slot::Float(column), mask);
                }
                Expected::String(Some(column)) => block.mark_valid(Slot::String(column), mask),
                _ => {}
            }
        }
        for constant in &self.constants {
            match *constant {
                Constant::Invalid(slot) => block.mark_present(slot, mask),
                Constant::False(slot) => block.mark_valid(slot, mask),
                Constant::Present(slot) => {
                    block.mark_valid(slot, mask);
                    if let Slot::Bool(column) = slot {
                        block.bools_mut(column).values |= mask;
                    }
                }
            }
        }
    }
}
