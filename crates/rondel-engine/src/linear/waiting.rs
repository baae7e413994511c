//! Events that wait for the next samples of fields.

use rondel_event::{Block, Rows, Slot, Timestamp, TopicId};
use serde::{Deserialize, Serialize};

use super::LinearPlan;

/// The columns of an event that its section reads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Waiting {
    pub(super) time: i64,
    /// Number of the event.
    pub(super) step: u64,
    /// Indexes of its topics in the plan.
    topics: Vec<u32>,
    /// Indexes of its fields in the plan, with their values.
    cells: Vec<(u32, WaitingCell)>,
    text: Vec<u8>,
    /// Indexes of the interpolated fields of which it is a sample.
    pub(super) samples: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum WaitingCell {
    Invalid,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// A range of `text`.
    Text(u32, u32),
}

impl Waiting {
    /// Replaces the contents by the event in `row` of a block.
    pub(super) fn read(&mut self, plan: &LinearPlan, block: &Block, row: usize, time: i64, step: u64) {
        (self.time, self.step) = (time, step);
        self.topics.clear();
        self.cells.clear();
        self.text.clear();
        self.samples.clear();
        let has = |rows: Rows| rows >> row & 1 == 1;
        let topics = (0..).zip(&plan.topics).filter(|(_, topic)| has(block.topic_rows(**topic)));
        self.topics.extend(topics.map(|(i, _)| i));
        for (i, &slot) in (0..).zip(&plan.slots) {
            if has(block.present(slot)) {
                let cell = self.cell(block, slot, row);
                self.cells.push((i, cell));
            }
        }
    }

    fn cell(&mut self, block: &Block, slot: Slot, row: usize) -> WaitingCell {
        let has = |rows: Rows| rows >> row & 1 == 1;
        match slot {
            Slot::Bool(i) if has(block.bools(i).valid) => WaitingCell::Bool(has(block.bools(i).values)),
            Slot::Int(i) if has(block.ints(i).valid) => WaitingCell::Int(block.ints(i).values[row]),
            Slot::Float(i) if has(block.floats(i).valid) => WaitingCell::Float(block.floats(i).values[row]),
            Slot::String(i) if has(block.strings(i).valid) => {
                let start = self.text.len();
                self.text.extend_from_slice(block.text(i, row));
                match (u32::try_from(start), u32::try_from(self.text.len())) {
                    (Ok(start), Ok(end)) => WaitingCell::Text(start, end),
                    _ => WaitingCell::Invalid,
                }
            }
            _ => WaitingCell::Invalid,
        }
    }

    /// The event for another plan. The tables map topics, fields and slots of this plan to indexes there; for
    /// slots, with whether the value is the same.
    pub(super) fn moved(
        &self,
        topics: &[Option<u32>],
        slots: impl Fn(u32) -> Option<(u32, bool)>,
        fields: &[Option<u32>],
    ) -> Waiting {
        let place = |places: &[Option<u32>], at: &u32| places.get(*at as usize).copied().flatten();
        let mut cells: Vec<(u32, WaitingCell)> = Vec::new();
        for &(slot, cell) in &self.cells {
            if let Some((slot, is_same)) = slots(slot) {
                let cell = if is_same { cell } else { WaitingCell::Invalid };
                match cells.iter_mut().find(|(own, _)| *own == slot) {
                    Some(known) if is_same => known.1 = cell,
                    Some(_) => {}
                    None => cells.push((slot, cell)),
                }
            }
        }
        Waiting {
            time: self.time,
            step: self.step,
            topics: self.topics.iter().filter_map(|topic| place(topics, topic)).collect(),
            cells,
            text: self.text.clone(),
            samples: self.samples.iter().filter_map(|field| place(fields, field)).collect(),
        }
    }

    /// Appends the event to a block that is not full, on the topic `any`.
    pub(super) fn write(&self, plan: &LinearPlan, block: &mut Block, any: TopicId) -> usize {
        let row = block.push(any, Timestamp::from_nanos(self.time));
        for &topic in self.topics.iter().filter_map(|topic| plan.topics.get(*topic as usize)) {
            block.extend(topic, 1 << row);
        }
        for &(field, cell) in &self.cells {
            let Some(&slot) = plan.slots.get(field as usize) else { continue };
            match (slot, cell) {
                (Slot::Bool(i), WaitingCell::Bool(x)) => block.set_bool(i, row, x),
                (Slot::Int(i), WaitingCell::Int(x)) => block.set_int(i, row, x),
                (Slot::Float(i), WaitingCell::Float(x)) => block.set_float(i, row, x),
                (Slot::String(i), WaitingCell::Text(start, end)) => {
                    let text = self.text.get(start as usize..end as usize).unwrap_or_default();
                    block.set_string(i, row, std::str::from_utf8(text).unwrap_or_default());
                }
                _ => block.set_invalid(slot, row),
            }
        }
        row
    }
}
