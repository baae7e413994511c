//! The program's own language: nodes, wires and instructions. Leaves, which everything else may import.

pub(crate) mod found;
pub(crate) mod graph;
pub(crate) mod instruction;
pub(crate) mod node;
pub(crate) mod premise;
pub(crate) mod schedule;
pub(crate) mod truth;
pub(crate) mod wire;
