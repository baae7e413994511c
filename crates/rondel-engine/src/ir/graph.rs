//! The program as a graph in which equal parts are one node.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Not;

use hashbrown::HashTable;
use rondel_event::{Rows, TopicId, ValueType};
use rondel_spec::{BinaryOp, FunctionId, UnaryOp};

/// The word that a node computes, or its complement. Negation is thus free, and a formula and its
/// negation are one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Wire(u32);

impl Wire {
    /// Node 0 is [`Node::False`] in every graph.
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

/// What properties ask of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ChainColumn {
    /// How long the stamp took that came out last.
    Latency,
    /// When the message came that the last output stems from.
    Origin,
    /// When the message came that waits longest for an output.
    Oldest,
}

/// A node, by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(crate) u32);

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The kinds of columns that hold values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// Integers and times.
    Int,
    Float,
    Text,
}

/// What a comparison computes; the others are its complement or its mirror image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Relation {
    IntEqual,
    IntLess,
    FloatEqual,
    FloatLess,
    /// Not the complement of "greater", because of NaN.
    FloatLessOrEqual,
    TextEqual,
    TextStartsWith,
}

/// A constant; floats by their bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Constant {
    Int(i64),
    Float(u64),
    Text(Box<str>),
}

/// A truth at the rows, and on the open spans that follow them up to the next row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Sides {
    pub(crate) at: Wire,
    pub(crate) after: Wire,
}

impl Sides {
    pub(crate) const FALSE: Sides = Sides { at: Wire::FALSE, after: Wire::FALSE };
    pub(crate) const TRUE: Sides = Sides { at: Wire::TRUE, after: Wire::TRUE };
}

impl Not for Sides {
    type Output = Sides;

    fn not(self) -> Sides {
        Sides { at: !self.at, after: !self.after }
    }
}

/// What is measured over a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Measure {
    Count,
    Sum,
    Least,
    Greatest,
    Distinct,
    /// The number of different floats; the column is one of integers.
    DistinctFloats,
    /// In millionths of all.
    Percentile(u32),
    Median,
    Deviation,
    First,
    Last,
    /// Per second, as the next.
    Derivative,
    Integral,
}

/// A field of the messages that is read, by its position in the table of fields.
pub(crate) type FieldId = u32;

