//! How much a monitor remembers.

use rondel_event::Value;

use crate::exec::section::{Deadline, Section, TimePoints};
use crate::exec::state::State;
use crate::ir::instruction::Instruction;
use crate::machine::{MachinePlan, MachineState};
use crate::ops::once::{Recently, TimedRecently};

/// What is kept for properties that are evaluated together, from one event to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The properties, by their positions.
    pub properties: Vec<u32>,
    /// Whether they are divided by key; then the rest is said of one instance.
    pub by_key: bool,
    /// How many bytes are there in any case.
    pub bytes: usize,
    /// How many texts there are beside, keys included.
    pub texts: usize,
    /// How many queues there are beside: they have something in them while it counts.
    pub queues: usize,
    /// How many formulas with quantifiers there are beside: each keeps tables of the values that count.
    pub quantified: usize,
    /// How many bytes there are beside for each value, where formulas with quantifiers are evaluated by value.
    pub by_value: usize,
    /// Whether something can change between two events, as a time runs out.
    pub changes_alone: bool,
}

impl Section {
    /// What a monitor keeps of it.
    pub(crate) fn memory(&self) -> Memory {
        let State { bits, recently, timed_recently, machines, values, .. } = &self.initial;
        let pairs = values.held_ints.len()
            + values.held_floats.len()
            + values.latched_ints.len()
            + values.latched_floats.len();
        let words = bits.len() + values.known_texts.len() + values.sampled.len() + 2 * pairs;
        let bytes = words * size_of::<u64>()
            + recently.len() * size_of::<Recently>()
            + timed_recently.len() * size_of::<TimedRecently>()
            + machines.iter().map(of_machine).sum::<usize>();
        // A scout remembers the same fields once more.
        let scout = self.scout.as_ref().map_or(0, |scout| scout.memory().bytes);
        let linear = self.linear.as_ref().map_or(0, |plan| plan.bytes());
        Memory { bytes: bytes + scout + linear, ..self.memory_beside() }
    }

    /// The same without the bytes that are there in any case.
    pub(crate) fn memory_beside(&self) -> Memory {
        let State { delays, timed_since, ranges, relations, values, .. } = &self.initial;
        let robust = values.robust_since.len() + values.robust_dense.len() + values.robust_once.len();
        let texts = self.keeps_text.iter().map(|instruction| match instruction {
            Instruction::LatchText { .. } => 2,
            _ => 1,
        });
        let by_time = self.properties_ahead().any(|(_, time)| time != rondel_spec::TimeModel::Steps);
        let is_alone = |deadline: &Deadline| {
            let timed = |plan: &MachinePlan| {
                plan.leaving.iter().flatten().any(|transition| transition.after.is_some())
            };
            self.time_points == TimePoints::Dense
                && match deadline {
                    Deadline::Machine(machine) => self.machines.get(*machine as usize).is_some_and(timed),
                    _ => true,
                }
        };
        Memory {
            properties: self.all_properties().collect(),
            by_key: false,
            bytes: 0,
            texts: texts.sum(),
            queues: delays.len()
                + timed_since.len()
                + values.windows.len()
                + ranges.len()
                + robust
                + self.properties_ahead().count()
                + usize::from(self.linear.is_some()),
            quantified: relations.len(),
            by_value: self.inner.iter().map(|plan| plan.bytes()).sum(),
            changes_alone: self.deadlines.iter().any(is_alone) || !ranges.is_empty() || by_time,
        }
    }
}

/// What a machine takes, in bytes.
pub(crate) fn of_machine(machine: &MachineState) -> usize {
    size_of::<MachineState>() + machine.place.variables.len() * size_of::<Option<Value>>()
}
