//! Tables of the elements of an array, in encodings whose decoders read elements by their positions.
//!
//! A decoder of its own reads the same fields of so many elements, into one row with a column for each field of each. With
//! more elements in a message, one for more is made.

use std::sync::Arc;

use rondel_event::{Block, Field, Layout, Path, Projection, Read, Slot, Table, TableWriter};
use rondel_event::{TimeUnit, Timestamp, TopicId};

use crate::decoder::{DecodeError, Decoder, DecoderError, Encoding, MessageType};

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
    plan: Plan,
    block: Block,
    /// Whether the type has no further elements.
    is_fixed: bool,
    writer: TableWriter,
    /// Messages with more elements than are read.
    pub(crate) too_many: u64,
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
        (encoding, message_type): (Encoding, Option<&MessageType>),
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

    /// Sum of a counter over the decoders of messages and of elements.
    pub(crate) fn total(&self, count: impl Fn(&Decoder) -> u64) -> u64 {
        count(&self.messages) + self.tables.iter().map(|table| count(&table.decoder)).sum::<u64>()
    }

    /// How many tables so far had more elements than are read.
    pub(crate) fn too_many(&self) -> u64 {
        self.tables.iter().map(|table| table.too_many).sum()
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
        Ok(Elements { origin, table, slot, decoder, plan, block, is_fixed, writer, too_many: 0 })
    }

    /// Makes room for more elements, if the type has any.
    fn grow(&mut self, count: u32) {
        let capacity = count.next_power_of_two().min(MOST);
        match self.origin.plan(&self.table, capacity) {
            Ok((decoder, plan, layout)) => {
                (self.decoder, self.plan, self.block) = (decoder, plan, Block::new(layout));
            }
            Err(_) => self.is_fixed = true,
        }
    }

    fn read(&mut self, payload: &[u8]) -> Option<u32> {
        self.block.clear();
        self.decoder.decode(payload, Timestamp::ZERO, &mut self.block).ok()?;
        length(&self.block, self.plan.lengths[0])
    }

    /// Writes the table of a message into a row.
    fn write(&mut self, payload: &[u8], block: &mut Block, row: usize) {
        let mut count = self.read(payload);
        if let Some(more) = count.filter(|count| *count > self.plan.capacity && !self.is_fixed) {
            self.grow(more);
            count = self.read(payload);
        }
        let Some(count) = count else {
            if self.block.present(self.plan.lengths[0]) & 1 == 1 {
                block.set_invalid(self.slot, row);
            }
            return;
        };
        if count > self.plan.capacity {
            self.too_many += 1;
            return block.set_invalid(self.slot, row);
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
