//! Tables of the elements of an array, in encodings whose decoders read elements by their positions.
//!
//! A decoder of its own reads the same fields of so many elements, into one row with a column for each field of each. With
//! more elements in a message, one for more is made.

use std::sync::Arc;

use rondel_event::{Block, Field, Layout, Path, Projection, Read, Slot, Table, TableWriter};
use rondel_event::{TimeUnit, Timestamp, TopicId};

use crate::decoder::{DecodeError, Decoder, DecoderError};
use crate::encoding::{Encoding, MessageType};
use crate::sink::Refused;

/// Elements that are read of a message at first, and at most: each takes a kilobyte for every two fields.
const FIRST: u32 = 16;
const MOST: u32 = 4096;

/// Columns of a row of a table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slots(Layout);

impl Slots {
    /// A further column, of the same kind as another.
    pub(crate) fn next(&mut self, like: Slot) -> Slot {
        let Slots(layout) = self;
        let next = |count: &mut usize| {
            *count += 1;
            *count as u32 - 1
        };
        match like {
            Slot::Bool(_) => Slot::Bool(next(&mut layout.bools)),
            Slot::Int(_) => Slot::Int(next(&mut layout.ints)),
            Slot::Float(_) => Slot::Float(next(&mut layout.floats)),
            Slot::String(_) => Slot::String(next(&mut layout.strings)),
        }
    }

    /// The layout of a block with one topic and these columns.
    pub(crate) fn layout(self) -> Layout {
        Layout { topics: 1, ..self.0 }
    }
}

/// A decoder of messages, and of the tables that are read of them.
#[derive(Clone, Debug)]
pub struct TableDecoder {
    pub(crate) messages: Decoder,
    pub(crate) tables: Vec<Elements>,
}

/// Encoding and type from which decoders for elements are made.
#[derive(Clone, Debug)]
struct Origin {
    encoding: Encoding,
    message_type: Option<MessageType>,
    time_unit: TimeUnit,
}

/// The elements that become a table.
#[derive(Clone, Debug)]
pub(crate) struct Elements {
    origin: Origin,
    table: Arc<Table>,
    /// The column of the table.
    slot: Slot,
    pub(crate) decoder: Decoder,
    /// Counts of the decoders for fewer elements that it replaced.
    replaced: Refused,
    plan: Plan,
    block: Block,
    /// Whether the type has no further elements.
    is_fixed: bool,
    writer: TableWriter,
    /// Messages with more elements than are read.
    too_many: Option<TooManyElements>,
    /// The field of the first value of another type, by its position in the table.
    mistyped: Option<u16>,
}

/// Messages with more elements in an array than are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyElements {
    /// The column of the table.
    pub slot: Slot,
    /// The number of messages.
    pub messages: u64,
    /// The number of elements in the first of them.
    pub first: u32,
    /// The number of elements that are read.
    pub limit: u32,
}

/// Where what a table holds is in the row of a message.
#[derive(Clone, Debug)]
struct Plan {
    capacity: u32,
    /// The lengths of the arrays, that of the names first.
    lengths: Vec<Slot>,
    of_message: Vec<Slot>,
    /// For each element its fields, and for each field the place of its array among the lengths.
    of_elements: Vec<Vec<Slot>>,
    arrays: Vec<usize>,
}

impl TableDecoder {
    /// A decoder as [`Decoder::new`] makes it, for a projection with tables.
    pub(crate) fn new(
        encoding: Encoding,
        message_type: Option<&MessageType>,
        topic: TopicId,
        projection: &Projection,
        time: Option<&Path>,
        time_unit: TimeUnit,
    ) -> Result<TableDecoder, DecoderError> {
        let is_table = |field: &&Field| matches!(field.read, Read::Table(_));
        let others = projection.fields.iter().filter(|field| !is_table(field));
        let others = Projection { fields: others.cloned().collect() };
        let messages = Decoder::new(encoding, message_type, topic, &others, time, time_unit)?;
        let origin = Origin { encoding, message_type: message_type.cloned(), time_unit };
        let tables = projection.fields.iter().filter_map(|field| match &field.read {
            Read::Table(table) => Some(Elements::new(origin.clone(), Arc::clone(table), field.slot)),
            _ => None,
        });
        Ok(TableDecoder { messages, tables: tables.collect::<Result<_, _>>()? })
    }

