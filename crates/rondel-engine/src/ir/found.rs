//! Things found again in another program, by their identities.

use std::collections::HashMap;

/// The identity of what is none of a node's: constants, and what is written anew for every block.
pub(crate) const UNIDENTIFIED: u64 = 0;
/// The identity of a node that is false under an assumption.
pub(crate) const ALWAYS_FALSE: u64 = 1;
/// The identity of a node that is true under an assumption.
pub(crate) const ALWAYS_TRUE: u64 = 2;

/// Where in a list of another program the things of a list are.
pub(crate) struct Found {
    /// For each of this list its place in the other, if it is there.
    places: Vec<Option<usize>>,
}

impl Found {
    /// Looks for `own` identities among those of another list.
    pub(crate) fn new(own: &[u64], other: &[u64]) -> Found {
        let at: HashMap<u64, usize> =
            other.iter().copied().zip(0..).filter(|(identity, _)| *identity != UNIDENTIFIED).collect();
        Found { places: own.iter().map(|identity| at.get(identity).copied()).collect() }
    }

    /// The places in the other list of what is in both, each with its own.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.places.iter().enumerate().filter_map(|(own, other)| Some((own, (*other)?)))
    }
}

/// Takes over from another list what is in both.
pub(crate) fn take<T: Clone>(own: &mut [T], names: &[u64], other: &[T], others: &[u64]) {
    for (at, from) in Found::new(names, others).pairs() {
        if let (Some(own), Some(other)) = (own.get_mut(at), other.get(from)) {
            own.clone_from(other);
        }
    }
}
