//! Nodes by their positions, and the truths that they compute.

use std::ops::Not;

use rondel_event::Rows;

/// A node, by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(crate) u32);

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The word that a node computes, or its complement. Negation is thus free, and a formula and its
/// negation are one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Wire(u32);

impl Wire {
    /// Node 0 is [`Node::False`](super::node::Node::False) in every graph.
    pub(crate) const FALSE: Wire = Wire(0);
    pub(crate) const TRUE: Wire = Wire(1);

    pub(crate) fn of(node: NodeId) -> Wire {
        Wire(node.0 << 1)
    }

    pub(crate) fn node(self) -> NodeId {
        NodeId(self.0 >> 1)
    }

    /// The same side of another node.
    pub(crate) fn moved_to(self, node: NodeId) -> Wire {
        Wire(node.0 << 1 | self.0 & 1)
    }

    /// The wire that a table has for its node, or the complement of that.
    pub(crate) fn through(self, table: &[Wire]) -> Wire {
        Wire(table[self.word()].0 ^ self.0 & 1)
    }

    /// The conjunction of two wires, where that is a wire already; else the two in their order.
    pub(crate) fn both(a: Wire, b: Wire) -> Result<Wire, (Wire, Wire)> {
        let (a, b) = (a.min(b), a.max(b));
        // The constants are the smallest wires.
        match a {
            Wire::FALSE => Ok(Wire::FALSE),
            Wire::TRUE => Ok(b),
            _ if a == b => Ok(a),
            _ if a == !b => Ok(Wire::FALSE),
            _ => Err((a, b)),
        }
    }

    /// The index of the word.
    #[inline(always)]
    pub(crate) fn word(self) -> usize {
        (self.0 >> 1) as usize
    }

    /// All ones for a complement, else zero.
    #[inline(always)]
    pub(crate) fn flip(self) -> u64 {
        0_u64.wrapping_sub(u64::from(self.0 & 1))
    }

    /// Its truths, given those of all nodes.
    #[inline(always)]
    pub(crate) fn read(self, words: &[Rows]) -> Rows {
        words[self.word()] ^ self.flip()
    }
}

impl Not for Wire {
    type Output = Wire;

    fn not(self) -> Wire {
        Wire(self.0 ^ 1)
    }
}

/// A truth at the rows, and on the open spans that follow them up to the next row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Halves {
    pub(crate) at: Wire,
    pub(crate) after: Wire,
}

impl Halves {
    pub(crate) const FALSE: Halves = Halves { at: Wire::FALSE, after: Wire::FALSE };
    pub(crate) const TRUE: Halves = Halves { at: Wire::TRUE, after: Wire::TRUE };
}

impl Not for Halves {
    type Output = Halves;

    fn not(self) -> Halves {
        Halves { at: !self.at, after: !self.after }
    }
}
