//! Premises of implications that were at no moment certainly true so far. Each is looked for once in a block until
//! it was true, and costs nothing from then on.

use rondel_event::Rows;
use serde::{Deserialize, Serialize};

use crate::ir::wire::{Halves, Wire};

/// The premise of an implication.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Premise {
    /// Its property, by its position in the specification.
    pub(crate) property: u32,
    /// Its place among the premises of the property.
    pub(crate) number: u32,
    /// Where it is certainly true.
    pub(crate) certain: Halves,
}

/// The premises of a section that were not certainly true so far, by their places.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Unexercised(Vec<u32>);

impl Unexercised {
    /// All premises of a section with so many.
    pub(crate) fn all(count: usize) -> Unexercised {
        Unexercised((0..count as u32).collect())
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes out what is certainly true at these moments, or on the spans after those. `word` reads a wire.
    pub(crate) fn look(&mut self, premises: &[Premise], [at, after]: [Rows; 2], word: impl Fn(Wire) -> Rows) {
        self.0.retain(|&place| {
            let Some(Premise { certain, .. }) = premises.get(place as usize) else { return false };
            word(certain.at) & at == 0 && (after == 0 || word(certain.after) & after == 0)
        });
    }

    /// Those of these premises that are left.
    pub(crate) fn of<'a>(&'a self, premises: &'a [Premise]) -> impl Iterator<Item = (u32, u32)> + 'a {
        let left = self.0.iter().filter_map(|&place| premises.get(place as usize));
        left.map(|premise| (premise.property, premise.number))
    }

    /// The same of the premises of another section: those of `own`, each by its property and number there, that are
    /// missing here, or were not tried.
    pub(crate) fn moved(&self, own: &[(u32, u32)], before: &[(u32, u32)]) -> Unexercised {
        let was_tried = |premise: &(u32, u32)| {
            let at = before.iter().position(|other| other == premise);
            at.is_some_and(|at| !self.0.contains(&(at as u32)))
        };
        let left = (0..).zip(own).filter(|(_, premise)| !was_tried(premise));
        Unexercised(left.map(|(at, _)| at).collect())
    }

    /// Takes over what was saved; false if there are not so many premises.
    pub(crate) fn restore(&mut self, saved: Unexercised, count: usize) -> bool {
        let fits = saved.0.is_sorted() && saved.0.last().is_none_or(|&last| (last as usize) < count);
        *self = saved;
        fits
    }
}
