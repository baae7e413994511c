//! The interpreter: sections, which are lists of instructions with their state, run over rows that follow each other.

pub(crate) mod inner;
pub(crate) mod inventory;
pub(crate) mod memory;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod section;
pub(crate) mod serial;
pub(crate) mod settled;
pub(crate) mod state;
pub(crate) mod terms;
pub(crate) mod values;
