//! Elements of messages as events of instances.

use rondel_event::{Block, PackedTable, Projection, Slot, TableCell};

use super::Monitor;
use super::emit::{Occasion, Out, emit};
use crate::keyed::plan::Sliced;
use crate::keyed::{Events, Moment};
use crate::lower::elements::ElementPlan;
use crate::monitor::program::Program;

/// Room for the elements of messages.
#[derive(Clone, Debug)]
pub(super) struct ElementRoom {
    /// Events of elements, and between them those of other topics.
    block: Block,
    /// The time of each.
    times: [i64; Block::CAPACITY],
    /// For each the row of its message.
    rows: [u8; Block::CAPACITY],
    /// The names of the elements of a message, one after the other, and for each where it ends.
    names: Vec<u8>,
    ends: Vec<usize>,
    /// The elements by their names.
    order: Vec<u32>,
    /// For each whether it counts: a later one does not have its name.
    counts: Vec<bool>,
    /// The columns of each topic.
    slots: Vec<Vec<Slot>>,
}

impl ElementRoom {
    pub(super) fn new(program: &Program) -> ElementRoom {
        let slots = |projection: &Projection| projection.fields.iter().map(|field| field.slot).collect();
        ElementRoom {
            block: Block::new(program.layout()),
            times: [0; _],
            rows: [0; _],
            names: Vec::new(),
            ends: Vec::new(),
            order: Vec::new(),
            counts: Vec::new(),
            slots: program.projections().iter().map(slots).collect(),
        }
    }

    /// Finds the elements that count, by the columns of their keys; returns how many do not.
    fn find_repeated(&mut self, mut table: PackedTable<'_>, plan: &ElementPlan, keys: &[Slot]) -> u64 {
        let ElementRoom { names, ends, order, counts, .. } = self;
        names.clear();
        ends.clear();
        plan.of_message.iter().for_each(|_| _ = table.cell());
        for _ in 0..table.rows {
            for slot in &plan.of_element {
                let cell = table.cell();
                if keys.contains(slot) {
                    write_name(cell, names);
                }
            }
            ends.push(names.len());
        }
        let name = |at: u32| {
            let start = at.checked_sub(1).map_or(0, |before| ends[before as usize]);
            &names[start..ends[at as usize]]
        };
        order.clear();
        order.extend(0..ends.len() as u32);
        order.sort_unstable_by(|a, b| name(*a).cmp(name(*b)).then(a.cmp(b)));
        counts.clear();
        counts.resize(ends.len(), true);
        let mut repeated = 0;
        for pair in order.windows(2) {
            if name(pair[0]) == name(pair[1]) && name(pair[0])[0] != NO_NAME {
                counts[pair[0] as usize] = false;
                repeated += 1;
            }
        }
        repeated
    }
}

/// The kind of a name that is none.
const NO_NAME: u8 = 0;

/// Appends a part of a name, so that names are equal if their parts are.
fn write_name(cell: TableCell<'_>, names: &mut Vec<u8>) {
    match cell {
        TableCell::Absent | TableCell::Invalid => names.push(NO_NAME),
        TableCell::Bool(value) => names.extend([1, u8::from(value)]),
        TableCell::Int(value) => {
            names.push(2);
            names.extend(value.to_le_bytes());
        }
        TableCell::Float(value) => {
            names.push(3);
            names.extend(value.to_bits().to_le_bytes());
        }
        TableCell::Text(text) => {
            names.push(4);
            names.extend((text.len() as u64).to_le_bytes());
            names.extend(text);
        }
    }
}

impl Monitor {
    /// Evaluates the events of a block for instances of elements, and what time brings before `time`.
    pub(super) fn divided_by_element(&mut self, i: usize, sliced: &Sliced, block: &Block, time: i64) {
        let Some(mut room) = self.element_room.take() else { return };
        self.keys.slice = i as u32;
        let program = std::sync::Arc::clone(&self.program);
        room.block.clear();
        for row in 0..block.len() {
            let Some(topic) = block.topic(row) else { continue };
            for plan in program.elements.iter().filter(|plan| plan.parent == topic) {
                if let Some((_, keys)) = sliced.plan.keys.topics.iter().find(|(of, _)| *of == plan.topic) {
                    self.elements((i, sliced), (plan, keys), (block, row), &mut room);
                }
            }
            let is_keyed = sliced.plan.keys.topics.iter().any(|(of, _)| *of == topic);
            if is_keyed || sliced.plan.shared.contains(&topic) {
                let to = room.block.push_copy(block, row, topic, &room.slots[topic.index()]);
                (room.times[to], room.rows[to]) = (self.times[row], row as u8);
                self.flush_full((i, sliced), block, &mut room);
            }
        }
        self.flush((i, sliced), block, &mut room);
        let Monitor { instances, times, reports, keys, every, position, noted, .. } = self;
        let times = &times[..block.len()];
        let events = Occasion { block: Some(block), times, position: *position, rows: Some(&room.rows) };
        let mut out = Out { reports, keys, noted };
        let mut emit = |points: &Moment<'_>| emit(points, sliced, events, *every, &mut out);
        instances[i].advance(sliced, time, times, &mut emit);
        self.element_room = Some(room);
    }

    /// Adds the elements of the message in a row.
    fn elements(
        &mut self,
        (i, sliced): (usize, &Sliced),
        (plan, keys): (&ElementPlan, &[Slot]),
        (block, row): (&Block, usize),
        room: &mut ElementRoom,
    ) {
        let Some(mut table) = PackedTable::new(block.text(plan.packed, row)) else {
            self.instances[i].count_without_elements();
            return;
        };
        let repeated = room.find_repeated(table, plan, keys);
        let unequal = table.other.map(|other| [table.rows, other]);
        self.instances[i].count_elements(repeated, unequal);
        let of_message = table;
        plan.of_message.iter().for_each(|_| _ = table.cell());
        for at in 0..room.counts.len() {
            if !room.counts[at] {
                plan.of_element.iter().for_each(|_| _ = table.cell());
                continue;
            }
            let to = room.block.push(plan.topic, block.time(row));
            room.block.copy_stamp(block, row, to);
            (room.times[to], room.rows[to]) = (self.times[row], row as u8);
            let mut of_message = of_message;
            plan.of_message.iter().for_each(|slot| of_message.cell().write(&mut room.block, *slot, to));
            plan.of_element.iter().for_each(|slot| table.cell().write(&mut room.block, *slot, to));
            self.flush_full((i, sliced), block, room);
        }
    }

    fn flush_full(&mut self, slice: (usize, &Sliced), block: &Block, room: &mut ElementRoom) {
        if room.block.is_full() {
            self.flush(slice, block, room);
        }
    }

    /// Evaluates the events so far, which belong to messages of a block.
    fn flush(&mut self, (i, sliced): (usize, &Sliced), block: &Block, room: &mut ElementRoom) {
        let Monitor { instances, times, reports, keys, every, position, noted, .. } = self;
        let ElementRoom { block: own, times: own_times, rows, .. } = room;
        let times = &times[..block.len()];
        let events = Occasion { block: Some(block), times, position: *position, rows: Some(rows) };
        let mut out = Out { reports, keys, noted };
        let mut emit = |points: &Moment<'_>| emit(points, sliced, events, *every, &mut out);
        let given = Events { block: own, times: &own_times[..own.len()], rows: own.rows(), inputs: &[] };
        instances[i].step(sliced, given, &mut emit);
        own.clear();
    }
}
