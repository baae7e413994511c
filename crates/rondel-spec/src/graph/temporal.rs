//! Nodes of temporal operators and of changes.

use rondel_event::{Comparison, TopicId};

use super::{Graph, is_empty};
use crate::spec::{Bounds, Expr, ExprId};

impl Graph {
    pub(crate) fn prev(&mut self, a: ExprId) -> ExprId {
        if self.constant(a).is_some() { a } else { self.add(Expr::Prev(a)) }
    }

    pub(crate) fn previously(&mut self, a: ExprId) -> ExprId {
        if self.truth(a) == Some(false) { a } else { self.add(Expr::Previously(a)) }
    }

    pub(crate) fn once(&mut self, bounds: Bounds, a: ExprId) -> ExprId {
        match self.truth(a) {
            _ if is_empty(bounds) => self.bool(false),
            Some(false) => a,
            Some(true) if bounds.lower == 0 => a,
            _ => self.add(Expr::Once(bounds, a)),
        }
    }

    pub(crate) fn historically(&mut self, bounds: Bounds, a: ExprId) -> ExprId {
        match self.truth(a) {
            _ if is_empty(bounds) => self.bool(true),
            Some(true) => a,
            Some(false) if bounds.lower == 0 => a,
            _ => self.add(Expr::Historically(bounds, a)),
        }
    }

    pub(crate) fn since(&mut self, bounds: Bounds, a: ExprId, b: ExprId) -> ExprId {
        match (self.truth(a), self.truth(b)) {
            _ if is_empty(bounds) => self.bool(false),
            (_, Some(false)) => b,
            (_, Some(true)) if bounds.lower == 0 => b,
            // Only the present is left as the witness.
            (Some(false), _) => {
                if bounds.lower == 0 {
                    b
                } else {
                    a
                }
            }
            _ => self.add(Expr::Since(bounds, a, b)),
        }
    }

    pub(crate) fn eventually(&mut self, bounds: Bounds, a: ExprId) -> ExprId {
        match self.truth(a) {
            _ if is_empty(bounds) => self.bool(false),
            Some(false) => a,
            Some(true) if bounds.lower == 0 => a,
            _ => self.add(Expr::Eventually(bounds, a)),
        }
    }

    pub(crate) fn always(&mut self, bounds: Bounds, a: ExprId) -> ExprId {
        match self.truth(a) {
            _ if is_empty(bounds) => self.bool(true),
            Some(true) => a,
            Some(false) if bounds.lower == 0 => a,
            _ => self.add(Expr::Always(bounds, a)),
        }
    }

    pub(crate) fn until(&mut self, bounds: Bounds, a: ExprId, b: ExprId) -> ExprId {
        match (self.truth(a), self.truth(b)) {
            _ if is_empty(bounds) => self.bool(false),
            (_, Some(false)) => b,
            (_, Some(true)) if bounds.lower == 0 => b,
            // Only the present is left as the witness.
            (Some(false), _) if bounds.lower == 0 => b,
            (Some(true), _) => self.eventually(bounds, b),
            _ => self.add(Expr::Until(bounds, a, b)),
        }
    }

    /// Returns a node that is true at a message of one of `topics` that changes the value of `a`.
    pub(crate) fn changed(&mut self, topics: &[TopicId], a: ExprId) -> ExprId {
        let mut updated = self.bool(false);
        for topic in topics {
            let on = self.add(Expr::On(*topic));
            updated = self.or(updated, on);
        }
        let before = self.prev(a);
        let different = self.compare(Comparison::NotEqual, a, before);
        self.and(updated, different)
    }

    pub(crate) fn rising(&mut self, a: ExprId) -> ExprId {
        let before = self.previously(a);
        let not_before = self.not(before);
        self.and(a, not_before)
    }

    pub(crate) fn falling(&mut self, a: ExprId) -> ExprId {
        let before = self.previously(a);
        let not = self.not(a);
        self.and(not, before)
    }
}
