//! Elements of messages as events of instances.

use rondel_event::{Block, PackedTable, Projection, Slot, TableWriter};

use super::Monitor;
use super::emit::{ElementRows, Occasion, Out, emit};
use crate::keyed::plan::Sliced;
use crate::keyed::{Events, PointBatch};
use crate::lower::elements::ElementPlan;
use crate::monitor::program::Program;

/// Room for the elements of messages.
#[derive(Clone, Debug)]
pub(super) struct ElementRoom {
    /// Events of elements, and between them those of other topics.
    block: Block,
    /// The time of each.
    times: [i64; Block::CAPACITY],
    rows: ElementRows,
    /// The columns of each topic.
    slots: Vec<Vec<Slot>>,
}

impl ElementRoom {
    pub(super) fn new(program: &Program) -> ElementRoom {
        let slots = |projection: &Projection| projection.fields.iter().map(|field| field.slot).collect();
        ElementRoom {
            block: Block::new(program.layout()),
            times: [0; _],
            rows: ElementRows::default(),
            slots: program.projections().iter().map(slots).collect(),
        }
    }

    /// Notes of the event in a row the row and time of its message, and of an element its position.
    fn place(&mut self, to: usize, message: usize, time: i64, position: Option<u32>) {
        self.times[to] = time;
        self.rows.messages[to] = message as u8;
        self.rows.positions[to] = position;
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
                if sliced.plan.keys.topics.iter().any(|(of, _)| *of == plan.topic) {
                    self.elements(i, sliced, plan, block, row, &mut room);
                }
            }
            let is_keyed = sliced.plan.keys.topics.iter().any(|(of, _)| *of == topic);
            if is_keyed || sliced.plan.shared.contains(&topic) {
                let to = room.block.push_copy(block, row, topic, &room.slots[topic.index()]);
                room.place(to, row, self.times[row], None);
                self.flush_full(i, sliced, block, &mut room);
            }
        }
        self.flush(i, sliced, block, &mut room);
        let Monitor { instances, times, reports, keys, every, position, noted, .. } = self;
        let times = &times[..block.len()];
        let events = Occasion { block: Some(block), times, position: *position, elements: Some(&room.rows) };
        let mut out = Out { reports, keys, noted };
        let mut emit = |points: &PointBatch<'_>| emit(points, sliced, events, *every, &mut out);
        instances[i].advance(sliced, time, times, &mut emit);
        self.element_room = Some(room);
    }

    /// Adds the elements of the message in a row, each as an event, in their order.
    fn elements(
        &mut self,
        i: usize,
        sliced: &Sliced,
        plan: &ElementPlan,
        block: &Block,
        row: usize,
        room: &mut ElementRoom,
    ) {
        let text = block.text(plan.packed, row);
        let Some(mut table) = PackedTable::new(text) else {
            // The decoder counts those with too many elements.
            if text != TableWriter::TOO_MANY.as_bytes() {
                self.instances[i].count_without_elements();
            }
            return;
        };
        if let Some(other) = table.other {
            self.instances[i].count_unequal([table.rows, other]);
        }
        let of_message = table;
        plan.of_message.iter().for_each(|_| _ = table.cell());
        for position in 0..table.rows {
            let to = room.block.push(plan.topic, block.time(row));
            room.block.copy_stamp(block, row, to);
            room.place(to, row, self.times[row], Some(position as u32));
            let mut of_message = of_message;
            plan.of_message.iter().for_each(|slot| of_message.cell().write(&mut room.block, *slot, to));
            plan.of_element.iter().for_each(|slot| table.cell().write(&mut room.block, *slot, to));
            self.flush_full(i, sliced, block, room);
        }
    }

    fn flush_full(&mut self, i: usize, sliced: &Sliced, block: &Block, room: &mut ElementRoom) {
        if room.block.is_full() {
            self.flush(i, sliced, block, room);
        }
    }

    /// Evaluates the events so far, which belong to messages of a block.
    fn flush(&mut self, i: usize, sliced: &Sliced, block: &Block, room: &mut ElementRoom) {
        let Monitor { instances, times, reports, keys, every, position, noted, .. } = self;
        let ElementRoom { block: own, times: own_times, rows, .. } = room;
        let times = &times[..block.len()];
        let events = Occasion { block: Some(block), times, position: *position, elements: Some(rows) };
        let mut out = Out { reports, keys, noted };
        let mut emit = |points: &PointBatch<'_>| emit(points, sliced, events, *every, &mut out);
        let given = Events { block: own, times: &own_times[..own.len()], rows: own.rows(), inputs: &[] };
        instances[i].step(sliced, given, &mut emit);
        own.clear();
    }
}
