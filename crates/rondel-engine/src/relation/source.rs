//! What a relation reads: the fields of messages from the block, everything without variables from
//! the registers.

use rondel_event::{Block, Rows, Slot, TopicId, ValueType};
use rondel_spec::{ExprId, TimeModel};

use super::plan::RelationPlan;
use super::state::RelationState;
use super::term::{Cell, Source, float_cell};
use crate::ir::node::FieldId;
use crate::ir::wire::{NodeId, Wire};
use crate::ops::columns::Columns;
use crate::ops::timed::{RowTimes, TruthHalves};
use crate::ops::words::low;

/// A closed quantified formula on the way to a program: wires and nodes are those of the graph.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Relation {
    pub(crate) plan: RelationPlan,
    /// The formula in the specification.
    pub(crate) node: ExprId,
    pub(crate) model: TimeModel,
    /// For every truth of the plan its wire, at a row and after it.
    pub(crate) truths: Vec<[Wire; 2]>,
    pub(crate) values: Vec<Input>,
    /// For every field of the plan that of the graph.
    pub(crate) fields: Box<[FieldId]>,
    /// The columns of these in a block.
    pub(crate) slots: Vec<Option<Slot>>,
}

/// A value without variables, at a row and after it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Input {
    /// Where it is certainly true, and where possibly.
    Truth([[Wire; 2]; 2]),
    /// A column of a type, and where it is known.
    Column(ValueType, [(u32, Wire); 2]),
}

impl Relation {
    /// Calls `f` with every node whose register it reads.
    pub(crate) fn for_each_register(&self, mut f: impl FnMut(NodeId)) {
        self.truths.iter().flatten().for_each(|wire| f(wire.node()));
        for value in &self.values {
            match value {
                Input::Truth(sides) => sides.iter().flatten().for_each(|wire| f(wire.node())),
                Input::Column(_, sides) => {
                    for (node, known) in sides {
                        f(NodeId(*node));
                        f(known.node());
                    }
                }
            }
        }
    }

    /// Replaces the wires and nodes of a graph by registers.
    pub(crate) fn place(&mut self, wire: impl Fn(Wire) -> Wire, column: impl Fn(NodeId) -> u32) {
        self.truths.iter_mut().flatten().for_each(|x| *x = wire(*x));
        for value in &mut self.values {
            match value {
                Input::Truth(sides) => sides.iter_mut().flatten().for_each(|x| *x = wire(*x)),
                Input::Column(_, sides) => {
                    for (node, known) in sides {
                        (*node, *known) = (column(NodeId(*node)), wire(*known));
                    }
                }
            }
        }
    }

    /// The truth at the rows, and on the spans after them.
    #[inline(never)]
    pub(crate) fn step(
        &self,
        state: &mut RelationState,
        reading: &Reading<'_>,
        len: u32,
        position: u64,
        moments: RowTimes<'_>,
    ) -> TruthHalves {
        let mut out = TruthHalves::default();
        if let Some(asking) = state.asking_mut() {
            asking.begin();
        }
        for row in 0..len as usize {
            let moment = (position.saturating_add(row as u64), moments.times.get(row).copied().unwrap_or(0));
            let [at, after] = self.moment(state, reading, row, moment);
            out.at |= Rows::from(at) << row;
            out.after |= Rows::from(after) << row;
        }
        out
    }

    /// The same at one row, which is the next moment of this state: of an event its number, and its time.
    #[inline(always)]
    pub(crate) fn row(
        &self,
        state: &mut RelationState,
        reading: &Reading<'_>,
        row: usize,
        moment: (u64, i64),
    ) -> [bool; 2] {
        if let Some(asking) = state.asking_mut() {
            asking.begin();
        }
        self.moment(state, reading, row, moment)
    }

