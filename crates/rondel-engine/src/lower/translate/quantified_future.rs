//! Quantified formulas with future operators. Conjuncts without variables move out of the quantifier; the
//! rest becomes an obligation of each tuple that satisfies the conjuncts about the present and past.

use std::collections::HashMap;

use rondel_event::Comparison;
use rondel_spec::{Bounds, Expr, ExprId};

use super::relation::{not_monitorable, with_names};
use super::{Translator, Truth};
use crate::CompileError;
use crate::future::Formula;
use crate::relation::literal::{Conjunct, DIVIDE, Literal, Refusal};
use crate::relation::plan::{RelationPlan, TruthBound};
use crate::relation::safe::Compiler;

/// A formula with future operators under construction.
pub(super) struct Draft<'b> {
    /// For every node whether it contains a future operator.
    pub(super) ahead: &'b [bool],
    /// Index in `nodes` of each translated node without variables.
    pub(super) place: HashMap<ExprId, u32>,
    pub(super) nodes: Vec<Formula>,
    pub(super) pasts: Vec<(ExprId, Truth)>,
    /// Numbers of the obligations of tuples.
    pub(super) externals: Vec<u32>,
}

impl Draft<'_> {
    pub(super) fn add(&mut self, node: Formula) -> u32 {
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    fn looks(&self, node: ExprId) -> bool {
        self.ahead.get(node.index()) == Some(&true)
    }
}

/// Limit of the recursion into nested quantified formulas.
const DEEPEST: usize = 200;

