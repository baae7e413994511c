//! Machines in explanations: by which transitions one came into its state.

use rondel_event::Value;
use rondel_spec::{Expr, ExprId, Machine, MachineId, Property, Spec};

/// A machine with more states is explained by its current state alone.
const STATES: usize = 24;

/// For each machine nodes that are true in each of its states, added to the specification.
pub(super) fn states(spec: &mut Spec) -> Vec<Vec<ExprId>> {
    let mut all = Vec::new();
    for (machine, states) in (0..).zip(spec.machines.iter().map(|machine| machine.states.len())) {
        let states = if states > STATES { 0 } else { states as u32 };
        let first = spec.nodes.len() as u32;
        spec.nodes.extend((0..states).map(|state| Expr::InState(MachineId(machine), vec![state])));
        all.push((first..first + states).map(ExprId).collect());
    }
    all
}

/// The machine that a node is about, if its transitions explain the node in this property: then both have the same time and
/// the same instances.
pub(super) fn of<'s>(spec: &'s Spec, property: &Property, id: ExprId) -> Option<(MachineId, &'s Machine)> {
    let (Expr::InState(machine, _) | Expr::Ambiguous(machine)) = &spec.nodes[id.index()] else { return None };
    let found = spec.machines.get(machine.0 as usize)?;
    let agrees = (found.time, found.slice) == (property.time, property.slice);
    (agrees && found.states.len() <= STATES).then_some((*machine, found))
}

/// The name of the row with the state of a machine.
pub(super) fn row_name(machine: &Machine) -> String {
    format!("state of {}", machine.name)
}

/// A state as a value.
pub(super) fn state(machine: &Machine, state: u32) -> Value {
    let name = machine.states.get(state as usize).map_or("?", |state| &state.name);
    Value::String(name.into())
}

/// Whether a condition reads a machine. Its variables and its state have other values when the condition is tested than after
/// the transition, so that the condition cannot be watched by itself.
pub(super) fn reads_machine(spec: &Spec, condition: ExprId) -> bool {
    spec.below(condition).any(|(_, node)| node.machine().is_some())
}
