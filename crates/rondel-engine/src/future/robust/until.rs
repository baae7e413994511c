use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::fold::{Fold, Stretch};
use super::levels::Levels;
use super::stream::RobustPiece;
use crate::future::key::{self, Key};
use crate::future::until::Reach;

/// Interval on which both operands are constant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Pair {
    from: Key,
    to: Key,
    left: Levels,
    right: Levels,
}

impl Pair {
    /// Whether it is a time point, or a single instant between time points.
    fn is_instant(&self) -> bool {
        let at = key::axis(self.from);
        self.from == self.to || at & 1 == 0 && at == key::axis(self.to)
    }

    /// A witness at an instant needs the left operand only before it. In an open interval, part of the
    /// interval precedes every witness.
    fn stretch(&self) -> Stretch {
        let until = if self.is_instant() { self.right } else { self.left.and(self.right) };
        Stretch { left: self.left, until }
    }
}

/// `p until[lower, upper] q` at one place after the other, each when its whole window is known.
///
/// Two windows lie ahead of the place: the part before the interval, in which `p` must hold, and the
/// interval. Their values are constant until one of them gains or loses a pair; up to there the result is
/// emitted at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RobustUntil {
    /// Pairs from the first undecided place on.
    pairs: VecDeque<Pair>,
    /// Fold of the first `near_len` pairs, which lie before the interval.
    near: Fold,
    near_len: usize,
    /// Fold of the pairs `far_start..far_end`, the interval.
    far: Fold,
    far_start: usize,
    far_end: usize,
}

impl RobustUntil {
    /// Number of buffered pairs.
    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Adds the next values of the operands.
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

    /// Emits the values at all places whose windows are complete, where `known` is the last known place.
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
            // With lower bound 0 the interval begins with the place itself.
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
            // A witness at the place itself needs no left operand.
            let levels = if lower == 0 { own.right.or(until) } else { self.near.get().left.and(until) };
            let to = own.to.min(key::last(to.max(here)));
            out(RobustPiece { from: own.from, to, levels });
            self.leave(to);
        }
    }

    /// Drops the first pair, if there is one.
    pub(super) fn give_up(&mut self) -> Option<RobustPiece> {
        let Pair { from, to, .. } = *self.pairs.front()?;
        self.leave(to);
        Some(RobustPiece { from, to, levels: Levels::UNKNOWN })
    }

    /// Drops all places up to `to`, which lies in the first pair.
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
