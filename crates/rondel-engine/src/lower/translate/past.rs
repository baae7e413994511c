//! Past operators.

use rondel_spec::{Bounds, TimeModel};

use super::{Column, Meaning, SetId, Translator, ValueColumns, lasting, values};
use crate::ir::graph::Graph;
use crate::ir::node::Node;
use crate::ir::truth::{Truth, TruthBounds};
use crate::ir::wire::{Halves, Wire};

impl Translator<'_> {
    /// A truth at rows only: false between events in dense time.
    pub(super) fn update(&self, wire: Wire) -> Truth {
        let after = if self.model == TimeModel::Dense { Wire::FALSE } else { wire };
        Truth { at: TruthBounds::both(wire), after: TruthBounds::both(after) }
    }

    /// Applies a monotone operator to the lower and the upper truth, or once if they are equal.
    pub(super) fn by_bound<const N: usize>(
        &mut self,
        operands: [Truth; N],
        mut operator: impl FnMut(&mut Graph, [Halves; N]) -> Halves,
    ) -> Truth {
        let certain = operator(&mut self.graph, operands.map(Truth::certain));
        let possible = operator(&mut self.graph, operands.map(Truth::possible));
        Truth::of(certain, possible)
    }

    pub(super) fn previously(&mut self, x: Truth) -> Truth {
        let model = self.model;
        self.by_bound([x], |graph, [x]| match model {
            TimeModel::Dense => graph.dense_previously(x),
            TimeModel::Steps | TimeModel::Points => lasting(graph.previously(x.at)),
        })
    }

    pub(super) fn once(&mut self, bounds: Bounds, x: Truth) -> Truth {
        self.since(bounds, Truth::lasting(TruthBounds::both(Wire::TRUE)), x)
    }

    pub(super) fn since(&mut self, Bounds { lower, upper }: Bounds, p: Truth, q: Truth) -> Truth {
        let model = self.model;
        self.by_bound([p, q], |graph, [p, q]| match model {
            TimeModel::Steps => lasting(graph.bounded_since(p.at, q.at, lower, upper)),
            TimeModel::Points => lasting(graph.points_since(p.at, q.at, lower, upper)),
            TimeModel::Dense => graph.dense_since(p, q, lower, upper),
        })
    }

    /// The value just before the latest message of a set of topics.
    pub(super) fn prev(&mut self, meaning: Meaning, set: SetId) -> Meaning {
        if set == 0 {
            return meaning;
        }
        let clock = self.clock(set);
        // Unknown before the second message.
        let any = self.graph.ever(clock);
        let not_first = self.graph.previously(any);
        let tick = self.graph.and(clock, not_first);
        match meaning {
            Meaning::Truth(truth) => {
                let before = self.previously(truth);
                let certain = self.latch(tick, clock, before.at.certain);
                // The upper truth is latched as its complement, since state before the first row is false.
                let impossible = self.latch(tick, clock, !before.at.possible);
                Meaning::Truth(Truth::lasting(TruthBounds { certain, possible: !impossible }))
            }
            Meaning::Values(ValueColumns { at, after, value_type }) => {
                let kind = values::kind(value_type);
                let mut latched = |column: Column| {
                    let known = self.graph.previously(column.known);
                    let known = self.latch(tick, clock, known);
                    Column { node: self.graph.add(Node::Latch(kind, column.node, clock)), known }
                };
                let (row, span) = (latched(at), latched(after));
                if row == span || self.model != TimeModel::Dense {
                    return Meaning::Values(ValueColumns::lasting(row, value_type));
                }
                // Whether that message and the row before had the same time.
                let together = self.graph.wire(Node::SameTime);
                let empty = self.latch(tick, clock, together);
                let column = self.select(TruthBounds::both(empty), row, span, value_type);
                Meaning::Values(ValueColumns::lasting(column, value_type))
            }
        }
    }

    /// The truth at a tick, held until the next tick of the clock.
    pub(super) fn latch(&mut self, tick: Wire, clock: Wire, before: Wire) -> Wire {
        let taken = self.graph.and(tick, before);
        self.graph.since(!clock, taken)
    }

    /// The rows with a message of a set of topics; constantly true if it contains all topics of the section.
    pub(super) fn clock(&mut self, set: SetId) -> Wire {
        let topics = self.sets.topics(set);
        // Dense time has rows without an event.
        if topics.len() == self.topics && self.model != TimeModel::Dense {
            return Wire::TRUE;
        }
        topics.iter().fold(Wire::FALSE, |clock, &topic| {
            let on = self.graph.wire(Node::On(topic));
            self.graph.or(clock, on)
        })
    }
}
