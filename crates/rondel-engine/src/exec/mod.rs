//! The interpreter: runs the instructions of a section, with their state, over consecutive rows.

pub(crate) mod inner;
pub(crate) mod inventory;
pub(crate) mod memory;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod section;
pub(crate) mod serial;
pub(crate) mod specialised;
pub(crate) mod state;
pub(crate) mod terms;
pub(crate) mod values;
