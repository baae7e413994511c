use serde::{Deserialize, Serialize};

/// A place in the order of everything: that of an event, or the place before all events of a time and a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) time: i64,
    /// Twice the position of the topic, and one more for the events themselves.
    within: u32,
}

impl Place {
    /// After all events.
    pub(super) const NEVER: Place = Place { time: i64::MAX, within: u32::MAX };

    /// Of the events of this time and topic. They have no order among each other.
    pub(super) fn event(time: i64, topic: usize) -> Place {
        Place { time, within: 2 * topic as u32 + 1 }
    }

    /// Before the events of this time and topic.
    pub(super) fn before(time: i64, topic: usize) -> Place {
        Place { time, within: 2 * topic as u32 }
    }

    /// Before all events of this time.
    pub(super) fn start(time: i64) -> Place {
        Place { time, within: 0 }
    }

    /// After all events of this time.
    pub(super) fn end(time: i64) -> Place {
        Place { time, within: u32::MAX }
    }

    pub(super) fn topic(self) -> usize {
        (self.within / 2) as usize
    }
}

/// Places in a row, and the earliest of them: a complete binary tree in which every node is the earliest below it.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: Vec<Place>,
    leaves: usize,
}

impl Tree {
    pub(super) fn new(len: usize) -> Tree {
        let leaves = len.next_power_of_two().max(1);
        Tree { nodes: vec![Place::NEVER; 2 * leaves], leaves }
    }

    pub(super) fn earliest(&self) -> Place {
        self.nodes[1]
    }

    pub(super) fn get(&self, leaf: usize) -> Place {
        self.nodes[self.leaves + leaf]
    }

    #[inline]
    pub(super) fn set(&mut self, leaf: usize, place: Place) {
        let mut at = self.leaves + leaf;
        self.nodes[at] = place;
        while at > 1 {
            at /= 2;
            let earliest = self.nodes[2 * at].min(self.nodes[2 * at + 1]);
            // What is above depends on this node alone.
            if self.nodes[at] == earliest {
                break;
            }
            self.nodes[at] = earliest;
        }
    }

    /// The first leaf with a place before this one.
    #[inline]
    pub(super) fn first_before(&self, place: Place) -> Option<usize> {
        if self.nodes[1] >= place {
            return None;
        }
        let mut at = 1;
        while at < self.leaves {
            at *= 2;
            at += usize::from(self.nodes[at] >= place);
        }
        Some(at - self.leaves)
    }

    /// The next leaf after this one with a place before `place`.
    pub(super) fn next_before(&self, leaf: usize, place: Place) -> Option<usize> {
        let mut at = self.leaves + leaf;
        // Up until there is something on the right, then down again.
        while at > 1 {
            if at.is_multiple_of(2) && self.nodes[at + 1] < place {
                at += 1;
                while at < self.leaves {
                    at *= 2;
                    at += usize::from(self.nodes[at] >= place);
                }
                return Some(at - self.leaves);
            }
            at /= 2;
        }
        None
    }

    /// The least, over all leaves, of the later of `other` and the time before that of the leaf's place; `other` must
    /// not decrease from leaf to leaf. None: all leaves are `Place::NEVER`.
    pub(super) fn crossing(&self, other: impl Fn(usize) -> i64) -> Option<i64> {
        if self.nodes[1] == Place::NEVER {
            return None;
        }
        let before =
            |place: Place| if place == Place::NEVER { i64::MAX } else { place.time.saturating_sub(1) };
        // The least of all leaves to the left, and of those and the leaf itself.
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

    /// Moves the leaf at `from` to `to`, those between by one towards where it was.
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
