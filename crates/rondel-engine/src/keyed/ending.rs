//! End of instances: at a condition, or with the trace.

use std::cmp::Reverse;

use rondel_event::{Block, Rows};

use crate::exec::report::Outcome;
use crate::exec::section::{Section, TimePoints};
use crate::keyed::keys::for_each;
use crate::keyed::plan::Sliced;
use crate::keyed::record::{BITS, UNPLANNED};
use crate::keyed::table::TEMPLATE;
use crate::keyed::{Emit, Instances, PointOrigin, lowest};

/// Machine that was in no final state when its instance ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unfinished {
    /// Row of the instance.
    pub(crate) row: usize,
    /// Property of the machine.
    pub(crate) property: u32,
    /// Whether its verdict was inconclusive already.
    pub(crate) was_open: bool,
}

impl Instances {
    /// Returns the rows whose instance ends at its time point.
    pub(super) fn ended(&self, sliced: &Sliced, rows: Rows) -> Rows {
        let mut ended = 0;
        if sliced.ends()
            && let Some(until) = sliced.section.formulas.last()
        {
            let words = &self.registers.words;
            ended = until.at.certain.read(words) & rows;
            if sliced.section.time_points == TimePoints::Dense {
                ended |= until.after.certain.read(words) & rows;
            }
            for_each(ended, |row| {
                if self.gathered.instances[row] == TEMPLATE {
                    ended &= !(1 << row);
                }
            });
        }
        ended
    }

    /// Records the machines of the instance in a row that are in no final state, except violated ones, which
    /// stay violated.
    pub(super) fn note_unfinished(&mut self, section: &Section, row: usize) {
        let Instances { table, gathered, unfinished, .. } = self;
        let record = table.record(gathered.instances[row]);
        let places = &table.layout.places;
        let width = if section.time_points == TimePoints::Dense { 4 } else { 2 };
        let bit = |bit: usize| record[BITS + bit / 64] >> (bit % 64) & 1;
        let last = |property: u32| {
            let i = section.all_properties().position(|other| other == property)?;
            let first = places.verdicts as usize + width * i;
            Some([bit(first), bit(first + 1)])
        };
        for (plan, &word) in section.machines.iter().zip(&places.pools.machines) {
            let state = table.heap.pools.machines.get(record[word as usize]);
            if let Some(property) = plan.property
                && state.is_some_and(|state| plan.is_open(state))
                && let Some(last) = last(property)
                && last != [0, 1]
            {
                unfinished.push(Unfinished { row, property, was_open: last == [0, 0] });
            }
        }
    }

    /// Evaluates at the time of the last event the instances that change there by themselves, as a property without
    /// instances is evaluated at that event. At a later time that the monitor has only reached, neither is.
    pub(crate) fn reach(&mut self, sliced: &Sliced, time: i64, emit: Emit<'_>) {
        // A verdict or robustness that lapses at the very end of the trace is not reported for properties without instances,
        // either.
        let has_robustness = sliced.section.robust.iter().any(Option::is_some);
        if sliced.section.time_points != TimePoints::Dense || has_robustness {
            return;
        }
        while self.next_change().is_some_and(|due| due <= time) {
            let mut count = 0;
            while count < Block::CAPACITY
                && let Some(&Reverse((due, number))) = self.changes.peek()
                && due <= time
            {
                self.changes.pop();
                if self.table.is_live(number) && self.table.planned(number) == due {
                    self.table.set_planned(number, UNPLANNED);
                    // The span after its last time point does not begin, as further events may have the same time.
                    if self.table.time(number) != due && self.table.is_time_point(number, due) {
                        self.gathered.instances[count] = number;
                        self.times[count] = due;
                        count += 1;
                    }
                }
            }
            let rows = lowest(Rows::MAX, count as u64);
            self.run(sliced, PointOrigin::Time, None, rows);
            self.conclude(sliced, rows, PointOrigin::Time, emit);
        }
    }

    /// Ends the trace at a time and emits the verdicts that are still open.
    pub(crate) fn finish(&mut self, sliced: &Sliced, time: i64, emit: Emit<'_>) {
        let section = &sliced.section;
        if !section.looks_ahead() && !section.has_obligations() {
            return;
        }
        self.outcomes.fill(Outcome::default());
        self.margins.iter_mut().for_each(|margin| margin.moved = 0);
        self.times.fill(time);
        let mut next = TEMPLATE + 1;
        while next < self.table.used() {
            let mut row = 0;
            while row < Block::CAPACITY && next < self.table.used() {
                if self.table.is_live(next) {
                    self.gathered.instances[row] = next;
                    self.ahead.end(section, &mut self.table, row, next, time);
                    self.note_unfinished(section, row);
                    row += 1;
                }
                next += 1;
            }
            self.emit(lowest(Rows::MAX, row as u64), PointOrigin::Time, 0, emit);
        }
    }
}
