//! What the samples of a window have together, where it can be joined and not taken apart.
//!
//! Nothing is ever subtracted: what has left the window leaves no trace, be it large, infinite or NaN. The samples are in
//! two stacks (Tangwongsan, Hirzel, Schneider, "In-order sliding-window aggregation in worst-case constant time", 2021, call
//! this algorithm Two-Stacks): of each of the older ones it is kept what all from it to the last of them have, and of the
//! newer ones what all of them have. Once the older ones are used up, the newer ones become them.

use serde::{Deserialize, Serialize};

use super::{BlindSpot, age, first_leaves};

/// What some samples that follow each other have together. The default is what no samples have.
pub(crate) trait Together: Copy + Default {
    /// Adds a sample.
    fn add(&mut self, _value: f64) {}

    /// Adds what is between two samples that follow each other, each with its stamp.
    fn add_between(&mut self, _earlier: (i64, f64), _later: (i64, f64)) {}

    /// The measurement of these samples and newer ones; unknown for instance of none.
    fn measured(self, newer: Self) -> Option<f64>;
}

/// The samples of a window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Stacks<T> {
    pub(super) over: u64,
    limit: usize,
    /// The stamps of the older samples, the oldest at the end, each with what all from it to the first here have.
    older: Vec<(i64, T)>,
    /// The newest of the older samples, which may have left the window.
    last_older: (i64, f64),
    /// The others, in order.
    newer: Vec<(i64, f64)>,
    of_newer: T,
    pub(super) blind: BlindSpot,
}

impl<T: Together> Stacks<T> {
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

    /// The measurement at a row, if it is known. The sample may be one whose value is unknown.
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
