//! Tables: the elements of an array in one message, as rows.
//!
//! A `for each` over the elements of an array has an instance per element, but a message is one event. So a decoder packs
//! what is read of all elements into one text of the event's row, which blocks, queues and snapshots pass on like any
//! other text, and the monitor unpacks it for the instances. The text is UTF-8: a number is ten characters of seven bits.

use crate::{Block, Field, Path, Slot};

/// Fields of a message for the instances of a `for each` over the elements of an array.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Table {
    /// The path of a name: that in the elements, or the elements of the array of names.
    pub key: Path,
    /// The fields: those of an element, whose paths lead [through it](Path::of_each), and others of the message. Their
    /// slots are those of the rows that the monitor makes.
    pub fields: Vec<Field>,
}

/// Value of a field in a row of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TableCell<'t> {
    /// The message does not carry the field.
    Absent,
    /// The value is null or has another type.
    Invalid,
    /// A boolean.
    Bool(bool),
    /// An integer or a time.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A text, in UTF-8.
    Text(&'t [u8]),
}

/// Packs a table.
#[derive(Clone, Debug, Default)]
pub struct TableWriter {
    text: String,
}

impl TableWriter {
    /// Text in place of a table with more elements than can be read.
    pub const TOO_MANY: &str = "m";

    /// Begins a table with this many rows. `other` is the length of a parallel array that has another one than that of
    /// the names. The fields outside of the elements follow, then the rows, in the order of [`Table::fields`].
    pub fn begin(&mut self, rows: usize, other: Option<usize>) {
        self.text.clear();
        self.number(rows as u64);
        self.number(other.map_or(u64::MAX, |other| other as u64));
    }

    /// Adds the value of a column in a row of a block.
    pub fn copy(&mut self, block: &Block, slot: Slot, row: usize) {
        let is_in = |rows: crate::Rows| rows >> row & 1 == 1;
        if !is_in(block.present(slot)) {
            return self.text.push('a');
        }
        if is_in(block.invalid(slot)) {
            return self.invalid();
        }
        self.cell(match slot {
            Slot::Bool(at) => TableCell::Bool(is_in(block.bools(at).values)),
            Slot::Int(at) => TableCell::Int(block.ints(at).values[row]),
            Slot::Float(at) => TableCell::Float(block.floats(at).values[row]),
            Slot::String(at) => TableCell::Text(block.text(at, row)),
        });
    }

    /// Adds a value that is unknown.
    pub fn invalid(&mut self) {
        self.text.push('i');
    }

    /// Adds a value of another table.
    fn cell(&mut self, cell: TableCell<'_>) {
        match cell {
            TableCell::Absent => self.text.push('a'),
            TableCell::Invalid => self.invalid(),
            TableCell::Bool(value) => self.text.push(if value { 't' } else { 'f' }),
            TableCell::Int(value) => {
                self.text.push('n');
                self.number(value as u64);
            }
            TableCell::Float(value) => {
                self.text.push('d');
                self.number(value.to_bits());
            }
            TableCell::Text(text) => match std::str::from_utf8(text) {
                Ok(text) => {
                    self.text.push('s');
                    self.number(text.len() as u64);
                    self.text.push_str(text);
                }
                Err(_) => self.invalid(),
            },
        }
    }

    /// Returns the packed table.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn number(&mut self, number: u64) {
        self.text.extend((0..DIGITS).map(|digit| char::from((number >> (7 * digit) & 127) as u8)));
    }
}

/// Characters of a number.
const DIGITS: usize = 10;

/// A packed table on its way of being read.
#[derive(Clone, Copy, Debug)]
pub struct PackedTable<'t> {
    rest: &'t [u8],
    /// The number of its rows.
    pub rows: u64,
    /// The length of a parallel array, if one has another length than that of the names.
    pub other: Option<u64>,
}

impl<'t> PackedTable<'t> {
    /// Begins to read a text of [`TableWriter`]; none if it is none.
    pub fn new(text: &'t [u8]) -> Option<PackedTable<'t>> {
        let mut table = PackedTable { rest: text, rows: 0, other: None };
        table.rows = table.number()?;
        table.other = Some(table.number()?).filter(|other| *other != u64::MAX);
        // Every row has a name, of one byte at least.
        (table.rows <= table.rest.len() as u64).then_some(table)
    }

    /// Returns the next value; [`TableCell::Absent`] behind the last one.
    pub fn cell(&mut self) -> TableCell<'t> {
        self.next().unwrap_or(TableCell::Absent)
    }

    /// Whether any row of a table has a value for the field of elements at this place.
    pub fn has_value(mut self, table: &Table, at: usize) -> bool {
        let count = table.of_element().count();
        table.of_message().for_each(|_| _ = self.cell());
        (0..self.rows).any(|_| {
            let values = (0..count).map(|_| !matches!(self.cell(), TableCell::Absent | TableCell::Invalid));
            values.enumerate().fold(false, |found, (i, is_value)| found || i == at && is_value)
        })
    }

    fn next(&mut self) -> Option<TableCell<'t>> {
        let (kind, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(match kind {
            b'i' => TableCell::Invalid,
            b't' | b'f' => TableCell::Bool(*kind == b't'),
            b'n' => TableCell::Int(self.number()? as i64),
            b'd' => TableCell::Float(f64::from_bits(self.number()?)),
            b's' => {
                let len = usize::try_from(self.number()?).ok()?;
                let (text, rest) = self.rest.split_at_checked(len)?;
                self.rest = rest;
                TableCell::Text(text)
            }
            _ => TableCell::Absent,
        })
    }

