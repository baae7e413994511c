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
    /// One of the unit in nanoseconds.
    time_scale: i64,
    /// The shape that followed this one the last time, as a guess for the next time.
    pub(crate) successor: usize,
}

/// Some text, then a value.
#[derive(Clone, Debug)]
struct Step {
    /// The first eight bytes of the text, and a mask of those that count.
    head: u64,
    mask: u64,
    /// The last eight bytes, of a text that is longer than eight.
    last: u64,
    len: usize,
    /// What is between them, of a text that is longer than sixteen.
    middle: Box<[u8]>,
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
                time_scale: 10i64.pow(u32::from(time_unit.nanos_exponent())),
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

    /// Reads messages of this shape, message `i` being `text[starts[i]..starts[i + 1]]`, into the
    /// block: until it is full or a message differs. An event whose message carries no time gets
    /// `time`.
    ///
    /// Works step by step over all messages instead of message by message: what a step needs stays
    /// in registers, and where one message ends has not to be known to begin with the next.
    pub(crate) fn run(&mut self, text: &[u8], starts: &[usize], block: &mut Block, time: Timestamp) -> Run {
        let Some(words) = Words::new(text) else { return Run::default() };
        let (first, text_before) = (block.len(), block.text_len());
        let count = (starts.len() - 1).min(Block::CAPACITY - first);
        // A network often hands over one message at a time: no need to clear room for many then.
        let (mut one, mut many);
        let places: &mut [usize] = if let [start, _] = starts {
            one = [*start];
            &mut one[..count]
        } else {
            many = [0; Block::CAPACITY];
            many[..count].copy_from_slice(&starts[..count]);
            &mut many[..count]
        };
        for row in first..first + count {
            block.set_time(row, time);
        }
        let context = Context { words, time_unit: self.time_unit, time_scale: self.time_scale, first };
        let mut rows = count;
        for step in &mut self.steps {
            rows = step.run(context, &mut places[..rows], block);
        }
        rows = places[..rows].iter().zip(&starts[1..]).take_while(|(place, end)| place == end).count();
        if rows > 0 {
            self.settle(block, first, rows);
        } else {
            block.truncate_text(text_before);
        }
        Run { rows, mistyped: self.mistyped_per_row * rows as u64 }
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

/// What all steps of a run share.
#[derive(Clone, Copy)]
struct Context<'t> {
    words: Words<'t>,
    time_unit: TimeUnit,
    time_scale: i64,
    /// The row of the block that the first message goes to.
    first: usize,
}

impl Step {
    /// Takes this step in the messages at `places`, which move on; how many messages went along.
    /// What was written of others is without effect: the masks of the block do not have them.
    #[inline]
    fn run(&mut self, context: Context<'_>, places: &mut [usize], block: &mut Block) -> usize {
        let Context { words, time_unit, time_scale, first } = context;
        let count = if self.len > 8 { self.long_literal(words, places) } else { places.len() };
        let places = &mut places[..count];
        let literal = Literal { head: self.head, mask: self.mask, len: self.len };
        match self.value {
            Expected::End => each(places, |_, at| literal.pass(words, at)),
            Expected::Bool(_) => {
                let (mut values, mut passed): (Rows, usize) = (0, places.len());
                for (row, place) in places.iter_mut().enumerate() {
                    // Without a branch on the value: a field that changes at random costs no wrong guess.
                    let at = *place + literal.len;
                    let value = words.at(at);
                    let is_true = value as u32 == u32::from_le_bytes(*b"true");
                    let not_false = (value ^ u64::from_le_bytes(*b"false\0\0\0")) << 24;
                    let wrong = literal.difference(words, *place) | if is_true { 0 } else { not_false };
                    if wrong != 0 {
                        passed = row;
                        break;
                    }
                    // From above, so that the first row is the lowest bit in the end.
                    values = values >> 1 | Rows::from(is_true) << 63;
                    *place = at + 5 - usize::from(is_true);
                }
                self.bools = values.checked_shr((Block::CAPACITY - passed) as u32).unwrap_or(0) << first;
                passed
            }
            Expected::Number(Target::Skip) => {
                each(places, |_, at| Some(decimal(words, literal.pass(words, at)?)?.end))
            }
            Expected::Number(Target::Float(column)) => each(places, |row, at| {
                let number = decimal(words, literal.pass(words, at)?)?;
                block.write_float(column, first + row, number.float(words.text));
                Some(number.end)
            }),
            Expected::Number(Target::Int(column)) => each(places, |row, at| {
                let number = decimal(words, literal.pass(words, at)?)?;
                block.write_int(column, first + row, number.integer(words.text)?);
                Some(number.end)
            }),
            Expected::Number(Target::TimeField(column)) => each(places, |row, at| {
                let number = decimal(words, literal.pass(words, at)?)?;
                block.write_int(column, first + row, number.nanos(words.text, time_scale, time_unit)?);
                Some(number.end)
            }),
            Expected::Number(Target::EventTime) => each(places, |row, at| {
                let number = decimal(words, literal.pass(words, at)?)?;
                let ns = number.nanos(words.text, time_scale, time_unit)?;
                block.set_time(first + row, Timestamp::from_nanos(ns));
                Some(number.end)
            }),
            Expected::String(column) => each(places, |row, at| {
                string(words.text, literal.pass(words, at)?, column, first + row, block)
            }),
        }
    }

