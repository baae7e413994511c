//! Blocks of events.

mod fields;
#[cfg(test)]
mod tests;

use crate::{Slot, Timestamp, TopicId};

/// Up to [`Block::CAPACITY`] events in order, stored in columns: written by a decoder, read by a
/// monitor.
///
/// Row `i` is the `i`-th event. Sets of rows are bit masks ([`Rows`]), so that boolean formulas are
/// evaluated over all rows of a block at a time. Events that arrive together on a network form a block of
/// 1 to 64 rows. A column states for each row whether the event carries the field and whether its value
/// is valid; the monitor holds the values of earlier events. A block is reused and stops allocating once
/// its text buffer has reached its largest size.
#[derive(Clone, Debug)]
pub struct Block {
    len: u32,
    times: [Timestamp; Block::CAPACITY],
    arrivals: [Timestamp; Block::CAPACITY],
    /// The rows with a known time of arrival.
    arrived: Rows,
    /// The number of each event among all messages, where that is not the number of the row: see [`Block::set_number`].
    numbers: [u64; Block::CAPACITY],
    /// The rows with such a number.
    numbered: Rows,
    topics: Vec<Rows>,
    bools: Vec<BoolColumn>,
    ints: Vec<Column<i64>>,
    floats: Vec<Column<f64>>,
    strings: Vec<StringColumn>,
    text: Vec<u8>,
}

/// A set of rows of a block: bit `i` stands for row `i`.
pub type Rows = u64;

/// Number of topics and of columns of each kind in a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Number of topics.
    pub topics: usize,
    /// Number of boolean columns.
    pub bools: usize,
    /// Number of integer (and time) columns.
    pub ints: usize,
    /// Number of floating-point columns.
    pub floats: usize,
    /// Number of text columns.
    pub strings: usize,
}

/// Column of a boolean field.
#[derive(Clone, Copy, Debug, Default)]
pub struct BoolColumn {
    /// The rows whose event carries the field.
    pub present: Rows,
    /// The rows in `present` whose value is a boolean.
    pub valid: Rows,
    /// The rows in `valid` whose value is true.
    pub values: Rows,
}

/// Column of a numeric field.
#[derive(Clone, Debug)]
pub struct Column<T> {
    /// The rows whose event carries the field.
    pub present: Rows,
    /// The rows in `present` whose value has the column's type.
    pub valid: Rows,
    /// The values of the valid rows; other rows are undefined.
    pub values: [T; Block::CAPACITY],
}

/// Column of a text field. Its values are ranges of the block's text, see [`Block::text`].
#[derive(Clone, Debug)]
pub struct StringColumn {
    /// The rows whose event carries the field.
    pub present: Rows,
    /// The rows in `present` whose value is text.
    pub valid: Rows,
    ranges: [(u32, u32); Block::CAPACITY],
}

/// Value of a field in one event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell {
    /// The event does not carry the field.
    Absent,
    /// The value is null or has another type.
    Invalid,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// A range of the event's text.
    Text(u32, u32),
}

impl<T: Copy + Default> Default for Column<T> {
    fn default() -> Self {
        Column { present: 0, valid: 0, values: [T::default(); Block::CAPACITY] }
    }
}

impl Default for StringColumn {
    fn default() -> Self {
        StringColumn { present: 0, valid: 0, ranges: [(0, 0); Block::CAPACITY] }
    }
}

impl Block {
    /// Maximum number of events in a block: the bits of a [`Rows`].
    pub const CAPACITY: usize = 64;
    /// The size of the text buffer in bytes beyond which it is given back: few messages are so large.
    const KEPT_TEXT: usize = 4 << 20;

    /// Creates an empty block with these columns.
    pub fn new(layout: Layout) -> Block {
        Block {
            len: 0,
            times: [Timestamp::ZERO; Block::CAPACITY],
            arrivals: [Timestamp::ZERO; Block::CAPACITY],
            arrived: 0,
            numbers: [0; Block::CAPACITY],
            numbered: 0,
            topics: vec![0; layout.topics],
            bools: vec![BoolColumn::default(); layout.bools],
            ints: vec![Column::default(); layout.ints],
            floats: vec![Column::default(); layout.floats],
            strings: vec![StringColumn::default(); layout.strings],
            text: Vec::new(),
        }
    }

    /// Returns the number of topics and columns.
    pub fn layout(&self) -> Layout {
        Layout {
            topics: self.topics.len(),
            bools: self.bools.len(),
            ints: self.ints.len(),
            floats: self.floats.len(),
            strings: self.strings.len(),
        }
    }

