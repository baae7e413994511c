//! Values of the fields of the events in a block: writing and reading them, one or several rows at a time.

use super::{Block, BoolColumn, Cell, Column, Rows, StringColumn};
use crate::{Slot, Value, ValueType};

impl Block {
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

    /// Writes a text that a block held: its bytes in UTF-8.
    pub fn set_text(&mut self, column: u32, row: usize, text: &[u8]) {
        let cell = Cell::Text(0, u32::try_from(text.len()).unwrap_or(u32::MAX));
        self.set_cell(Slot::String(column), row, cell, text);
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
