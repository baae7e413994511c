//! Quantified formulas evaluated by value: one instance of the formula inside the quantifiers per combination
//! of values, as for a property with `for each`.
//!
//! [`translate::by_value`](crate::lower::translate) shows why the result equals that of the relations.

use std::sync::Arc;

use rondel_event::{Block, Rows, Slot, TopicId, ValueType};
use rondel_spec::TimeModel;

use crate::exec::inner::{Inner, InnerPlan};
use crate::exec::section::Section;
use crate::ir::node::FieldId;
use crate::ir::wire::Wire;
use crate::keyed::keys::{KeyPlan, for_each};
use crate::keyed::plan::{SlicePlan, Sliced};
use crate::keyed::saved::SavedInstances;
use crate::keyed::{Events, Instances, PointBatch};
use crate::ops::rows::RowView;
use crate::ops::words::{gather, low, spread};

/// Times are doubled in dense time, and steps serve as times here.
const FARTHEST: u64 = (i64::MAX / 2 - 1) as u64;

/// Formula that is evaluated by value, under translation: wires and fields are those of the graph.
#[derive(Clone, Debug)]
pub(crate) struct ByValueSource {
    /// Section whose only formula is the one inside the quantifiers.
    pub(crate) section: Arc<Section>,
    /// Types of the values.
    pub(crate) types: Vec<ValueType>,
    /// Topics whose messages carry the values.
    pub(crate) topics: Vec<TopicId>,
    /// Fields of the values, for each topic in turn.
    pub(crate) fields: Box<[FieldId]>,
    /// Inputs of the section: truths without variables.
    pub(crate) inputs: Vec<Wire>,
    /// Whether the formula must hold for some value, or must fail.
    pub(crate) positive: bool,
    pub(crate) model: TimeModel,
}

impl ByValueSource {
    /// Replaces wires and fields by the registers and columns that they are assigned to.
    pub(crate) fn placed(
        self,
        wire: impl Fn(Wire) -> Wire,
        slot: impl Fn(FieldId) -> Option<Slot>,
    ) -> ByValue {
        let ByValueSource { section, types, topics, fields, inputs, positive, model } = self;
        let slots: Vec<Slot> = fields.iter().filter_map(|&field| slot(field)).collect();
        let each = slots.chunks(types.len().max(1)).map(<[Slot]>::to_vec);
        let keys = KeyPlan { topics: topics.into_iter().zip(each).collect(), types };
        let plan = Arc::new(SlicePlan {
            keys,
            shared: Vec::new(),
            events: Vec::new(),
            limit: u64::MAX,
            elements: Vec::new(),
        });
        let inputs = inputs.into_iter().map(wire).collect();
        ByValue { sliced: Sliced { section, plan }, inputs, positive, model }
    }
}

/// Formula that is evaluated by value.
#[derive(Clone, Debug)]
pub(crate) struct ByValue {
    sliced: Sliced,
    inputs: Vec<Wire>,
    positive: bool,
    model: TimeModel,
}

impl InnerPlan for ByValue {
    fn start(&self, no_event: &Block) -> Box<dyn Inner> {
        Box::new(Divided {
            instances: Instances::new(&self.sliced, no_event),
            inputs: vec![0; self.inputs.len()],
            times: [0; _],
            by_value: self.clone(),
        })
    }

    fn bytes(&self) -> usize {
        self.sliced.memory().bytes
    }
}

/// Instances of a formula that is evaluated by value.
#[derive(Clone, Debug)]
pub(crate) struct Divided {
    instances: Instances,
    /// Inputs by row of a block.
    inputs: Vec<Rows>,
    times: [i64; Block::CAPACITY],
    by_value: ByValue,
}

impl Inner for Divided {
    fn saved(&self) -> Vec<u8> {
        // Plain data always serialises.
        postcard::to_stdvec(&self.instances.saved()).unwrap_or_default()
    }

    fn restore(&mut self, saved: &[u8]) -> bool {
        let saved = postcard::from_bytes::<SavedInstances>(saved);
        saved.is_ok_and(|saved| self.instances.restore(&self.by_value.sliced.section, saved))
    }

    fn kept(&self) -> usize {
        usize::try_from(self.instances.live()).unwrap_or(usize::MAX)
    }

    fn copy(&self) -> Box<dyn Inner> {
        Box::new(self.clone())
    }

    /// Returns the lower and upper truth: the formula holds certainly where the value of the message makes it
    /// hold, since no other value can.
    fn step(&mut self, view: RowView<'_>, words: &[Rows]) -> [Rows; 2] {
        let RowView { block, start, events, len, position, row_times, .. } = view;
        let events = events & low(len.into());
        if events == 0 {
            return [0, 0];
        }
        let Divided { instances, inputs, times, by_value } = self;
        for (input, wire) in inputs.iter_mut().zip(&by_value.inputs) {
            *input = gather(wire.read(words), events) << start;
        }
        if by_value.sliced.section.reads_time {
            let mut row = start as usize;
            for_each(events, |point| {
                times[row] = match by_value.model {
                    TimeModel::Steps => position.saturating_add(point as u64).min(FARTHEST) as i64,
                    TimeModel::Points | TimeModel::Dense => row_times.times.get(point).copied().unwrap_or(0),
                };
                row += 1;
            });
        }
        let (mut holds, mut fails) = (0, 0);
        let mut emit = |point: &PointBatch<'_>| {
            for outcome in point.outcomes {
                holds |= outcome.satisfied & point.rows;
                fails |= outcome.violated & point.rows;
            }
        };
        let rows = low(events.count_ones().into()) << start;
        let events_of_block = Events { block, times, rows, inputs };
        let keyed = instances.step(&by_value.sliced, events_of_block, &mut emit);
        let (certain, never) = if by_value.positive { (holds, fails) } else { (fails, holds) };
        // A value that exceeded the limit has an unknown truth.
        [certain, keyed & !never].map(|word| spread(word >> start, events))
    }
}
