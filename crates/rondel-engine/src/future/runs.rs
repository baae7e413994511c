use serde::{Deserialize, Serialize};

use std::collections::VecDeque;

use super::key::Key;

/// Set of places, as ordered intervals that neither overlap nor touch.
///
/// Optimised for additions at the end and queries near either end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Runs {
    runs: VecDeque<(Key, Key)>,
}

impl Runs {
    /// Empties the set.
    pub(crate) fn clear(&mut self) {
        self.runs.clear();
        self.runs.shrink_to(16);
    }

    /// Adds an interval, and returns the run that now contains it.
    pub(crate) fn add(&mut self, lo: Key, hi: Key) -> (Key, Key) {
        match self.runs.back_mut() {
            Some(back) if back.1 + 1 < lo => {
                self.runs.push_back((lo, hi));
                return (lo, hi);
            }
            Some(back) if back.0 <= lo => {
                back.1 = back.1.max(hi);
                return *back;
            }
            None => {
                self.runs.push_back((lo, hi));
                return (lo, hi);
            }
            _ => {}
        }
        let at = self.runs.partition_point(|run| run.1 + 1 < lo);
        let end = self.runs.partition_point(|run| run.0 <= hi + 1);
        if at == end {
            self.runs.insert(at, (lo, hi));
            return (lo, hi);
        }
        let whole = (lo.min(self.runs[at].0), hi.max(self.runs[end - 1].1));
        self.runs[at] = whole;
        if at + 1 < end {
            self.runs.drain(at + 1..end);
        }
        whole
    }

    /// Returns the runs that reach to `from` or beyond.
    pub(crate) fn reaching(&self, from: Key) -> impl Iterator<Item = (Key, Key)> + '_ {
        // Most often it is the last run.
        let before_last = self.runs.len().saturating_sub(1);
        let at = match self.runs.get(before_last.wrapping_sub(1)) {
            Some(run) if run.1 >= from => self.runs.partition_point(|run| run.1 < from),
            _ => before_last,
        };
        self.runs.range(at..).copied().filter(move |run| run.1 >= from)
    }

    /// Returns the runs, the last one first.
    pub(crate) fn backwards(&self) -> impl Iterator<Item = (Key, Key)> + '_ {
        self.runs.iter().rev().copied()
    }

    /// Returns the run that contains a place.
    pub(crate) fn at(&self, key: Key) -> Option<(Key, Key)> {
        self.reaching(key).next().filter(|run| run.0 <= key)
    }

    /// Returns the end of the first run, which begins before every place.
    pub(crate) fn front_end(&self) -> Option<Key> {
        self.runs.front().map(|run| run.1)
    }

    /// The last run.
    pub(crate) fn back(&self) -> Option<(Key, Key)> {
        self.runs.back().copied()
    }

    /// Removes the last run.
    pub(crate) fn pop_back(&mut self) {
        self.runs.pop_back();
    }

    /// Calls `f` with every part of an interval that is not in the set.
    pub(crate) fn gaps(&self, lo: Key, hi: Key, mut f: impl FnMut(Key, Key)) {
        let mut from = lo;
        for run in self.reaching(lo) {
            if run.0 > hi {
                break;
            }
            if from < run.0 {
                f(from, run.0 - 1);
            }
            from = run.1 + 1;
        }
        if from <= hi {
            f(from, hi);
        }
    }

    /// Removes the runs that end before a place.
    pub(crate) fn forget_before(&mut self, key: Key) {
        while self.runs.front().is_some_and(|run| run.1 < key) {
            self.runs.pop_front();
        }
    }

    /// Number of runs.
    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_equal_set_of_places() {
        let mut x = 0x9E37_79B9_7F4A_7C15_u64;
        let mut random = |below: u64| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((x >> 33) % below) as i128
        };
        for _ in 0..300 {
            let (mut runs, mut set) = (Runs::default(), [false; 80]);
            for _ in 0..random(20) {
                let lo = random(60);
                let hi = lo + random(8);
                let whole = runs.add(lo, hi);
                (lo..=hi).for_each(|i| set[i as usize] = true);
                assert!(whole.0 <= lo && hi <= whole.1);
                assert_eq!(runs.at(lo), Some(whole));
                let mut covered = set;
                runs.gaps(0, 79, |lo, hi| (lo..=hi).for_each(|i| covered[i as usize] ^= true));
                assert_eq!(covered, [true; 80]);
                for i in 0..80_i128 {
                    assert_eq!(runs.at(i).is_some(), set[i as usize]);
                    let first = (i as usize..80).find(|&j| set[j]);
                    assert_eq!(runs.reaching(i).next().map(|run| run.0.max(i)), first.map(|j| j as i128));
                }
            }
        }
    }
}
