//! Search for states of another program by identity.

use std::collections::HashMap;

/// The identity of values without a node of their own: constants, and values that are recomputed for every
/// block.
pub(crate) const UNIDENTIFIED: u64 = 0;
/// The identity of a node that is false under an assumption.
pub(crate) const ALWAYS_FALSE: u64 = 1;
/// The identity of a node that is true under an assumption.
pub(crate) const ALWAYS_TRUE: u64 = 2;

/// Index in a list of another program for each element of a list.
pub(crate) struct Found {
    /// For each element of this list its index in the other, if it is there.
    places: Vec<Option<usize>>,
}

impl Found {
    /// Looks up the identities `own` in another list.
    pub(crate) fn new(own: &[u64], other: &[u64]) -> Found {
        let at: HashMap<u64, usize> =
            other.iter().copied().zip(0..).filter(|(identity, _)| *identity != UNIDENTIFIED).collect();
        Found { places: own.iter().map(|identity| at.get(identity).copied()).collect() }
    }

    /// Pairs of indexes of equal elements: here, and in the other list.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.places.iter().enumerate().filter_map(|(own, other)| Some((own, (*other)?)))
    }
}

/// Copies the elements whose identities occur in both lists.
pub(crate) fn take<T: Clone>(own: &mut [T], names: &[u64], other: &[T], others: &[u64]) {
    for (at, from) in Found::new(names, others).pairs() {
        if let (Some(own), Some(other)) = (own.get_mut(at), other.get(from)) {
            own.clone_from(other);
        }
    }
}
