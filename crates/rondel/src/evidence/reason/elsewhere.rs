//! Which moment makes an operator true or false that looks at other moments.

use std::collections::VecDeque;

use rondel_event::Timestamp;
use rondel_spec::{Bounds, Expr, TimeModel};

use super::Truths;
use crate::evidence::Moment;

/// What such an operator looks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Look {
    /// A moment before at which its operand has this truth: then it has that truth too.
    Back(bool),
    /// A moment before at which the second operand is true, and the first since then.
    Since,
    /// As [`Look::Back`], of moments to come.
    Ahead(bool),
    /// A moment to come at which the second operand is true, and until then the first.
    Until,
}

impl Look {
    /// That of a node, if it looks at other moments, and how far.
    pub(super) fn of(node: &Expr) -> Option<(Look, Bounds)> {
        Some(match *node {
            Expr::Once(bounds, _) => (Look::Back(true), bounds),
            Expr::Historically(bounds, _) => (Look::Back(false), bounds),
            Expr::Since(bounds, ..) => (Look::Since, bounds),
            Expr::Eventually(bounds, _) => (Look::Ahead(true), bounds),
            Expr::Always(bounds, _) => (Look::Ahead(false), bounds),
            Expr::Until(bounds, ..) => (Look::Until, bounds),
            _ => return None,
        })
    }
}

/// The moments that are kept, and what was true at them.
pub(super) struct Past<'a> {
    pub(super) moments: &'a VecDeque<Moment>,
    pub(super) truths: &'a [Truths],
    /// The moment that the violation is about, or the last before it.
    pub(super) own: usize,
    /// When that was, if it is not the last.
    pub(super) about: Option<Timestamp>,
    pub(super) time: TimeModel,
    pub(super) by_key: bool,
}

impl Past<'_> {
    /// The operands of an operator that make it what it is at a moment, each with the moment at which it
    /// does; none where it is so because there is no such moment. Nothing if that is not known.
    pub(super) fn find(
        &self,
        look: Look,
        bounds: Bounds,
        operands: &[usize],
        at: usize,
        truth: Option<bool>,
    ) -> Option<Vec<(usize, usize)>> {
        let (truth, &first, &last) = (truth?, operands.first()?, operands.last()?);
        match look {
            Look::Back(wanted) | Look::Ahead(wanted) if truth != wanted => Some(Vec::new()),
            Look::Back(wanted) => Some(vec![(last, self.before(last, wanted, bounds, at)?)]),
            Look::Ahead(wanted) => Some(vec![(last, self.ahead(last, wanted, bounds, at)?)]),
            Look::Since => {
                let begun = self.before(last, true, bounds, at);
                match (truth, begun) {
                    (true, begun) => Some(vec![(last, begun?)]),
                    (false, None) => Some(Vec::new()),
                    (false, Some(begun)) => {
                        let failed = (begun + 1..=at).find(|i| self.is(first, false, *i))?;
                        Some(vec![(last, begun), (first, failed)])
                    }
                }
            }
            Look::Until => {
                let ended = self.ahead(last, true, bounds, at);
                if truth {
                    return Some(vec![(last, ended?)]);
                }
                let end = ended.unwrap_or(self.moments.len());
                match (at..end).find(|i| self.is(first, false, *i)) {
                    Some(failed) => Some(vec![(first, failed)]),
                    None => ended.is_none().then(Vec::new),
                }
            }
        }
    }

    fn is(&self, node: usize, wanted: bool, moment: usize) -> bool {
        self.truths[moment][node] == Some(wanted)
    }

    /// Where a moment is, in the unit of the bounds.
    fn place(&self, moment: usize) -> Option<i128> {
        match self.time {
            TimeModel::Steps if self.by_key => None,
            TimeModel::Steps => self.moments[moment].step.map(i128::from),
            TimeModel::Points | TimeModel::Dense => {
                let about = self.about.filter(|_| moment == self.own);
                Some(about.unwrap_or(self.moments[moment].time).as_nanos().into())
            }
        }
    }

    /// The latest moment before, or this one, from which on a node has this truth within the bounds.
    fn before(&self, node: usize, wanted: bool, bounds: Bounds, at: usize) -> Option<usize> {
        (0..=at).rev().filter(|i| self.is(node, wanted, *i)).find(|&i| {
            let Some((from, now)) = self.place(i).zip(self.place(at)) else { return bounds.lower == 0 };
            // It lasts until the moment that follows.
            let until = if i == at { Some(now) } else { self.place(i + 1) };
            let reaches = |upper: u64| {
                let edge = now - i128::from(upper);
                from >= edge || until.is_some_and(|until| until > edge)
            };
            now - from >= i128::from(bounds.lower) && bounds.upper.is_none_or(reaches)
        })
    }

    /// The first moment to come, or this one, from which on a node has this truth within the bounds.
    fn ahead(&self, node: usize, wanted: bool, bounds: Bounds, at: usize) -> Option<usize> {
        (at..self.moments.len()).filter(|i| self.is(node, wanted, *i)).find(|&i| {
            let Some((from, now)) = self.place(i).zip(self.place(at)) else { return bounds.lower == 0 };
            let edge = now + i128::from(bounds.lower);
            let until = (i + 1 < self.moments.len()).then(|| self.place(i + 1)).flatten();
            let lasts = from >= edge || until.is_none_or(|until| until > edge);
            lasts && bounds.upper.is_none_or(|upper| from - now <= i128::from(upper))
        })
    }
}
