//! Identities under an assumption: some topics have no messages, and their boolean fields are false.
//!
//! A rewritten formula that reads such topics in addition to those of the original contains nodes that
//! compute the same as nodes of the original. With equal [identities](super::identity), their state is found
//! in a snapshot of the original.

use rondel_event::TopicId;

use crate::ir::found::{ALWAYS_FALSE, ALWAYS_TRUE, UNIDENTIFIED};
use crate::ir::graph::Graph;
use crate::ir::node::{FieldId, Node};
use crate::ir::wire::{Halves, NodeId, Wire};
use crate::lower::identity::{Names, identities};

/// The identity of each node of a graph, assuming that topics from `first` on have no messages and that their
/// boolean fields are false.
pub(crate) fn identities_assuming(graph: &Graph, names: &Names<'_>, first: TopicId) -> Vec<u64> {
    let is_false = |field: FieldId| names.fields.get(field as usize).is_some_and(|read| read.topic >= first);
    let (simplified, wires) = simplified(graph, first, is_false);
    let known = identities(&simplified, names);
    let identity = |wire: &Wire| match *wire {
        Wire::FALSE => ALWAYS_FALSE,
        Wire::TRUE => ALWAYS_TRUE,
        wire => known.get(wire.node().index()).copied().unwrap_or(UNIDENTIFIED),
    };
    wires.iter().map(identity).collect()
}

/// The simplified graph, and the wire there for each node of the original.
fn simplified(graph: &Graph, first: TopicId, is_false: impl Fn(FieldId) -> bool) -> (Graph, Vec<Wire>) {
    let (mut out, mut wires) = (Graph::new(), Vec::with_capacity(graph.nodes().len()));
    for node in graph.nodes() {
        let wire = match *node {
            Node::False => Wire::FALSE,
            Node::On(topic) if topic >= first => Wire::FALSE,
            Node::HeldBool(field, value) if is_false(field) => {
                if value {
                    Wire::FALSE
                } else {
                    Wire::TRUE
                }
            }
            Node::And(a, b) => out.and(a.through(&wires), b.through(&wires)),
            Node::Since(p, q) => out.since(p.through(&wires), q.through(&wires)),
            // `previously true` is false only before the first row, which has passed.
            Node::Shift(x, 1) if x.through(&wires) == Wire::TRUE => Wire::TRUE,
            Node::Shift(x, by) => out.delayed(x.through(&wires), Wire::FALSE, u64::from(by)),
            Node::TimedRecently { q, .. } | Node::TimedSince { q, .. }
                if halves(q, &wires) == Halves::FALSE =>
            {
                Wire::FALSE
            }
            Node::After(of) if id(of, &wires) == Wire::FALSE.node() => Wire::FALSE,
            ref node => out.wire(node.moved(|wire| wire.through(&wires), |node| id(node, &wires))),
        };
        wires.push(wire);
    }
    (out, wires)
}

fn halves(Halves { at, after }: Halves, wires: &[Wire]) -> Halves {
    Halves { at: at.through(wires), after: after.through(wires) }
}

fn id(node: NodeId, wires: &[Wire]) -> NodeId {
    Wire::of(node).through(wires).node()
}
