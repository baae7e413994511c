//! Traversals of the graph of expressions: bottom-up values, and the nodes below a formula.

use std::collections::HashSet;

use super::{Expr, ExprId, Machine, Spec};

/// Computes a value for every node from the node and the values of the nodes before it, its operands among them.
pub fn fold<T>(nodes: &[Expr], mut value: impl FnMut(ExprId, &Expr, &[T]) -> T) -> Vec<T> {
    let mut values = Vec::with_capacity(nodes.len());
    for (id, node) in (0..).map(ExprId).zip(nodes) {
        let own = value(id, node, &values);
        values.push(own);
    }
    values
}

/// The nodes below some roots, and these, each once.
#[derive(Debug)]
pub struct Below<'a> {
    nodes: &'a [Expr],
    /// The machines whose conditions are visited from the nodes that read them.
    machines: &'a [Machine],
    open: Vec<ExprId>,
    seen: HashSet<ExprId>,
}

impl<'a> Below<'a> {
    /// Returns the nodes below these roots. A root or operand that does not exist is left out.
    pub fn new(nodes: &'a [Expr], roots: impl IntoIterator<Item = ExprId>) -> Below<'a> {
        let open: Vec<ExprId> = roots.into_iter().collect();
        let seen = open.iter().copied().collect();
        Below { nodes, machines: &[], open, seen }
    }
}

impl<'a> Iterator for Below<'a> {
    type Item = (ExprId, &'a Expr);

    fn next(&mut self) -> Option<(ExprId, &'a Expr)> {
        loop {
            let id = self.open.pop()?;
            let Some(node) = self.nodes.get(id.index()) else { continue };
            let machine = node.machine().and_then(|machine| self.machines.get(machine.0 as usize));
            let conditions = machine.into_iter().flat_map(Machine::conditions);
            self.open.extend(conditions.chain(node.operands()).filter(|id| self.seen.insert(*id)));
            return Some((id, node));
        }
    }
}

impl Spec {
    /// Returns the nodes below a formula.
    ///
    /// ```
    /// let text = "topic a topic b property p = a.x > 3 -> on(b)";
    /// let spec = rondel_spec::parse(text).spec.unwrap();
    /// let names: Vec<&str> = spec.below(spec.properties[0].formula).map(|(_, node)| node.name()).collect();
    /// assert_eq!(names, ["or", "on", "not", ">", "constant", "field"]);
    /// ```
    pub fn below(&self, formula: ExprId) -> Below<'_> {
        Below::new(&self.nodes, [formula])
    }

    /// Returns the nodes below these roots, and below the conditions of the machines that they read.
    pub fn below_with_machines(&self, roots: impl IntoIterator<Item = ExprId>) -> Below<'_> {
        Below { machines: &self.machines, ..Below::new(&self.nodes, roots) }
    }
}
