//! `integral(x)` over a window: the area below the lines from each of its samples to the next, in seconds.
//!
//! | | |
//! |---|---|
//! | meaning | the sum of (a + b) / 2 · seconds over samples a and b that follow each other; 0 of one or none |
//! | unknown | while a sample is unknown |
//! | rounding | as that of a sum: added up anew in twice the precision, nothing is subtracted |
//! | state | the samples; of the older ones the area from one to the first of the newer |

use serde::{Deserialize, Serialize};

use super::{Blind, Twofold, age, first_leaves};

/// The integral.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Integral {
    pub(super) over: u64,
    limit: usize,
    /// The older samples, the oldest at the end, each with the area from it to the first here.
    older: Vec<(i64, f64, Twofold)>,
    newer: Vec<(i64, f64)>,
    newer_area: Twofold,
    pub(super) blind: Blind,
}

/// The area between two samples, the unit being that of the value by a nanosecond.
#[inline(always)]
fn area((from, a): (i64, f64), (to, b): (i64, f64)) -> f64 {
    // At one time there is no area, not even below what is infinite.
    match age(to, from) {
        0 => 0.0,
        nanos => (a / 2.0 + b / 2.0) * nanos as f64,
    }
}

impl Integral {
    pub(crate) fn new(over: u64, limit: usize) -> Integral {
        Integral {
            over,
            limit,
            older: Vec::new(),
            newer: Vec::new(),
            newer_area: Twofold::default(),
            blind: Blind::default(),
        }
    }

    fn oldest(&self) -> Option<i64> {
        match self.older.last() {
            Some(&(stamp, ..)) => Some(stamp),
            None => self.newer.first().map(|&(stamp, _)| stamp),
        }
    }

    pub(super) fn newest(&self) -> Option<i64> {
        match self.newer.last() {
            Some(&(stamp, _)) => Some(stamp),
            None => self.older.first().map(|&(stamp, ..)| stamp),
        }
    }

    fn pop(&mut self) {
        if self.older.is_empty() {
            let mut sum = Twofold::default();
            let mut later: Option<(i64, f64)> = None;
            let Integral { older, newer, .. } = self;
            older.extend(newer.drain(..).rev().map(|sample| {
                if let Some(later) = later {
                    sum.add(area(sample, later));
                }
                later = Some(sample);
                (sample.0, sample.1, sum)
            }));
            self.newer_area = Twofold::default();
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
                if let Some(&last) = self.newer.last() {
                    self.newer_area.add(area(last, (now, value)));
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
        let mut sum = self.older.last().map_or(Twofold::default(), |older| older.2);
        if let (Some(&(stamp, value, _)), Some(&later)) = (self.older.first(), self.newer.first()) {
            sum.add(area((stamp, value), later));
        }
        let known = self.blind.is_over(now, self.over);
        known.then(|| sum.plus(self.newer_area) / 1e9)
    }

    /// As [`super::Count::next_change`].
    pub(crate) fn next_change(&self) -> Option<i64> {
        first_leaves(self.oldest(), &self.blind, self.over)
    }

    pub(super) fn bytes(&self) -> usize {
        self.older.capacity() * size_of::<(i64, f64, Twofold)>()
            + self.newer.capacity() * size_of::<(i64, f64)>()
    }
}
