//! Quantified formulas of properties that are divided by key. An instance evaluates them over what it sees, and so has
//! relations of its own. The template keeps them too, but asks nothing that looks ahead: that begins with an instance.

use rondel_event::Rows;
use serde::{Deserialize, Serialize};

use crate::exec::section::Section;
use crate::keyed::keys::for_each;
use crate::keyed::parallel::ParallelFrame;
use crate::keyed::pools::Pool;
use crate::keyed::record::POSITION;
use crate::keyed::table::TEMPLATE;
use crate::ops::timed::TruthHalves;
use crate::relation::asking::Asking;
use crate::relation::source::{Reading, Relation};
use crate::relation::state::RelationState;

/// The relations of all instances, for every quantified formula.
#[derive(Clone, Debug)]
pub(crate) struct Relations {
    pools: Vec<Pool<RelationState>>,
    /// Which of them ask tuples for something that looks ahead.
    asks: Vec<bool>,
    /// How much was given up in those that are gone.
    lost: u64,
}

/// What of [`Relations`] goes into a snapshot.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedRelations {
    pub(super) pools: Vec<Pool<RelationState>>,
    pub(super) lost: u64,
}

impl Relations {
    pub(super) fn new(section: &Section) -> Relations {
        let relations = &section.relations;
        let asks = relations.iter().map(|relation| relation.plan.ask.is_some()).collect();
        Relations { pools: relations.iter().map(|_| Pool::new()).collect(), asks, lost: 0 }
    }

    fn get(&self, relation: usize, reference: u64) -> Option<&RelationState> {
        self.pools.get(relation)?.get(reference)
    }

    /// Whether a reference of a formula refers to something, or is empty.
    pub(super) fn may_be(&self, relation: usize, reference: u64) -> bool {
        self.pools.get(relation).is_some_and(|pool| pool.may_be(reference))
    }

    /// What is asked of tuples for a formula that looks ahead.
    pub(super) fn asking(&self, relation: usize, reference: u64) -> Option<&Asking> {
        self.get(relation, reference)?.asking()
    }

    pub(super) fn get_mut(&mut self, relation: usize, reference: u64) -> Option<&mut RelationState> {
        self.pools.get_mut(relation)?.get_mut(reference)
    }

    /// The time at which a formula changes by itself in dense time, if nothing else happens.
    pub(super) fn next_change(&self, relation: usize, reference: u64, of: &Relation) -> Option<i64> {
        self.get(relation, reference)?.next_change(&of.plan)
    }

    /// Makes copies of what the words of a record refer to, and refers to those: an instance begins.
    pub(super) fn copy(&mut self, record: &mut [u64], words: &[u32]) {
        for ((pool, &asks), &word) in self.pools.iter_mut().zip(&self.asks).zip(words) {
            let reference = &mut record[word as usize];
            *reference = pool.copy(*reference);
            if let Some(state) = pool.get_mut(*reference) {
                state.set_asking(asks);
            }
        }
    }

    /// Gives back what the words of a record refer to.
    pub(super) fn free(&mut self, record: &mut [u64], words: &[u32], initial: &[RelationState]) {
        for ((pool, &word), initial) in self.pools.iter_mut().zip(words).zip(initial) {
            let lost = pool.renew(std::mem::take(&mut record[word as usize]), initial);
            self.lost = self.lost.saturating_add(lost);
        }
    }

    /// Whether two records remember the same, as far as it is known.
    pub(super) fn are_same(&self, [a, b]: [&[u64]; 2], words: &[u32], section: &Section) -> bool {
        section.relations.iter().zip(&self.pools).zip(words).all(|((relation, pool), &word)| {
            match [a, b].map(|record| pool.get(record[word as usize])) {
                [None, None] => true,
                [a, b] => {
                    let is_bare = |state: &RelationState| state.is_bare(&relation.plan);
                    let first = [a, b].map(|state| state.is_none_or(RelationState::is_first));
                    a.is_none_or(is_bare)
                        && b.is_none_or(is_bare)
                        && (first[0] == first[1] || !relation.plan.asks_whether_first())
                }
            }
        })
    }

    /// How much was given up because there was too much.
    pub(super) fn lost(&self) -> u64 {
        self.pools.iter().map(Pool::dropped).fold(self.lost, u64::saturating_add)
    }

    pub(super) fn bytes(&self) -> usize {
        self.pools.iter().map(Pool::bytes).sum()
    }

    pub(super) fn saved(&self) -> SavedRelations {
        SavedRelations { pools: self.pools.clone(), lost: self.lost }
    }

    /// Takes over what was saved, and adds what is not in it; false if it cannot be what was saved of such a section.
    pub(super) fn restore(
        &mut self,
        section: &Section,
        SavedRelations { pools, lost }: SavedRelations,
    ) -> bool {
        (self.pools, self.lost) = (pools, lost);
        let complete =
            |((pool, relation), initial): ((&mut Pool<RelationState>, &Relation), &RelationState)| {
                let mut of_template = initial.clone();
                of_template.set_asking(false);
                let own =
                    |state: &RelationState| if state.asking().is_some() { initial } else { &of_template };
                pool.all.iter_mut().all(|state| state.complete(own(state), &relation.plan))
            };
        self.pools.len() == section.relations.len()
            && self.pools.iter_mut().zip(&section.relations).zip(&section.initial.relations).all(complete)
    }
}

impl ParallelFrame<'_> {
    /// The truth of a quantified formula, for each instance of its own.
    pub(super) fn quantified(&mut self, relation: u32, second: u32) -> Rows {
        let k = relation as usize;
        let section = self.step.section;
        let (of, initial) = (&section.relations[k], &section.initial.relations[k]);
        let word = self.layout.places.relations[k] as usize;
        let crate::keyed::sides::KeyedSides { relations, values, .. } = &mut *self.sides;
        let (words, columns, buffers) = (&*self.words, &*self.columns, &values.buffers[..]);
        // To a formula the rows are those of the block.
        let reading =
            Reading { words, columns, block: self.step.view.block, start: 0, events: Rows::MAX, buffers };
        let mut out = TruthHalves::default();
        for_each(self.rows, |row| {
            let reference = &mut self.records[word][row];
            if *reference == 0 {
                let mut state = initial.clone();
                if self.instances[row] == TEMPLATE {
                    state.set_asking(false);
                }
                *reference = relations.pools[k].add(state);
            }
            let Some(state) = relations.pools[k].get_mut(*reference) else { return };
            let time = self.step.view.row_times.times.get(row).copied().unwrap_or(0);
            let [at, after] = of.row(state, &reading, row, (self.records[POSITION][row], time));
            out.at |= Rows::from(at) << row;
            out.after |= Rows::from(after) << row;
        });
        self.seconds[second as usize] = out.after;
        out.at
    }
}
