//! `first(x)`, `last(x)` and `derivative(x)` over a window: aggregates of the oldest and the newest sample.
//!
//! | | |
//! |---|---|
//! | `first`, `last` | the value of the oldest and of the newest sample; unknown without samples |
//! | `derivative` | newest minus oldest value, divided by the seconds between them; unknown if both have the same time |
//! | state | the samples |

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use super::{BlindSpot, age, first_leaves};

/// Samples of a window, oldest first. Floats are kept as bits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ends {
    pub(super) over: u64,
    limit: usize,
    samples: VecDeque<(i64, i64)>,
    pub(super) blind: BlindSpot,
}

impl Ends {
    pub(crate) fn new(over: u64, limit: usize) -> Ends {
        Ends { over, limit, samples: VecDeque::new(), blind: BlindSpot::default() }
    }

    /// The oldest and the newest sample at a row, if they are known.
    #[inline(always)]
    fn ends(&mut self, now: i64, sample: Option<Option<i64>>) -> Option<[(i64, i64); 2]> {
        while self.samples.front().is_some_and(|&(stamp, _)| age(now, stamp) >= self.over) {
            self.samples.pop_front();
        }
        match sample {
            Some(Some(value)) => {
                self.samples.push_back((now, value));
                if self.samples.len() > self.limit
                    && let Some((oldest, _)) = self.samples.pop_front()
                {
                    self.blind.drop(oldest);
                }
            }
            Some(None) => self.blind.unknown(now),
            None => {}
        }
        let known = self.blind.is_over(now, self.over);
        let ends = [*self.samples.front()?, *self.samples.back()?];
        known.then_some(ends)
    }

    #[inline(always)]
    pub(crate) fn int_row(&mut self, last: bool, now: i64, sample: Option<Option<i64>>) -> Option<i64> {
        self.ends(now, sample).map(|ends| ends[usize::from(last)].1)
    }

    #[inline(always)]
    pub(crate) fn float_row(&mut self, last: bool, now: i64, sample: Option<Option<f64>>) -> Option<f64> {
        let bits = self.int_row(last, now, sample.map(|value| value.map(|x| x.to_bits() as i64)));
        bits.map(|bits| f64::from_bits(bits as u64))
    }

    /// The derivative per second at a row, if it is known.
    #[inline(always)]
    pub(crate) fn derivative_row(&mut self, now: i64, sample: Option<Option<f64>>) -> Option<f64> {
        let bits = sample.map(|value| value.map(|x| x.to_bits() as i64));
        let [(from, first), (to, last)] = self.ends(now, bits)?;
        let (first, last) = (f64::from_bits(first as u64), f64::from_bits(last as u64));
        let nanos = age(to, from);
        (nanos > 0).then(|| (last - first) / (nanos as f64 / 1e9))
    }

    pub(super) fn newest(&self) -> Option<i64> {
        self.samples.back().map(|sample| sample.0)
    }

    /// As [`super::Count::next_change`].
    pub(crate) fn next_change(&self) -> Option<i64> {
        first_leaves(self.samples.front().map(|sample| sample.0), &self.blind, self.over)
    }

    pub(super) fn bytes(&self) -> usize {
        self.samples.capacity() * size_of::<(i64, i64)>()
    }
}
