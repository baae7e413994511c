//! Limit on the steps that machines of instances take by time alone between two messages.

use std::collections::HashMap;

use super::Instances;
use crate::exec::section::Section;
use crate::machine::leap::{self, Request};

/// Maximum number of such steps of all instances together; each may take [`FEWEST`].
const ALL: u64 = 100 * leap::LIMIT as u64;

/// Number of steps that every instance may take.
const FEWEST: u64 = 100;

/// Counts of the time points that instances cause by themselves while time passes.
pub(super) struct KeyedByItself {
    limit: u32,
    all: u32,
    of: HashMap<u32, u32>,
    /// Instances whose machines skip steps at their next time point.
    pub(super) requested: Vec<u32>,
}

impl KeyedByItself {
    /// Creates the counts for that many live instances.
    pub(super) fn new(live: u64) -> KeyedByItself {
        let limit = (ALL / live.max(1)).clamp(FEWEST, leap::LIMIT.into());
        KeyedByItself { limit: limit as u32, all: 0, of: HashMap::new(), requested: Vec::new() }
    }

    /// Counts a time point of an instance. Returns whether the instance has reached its limit.
    pub(super) fn is_too_often(&mut self, number: u32) -> bool {
        // While the total is below the limit, so is every instance.
        self.all = self.all.saturating_add(1);
        if self.all < self.limit {
            return false;
        }
        let count = self.of.entry(number).or_insert(0);
        *count = count.saturating_add(1);
        *count >= self.limit
    }

    /// Whether requests to skip have failed so often that the machine is to give up.
    fn is_last(&self, number: u32, machines: usize) -> bool {
        self.of.get(&number).is_some_and(|count| (count / self.limit) as usize > machines)
    }
}

impl Instances {
    /// Requests the machines of an instance that cause the time point at `due` to skip steps up to `until`.
    pub(super) fn request_leap(
        &mut self,
        section: &Section,
        number: u32,
        by_itself: &KeyedByItself,
        due: i64,
        until: i64,
    ) {
        let time = self.table.time(number);
        let is_last = by_itself.is_last(number, section.machines.len());
        for (k, plan) in section.machines.iter().enumerate() {
            let reference = self.table.record(number)[self.table.layout.places.pools.machines[k] as usize];
            if let Some(state) = self.table.heap.pools.machines.get_mut(reference)
                && plan.may_leap()
                && !state.is_unknown()
                && state.next_change(plan, time) == Some(due)
            {
                state.request = Some(Request { until, is_quiet: false, is_last });
            }
        }
    }

    /// Returns how often machines of these instances skipped steps.
    pub(super) fn leaps_of(&self, instances: &[u32]) -> u64 {
        let words = &self.table.layout.places.pools.machines;
        let of = |number: &u32| {
            let record = self.table.record(*number);
            words.iter().filter_map(|word| self.table.heap.pools.machines.get(record[*word as usize]))
        };
        instances.iter().flat_map(of).map(|state| state.leaps).fold(0, u64::saturating_add)
    }

    /// Number of times that a machine skipped steps.
    pub(crate) fn leaps(&self) -> u64 {
        self.leaps
    }
}
