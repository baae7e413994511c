//! Shapes: the messages of a topic are nearly always written by one program and differ only in their values. A shape is
//! recorded from a message that was decoded by the slow path: the text between the values, which the next message must
//! repeat byte for byte, and the target of each value. If the text is equal, the message is as well formed as the
//! recorded one, and only its values must be read. If it is not, the slow path decides: a shape can refuse a message,
//! but never misread it.

use rondel_event::{Block, Rows, Slot, TimeUnit, Timestamp, TopicId, ValueType};

use super::plan::{Action, Node, Visitor, is_number, walk};
use super::scan::{JsonError, Kind, Scanner, integer, is_rounded};
use super::time::{self, Meaning, Part, Parts};
use super::words::{Words, decimal, string};
use crate::sink::Target as SinkTarget;

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
    /// Records the shape of a message that was decoded before. `None` if it cannot have one: it has tests of array
    /// elements, reads elements by their positions from the end or by name, or writes a slot twice.
    ///
    /// `text` includes the separator after the message (a line break, or nothing).
    pub(crate) fn record(
        text: &[u8],
        root: &Node,
        topic: Option<TopicId>,
        time_unit: TimeUnit,
    ) -> Option<Shape> {
        if root.searches_elements() {
            return None;
        }
        let mut recorder = ShapeRecorder {
            shape: Shape {
                topic,
                topic_at: None,
                timed: false,
                steps: Vec::new(),
                constants: Vec::new(),
                mistyped_per_row: 0,
                time_unit,
                time_scale: 10i64.pow(u32::from(time_unit.nanos_exponent())),
                successor: usize::MAX,
            },
            literal_from: 0,
            value_starts: Vec::new(),
            slots: Vec::new(),
            possible: true,
        };
        let mut scanner = Scanner::new(text);
        scanner.skip_space();
        walk(&mut scanner, Some(root), 0, &mut recorder).ok()?;
        recorder.step(text, text.len(), text.len(), Expected::End);
        recorder.possible.then_some(recorder.shape)
    }

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
        (places, goals): (&'p mut [usize], &'p mut [Goal]),
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

/// Data shared by all steps of a run.
#[derive(Clone, Copy)]
struct Context<'t> {
    words: Words<'t>,
    time_unit: TimeUnit,
    time_scale: i64,
}

/// Line and row of a message among others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Goal {
    pub(crate) row: u8,
    pub(crate) line: u8,
}

/// Messages over which steps run together.
trait Messages {
    /// Advances the messages: given the row and the position, `passed` returns the next position, or `None` to drop the
    /// message.
    fn each(&mut self, passed: impl FnMut(usize, usize) -> Option<usize>);

    /// Keeps the messages with these words, each at an offset from the position.
    fn keep(&mut self, words: Words<'_>, wanted: impl Iterator<Item = (usize, u64)> + Clone);
}

/// Returns zero if the text has these words, each at an offset from the position. Without a branch for each, since
/// nearly always all are equal.
#[inline(always)]
fn differ(words: Words<'_>, at: usize, wanted: impl Iterator<Item = (usize, u64)>) -> u64 {
    wanted.fold(0, |differs, (offset, word)| differs | words.at(at + offset) ^ word)
}

/// One message.
struct Single {
    /// Current position; `None` if the message differs.
    place: Option<usize>,
    /// Row of the block.
    row: usize,
}

impl Messages for Single {
    #[inline(always)]
    fn each(&mut self, mut passed: impl FnMut(usize, usize) -> Option<usize>) {
        self.place = self.place.and_then(|at| passed(self.row, at));
    }

    #[inline(always)]
    fn keep(&mut self, words: Words<'_>, wanted: impl Iterator<Item = (usize, u64)> + Clone) {
        self.place = self.place.filter(|at| differ(words, *at, wanted) == 0);
    }
}

/// Successive messages in successive rows, up to the first that differs.
struct Consecutive<'p> {
    places: &'p mut [usize],
    /// Number of messages that have not differed.
    count: usize,
    /// Row of the first message.
    first: usize,
}

