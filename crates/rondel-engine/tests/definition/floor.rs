//! How much a random test really compares: one whose cases are all refused must fail.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use proptest::prelude::*;

/// The cases of one test so far, and those in which something was compared.
#[derive(Debug)]
pub struct Floor {
    cases: AtomicU64,
    compared: AtomicU64,
    /// The least part of the cases in which something is compared, in percent: far below what is usual, so that chance
    /// alone never falls below.
    percent: u64,
    /// After so many cases the part is looked at.
    enough: u64,
}

impl Floor {
    pub const fn new(percent: u64, enough: u64) -> Floor {
        Floor { cases: AtomicU64::new(0), compared: AtomicU64::new(0), percent, enough }
    }

    /// Notes a case in which so many properties are compared; an error where too few cases had any.
    pub fn note(&self, properties: usize) -> Result<(), TestCaseError> {
        let cases = self.cases.fetch_add(1, Relaxed) + 1;
        let own = u64::from(properties > 0);
        let compared = self.compared.fetch_add(own, Relaxed) + own;
        if cases.is_multiple_of(100) {
            println!("{compared} of {cases} cases are compared");
        }
        let is_enough = cases < self.enough || 100 * compared >= self.percent * cases;
        prop_assert!(is_enough, "only {compared} of {cases} cases are compared");
        Ok(())
    }
}
