//! What is said of how formulas with quantifiers are evaluated.

use rondel_event::{Path, TopicId};
use rondel_spec::{ExprId, VariableId};

/// How a formula with quantifiers is evaluated: see [`Program::quantifiers`](crate::Program::quantifiers).
#[derive(Clone, Debug, PartialEq)]
pub struct Quantifier {
    /// The formula.
    pub node: ExprId,
    /// How.
    pub evaluation: Evaluation,
}

/// A way to evaluate a formula with quantifiers.
#[derive(Clone, Debug, PartialEq)]
pub enum Evaluation {
    /// By value, as a property that is divided by key: for each variable where the messages have it.
    ByValue(Vec<(VariableId, Vec<(TopicId, Path)>)>),
    /// By relations: tables of the values that still count.
    Relations {
        /// The part of the formula because of which it is not by value.
        node: ExprId,
        /// What is about it.
        why: &'static str,
    },
}
