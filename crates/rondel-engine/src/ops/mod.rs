//! Operators over the rows of a block: kernels and their state.
//!
//! Operands are words of truth, columns of values and stamps of rows; programs and sections are unknown here.
//! Simple operators have two kernels: over consecutive rows of one instance, and over gathered rows, one per
//! instance.

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