impl Messages for Consecutive<'_> {
    #[inline(always)]
    fn each(&mut self, mut passed: impl FnMut(usize, usize) -> Option<usize>) {
        for (i, place) in self.places[..self.count].iter_mut().enumerate() {
            match passed(self.first + i, *place) {
                Some(end) => *place = end,
                None => {
                    self.count = i;
                    return;
                }
            }
        }
    }

    #[inline(always)]
    fn keep(&mut self, words: Words<'_>, wanted: impl Iterator<Item = (usize, u64)> + Clone) {
        let places = &self.places[..self.count];
        self.count =
            places.iter().position(|at| differ(words, *at, wanted.clone()) != 0).unwrap_or(self.count);
    }
}

/// Messages with others between them: each that differs is removed.
struct Group<'p> {
    /// Current position of each.
    places: &'p mut [usize],
    goals: &'p mut [Goal],
}

impl Group<'_> {
    #[inline(always)]
    fn each(&mut self, mut passed: impl FnMut(Goal, usize) -> Option<usize>) {
        let mut failed: Rows = 0;
        for (i, (place, goal)) in self.places.iter_mut().zip(&*self.goals).enumerate() {
            match passed(*goal, *place) {
                Some(at) => *place = at,
                None => failed |= 1 << i,
            }
        }
        if failed != 0 {
            self.take_out(failed);
        }
    }

    #[inline(never)]
    fn take_out(&mut self, failed: Rows) {
        let mut kept = 0;
        for i in (0..self.places.len()).filter(|i| failed >> i & 1 == 0) {
            (self.places[kept], self.goals[kept]) = (self.places[i], self.goals[i]);
            kept += 1;
        }
        self.places = &mut std::mem::take(&mut self.places)[..kept];
        self.goals = &mut std::mem::take(&mut self.goals)[..kept];
    }
}

impl Messages for Group<'_> {
    #[inline(always)]
    fn each(&mut self, mut passed: impl FnMut(usize, usize) -> Option<usize>) {
        Group::each(self, |goal, at| passed(usize::from(goal.row), at));
    }

    #[inline(always)]
    fn keep(&mut self, words: Words<'_>, wanted: impl Iterator<Item = (usize, u64)> + Clone) {
        Group::each(self, |_, at| (differ(words, at, wanted.clone()) == 0).then_some(at));
    }
}

impl Step {
    /// Runs this step over the messages. Values written for messages that differ have no effect: the masks of the block
    /// exclude their rows.
    #[inline(always)]
    fn run(&mut self, context: Context<'_>, messages: &mut impl Messages, block: &mut Block) {
        let Context { words, time_unit, time_scale } = context;
        if self.len > 8 {
            let last = (self.len - 8, self.last);
            // With a length known to the compiler: nearly all texts between two values have up to 32 bytes.
            match self.middle[..] {
                [] => messages.keep(words, [last].into_iter()),
                [a] => messages.keep(words, [last, (8, a)].into_iter()),
                [a, b] => messages.keep(words, [last, (8, a), (16, b)].into_iter()),
                _ => {
                    let middle = self.middle.iter().enumerate().map(|(i, word)| (8 + 8 * i, *word));
                    messages.keep(words, [last].into_iter().chain(middle));
                }
            }
        }
        let literal = Literal { head: self.head, mask: self.mask, len: self.len };
        match self.value {
            Expected::End => messages.each(|_, at| literal.pass(words, at)),
            Expected::Bool(_) => {
                let mut values: Rows = 0;
                messages.each(|row, at| {
                    // Without a branch on the value, so that a field that changes at random causes no misprediction.
                    let value_at = at + literal.len;
                    let value = words.at(value_at);
                    let is_true = value as u32 == u32::from_le_bytes(*b"true");
                    let not_false = (value ^ u64::from_le_bytes(*b"false\0\0\0")) << 24;
                    let wrong = literal.difference(words, at) | if is_true { 0 } else { not_false };
                    values |= Rows::from(is_true) << row;
                    (wrong == 0).then_some(value_at + 5 - usize::from(is_true))
                });
                self.bools = values;
            }
            Expected::Number(Target::Skip) => {
                messages.each(|_, at| Some(decimal(words, literal.pass(words, at)?)?.end));
            }
            Expected::Number(Target::Float(column)) => messages.each(|row, at| {
                let number = decimal(words, literal.pass(words, at)?)?;
                block.write_float(column, row, number.float(words.text));
                Some(number.end)
            }),
            Expected::Number(Target::Exact(column)) => messages.each(|row, at| {
                let number = decimal(words, literal.pass(words, at)?)?;
                block.write_float(column, row, number.exact(words.text)?);
                Some(number.end)
            }),
            Expected::Number(Target::Int(column)) => messages.each(|row, at| {
                let number = decimal(words, literal.pass(words, at)?)?;
                block.write_int(column, row, number.integer(words.text)?);
                Some(number.end)
            }),
            Expected::Number(Target::TimeField(column)) => messages.each(|row, at| {
                let number = decimal(words, literal.pass(words, at)?)?;
                block.write_int(column, row, number.nanos(words.text, time_scale, time_unit)?);
                Some(number.end)
            }),
            Expected::Number(Target::EventTime) => messages.each(|row, at| {
                let number = decimal(words, literal.pass(words, at)?)?;
                let ns = number.nanos(words.text, time_scale, time_unit)?;
                block.set_time(row, Timestamp::from_nanos(ns));
                Some(number.end)
            }),
            Expected::String(column) => {
                messages.each(|row, at| string(words, literal.pass(words, at)?, column, row, block));
            }
            Expected::Time(form, target) => time_step(form, target, literal, context, messages, block),
        }
    }
}

