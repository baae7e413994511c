//! Formulas with variables, under compilation to a plan.

use std::collections::HashMap;
use std::rc::Rc;

use rondel_event::ValueType;
use rondel_spec::{Expr, ExprId, Spec, VariableId};

use super::plan::{PartId, TruthBound};

/// Reason for which a formula is refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Refusal {
    /// Refused subformula.
    pub(crate) node: ExprId,
    /// Variable at fault, if any.
    pub(crate) variable: Option<VariableId>,
    pub(crate) why: &'static str,
    /// Alternative formulation.
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

/// Help for a formula that is too large.
pub(crate) const DIVIDE: &str = "split the formula into several properties, or name parts of it with `let`";

/// Lower or upper truth of a formula or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Literal {
    pub(crate) node: ExprId,
    pub(crate) positive: bool,
    pub(crate) truth_bound: TruthBound,
}

/// Condition that a tuple must meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Conjunct {
    Literal(Literal),
    /// The tuple is in this part.
    In(PartId),
    /// The tuple is not in this part.
    NotIn(PartId),
    /// Whether there was an earlier tick equals this.
    NotFirst(bool),
}

/// Meaning of a literal with variables.
pub(crate) enum LiteralMeaning {
    /// True for the tuples of this part.
    In(PartId),
    /// True for all tuples except those of this part.
    NotIn(PartId),
    /// True where all of these are.
    All(Vec<Conjunct>),
    /// True where all conjuncts of some alternative are.
    Any(Vec<Vec<Conjunct>>),
}

/// Properties of the nodes of a specification, shared by all plans.
pub(crate) struct Scope<'a> {
    pub(crate) spec: &'a Spec,
    /// Free variables of every node, in order.
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
