//! Maximum over a sliding window, one row at a time.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use crate::ops::stamps::{BlindSpot, age};

/// Maximum of the values whose age is between `lower` and `upper`. Stamps as in
/// [`window`](crate::ops::window).
///
/// A value is dropped once a later one is at least as great, so that candidates are in order of age and in
/// descending order of value, and the first one is the maximum. Every value is added and removed once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Greatest<T> {
    lower: u64,
    upper: Option<u64>,
    limit: usize,
    /// Values younger than `lower`.
    waiting: VecDeque<(i64, T)>,
    candidates: VecDeque<(i64, T)>,
    blind: BlindSpot,
}

impl<T: Copy + PartialOrd> Greatest<T> {
    pub(crate) fn new(lower: u64, upper: Option<u64>, limit: usize) -> Greatest<T> {
        let (waiting, candidates) = (VecDeque::new(), VecDeque::new());
        Greatest { lower, upper, limit, waiting, candidates, blind: BlindSpot::default() }
    }

    /// Adds the current value.
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
        // Values that never leave need no successor.
        if self.upper.is_some() || self.candidates.is_empty() {
            self.candidates.push_back((stamp, value));
            if self.candidates.len() > self.limit
                && let Some((stamp, _)) = self.candidates.pop_front()
            {
                self.blind.drop(stamp);
            }
        }
    }

    /// The current maximum; none if there is no value, or if one was dropped for lack of room.
    #[inline(always)]
    pub(crate) fn at(&mut self, now: i64) -> Option<T> {
        self.move_to(now);
        if self.is_blind(now) { None } else { self.candidates.front().map(|&(_, value)| value) }
    }

    /// As [`at`](Greatest::at); returns `none` without values, and `unknown` if one was dropped.
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

    /// Earliest time, after that of the last row, at which the maximum changes without a new value. Requires
    /// a `lower` of 0.
    pub(crate) fn next_change(&self) -> Option<i64> {
        let over = self.upper?.checked_add(1)?;
        let leaves = self.candidates.front().and_then(|&(stamp, _)| stamp.checked_add_unsigned(over));
        [leaves, self.blind.leaves(over)].into_iter().flatten().min()
    }

    /// Stamp of the latest value in the window, or of the latest dropped one. Requires a `lower` of 0.
    pub(crate) fn newest(&self) -> Option<i64> {
        self.candidates.back().map(|&(stamp, _)| stamp).max(self.blind.latest())
    }

    /// Memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        (self.waiting.capacity() + self.candidates.capacity()) * size_of::<(i64, T)>()
    }

    /// Number of values dropped for lack of room.
    pub(crate) fn dropped(&self) -> u64 {
        self.blind.dropped
    }
}