/// Runs a step with a time that is no plain number. A separate function, so that it does not slow down the other steps.
#[inline(never)]
fn time_step(
    form: TimeForm,
    target: TimeTarget,
    literal: Literal,
    context: Context<'_>,
    messages: &mut impl Messages,
    block: &mut Block,
) {
    let Context { words, time_unit, .. } = context;
    messages.each(|row, at| {
        let start = literal.pass(words, at)?;
        let (ns, end) = match form {
            TimeForm::Part(part) => {
                let number = decimal(words, start)?;
                let before = match target {
                    TimeTarget::Event => block.time(row).as_nanos(),
                    TimeTarget::Field(column) => block.ints(column).values[row],
                };
                (part.add(number.whole(words.text)?, before)?, number.end)
            }
            TimeForm::Text(meaning) => {
                let end = string(words, start, None, row, block)?;
                let time = time::string(&words.text[start + 1..end - 1], time_unit, meaning).ok()?;
                (time.as_nanos(), end)
            }
        };
        match target {
            TimeTarget::Event => block.set_time(row, Timestamp::from_nanos(ns)),
            TimeTarget::Field(column) => block.write_int(column, row, ns),
        }
        Some(end)
    });
}

/// The text before a value, up to its first eight bytes.
#[derive(Clone, Copy)]
struct Literal {
    head: u64,
    mask: u64,
    len: usize,
}

impl Literal {
    /// Returns zero if the text is there.
    #[inline(always)]
    fn difference(self, words: Words<'_>, at: usize) -> u64 {
        (words.at(at) ^ self.head) & self.mask
    }

    #[inline(always)]
    fn pass(self, words: Words<'_>, at: usize) -> Option<usize> {
        (self.difference(words, at) == 0).then_some(at + self.len)
    }
}

/// Visitor that records the shape of a message.
struct ShapeRecorder {
    shape: Shape,
    literal_from: usize,
    /// Position of the value of each step.
    value_starts: Vec<usize>,
    slots: Vec<Slot>,
    possible: bool,
}

