//! The elements of an array in a message, as a table.

use std::cell::RefCell;

use rondel_event::{Block, Field, Layout, Path, Projection, Segment, Slot, Table, TableWriter};
use rondel_event::{Timestamp, TopicId};

use super::find::find;
use super::plan::Node;
use super::scan::{Kind, Scanner};
use super::walk::walk;
use super::writer::Writer;
use crate::tables::Slots;

/// Plan for writing a table.
#[derive(Clone, Debug)]
pub(crate) struct TableNode {
    /// Arrays whose elements are read, those of the names first.
    arrays: Vec<Array>,
    /// Fields outside of the arrays, and the columns of those and of elements, in the order of the table.
    message: Node,
    of_message: Vec<Slot>,
    of_element: Vec<Slot>,
    layout: Layout,
    /// Column of each field, in the order of the table.
    fields: Vec<Slot>,
    /// Column of the block for the table.
    column: u32,
}

/// An array whose elements are read.
#[derive(Clone, Debug)]
struct Array {
    path: Path,
    element: Node,
    slots: Vec<Slot>,
}

/// State of an array within one message.
#[derive(Clone, Copy, Debug)]
enum Found {
    /// Nothing.
    Absent,
    /// Null, or another type.
    Invalid,
    /// Index of the first element among those of all arrays, and number of elements.
    Elements(usize, usize),
}

/// Buffers for a message.
#[derive(Debug)]
struct Buffers {
    /// One row of a table.
    row: Block,
    /// Bounds of the elements of all arrays.
    elements: Vec<(usize, usize)>,
    found: Vec<Found>,
    table: TableWriter,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::new(Buffers {
        row: Block::new(Layout::default()),
        elements: Vec::new(),
        found: Vec::new(),
        table: TableWriter::default(),
    });
}

impl TableNode {
    /// Returns the plan for a table; `None` if its column is not one of texts.
    pub(super) fn new(table: &Table, slot: Slot) -> Option<TableNode> {
        let Slot::String(column) = slot else { return None };
        let mut slots = Slots::default();
        let mut arrays: Vec<(Path, Projection)> = vec![(Table::array(&table.key), Projection::default())];
        let (mut message, mut of_message, mut of_element) = (Projection::default(), Vec::new(), Vec::new());
        let mut fields = Vec::new();
        for field in &table.fields {
            let slot = slots.next(field.slot);
            fields.push(slot);
            let Some((array, _, rest)) = field.path.of_each() else {
                message.fields.push(Field { slot, ..field.clone() });
                of_message.push(slot);
                continue;
            };
            of_element.push(slot);
            let at = arrays.iter().position(|(path, _)| path.0 == array).unwrap_or_else(|| {
                arrays.push((Path(array.to_vec()), Projection::default()));
                arrays.len() - 1
            });
            arrays[at].1.fields.push(Field { path: Path(rest.to_vec()), slot, ..field.clone() });
        }
        let arrays = arrays.into_iter().map(|(path, read)| Array {
            path,
            slots: read.fields.iter().map(|field| field.slot).collect(),
            element: Node::new(&read),
        });
        Some(TableNode {
            arrays: arrays.collect(),
            message: Node::new(&message),
            of_message,
            of_element,
            layout: slots.layout(),
            fields,
            column,
        })
    }

    /// Writes the table of a well-formed message.
    pub(super) fn write(&self, message: &[u8], writer: &mut Writer<'_>) {
        BUFFERS.with_borrow_mut(|buffers| self.write_in(buffers, message, writer));
    }

    fn write_in(&self, buffers: &mut Buffers, message: &[u8], writer: &mut Writer<'_>) {
        let slot = Slot::String(self.column);
        let Buffers { row, elements, found, table } = buffers;
        if row.layout() != self.layout {
            *row = Block::new(self.layout);
        }
        elements.clear();
        found.clear();
        for Array { path, .. } in &self.arrays {
            let (of, is_other) = find_elements(message, &path.0, elements);
            writer.count_mistyped(slot, u64::from(is_other));
            found.push(of);
        }
        let count = match found.first() {
            Some(Found::Elements(_, count)) => *count,
            Some(Found::Invalid) => return writer.block.set_invalid(slot, writer.row),
            _ => return,
        };
        let other = found.iter().find_map(|found| match found {
            Found::Elements(_, other) if *other != count => Some(*other),
            _ => None,
        });
        table.begin(count, other);
        let unit = writer.time_unit;
        let mut read = |text: &[u8], node: &Node, row: &mut Block| {
            let mut own = Writer::new(row, 0, unit);
            let walked = walk(&mut Scanner::new(text), Some(node), 1, &mut own);
            debug_assert!(walked.is_ok(), "the message was scanned before");
            let (mistyped, large, no_number) = (own.mistyped, own.large, own.no_number);
            writer.left_out += own.left_out;
            if let Some(first) = own.first_mistyped.filter(|_| writer.first_mistyped.is_none()) {
                writer.first_member = self.fields.iter().position(|slot| *slot == first).map(|at| at as u16);
            }
            writer.count_mistyped(slot, mistyped);
            writer.large = writer.large.or(large.map(|_| slot));
            writer.no_number = writer.no_number.or(no_number.map(|text| text.at(slot)));
        };
        begin(row);
        read(message, &self.message, row);
        self.of_message.iter().for_each(|slot| table.copy(row, *slot, 0));
        for at in 0..count {
            begin(row);
            for (array, found) in self.arrays.iter().zip(&*found) {
                match found {
                    Found::Elements(first, count) if at < *count => {
                        let (start, end) = elements[first + at];
                        read(&message[start..end], &array.element, row);
                    }
                    Found::Elements(..) | Found::Invalid => {
                        array.slots.iter().for_each(|slot| row.set_invalid(*slot, 0));
                    }
                    Found::Absent => {}
                }
            }
            self.of_element.iter().for_each(|slot| table.copy(row, *slot, 0));
        }
        writer.block.set_text(self.column, writer.row, table.text().as_bytes());
    }
}

/// Initialises a block with one event without fields.
fn begin(row: &mut Block) {
    row.clear();
    row.push(TopicId(0), Timestamp::ZERO);
}

/// Appends the bounds of the elements of an array in a well-formed message; returns also whether the value is neither
/// array nor null.
fn find_elements(message: &[u8], path: &[Segment], elements: &mut Vec<(usize, usize)>) -> (Found, bool) {
    let Some(array) = find(message, path) else { return (Found::Absent, false) };
    let offset = array.as_ptr() as usize - message.as_ptr() as usize;
    let (first, mut scanner) = (elements.len(), Scanner::new(array));
    match scanner.kind() {
        Ok(Kind::Array) => {}
        kind => return (Found::Invalid, kind != Ok(Kind::Null)),
    }
    let scanned = scanner.elements(0, |scanner, _| {
        let start = scanner.at;
        scanner.skip(1)?;
        elements.push((offset + start, offset + scanner.at));
        Ok(())
    });
    debug_assert!(scanned.is_ok(), "the array was scanned before");
    (Found::Elements(first, elements.len() - first), false)
}