    /// Returns the number of events.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether the block has no events.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether no further event fits.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.len() == Block::CAPACITY
    }

    /// Returns the rows in use.
    #[inline(always)]
    pub fn rows(&self) -> Rows {
        if self.is_full() { Rows::MAX } else { (1 << self.len) - 1 }
    }

    /// Returns the size of the texts of all events, in bytes.
    #[inline]
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// Removes all events.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
        self.arrived = 0;
        self.numbered = 0;
        self.topics.fill(0);
        for c in &mut self.bools {
            *c = BoolColumn::default();
        }
        for c in &mut self.ints {
            (c.present, c.valid) = (0, 0);
        }
        for c in &mut self.floats {
            (c.present, c.valid) = (0, 0);
        }
        for c in &mut self.strings {
            (c.present, c.valid) = (0, 0);
        }
        if self.text.capacity() > Block::KEPT_TEXT {
            self.text = Vec::new();
        }
        self.text.clear();
    }

    /// Adds an event without fields and returns its row.
    ///
    /// # Panics
    /// If the block is full or the topic is not in the layout. Both are programming errors: no input
    /// causes them.
    #[inline(always)]
    pub fn push(&mut self, topic: TopicId, time: Timestamp) -> usize {
        let row = self.len();
        self.times[row] = time;
        self.topics[topic.index()] |= 1 << row;
        self.len += 1;
        row
    }

    /// Adds the events of one topic in these rows. The caller has written their times and values by row,
    /// and marks their fields with [`Block::mark_valid`]. Unused rows below the highest one must be added
    /// before the block is read.
    ///
    /// # Panics
    /// If the topic is not in the layout.
    #[inline(always)]
    pub fn extend(&mut self, topic: TopicId, rows: Rows) {
        self.topics[topic.index()] |= rows;
        self.len = self.len.max(Rows::BITS - rows.leading_zeros());
    }

    /// Replaces the content by 64 copies of one event of another block with the same layout.
    pub fn repeat(&mut self, other: &Block, row: usize) {
        self.clear();
        self.len = Block::CAPACITY as u32;
        self.times.fill(other.times[row]);
        self.arrivals.fill(other.arrivals[row]);
        self.numbers.fill(other.numbers[row]);
        let spread = |rows: Rows| 0_u64.wrapping_sub(rows >> row & 1);
        self.arrived = spread(other.arrived);
        self.numbered = spread(other.numbered);
        for (rows, other) in self.topics.iter_mut().zip(&other.topics) {
            *rows = spread(*other);
        }
        for (c, o) in self.bools.iter_mut().zip(&other.bools) {
            *c = BoolColumn { present: spread(o.present), valid: spread(o.valid), values: spread(o.values) };
        }
        for (c, o) in self.ints.iter_mut().zip(&other.ints) {
            c.repeat(o, row, spread);
        }
        for (c, o) in self.floats.iter_mut().zip(&other.floats) {
            c.repeat(o, row, spread);
        }
        for (i, (c, o)) in self.strings.iter_mut().zip(&other.strings).enumerate() {
            (c.present, c.valid) = (spread(o.present), spread(o.valid));
            let start = self.text.len() as u32;
            self.text.extend_from_slice(other.text(i as u32, row));
            c.ranges.fill((start, self.text.len() as u32));
        }
    }

    /// Removes the last event with all its fields, for a message that turns out to be undecodable.
    pub fn pop(&mut self) {
        let Some(len) = self.len.checked_sub(1) else { return };
        self.len = len;
        let keep = self.rows();
        self.arrived &= keep;
        self.numbered &= keep;
        for mask in &mut self.topics {
            *mask &= keep;
        }
        for c in &mut self.bools {
            *c = BoolColumn { present: c.present & keep, valid: c.valid & keep, values: c.values & keep };
        }
        for c in &mut self.ints {
            (c.present, c.valid) = (c.present & keep, c.valid & keep);
        }
        for c in &mut self.floats {
            (c.present, c.valid) = (c.present & keep, c.valid & keep);
        }
        // Texts may come before those of earlier rows, if their events were added together.
        let mut end = 0;
        for c in &mut self.strings {
            (c.present, c.valid) = (c.present & keep, c.valid & keep);
            end = c.end().max(end);
        }
        self.text.truncate(end as usize);
    }

    /// Keeps only the events in these rows, which move together in their order.
    pub fn keep(&mut self, rows: Rows) {
        let rows = rows & self.rows();
        let compact = |mask: Rows| {
            let (mut all, mut out, mut to) = (rows, 0, 0);
            while all != 0 {
                out |= (mask >> all.trailing_zeros() & 1) << to;
                all &= all - 1;
                to += 1;
            }
            out
        };
        let kept = || (0..Block::CAPACITY).filter(|row| rows >> row & 1 == 1).enumerate();
        kept().for_each(|(to, from)| {
            self.times[to] = self.times[from];
            self.arrivals[to] = self.arrivals[from];
            self.numbers[to] = self.numbers[from];
        });
        self.arrived = compact(self.arrived);
        self.numbered = compact(self.numbered);
        self.topics.iter_mut().for_each(|mask| *mask = compact(*mask));
        for c in &mut self.bools {
            *c = BoolColumn {
                present: compact(c.present),
                valid: compact(c.valid),
                values: compact(c.values),
            };
        }
        for c in &mut self.ints {
            (c.present, c.valid) = (compact(c.present), compact(c.valid));
            kept().for_each(|(to, from)| c.values[to] = c.values[from]);
        }
        for c in &mut self.floats {
            (c.present, c.valid) = (compact(c.present), compact(c.valid));
            kept().for_each(|(to, from)| c.values[to] = c.values[from]);
        }
        for c in &mut self.strings {
            (c.present, c.valid) = (compact(c.present), compact(c.valid));
            kept().for_each(|(to, from)| c.ranges[to] = c.ranges[from]);
        }
        self.len = rows.count_ones();
    }

    /// Returns the time of the event in `row`.
    #[inline(always)]
    pub fn time(&self, row: usize) -> Timestamp {
        self.times[row]
    }

    /// Sets the time of the event in `row`, if it is known only after the fields.
    #[inline(always)]
    pub fn set_time(&mut self, row: usize, time: Timestamp) {
        self.times[row] = time;
    }

    /// Sets the time of arrival of the event in `row`, on the same clock as its time.
    #[inline(always)]
    pub fn set_arrival(&mut self, row: usize, arrival: Timestamp) {
        self.arrivals[row] = arrival;
        self.arrived |= 1 << row;
    }

    /// Adds the event in `row` of another block with the same layout, with its values in these columns; returns its row.
    ///
    /// # Panics
    /// As [`Block::push`].
    pub fn push_copy(&mut self, other: &Block, row: usize, topic: TopicId, slots: &[Slot]) -> usize {
        let to = self.push(topic, other.time(row));
        self.copy_stamp(other, row, to);
        for &slot in slots {
            let (present, valid) = (other.present(slot) >> row & 1 == 1, other.invalid(slot) >> row & 1 == 0);
            match slot {
                _ if !present => {}
                _ if !valid => self.set_invalid(slot, to),
                Slot::Bool(at) => self.set_bool(at, to, other.bools(at).values >> row & 1 == 1),
                Slot::Int(at) => self.set_int(at, to, other.ints(at).values[row]),
                Slot::Float(at) => self.set_float(at, to, other.floats(at).values[row]),
                Slot::String(at) => self.set_text(at, to, other.text(at, row)),
            }
        }
        to
    }

    /// Gives the event in `row` the time of arrival and the number of one of another block.
    pub fn copy_stamp(&mut self, other: &Block, from: usize, row: usize) {
        if let Some(arrival) = other.arrival(from) {
            self.set_arrival(row, arrival);
        }
        if let Some(number) = other.number(from) {
            self.set_number(row, number);
        }
    }

    /// Makes the time of arrival of the event in `row` unknown.
    pub fn forget_arrival(&mut self, row: usize) {
        self.arrived &= !(1 << row);
    }

    /// Returns the time of arrival of the event in `row`, if it is known.
    #[inline(always)]
    pub fn arrival(&self, row: usize) -> Option<Timestamp> {
        (self.arrived >> row & 1 == 1).then(|| self.arrivals[row])
    }

    /// Sets the number of the event in `row` among all messages, where only some of them come into blocks of this layout.
    pub fn set_number(&mut self, row: usize, number: u64) {
        self.numbers[row] = number;
        self.numbered |= 1 << row;
    }

    /// Returns the number of the event in `row` among all messages, if it was set.
    #[inline]
    pub fn number(&self, row: usize) -> Option<u64> {
        (self.numbered >> row & 1 == 1).then(|| self.numbers[row])
    }

    /// Returns the rows whose event is of `topic`.
    #[inline(always)]
    pub fn topic_rows(&self, topic: TopicId) -> Rows {
        self.topics[topic.index()]
    }

    /// Returns the topic of the event in `row`.
    pub fn topic(&self, row: usize) -> Option<TopicId> {
        let index = self.topics.iter().position(|rows| rows >> row & 1 == 1)?;
        Some(TopicId(index as u32))
    }
}

impl StringColumn {
    /// The end of its last text in the block's text.
    fn end(&self) -> u32 {
        let (mut rows, mut end) = (self.valid, 0);
        while rows != 0 {
            end = self.ranges[rows.trailing_zeros() as usize].1.max(end);
            rows &= rows - 1;
        }
        end
    }
}

impl<T: Copy> Column<T> {
    fn repeat(&mut self, other: &Column<T>, row: usize, spread: impl Fn(Rows) -> Rows) {
        (self.present, self.valid) = (spread(other.present), spread(other.valid));
        if self.valid != 0 {
            self.values.fill(other.values[row]);
        }
    }

    #[inline(always)]
    fn set(&mut self, row: usize, value: T) {
        self.present |= 1 << row;
        self.valid |= 1 << row;
        self.values[row] = value;
    }
}