impl ShapeRecorder {
    /// Adds a step: the text from the last value to `start`, then the value, which ends at `end`.
    fn step(&mut self, text: &[u8], start: usize, end: usize, value: Expected) {
        let literal = &text[self.literal_from..start];
        let (mut head, mut mask) = ([0; 8], [0; 8]);
        for (i, &byte) in literal.iter().take(8).enumerate() {
            (head[i], mask[i]) = (byte, 0xff);
        }
        self.shape.steps.push(Step {
            head: u64::from_le_bytes(head),
            mask: u64::from_le_bytes(mask),
            last: literal
                .last_chunk()
                .filter(|_| literal.len() > 8)
                .map_or(0, |last| u64::from_le_bytes(*last)),
            len: literal.len(),
            middle: (8..literal.len().saturating_sub(8))
                .step_by(8)
                .filter_map(|at| literal[at..].first_chunk())
                .map(|word| u64::from_le_bytes(*word))
                .collect(),
            value,
            bools: 0,
        });
        self.value_starts.push(start);
        self.literal_from = end;
    }

    /// Converts the steps of an object `{sec, nanosec}`, recorded as plain numbers, to those of a time; returns whether
    /// that is possible.
    fn object(&mut self, text: &[u8], start: usize, target: TimeTarget) -> bool {
        let first = self.value_starts.partition_point(|at| *at < start);
        let (Some(parts), [one, two]) = (Parts::find(text), &mut self.shape.steps[first..]) else {
            return false;
        };
        if parts.is_signed {
            // Times and durations allow different values.
            return false;
        }
        let mut sum = Some(0);
        for (step, (part, number)) in [one, two].into_iter().zip(parts.in_order()) {
            let is_free = matches!(step.value, Expected::Number(Target::Skip));
            sum = sum.and_then(|sum| part.add(time::whole(number)?, sum)).filter(|_| is_free);
            step.value = Expected::Time(TimeForm::Part(part), target);
        }
        sum.is_some()
    }
}

impl Visitor for ShapeRecorder {
    const EVERYTHING: bool = true;

