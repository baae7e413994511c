//! Translation of properties with future operators: subformulas about the past become wires, the rest a plan.

use std::collections::{HashMap, HashSet};

use rondel_event::Comparison;
use rondel_spec::{Class, Expr, ExprId, Temporal, TimeModel, fold};

use super::operands::Operands;
use super::quantified_future::Draft;
use super::{Robustness, Translator, Truth};
use crate::CompileError;
use crate::future::{DelayedPlan, Formula, Future, Plan, RobustFuture};
use crate::lower::error;

/// A formula with future operators, cut at its past subformulas.
struct Cut {
    nodes: Vec<Formula>,
    pasts: Vec<(ExprId, Truth)>,
    /// Numbers of the obligations of tuples.
    externals: Vec<u32>,
}

/// For every node whether it contains a future operator.
pub(super) fn look_ahead(nodes: &[Expr]) -> Vec<bool> {
    fold(nodes, |_, expr, ahead: &[bool]| {
        let inherited = expr.operands().any(|operand| ahead.get(operand.index()) == Some(&true));
        expr.class() == Class::Future || inherited
    })
}

impl Translator<'_> {
    /// Plans a property with future operators. Its past subformulas have been translated.
    pub(super) fn plan(
        &mut self,
        property: u32,
        formula: ExprId,
        model: TimeModel,
        ahead: &[bool],
    ) -> Result<Future, CompileError> {
        let Cut { nodes, pasts, externals } = self.cut(formula, ahead)?;
        let plan = Plan::new(model, &nodes).map_err(|_| too_large(formula))?;
        let pasts = pasts.into_iter().map(|(_, truth)| truth).collect();
        Ok(Future {
            property,
            plan,
            pasts,
            externals: externals.into_iter().map(|number| (number, 0)).collect(),
        })
    }

    /// Plans a property with future operators and robustness.
    pub(super) fn robust_plan(
        &mut self,
        property: u32,
        formula: ExprId,
        model: TimeModel,
        ahead: &[bool],
    ) -> Result<RobustFuture<Robustness>, CompileError> {
        let Cut { nodes, pasts, externals } = self.cut(formula, ahead)?;
        if !externals.is_empty() {
            return Err(CompileError::Unsupported { node: formula, what: error::ROBUST_QUANTIFIER });
        }
        let plan = DelayedPlan::new(model, nodes).map_err(|_| too_large(formula))?;
        let pasts = pasts.into_iter().map(|(past, truth)| Ok((truth, self.robustness(past)?)));
        Ok(RobustFuture { property, plan, pasts: pasts.collect::<Result<_, _>>()? })
    }

    fn cut(&mut self, formula: ExprId, ahead: &[bool]) -> Result<Cut, CompileError> {
        // The nodes with future operators, and their operands before them. The order follows from the formula
        // alone, so that the plan is the same in every specification.
        let (mut needed, mut seen) = (Vec::new(), HashSet::new());
        let mut open = vec![(formula, false)];
        while let Some((id, is_ready)) = open.pop() {
            if is_ready {
                needed.push(id);
            } else if seen.insert(id) {
                open.push((id, true));
                if id == formula || ahead.get(id.index()).is_some_and(|&ahead| ahead) {
                    // A quantified formula contributes the nodes without variables.
                    let operands = self.required_operands(id, &self.spec.nodes[id.index()])?;
                    let operands = operands.into_iter().rev().filter(|operand| operand.0 < id.0);
                    open.extend(operands.map(|operand| (operand, false)));
                }
            }
        }
        let (nodes, pasts, externals) = (Vec::new(), Vec::new(), Vec::new());
        let mut draft = Draft { ahead, place: HashMap::new(), nodes, pasts, externals };
        for id in needed {
            let is_quantifier = self.spec.nodes[id.index()].class() == Class::Quantifier;
            if is_quantifier && ahead[id.index()] {
                let node = self.quantified_ahead(id, &mut draft)?;
                draft.place.insert(id, node);
                continue;
            }
            let operands = Operands { id, done: &self.done };
            let Draft { place, nodes, pasts, .. } = &mut draft;
            let node = if ahead[id.index()] {
                self.node(id, place, &operands, nodes)?
            } else {
                // An operand that is not boolean is reported by the node that has it.
                let Ok(truth) = operands.truth(id) else { continue };
                pasts.push((id, truth));
                Formula::Past(pasts.len() as u32 - 1)
            };
            place.insert(id, add(nodes, node));
        }
        if let Some(&root) = draft.place.get(&formula)
            && root as usize + 1 != draft.nodes.len()
        {
            draft.add(Formula::And(root, root));
        }
        let Draft { nodes, pasts, externals, .. } = draft;
        Ok(Cut { nodes, pasts, externals })
    }

    fn node(
        &self,
        id: ExprId,
        place: &HashMap<ExprId, u32>,
        operands: &Operands<'_>,
        nodes: &mut Vec<Formula>,
    ) -> Result<Formula, CompileError> {
        let at = |operand: &ExprId| match place.get(operand) {
            Some(&at) => Ok(at),
            // The operand is not boolean or does not exist; `truth` returns the error.
            None => operands
                .truth(*operand)
                .and(Err(CompileError::ForwardReference { node: id, operand: *operand })),
        };
        let expr = &self.spec.nodes[id.index()];
        if let Some(Temporal { bounds, all, guard, operand }) = expr.future() {
            let upper = bounds.upper.unwrap_or(u64::MAX);
            let left = guard.map(|guard| at(&guard)).transpose()?;
            let of = at(&operand)?;
            let right = if all { add(nodes, Formula::Not(of)) } else { of };
            let until = Formula::Until { lower: bounds.lower, upper, left, right };
            return Ok(if all { Formula::Not(add(nodes, until)) } else { until });
        }
        Ok(match expr {
            Expr::Not(x) => Formula::Not(at(x)?),
            Expr::And(x, y) => Formula::And(at(x)?, at(y)?),
            Expr::Or(x, y) => Formula::Or(at(x)?, at(y)?),
            Expr::Definitely(x) => Formula::Definitely(at(x)?),
            Expr::If(condition, x, y) => Formula::If(at(condition)?, at(x)?, at(y)?),
            Expr::Compare(Comparison::Equal, x, y) => Formula::Same(at(x)?, at(y)?),
            Expr::Compare(Comparison::NotEqual, x, y) => {
                let same = Formula::Same(at(x)?, at(y)?);
                Formula::Not(add(nodes, same))
            }
            Expr::Next(x) => Formula::Next(at(x)?),
            _ => {
                return Err(CompileError::Unsupported { node: id, what: error::FUTURE_INSIDE });
            }
        })
    }
}

fn too_large(node: ExprId) -> CompileError {
    CompileError::Unsupported { node, what: error::TOO_MANY_FUTURES }
}

fn add(nodes: &mut Vec<Formula>, node: Formula) -> u32 {
    nodes.push(node);
    nodes.len() as u32 - 1
}
