use crate::ir::graph::Graph;
use crate::ir::node::Node;
use crate::ir::wire::NodeId;

/// The nodes that a program evaluates, in order.
pub(crate) struct Schedule {
    /// Operands before their users.
    pub(crate) order: Vec<NodeId>,
    /// Number of leading nodes that are constant.
    pub(crate) constant: usize,
}

/// Orders the nodes that outputs need. The nodes `known` are computed elsewhere, so their operands are not
/// needed.
///
/// Nodes of one sort are grouped as far as operands allow. The interpreter jumps by the sort of instruction,
/// and processors predict repeated jumps: with hundreds of properties and one row at a time, grouping saves a
/// quarter of the time (example `pace`).
pub(crate) fn schedule(graph: &Graph, outputs: impl Iterator<Item = NodeId>, known: &[NodeId]) -> Schedule {
    let nodes = graph.nodes();
    let mut is_known = vec![false; nodes.len()];
    known.iter().for_each(|id| is_known[id.index()] = true);
    let for_each_operand = |i: usize, f: &mut dyn FnMut(NodeId)| {
        if !is_known[i] {
            nodes[i].for_each_operand(f);
        }
    };
    let mut needed = vec![false; nodes.len()];
    // The interpreter may always read node 0.
    needed[0] = true;
    outputs.for_each(|id| needed[id.index()] = true);
    for i in (0..nodes.len()).rev() {
        if needed[i] {
            for_each_operand(i, &mut |operand| needed[operand.index()] = true);
        }
    }

    let mut order = Vec::new();
    let mut is_constant = vec![false; nodes.len()];
    for (i, node) in nodes.iter().enumerate().filter(|&(i, _)| needed[i]) {
        // A computed text refers to a buffer that every block overwrites, and instances have buffers of their
        // own.
        let mut constant = node.is_pointwise() && !node.makes_text();
        for_each_operand(i, &mut |operand| constant &= is_constant[operand.index()]);
        if constant {
            is_constant[i] = true;
            order.push(NodeId(i as u32));
        }
    }
    let constant = order.len();

    // Topological order: a node is ready once all its operands are placed.
    let mut waits_for = vec![0_u32; nodes.len()];
    let mut users: Vec<Vec<NodeId>> = vec![Vec::new(); nodes.len()];
    let mut ready: Vec<Vec<NodeId>> = vec![Vec::new(); Node::SORTS];
    for (i, node) in nodes.iter().enumerate().filter(|&(i, _)| needed[i] && !is_constant[i]) {
        for_each_operand(i, &mut |operand| {
            if !is_constant[operand.index()] {
                waits_for[i] += 1;
                users[operand.index()].push(NodeId(i as u32));
            }
        });
        if waits_for[i] == 0 {
            ready[node.sort()].push(NodeId(i as u32));
        }
    }
    while let Some(sort) = (0..Node::SORTS).filter(|&s| !ready[s].is_empty()).max_by_key(|&s| ready[s].len())
    {
        let mut batch = std::mem::take(&mut ready[sort]);
        // Nodes of this sort that become ready join the batch.
        let mut next = 0;
        while next < batch.len() {
            for user in std::mem::take(&mut users[batch[next].index()]) {
                waits_for[user.index()] -= 1;
                if waits_for[user.index()] == 0 {
                    match nodes[user.index()].sort() {
                        same if same == sort => batch.push(user),
                        other => ready[other].push(user),
                    }
                }
            }
            next += 1;
        }
        order.append(&mut batch);
    }
    Schedule { order, constant }
}
