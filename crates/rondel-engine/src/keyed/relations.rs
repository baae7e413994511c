//! Quantified formulas of properties with `for each`. Each instance has relations of its own, over the
//! messages that it receives. The template has them too, but without obligations, which begin with an
//! instance.

use rondel_event::Rows;
use serde::{Deserialize, Serialize};

use crate::exec::section::Section;
use crate::keyed::keys::for_each;
use crate::keyed::parallel::ParallelFrame;
use crate::keyed::pools::Pool;
use crate::keyed::record::POSITION;
use crate::keyed::table::TEMPLATE;
use crate::ops::timed::TruthHalves;
use crate::relation::obligations::Obligations;
use crate::relation::source::{Reading, Relation};
use crate::relation::state::RelationState;

/// Relations of all instances, a pool per quantified formula.
#[derive(Clone, Debug)]
pub(crate) struct Relations {
    pools: Vec<Pool<RelationState>>,
    /// Whether each formula has future operators, and so obligations of tuples.
    has_obligations: Vec<bool>,
    /// Number of obligations dropped by relations that were freed.
    lost: u64,
}

/// Saved form of [`Relations`].
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedRelations {
    pub(super) pools: Vec<Pool<RelationState>>,
    pub(super) lost: u64,
}

impl Relations {
    pub(super) fn new(section: &Section) -> Relations {
        let relations = &section.relations;
        let has_obligations = relations.iter().map(|relation| relation.plan.obligation.is_some()).collect();
        Relations { pools: relations.iter().map(|_| Pool::new()).collect(), has_obligations, lost: 0 }
    }

    fn get(&self, relation: usize, reference: u64) -> Option<&RelationState> {
        self.pools.get(relation)?.get(reference)
    }

    /// Whether a reference is empty or valid.
    pub(super) fn is_valid(&self, relation: usize, reference: u64) -> bool {
        self.pools.get(relation).is_some_and(|pool| pool.is_valid(reference))
    }

    /// Returns the obligations of the tuples of a formula with future operators.
    pub(super) fn obligations(&self, relation: usize, reference: u64) -> Option<&Obligations> {
        self.get(relation, reference)?.obligations()
    }

    pub(super) fn get_mut(&mut self, relation: usize, reference: u64) -> Option<&mut RelationState> {
        self.pools.get_mut(relation)?.get_mut(reference)
    }

    /// Returns the next time at which a formula changes by time alone, in dense time.
    pub(super) fn next_change(&self, relation: usize, reference: u64, of: &Relation) -> Option<i64> {
        self.get(relation, reference)?.next_change(&of.plan)
    }

    /// Replaces the references of a record by references to copies, for a new instance.
    pub(super) fn copy(&mut self, record: &mut [u64], words: &[u32]) {
        for ((pool, &has_obligations), &word) in self.pools.iter_mut().zip(&self.has_obligations).zip(words) {
            let reference = &mut record[word as usize];
            *reference = pool.copy(*reference);
            if let Some(state) = pool.get_mut(*reference) {
                state.track_obligations(has_obligations);
            }
        }
    }

    /// Replaces the references of a record, which are to others, by references to copies.
    pub(super) fn adopt(&mut self, other: &Relations, record: &mut [u64], words: &[u32]) {
        for ((pool, other), &word) in self.pools.iter_mut().zip(&other.pools).zip(words) {
            record[word as usize] = pool.adopt(other, record[word as usize]);
        }
    }

    /// Adds the number of obligations that freed relations of others have dropped.
    pub(super) fn add_lost(&mut self, other: &Relations) {
        self.lost = self.lost.saturating_add(other.lost);
    }

    /// Frees the relations of a record.
    pub(super) fn free(&mut self, record: &mut [u64], words: &[u32], initial: &[RelationState]) {
        for ((pool, &word), initial) in self.pools.iter_mut().zip(words).zip(initial) {
            let lost = pool.renew(std::mem::take(&mut record[word as usize]), initial);
            self.lost = self.lost.saturating_add(lost);
        }
    }