    /// How many of the messages have all but the first eight bytes of the text.
    #[inline(always)]
    fn long_literal(&self, words: Words<'_>, places: &[usize]) -> usize {
        let (last, to_last) = (self.last, self.len - 8);
        let rows = places.iter().position(|at| words.at(at + to_last) != last).unwrap_or(places.len());
        if self.middle.is_empty() {
            return rows;
        }
        let differs = |at: &usize| words.text.get(at + 8..at + to_last) != Some(&self.middle);
        places[..rows].iter().position(differs).unwrap_or(rows)
    }
}

/// The text before a value, as far as it is in its first eight bytes.
#[derive(Clone, Copy)]
struct Literal {
    head: u64,
    mask: u64,
    len: usize,
}

impl Literal {
    /// Zero if the text is there.
    #[inline(always)]
    fn difference(self, words: Words<'_>, at: usize) -> u64 {
        (words.at(at) ^ self.head) & self.mask
    }

    #[inline(always)]
    fn pass(self, words: Words<'_>, at: usize) -> Option<usize> {
        (self.difference(words, at) == 0).then_some(at + self.len)
    }
}

/// Moves the places on, up to the first where that fails; how many there are before it.
#[inline(always)]
fn each(places: &mut [usize], mut passed: impl FnMut(usize, usize) -> Option<usize>) -> usize {
    for (row, place) in places.iter_mut().enumerate() {
        match passed(row, *place) {
            Some(end) => *place = end,
            None => return row,
        }
    }
    places.len()
}

/// A text that is read eight bytes at a time, wherever they begin.
#[derive(Clone, Copy)]
struct Words<'t> {
    text: &'t [u8],
    /// The last place where eight bytes begin.
    last: usize,
}

