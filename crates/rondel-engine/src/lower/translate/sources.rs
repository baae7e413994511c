//! Machines, relations and inner formulas, which nodes of the graph refer to by number.

use crate::ir::graph::Graph;
use crate::ir::node::Node;
use crate::ir::wire::{NodeId, Wire};
use crate::keyed::by_value::ByValueSource;
use crate::relation::source::Relation;

use super::MachineSource;

/// The machines, relations and formulas evaluated by value.
#[derive(Default)]
pub(crate) struct Sources {
    machines: Vec<MachineSource>,
    relations: Vec<Relation>,
    by_value: Vec<ByValueSource>,
}

impl Sources {
    /// The machine with this number.
    pub(crate) fn machine(&self, number: u32) -> &MachineSource {
        &self.machines[number as usize]
    }

    /// The relation with this number.
    pub(crate) fn relation(&self, number: u32) -> &Relation {
        &self.relations[number as usize]
    }

    /// The formula that is evaluated by value with this number.
    pub(crate) fn by_value(&self, number: u32) -> &ByValueSource {
        &self.by_value[number as usize]
    }

    /// Adds a machine. Names are unique, so that no two are equal.
    pub(super) fn add_machine(
        &mut self,
        graph: &mut Graph,
        machine: MachineSource,
        operands: Box<[NodeId]>,
    ) -> NodeId {
        self.machines.push(machine);
        graph.add(Node::Machine { machine: self.machines.len() as u32 - 1, operands })
    }

    /// Adds a quantified formula, or finds an equal one.
    pub(super) fn add_relation(
        &mut self,
        graph: &mut Graph,
        relation: Relation,
        operands: Box<[NodeId]>,
    ) -> Wire {
        let known = self.relations.iter().position(|other| *other == relation);
        let fields = relation.fields.clone();
        let number = known.unwrap_or_else(|| {
            self.relations.push(relation);
            self.relations.len() - 1
        });
        graph.wire(Node::Quantified { relation: number as u32, operands, fields })
    }

    /// Adds a quantified formula that is evaluated by value, once per node of the specification. Returns its
    /// lower and upper truth.
    pub(super) fn add_by_value(&mut self, graph: &mut Graph, source: ByValueSource) -> [Wire; 2] {
        let mut operands: Vec<NodeId> = source.inputs.iter().map(|wire| wire.node()).collect();
        operands.sort_unstable();
        operands.dedup();
        let fields = source.fields.clone();
        self.by_value.push(source);
        let number = self.by_value.len() as u32 - 1;
        let certain = graph.wire(Node::ByValue { number, operands: operands.into(), fields });
        [certain, graph.wire(Node::ByValuePossibly(certain.node()))]
    }
}
