//! Sliding-window aggregation for aggregates that can be merged but not subtracted.
//!
//! Nothing is subtracted, so that samples that have left the window leave no trace, be they large, infinite
//! or NaN. The algorithm is Two-Stacks (Tangwongsan, Hirzel, Schneider, "In-order sliding-window aggregation
//! in worst-case constant time", 2021): each older sample stores the aggregate from it to the newest older
//! one, and the newer samples share one aggregate. Once the older samples have left, the newer ones become
//! the older ones.

use serde::{Deserialize, Serialize};

use super::{BlindSpot, age, first_leaves};

/// Aggregate of consecutive samples. The default is that of no samples.
pub(crate) trait Aggregate: Copy + Default {
    /// Adds a sample.
    fn add(&mut self, _value: f64) {}

    /// Adds the contribution of two consecutive samples, each with its stamp.
    fn add_between(&mut self, _earlier: (i64, f64), _later: (i64, f64)) {}

    /// The result for these samples and newer ones, if it is known.
    fn measured(self, newer: Self) -> Option<f64>;
}

/// The samples of a window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Stacks<T> {
    pub(super) over: u64,
    limit: usize,
    /// Stamps of the older samples, oldest last, each with the aggregate from it to the first here.
    older: Vec<(i64, T)>,
    /// The newest of the older samples; it may have left the window.
    last_older: (i64, f64),
    /// The newer samples, in order.
    newer: Vec<(i64, f64)>,
    of_newer: T,
    pub(super) blind: BlindSpot,
}

impl<T: Aggregate> Stacks<T> {
    pub(crate) fn new(over: u64, limit: usize) -> Stacks<T> {
        Stacks {
            over,
            limit,
            older: Vec::new(),
            last_older: (0, 0.0),
            newer: Vec::new(),
            of_newer: T::default(),
            blind: BlindSpot::default(),
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
        if self.older.is_empty()
            && let Some(&last) = self.newer.last()
        {
            let (mut all, mut later) = (T::default(), None);
            self.older.extend(self.newer.drain(..).rev().map(|sample| {
                all.add(sample.1);
                if let Some(later) = later.replace(sample) {
                    all.add_between(sample, later);
                }
                (sample.0, all)
            }));
            (self.last_older, self.of_newer) = (last, T::default());
        }
        self.older.pop();
    }

    /// The result at a row, if it is known. `Some(None)` is a sample with an unknown value.
    #[inline(always)]
    pub(crate) fn row(&mut self, now: i64, sample: Option<Option<f64>>) -> Option<f64> {
        while self.oldest().is_some_and(|stamp| age(now, stamp) >= self.over) {
            self.pop();
        }
        match sample {
            Some(Some(value)) => {
                self.of_newer.add(value);
                if let Some(&last) = self.newer.last() {
                    self.of_newer.add_between(last, (now, value));
                }
                self.newer.push((now, value));
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
        if !self.blind.is_over(now, self.over) {
            return None;
        }
        let mut older = T::default();
        if let Some(&(_, all)) = self.older.last() {
            older = all;
            if let Some(&first) = self.newer.first() {
                older.add_between(self.last_older, first);
            }
        }
        older.measured(self.of_newer)
    }

    /// As [`super::Count::next_change`].
    pub(crate) fn next_change(&self) -> Option<i64> {
        first_leaves(self.oldest(), &self.blind, self.over)
    }

    pub(super) fn bytes(&self) -> usize {
        self.older.capacity() * size_of::<(i64, T)>() + self.newer.capacity() * size_of::<(i64, f64)>()
    }
}
