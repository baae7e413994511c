//! Instances that are divided by shards among portions, and united again. Every portion receives all events, so that it
//! knows the template and sweeps at the same events.

use std::cmp::Reverse;
use std::fmt;

use rondel_event::{Block, Rows};

use crate::exec::section::{Section, TimePoints};
use crate::keyed::keys::for_each;
use crate::keyed::plan::Sliced;
use crate::keyed::room::{DEFAULT_LIMIT, MAX_LIMIT};
use crate::keyed::shards::{self, Shards};
use crate::keyed::table::TEMPLATE;
use crate::keyed::{Emit, Events, Instances};

/// Reason why one worker evaluates all instances of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WholeReason {
    /// The parameter ranges over the elements of messages.
    Elements,
    /// It has a limit of instances.
    Limit,
    /// The order of verdicts at one message is not that of the properties.
    Order,
}

impl fmt::Display for WholeReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WholeReason::Elements => "a message has elements of several",
            WholeReason::Limit => "`@limit` counts them together",
            WholeReason::Order => "the order of verdicts at one message depends on all of them",
        })
    }
}

impl Sliced {
    /// Why all instances must be evaluated together.
    pub(crate) fn undivided(&self) -> Option<WholeReason> {
        let Sliced { section, plan } = self;
        if !plan.elements.is_empty() {
            return Some(WholeReason::Elements);
        }
        if plan.limit < DEFAULT_LIMIT {
            return Some(WholeReason::Limit);
        }
        // Reports of a section in steps or points are in its own order if they are not sorted for another reason: that of
        // its properties, and machines that end unfinished last.
        let is_sorted = section.properties.is_sorted() && (section.machines.is_empty() || !self.ends());
        (section.time_points == TimePoints::Events && !is_sorted).then_some(WholeReason::Order)
    }
}

impl Instances {
    /// Returns the number of instances that may begin before a limit is reached, of their number or their memory.
    pub(crate) fn left(&self) -> u64 {
        self.plan.limit.min(MAX_LIMIT).saturating_sub(self.live()).min(self.left_in_memory())
    }

    /// Returns a copy of the instances of some shards.
    pub(crate) fn part(&self, sliced: &Sliced, no_event: &Block, shards: Shards) -> Instances {
        let mut part = Instances::new(sliced, no_event);
        part.shards = shards;
        part.unite(self, &sliced.section, shards, true);
        part
    }

    /// Returns instances that have not begun, with what is in no part of these: the counts of what was dropped.
    pub(crate) fn emptied(&self, sliced: &Sliced, no_event: &Block) -> Instances {
        let mut empty = Instances::new(sliced, no_event);
        empty.room = self.room;
        empty.table.heap.add_lost(&self.table.heap);
        empty
    }

    /// Adds copies of the instances of some shards of others. With the first ones comes the state that all parts have in
    /// common.
    pub(crate) fn unite(&mut self, other: &Instances, section: &Section, shards: Shards, is_first: bool) {
        if is_first {
            self.table.copy_template(&other.table, section);
            self.ahead.every = other.ahead.every;
            (self.now, self.events, self.since_full_check) =
                (other.now, other.events, other.since_full_check);
            self.refusals = other.refusals.clone();
            self.leaps = other.leaps;
            self.unexercised = other.unexercised.clone();
        } else {
            self.unexercised.intersect(&other.unexercised);
        }
        self.table.copy_shards(&other.table, shards);
        let is_meant = |number: u32| {
            if number == TEMPLATE { is_first } else { shards.has(shards::place(number).0) }
        };
        let changes = other.changes.iter().copied();
        self.changes.extend(changes.filter(|&Reverse((_, number))| is_meant(number)));
    }

    /// Makes a part the whole, to which the other parts are added; `empty` is what was left of the whole.
    pub(crate) fn follow(&mut self, empty: &Instances) {
        self.shards = Shards::ALL;
        self.room = empty.room;
        self.add_lost(empty);
    }

    /// Adds the counts of what a part has dropped since it was made.
    pub(crate) fn add_lost(&mut self, part: &Instances) {
        self.table.heap.add_lost(&part.table.heap);
    }

    /// Processes the events of a block as [`Instances::step`] does, those with keys of other shards without an effect on
    /// instances.
    pub(crate) fn step_part(&mut self, sliced: &Sliced, events: Events<'_>, emit: Emit<'_>) {
        self.process::<false>(sliced, events, emit);
    }

    /// Returns the rows of these whose keys are in the shards.
    pub(super) fn own(&self, keyed: Rows) -> Rows {
        let mut own = 0;
        for_each(keyed, |row| {
            own |= Rows::from(self.shards.has(shards::of_tag(self.keys.tags[row]))) << row;
        });
        own
    }

    /// Processes events with keys, of which only `own` concern instances: all rows, or the first ones. Returns the
    /// processed rows.
    pub(super) fn divide_own(
        &mut self,
        sliced: &Sliced,
        events: Events<'_>,
        rows: Rows,
        own: Rows,
        emit: Emit<'_>,
    ) -> Rows {
        let own = rows & own;
        if own == 0 {
            return rows;
        }
        // Changes by time alone before the first event come first.
        self.advance(sliced, events.times[own.trailing_zeros() as usize], events.times, emit);
        let left = own & !self.divide(sliced, events, own, emit);
        if left == 0 { rows } else { rows & (left & left.wrapping_neg()).wrapping_sub(1) }
    }
}
