//! What properties that look ahead wait for, of all instances. A reference is as in the [sides](crate::keyed::sides).

use rondel_event::Verdict;
use serde::{Deserialize, Serialize};

use crate::future::{Delayed, Pending};
use crate::keyed::pools::Pool;
use crate::ops::varying::Varying;

/// What an instance waits for, of one property.
pub(crate) trait Wait: Varying {
    /// As it was when it was new, but that this was the verdict about what came before.
    fn restart(&mut self, before: Option<Verdict>);
    /// Whether it is of the same property.
    fn fits(&self, other: &Self) -> bool;
}

impl Wait for Pending {
    fn restart(&mut self, before: Option<Verdict>) {
        Pending::restart(self, before);
    }

    fn fits(&self, other: &Pending) -> bool {
        Pending::fits(self, other)
    }
}

impl Wait for Delayed {
    fn restart(&mut self, before: Option<Verdict>) {
        Delayed::restart(self, before);
    }

    fn fits(&self, other: &Delayed) -> bool {
        Delayed::fits(self, other)
    }
}

/// What all instances wait for, for every property.
#[derive(Clone, Debug)]
pub(crate) struct Waits<T> {
    pools: Vec<Pool<T>>,
    /// For each how it begins.
    blank: Vec<T>,
    /// How much was given up in those that are gone.
    lost: u64,
}

/// What of [`Waits`] goes into a snapshot.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedWaits<T> {
    pub(super) pools: Vec<Pool<T>>,
    pub(super) lost: u64,
}

impl<T: Wait> Waits<T> {
    /// With what each begins with.
    pub(super) fn new(blank: Vec<T>) -> Waits<T> {
        Waits { pools: blank.iter().map(|_| Pool::new()).collect(), blank, lost: 0 }
    }

    /// What a reference of a property refers to.
    pub(super) fn get(&self, property: usize, reference: u64) -> Option<&T> {
        self.pools[property].get(reference)
    }

    pub(super) fn get_mut(&mut self, property: usize, reference: u64) -> Option<&mut T> {
        self.pools[property].get_mut(reference)
    }

    /// Whether a reference of a property refers to something, or is empty.
    pub(super) fn may_be(&self, property: usize, reference: u64) -> bool {
        self.pools.get(property).is_some_and(|pool| pool.may_be(reference))
    }

    /// What a reference of a property refers to; an empty one begins to wait, after what `before` says.
    pub(super) fn get_or_begin(
        &mut self,
        property: usize,
        reference: &mut u64,
        before: impl FnOnce() -> Option<Verdict>,
    ) -> Option<&mut T> {
        let pool = &mut self.pools[property];
        if *reference == 0 {
            *reference = pool.again().unwrap_or_else(|| pool.add(self.blank[property].clone()));
            pool.get_mut(*reference)?.restart(before());
        }
        pool.get_mut(*reference)
    }

    /// Gives back what a reference of a property refers to.
    pub(super) fn free(&mut self, property: usize, reference: u64) {
        let pool = &mut self.pools[property];
        if let Some(wait) = pool.get_mut(reference) {
            self.lost = self.lost.saturating_add(wait.dropped());
            wait.restart(None);
            pool.free(reference);
        }
    }

    /// How much was given up because there was too much.
    pub(super) fn lost(&self) -> u64 {
        self.pools.iter().map(Pool::dropped).fold(self.lost, u64::saturating_add)
    }

    pub(super) fn bytes(&self) -> usize {
        self.pools.iter().map(Pool::bytes).sum()
    }

    pub(super) fn saved(&self) -> SavedWaits<T> {
        SavedWaits { pools: self.pools.clone(), lost: self.lost }
    }

    /// Takes over what was saved; false if it cannot be what was saved of this.
    pub(super) fn restore(&mut self, SavedWaits { pools, lost }: SavedWaits<T>) -> bool {
        let of = |(pool, blank): (&Pool<T>, &T)| pool.all.iter().all(|wait| blank.fits(wait));
        let fits = pools.len() == self.blank.len() && pools.iter().zip(&self.blank).all(of);
        if fits {
            (self.pools, self.lost) = (pools, lost);
        }
        fits
    }
}
