//! Compiled properties with future operators.

use crate::future::{DelayedPlan, Plan};
use crate::ir::truth::Truth;

/// Property with future operators.
#[derive(Clone, Debug)]
pub(crate) struct Future {
    /// Index of the property in the specification.
    pub(crate) property: u32,
    pub(crate) plan: Plan,
    /// Pasts of the plan.
    pub(crate) pasts: Vec<Truth>,
    /// External truths by number, with the index of the relation in its section that decides each.
    pub(crate) externals: Vec<(u32, u32)>,
}

/// Property with future operators and robustness.
#[derive(Clone, Debug)]
pub(crate) struct RobustFuture<R> {
    /// Index of the property in the specification.
    pub(crate) property: u32,
    pub(crate) plan: DelayedPlan,
    /// Pasts of the plan.
    pub(crate) pasts: Vec<(Truth, R)>,
}
