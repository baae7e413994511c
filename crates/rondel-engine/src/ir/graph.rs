//! The program as a graph with hash-consed nodes: common subformulas are one node.

use std::hash::{DefaultHasher, Hash, Hasher};

use hashbrown::HashTable;

use crate::ir::node::Node;
use crate::ir::wire::{Halves, NodeId, Wire};

/// Distinct nodes, operands before their users.
#[derive(Debug)]
pub(crate) struct Graph {
    nodes: Vec<Node>,
    /// Hash table of the nodes.
    index: HashTable<(u64, NodeId)>,
    overflow: bool,
}

impl Graph {
    /// A wire has 31 bits for its node.
    pub(crate) const LIMIT: usize = 1 << 31;

    pub(crate) fn new() -> Graph {
        let mut graph = Graph { nodes: Vec::new(), index: HashTable::new(), overflow: false };
        graph.add(Node::False);
        graph
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Whether the limit of nodes was exceeded; the graph is then invalid.
    pub(crate) fn has_overflowed(&self) -> bool {
        self.overflow
    }

    /// Adds a node, or finds the equal one.
    pub(crate) fn add(&mut self, node: Node) -> NodeId {
        let mut hasher = DefaultHasher::new();
        node.hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(&(_, id)) = self.index.find(hash, |(_, id)| self.nodes[id.index()] == node) {
            return id;
        }
        if self.nodes.len() >= Graph::LIMIT {
            self.overflow = true;
            return NodeId(0);
        }
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(node);
        self.index.insert_unique(hash, (hash, id), |(hash, _)| *hash);
        id
    }

    pub(crate) fn wire(&mut self, node: Node) -> Wire {
        Wire::of(self.add(node))
    }

    pub(crate) fn and(&mut self, a: Wire, b: Wire) -> Wire {
        Wire::both(a, b).unwrap_or_else(|(a, b)| self.wire(Node::And(a, b)))
    }

    pub(crate) fn or(&mut self, a: Wire, b: Wire) -> Wire {
        !self.and(!a, !b)
    }

    pub(crate) fn since(&mut self, p: Wire, q: Wire) -> Wire {
        if q == Wire::FALSE || q == Wire::TRUE || p == Wire::FALSE || p == q {
            q
        } else {
            self.wire(Node::Since(p, q))
        }
    }

    /// `once q`: true at this position or an earlier one.
    pub(crate) fn ever(&mut self, q: Wire) -> Wire {
        self.since(Wire::TRUE, q)
    }

    pub(crate) fn previously(&mut self, x: Wire) -> Wire {
        self.delayed(x, Wire::FALSE, 1)
    }

    pub(crate) fn recently(&mut self, q: Wire, span: u64) -> Wire {
        if q == Wire::FALSE || q == Wire::TRUE || span == 0 { q } else { self.wire(Node::Recently(q, span)) }
    }

    /// `of` delayed by `by` positions; false where there is none.
    pub(crate) fn delayed(&mut self, of: Wire, forget: Wire, by: u64) -> Wire {
        match by {
            _ if of == Wire::FALSE => of,
            0 => of,
            1..=63 => self.wire(Node::Shift(of, by as u32)),
            _ => self.wire(Node::Delay { of, forget, by }),
        }
    }

    /// `p since[lower, upper] q`, from smaller parts.
    ///
    /// By definition, `q` held at a position `lower` to `upper` steps back, and `p` at every position after
    /// it. Split the latter at `lower` steps back:
    /// - `p` held at the latest `lower` positions: its negation did not hold *recently*;
    /// - as seen from `lower` steps back, `p` has held since a `q` at most `upper - lower` steps away. The
    ///   latest `q` is the nearest, so this is equivalent to: `p` has held since *some* `q`, and *some* `q` is
    ///   at most that far away.
    pub(crate) fn bounded_since(&mut self, p: Wire, q: Wire, lower: u64, upper: Option<u64>) -> Wire {
        if q == Wire::FALSE || upper.is_some_and(|upper| upper < lower) {
            return Wire::FALSE;
        }
        let mut nearer = match upper {
            Some(upper) => self.recently(q, upper - lower),
            None => Wire::TRUE,
        };
        // The unbounded `since` is implied by the bound if `p` is always true, or if the bound allows the
        // current position only.
        if (p != Wire::TRUE && upper != Some(lower)) || upper.is_none() {
            let held = self.since(p, q);
            nearer = self.and(held, nearer);
        }
        if lower == 0 {
            return nearer;
        }
        let before = self.delayed(nearer, !p, lower);
        let broken = self.recently(!p, lower - 1);
        self.and(before, !broken)
    }
}

/// The operators of the timed models.
impl Graph {
    /// `p since[lower, upper] q` over positions, with bounds in nanoseconds.
    pub(crate) fn points_since(&mut self, p: Wire, q: Wire, lower: u64, upper: Option<u64>) -> Wire {
        if q == Wire::FALSE || upper.is_some_and(|upper| upper < lower) {
            return Wire::FALSE;
        }
        if lower == 0 && upper.is_none() {
            return self.since(p, q);
        }
        // Intervals between rows have no truth and contribute nothing.
        let (p, q) = (Halves { at: p, after: Wire::TRUE }, Halves { at: q, after: Wire::FALSE });
        if lower > 0 {
            return self.wire(Node::TimedSince { p, q, lower, upper });
        }
        let recently = self.wire(Node::TimedRecently { q, span: upper.unwrap_or(u64::MAX), open: false });
        if p.at == Wire::TRUE {
            return recently;
        }
        // The latest `q` is the nearest; if `p` has held since any `q`, it has held since that one.
        let held = self.since(p.at, q.at);
        self.and(held, recently)
    }

