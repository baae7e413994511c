//! The evaluation that was chosen for each quantified formula.

use rondel_event::{Path, TopicId};
use rondel_spec::{ExprId, VariableId};

/// The evaluation of a quantified formula: see [`Program::quantifiers`](crate::Program::quantifiers).
#[derive(Clone, Debug, PartialEq)]
pub struct Quantifier {
    /// The formula.
    pub node: ExprId,
    /// The evaluation chosen for it.
    pub evaluation: Evaluation,
}

/// A strategy for the evaluation of quantified formulas.
#[derive(Clone, Debug, PartialEq)]
pub enum Evaluation {
    /// By value, like instances of `for each`. Lists the fields that bind each variable.
    ByValue(Vec<(VariableId, Vec<(TopicId, Path)>)>),
    /// By relations: tables of the tuples that can still affect a verdict.
    Relations {
        /// The subformula that prevents evaluation by value.
        node: ExprId,
        /// The reason.
        why: &'static str,
    },
}
