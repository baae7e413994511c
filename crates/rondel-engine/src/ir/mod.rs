//! The intermediate representation: nodes, wires and instructions. It imports no other folder of the engine.

pub(crate) mod found;
pub(crate) mod graph;
pub(crate) mod instruction;
pub(crate) mod node;
pub(crate) mod premise;
pub(crate) mod schedule;
pub(crate) mod truth;
pub(crate) mod wire;
