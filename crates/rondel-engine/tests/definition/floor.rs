//! Minimum number of comparisons: a random test whose cases are all refused must fail.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use proptest::prelude::*;

/// Number of cases of a test so far, and of those with a comparison.
#[derive(Debug)]
pub struct Floor {
    cases: AtomicU64,
    compared: AtomicU64,
    /// Least share of cases with a comparison, in percent; far below the usual share, so that chance never
    /// falls below.
    percent: u64,
    /// Number of cases from which on the share is checked.
    enough: u64,
}

impl Floor {
    pub const fn new(percent: u64, enough: u64) -> Floor {
        Floor { cases: AtomicU64::new(0), compared: AtomicU64::new(0), percent, enough }
    }

    /// Records a case with this number of compared properties. Fails if too few cases had any.
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
