//! `sum(x)` over a window; the mean is this by the number of samples.
//!
//! | | |
//! |---|---|
//! | meaning | the sum of all samples in the window; 0 of none |
//! | unknown | while a sample is unknown; of integers also where the sum is not one of 64 bits |
//! | rounding | floats are added up anew from the samples that are there, in twice the precision: the result is off by no more than its own last digit, unless the terms cancel out to less than 2⁻⁵⁰ of what they were; infinite where the terms added so far exceed the range |
//! | state | the samples |

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use super::stacks::{Stacks, Together};
use super::{BlindSpot, age, first_leaves};

/// The sum of integers. Unknown where it does not fit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SumInt {
    pub(super) over: u64,
    limit: usize,
    pub(super) samples: VecDeque<(i64, i64)>,
    /// A million times the greatest integer is far from its end.
    sum: i128,
    pub(super) blind: BlindSpot,
}

impl SumInt {
    pub(crate) fn new(over: u64, limit: usize) -> SumInt {
        SumInt { over, limit, samples: VecDeque::new(), sum: 0, blind: BlindSpot::default() }
    }

    fn pop(&mut self) -> Option<i64> {
        let (stamp, value) = self.samples.pop_front()?;
        self.sum -= i128::from(value);
        Some(stamp)
    }

    /// The sum at a row, if it is known. The sample may be one whose value is unknown.
    #[inline(always)]
    pub(crate) fn row(&mut self, now: i64, sample: Option<Option<i64>>) -> Option<i64> {
        while self.samples.front().is_some_and(|&(stamp, _)| age(now, stamp) >= self.over) {
            self.pop();
        }
        match sample {
            Some(Some(value)) => {
                self.samples.push_back((now, value));
                self.sum += i128::from(value);
                if self.samples.len() > self.limit
                    && let Some(oldest) = self.pop()
                {
                    self.blind.drop(oldest);
                }
            }
            Some(None) => self.blind.unknown(now),
            None => {}
        }
        let known = self.blind.is_over(now, self.over);
        i64::try_from(self.sum).ok().filter(|_| known)
    }

    /// As [`super::Count::next_change`].
    pub(crate) fn next_change(&self) -> Option<i64> {
        first_leaves(self.samples.front().map(|s| s.0), &self.blind, self.over)
    }
}

/// The sum of floats.
pub(crate) type SumFloat = Stacks<CompensatedSum>;

/// A sum of floats, and what rounding took from it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CompensatedSum {
    sum: f64,
    rest: f64,
}

impl CompensatedSum {
    #[inline(always)]
    pub(super) fn plus(mut self, other: CompensatedSum) -> f64 {
        self.add(other.sum);
        if self.sum.is_finite() { self.sum + (self.rest + other.rest) } else { self.sum }
    }
}

impl Together for CompensatedSum {
    #[inline(always)]
    fn add(&mut self, x: f64) {
        let sum = self.sum + x;
        if sum.is_finite() {
            // Knuth: what the sum has of each, and what that leaves of it, exactly.
            let of_x = sum - self.sum;
            let of_old = sum - of_x;
            self.rest += (self.sum - of_old) + (x - of_x);
        } else {
            self.rest = 0.0;
        }
        self.sum = sum;
    }

    #[inline(always)]
    fn measured(self, newer: CompensatedSum) -> Option<f64> {
        Some(self.plus(newer))
    }
}
