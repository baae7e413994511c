//! `stddev(x)` over a window: the root of the mean square of the differences from the mean.
//!
//! | | |
//! |---|---|
//! | meaning | the standard deviation of all samples in the window (of the population: divided by their number) |
//! | unknown | of no sample, or while one is unknown; NaN while a sample is infinite or NaN |
//! | rounding | parts are joined, and none is subtracted: nothing that has left the window leaves a trace |
//! | state | the samples; of the older ones what all from one to the first of the newer have together |

use serde::{Deserialize, Serialize};

use super::{Blind, age, first_leaves};

/// The number of some samples, their mean, and the sum of the squares of their differences from it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// Welford: with one more.
    #[inline(always)]
    fn add(&mut self, x: f64) {
        self.count += 1.0;
        let off = x - self.mean;
        self.mean += off / self.count;
        self.squares += off * (x - self.mean);
    }

    /// Chan: of both together.
    #[inline(always)]
    fn deviation(self, other: Moments) -> Option<f64> {
        let count = self.count + other.count;
        if count == 0.0 {
            return None;
        }
        let off = other.mean - self.mean;
        let between = match self.count == 0.0 || other.count == 0.0 {
            true => 0.0,
            false => off * off * (self.count / count) * other.count,
        };
        Some(((self.squares + other.squares + between) / count).sqrt())
    }
}

/// The standard deviation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Deviation {
    pub(super) over: u64,
    limit: usize,
    /// The older samples, the oldest at the end, each with what all from it to the first here have.
    older: Vec<(i64, Moments)>,
    newer: Vec<(i64, f64)>,
    newer_moments: Moments,
    pub(super) blind: Blind,
}

impl Deviation {
    pub(crate) fn new(over: u64, limit: usize) -> Deviation {
        Deviation {
            over,
            limit,
            older: Vec::new(),
            newer: Vec::new(),
            newer_moments: Moments::default(),
            blind: Blind::default(),
        }
    }

    fn oldest(&self) -> Option<i64> {
        match self.older.last() {
            Some(&(stamp, _)) => Some(stamp),
            None => self.newer.first().map(|&(stamp, _)| stamp),
        }
    }

    pub(super) fn newest(&self) -> Option<i64> {
        match self.newer.last() {
            Some(&(stamp, _)) => Some(stamp),
            None => self.older.first().map(|&(stamp, _)| stamp),
        }
    }

    fn pop(&mut self) {
        if self.older.is_empty() {
            let mut moments = Moments::default();
            let Deviation { older, newer, .. } = self;
            older.extend(newer.drain(..).rev().map(|(stamp, value)| {
                moments.add(value);
                (stamp, moments)
            }));
            self.newer_moments = Moments::default();
        }
        self.older.pop();
    }

    /// As [`super::SumFloat::row`].
    #[inline(always)]
    pub(crate) fn row(&mut self, now: i64, sample: Option<Option<f64>>) -> Option<f64> {
        while self.oldest().is_some_and(|stamp| age(now, stamp) >= self.over) {
            self.pop();
        }
        match sample {
            Some(Some(value)) => {
                self.newer.push((now, value));
                self.newer_moments.add(value);
                if self.older.len() + self.newer.len() > self.limit
                    && let Some(oldest) = self.oldest()
                {
                    self.pop();
                    self.blind.drop(oldest);
                }
            }
            Some(None) => self.blind.unknown(now),
            None => {}
        }
        let older = self.older.last().map_or(Moments::default(), |&(_, moments)| moments);
        let known = self.blind.is_over(now, self.over);
        older.deviation(self.newer_moments).filter(|_| known)
    }

    /// As [`super::Count::next_change`].
    pub(crate) fn next_change(&self) -> Option<i64> {
        first_leaves(self.oldest(), &self.blind, self.over)
    }

    pub(super) fn bytes(&self) -> usize {
        self.older.capacity() * size_of::<(i64, Moments)>() + self.newer.capacity() * size_of::<(i64, f64)>()
    }
}
