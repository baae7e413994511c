//! How instances end: at a condition, or with the trace.

use std::cmp::Reverse;

use rondel_event::{Block, Rows};

use crate::exec::report::Outcome;
use crate::exec::section::{Section, TimePoints};
use crate::keyed::keys::for_each;
use crate::keyed::plan::Sliced;
use crate::keyed::record::{BITS, UNPLANNED};
use crate::keyed::table::TEMPLATE;
use crate::keyed::{Instances, MomentOwner, Tell, lowest};

/// A machine that was in no final state when its instance ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unfinished {
    /// The row of the instance.
    pub(crate) row: usize,
    /// The property of the machine.
    pub(crate) property: u32,
    /// Whether it was inconclusive already.
    pub(crate) was_open: bool,
}

impl Instances {
    /// The rows whose instance ends with its moment.
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
                if self.lanes.instances[row] == TEMPLATE {
                    ended &= !(1 << row);
                }
            });
        }
        ended
    }

    /// Notes which machines of the instance in a row are in no final state. What is violated stays so.
    pub(super) fn note_unfinished(&mut self, section: &Section, row: usize) {
        let Instances { table, lanes, unfinished, .. } = self;
        let record = table.record(lanes.instances[row]);
        let places = &table.layout.places;
        let sides = if section.time_points == TimePoints::Dense { 4 } else { 2 };
        let bit = |bit: usize| record[BITS + bit / 64] >> (bit % 64) & 1;
        let last = |property: u32| {
            let i = section.all_properties().position(|other| other == property)?;
            let first = places.verdicts as usize + sides * i;
            Some([bit(first), bit(first + 1)])
        };
        for (plan, &word) in section.machines.iter().zip(&places.pools.machines) {
            let state = table.sides.pools.machines.get(record[word as usize]);
            if let Some(property) = plan.property
                && state.is_some_and(|state| plan.is_open(state))
                && let Some(last) = last(property)
                && last != [0, 1]
            {
                unfinished.push(Unfinished { row, property, was_open: last == [0, 0] });
            }
        }
    }

    /// Evaluates at the last time of a trace the instances that change there by themselves, as a property without
    /// instances is evaluated at the last event.
    pub(crate) fn reach(&mut self, sliced: &Sliced, time: i64, tell: Tell<'_>) {
        // A robustness that lapses at the very end of the trace is not reported for properties without instances, either.
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
                    // The span after its last moment does not begin, as further events may have the same time.
                    if self.table.time(number) != due && self.table.is_moment(number, due) {
                        self.lanes.instances[count] = number;
                        self.times[count] = due;
                        count += 1;
                    }
                }
            }
            let rows = lowest(Rows::MAX, count as u64);
            self.run(sliced, MomentOwner::Time, None, rows);
            self.conclude(sliced, rows, MomentOwner::Time, tell);
        }
    }

    /// The trace is over at this time: tells what is still open.
    pub(crate) fn finish(&mut self, sliced: &Sliced, time: i64, tell: Tell<'_>) {
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
                    self.lanes.instances[row] = next;
                    self.ahead.end(section, &mut self.table, (row, next), time);
                    self.note_unfinished(section, row);
                    row += 1;
                }
                next += 1;
            }
            self.tell(lowest(Rows::MAX, row as u64), MomentOwner::Time, 0, tell);
        }
    }
}