    fn value(
        &mut self,
        node: Option<&Node>,
        kind: Kind,
        start: usize,
        scanner: &Scanner<'_>,
    ) -> Result<(), JsonError> {
        let mut target = None;
        // Target of a time that is no plain number.
        let mut time_target = None;
        let (mut literal, mut is_number_text) = (false, false);
        let is_written_out = matches!(kind, Kind::Object | Kind::String);
        for action in node.map_or(&[][..], |n| &n.actions) {
            match action {
                Action::Plain(_) | Action::Table(_) => self.possible = false,
                Action::Value(value_type, slot) => {
                    self.possible &= !self.slots.contains(slot);
                    self.slots.push(*slot);
                    let fits = match value_type {
                        ValueType::Bool => matches!(kind, Kind::True | Kind::False),
                        ValueType::String => kind == Kind::String,
                        ValueType::Int | ValueType::Float | ValueType::Time | ValueType::Duration => {
                            kind == Kind::Number
                        }
                    };
                    let meaning = match value_type {
                        ValueType::Time => Some(Meaning::Time),
                        ValueType::Duration => Some(Meaning::Duration),
                        _ => None,
                    };
                    if let (Some(meaning), Slot::Int(column), true) = (meaning, *slot, is_written_out) {
                        self.possible &= time_target.is_none();
                        time_target = Some((TimeTarget::Field(column), meaning));
                    } else if fits {
                        self.possible &= target.is_none();
                        target = Some(match (value_type, *slot) {
                            (ValueType::Time | ValueType::Duration, Slot::Int(column)) => {
                                Target::TimeField(column)
                            }
                            (_, Slot::Float(column)) => Target::Float(column),
                            // The kind of the column follows from the kind of the value below.
                            (_, Slot::Bool(column) | Slot::Int(column) | Slot::String(column)) => {
                                Target::Int(column)
                            }
                        });
                    } else {
                        self.shape.constants.push(Constant::Invalid(*slot));
                        self.shape.mistyped_per_row += u64::from(kind != Kind::Null);
                    }
                }
                Action::Exact(slot) => {
                    self.possible &= !self.slots.contains(slot) && target.is_none();
                    self.slots.push(*slot);
                    match (kind, *slot) {
                        (Kind::Number, Slot::Float(column)) => target = Some(Target::Exact(column)),
                        _ => {
                            self.shape.constants.push(Constant::Invalid(*slot));
                            self.shape.mistyped_per_row += u64::from(kind != Kind::Null);
                        }
                    }
                }
                Action::Decimal(number) => {
                    let text = &scanner.text[start..scanner.at];
                    let slot = number.slot().filter(|slot| match (kind, slot) {
                        (Kind::Number, _) => true,
                        // The quotation marks belong to the text around the number.
                        (Kind::String, Slot::Float(_)) => is_number(&text[1..text.len() - 1]),
                        _ => false,
                    });
                    is_number_text = kind == Kind::String;
                    self.possible &= target.is_none() && slot.is_some_and(|slot| !self.slots.contains(&slot));
                    self.slots.extend(slot);
                    target = match (slot, number) {
                        (Some(Slot::Float(column)), SinkTarget::Decimal(of))
                            if matches!(**of, SinkTarget::Exact(_)) =>
                        {
                            Some(Target::Exact(column))
                        }
                        (Some(Slot::Float(column)), _) => Some(Target::Float(column)),
                        (Some(Slot::Int(column)), _) => Some(Target::Int(column)),
                        _ => None,
                    };
                }
                Action::Presence(slot) => {
                    self.possible &= !self.slots.contains(slot);
                    self.slots.push(*slot);
                    self.shape.constants.push(Constant::Present(*slot));
                }
                Action::IsNan(slot) => {
                    self.possible &= !self.slots.contains(slot);
                    self.slots.push(*slot);
                    self.shape.constants.push(match kind {
                        Kind::Number => Constant::False(*slot),
                        _ => Constant::Invalid(*slot),
                    });
                }
                Action::Elements(..) | Action::Witness(..) | Action::Length(..) => self.possible = false,
                Action::Recorded(_) | Action::Arrival(_) if kind == Kind::Null => {}
                Action::Time(unit) | Action::Recorded(unit) => {
                    self.possible &=
                        target.is_none() && time_target.is_none() && *unit == self.shape.time_unit;
                    // Of several times the last one counts, which is written last.
                    self.shape.timed = true;
                    if is_written_out {
                        time_target = Some((TimeTarget::Event, Meaning::Time));
                    } else {
                        target = Some(Target::EventTime);
                    }
                }
                Action::Arrival(_) | Action::Publisher | Action::Number => self.possible = false,
                Action::Topic => {
                    literal = true;
                    self.shape.topic_at = Some(start);
                }
            }
        }
        if is_number_text {
            let (start, end) = (start + 1, scanner.at - 1);
            let is_rounded =
                matches!(target, Some(Target::Exact(_))) && is_rounded(&scanner.text[start..end]);
            self.possible &= !is_rounded && time_target.is_none();
            self.step(scanner.text, start, end, Expected::Number(target.unwrap_or(Target::Skip)));
            return Ok(());
        }
        // A value that a run would refuse would cause the shape to be recorded again with every message.
        let text = &scanner.text[start..scanner.at];
        self.possible &= match (kind, target) {
            (Kind::String, _) => !text.contains(&b'\\'),
            (Kind::Number, Some(Target::Int(_))) => integer(text).is_some(),
            (Kind::Number, Some(Target::Exact(_))) => !is_rounded(text),
            (Kind::Number, Some(Target::TimeField(_) | Target::EventTime)) => {
                Timestamp::parse(text, self.shape.time_unit).is_ok()
            }
            _ => true,
        };
        if let Some((time_target, meaning)) = time_target {
            // The layout of another text or object does not show whether it is a time.
            self.possible &= target.is_none();
            if kind == Kind::Object {
                self.possible &= self.object(text, start, time_target);
            } else {
                self.possible &= !literal && time::read(kind, text, self.shape.time_unit, meaning).is_ok();
                let expected = Expected::Time(TimeForm::Text(meaning), time_target);
                self.step(scanner.text, start, scanner.at, expected);
                return Ok(());
            }
        }
        let column = target.and_then(|t| if let Target::Int(column) = t { Some(column) } else { None });
        let expected = match kind {
            // A key may come and go in a container that is only checked for presence; its text is then different. Rows
            // with NaN have no shape.
            Kind::Object | Kind::Array | Kind::Null | Kind::Nan => return Ok(()),
            Kind::True | Kind::False => Expected::Bool(column),
            Kind::String => Expected::String(column),
            Kind::Number => Expected::Number(target.unwrap_or(Target::Skip)),
        };
        if !literal {
            self.step(scanner.text, start, scanner.at, expected);
        }
        Ok(())
    }