impl Translator<'_> {
    /// Translates a closed quantified formula with future operators.
    pub(super) fn quantified_ahead(
        &mut self,
        id: ExprId,
        draft: &mut Draft<'_>,
    ) -> Result<u32, CompileError> {
        match self.spec.nodes[id.index()] {
            Expr::Exists(_, body) => self.some(id, true, &[(body, true)], draft, 0),
            Expr::ForAll(_, body) => {
                let fails = self.some(id, true, &[(body, false)], draft, 0)?;
                Ok(draft.add(Formula::Not(fails)))
            }
            _ => Err(not_monitorable(Refusal::of(id, "it is not a quantifier", DIVIDE))),
        }
    }

    /// Translates `exists` over a conjunction of literals. `is_own`: the conjunction is evaluated at the time
    /// point of the whole formula, so that a violation can name the values.
    fn some(
        &mut self,
        whole: ExprId,
        is_own: bool,
        literals: &[(ExprId, bool)],
        draft: &mut Draft<'_>,
        depth: usize,
    ) -> Result<u32, CompileError> {
        if depth > DEEPEST {
            return Err(not_monitorable(Refusal::of(whole, "the formula is nested too deeply", DIVIDE)));
        }
        let scope = self.scope();
        let nodes = &self.spec.nodes;
        let (mut closed, mut rest) = (Vec::new(), Vec::new());
        let mut open: Vec<(ExprId, bool)> = literals.iter().rev().copied().collect();
        while let Some((id, positive)) = open.pop() {
            match (&nodes[id.index()], positive) {
                _ if scope.is_closed(id) => closed.push((id, positive)),
                (Expr::Not(x), _) => open.push((*x, !positive)),
                (Expr::And(x, y), true) | (Expr::Or(x, y), false) => {
                    open.extend([(*y, positive), (*x, positive)]);
                }
                // Variables have unique names.
                (Expr::Exists(_, x), true) | (Expr::ForAll(_, x), false) => open.push((*x, positive)),
                _ if rest.contains(&(id, positive)) => {}
                _ => rest.push((id, positive)),
            }
        }
        if rest.len() > 1 && rest.iter().any(|(id, _)| draft.looks(*id)) {
            // Conjuncts about the present and past stay with the tuples: only tuples that satisfy them get an
            // obligation.
            let (ahead, known): (Vec<_>, Vec<_>) = closed.into_iter().partition(|(id, _)| draft.looks(*id));
            (closed, rest) = (ahead, [known, rest].concat());
        }
        // The violation then also depends on the conjuncts outside of the quantifier, so no values are named.
        let is_own = is_own && closed.is_empty();
        let mut all: Vec<u32> = Vec::new();
        for (id, positive) in closed {
            let at = self.closed(whole, id, draft)?;
            all.push(if positive { at } else { draft.add(Formula::Not(at)) });
        }
        match rest[..] {
            [] => {}
            [(id, positive)] if draft.looks(id) => {
                all.push(self.one(whole, is_own, id, positive, draft, depth + 1)?);
            }
            _ => all.push(self.obligation(whole, is_own, &rest, draft)?),
        }
        let mut root = None;
        for one in all {
            root = Some(root.map_or(one, |root| draft.add(Formula::And(root, one))));
        }
        root.ok_or(not_monitorable(Refusal::of(whole, "it is empty", DIVIDE)))
    }

    /// Translates a single literal with a future operator by moving the quantifier inside.
    fn one(
        &mut self,
        whole: ExprId,
        is_own: bool,
        id: ExprId,
        positive: bool,
        draft: &mut Draft<'_>,
        depth: usize,
    ) -> Result<u32, CompileError> {
        let scope = self.scope();
        let until = |bounds: &Bounds, left, right| {
            let upper = bounds.upper.unwrap_or(u64::MAX);
            Formula::Until { lower: bounds.lower, upper, left, right }
        };
        match (self.spec.nodes[id.index()].clone(), positive) {
            (Expr::Or(x, y), true) | (Expr::And(x, y), false) => {
                let either = [x, y].map(|x| self.some(whole, is_own, &[(x, positive)], draft, depth));
                let [x, y] = either;
                Ok(draft.add(Formula::Or(x?, y?)))
            }
            (Expr::Compare(comparison, x, y), _) => {
                let equal = (comparison == Comparison::Equal) == positive;
                let both = self.some(whole, is_own, &[(x, true), (y, equal)], draft, depth)?;
                let neither = self.some(whole, is_own, &[(x, false), (y, !equal)], draft, depth)?;
                Ok(draft.add(Formula::Or(both, neither)))
            }
            (Expr::Eventually(bounds, x), true) | (Expr::Always(bounds, x), false) => {
                let right = self.some(whole, false, &[(x, positive)], draft, depth)?;
                Ok(draft.add(until(&bounds, None, right)))
            }
            (Expr::Until(bounds, x, y), true) if scope.is_closed(x) => {
                let left = self.closed(whole, x, draft)?;
                let right = self.some(whole, false, &[(y, true)], draft, depth)?;
                Ok(draft.add(until(&bounds, Some(left), right)))
            }
            (Expr::Next(x), _) => {
                let x = self.some(whole, false, &[(x, positive)], draft, depth)?;
                Ok(draft.add(Formula::Next(x)))
            }
            _ => self.obligation(whole, is_own, &[(id, positive)], draft),
        }
    }

    /// The translated node without variables.
    fn closed(&mut self, whole: ExprId, id: ExprId, draft: &mut Draft<'_>) -> Result<u32, CompileError> {
        draft.place.get(&id).copied().ok_or(CompileError::ForwardReference { node: whole, operand: id })
    }

    /// Translates a conjunction to an obligation of tuples, or to a past truth if it has no future operator.
    fn obligation(
        &mut self,
        whole: ExprId,
        is_own: bool,
        literals: &[(ExprId, bool)],
        draft: &mut Draft<'_>,
    ) -> Result<u32, CompileError> {
        let looks = literals.iter().any(|(id, _)| draft.looks(*id));
        let number = self.obligations;
        if looks {
            self.obligations += 1;
            let plan = self
                .with_compiler(whole, |compiler| compiler.obligation(whole, literals, draft.ahead, number))?;
            let plan = if is_own { with_names(&self.scope(), plan) } else { plan };
            let halves = self.planned(whole, plan)?;
            // Evaluated at every time point, although its resolutions are delivered through `externals` and not
            // as a truth.
            draft.pasts.push((whole, Truth::of(halves, halves)));
            draft.externals.push(number);
            return Ok(draft.add(Formula::External(number)));
        }
        let mut plan = |truth_bound: TruthBound| {
            self.with_compiler(whole, |compiler| {
                let literal = |&(node, positive): &(ExprId, bool)| {
                    Conjunct::Literal(Literal { node, positive, truth_bound })
                };
                compiler.root(whole, Vec::new(), literals.iter().map(literal).collect())
            })
        };
        let (certain, possible) = (plan(TruthBound::Certain)?, plan(TruthBound::Possible)?);
        let certain = self.planned(whole, certain)?;
        let possible = self.planned(whole, possible)?;
        draft.pasts.push((whole, Truth::of(certain, possible)));
        Ok(draft.add(Formula::Past(draft.pasts.len() as u32 - 1)))
    }

    /// Runs the compiler of relations, and returns its plan.
    fn with_compiler(
        &mut self,
        whole: ExprId,
        make: impl FnOnce(&mut Compiler<'_>) -> Result<(), Refusal>,
    ) -> Result<RelationPlan, CompileError> {
        let scope = self.scope();
        let (model, keep) = (self.model, self.demands.keep[whole.index()]);
        let done = &self.done;
        let two_valued = |node: ExprId| {
            done.get(node.index()).copied().flatten().is_some_and(|(meaning, _)| meaning.is_known())
        };
        let mut compiler = Compiler::new(&scope, model, keep, &two_valued);
        make(&mut compiler).map_err(not_monitorable)?;
        Ok(compiler.plan.pruned())
    }
}
