//! Shapes: messages of one topic are nearly always written by one program and differ only in their
//! values. A shape is learnt from one message that was decoded the long way: the text between the
//! values, which the next message must repeat byte for byte, and what to do with each value. Where
//! the text agrees, the message is as well formed as the one before it, and only values are left to
//! read. Where it does not, the long way decides: a shape can refuse, but never misread.

use rondel_event::{Block, Rows, Slot, TimeUnit, Timestamp, TopicId, ValueType};

use super::plan::{Action, Node, Visitor, walk};
use super::scan::{JsonError, Kind, Scanner, float, integer};

/// The layout of a message, learnt from one.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    topic: TopicId,
    steps: Vec<Step>,
    /// Slots that are written alike for every message of the shape.
    constants: Vec<Constant>,
    mistyped_per_row: u64,
    time_unit: TimeUnit,
    /// The shape that followed this one the last time, as a guess for the next time.
    pub(crate) successor: usize,
}

/// Some text, then a value.
#[derive(Clone, Debug)]
struct Step {
    /// The first eight bytes of the text, and a mask of those that count.
    head: u64,
    mask: u64,
    len: usize,
    /// The text past its first eight bytes.
    tail: Box<[u8]>,
    value: Expected,
    /// The booleans of the rows of one run.
    bools: Rows,
}

/// The value expected after the text of a step, and where it goes.
#[derive(Clone, Copy, Debug)]
enum Expected {
    Bool(Option<u32>),
    Number(Target),
    String(Option<u32>),
    /// No value: the message ends.
    End,
}

#[derive(Clone, Copy, Debug)]
enum Target {
    Skip,
    Int(u32),
    Float(u32),
    TimeField(u32),
    EventTime,
}

#[derive(Clone, Copy, Debug)]
enum Constant {
    Invalid(Slot),
    Present(Slot),
}

/// What [`Shape::run`] has read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Run {
    /// How many messages.
    pub(crate) rows: usize,
    /// Where the first message begins that was not read.
    pub(crate) end: usize,
    /// How many values had another type than the program reads.
    pub(crate) mistyped: u64,
}

impl Shape {
    /// Learns the shape of a message that was decoded before. `None` if it is not one that can be
    /// followed: it has tests over array elements, or writes a slot twice.
    ///
    /// `text` goes on to the end of what separates messages (a line break, or nothing).
    pub(crate) fn learn(text: &[u8], root: &Node, topic: TopicId, time_unit: TimeUnit) -> Option<Shape> {
        let mut learner = Learner {
            shape: Shape {
                topic,
                steps: Vec::new(),
                constants: Vec::new(),
                mistyped_per_row: 0,
                time_unit,
                successor: usize::MAX,
            },
            literal_from: 0,
            slots: Vec::new(),
            times: 0,
            possible: true,
        };
        let mut scanner = Scanner::new(text);
        scanner.skip_space();
        walk(&mut scanner, Some(root), 0, &mut learner).ok()?;
        learner.step(text, text.len(), text.len(), Expected::End);
        (learner.possible && learner.times <= 1).then_some(learner.shape)
    }