    /// Returns a count of the values of tables that could not be written.
    pub(crate) fn count(&self, of: impl Fn(&Refused) -> u64) -> u64 {
        self.tables.iter().map(|table| of(&table.replaced) + of(table.decoder.refused())).sum()
    }

    /// Returns the messages with more elements than are read.
    pub(crate) fn too_many(&self) -> Option<TooManyElements> {
        self.tables.iter().find_map(|table| table.too_many)
    }

    /// Returns the column of a table with a value of another type, and its field by its position.
    pub(crate) fn mistyped_member(&self) -> Option<(Slot, u16)> {
        self.tables.iter().find_map(|table| Some((table.slot, table.mistyped?)))
    }

    pub(crate) fn decode(
        &mut self,
        payload: &[u8],
        time: Timestamp,
        block: &mut Block,
    ) -> Result<(), DecodeError> {
        self.messages.decode(payload, time, block)?;
        let row = block.len() - 1;
        for table in &mut self.tables {
            table.write(payload, block, row);
        }
        Ok(())
    }
}

impl Elements {
    fn new(origin: Origin, table: Arc<Table>, slot: Slot) -> Result<Elements, DecoderError> {
        let (mut fits, mut fails) = (0, FIRST + 1);
        let mut made = origin.plan(&table, FIRST);
        let is_fixed = made.is_err();
        if is_fixed {
            // A fixed array has fewer.
            while fails - fits > 1 {
                let middle = (fits + fails) / 2;
                match origin.plan(&table, middle) {
                    Ok(plan) => (fits, made) = (middle, Ok(plan)),
                    Err(error) => {
                        fails = middle;
                        made = if fits == 0 { Err(error) } else { made };
                    }
                }
            }
        }
        let (decoder, plan, layout) = made?;
        let (block, writer) = (Block::new(layout), TableWriter::default());
        let replaced = Refused::default();
        let (too_many, mistyped) = (None, None);
        Ok(Elements {
            origin,
            table,
            slot,
            decoder,
            replaced,
            plan,
            block,
            is_fixed,
            writer,
            too_many,
            mistyped,
        })
    }

    /// Makes room for more elements, if the type has any. The counts are those before the message that has them.
    fn grow(&mut self, count: u32, before: Refused) {
        let capacity = count.next_power_of_two();
        match self.origin.plan(&self.table, capacity) {
            Ok((decoder, plan, layout)) => {
                self.replaced.add(before);
                (self.decoder, self.plan, self.block) = (decoder, plan, Block::new(layout));
            }
            Err(_) => self.is_fixed = true,
        }
    }

    fn read(&mut self, payload: &[u8]) -> Option<u32> {
        self.block.clear();
        let before = self.decoder.refused().mistyped();
        self.decoder.decode(payload, Timestamp::ZERO, &mut self.block).ok()?;
        if self.mistyped.is_none() && self.decoder.refused().mistyped() > before {
            self.mistyped = self.find_mistyped();
        }
        length(&self.block, self.plan.lengths[0])
    }

    /// Finds the first field of the message that was read without a value, by its position in the table.
    #[cold]
    fn find_mistyped(&self) -> Option<u16> {
        let is_of_element = self.table.fields.iter().map(|field| field.path.of_each().is_some());
        let (mut of_message, mut of_element) = (Vec::new(), Vec::new());
        for (at, is_of_element) in (0..).zip(is_of_element) {
            if is_of_element { &mut of_element } else { &mut of_message }.push(at);
        }
        let Plan { lengths, arrays, of_elements, .. } = &self.plan;
        let has = |array: usize, element: u32| {
            length(&self.block, lengths[array]).is_none_or(|length| element < length)
        };
        let elements = (0..).zip(of_elements).flat_map(|(element, slots)| {
            let fields = of_element.iter().zip(slots).zip(arrays);
            fields.filter(move |(_, array)| has(**array, element)).map(|(field, _)| field)
        });
        let mut all = of_message.iter().zip(&self.plan.of_message).chain(elements);
        all.find(|(_, slot)| self.block.invalid(**slot) & 1 == 1).map(|(at, _)| *at)
    }