impl<'t> Words<'t> {
    fn new(text: &'t [u8]) -> Option<Words<'t>> {
        Some(Words { text, last: text.len().checked_sub(8)? })
    }

    /// The bytes at a place; beyond the end there are zeros.
    #[inline(always)]
    fn at(self, at: usize) -> u64 {
        if at > self.last {
            return self.near_end(at);
        }
        self.read(at)
    }

    #[cold]
    fn near_end(self, at: usize) -> u64 {
        self.read(self.last).checked_shr((8 * (at - self.last)) as u32).unwrap_or(0)
    }

    #[inline(always)]
    fn read(self, at: usize) -> u64 {
        debug_assert!(at <= self.last, "callers have compared");
        // SAFETY: `at <= self.last`, which is `text.len() - 8`. The checks of a slice do the same with
        // four times the instructions (they also look for an overflow of `at + 8`), and with them a line
        // took a fifth longer.
        u64::from_le(unsafe { self.text.as_ptr().add(at).cast::<u64>().read_unaligned() })
    }
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

/// A number in a text, read as far as the short way goes.
#[derive(Clone, Copy)]
struct Decimal {
    /// The digits without the point, and how many stand after it; `None` on the long way.
    short: Option<(u64, usize)>,
    /// Where the number begins and ends.
    start: usize,
    end: usize,
}

/// Finds the number at `start`: up to seven digits and seven decimal places on the short way.
#[inline(always)]
fn decimal(words: Words<'_>, start: usize) -> Option<Decimal> {
    let first = words.at(start);
    let (whole, count) = digits(first);
    let (mut mantissa, mut decimals, mut end) = (whole, 0, start + count);
    // The byte after the digits is in the same word, if there are less than eight.
    let mut next = (first >> ((8 * count) & 63)) as u8;
    let leading_zero = count > 1 && first as u8 == b'0';
    let mut short = count > 0 && count < 8 && !leading_zero;
    if short && next == b'.' {
        let second = words.at(end + 1);
        let (fraction, count) = digits(second);
        short = count > 0 && count < 8;
        mantissa = whole * POWERS[count] + fraction;
        decimals = count;
        end += 1 + count;
        next = (second >> ((8 * count) & 63)) as u8;
    }
    if short && next | 0x20 != b'e' {
        return Some(Decimal { short: Some((mantissa, decimals)), start, end });
    }
    long_number(words.text, start)
}

#[cold]
fn long_number(text: &[u8], start: usize) -> Option<Decimal> {
    let mut scanner = Scanner { text, at: start };
    if scanner.kind().ok()? != Kind::Number {
        return None;
    }
    scanner.scalar(Kind::Number).ok()?;
    Some(Decimal { short: None, start, end: scanner.at })
}

impl Decimal {
    /// The number as a double.
    #[inline(always)]
    fn float(self, text: &[u8]) -> f64 {
        match self.short {
            Some((mantissa, 0)) => mantissa as f64,
            // Fourteen digits are below 2^53, so both sides are exact and the quotient is the nearest.
            Some((mantissa, decimals)) => mantissa as f64 / POWERS[decimals] as f64,
            None => float(&text[self.start..self.end]),
        }
    }

    /// The number, if it is an integer.
    #[inline(always)]
    fn integer(self, text: &[u8]) -> Option<i64> {
        match self.short {
            Some((mantissa, 0)) => Some(mantissa as i64),
            _ => integer(&text[self.start..self.end]),
        }
    }

    /// The number as a time in this unit, in nanoseconds; `scale` is the unit's length.
    #[inline(always)]
    fn nanos(self, text: &[u8], scale: i64, unit: TimeUnit) -> Option<i64> {
        match self.short {
            Some((mantissa, 0)) => (mantissa as i64).checked_mul(scale),
            _ => Timestamp::parse(&text[self.start..self.end], unit).ok().map(Timestamp::as_nanos),
        }
    }
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
            last: literal
                .last_chunk()
                .filter(|_| literal.len() > 8)
                .map_or(0, |last| u64::from_le_bytes(*last)),
            len: literal.len(),
            middle: literal.get(8..literal.len().saturating_sub(8)).unwrap_or_default().into(),
            value,
            bools: 0,
        });
        self.literal_from = end;
    }
}

impl Visitor for Learner {
    const EVERYTHING: bool = true;

    fn value(
        &mut self,
        node: Option<&Node>,
        kind: Kind,
        start: usize,
        scanner: &Scanner<'_>,
    ) -> Result<(), JsonError> {
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
                        ValueType::Int | ValueType::Float | ValueType::Time | ValueType::Duration => {
                            kind == Kind::Number
                        }
                    };
                    if fits {
                        self.possible &= target.is_none();
                        target = Some(match (value_type, *slot) {
                            (ValueType::Time | ValueType::Duration, Slot::Int(column)) => {
                                Target::TimeField(column)
                            }
                            (_, Slot::Float(column)) => Target::Float(column),
                            // What kind of column it is follows from the kind of value below.
                            (_, Slot::Bool(column) | Slot::Int(column) | Slot::String(column)) => {
                                Target::Int(column)
                            }
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
        // What a run would refuse is not worth a step: it would be learnt again with every message.
        let text = &scanner.text[start..scanner.at];
        self.possible &= match (kind, target) {
            (Kind::String, _) => !text.contains(&b'\\'),
            (Kind::Number, Some(Target::Int(_))) => integer(text).is_some(),
            (Kind::Number, Some(Target::TimeField(_) | Target::EventTime)) => {
                Timestamp::parse(text, self.shape.time_unit).is_ok()
            }
            _ => true,
        };
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
