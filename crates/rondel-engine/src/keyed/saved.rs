//! Instances as they go into a snapshot.

use std::cmp::Reverse;

use rondel_event::Value;
use serde::{Deserialize, Serialize};

use crate::exec::section::Section;
use crate::ir::premise::Unexercised;
use crate::keyed::Instances;
use crate::keyed::room::Refusals;
use crate::keyed::table::SavedTable;

/// What of [`Instances`] goes into a snapshot.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedInstances {
    pub(super) table: SavedTable,
    pub(super) now: i64,
    pub(super) events: u64,
    pub(super) next_look: u32,
    pub(super) since_full_look: u64,
    pub(super) begun: u32,
    pub(super) unkeyed: u64,
    pub(super) beyond_limit: u64,
    /// The first key beyond the limit; nothing if there was none.
    #[serde(with = "crate::ops::saved::values")]
    pub(super) first: Vec<Option<Value>>,
    /// When to look at which instance. Their records say so too, but not where one was to be looked at sooner: that
    /// makes no difference to what is found, but to when somebody is asked for the time.
    pub(super) changes: Vec<(i64, u32)>,
    pub(super) untried: Unexercised,
}

impl Instances {
    pub(crate) fn saved(&self) -> SavedInstances {
        let Refusals { unkeyed, beyond_limit, ref first, .. } = self.refusals;
        SavedInstances {
            table: self.table.saved(),
            now: self.now,
            events: self.events,
            next_look: self.next_look,
            since_full_look: self.since_full_look,
            begun: self.table.begun,
            unkeyed,
            beyond_limit,
            first: first.iter().flatten().cloned().map(Some).collect(),
            changes: self.changes.iter().map(|&Reverse(change)| change).collect(),
            untried: self.untried.clone(),
        }
    }

    /// Takes over what was saved, before the first event; false if it does not belong to such instances.
    pub(crate) fn restore(&mut self, section: &Section, saved: SavedInstances) -> bool {
        let SavedInstances {
            table,
            now,
            events,
            next_look,
            since_full_look,
            begun,
            unkeyed,
            beyond_limit,
            first,
            changes,
            untried,
        } = saved;
        if !self.table.restore(section, table) || next_look > self.table.used() {
            return false;
        }
        (self.now, self.events) = (now, events);
        self.table.begun = begun;
        (self.next_look, self.since_full_look) = (next_look, since_full_look);
        let first: Vec<Value> = first.into_iter().flatten().collect();
        let fits = first.is_empty() || first.len() == self.plan.keys.types.len();
        let first = Some(first).filter(|first| !first.is_empty());
        self.refusals = Refusals { unkeyed, beyond_limit, first, ..Refusals::default() };
        let fits = fits && changes.iter().all(|&(_, number)| number < self.table.used());
        self.changes = changes.into_iter().map(Reverse).collect();
        fits && self.untried.restore(untried, section.premises.len())
    }
}
