use super::tree::{Place, Tree};

/// For every topic the earliest place at which something can still come, as far as that is known without the clock, and
/// how long to wait for it.
///
/// The topics stand in the order of how long they are waited for, the longest first. What the clock lets pass is then
/// always the end of the row, and nobody has to go through it: the first of the row that could still come before an
/// event is also the one to be waited for longest.
#[derive(Clone, Debug)]
pub(super) struct Frontiers {
    row: Tree,
    /// The wait and the topic at each place of the row.
    waits: Vec<(i64, u32)>,
    /// The place of each topic.
    leaves: Vec<u32>,
}

/// A wait without end.
pub(super) const ENDLESS: i64 = i64::MAX;

impl Frontiers {
    pub(super) fn new(waits: impl Iterator<Item = i64>) -> Frontiers {
        let waits: Vec<_> = waits.zip(0_u32..).collect();
        let mut new =
            Frontiers { row: Tree::new(waits.len()), leaves: vec![0; waits.len()], waits: Vec::new() };
        new.waits = waits;
        new.waits.sort_unstable_by_key(|&(wait, topic)| (std::cmp::Reverse(wait), topic));
        for (leaf, &(_, topic)) in (0..).zip(&new.waits) {
            new.leaves[topic as usize] = leaf;
        }
        new
    }

    #[inline]
    pub(super) fn set(&mut self, topic: usize, place: Place) {
        self.row.set(self.leaves[topic] as usize, place);
    }

    /// How long the topic is waited for.
    pub(super) fn wait(&self, topic: usize) -> i64 {
        self.waits[self.leaves[topic] as usize].0
    }

    /// The longest of the waits for topics on which something can come before this place. None: nothing can.
    #[inline]
    pub(super) fn wait_before(&self, place: Place) -> Option<i64> {
        self.row.first_before(place).map(|leaf| self.waits[leaf].0)
    }

    /// The topics on which something can come before this place, and the waits for them, the longest first.
    pub(super) fn before(&self, place: Place) -> impl Iterator<Item = (usize, i64)> {
        let mut leaf = self.row.first_before(place);
        std::iter::from_fn(move || {
            let here = leaf?;
            leaf = self.row.next_before(here, place);
            let (wait, topic) = self.waits[here];
            Some((topic as usize, wait))
        })
    }

    /// Up to what time nothing can come any more when the clock shows `now`. None: nobody is waited for.
    pub(super) fn complete(&self, now: i64) -> Option<i64> {
        // The least, over all topics, of the later of what is known and what the clock says. Along the row the clock
        // says ever more, and the least that is known up to there becomes ever less: it is where they cross.
        let by_clock = |leaf: usize| match self.waits.get(leaf) {
            Some(&(ENDLESS, _)) => i64::MIN,
            Some(&(wait, _)) => now.saturating_sub(wait),
            None => i64::MAX,
        };
        self.row.crossing(by_clock)
    }

    /// Moves the topic to where it belongs with another wait.
    pub(super) fn set_wait(&mut self, topic: usize, wait: i64) {
        let from = self.leaves[topic] as usize;
        let key = |&(wait, topic): &(i64, u32)| (std::cmp::Reverse(wait), topic);
        let new = (wait, topic as u32);
        if self.waits[from] == new {
            return;
        }
        let mut to = self.waits.partition_point(|other| key(other) < key(&new));
        if to > from {
            // It leaves its own place first.
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