/// One node. Every node computes a word; those with a [`kind`](Node::kind) compute a column of
/// values besides, and their word says in which rows that succeeded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    False,
    /// The rows of a topic.
    On(TopicId),
    /// The rows that carry the field.
    Carried(FieldId),
    /// Where the boolean field has this value, held.
    HeldBool(FieldId, bool),
    /// Where a straight line, by its number, is certainly below zero, zero, or above it (0, 1, 2), or one of these
    /// and nobody knows which (3): at the rows
    /// (side 0), or after them (side 1).
    Line {
        line: u32,
        sign: u8,
        side: u8,
    },
    And(Wire, Wire),
    /// The first operand since the second, unbounded.
    Since(Wire, Wire),
    /// The operand 1 to 63 positions before; false where there is none.
    Shift(Wire, u32),
    /// The operand held at one of the last so many positions, or holds now.
    Recently(Wire, u64),
    /// The operand 64 positions before or more. Meaningless from a row where the second operand
    /// holds on for as long, which lets it be forgotten.
    Delay {
        of: Wire,
        forget: Wire,
        by: u64,
    },
    /// The rows whose time is that of the row before.
    Together,
    /// The first operand has held, or holds, for at most so long ago; the second is its other side.
    TimedRecently {
        q: Sides,
        span: u64,
        /// Just so long ago does not count any more.
        open: bool,
    },
    /// `p since[lower, upper] q`, with a lower bound above 0.
    TimedSince {
        p: Sides,
        q: Sides,
        lower: u64,
        upper: Option<u64>,
    },
    /// Where this column is known and so long ago at most; it is a column of times.
    Lasting {
        from: NodeId,
        known: Wire,
        span: u64,
        /// Just so long ago does not count any more.
        open: bool,
    },
    /// A column of a chain, by its number; the word says where it is known.
    Chain(u32, ChainColumn),
    /// The truth of a timed operator on the spans that follow its rows.
    After(NodeId),
    Compare(Relation, NodeId, NodeId),
    Constant(Constant),
    /// The time of the row, in nanoseconds.
    Time,
    /// How much later than the time of the row it arrived; the word says where that is known.
    Latency,
    /// The value of the field, held; the word says where it is known.
    Held(Kind, FieldId),
    /// A key of the slice; the word says where it is known, which is in every instance.
    Key(Kind, u32),
    /// Where a boolean key of the slice has this value.
    KeyBool(u32, bool),
    ToFloat(NodeId),
    Unary(Kind, UnaryOp, NodeId),
    Binary(Kind, BinaryOp, NodeId, NodeId),
    /// A function of one or two columns; its word says where it is known, or of a truth where it is true.
    Call(FunctionId, NodeId, Option<NodeId>),
    Select(Kind, Wire, NodeId, NodeId),
    /// The state that a machine is in, by its number; its word says where it is ambiguous. It has these
    /// operands.
    Machine {
        machine: u32,
        operands: Box<[NodeId]>,
    },
    /// The same on the span after each row.
    MachineAfter(NodeId),
    /// A variable of a machine, at the rows (side 0) or after them (side 1); its word says where it is known.
    MachineValue {
        machine: NodeId,
        variable: u32,
        side: u8,
        kind: Kind,
    },
    /// Where a boolean variable of a machine has this value.
    MachineTruth {
        machine: NodeId,
        variable: u32,
        side: u8,
        value: bool,
    },
    /// A quantified formula, by its number; it has these operands, and reads these fields.
    Quantified {
        relation: u32,
        operands: Box<[NodeId]>,
        fields: Box<[FieldId]>,
    },
    /// A quantified formula that is evaluated by value, by its number: where some value makes it certainly hold.
    ByValue {
        number: u32,
        operands: Box<[NodeId]>,
        fields: Box<[FieldId]>,
    },
    /// Where some value possibly makes it hold.
    ByValuePossibly(NodeId),
    /// Of what is evaluated by value: a truth without variables, which comes from outside.
    Outer(u32),
    /// In rows of the clock the value at the position before, held in the others.
    Latch(Kind, NodeId, Wire),
    /// In rows of the clock the value, held in the others. Of integers.
    Sampled(NodeId, Wire),
    /// What the samples less than `over` old come to; in rows, or nanoseconds if it is `timed`. The word
    /// says where it is known.
    Window {
        measure: Measure,
        kind: Kind,
        /// Of everything but a count.
        x: NodeId,
        samples: Wire,
        known: Wire,
        over: u64,
        timed: bool,
    },
    /// By how much the first operand is less than the second, as a float: 0 if they are equal, minus
    /// infinity if one is NaN.
    Margin(Kind, NodeId, NodeId),
    /// The greatest of the floats within the bounds, in rows or nanoseconds.
    Greatest {
        x: NodeId,
        bounds: Reach,
    },
    /// The robustness of `p since q`.
    RobustSince {
        p: NodeId,
        q: NodeId,
        bounds: Reach,
    },
    /// The same in dense time, of operands with two sides; the second is its other side.
    RobustDense {
        p: [NodeId; 2],
        q: [NodeId; 2],
        bounds: Reach,
    },
    /// The column of such a node on the spans that follow its rows.
    AfterFloat(NodeId),
}

/// How far a robustness reaches back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Reach {
    pub(crate) lower: u64,
    pub(crate) upper: Option<u64>,
    /// In nanoseconds, not in rows.
    pub(crate) timed: bool,
    /// What it gives where there are too many values within the bounds: the bits of a float.
    pub(crate) unknown: u64,
}

