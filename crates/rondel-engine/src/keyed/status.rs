//! Queries about all instances between calls.

use std::cmp::Reverse;

use super::Instances;
use super::plan::Sliced;
use super::record::BITS;
use super::table::TEMPLATE;
use crate::exec::report::SliceStatus;
use crate::exec::section::TimePoints;
use crate::machine::{MachinePlan, MachineState};

impl Instances {
    /// Number of instances.
    pub(crate) fn live(&self) -> u64 {
        self.table.live().into()
    }

    /// Returns the keys of all instances.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u64]> {
        let live = (TEMPLATE + 1..self.table.used()).filter(|&number| self.table.is_live(number));
        live.map(|number| self.table.key(number))
    }

    /// Returns the numbers of events refused by the limit of instances, and by the maximum length of keys.
    pub(crate) fn refused(&self) -> [u64; 2] {
        [self.refusals.beyond_limit, self.refusals.too_long]
    }

    /// Counts a message whose array of elements is absent, null or of another type.
    pub(crate) fn count_without_elements(&mut self) {
        self.refusals.unkeyed += 1;
    }

    /// Counts a message with a parallel array of another length; `lengths` begins with that of the names.
    pub(crate) fn count_unequal(&mut self, lengths: [u64; 2]) {
        self.refusals.unequal += 1;
        self.refusals.first_unequal.get_or_insert(lengths);
    }

    /// Returns the current status.
    pub(crate) fn status<'a>(&'a self, sliced: &'a Sliced) -> SliceStatus<'a> {
        let heap = self.changes.capacity() * size_of::<Reverse<(i64, u32)>>();
        SliceStatus {
            properties: &sliced.section.properties,
            instances: self.live(),
            bytes: self.table.bytes() + heap,
            unkeyed: self.refusals.unkeyed,
            unnamed: self.refusals.unnamed,
            refused: self.refusals.beyond_limit,
            first_refused: self.refusals.first.as_deref(),
            full: self.refusals.by_bytes.then_some(self.room.limit),
            too_long: self.refusals.too_long,
            of_elements: !self.plan.elements.is_empty(),
            unequal: self.refusals.unequal,
            first_unequal: self.refusals.first_unequal,
        }
    }

    /// Returns the machines of all instances, each with its plan.
    pub(crate) fn machines<'a>(
        &'a self,
        sliced: &'a Sliced,
    ) -> impl Iterator<Item = (&'a MachinePlan, &'a MachineState)> {
        let live = (0..self.table.used()).filter(|&number| self.table.is_live(number));
        let places = sliced.section.machines.iter().zip(&self.table.layout.places.pools.machines);
        live.flat_map(move |number| {
            let record = self.table.record(number);
            let machines = &self.table.heap.pools.machines;
            places.clone().filter_map(move |(plan, &word)| Some((plan, machines.get(record[word as usize])?)))
        })
    }

    /// Adds, for every property, the number of instances whose verdict is inconclusive.
    pub(crate) fn waiting(&self, sliced: &Sliced, waiting: &mut [u64]) {
        let width = if sliced.section.time_points == TimePoints::Dense { 4 } else { 2 };
        let first = self.table.layout.places.verdicts as usize;
        for number in (TEMPLATE + 1..self.table.used()).filter(|&number| self.table.is_live(number)) {
            let record = self.table.record(number);
            let bit = |bit: usize| record[BITS + bit / 64] >> (bit % 64) & 1;
            for (i, &property) in sliced.section.properties.iter().enumerate() {
                // Neither satisfied nor violated.
                let verdict = first + width * i;
                waiting[property as usize] += u64::from(bit(verdict) == 0 && bit(verdict + 1) == 0);
            }
        }
    }

    /// Returns the premises that were not certainly true in any instance, as
    /// [`Monitor::unexercised`](crate::Monitor::unexercised) does.
    pub(crate) fn unexercised<'a>(&'a self, sliced: &'a Sliced) -> impl Iterator<Item = (u32, u32)> + 'a {
        self.unexercised.of(&sliced.section.premises)
    }

    /// Sets whether the verdict at every event is requested.
    pub(crate) fn report_every(&mut self, every: bool) {
        self.ahead.every = every;
    }

    /// Number of obligations dropped because of limits.
    pub(crate) fn given_up(&self) -> u64 {
        self.table.heap.lost()
    }

    /// Number of samples dropped because of limits.
    pub(crate) fn dropped_samples(&self) -> u64 {
        self.table.heap.dropped_samples()
    }

    /// Returns the earliest time at which time alone causes a change.
    pub(crate) fn next_change(&self) -> Option<i64> {
        self.changes.peek().map(|Reverse((due, _))| *due)
    }
}
