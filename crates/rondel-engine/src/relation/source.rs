//! Inputs of a relation: message fields from the block, truths and values without variables from registers.

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

/// Closed quantified formula, under translation: wires and nodes are those of the graph.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Relation {
    pub(crate) plan: RelationPlan,
    /// Formula in the specification.
    pub(crate) node: ExprId,
    pub(crate) model: TimeModel,
    /// Wires of every truth of the plan, at a row and after it.
    pub(crate) truths: Vec<[Wire; 2]>,
    pub(crate) values: Vec<Input>,
    /// Fields of the graph for the fields of the plan.
    pub(crate) fields: Box<[FieldId]>,
    /// Their columns in a block.
    pub(crate) slots: Vec<Option<Slot>>,
}

/// Value without variables, at a row and after it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Input {
    /// Lower and upper truth.
    Truth([[Wire; 2]; 2]),
    /// Column of a type, and the rows where it is known.
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

    /// Returns the truth at the rows, and on the open intervals after them.
    #[inline(never)]
    pub(crate) fn step(
        &self,
        state: &mut RelationState,
        reading: &Reading<'_>,
        len: u32,
        position: u64,
        times: RowTimes<'_>,
    ) -> TruthHalves {
        let mut out = TruthHalves::default();
        if let Some(obligations) = state.obligations_mut() {
            obligations.begin();
        }
        for row in 0..len as usize {
            let (position, time) =
                (position.saturating_add(row as u64), times.times.get(row).copied().unwrap_or(0));
            let [at, after] = self.evaluate(state, reading, row, position, time);
            out.at |= Rows::from(at) << row;
            out.after |= Rows::from(after) << row;
        }
        out
    }

    /// Evaluates one row as the next time point of this state; `position` is its event number.
    #[inline(always)]
    pub(crate) fn row(
        &self,
        state: &mut RelationState,
        reading: &Reading<'_>,
        row: usize,
        position: u64,
        time: i64,
    ) -> [bool; 2] {
        if let Some(obligations) = state.obligations_mut() {
            obligations.begin();
        }
        self.evaluate(state, reading, row, position, time)
    }

    #[inline(always)]
    fn evaluate(
        &self,
        state: &mut RelationState,
        reading: &Reading<'_>,
        row: usize,
        position: u64,
        time: i64,
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
            let (at, after) = state.dense_point(&self.plan, now, &source(0), &source(1));
            return [at, after];
        }
        [state.time_point(&self.plan, self.model, now, &source(0)), false]
    }
}

/// Registers, and the rows that they describe.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) words: &'a [Rows],
    pub(crate) columns: &'a Columns,
    pub(crate) block: &'a Block,
    /// Row in the block of the first event.
    pub(crate) start: u32,
    /// Rows that are events.
    pub(crate) events: Rows,
    pub(crate) buffers: &'a [Vec<u8>],
}

/// Row, or the open interval after it.
struct RowSource<'a> {
    relation: &'a Relation,
    reading: &'a Reading<'a>,
    row: usize,
    side: usize,
}

impl RowSource<'_> {
    /// Returns the row in the block of the event in this row.
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