    /// Whether two records are known to have the same relations.
    pub(super) fn are_same(&self, [a, b]: [&[u64]; 2], words: &[u32], section: &Section) -> bool {
        section.relations.iter().zip(&self.pools).zip(words).all(|((relation, pool), &word)| {
            match [a, b].map(|record| pool.get(record[word as usize])) {
                [None, None] => true,
                [a, b] => {
                    let is_bare = |state: &RelationState| state.is_bare(&relation.plan);
                    let first = [a, b].map(|state| state.is_none_or(RelationState::is_first));
                    a.is_none_or(is_bare)
                        && b.is_none_or(is_bare)
                        && (first[0] == first[1] || !relation.plan.depends_on_first())
                }
            }
        })
    }

    /// Number of obligations dropped because of limits.
    pub(super) fn lost(&self) -> u64 {
        self.pools.iter().map(Pool::dropped).fold(self.lost, u64::saturating_add)
    }

    pub(super) fn bytes(&self) -> usize {
        self.pools.iter().map(Pool::bytes).sum()
    }

    /// Returns relations of the same formulas without a state.
    pub(super) fn emptied(&self) -> Relations {
        let pools = self.pools.iter().map(|_| Pool::new()).collect();
        Relations { pools, has_obligations: self.has_obligations.clone(), lost: 0 }
    }

    pub(super) fn into_saved(self) -> SavedRelations {
        SavedRelations { pools: self.pools, lost: self.lost }
    }

    /// Takes over a saved state, and completes its unsaved parts. Returns false if it does not fit the
    /// section.
    pub(super) fn restore(
        &mut self,
        section: &Section,
        SavedRelations { pools, lost }: SavedRelations,
    ) -> bool {
        (self.pools, self.lost) = (pools, lost);
        let complete =
            |((pool, relation), initial): ((&mut Pool<RelationState>, &Relation), &RelationState)| {
                let mut of_template = initial.clone();
                of_template.track_obligations(false);
                let own = |state: &RelationState| {
                    if state.obligations().is_some() { initial } else { &of_template }
                };
                pool.all.iter_mut().all(|state| state.complete(own(state), &relation.plan))
            };
        self.pools.len() == section.relations.len()
            && self.pools.iter_mut().zip(&section.relations).zip(&section.initial.relations).all(complete)
    }
}

impl ParallelFrame<'_> {
    /// Evaluates a quantified formula for each instance.
    pub(super) fn quantified(&mut self, relation: u32, second: u32) -> Rows {
        let k = relation as usize;
        let section = self.step.section;
        let (of, initial) = (&section.relations[k], &section.initial.relations[k]);
        let word = self.layout.places.relations[k] as usize;
        let crate::keyed::heap::InstanceHeap { relations, values, .. } = &mut *self.heap;
        let (words, columns, buffers) = (&*self.words, &*self.columns, &values.buffers[..]);
        // Formulas are evaluated on the rows of the block.
        let reading =
            Reading { words, columns, block: self.step.view.block, start: 0, events: Rows::MAX, buffers };
        let mut out = TruthHalves::default();
        for_each(self.rows, |row| {
            let reference = &mut self.records[word][row];
            if *reference == 0 {
                let mut state = initial.clone();
                if self.instances[row] == TEMPLATE {
                    state.track_obligations(false);
                }
                *reference = relations.pools[k].add(state);
            }
            let Some(state) = relations.pools[k].get_mut(*reference) else { return };
            let time = self.step.view.row_times.times.get(row).copied().unwrap_or(0);
            let [at, after] = of.row(state, &reading, row, self.records[POSITION][row], time);
            out.at |= Rows::from(at) << row;
            out.after |= Rows::from(after) << row;
        });
        self.seconds[second as usize] = out.after;
        out.at
    }
}
