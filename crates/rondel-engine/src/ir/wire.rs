//! References to nodes, and to the truths that they compute.

use std::ops::Not;

use rondel_event::Rows;

/// Index of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(crate) u32);

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The word of a node, or its complement. Negation is thus free, and a formula and its negation share a node.
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

    /// The wire with another node and the same polarity.
    pub(crate) fn moved_to(self, node: NodeId) -> Wire {
        Wire(node.0 << 1 | self.0 & 1)
    }

    /// The table's wire for its node, with the polarity of this one.
    pub(crate) fn through(self, table: &[Wire]) -> Wire {
        Wire(table[self.word()].0 ^ self.0 & 1)
    }

    /// The conjunction of two wires if it is a wire; else the two in canonical order.
    pub(crate) fn both(a: Wire, b: Wire) -> Result<Wire, (Wire, Wire)> {
        let (a, b) = (a.min(b), a.max(b));
        // Constants are the smallest wires.
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

    /// The truths of this wire, from the words of all nodes.
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

/// A truth at the rows, and on the open intervals after them up to the next row.
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