    fn number(&mut self) -> Option<u64> {
        let (digits, rest) = self.rest.split_at_checked(DIGITS)?;
        self.rest = rest;
        Some(digits.iter().rev().fold(0, |number, digit| number << 7 | u64::from(digit & 127)))
    }
}

impl TableCell<'_> {
    /// Writes the value to a column of a block; one of another kind is written as invalid.
    pub fn write(self, block: &mut Block, slot: Slot, row: usize) {
        match (slot, self) {
            (_, TableCell::Absent) => {}
            (Slot::Bool(at), TableCell::Bool(value)) => block.set_bool(at, row, value),
            (Slot::Int(at), TableCell::Int(value)) => block.set_int(at, row, value),
            (Slot::Float(at), TableCell::Float(value)) => block.set_float(at, row, value),
            (Slot::String(at), TableCell::Text(text)) => block.set_text(at, row, text),
            _ => block.set_invalid(slot, row),
        }
    }
}

impl Table {
    /// Returns the fields of an element, in their order.
    pub fn of_element(&self) -> impl Iterator<Item = &Field> + Clone {
        self.fields.iter().filter(|field| field.path.of_each().is_some())
    }

    /// Returns the fields outside of the elements, in their order.
    pub fn of_message(&self) -> impl Iterator<Item = &Field> + Clone {
        self.fields.iter().filter(|field| field.path.of_each().is_none())
    }

    /// Returns the path of the array that has a length, for a path through an element.
    pub fn array(path: &Path) -> Path {
        path.of_each().map_or_else(Path::default, |(array, ..)| Path(array.to_vec()))
    }
}

/// Places of the fields of a table in a table of the same elements that has other fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOrigin {
    /// The number of fields there outside of the elements, and for each such field here its place among them.
    pub of_message: (usize, Vec<Option<usize>>),
    /// The same of the fields of an element.
    pub of_element: (usize, Vec<Option<usize>>),
}

impl TableOrigin {
    /// Returns a packed table with the fields in their places here; those that are not there are unknown. None if the text
    /// is no table.
    pub fn repack(&self, text: &[u8]) -> Option<String> {
        let mut table = PackedTable::new(text)?;
        let mut writer = TableWriter::default();
        writer.number(table.rows);
        writer.number(table.other.unwrap_or(u64::MAX));
        let rows = (0..table.rows).map(|_| &self.of_element);
        let mut cells = Vec::new();
        for (count, places) in std::iter::once(&self.of_message).chain(rows) {
            cells.clear();
            cells.extend((0..*count).map(|_| table.cell()));
            for place in places {
                writer.cell(place.and_then(|at| cells.get(at).copied()).unwrap_or(TableCell::Invalid));
            }
        }
        Some(writer.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Timestamp, TopicId, ValueType};

    #[test]
    fn table_is_read_as_it_was_packed() {
        let layout = Layout { topics: 1, bools: 1, ints: 1, floats: 1, strings: 1 };
        let slots = [Slot::Bool(0), Slot::Int(0), Slot::Float(0), Slot::String(0)];
        let (mut from, mut writer) = (Block::new(layout), TableWriter::default());
        from.push(TopicId(0), Timestamp::ZERO);
        from.push(TopicId(0), Timestamp::ZERO);
        from.set_bool(0, 1, true);
        from.set_int(0, 1, i64::MIN);
        from.set_float(0, 1, -0.1);
        from.set_string(0, 1, "é\0n");
        from.set_invalid(Slot::Int(0), 0);
        writer.begin(2, Some(3));
        for row in 0..2 {
            slots.iter().for_each(|slot| writer.copy(&from, *slot, row));
        }
        let mut table = PackedTable::new(writer.text().as_bytes()).unwrap();
        assert_eq!((table.rows, table.other), (2, Some(3)));
        let mut to = Block::new(layout);
        for row in 0..2 {
            to.push(TopicId(0), Timestamp::ZERO);
            slots.iter().for_each(|slot| table.cell().write(&mut to, *slot, row));
        }
        for slot in slots {
            for row in 0..2 {
                let value = |block: &Block| block.value(slot, ValueType::Int, row);
                assert_eq!(value(&to), value(&from));
            }
        }
        assert_eq!(table.cell(), TableCell::Absent);
        assert!(PackedTable::new(b"short").is_none());
        // Nor is one that claims more rows than it has bytes.
        writer.begin(9, None);
        assert!(PackedTable::new(writer.text().as_bytes()).is_none());
    }

    #[test]
    fn repacked_table_has_fields_in_other_places() {
        let mut writer = TableWriter::default();
        writer.begin(2, Some(3));
        let text = |text: &'static str| TableCell::Text(text.as_bytes());
        for cell in [TableCell::Int(7), text("a"), TableCell::Float(0.5), text("b"), TableCell::Absent] {
            writer.cell(cell);
        }
        let origin =
            TableOrigin { of_message: (1, Vec::new()), of_element: (2, vec![Some(1), None, Some(0)]) };
        let packed = origin.repack(writer.text().as_bytes()).unwrap();
        let mut table = PackedTable::new(packed.as_bytes()).unwrap();
        assert_eq!((table.rows, table.other), (2, Some(3)));
        let cells: Vec<TableCell<'_>> = (0..6).map(|_| table.cell()).collect();
        let unknown = TableCell::Invalid;
        assert_eq!(cells, [TableCell::Float(0.5), unknown, text("a"), TableCell::Absent, unknown, text("b")]);
        assert!(table.rest.is_empty());
        assert!(origin.repack(b"short").is_none());
    }
}
