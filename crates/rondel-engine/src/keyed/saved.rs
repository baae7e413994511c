//! Saved form of instances.

use std::cmp::Reverse;

use rondel_event::Value;
use serde::{Deserialize, Serialize};

use crate::exec::section::Section;
use crate::ir::premise::Unexercised;
use crate::keyed::Instances;
use crate::keyed::heap::SavedHeap;
use crate::keyed::pools::Pools;
use crate::keyed::record::POSITION;
use crate::keyed::room::Refusals;
use crate::keyed::table::SavedTable;

/// Saved form of [`Instances`].
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedInstances {
    pub(super) table: SavedTable,
    pub(super) now: i64,
    pub(super) events: u64,
    pub(super) since_full_check: u64,
    pub(super) unkeyed: u64,
    pub(super) beyond_limit: u64,
    /// First key beyond the limit; empty if there was none.
    #[serde(with = "crate::ops::saved::values")]
    pub(super) first: Vec<Option<Value>>,
    /// Scheduled changes. The records have them too, but not the outdated entries, which do not affect
    /// results but do affect the deadline returned to the caller.
    pub(super) changes: Vec<(i64, u32)>,
    pub(super) unexercised: Unexercised,
}

impl SavedInstances {
    /// Joins the state outside of instances with that of another monitor of the program; both have no instances. Counts may
    /// have a common past, so that the greater ones stay. Returns false if new instances begin in different states,
    /// because messages without parameters concerned all instances of one monitor.
    pub(crate) fn join(&mut self, other: &SavedInstances) -> bool {
        self.now = self.now.max(other.now);
        self.events = self.events.max(other.events);
        self.unkeyed = self.unkeyed.max(other.unkeyed);
        self.beyond_limit = self.beyond_limit.max(other.beyond_limit);
        if self.first.is_empty() {
            self.first.clone_from(&other.first);
        }
        self.unexercised.intersect(&other.unexercised);
        self.table.heap.join_lost(&other.table.heap);
        let template = |table: &SavedTable| table.words.get(POSITION).copied();
        if template(&self.table) == Some(0) && template(&other.table) == Some(0) {
            return true;
        }
        // Monitors that share a past sweep differently from then on: that is no state of new instances.
        let state = |table: &SavedTable| {
            let SavedHeap { texts, pools, relations, pending, delayed, .. } = &table.heap;
            let pools = Pools { dropped: 0, ..pools.clone() };
            let waits = (&pending.pools, &delayed.pools);
            postcard::to_stdvec(&(&table.words, texts, pools, &relations.pools, waits)).unwrap_or_default()
        };
        state(&self.table) == state(&other.table)
    }
}

impl Instances {
    pub(crate) fn saved(&self) -> SavedInstances {
        let Refusals { unkeyed, beyond_limit, ref first, .. } = self.refusals;
        let mut changes: Vec<(i64, u32)> = self.changes.iter().map(|&Reverse(change)| change).collect();
        changes.sort_unstable();
        SavedInstances {
            table: self.table.saved(),
            now: self.now,
            events: self.events,
            since_full_check: self.since_full_check,
            unkeyed,
            beyond_limit,
            first: first.iter().flatten().cloned().map(Some).collect(),
            changes,
            unexercised: self.unexercised.clone(),
        }
    }

    /// Takes over a saved state, before the first event. Returns false if it does not fit these instances.
    pub(crate) fn restore(&mut self, section: &Section, saved: SavedInstances) -> bool {
        let SavedInstances {
            table,
            now,
            events,
            since_full_check,
            unkeyed,
            beyond_limit,
            first,
            changes,
            unexercised,
        } = saved;
        if !self.table.restore(section, table) {
            return false;
        }
        (self.now, self.events, self.since_full_check) = (now, events, since_full_check);
        let first: Vec<Value> = first.into_iter().flatten().collect();
        let fits = first.is_empty() || first.len() == self.plan.keys.types.len();
        let first = Some(first).filter(|first| !first.is_empty());
        self.refusals = Refusals { unkeyed, beyond_limit, first, ..Refusals::default() };
        let fits = fits && changes.iter().all(|&(_, number)| number < self.table.used());
        self.changes = changes.into_iter().map(Reverse).collect();
        fits && self.unexercised.restore(unexercised, section.premises.len())
    }
}