    /// `p since[lower, upper] q` in dense time.
    pub(crate) fn dense_since(&mut self, p: Halves, q: Halves, lower: u64, upper: Option<u64>) -> Halves {
        if q == Halves::FALSE || upper.is_some_and(|upper| upper < lower) {
            return Halves::FALSE;
        }
        if lower > 0 {
            return self.both_halves(Node::TimedSince { p, q, lower, upper });
        }
        match upper {
            Some(span) if p == Halves::TRUE => self.both_halves(Node::TimedRecently { q, span, open: false }),
            Some(span) => {
                let recently = self.both_halves(Node::TimedRecently { q, span, open: false });
                let held = self.dense_since_ever(p, q);
                Halves { at: self.and(held.at, recently.at), after: self.and(held.after, recently.after) }
            }
            None => self.dense_since_ever(p, q),
        }
    }

    /// `p since q`, unbounded. Let `x'` be the truth on the interval after the row before, and *empty* mean
    /// that this interval has no length. The formula holds at a row if `q` does, or if `p` does and `q'` held
    /// just before, or if `p` and `p'` do and the formula held at the row before. That is again a `since`:
    ///
    /// `at = q or p and (empty or p') and at_before, or p and not empty and q'`, `after = q_after or p_after
    /// and at`.
    fn dense_since_ever(&mut self, p: Halves, q: Halves) -> Halves {
        let at = if p == Halves::TRUE && (q.after == q.at || q.after == Wire::FALSE) {
            // A truth on an interval holds at its row as well.
            self.ever(q.at)
        } else {
            let empty = self.wire(Node::SameTime);
            let p_before = self.previously(p.after);
            let goes_on = self.or(empty, p_before);
            let holds = self.and(p.at, goes_on);
            let q_before = self.previously(q.after);
            let from_span = self.and(!empty, q_before);
            let from_span = self.and(p.at, from_span);
            let witness = self.or(q.at, from_span);
            self.since(holds, witness)
        };
        let lasts = self.and(p.after, at);
        Halves { at, after: self.or(q.after, lasts) }
    }

    /// `previously x` in dense time: on the interval that ends here, or at the row before if that interval is
    /// empty.
    pub(crate) fn dense_previously(&mut self, x: Halves) -> Halves {
        let (row, span) = (self.previously(x.at), self.previously(x.after));
        let at = if row == span {
            row
        } else {
            let empty = self.wire(Node::SameTime);
            let (row, span) = (self.and(empty, row), self.and(!empty, span));
            self.or(row, span)
        };
        Halves { at, after: x.after }
    }

    /// True while the last row of the clock is less than `span` ago, at rows and on the intervals after them.
    pub(crate) fn fresh(&mut self, clock: Wire, span: u64) -> Halves {
        if clock == Wire::FALSE || span == 0 {
            return Halves::FALSE;
        }
        let q = Halves { at: clock, after: Wire::FALSE };
        self.both_halves(Node::TimedRecently { q, span, open: true })
    }

    fn both_halves(&mut self, node: Node) -> Halves {
        let node = self.add(node);
        Halves { at: Wire::of(node), after: self.wire(Node::After(node)) }
    }
}

#[cfg(test)]
mod tests {
    use rondel_event::TopicId;

    use super::*;

    #[test]
    fn equal_formulas_are_one_node() {
        let mut g = Graph::new();
        let x = g.wire(Node::On(TopicId(0)));
        let y = g.wire(Node::On(TopicId(1)));
        assert_eq!(g.and(x, y), g.and(y, x));
        assert_eq!(g.or(x, y), !g.and(!y, !x));
        let size = g.nodes().len();
        assert_eq!(g.and(x, Wire::TRUE), x);
        assert_eq!(g.and(!x, x), Wire::FALSE);
        assert_eq!(g.or(x, !x), Wire::TRUE);
        assert_eq!(g.or(Wire::FALSE, !x), !x);
        assert_eq!(g.bounded_since(x, y, 0, Some(0)), y);
        assert_eq!(g.bounded_since(x, y, 3, Some(2)), Wire::FALSE);
        assert_eq!(g.bounded_since(x, Wire::FALSE, 3, Some(7)), Wire::FALSE);
        assert_eq!(g.nodes().len(), size);
    }
}
