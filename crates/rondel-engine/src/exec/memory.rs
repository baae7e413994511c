//! Memory demand of a monitor.

use rondel_event::Value;

use crate::exec::section::{Deadline, Section, TimePoints};
use crate::exec::state::State;
use crate::ir::instruction::Instruction;
use crate::machine::{MachinePlan, MachineState};
use crate::ops::once::{Recently, TimedRecently};

/// Memory that properties of one section keep between events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Indexes of the properties.
    pub properties: Vec<u32>,
    /// Whether they have parameters; the other fields then refer to one instance.
    pub by_key: bool,
    /// Fixed size, in bytes.
    pub bytes: usize,
    /// Number of texts in addition, including parameters.
    pub texts: usize,
    /// Number of queues in addition, of variable size.
    pub queues: usize,
    /// Number of quantified formulas in addition, each with tables of tuples.
    pub quantified: usize,
    /// Bytes in addition per value, of quantified formulas that are evaluated by value.
    pub by_value: usize,
    /// Whether a verdict can change between events, when a bound expires.
    pub changes_alone: bool,
}

impl Section {
    /// The memory of this section in a monitor.
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
        // The eager section keeps the same fields a second time.
        let eager = self.eager.as_ref().map_or(0, |eager| eager.memory().bytes);
        let linear = self.linear.as_ref().map_or(0, |plan| plan.bytes());
        Memory { bytes: bytes + eager + linear, ..self.memory_beside() }
    }

    /// The memory except its fixed size.
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
            changes_alone: self.changes.deadlines.iter().any(is_alone) || !ranges.is_empty() || by_time,
        }
    }
}

/// Size of a machine's state, in bytes.
pub(crate) fn of_machine(machine: &MachineState) -> usize {
    size_of::<MachineState>() + machine.place.variables.len() * size_of::<Option<Value>>()
}
