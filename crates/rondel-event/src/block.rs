//! Blocks of events.

use crate::{Slot, Timestamp, TopicId, Value, ValueType};

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
    /// Length of the text before the last event.
    text_before: usize,
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
            text_before: 0,
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
        self.text_before = 0;
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
        self.text_before = self.text.len();
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

    /// Marks a field as present and valid in these rows.
    #[inline]
    pub fn mark_valid(&mut self, slot: Slot, rows: Rows) {
        let (present, valid) = self.masks(slot);
        *present |= rows;
        *valid |= rows;
    }

    /// Marks a field as present in these rows without changing its validity.
    #[inline]
    pub fn mark_present(&mut self, slot: Slot, rows: Rows) {
        *self.masks(slot).0 |= rows;
    }

    /// Writes an integer without marking its field as present.
    #[inline(always)]
    pub fn write_int(&mut self, column: u32, row: usize, value: i64) {
        self.ints[column as usize].values[row] = value;
    }

    /// Writes a floating-point number without marking its field as present.
    #[inline(always)]
    pub fn write_float(&mut self, column: u32, row: usize, value: f64) {
        self.floats[column as usize].values[row] = value;
    }

    /// Writes text without marking its field as present. Returns whether it fits: a block holds 4 GiB.
    #[inline]
    pub fn write_string(&mut self, column: u32, row: usize, value: &str) -> bool {
        let start = self.text.len();
        let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(start + value.len())) else {
            return false;
        };
        self.text.extend_from_slice(value.as_bytes());
        self.strings[column as usize].ranges[row] = (start, end);
        true
    }

    /// Like [`Block::write_string`] for ASCII text given as little-endian words: `word(i)` returns the
    /// eight bytes from byte `i`. Bytes beyond `len` are ignored.
    #[inline(always)]
    pub fn write_ascii(&mut self, column: u32, row: usize, len: usize, word: impl Fn(usize) -> u64) -> bool {
        let start = self.text.len();
        let (Ok(first), Ok(end)) = (u32::try_from(start), u32::try_from(start + len)) else {
            return false;
        };
        let mut at = 0;
        loop {
            let word = word(at);
            debug_assert!(
                len.saturating_sub(at) < 8 || word & 0x8080_8080_8080_8080 == 0,
                "the caller checks for ASCII"
            );
            self.text.extend_from_slice(&word.to_le_bytes());
            at += 8;
            // Identifiers are often this short.
            if at >= len {
                break;
            }
        }
        self.text.truncate(start + len);
        self.strings[column as usize].ranges[row] = (first, end);
        true
    }

    /// Returns the length of the block's text in bytes.
    #[inline]
    pub fn text_len(&self) -> usize {
        self.text.len()
    }

    /// Removes text that no event uses, down to an earlier [`Block::text_len`].
    #[inline]
    pub fn truncate_text(&mut self, len: usize) {
        self.text.truncate(len);
    }

    /// Removes the last event with all its fields, for a message that turns out to be undecodable.
    pub fn pop(&mut self) {
        let Some(len) = self.len.checked_sub(1) else { return };
        self.len = len;
        self.text.truncate(self.text_before);
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
        for c in &mut self.strings {
            (c.present, c.valid) = (c.present & keep, c.valid & keep);
        }
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
        self.text_before = self.text.len();
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

    /// Writes a text that a block held: its bytes in UTF-8.
    pub fn set_text(&mut self, column: u32, row: usize, text: &[u8]) {
        let cell = Cell::Text(0, u32::try_from(text.len()).unwrap_or(u32::MAX));
        self.set_cell(Slot::String(column), row, cell, text);
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

    /// The value of a column in `row`, whose integers mean what `value_type` says: none if the message did not
    /// carry it, `Some(None)` if it came with a value of another type.
    pub fn value(&self, slot: Slot, value_type: ValueType, row: usize) -> Option<Option<Value>> {
        if self.present(slot) >> row & 1 == 0 {
            return None;
        }
        let valid = |rows: Rows| rows >> row & 1 == 1;
        Some(match slot {
            Slot::Bool(at) => {
                let column = self.bools(at);
                valid(column.valid).then(|| Value::Bool(column.values >> row & 1 == 1))
            }
            Slot::Int(at) => {
                let column = self.ints(at);
                valid(column.valid).then(|| match value_type {
                    ValueType::Time => Value::Time(column.values[row]),
                    ValueType::Duration => Value::Duration(column.values[row]),
                    _ => Value::Int(column.values[row]),
                })
            }
            Slot::Float(at) => {
                let column = self.floats(at);
                valid(column.valid).then(|| Value::Float(column.values[row]))
            }
            Slot::String(at) => valid(self.strings(at).valid)
                .then(|| Value::String(String::from_utf8_lossy(self.text(at, row)).into())),
        })
    }

    /// Writes a boolean.
    #[inline(always)]
    pub fn set_bool(&mut self, column: u32, row: usize, value: bool) {
        let c = &mut self.bools[column as usize];
        let bit = 1 << row;
        c.present |= bit;
        c.valid |= bit;
        // A key may be repeated in a message: the last value counts.
        c.values = c.values & !bit | Rows::from(value) << row;
    }

    /// Writes an integer, or a time in nanoseconds.
    #[inline(always)]
    pub fn set_int(&mut self, column: u32, row: usize, value: i64) {
        self.ints[column as usize].set(row, value);
    }

    /// Writes a floating-point number.
    #[inline(always)]
    pub fn set_float(&mut self, column: u32, row: usize, value: f64) {
        self.floats[column as usize].set(row, value);
    }

    /// Writes text. Text past 4 GiB in one block is written as invalid.
    #[inline]
    pub fn set_string(&mut self, column: u32, row: usize, value: &str) {
        if self.write_string(column, row, value) {
            self.mark_valid(Slot::String(column), 1 << row);
        } else {
            self.set_invalid(Slot::String(column), row);
        }
    }

    /// Marks a field as absent, if it is known only after the value that a later part of the message takes
    /// its place.
    pub fn set_absent(&mut self, slot: Slot, row: usize) {
        self.set_invalid(slot, row);
        *self.masks(slot).0 &= !(1 << row);
    }

    /// Marks a field as present but invalid: null or a value of another type.
    #[inline]
    pub fn set_invalid(&mut self, slot: Slot, row: usize) {
        if let Slot::Bool(column) = slot {
            self.bools[column as usize].values &= !(1 << row);
        }
        let (present, valid) = self.masks(slot);
        *present |= 1 << row;
        *valid &= !(1 << row);
    }

    /// Returns the value of a field in `row`; text is appended to `text`.
    #[inline]
    pub(crate) fn cell(&self, slot: Slot, row: usize, text: &mut Vec<u8>) -> Cell {
        let (present, valid) = match slot {
            Slot::Bool(i) => (self.bools[i as usize].present, self.bools[i as usize].valid),
            Slot::Int(i) => (self.ints[i as usize].present, self.ints[i as usize].valid),
            Slot::Float(i) => (self.floats[i as usize].present, self.floats[i as usize].valid),
            Slot::String(i) => (self.strings[i as usize].present, self.strings[i as usize].valid),
        };
        if present >> row & 1 == 0 {
            return Cell::Absent;
        }
        if valid >> row & 1 == 0 {
            return Cell::Invalid;
        }
        match slot {
            Slot::Bool(i) => Cell::Bool(self.bools[i as usize].values >> row & 1 == 1),
            Slot::Int(i) => Cell::Int(self.ints[i as usize].values[row]),
            Slot::Float(i) => Cell::Float(self.floats[i as usize].values[row]),
            Slot::String(i) => {
                // The text of a block is at most 4 GiB long.
                let start = text.len() as u32;
                text.extend_from_slice(self.text(i, row));
                Cell::Text(start, text.len() as u32)
            }
        }
    }

    /// Writes a value from [`Block::cell`] to a field in `row`.
    #[inline]
    pub(crate) fn set_cell(&mut self, slot: Slot, row: usize, cell: Cell, text: &[u8]) {
        match (slot, cell) {
            (_, Cell::Absent) => {}
            (Slot::Bool(column), Cell::Bool(value)) => self.set_bool(column, row, value),
            (Slot::Int(column), Cell::Int(value)) => self.set_int(column, row, value),
            (Slot::Float(column), Cell::Float(value)) => self.set_float(column, row, value),
            (Slot::String(column), Cell::Text(start, end)) => {
                let start_here = self.text.len();
                self.text.extend_from_slice(&text[start as usize..end as usize]);
                match (u32::try_from(start_here), u32::try_from(self.text.len())) {
                    (Ok(start), Ok(end)) => {
                        self.strings[column as usize].ranges[row] = (start, end);
                        self.mark_valid(slot, 1 << row);
                    }
                    // More than 4 GiB in one block, as in `set_string`.
                    _ => {
                        self.text.truncate(start_here);
                        self.set_invalid(slot, row);
                    }
                }
            }
            _ => self.set_invalid(slot, row),
        }
    }

    #[inline(always)]
    fn masks(&mut self, slot: Slot) -> (&mut Rows, &mut Rows) {
        match slot {
            Slot::Bool(i) => {
                let c = &mut self.bools[i as usize];
                (&mut c.present, &mut c.valid)
            }
            Slot::Int(i) => {
                let c = &mut self.ints[i as usize];
                (&mut c.present, &mut c.valid)
            }
            Slot::Float(i) => {
                let c = &mut self.floats[i as usize];
                (&mut c.present, &mut c.valid)
            }
            Slot::String(i) => {
                let c = &mut self.strings[i as usize];
                (&mut c.present, &mut c.valid)
            }
        }
    }

    /// Returns the rows whose event carries the field.
    pub fn present(&self, slot: Slot) -> Rows {
        match slot {
            Slot::Bool(i) => self.bools[i as usize].present,
            Slot::Int(i) => self.ints[i as usize].present,
            Slot::Float(i) => self.floats[i as usize].present,
            Slot::String(i) => self.strings[i as usize].present,
        }
    }

    /// Returns the rows whose event carries the field without a value of its type.
    #[inline(always)]
    pub fn invalid(&self, slot: Slot) -> Rows {
        let (present, valid) = match slot {
            Slot::Bool(i) => (self.bools[i as usize].present, self.bools[i as usize].valid),
            Slot::Int(i) => (self.ints[i as usize].present, self.ints[i as usize].valid),
            Slot::Float(i) => (self.floats[i as usize].present, self.floats[i as usize].valid),
            Slot::String(i) => (self.strings[i as usize].present, self.strings[i as usize].valid),
        };
        present & !valid
    }

    /// Returns a boolean column.
    #[inline(always)]
    pub fn bools(&self, column: u32) -> &BoolColumn {
        &self.bools[column as usize]
    }

    /// Returns a boolean column, for decoders that fill several rows at a time.
    #[inline(always)]
    pub fn bools_mut(&mut self, column: u32) -> &mut BoolColumn {
        &mut self.bools[column as usize]
    }

    /// Returns an integer column.
    #[inline(always)]
    pub fn ints(&self, column: u32) -> &Column<i64> {
        &self.ints[column as usize]
    }

    /// Returns a floating-point column.
    #[inline(always)]
    pub fn floats(&self, column: u32) -> &Column<f64> {
        &self.floats[column as usize]
    }

    /// Returns a text column.
    #[inline(always)]
    pub fn strings(&self, column: u32) -> &StringColumn {
        &self.strings[column as usize]
    }

    /// Returns the text in `row` of a text column; empty if the row is not valid.
    #[inline]
    pub fn text(&self, column: u32, row: usize) -> &[u8] {
        let c = &self.strings[column as usize];
        if c.valid >> row & 1 == 0 {
            return &[];
        }
        let (start, end) = c.ranges[row];
        &self.text[start as usize..end as usize]
    }
}

impl Block {
    /// Returns the length of the text in `row` of a text column, and its first word as [`Block::text_word`] does.
    #[inline(always)]
    pub fn text_begin(&self, column: u32, row: usize) -> (usize, u64) {
        let (start, end) = self.strings[column as usize].ranges[row];
        ((end - start) as usize, self.word(start as usize, end as usize))
    }

    /// Returns the eight bytes from byte `at` of the text in `row` of a text column as a little-endian word, with zeros
    /// beyond its end.
    #[inline(always)]
    pub fn text_word(&self, column: u32, row: usize, at: usize) -> u64 {
        let (start, end) = self.strings[column as usize].ranges[row];
        self.word(start as usize + at, end as usize)
    }

    #[inline(always)]
    fn word(&self, from: usize, end: usize) -> u64 {
        let word = match self.text.get(from..).and_then(|text| text.first_chunk()) {
            Some(chunk) => u64::from_le_bytes(*chunk),
            None => {
                let rest = self.text.get(from..).unwrap_or(&[]);
                rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
            }
        };
        match end.saturating_sub(from) {
            left @ 0..8 => word & ((1 << (8 * left)) - 1),
            _ => word,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pop_removes_all_traces_of_an_event() {
        let mut block = Block::new(Layout { topics: 2, bools: 1, ints: 1, floats: 1, strings: 1 });
        for topic in [0, 1] {
            let row = block.push(TopicId(topic), Timestamp::from_nanos(i64::from(topic)));
            block.set_bool(0, row, true);
            block.set_int(0, row, 7);
            block.set_float(0, row, 0.5);
            block.set_string(0, row, "abc");
            block.set_arrival(row, Timestamp::from_nanos(9));
        }
        block.pop();
        assert_eq!((block.arrival(0), block.arrival(1)), (Some(Timestamp::from_nanos(9)), None));
        block.forget_arrival(0);
        assert_eq!(block.arrival(0), None);
        assert_eq!((block.len(), block.rows()), (1, 1));
        assert_eq!((block.topic_rows(TopicId(0)), block.topic_rows(TopicId(1))), (1, 0));
        let c = block.bools(0);
        assert_eq!((c.present, c.valid, c.values), (1, 1, 1));
        assert_eq!((block.ints(0).present, block.floats(0).valid, block.strings(0).present), (1, 1, 1));
        assert_eq!(block.text(0, 0), b"abc");
        assert_eq!(block.text(0, 1), b"");
        assert_eq!(block.topic(0), Some(TopicId(0)));
    }

    #[test]
    fn kept_events_move_together_with_all_their_fields() {
        let mut block = Block::new(Layout { topics: 2, bools: 1, ints: 1, floats: 1, strings: 1 });
        for i in 0..64_i64 {
            let row = block.push(TopicId((i % 2) as u32), Timestamp::from_nanos(i));
            block.set_bool(0, row, i % 3 == 0);
            block.set_int(0, row, i);
            if i % 5 != 0 {
                block.set_float(0, row, i as f64);
            }
            block.set_string(0, row, &format!("text {i}"));
            if i % 7 == 0 {
                block.set_arrival(row, Timestamp::from_nanos(i + 1));
            }
        }
        let rows = 0x8421_f00f_0110_8002;
        block.keep(rows);
        let kept: Vec<i64> = (0..64).filter(|row| rows >> row & 1 == 1).collect();
        assert_eq!((block.len(), block.rows().count_ones() as usize), (kept.len(), kept.len()));
        for (row, i) in kept.into_iter().enumerate() {
            assert_eq!(block.time(row), Timestamp::from_nanos(i));
            assert_eq!(block.arrival(row), (i % 7 == 0).then(|| Timestamp::from_nanos(i + 1)));
            assert_eq!(block.topic(row), Some(TopicId((i % 2) as u32)));
            assert_eq!((block.bools(0).values >> row & 1 == 1, block.ints(0).values[row]), (i % 3 == 0, i));
            let float = (block.floats(0).valid >> row & 1 == 1).then(|| block.floats(0).values[row]);
            assert_eq!(float, (i % 5 != 0).then_some(i as f64));
            assert_eq!(block.text(0, row), format!("text {i}").as_bytes());
        }
        // Later rows are appended.
        let row = block.push(TopicId(0), Timestamp::ZERO);
        block.set_string(0, row, "last");
        assert_eq!((block.text(0, row), block.floats(0).present >> row), (&b"last"[..], 0));
        block.keep(0);
        assert!(block.is_empty() && block.topic_rows(TopicId(0)) == 0);
    }

    #[test]
    fn ascii_text_is_written_and_read_in_words() {
        let text = b"abcdefghijklmnopqrst\"}       ";
        let word = |at: usize| u64::from_le_bytes(*text[at..].first_chunk().unwrap());
        let mut block = Block::new(Layout { topics: 1, strings: 1, ..Layout::default() });
        for len in 0..=20 {
            let row = block.push(TopicId(0), Timestamp::ZERO);
            assert!(block.write_ascii(0, row, len, word));
            block.mark_valid(Slot::String(0), 1 << row);
        }
        for len in 0..=20 {
            assert_eq!(block.text(0, len), &text[..len]);
            let words: Vec<u8> =
                (0..24).step_by(8).flat_map(|at| block.text_word(0, len, at).to_le_bytes()).collect();
            assert_eq!((&words[..len], words[len..].iter().all(|b| *b == 0)), (&text[..len], true));
        }
    }

    #[test]
    fn repeat_copies_the_event_to_every_row() {
        let layout = Layout { topics: 2, bools: 1, ints: 2, floats: 1, strings: 2 };
        let (mut block, mut copies) = (Block::new(layout), Block::new(layout));
        for topic in [0, 1, 0] {
            let row = block.push(TopicId(topic), Timestamp::from_nanos(i64::from(topic) + 3));
            block.set_bool(0, row, true);
            block.set_int(0, row, 7 + row as i64);
            block.set_invalid(Slot::Int(1), row);
            block.set_string(1, row, ["a", "bc", "def"][row]);
        }
        copies.repeat(&block, 1);
        assert_eq!(
            (copies.len(), copies.topic_rows(TopicId(0)), copies.topic_rows(TopicId(1))),
            (64, 0, Rows::MAX)
        );
        for row in [0, 31, 63] {
            assert_eq!(copies.time(row), block.time(1));
            assert_eq!(copies.ints(0).values[row], 8);
            assert_eq!(copies.text(1, row), b"bc");
            assert_eq!(copies.text(0, row), b"");
        }
        assert_eq!((copies.ints(1).present, copies.ints(1).valid), (Rows::MAX, 0));
        assert_eq!((copies.floats(0).present, copies.bools(0).values), (0, Rows::MAX));
    }

    #[test]
    fn the_last_write_counts_and_set_invalid_clears_it() {
        let mut block = Block::new(Layout { topics: 1, bools: 1, ..Layout::default() });
        let row = block.push(TopicId(0), Timestamp::ZERO);
        block.set_bool(0, row, true);
        block.set_bool(0, row, false);
        assert_eq!(block.bools(0).values, 0);
        block.set_bool(0, row, true);
        block.set_invalid(Slot::Bool(0), row);
        let c = block.bools(0);
        assert_eq!((c.present, c.valid, c.values), (1, 0, 0));
    }
}