    /// Reads messages of this shape from `at` on, one behind the other, into the block: until it is
    /// full, `most` are read, `end` is reached or a message differs. An event whose message carries
    /// no time gets `time`. With `whole`, the message has to end at `end`.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn run(
        &mut self,
        text: &[u8],
        at: usize,
        end: usize,
        block: &mut Block,
        most: usize,
        time: Timestamp,
        whole: bool,
    ) -> Run {
        let first = block.len();
        let most = most.min(Block::CAPACITY - first);
        for step in &mut self.steps {
            step.bools = 0;
        }
        let mut next = at;
        let mut rows = 0;
        while rows < most {
            let row = first + rows;
            block.set_time(row, time);
            match read(&mut self.steps, self.time_unit, text, next, row, block) {
                Some(after) if after == end || after < end && !whole => next = after,
                _ => break,
            }
            rows += 1;
        }
        if rows > 0 {
            self.settle(block, first, rows);
        }
        Run { rows, end: next, mistyped: self.mistyped_per_row * rows as u64 }
    }

    /// Makes `rows` rows from `first` on events of the block: their values are written.
    fn settle(&self, block: &mut Block, first: usize, rows: usize) {
        let mask = (Rows::MAX >> (Block::CAPACITY - rows)) << first;
        block.extend(self.topic, rows);
        for step in &self.steps {
            match step.value {
                Expected::Bool(Some(column)) => {
                    let c = block.bools_mut(column);
                    c.present |= mask;
                    c.valid |= mask;
                    c.values |= step.bools & mask;
                }
                Expected::Number(Target::Int(column) | Target::TimeField(column)) => {
                    block.mark_valid(Slot::Int(column), mask);
                }
                Expected::Number(Target::Float(column)) => block.mark_valid(Slot::Float(column), mask),
                Expected::String(Some(column)) => block.mark_valid(Slot::String(column), mask),
                _ => {}
            }
        }
        for constant in &self.constants {
            match *constant {
                Constant::Invalid(slot) => block.mark_present(slot, mask),
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

/// Reads one message; where it ends, or `None` if it differs. What was written of a message that
/// differs is without effect: the masks of the block do not have it.
#[inline(always)]
fn read(
    steps: &mut [Step],
    unit: TimeUnit,
    text: &[u8],
    start: usize,
    row: usize,
    block: &mut Block,
) -> Option<usize> {
    let mut at = start;
    for step in steps {
        let head = u64::from_le_bytes(*text.get(at..)?.first_chunk()?);
        if (head ^ step.head) & step.mask != 0 {
            return None;
        }
        if step.len > 8 && text.get(at + 8..at + step.len)? != &*step.tail {
            return None;
        }
        at += step.len;
        match step.value {
            Expected::Bool(_) => {
                // Without a branch: a field that changes at random costs no wrong guess.
                let word = u64::from_le_bytes(*text.get(at..)?.first_chunk()?);
                let is_true = word as u32 == u32::from_le_bytes(*b"true");
                let is_false = word & 0xff_ffff_ffff == u64::from_le_bytes(*b"false\0\0\0");
                step.bools |= Rows::from(is_true) << row;
                if !(is_true | is_false) {
                    return None;
                }
                at += 5 - usize::from(is_true);
            }
            Expected::Number(target) => at = number(text, at, target, unit, row, block)?,
            Expected::String(target) => at = string(text, at, target, row, block)?,
            Expected::End => {}
        }
    }
    Some(at)
}

/// The value of up to eight ASCII digits at the beginning of `word`, and how many there are.
#[inline(always)]
fn digits(word: u64) -> (u64, usize) {
    let values = word ^ 0x3030_3030_3030_3030;
    // A byte above 9 gets its high bit set by the addition, or has it already.
    let others = (values.wrapping_add(0x7676_7676_7676_7676) | values) & 0x8080_8080_8080_8080;
    let count = (others.trailing_zeros() / 8) as usize;
    if count == 0 {
        return (0, 0);
    }
    // Move the digits to the end, zeros before them, then add neighbours up: pairs, fours, eight.
    let v = values << (64 - 8 * count);
    let v = (v & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(2561) >> 8;
    let v = (v & 0x00ff_00ff_00ff_00ff).wrapping_mul(6_553_601) >> 16;
    let v = (v & 0x0000_ffff_0000_ffff).wrapping_mul(42_949_672_960_001) >> 32;
    (v, count)
}

const POWERS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Reads a number: up to seven digits and seven decimal places on the short way.
#[inline(always)]
fn number(text: &[u8], start: usize, target: Target, unit: TimeUnit, row: usize, block: &mut Block) -> Option<usize> {
    let word = u64::from_le_bytes(*text.get(start..)?.first_chunk()?);
    let (whole, count) = digits(word);
    let mut at = start + count;
    let mut next = *text.get(at)?;
    let leading_zero = count > 1 && word as u8 == b'0';
    if count == 0 || count == 8 || leading_zero {
        return long_number(text, start, target, unit, row, block);
    }
    let (mut mantissa, mut decimals) = (whole, 0);
    if next == b'.' {
        let (fraction, count) = digits(u64::from_le_bytes(*text.get(at + 1..)?.first_chunk()?));
        if count == 0 || count == 8 {
            return long_number(text, start, target, unit, row, block);
        }
        mantissa = whole * POWERS[count] + fraction;
        decimals = count;
        at += 1 + count;
        next = *text.get(at)?;
    }
    if matches!(next, b'e' | b'E') {
        return long_number(text, start, target, unit, row, block);
    }
    match target {
        Target::Skip => {}
        // Fourteen digits are below 2^53, so both sides are exact and the quotient is the nearest.
        Target::Float(column) => {
            let value = if decimals == 0 { mantissa as f64 } else { mantissa as f64 / POWERS[decimals] as f64 };
            block.write_float(column, row, value);
        }
        Target::Int(column) if decimals == 0 => block.write_int(column, row, mantissa as i64),
        Target::EventTime | Target::TimeField(_) if decimals <= usize::from(unit.nanos_exponent()) => {
            // At most 14 digits: with up to nine more it may not fit, which the long way reports.
            let scale = 10i64.pow(u32::from(unit.nanos_exponent()) - decimals as u32);
            let ns = i64::try_from(mantissa).ok()?.checked_mul(scale)?;
            match target {
                Target::TimeField(column) => block.write_int(column, row, ns),
                _ => block.set_time(row, Timestamp::from_nanos(ns)),
            }
        }
        _ => return long_number(text, start, target, unit, row, block),
    }
    Some(at)
}

/// Reads any number.
#[cold]
fn long_number(
    text: &[u8],
    start: usize,
    target: Target,
    unit: TimeUnit,
    row: usize,
    block: &mut Block,
) -> Option<usize> {
    let mut scanner = Scanner { text, at: start };
    if scanner.kind().ok()? != Kind::Number {
        return None;
    }
    scanner.scalar(Kind::Number).ok()?;
    let digits = &text[start..scanner.at];
    match target {
        Target::Skip => {}
        Target::Float(column) => block.write_float(column, row, float(digits)),
        Target::Int(column) => block.write_int(column, row, integer(digits)?),
        Target::TimeField(column) => {
            block.write_int(column, row, Timestamp::parse(digits, unit).ok()?.as_nanos());
        }
        Target::EventTime => block.set_time(row, Timestamp::parse(digits, unit).ok()?),
    }
    Some(scanner.at)
}

/// Reads a string without escapes.
#[inline(always)]
fn string(text: &[u8], start: usize, target: Option<u32>, row: usize, block: &mut Block) -> Option<usize> {
    if *text.get(start)? != b'"' {
        return None;
    }
    let body = text.get(start + 1..)?;
    let len = body.iter().position(|&b| b == b'"' || b == b'\\' || b < 0x20)?;
    if body[len] != b'"' {
        return None;
    }
    let value = std::str::from_utf8(&body[..len]).ok()?;
    if let Some(column) = target
        && !block.write_string(column, row, value)
    {
        return None;
    }
    Some(start + len + 2)
}

/// Records the shape of a message while it is walked.
struct Learner {
    shape: Shape,
    literal_from: usize,
    slots: Vec<Slot>,
    times: usize,
    possible: bool,
}

impl Learner {
    /// The text since the last value, up to `start`, then the value, which ends at `end`.
    fn step(&mut self, text: &[u8], start: usize, end: usize, value: Expected) {
        let literal = &text[self.literal_from..start];
        let (mut head, mut mask) = ([0; 8], [0; 8]);
        for (i, &byte) in literal.iter().take(8).enumerate() {
            (head[i], mask[i]) = (byte, 0xff);
        }
        self.shape.steps.push(Step {
            head: u64::from_le_bytes(head),
            mask: u64::from_le_bytes(mask),
            len: literal.len(),
            tail: literal.get(8..).unwrap_or_default().into(),
            value,
            bools: 0,
        });
        self.literal_from = end;
    }
}

impl Visitor for Learner {
    const EVERYTHING: bool = true;

    fn value(&mut self, node: Option<&Node>, kind: Kind, start: usize, scanner: &Scanner<'_>) -> Result<(), JsonError> {
        let mut target = None;
        let mut literal = false;
        for action in node.map_or(&[][..], |n| &n.actions) {
            match action {
                Action::Value(value_type, slot) => {
                    self.possible &= !self.slots.contains(slot);
                    self.slots.push(*slot);
                    let fits = match value_type {
                        ValueType::Bool => matches!(kind, Kind::True | Kind::False),
                        ValueType::String => kind == Kind::String,
                        ValueType::Int | ValueType::Float | ValueType::Time => kind == Kind::Number,
                    };
                    if fits {
                        self.possible &= target.is_none();
                        target = Some(match (value_type, *slot) {
                            (ValueType::Time, Slot::Int(column)) => Target::TimeField(column),
                            (_, Slot::Float(column)) => Target::Float(column),
                            // What kind of column it is follows from the kind of value below.
                            (_, Slot::Bool(column) | Slot::Int(column) | Slot::String(column)) => Target::Int(column),
                        });
                    } else {
                        self.shape.constants.push(Constant::Invalid(*slot));
                        self.shape.mistyped_per_row += u64::from(kind != Kind::Null);
                    }
                }
                Action::Presence(slot) => {
                    self.possible &= !self.slots.contains(slot);
                    self.slots.push(*slot);
                    self.shape.constants.push(Constant::Present(*slot));
                }
                Action::Elements(..) => self.possible = false,
                Action::Time => {
                    self.possible &= target.is_none();
                    self.times += 1;
                    target = Some(Target::EventTime);
                }
                Action::Topic => literal = true,
            }
        }
        let column = target.and_then(|t| if let Target::Int(column) = t { Some(column) } else { None });
        let expected = match kind {
            // A key may come and go in a container that is only noted; its text is not the same then.
            Kind::Object | Kind::Array | Kind::Null => return Ok(()),
            Kind::True | Kind::False => Expected::Bool(column),
            Kind::String => Expected::String(column),
            Kind::Number => Expected::Number(target.unwrap_or(Target::Skip)),
        };
        if !literal {
            self.step(scanner.text, start, scanner.at, expected);
        }
        Ok(())
    }
}
