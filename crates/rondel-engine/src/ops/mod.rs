//! Operators over the rows of a block: their state, and what they compute.
//!
//! Nothing here knows of programs: operands are words of truth, columns of values, and the stamps of rows.

pub(crate) mod columns;
pub(crate) mod delay;
pub(crate) mod extreme;
pub(crate) mod functions;
pub(crate) mod once;
pub(crate) mod ranges;
pub(crate) mod rows;
pub(crate) mod saved;
pub(crate) mod scalar;
pub(crate) mod since;
pub(crate) mod stamps;
pub(crate) mod texts;
pub(crate) mod timed;
pub(crate) mod varying;
pub(crate) mod window;
pub(crate) mod words;