impl Node {
    /// What kind of column it computes, if any.
    pub(crate) fn kind(&self) -> Option<Kind> {
        match self {
            Node::Constant(Constant::Int(_))
            | Node::Time
            | Node::Latency
            | Node::Sampled(..)
            | Node::Chain(..)
            | Node::Machine { .. }
            | Node::MachineAfter(_) => Some(Kind::Int),
            Node::MachineValue { kind, .. } => Some(*kind),
            Node::Constant(Constant::Float(_))
            | Node::ToFloat(_)
            | Node::Margin(..)
            | Node::Greatest { .. }
            | Node::RobustSince { .. }
            | Node::RobustDense { .. }
            | Node::AfterFloat(_) => Some(Kind::Float),
            Node::Constant(Constant::Text(_)) => Some(Kind::Text),
            Node::Call(function, ..) => match function.result() {
                ValueType::Bool => None,
                ValueType::Float => Some(Kind::Float),
                ValueType::String => Some(Kind::Text),
                ValueType::Int | ValueType::Time | ValueType::Duration => Some(Kind::Int),
            },
            Node::Held(kind, ..)
            | Node::Key(kind, _)
            | Node::Unary(kind, ..)
            | Node::Binary(kind, ..)
            | Node::Select(kind, ..)
            | Node::Latch(kind, ..)
            | Node::Window { kind, .. } => Some(*kind),
            _ => None,
        }
    }

    /// Calls `f` with every operand.
    pub(crate) fn for_each_operand(&self, mut f: impl FnMut(NodeId)) {
        match *self {
            Node::False
            | Node::On(_)
            | Node::Carried(_)
            | Node::HeldBool(..)
            | Node::Line { .. }
            | Node::Constant(_)
            | Node::Time
            | Node::Latency
            | Node::Chain(..)
            | Node::Together
            | Node::Key(..)
            | Node::KeyBool(..)
            | Node::Outer(_)
            | Node::Held(..) => {}
            Node::TimedRecently { q, .. } => {
                f(q.at.node());
                f(q.after.node());
            }
            Node::TimedSince { p, q, .. } => {
                [p.at, p.after, q.at, q.after].map(Wire::node).into_iter().for_each(f)
            }
            Node::Lasting { from, known, .. } => {
                f(from);
                f(known.node());
            }
            Node::Greatest { x, .. } => f(x),
            Node::RobustSince { p, q, .. } | Node::Margin(_, p, q) => {
                f(p);
                f(q);
            }
            Node::RobustDense { p, q, .. } => p.into_iter().chain(q).for_each(f),
            Node::After(of)
            | Node::AfterFloat(of)
            | Node::ByValuePossibly(of)
            | Node::MachineAfter(of)
            | Node::MachineValue { machine: of, .. }
            | Node::MachineTruth { machine: of, .. } => f(of),
            Node::Machine { ref operands, .. }
            | Node::Quantified { ref operands, .. }
            | Node::ByValue { ref operands, .. } => operands.iter().copied().for_each(f),
            Node::Shift(x, _) | Node::Recently(x, _) => f(x.node()),
            Node::And(x, y) | Node::Since(x, y) | Node::Delay { of: x, forget: y, .. } => {
                f(x.node());
                f(y.node());
            }
            Node::ToFloat(x) | Node::Unary(_, _, x) => f(x),
            Node::Compare(_, x, y) | Node::Binary(_, _, x, y) => {
                f(x);
                f(y);
            }
            Node::Call(_, x, y) => {
                f(x);
                y.into_iter().for_each(f);
            }
            Node::Select(_, condition, x, y) => {
                f(condition.node());
                f(x);
                f(y);
            }
            Node::Latch(_, x, clock) | Node::Sampled(x, clock) => {
                f(x);
                f(clock.node());
            }
            Node::Window { x, samples, known, .. } => {
                f(x);
                f(samples.node());
                f(known.node());
            }
        }
    }

    /// Whether its output depends on nothing but its operands in the same row.
    pub(crate) fn is_pointwise(&self) -> bool {
        matches!(
            self,
            Node::False
                | Node::And(..)
                | Node::Compare(..)
                | Node::Constant(_)
                | Node::ToFloat(_)
                | Node::Unary(..)
                | Node::Binary(..)
                | Node::Call(..)
                | Node::Select(..)
                | Node::Margin(..)
        )
    }

