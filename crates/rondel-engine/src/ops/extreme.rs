//! The greatest value within bounds of the present, one row at a time.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use crate::ops::stamps::{BlindSpot, age};

/// The greatest of the values that are at least `lower` and at most `upper` old. Stamps as in
/// [`window`](crate::ops::window).
///
/// A value to which a later one is at least equal will never be the greatest again. What remains is
/// in order of age, and in order of value: the first is the greatest. Every value is put in once and
/// taken out once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Greatest<T> {
    lower: u64,
    upper: Option<u64>,
    limit: usize,
    /// Those that are not `lower` old yet.
    waiting: VecDeque<(i64, T)>,
    candidates: VecDeque<(i64, T)>,
    blind: BlindSpot,
}

impl<T: Copy + PartialOrd> Greatest<T> {
    pub(crate) fn new(lower: u64, upper: Option<u64>, limit: usize) -> Greatest<T> {
        let (waiting, candidates) = (VecDeque::new(), VecDeque::new());
        Greatest { lower, upper, limit, waiting, candidates, blind: BlindSpot::default() }
    }

    /// Adds the value of the present.
    #[inline(always)]
    pub(crate) fn push(&mut self, now: i64, value: T) {
        if self.lower == 0 {
            self.admit(now, value);
        } else {
            self.waiting.push_back((now, value));
            if self.waiting.len() > self.limit
                && let Some((stamp, _)) = self.waiting.pop_front()
            {
                self.blind.drop(stamp);
            }
        }
    }

    #[inline(always)]
    fn admit(&mut self, stamp: i64, value: T) {
        while self.candidates.back().is_some_and(|&(_, other)| other <= value) {
            self.candidates.pop_back();
        }
        // What never leaves needs no successor.
        if self.upper.is_some() || self.candidates.is_empty() {
            self.candidates.push_back((stamp, value));
            if self.candidates.len() > self.limit
                && let Some((stamp, _)) = self.candidates.pop_front()
            {
                self.blind.drop(stamp);
            }
        }
    }

    /// The greatest at the present; none if there is none, or if it is unknown because there were
    /// too many.
    #[inline(always)]
    pub(crate) fn at(&mut self, now: i64) -> Option<T> {
        self.move_to(now);
        if self.is_blind(now) { None } else { self.candidates.front().map(|&(_, value)| value) }
    }

    /// As [`at`](Greatest::at); `none` where there is none, `unknown` where there were too many.
    #[inline(always)]
    pub(crate) fn at_or(&mut self, now: i64, none: T, unknown: T) -> T {
        self.move_to(now);
        if self.is_blind(now) { unknown } else { self.candidates.front().map_or(none, |&(_, value)| value) }
    }

    #[inline(always)]
    fn is_blind(&mut self, now: i64) -> bool {
        match self.upper {
            Some(upper) => !self.blind.is_over(now, upper.saturating_add(1)),
            None => self.blind.dropped > 0,
        }
    }

    #[inline(always)]
    fn move_to(&mut self, now: i64) {
        while let Some(&(stamp, value)) = self.waiting.front() {
            if age(now, stamp) < self.lower {
                break;
            }
            self.waiting.pop_front();
            self.admit(stamp, value);
        }
        if let Some(upper) = self.upper {
            while self.candidates.front().is_some_and(|&(stamp, _)| age(now, stamp) > upper) {
                self.candidates.pop_front();
            }
        }
    }

    /// The earliest time, after that of the last row, at which it changes by itself. Only for a
    /// `lower` of 0.
    pub(crate) fn next_change(&self) -> Option<i64> {
        let over = self.upper?.checked_add(1)?;
        let leaves = self.candidates.front().and_then(|&(stamp, _)| stamp.checked_add_unsigned(over));
        [leaves, self.blind.leaves(over)].into_iter().flatten().min()
    }

    /// The stamp of the latest value that counts, or the latest that there was no room for. Only for a
    /// `lower` of 0.
    pub(crate) fn newest(&self) -> Option<i64> {
        self.candidates.back().map(|&(stamp, _)| stamp).max(self.blind.latest())
    }

    /// How many bytes are kept.
    pub(crate) fn bytes(&self) -> usize {
        (self.waiting.capacity() + self.candidates.capacity()) * size_of::<(i64, T)>()
    }

    /// How many values there was no room for.
    pub(crate) fn dropped(&self) -> u64 {
        self.blind.dropped
    }
}
