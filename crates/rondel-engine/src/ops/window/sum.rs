//! `sum(x)` over a window; the mean is the sum divided by the count.
//!
//! | | |
//! |---|---|
//! | meaning | the sum of all samples in the window; 0 without samples |
//! | unknown | while a sample is unknown; for integers also while the sum exceeds 64 bits |
//! | rounding | floats are summed again from the samples in the window, in twice the precision: the error is at most the last digit of the result, unless the terms cancel out to less than 2⁻⁵⁰ of what they were; infinite where the terms added so far exceed the range |
//! | state | the samples |

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use super::stacks::{Aggregate, Stacks};
use super::{BlindSpot, age, first_leaves};

/// State of a sum of integers; unknown while it exceeds 64 bits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SumInt {
    pub(super) over: u64,
    limit: usize,
    pub(super) samples: VecDeque<(i64, i64)>,
    /// Cannot overflow with a million samples.
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

    /// The sum at a row, if it is known. `Some(None)` is a sample with an unknown value.
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

/// State of a sum of floats.
pub(crate) type SumFloat = Stacks<CompensatedSum>;

/// A sum of floats, and its accumulated rounding error.
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

impl Aggregate for CompensatedSum {
    #[inline(always)]
    fn add(&mut self, x: f64) {
        let sum = self.sum + x;
        if sum.is_finite() {
            // Knuth's two-sum: the exact rounding error of the addition.
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