    /// A shape repeats the kinds of all values, so parts missing in this message are missing in all of the shape.
    fn unreachable(&mut self, action: &Action, kind: Kind, _: usize) -> Result<(), JsonError> {
        match action {
            Action::Value(_, slot)
            | Action::Exact(slot)
            | Action::Elements(_, _, slot)
            | Action::Length(slot, _) => {
                self.possible &= !self.slots.contains(slot);
                self.slots.push(*slot);
                self.shape.constants.push(Constant::Invalid(*slot));
                self.shape.mistyped_per_row += u64::from(kind != Kind::Null);
            }
            Action::Time(_)
            | Action::Plain(_)
            | Action::Decimal(_)
            | Action::Witness(..)
            | Action::Table(_) => {
                self.possible = false;
            }
            Action::IsNan(slot) => {
                self.possible &= !self.slots.contains(slot);
                self.slots.push(*slot);
                self.shape.constants.push(Constant::Invalid(*slot));
            }
            Action::Presence(_) | Action::Topic | Action::Publisher | Action::Number => {}
            Action::Recorded(_) | Action::Arrival(_) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondel_event::{Layout, Path, Projection};

    /// Reads the second message by the shape of the first, if it has one; returns the event time.
    fn by_shape(first: &str, second: &str) -> Option<Option<i64>> {
        let mut root = Node::new(&Projection::default());
        root.at(&Path::keys(["t"])).actions.push(Action::Time(TimeUnit::Seconds));
        let mut shape = Shape::record(first.as_bytes(), &root, Some(TopicId(0)), TimeUnit::Seconds)?;
        let mut block = Block::new(Layout { topics: 1, ..Layout::default() });
        let run = shape.run(second.as_bytes(), &[0, second.len()], &mut block, Timestamp::ZERO);
        Some((run.rows == 1).then(|| block.time(0).as_nanos()))
    }

    #[test]
    fn every_form_of_a_time_has_a_shape() {
        for (first, second, ns) in [
            ("1.5", "2.5", 2_500_000_000),
            (
                r#"{"sec":1,"nanosec":2}"#,
                r#"{"sec":1732298653,"nanosec":999999999}"#,
                1_732_298_653_999_999_999,
            ),
            (r#"{"sec":1,"nanosec":2}"#, r#"{"sec":-1,"nanosec":1}"#, -999_999_999),
            (r#"{"nsecs":1,"secs":2}"#, r#"{"nsecs":30,"secs":40}"#, 40_000_000_030),
            (r#""2026-11-22T18:04:13Z""#, r#""1970-01-01 00:00:01.5+00:00""#, 1_500_000_000),
            (r#""5 s""#, r#""5 ms""#, 5_000_000),
        ] {
            let message = |time: &str| format!("{{\"t\":{time},\"x\":1}}");
            assert_eq!(by_shape(&message(first), &message(second)), Some(Some(ns)), "{second}");
        }
        // Other values are left to the slow path.
        for (first, second) in [
            (r#"{"sec":1,"nanosec":2}"#, r#"{"sec":1,"nanosec":1000000000}"#),
            (r#"{"sec":1,"nanosec":2}"#, r#"{"sec":1.5,"nanosec":2}"#),
            (r#"{"sec":1,"nanosec":2}"#, r#"{"sec":9223372036,"nanosec":854775808}"#),
            (r#""5 s""#, r#""5 parsecs""#),
        ] {
            let message = |time: &str| format!("{{\"t\":{time},\"x\":1}}");
            assert_eq!(by_shape(&message(first), &message(second)), Some(None), "{second}");
        }
        assert!(by_shape("{\"t\":1,\"t\":2}", "{\"t\":1e99,\"t\":2}").is_some_and(|time| time.is_none()));
    }
}
