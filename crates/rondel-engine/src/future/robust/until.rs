use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::fold::{Fold, Stretch};
use super::levels::Levels;
use super::stream::RobustPiece;
use crate::future::key::{self, Key};
use crate::future::leaf::Reach;

/// An interval on which both operands are constant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Pair {
    from: Key,
    to: Key,
    left: Levels,
    right: Levels,
}

impl Pair {
    /// A moment, or a single instant between moments.
    fn is_instant(&self) -> bool {
        let at = key::axis(self.from);
        self.from == self.to || at & 1 == 0 && at == key::axis(self.to)
    }

    /// A witness at an instant needs the left operand only before it. In a span there is more of the span before
    /// every witness.
    fn stretch(&self) -> Stretch {
        let until = if self.is_instant() { self.right } else { self.left.and(self.right) };
        Stretch { left: self.left, until }
    }
}

/// `p until[lower, upper] q`, about one place after the other, each when its whole window is known.
///
/// Ahead of the place go two windows: what lies before the interval, in which `p` must hold, and the interval. What
/// they come to is the same until one of them begins or ends with another pair: up to there it is said at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RobustUntil {
    /// From the first place on about which nothing has been said.
    pairs: VecDeque<Pair>,
    /// What lies before the interval: so many of the pairs, from the first on.
    near: Fold,
    near_len: usize,
    /// The interval: the pairs from one number to another.
    far: Fold,
    far_start: usize,
    far_end: usize,
}

impl RobustUntil {
    /// How many pairs wait.
    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Takes what the operands are next.
    pub(super) fn push(&mut self, RobustPiece { from, to, levels: right }: RobustPiece, left: Levels) {
        let mut pair = Pair { from, to, left, right };
        let same = |back: &&mut Pair| (back.left, back.right) == (left, right);
        let at = key::axis(from);
        match self.pairs.back_mut().filter(same) {
            Some(back) if from < to && back.to + 1 == from && !back.is_instant() => back.to = to,
            _ => {
                if from < to && at & 1 == 0 && at < key::axis(to) {
                    self.pairs.push_back(Pair { to: key::last(at), ..pair });
                    pair.from = key::first(at + 1);
                }
                self.pairs.push_back(pair);
            }
        }
    }

    /// Says what it is about all places whose windows are `known` now, to the last.
    pub(super) fn decide(
        &mut self,
        Reach { lower, upper, .. }: Reach,
        known: Key,
        out: &mut impl FnMut(RobustPiece),
    ) {
        let last = key::axis(known + 1) - 1 - upper;
        while let Some(own) = self.pairs.front().copied() {
            let here = key::axis(own.from);
            if here > last {
                break;
            }
            let mut to = key::axis(own.to).min(last);
            while lower > 0
                && let Some(next) = self.pairs.get(self.near_len)
            {
                if key::axis(next.from) >= here + lower {
                    to = to.min(key::axis(next.from) - lower);
                    break;
                }
                self.near.push(Stretch { until: Levels::FALSE, ..next.stretch() });
                self.near_len += 1;
            }
            while let Some(next) = self.pairs.get(self.far_end) {
                if key::axis(next.from) > here + upper {
                    to = to.min(key::axis(next.from) - upper - 1);
                    break;
                }
                self.far.push(next.stretch());
                self.far_end += 1;
            }
            // Where nothing lies before the interval, it begins with the place itself.
            while lower > 0
                && self.far_start < self.far_end
                && let Some(next) = self.pairs.get(self.far_start)
            {
                if key::axis(next.to) >= here + lower {
                    to = to.min(key::axis(next.to) - lower);
                    break;
                }
                self.far.pop();
                self.far_start += 1;
            }
            let until = self.far.get().until;
            // A witness that is now needs nothing else.
            let levels = if lower == 0 { own.right.or(until) } else { self.near.get().left.and(until) };
            let to = own.to.min(key::last(to.max(here)));
            out(RobustPiece { from: own.from, to, levels });
            self.leave(to);
        }
    }

    /// Gives up the first place, if there is one.
    pub(super) fn give_up(&mut self) -> Option<RobustPiece> {
        let Pair { from, to, .. } = *self.pairs.front()?;
        self.leave(to);
        Some(RobustPiece { from, to, levels: Levels::UNKNOWN })
    }

    /// Forgets all up to there, which is in the first pair.
    fn leave(&mut self, to: Key) {
        let Some(own) = self.pairs.front_mut() else { return };
        if to < own.to {
            own.from = to + 1;
            return;
        }
        self.pairs.pop_front();
        if self.near_len > 0 {
            self.near.pop();
            self.near_len -= 1;
        }
        if self.far_start > 0 {
            self.far_start -= 1;
        } else if self.far_end > 0 {
            self.far.pop();
        }
        self.far_end = self.far_end.saturating_sub(1);
    }
}
