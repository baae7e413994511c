//! Messages over which the steps of a shape run together: one, successive ones, or ones with others between them.

use rondel_event::Rows;

use super::super::words::Words;

/// Line and row of a message among others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Goal {
    pub(crate) row: u8,
    pub(crate) line: u8,
}

/// Messages over which steps run together.
pub(super) trait Messages {
    /// Advances the messages: given the row and the position, `passed` returns the next position, or `None` to drop the
    /// message.
    fn each(&mut self, passed: impl FnMut(usize, usize) -> Option<usize>);

    /// Keeps the messages with these words, each at an offset from the position.
    fn keep(&mut self, words: Words<'_>, wanted: impl Iterator<Item = (usize, u64)> + Clone);
}

/// Returns zero if the text has these words, each at an offset from the position. Without a branch for each, since
/// nearly always all are equal.
#[inline(always)]
fn differ(words: Words<'_>, at: usize, wanted: impl Iterator<Item = (usize, u64)>) -> u64 {
    wanted.fold(0, |differs, (offset, word)| differs | words.at(at + offset) ^ word)
}

/// One message.
pub(super) struct Single {
    /// Current position; `None` if the message differs.
    pub(super) place: Option<usize>,
    /// Row of the block.
    pub(super) row: usize,
}

impl Messages for Single {
    #[inline(always)]
    fn each(&mut self, mut passed: impl FnMut(usize, usize) -> Option<usize>) {
        self.place = self.place.and_then(|at| passed(self.row, at));
    }

    #[inline(always)]
    fn keep(&mut self, words: Words<'_>, wanted: impl Iterator<Item = (usize, u64)> + Clone) {
        self.place = self.place.filter(|at| differ(words, *at, wanted) == 0);
    }
}

/// Successive messages in successive rows, up to the first that differs.
pub(super) struct Consecutive<'p> {
    pub(super) places: &'p mut [usize],
    /// Number of messages that have not differed.
    pub(super) count: usize,
    /// Row of the first message.
    pub(super) first: usize,
}

impl Messages for Consecutive<'_> {
    #[inline(always)]
    fn each(&mut self, mut passed: impl FnMut(usize, usize) -> Option<usize>) {
        for (i, place) in self.places[..self.count].iter_mut().enumerate() {
            match passed(self.first + i, *place) {
                Some(end) => *place = end,
                None => {
                    self.count = i;
                    return;
                }
            }
        }
    }

    #[inline(always)]
    fn keep(&mut self, words: Words<'_>, wanted: impl Iterator<Item = (usize, u64)> + Clone) {
        let places = &self.places[..self.count];
        self.count =
            places.iter().position(|at| differ(words, *at, wanted.clone()) != 0).unwrap_or(self.count);
    }
}

/// Messages with others between them: each that differs is removed.
pub(super) struct Group<'p> {
    /// Current position of each.
    pub(super) places: &'p mut [usize],
    pub(super) goals: &'p mut [Goal],
}

impl Group<'_> {
    #[inline(always)]
    pub(super) fn each(&mut self, mut passed: impl FnMut(Goal, usize) -> Option<usize>) {
        let mut failed: Rows = 0;
        for (i, (place, goal)) in self.places.iter_mut().zip(&*self.goals).enumerate() {
            match passed(*goal, *place) {
                Some(at) => *place = at,
                None => failed |= 1 << i,
            }
        }
        if failed != 0 {
            self.take_out(failed);
        }
    }

    #[inline(never)]
    fn take_out(&mut self, failed: Rows) {
        let mut kept = 0;
        for i in (0..self.places.len()).filter(|i| failed >> i & 1 == 0) {
            (self.places[kept], self.goals[kept]) = (self.places[i], self.goals[i]);
            kept += 1;
        }
        self.places = &mut std::mem::take(&mut self.places)[..kept];
        self.goals = &mut std::mem::take(&mut self.goals)[..kept];
    }
}

impl Messages for Group<'_> {
    #[inline(always)]
    fn each(&mut self, mut passed: impl FnMut(usize, usize) -> Option<usize>) {
        Group::each(self, |goal, at| passed(usize::from(goal.row), at));
    }

    #[inline(always)]
    fn keep(&mut self, words: Words<'_>, wanted: impl Iterator<Item = (usize, u64)> + Clone) {
        Group::each(self, |_, at| (differ(words, at, wanted.clone()) == 0).then_some(at));
    }
}
