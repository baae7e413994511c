//! Operators over the rows of a block: their state, and what they compute.
//!
//! Nothing here knows of programs: operands are words of truth, columns of values, and the stamps of rows. What is small
//! has two kernels side by side: over rows of one instance, and over lanes, of which each is a row of another instance.

pub(crate) mod arithmetic;
pub(crate) mod columns;
pub(crate) mod delay;
pub(crate) mod extreme;
pub(crate) mod functions;
pub(crate) mod held;
pub(crate) mod once;
pub(crate) mod ranges;
pub(crate) mod rows;
pub(crate) mod saved;
pub(crate) mod scalar;
pub(crate) mod shift;
pub(crate) mod since;
pub(crate) mod stamps;
pub(crate) mod texts;
pub(crate) mod timed;
pub(crate) mod varying;
pub(crate) mod window;
pub(crate) mod words;
