//! `percentile(x, q)`, `median(x)` and `distinct(x)` over a window: aggregates of the sorted samples.
//!
//! | | |
//! |---|---|
//! | `percentile` | the sorted sample with index q/100 · (n - 1), counted from 0; interpolated between two samples |
//! | `distinct` | the number of distinct values; all NaN are one value, and so are 0 and -0 |
//! | NaN | a percentile is NaN while a sample in the window is NaN |
//! | state | the samples, and their keys in order; saved without the keys |

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use super::sorted::Sorted;
use super::{BlindSpot, age, first_leaves, ordered};

/// Unit of percentiles: 100 % with four decimals.
pub(crate) const HUNDRED: u32 = 1_000_000;

/// Sorted samples of a window.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "SavedOrder")]
pub(crate) struct OrderedSamples {
    pub(super) over: u64,
    limit: usize,
    samples: VecDeque<(i64, i64)>,
    pub(super) blind: BlindSpot,
    #[serde(skip_serializing)]
    sorted: Sorted,
}

/// Saved form.
#[derive(Deserialize)]
struct SavedOrder {
    over: u64,
    limit: usize,
    samples: VecDeque<(i64, i64)>,
    blind: BlindSpot,
}

impl From<SavedOrder> for OrderedSamples {
    fn from(SavedOrder { over, limit, samples, blind }: SavedOrder) -> OrderedSamples {
        let sorted = Sorted::of(samples.iter().map(|sample| sample.1).collect());
        OrderedSamples { over, limit, samples, blind, sorted }
    }
}

/// The key of a NaN, greater than that of infinity.
const NAN: i64 = i64::MAX;

/// The key of a float; keys have the order of floats.
#[inline(always)]
pub(super) fn key(x: f64) -> i64 {
    if x.is_nan() {
        NAN
    } else {
        // -0 + 0 is 0.
        ordered((x + 0.0).to_bits() as i64)
    }
}

fn value(key: i64) -> f64 {
    f64::from_bits(ordered(key) as u64)
}

impl OrderedSamples {
    pub(crate) fn new(over: u64, limit: usize) -> OrderedSamples {
        let samples = VecDeque::new();
        OrderedSamples { over, limit, samples, blind: BlindSpot::default(), sorted: Sorted::default() }
    }

    fn pop(&mut self) -> Option<i64> {
        let (stamp, key) = self.samples.pop_front()?;
        self.sorted.remove(key);
        Some(stamp)
    }

    /// Adds the sample of a row. Returns whether all samples in the window are known.
    #[inline(always)]
    fn take(&mut self, now: i64, sample: Option<Option<i64>>) -> bool {
        while self.samples.front().is_some_and(|&(stamp, _)| age(now, stamp) >= self.over) {
            self.pop();
        }
        match sample {
            Some(Some(key)) => {
                self.samples.push_back((now, key));
                self.sorted.insert(key);
                if self.samples.len() > self.limit
                    && let Some(oldest) = self.pop()
                {
                    self.blind.drop(oldest);
                }
            }
            Some(None) => self.blind.unknown(now),
            None => {}
        }
        self.blind.is_over(now, self.over)
    }

    /// The number of distinct samples.
    #[inline(always)]
    pub(crate) fn distinct_row(&mut self, now: i64, sample: Option<Option<i64>>) -> Option<i64> {
        self.take(now, sample).then(|| self.sorted.distinct() as i64)
    }

    /// The quantile, `part` of [`HUNDRED`]; unknown without samples.
    #[inline(always)]
    pub(crate) fn quantile_row(&mut self, part: u32, now: i64, sample: Option<Option<f64>>) -> Option<f64> {
        let known = self.take(now, sample.map(|value| value.map(key)));
        if !known {
            return None;
        }
        let last = self.sorted.len().checked_sub(1)?;
        // Below 2^20 samples times below 2^20 parts.
        let place = last as u64 * u64::from(part.min(HUNDRED));
        let (rank, rest) = (place / u64::from(HUNDRED), place % u64::from(HUNDRED));
        if self.sorted.greatest() == Some(NAN) {
            return Some(f64::NAN);
        }
        let (low, high) = self.sorted.at(rank as usize)?;
        let (low, high) = (value(low), value(high.unwrap_or(low)));
        if rest == 0 || low == high {
            return Some(low);
        }
        let part = rest as f64 / f64::from(HUNDRED);
        Some(low * (1.0 - part) + high * part)
    }

    /// The state after it is saved and restored.
    #[cfg(test)]
    pub(super) fn again(&self) -> OrderedSamples {
        let OrderedSamples { over, limit, samples, blind, .. } = self.clone();
        OrderedSamples::from(SavedOrder { over, limit, samples, blind })
    }

    pub(super) fn newest(&self) -> Option<i64> {
        self.samples.back().map(|sample| sample.0)
    }

    /// As [`super::Count::next_change`].
    pub(crate) fn next_change(&self) -> Option<i64> {
        first_leaves(self.samples.front().map(|sample| sample.0), &self.blind, self.over)
    }

    pub(super) fn bytes(&self) -> usize {
        self.samples.capacity() * size_of::<(i64, i64)>() + self.sorted.bytes()
    }
}
