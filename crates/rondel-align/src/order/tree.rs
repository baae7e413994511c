//! Positions of events and their minimum.

use rondel_event::TopicId;
use serde::{Deserialize, Serialize};

/// Position in the total order: that of an event, or the one before all events of a time and topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Position {
    pub(super) time: i64,
    /// Twice the index of the topic, plus one for the events themselves.
    within: u32,
}

impl Position {
    /// The position after all events.
    pub(super) const NEVER: Position = Position { time: i64::MAX, within: u32::MAX };

    /// Returns the position of the events of this time and topic, which are not ordered among each other.
    pub(super) fn event(time: i64, topic: usize) -> Position {
        Position { time, within: 2 * topic as u32 + 1 }
    }

    /// Returns the position before the events of this time and topic.
    pub(super) fn before(time: i64, topic: usize) -> Position {
        Position { time, within: 2 * topic as u32 }
    }

    /// Returns the position before all events of this time.
    pub(super) fn start(time: i64) -> Position {
        Position { time, within: 0 }
    }

    /// Returns the position after all events of this time.
    pub(super) fn end(time: i64) -> Position {
        Position { time, within: u32::MAX }
    }

    pub(super) fn topic(self) -> usize {
        (self.within / 2) as usize
    }

    /// Returns the same position where each topic has this index, if it is there.
    pub(super) fn moved(self, topics: &[Option<TopicId>]) -> Position {
        if self == Position::start(self.time) || self == Position::end(self.time) {
            return self;
        }
        match topics.get(self.topic()).copied().flatten() {
            Some(topic) => Position { within: 2 * topic.0 + (self.within & 1), ..self },
            None => {
                let next = topics.iter().skip(self.topic().saturating_add(1)).flatten().next();
                next.map_or(Position::end(self.time), |next| Position::before(self.time, next.index()))
            }
        }
    }
}

/// A row of positions with their minimum: a complete binary tree in which every node is the minimum of its children.
#[derive(Clone, Debug)]
pub(super) struct PositionTree {
    nodes: Vec<Position>,
    leaves: usize,
}

impl PositionTree {
    pub(super) fn new(len: usize) -> PositionTree {
        let leaves = len.next_power_of_two().max(1);
        PositionTree { nodes: vec![Position::NEVER; 2 * leaves], leaves }
    }

    pub(super) fn earliest(&self) -> Position {
        self.nodes[1]
    }

    pub(super) fn get(&self, leaf: usize) -> Position {
        self.nodes[self.leaves + leaf]
    }

    #[inline]
    pub(super) fn set(&mut self, leaf: usize, position: Position) {
        let mut at = self.leaves + leaf;
        self.nodes[at] = position;
        while at > 1 {
            at /= 2;
            let earliest = self.nodes[2 * at].min(self.nodes[2 * at + 1]);
            // The nodes above do not change then.
            if self.nodes[at] == earliest {
                break;
            }
            self.nodes[at] = earliest;
        }
    }

    /// Returns the first leaf with a position before `position`.
    #[inline]
    pub(super) fn first_before(&self, position: Position) -> Option<usize> {
        if self.nodes[1] >= position {
            return None;
        }
        let mut at = 1;
        while at < self.leaves {
            at *= 2;
            at += usize::from(self.nodes[at] >= position);
        }
        Some(at - self.leaves)
    }

    /// Returns the first leaf after `leaf` with a position before `position`.
    pub(super) fn next_before(&self, leaf: usize, position: Position) -> Option<usize> {
        let mut at = self.leaves + leaf;
        // Upwards to a right sibling with such a leaf, then down to it.
        while at > 1 {
            if at.is_multiple_of(2) && self.nodes[at + 1] < position {
                at += 1;
                while at < self.leaves {
                    at *= 2;
                    at += usize::from(self.nodes[at] >= position);
                }
                return Some(at - self.leaves);
            }
            at /= 2;
        }
        None
    }

    /// Returns the minimum over all leaves of the later of two times: `other` of the leaf, and the time before that of its
    /// position. `other` must not decrease from leaf to leaf. `None` if all leaves are `Position::NEVER`.
    pub(super) fn crossing(&self, other: impl Fn(usize) -> i64) -> Option<i64> {
        if self.nodes[1] == Position::NEVER {
            return None;
        }
        let before = |position: Position| {
            if position == Position::NEVER { i64::MAX } else { position.time.saturating_sub(1) }
        };
        // `left`: the minimum of the leaves to the left.
        let (mut at, mut left) = (1, i64::MAX);
        let mut last = self.leaves - 1;
        let mut width = self.leaves;
        while at < self.leaves {
            width /= 2;
            let with = left.min(before(self.nodes[2 * at]));
            if with <= other(last - width) {
                (at, last) = (2 * at, last - width);
            } else {
                (at, left) = (2 * at + 1, with);
            }
        }
        let with = left.min(before(self.nodes[at]));
        Some(left.min(with.max(other(last))))
    }

    /// Moves the leaf at `from` to `to` and shifts the leaves in between by one.
    pub(super) fn rotate(&mut self, from: usize, to: usize) {
        let (low, high) = (self.leaves + from.min(to), self.leaves + from.max(to));
        if from < to {
            self.nodes[low..=high].rotate_left(1);
        } else {
            self.nodes[low..=high].rotate_right(1);
        }
        let (mut low, mut high) = (low / 2, high / 2);
        while low > 0 {
            for at in low..=high {
                self.nodes[at] = self.nodes[2 * at].min(self.nodes[2 * at + 1]);
            }
            (low, high) = (low / 2, high / 2);
        }
    }
}
