//! Machines of instances that move on by themselves: how often they may between two messages.

use std::collections::HashMap;

use super::Instances;
use crate::exec::section::Section;
use crate::machine::leap::{self, Request};

/// So many moments all instances together may bring, but each [`FEWEST`].
const ALL: u64 = 100 * leap::LIMIT as u64;

/// So many moments an instance may bring in any case.
const FEWEST: u64 = 100;

/// The moments that instances bring by themselves while a time passes.
pub(super) struct KeyedByItself {
    limit: u32,
    all: u32,
    of: HashMap<u32, u32>,
    /// The instances whose machines are to leap at their next moment.
    pub(super) asked: Vec<u32>,
}

impl KeyedByItself {
    /// None so far, of so many instances.
    pub(super) fn new(live: u64) -> KeyedByItself {
        let limit = (ALL / live.max(1)).clamp(FEWEST, leap::LIMIT.into());
        KeyedByItself { limit: limit as u32, all: 0, of: HashMap::new(), asked: Vec::new() }
    }

    /// Counts a moment of an instance; whether it brings too many.
    pub(super) fn is_too_often(&mut self, number: u32) -> bool {
        // As long as there are few of all, nobody has many.
        self.all = self.all.saturating_add(1);
        if self.all < self.limit {
            return false;
        }
        let count = self.of.entry(number).or_insert(0);
        *count = count.saturating_add(1);
        *count >= self.limit
    }

    /// Whether it has been asked to leap so often that it does not.
    fn is_last(&self, number: u32, machines: usize) -> bool {
        self.of.get(&number).is_some_and(|count| (count / self.limit) as usize > machines)
    }
}

impl Instances {
    /// Asks the machines of an instance to leap that bring the moment at `due`, up to `until`.
    pub(super) fn ask_to_leap(
        &mut self,
        section: &Section,
        (number, by_itself): (u32, &KeyedByItself),
        (due, until): (i64, i64),
    ) {
        let time = self.table.time(number);
        let is_last = by_itself.is_last(number, section.machines.len());
        for (k, plan) in section.machines.iter().enumerate() {
            let reference = self.table.record(number)[self.table.layout.places.pools.machines[k] as usize];
            if let Some(state) = self.table.sides.pools.machines.get_mut(reference)
                && plan.may_leap()
                && !state.is_unknown()
                && state.next_change(plan, time) == Some(due)
            {
                state.request = Some(Request { until, is_quiet: false, is_last });
            }
        }
    }

    /// How often machines of these instances were not followed.
    pub(super) fn leaps_of(&self, instances: &[u32]) -> u64 {
        let words = &self.table.layout.places.pools.machines;
        let of = |number: &u32| {
            let record = self.table.record(*number);
            words.iter().filter_map(|word| self.table.sides.pools.machines.get(record[*word as usize]))
        };
        instances.iter().flat_map(of).map(|state| state.leaps).fold(0, u64::saturating_add)
    }

    /// How often machines were not followed.
    pub(crate) fn leaps(&self) -> u64 {
        self.leaps
    }
}
