//! Properties that look ahead, compiled.

use crate::future::{DelayedPlan, Plan};
use crate::ir::truth::Truth;

/// A property that looks ahead.
#[derive(Clone, Debug)]
pub(crate) struct Future {
    /// Its position in the specification.
    pub(crate) property: u32,
    pub(crate) plan: Plan,
    /// The pasts of the plan.
    pub(crate) pasts: Vec<Truth>,
    /// For what is decided elsewhere, by its number, the relation whose tuples are asked; its place is known
    /// in a section.
    pub(crate) givens: Vec<(u32, u32)>,
}

/// A property that looks ahead, and whose robustness is asked for.
#[derive(Clone, Debug)]
pub(crate) struct RobustFuture<R> {
    /// Its position in the specification.
    pub(crate) property: u32,
    pub(crate) plan: DelayedPlan,
    /// The pasts of the plan.
    pub(crate) pasts: Vec<(Truth, R)>,
}