    #[inline(always)]
    fn moment(
        &self,
        state: &mut RelationState,
        reading: &Reading<'_>,
        row: usize,
        (position, time): (u64, i64),
    ) -> [bool; 2] {
        let source = |side| RowSource { relation: self, reading, row, side };
        if !self.plan.named.is_empty() {
            let is_event = reading.events >> row & 1 == 1;
            state.witnesses_at(is_event.then(|| source(0).block_row()));
        }
        let now = match self.model {
            TimeModel::Steps => i64::try_from(position).unwrap_or(i64::MAX),
            TimeModel::Points | TimeModel::Dense => time,
        };
        if self.model == TimeModel::Dense {
            let (at, after) = state.dense_moment(&self.plan, now, &source(0), &source(1));
            return [at, after];
        }
        [state.moment(&self.plan, self.model, now, &source(0)), false]
    }
}

/// The registers, and the rows that they are about.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) words: &'a [Rows],
    pub(crate) columns: &'a Columns,
    pub(crate) block: &'a Block,
    /// The row of the block that the first event is.
    pub(crate) start: u32,
    /// The rows that are events.
    pub(crate) events: Rows,
    pub(crate) buffers: &'a [Vec<u8>],
}

/// A row, or the span after it.
struct RowSource<'a> {
    relation: &'a Relation,
    reading: &'a Reading<'a>,
    row: usize,
    side: usize,
}

impl RowSource<'_> {
    /// The row of the block that the event in this row is.
    #[inline(always)]
    fn block_row(&self) -> usize {
        let before = self.reading.events & low(self.row as u64);
        self.reading.start as usize + before.count_ones() as usize
    }

    fn is_set(&self, wire: Wire) -> bool {
        wire.read(self.reading.words) >> self.row & 1 == 1
    }
}

impl Source for RowSource<'_> {
    #[inline(always)]
    fn on(&self, topic: TopicId) -> bool {
        let is_event = self.reading.events >> self.row & 1 == 1;
        is_event && self.reading.block.topic_rows(topic) >> self.block_row() & 1 == 1
    }

    #[inline(always)]
    fn field(&self, field: u32) -> Option<Cell<'_>> {
        let (block, row) = (self.reading.block, self.block_row());
        let is_valid = |present: Rows, valid: Rows| (present & valid) >> row & 1 == 1;
        match self.relation.slots[field as usize]? {
            Slot::Bool(column) => {
                let column = block.bools(column);
                is_valid(column.present, column.valid).then_some(Cell::Bits(column.values >> row & 1))
            }
            Slot::Int(column) => {
                let column = block.ints(column);
                is_valid(column.present, column.valid).then(|| Cell::Bits(column.values[row] as u64))
            }
            Slot::Float(column) => {
                let column = block.floats(column);
                is_valid(column.present, column.valid).then(|| float_cell(column.values[row])).flatten()
            }
            Slot::String(column) => {
                let masks = block.strings(column);
                is_valid(masks.present, masks.valid).then(|| Cell::Text(block.text(column, row)))
            }
        }
    }

    #[inline(always)]
    fn truth(&self, truth: u32) -> bool {
        self.is_set(self.relation.truths[truth as usize][self.side])
    }

    fn value(&self, value: u32) -> Option<Cell<'_>> {
        match &self.relation.values[value as usize] {
            Input::Truth(sides) => {
                let [certain, possible] = sides[self.side].map(|wire| self.is_set(wire));
                (certain == possible).then_some(Cell::Bits(certain.into()))
            }
            Input::Column(value_type, sides) => {
                let (column, known) = sides[self.side];
                if !self.is_set(known) {
                    return None;
                }
                let Reading { columns, block, buffers, .. } = *self.reading;
                let (column, row) = (column as usize, self.row);
                Some(match value_type {
                    ValueType::Float => Cell::Bits(columns.floats[column][row].to_bits()),
                    ValueType::String => Cell::Text(columns.texts[column][row].bytes(block, buffers)),
                    _ => Cell::Bits(columns.ints[column][row] as u64),
                })
            }
        }
    }
}
