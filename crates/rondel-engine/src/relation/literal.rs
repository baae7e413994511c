//! Formulas with variables, on their way to a plan.

use std::collections::HashMap;
use std::rc::Rc;

use rondel_event::ValueType;
use rondel_spec::{Expr, ExprId, Spec, VariableId};

use super::plan::{PartId, Rail};

/// Why a formula is refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Refusal {
    /// The part of the formula.
    pub(crate) node: ExprId,
    /// The variable that it is about, if it is about one.
    pub(crate) variable: Option<VariableId>,
    pub(crate) why: &'static str,
    /// What to write instead.
    pub(crate) help: &'static str,
}

impl Refusal {
    pub(crate) fn of(node: ExprId, why: &'static str, help: &'static str) -> Refusal {
        Refusal { node, variable: None, why, help }
    }

    pub(crate) fn about(self, variable: Option<VariableId>) -> Refusal {
        Refusal { variable, ..self }
    }
}

/// The way out where only a quantifier is asked for.
pub(crate) const DIVIDE: &str = "split the formula into several properties, or name parts of it with `let`";

/// A formula or its negation; of that, a rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Literal {
    pub(crate) node: ExprId,
    pub(crate) positive: bool,
    pub(crate) rail: Rail,
}

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Conjunct {
    Literal(Literal),
    /// The tuple is in this part.
    In(PartId),
    /// The tuple is not in this part.
    NotIn(PartId),
    /// There was a tick before, or there was none.
    NotFirst(bool),
}

/// What a literal with variables is.
pub(crate) enum LiteralMeaning {
    /// It holds for the tuples of this part.
    In(PartId),
    /// It holds for all others.
    NotIn(PartId),
    /// It holds where all of these do.
    All(Vec<Conjunct>),
    /// It holds where all of one of these do.
    Any(Vec<Vec<Conjunct>>),
}

/// What all plans of a specification have in common.
pub(crate) struct Scope<'a> {
    pub(crate) spec: &'a Spec,
    /// For every node its free variables, in order.
    free: Vec<Rc<[VariableId]>>,
    types: HashMap<VariableId, ValueType>,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(spec: &'a Spec) -> Scope<'a> {
        let mut free: Vec<Rc<[VariableId]>> = Vec::with_capacity(spec.nodes.len());
        let mut types = HashMap::new();
        for expr in &spec.nodes {
            let mut variables: Vec<VariableId> = Vec::new();
            for operand in expr.operands() {
                if let Some(of_operand) = free.get(operand.index()) {
                    variables.extend(of_operand.iter());
                }
            }
            match expr {
                Expr::Variable(variable, value_type) => {
                    types.insert(*variable, *value_type);
                    variables.push(*variable);
                }
                Expr::Bind { fields, .. } => {
                    types.extend(fields.iter().map(|(_, variable, value_type)| (*variable, *value_type)));
                    variables.extend(fields.iter().map(|(_, variable, _)| *variable));
                }
                Expr::Exists(variable, _) | Expr::ForAll(variable, _) => variables.retain(|v| v != variable),
                _ => {}
            }
            variables.sort_unstable();
            variables.dedup();
            free.push(variables.into());
        }
        Scope { spec, free, types }
    }

    pub(crate) fn free(&self, node: ExprId) -> &[VariableId] {
        &self.free[node.index()]
    }

    pub(crate) fn type_of(&self, variable: VariableId) -> Option<ValueType> {
        self.types.get(&variable).copied()
    }

    pub(crate) fn is_closed(&self, node: ExprId) -> bool {
        self.free(node).is_empty()
    }
}
