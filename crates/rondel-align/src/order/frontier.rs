//! Earliest possible positions of future events.

use super::tree::{Position, PositionTree};

/// For every topic the earliest position at which an event can still arrive, as far as known without the clock, and the
/// wait for it.
///
/// The topics are sorted by their wait, the longest first. The topics whose wait is over at some time are then always at
/// the end of the row, so that no search is needed: of the topics that can have an event before a position, the first in
/// the row has the longest wait.
#[derive(Clone, Debug)]
pub(super) struct Frontiers {
    row: PositionTree,
    /// Wait and topic at each index of the row.
    waits: Vec<(i64, u32)>,
    /// Index of each topic in the row.
    leaves: Vec<u32>,
}

/// A wait without limit.
pub(super) const ENDLESS: i64 = i64::MAX;

impl Frontiers {
    pub(super) fn new(waits: impl Iterator<Item = i64>) -> Frontiers {
        let waits: Vec<_> = waits.zip(0_u32..).collect();
        let mut new = Frontiers {
            row: PositionTree::new(waits.len()),
            leaves: vec![0; waits.len()],
            waits: Vec::new(),
        };
        new.waits = waits;
        new.waits.sort_unstable_by_key(|&(wait, topic)| (std::cmp::Reverse(wait), topic));
        for (leaf, &(_, topic)) in (0..).zip(&new.waits) {
            new.leaves[topic as usize] = leaf;
        }
        new
    }

    #[inline]
    pub(super) fn set(&mut self, topic: usize, position: Position) {
        self.row.set(self.leaves[topic] as usize, position);
    }

    /// Returns the wait for a topic.
    pub(super) fn wait(&self, topic: usize) -> i64 {
        self.waits[self.leaves[topic] as usize].0
    }

    /// Returns the longest wait for the topics that can have an event before a position; `None` if there are none.
    #[inline]
    pub(super) fn wait_before(&self, position: Position) -> Option<i64> {
        self.row.first_before(position).map(|leaf| self.waits[leaf].0)
    }

    /// Returns the topics that can have an event before a position with their waits, the longest first.
    pub(super) fn before(&self, position: Position) -> impl Iterator<Item = (usize, i64)> {
        let mut leaf = self.row.first_before(position);
        std::iter::from_fn(move || {
            let here = leaf?;
            leaf = self.row.next_before(here, position);
            let (wait, topic) = self.waits[here];
            Some((topic as usize, wait))
        })
    }

    /// Returns the time up to which no event can arrive any more when the clock shows `now`; `None` if no topic is waited
    /// for.
    pub(super) fn complete(&self, now: i64) -> Option<i64> {
        // The minimum over all topics of the later of two times: the known one and the one given by the clock. Along the
        // row the time given by the clock increases and the minimum of the known ones decreases: the result is where
        // they cross.
        let by_clock = |leaf: usize| match self.waits.get(leaf) {
            Some(&(ENDLESS, _)) => i64::MIN,
            Some(&(wait, _)) => now.saturating_sub(wait),
            None => i64::MAX,
        };
        self.row.crossing(by_clock)
    }

    /// Changes the wait for a topic and moves it in the row.
    pub(super) fn set_wait(&mut self, topic: usize, wait: i64) {
        let from = self.leaves[topic] as usize;
        let key = |&(wait, topic): &(i64, u32)| (std::cmp::Reverse(wait), topic);
        let new = (wait, topic as u32);
        if self.waits[from] == new {
            return;
        }
        let mut to = self.waits.partition_point(|other| key(other) < key(&new));
        if to > from {
            // Its own entry is removed first.
            to -= 1;
        }
        self.waits[from] = new;
        if from < to {
            self.waits[from..=to].rotate_left(1);
        } else {
            self.waits[to..=from].rotate_right(1);
        }
        self.row.rotate(from, to);
        for leaf in from.min(to)..=from.max(to) {
            self.leaves[self.waits[leaf].1 as usize] = leaf as u32;
        }
    }
}