    /// Whether it changes only at events if its operands do: time alone does nothing to it.
    pub(crate) fn changes_at_events(&self) -> bool {
        self.is_pointwise()
            || matches!(
                self,
                Node::On(_)
                    | Node::Carried(_)
                    | Node::HeldBool(..)
                    // Its crossings stand among the events.
                    | Node::Line { .. }
                    | Node::Since(..)
                    | Node::Shift(..)
                    | Node::Together
                    | Node::Held(..)
                    | Node::Chain(..)
                    | Node::Latch(..)
            )
    }

    /// A number for the sort of node, to put equal sorts together.
    pub(crate) fn sort(&self) -> usize {
        match self {
            Node::False => 0,
            Node::On(_) => 1,
            Node::Carried(_) => 2,
            Node::HeldBool(..) => 3,
            Node::And(..) => 4,
            Node::Since(..) => 5,
            Node::Shift(..) => 6,
            Node::Recently(..) => 7,
            Node::Delay { .. } => 8,
            Node::Constant(_) => 9,
            Node::ToFloat(_) => 10,
            Node::Held(kind, ..) => 11 + *kind as usize,
            Node::Select(kind, ..) => 14 + *kind as usize,
            Node::Latch(kind, ..) => 17 + *kind as usize,
            Node::Compare(relation, ..) => 20 + *relation as usize,
            Node::Unary(kind, op, _) => 27 + 2 * (*kind as usize) + *op as usize,
            Node::Binary(kind, op, ..) => 31 + 7 * (*kind as usize) + *op as usize,
            Node::Time => 45,
            Node::Together => 46,
            Node::TimedRecently { .. } => 47,
            Node::TimedSince { .. } => 48,
            Node::After(_) => 49,
            Node::Machine { .. } => 50,
            Node::MachineAfter(_) => 51,
            Node::MachineValue { .. } => 52,
            Node::MachineTruth { .. } => 53,
            Node::Latency => 54,
            Node::Sampled(..) => 55,
            Node::Window { .. } => 56,
            Node::Margin(..) => 57,
            Node::Greatest { .. } => 58,
            Node::RobustSince { .. } => 59,
            Node::RobustDense { .. } => 60,
            Node::AfterFloat(_) => 61,
            Node::Quantified { .. } => 62,
            Node::Key(kind, _) => 63 + *kind as usize,
            Node::KeyBool(..) => 66,
            Node::Lasting { .. } => 67,
            Node::Chain(..) => 68,
            Node::ByValue { .. } => 69,
            Node::ByValuePossibly(_) => 70,
            Node::Outer(_) => 71,
            Node::Line { .. } => 72,
            Node::Call(..) => 73,
        }
    }

    /// One more than the largest [`sort`](Node::sort).
    pub(crate) const SORTS: usize = 74;
}

/// Nodes, each only once, operands before the nodes that use them.
#[derive(Debug)]
pub(crate) struct Graph {
    nodes: Vec<Node>,
    /// The nodes with their hashes.
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

    /// Whether there were more nodes than can be numbered; the graph is then useless.
    pub(crate) fn has_overflowed(&self) -> bool {
        self.overflow
    }

    /// The node that is equal to this one.
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

    /// At some position up to now.
    pub(crate) fn ever(&mut self, q: Wire) -> Wire {
        self.since(Wire::TRUE, q)
    }

    pub(crate) fn previously(&mut self, x: Wire) -> Wire {
        self.delayed(x, Wire::FALSE, 1)
    }

    pub(crate) fn recently(&mut self, q: Wire, span: u64) -> Wire {
        if q == Wire::FALSE || q == Wire::TRUE || span == 0 { q } else { self.wire(Node::Recently(q, span)) }
    }

