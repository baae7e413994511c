//! What is asked of all instances between calls.

use std::cmp::Reverse;

use super::Instances;
use super::plan::Sliced;
use super::record::BITS;
use super::table::TEMPLATE;
use crate::exec::report::SliceStatus;
use crate::exec::section::TimePoints;
use crate::machine::{MachinePlan, MachineState};

impl Instances {
    /// How many there are.
    pub(crate) fn live(&self) -> u64 {
        self.table.live().into()
    }

    /// The keys of all instances.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u64]> {
        let live = (TEMPLATE + 1..self.table.used()).filter(|&number| self.table.is_live(number));
        live.map(|number| self.table.key(number))
    }

    /// How many events were left out because there were as many instances as allowed, or their key was too long.
    pub(crate) fn refused(&self) -> [u64; 2] {
        [self.refusals.beyond_limit, self.refusals.too_long]
    }

    /// Counts a message whose array of elements is absent, null or of another type.
    pub(crate) fn count_without_elements(&mut self) {
        self.refusals.unkeyed += 1;
    }

    /// Counts a message with a parallel array of another length; both lengths are given, that of the names first.
    pub(crate) fn count_unequal(&mut self, lengths: [u64; 2]) {
        self.refusals.unequal += 1;
        self.refusals.first_unequal.get_or_insert(lengths);
    }

    /// How it is at the moment.
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

    /// The machines of all instances, each with its plan.
    pub(crate) fn machines<'a>(
        &'a self,
        sliced: &'a Sliced,
    ) -> impl Iterator<Item = (&'a MachinePlan, &'a MachineState)> {
        let live = (0..self.table.used()).filter(|&number| self.table.is_live(number));
        let places = sliced.section.machines.iter().zip(&self.table.layout.places.pools.machines);
        live.flat_map(move |number| {
            let record = self.table.record(number);
            let machines = &self.table.sides.pools.machines;
            places.clone().filter_map(move |(plan, &word)| Some((plan, machines.get(record[word as usize])?)))
        })
    }

    /// Adds for every property how many instances are inconclusive.
    pub(crate) fn waiting(&self, sliced: &Sliced, waiting: &mut [u64]) {
        let sides = if sliced.section.time_points == TimePoints::Dense { 4 } else { 2 };
        let first = self.table.layout.places.verdicts as usize;
        for number in (TEMPLATE + 1..self.table.used()).filter(|&number| self.table.is_live(number)) {
            let record = self.table.record(number);
            let bit = |bit: usize| record[BITS + bit / 64] >> (bit % 64) & 1;
            for (i, &property) in sliced.section.properties.iter().enumerate() {
                // Neither satisfied nor violated.
                let verdict = first + sides * i;
                waiting[property as usize] += u64::from(bit(verdict) == 0 && bit(verdict + 1) == 0);
            }
        }
    }

    /// The premises that were not certainly true in any instance, as [`Monitor::unexercised`](crate::Monitor::unexercised).
    pub(crate) fn untried<'a>(&'a self, sliced: &'a Sliced) -> impl Iterator<Item = (u32, u32)> + 'a {
        self.untried.of(&sliced.section.premises)
    }

    /// Whether the verdicts at all events are asked for.
    pub(crate) fn report_every(&mut self, every: bool) {
        self.ahead.every = every;
    }

    /// How many verdicts were given up because too many were waited for.
    pub(crate) fn given_up(&self) -> u64 {
        self.table.sides.lost()
    }

    /// How many samples there was no room for.
    pub(crate) fn dropped_samples(&self) -> u64 {
        self.table.sides.dropped_samples()
    }

    /// When time will bring something by itself at the earliest.
    pub(crate) fn next_change(&self) -> Option<i64> {
        self.changes.peek().map(|Reverse((due, _))| *due)
    }
}
