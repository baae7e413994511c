//! Pending states of properties with future operators, for all instances. References are as in the
//! [heap](crate::keyed::heap).

use rondel_event::Verdict;
use serde::{Deserialize, Serialize};

use crate::future::{Delayed, Pending};
use crate::keyed::pools::Pool;
use crate::ops::varying::Varying;

/// Pending state of an instance for one property.
pub(crate) trait Wait: Varying {
    /// Resets the state, with `before` as the verdict about the time before.
    fn restart(&mut self, before: Option<Verdict>);
    /// Whether the state belongs to the same property.
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

/// Pending states of all instances, a pool per property.
#[derive(Clone, Debug)]
pub(crate) struct Waits<T> {
    pools: Vec<Pool<T>>,
    /// Initial state for every property.
    blank: Vec<T>,
    /// Number of obligations dropped by states that were freed.
    lost: u64,
}

/// Saved form of [`Waits`].
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedWaits<T> {
    pub(super) pools: Vec<Pool<T>>,
    pub(super) lost: u64,
}

impl<T: Wait> Waits<T> {
    /// Creates empty pools with these initial states.
    pub(super) fn new(blank: Vec<T>) -> Waits<T> {
        Waits { pools: blank.iter().map(|_| Pool::new()).collect(), blank, lost: 0 }
    }

    /// Returns the state of a reference.
    pub(super) fn get(&self, property: usize, reference: u64) -> Option<&T> {
        self.pools[property].get(reference)
    }

    pub(super) fn get_mut(&mut self, property: usize, reference: u64) -> Option<&mut T> {
        self.pools[property].get_mut(reference)
    }

    /// Whether a reference is empty or valid.
    pub(super) fn is_valid(&self, property: usize, reference: u64) -> bool {
        self.pools.get(property).is_some_and(|pool| pool.is_valid(reference))
    }

    /// Returns the state of a reference; for an empty one a new state, with `before` as the verdict about the
    /// time before.
    pub(super) fn get_or_begin(
        &mut self,
        property: usize,
        reference: &mut u64,
        before: impl FnOnce() -> Option<Verdict>,
    ) -> Option<&mut T> {
        let pool = &mut self.pools[property];
        if *reference == 0 {
            *reference = pool.reuse().unwrap_or_else(|| pool.add(self.blank[property].clone()));
            pool.get_mut(*reference)?.restart(before());
        }
        pool.get_mut(*reference)
    }

    /// Frees a state.
    pub(super) fn free(&mut self, property: usize, reference: u64) {
        let pool = &mut self.pools[property];
        if let Some(wait) = pool.get_mut(reference) {
            self.lost = self.lost.saturating_add(wait.dropped());
            wait.restart(None);
            pool.free(reference);
        }
    }

    /// Copies a state of others and returns the reference of the copy.
    pub(super) fn adopt(&mut self, other: &Waits<T>, property: usize, reference: u64) -> u64 {
        match (self.pools.get_mut(property), other.pools.get(property)) {
            (Some(pool), Some(other)) => pool.adopt(other, reference),
            _ => 0,
        }
    }

    /// Adds the number of obligations that freed states of others have dropped.
    pub(super) fn add_lost(&mut self, other: &Waits<T>) {
        self.lost = self.lost.saturating_add(other.lost);
    }

    /// Number of obligations dropped because of limits.
    pub(super) fn lost(&self) -> u64 {
        self.pools.iter().map(Pool::dropped).fold(self.lost, u64::saturating_add)
    }

    pub(super) fn bytes(&self) -> usize {
        self.pools.iter().map(Pool::bytes).sum()
    }

    /// Returns pools of the same properties without a state.
    pub(super) fn emptied(&self) -> Waits<T> {
        Waits::new(self.blank.clone())
    }

    pub(super) fn into_saved(self) -> SavedWaits<T> {
        SavedWaits { pools: self.pools, lost: self.lost }
    }

    /// Takes over a saved state. Returns false if it does not fit.
    pub(super) fn restore(&mut self, SavedWaits { pools, lost }: SavedWaits<T>) -> bool {
        let of = |(pool, blank): (&Pool<T>, &T)| pool.all.iter().all(|wait| blank.fits(wait));
        let fits = pools.len() == self.blank.len() && pools.iter().zip(&self.blank).all(of);
        if fits {
            (self.pools, self.lost) = (pools, lost);
        }
        fits
    }
}