    /// `of` so many positions before; false where there is none.
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
    /// The definition: at some position at least `lower` and at most `upper` steps back `q` held,
    /// and at every position after it `p`. Cut those positions where they are `lower` steps back:
    /// - `p` held at the `lower` latest positions, that is, its negation was not *recently*;
    /// - as seen from the position `lower` steps back, `p` has held since a `q` that is at most
    ///   `upper - lower` steps away; and as the latest `q` is the nearest, this is to say that `p`
    ///   has held since *some* `q`, and that there is *some* `q` at most so many steps away.
    pub(crate) fn bounded_since(&mut self, p: Wire, q: Wire, lower: u64, upper: Option<u64>) -> Wire {
        if q == Wire::FALSE || upper.is_some_and(|upper| upper < lower) {
            return Wire::FALSE;
        }
        let mut nearer = match upper {
            Some(upper) => self.recently(q, upper - lower),
            None => Wire::TRUE,
        };
        // With `p` always true the first of the two follows from the second, if there is one; and so
        // it does if that one says "now".
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
    /// `p since[lower, upper] q` at positions, with bounds in nanoseconds.
    pub(crate) fn points_since(&mut self, p: Wire, q: Wire, lower: u64, upper: Option<u64>) -> Wire {
        if q == Wire::FALSE || upper.is_some_and(|upper| upper < lower) {
            return Wire::FALSE;
        }
        if lower == 0 && upper.is_none() {
            return self.since(p, q);
        }
        // There is truth only at the rows: nothing comes from the spans between them.
        let (p, q) = (Sides { at: p, after: Wire::TRUE }, Sides { at: q, after: Wire::FALSE });
        if lower > 0 {
            return self.wire(Node::TimedSince { p, q, lower, upper });
        }
        let recently = self.wire(Node::TimedRecently { q, span: upper.unwrap_or(u64::MAX), open: false });
        if p.at == Wire::TRUE {
            return recently;
        }
        // The latest `q` is the nearest, and if `p` has held since any, then since that one.
        let held = self.since(p.at, q.at);
        self.and(held, recently)
    }

    /// The same at every time.
    pub(crate) fn dense_since(&mut self, p: Sides, q: Sides, lower: u64, upper: Option<u64>) -> Sides {
        if q == Sides::FALSE || upper.is_some_and(|upper| upper < lower) {
            return Sides::FALSE;
        }
        if lower > 0 {
            return self.both_sides(Node::TimedSince { p, q, lower, upper });
        }
        match upper {
            Some(span) if p == Sides::TRUE => self.both_sides(Node::TimedRecently { q, span, open: false }),
            Some(span) => {
                let recently = self.both_sides(Node::TimedRecently { q, span, open: false });
                let held = self.dense_since_ever(p, q);
                Sides { at: self.and(held.at, recently.at), after: self.and(held.after, recently.after) }
            }
            None => self.dense_since_ever(p, q),
        }
    }

    /// `p since q`, unbounded. With `x'` for the truth on the span after the row before, and *empty* where that
    /// span has no length, it holds at a row if `q` does, or if `p` does and `q'` held just before, or if `p` does
    /// and it held at the row before and then `p'`. That is a `since` again:
    ///
    /// `at = q or p and (empty or p') and at_before, or p and not empty and q'`,
    /// `after = q_after or p_after and at`.
    fn dense_since_ever(&mut self, p: Sides, q: Sides) -> Sides {
        let at = if p == Sides::TRUE && (q.after == q.at || q.after == Wire::FALSE) {
            // Whatever held on a span held at its row.
            self.ever(q.at)
        } else {
            let empty = self.wire(Node::Together);
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
        Sides { at, after: self.or(q.after, lasts) }
    }

    /// Just before: on the span that ends here, or at the row before if there is no time in between.
    pub(crate) fn dense_previously(&mut self, x: Sides) -> Sides {
        let (row, span) = (self.previously(x.at), self.previously(x.after));
        let at = if row == span {
            row
        } else {
            let empty = self.wire(Node::Together);
            let (row, span) = (self.and(empty, row), self.and(!empty, span));
            self.or(row, span)
        };
        Sides { at, after: x.after }
    }

    /// Less than `span` ago there was a row of the clock; at rows and on the spans that follow them.
    pub(crate) fn fresh(&mut self, clock: Wire, span: u64) -> Sides {
        if clock == Wire::FALSE || span == 0 {
            return Sides::FALSE;
        }
        let q = Sides { at: clock, after: Wire::FALSE };
        self.both_sides(Node::TimedRecently { q, span, open: true })
    }

    fn both_sides(&mut self, node: Node) -> Sides {
        let node = self.add(node);
        Sides { at: Wire::of(node), after: self.wire(Node::After(node)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_parts_are_one_node() {
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