    /// Writes the table of a message into a row.
    fn write(&mut self, payload: &[u8], block: &mut Block, row: usize) {
        let before = *self.decoder.refused();
        let mut count = self.read(payload);
        let has_room = |count: u32| count > self.plan.capacity && count <= MOST && !self.is_fixed;
        if let Some(more) = count.filter(|count| has_room(*count)) {
            self.grow(more, before);
            count = self.read(payload);
        }
        let Some(count) = count else {
            if self.block.present(self.plan.lengths[0]) & 1 == 1 {
                block.set_invalid(self.slot, row);
            }
            return;
        };
        if count > self.plan.capacity {
            let (slot, limit) = (self.slot, if self.is_fixed { self.plan.capacity } else { MOST });
            let none = TooManyElements { slot, messages: 0, first: count, limit };
            self.too_many.get_or_insert(none).messages += 1;
            if let Slot::String(column) = slot {
                block.set_string(column, row, TableWriter::TOO_MANY);
            }
            return;
        }
        let Elements { plan, block: own, writer, .. } = self;
        let other = plan.lengths[1..].iter().filter_map(|slot| length(own, *slot));
        writer
            .begin(count as usize, other.map(|other| other as usize).find(|other| *other != count as usize));
        plan.of_message.iter().for_each(|slot| writer.copy(own, *slot, 0));
        for (at, element) in (0..count).zip(&plan.of_elements) {
            for (slot, array) in element.iter().zip(&plan.arrays) {
                match length(own, plan.lengths[*array]) {
                    Some(length) if at >= length => writer.invalid(),
                    _ => writer.copy(own, *slot, 0),
                }
            }
        }
        if let Slot::String(column) = self.slot {
            block.set_text(column, row, self.writer.text().as_bytes());
        }
    }
}

/// The length of an array, if the message has it.
fn length(block: &Block, slot: Slot) -> Option<u32> {
    let Slot::Int(column) = slot else { return None };
    let column = block.ints(column);
    (column.valid & 1 == 1).then(|| column.values[0].try_into().unwrap_or(u32::MAX))
}

impl Origin {
    /// The decoder for so many elements, where it writes what, and into which columns.
    fn plan(&self, table: &Table, capacity: u32) -> Result<(Decoder, Plan, Layout), DecoderError> {
        let mut slots = Slots::default();
        let mut projection = Projection::default();
        let mut read = |path: Path, like: &Field| {
            let slot = slots.next(like.slot);
            projection.fields.push(Field { path, slot, ..like.clone() });
            slot
        };
        let of_message = table.of_message().map(|field| read(field.path.clone(), field)).collect();
        let mut arrays = vec![Table::array(&table.key)];
        let of_field = table.of_element().map(|field| {
            let array = Table::array(&field.path);
            arrays.iter().position(|known| *known == array).unwrap_or_else(|| {
                arrays.push(array);
                arrays.len() - 1
            })
        });
        let of_field = of_field.collect();
        let of_elements = (0..capacity)
            .map(|at| table.of_element().map(|field| read(field.path.at_element(at), field)).collect());
        let of_elements = of_elements.collect();
        let length = Field { path: Path::default(), read: Read::Length, slot: Slot::Int(0), exact: false };
        let lengths = arrays.into_iter().map(|array| read(array, &length)).collect();
        let decoder = Decoder::new(
            self.encoding,
            self.message_type.as_ref(),
            TopicId(0),
            &projection,
            None,
            self.time_unit,
        )?;
        let plan = Plan { capacity, lengths, of_message, of_elements, arrays: of_field };
        Ok((decoder, plan, slots.layout()))
    }
}
