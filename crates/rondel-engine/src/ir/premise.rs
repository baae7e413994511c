//! Unexercised premises: premises of implications that have never been certainly true. Each is tested once
//! per block until it was true, and costs nothing afterwards.

use rondel_event::Rows;
use serde::{Deserialize, Serialize};

use crate::ir::wire::{Halves, Wire};

/// The premise of an implication.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Premise {
    /// Index of the property.
    pub(crate) property: u32,
    /// Index among the premises of the property.
    pub(crate) number: u32,
    /// Where it is certainly true.
    pub(crate) certain: Halves,
}

/// Indexes of the unexercised premises of a section.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Unexercised(Vec<u32>);

impl Unexercised {
    /// All premises of a section with `count` of them.
    pub(crate) fn all(count: usize) -> Unexercised {
        Unexercised((0..count as u32).collect())
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes the premises that are certainly true in the rows `at` or on the intervals after the rows
    /// `after`. `word` reads a wire.
    pub(crate) fn look(&mut self, premises: &[Premise], [at, after]: [Rows; 2], word: impl Fn(Wire) -> Rows) {
        self.0.retain(|&place| {
            let Some(Premise { certain, .. }) = premises.get(place as usize) else { return false };
            word(certain.at) & at == 0 && (after == 0 || word(certain.after) & after == 0)
        });
    }

    /// Keeps the premises that are unexercised in both.
    pub(crate) fn intersect(&mut self, other: &Unexercised) {
        self.0.retain(|place| other.0.contains(place));
    }

    /// Property and number of each unexercised premise.
    pub(crate) fn of<'a>(&'a self, premises: &'a [Premise]) -> impl Iterator<Item = (u32, u32)> + 'a {
        let left = self.0.iter().filter_map(|&place| premises.get(place as usize));
        left.map(|premise| (premise.property, premise.number))
    }

    /// The unexercised premises of another section: those of `own` (property and number) that are unexercised
    /// or missing here.
    pub(crate) fn moved(&self, own: &[(u32, u32)], before: &[(u32, u32)]) -> Unexercised {
        let was_exercised = |premise: &(u32, u32)| {
            let at = before.iter().position(|other| other == premise);
            at.is_some_and(|at| !self.0.contains(&(at as u32)))
        };
        let left = (0..).zip(own).filter(|(_, premise)| !was_exercised(premise));
        Unexercised(left.map(|(at, _)| at).collect())
    }

    /// Restores saved indexes; false if they exceed `count`.
    pub(crate) fn restore(&mut self, saved: Unexercised, count: usize) -> bool {
        let fits = saved.0.is_sorted() && saved.0.last().is_none_or(|&last| (last as usize) < count);
        *self = saved;
        fits
    }
}
