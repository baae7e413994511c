//! Compiles formulas with variables and future operators to obligations of the tuples of a relation.
//!
//! The past conjuncts bind the variables: `forall x. request{id: x} -> eventually[0, 2 s] grant{id: x}` is
//! `not exists x. request{id: x} and not eventually …`, with an obligation for each tuple of `request`. For
//! the values of a tuple the rest is a formula without variables, [cut](crate::future) like any formula with
//! future operators; its pasts are tests of the tuple.

use std::collections::HashMap;

use rondel_event::Comparison;
use rondel_spec::{Bounds, Expr, ExprId, Temporal, TimeModel, VariableId};

use super::literal::{Conjunct, DIVIDE, Literal, Refusal};
use super::plan::{Left, Lookup, PartId, PartOp, Root, TruthBound, TupleObligation};
use super::safe::Compiler;
use super::table::Access;
use super::value::place;
use crate::future::{self, Formula};

/// Message and help for a variable that is unbound when the obligation begins.
const UNKNOWN: (&str, &str) = (
    "no atom at the current time point binds it, and a future operator cannot bind it",
    "join the future operator with `and` to an atom that binds the variable; for `forall`, put the atom before `->`",
);

/// Formula of the obligation under construction.
struct ObligationDraft<'c, 'a> {
    compiler: &'c mut Compiler<'a>,
    ahead: &'c [bool],
    /// Variables of the tuples, in order.
    bound: Vec<VariableId>,
    nodes: Vec<Formula>,
    pasts: Vec<[Vec<Left>; 2]>,
    known: HashMap<ExprId, u32>,
}

impl<'a> Compiler<'a> {
    /// Plans the obligation of a conjunction of formulas and negations, some of which contain future
    /// operators.
    pub(crate) fn obligation(
        &mut self,
        whole: ExprId,
        literals: &[(ExprId, bool)],
        ahead: &[bool],
        number: u32,
    ) -> Result<(), Refusal> {
        let looks = |node: ExprId| ahead.get(node.index()) == Some(&true);
        let truth_bound = TruthBound::Possible;
        let now: Vec<Conjunct> = (literals.iter().filter(|(node, _)| !looks(*node)))
            .map(|&(node, positive)| Conjunct::Literal(Literal { node, positive, truth_bound }))
            .collect();
        let unknown = |compiler: &Self, bound: &[VariableId]| {
            let free = |(node, _): &(ExprId, bool)| {
                let free = compiler.scope.free(*node).iter().find(|variable| !bound.contains(variable));
                free.map(|variable| (*node, *variable))
            };
            let first = literals.iter().filter(|(node, _)| looks(*node)).find_map(free);
            first.map(|(node, variable)| Refusal::of(node, UNKNOWN.0, UNKNOWN.1).about(Some(variable)))
        };
        if now.is_empty() {
            return Err(unknown(self, &[]).unwrap_or(Refusal::of(whole, UNKNOWN.0, UNKNOWN.1)));
        }
        let of = self.conjunction(whole, now)?;
        let bound = self.part(of).variables.clone();
        if self.part(of).lasts {
            self.keep(of);
        }
        if let Some(refusal) = unknown(self, &bound) {
            return Err(refusal);
        }
        if self.model == TimeModel::Dense && !self.is_instant(of) {
            let node = literals.iter().map(|(node, _)| *node).find(|node| !looks(*node)).unwrap_or(whole);
            let why = "in dense time, future operators with variables are evaluated only at events, and this condition lasts";
            let help =
                "start with an atom, such as `a{id: x} and …`, or measure in points with `@time(points)`";
            return Err(Refusal::of(node, why, help).about(bound.first().copied()));
        }
        let (nodes, pasts) = {
            let (bound, known) = (bound.clone(), HashMap::new());
            let mut draft =
                ObligationDraft { compiler: self, ahead, bound, nodes: Vec::new(), pasts: Vec::new(), known };
            let mut root = None;
            for &(node, positive) in literals {
                let mut one = draft.formula(node)?;
                if !positive {
                    one = draft.add(Formula::Not(one));
                }
                root = Some(root.map_or(one, |root| draft.add(Formula::And(root, one))));
            }
            (draft.nodes, draft.pasts)
        };
        // A step is an event of the points model at the time of its number.
        let time = if self.model == TimeModel::Steps { TimeModel::Points } else { self.model };
        let formula = future::Plan::new(time, &nodes)
            .map_err(|_| Refusal::of(whole, "it has too many future operators", DIVIDE))?;
        if self.plan.forgets() {
            let why = "beside a future operator, an operator of the past without an upper bound cannot have a limit";
            let help = "add an upper bound, or write `@unbounded` before the property in place of `@limit`";
            return Err(Refusal::of(whole, why, help));
        }
        let part = self.add(whole, PartOp::Obligation { of, pasts }, bound, true)?;
        self.plan.roots.push(Root { conditions: Vec::new(), part });
        self.plan.obligation = Some(Box::new(TupleObligation { number, formula }));
        Ok(())
    }
}

impl ObligationDraft<'_, '_> {
    fn add(&mut self, node: Formula) -> u32 {
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    fn past(&mut self, lefts: [Vec<Left>; 2]) -> u32 {
        self.pasts.push(lefts);
        self.add(Formula::Past(self.pasts.len() as u32 - 1))
    }

    fn formula(&mut self, id: ExprId) -> Result<u32, Refusal> {
        if let Some(known) = self.known.get(&id) {
            return Ok(*known);
        }
        self.compiler.enter(id)?;
        let node = self.formula_uncached(id)?;
        self.compiler.depth -= 1;
        self.known.insert(id, node);
        Ok(node)
    }

    fn formula_uncached(&mut self, id: ExprId) -> Result<u32, Refusal> {
        let spec = self.compiler.scope.spec;
        let looks = |id: ExprId| self.ahead.get(id.index()) == Some(&true);
        let is_open = !self.compiler.scope.is_closed(id);
        let node = match &spec.nodes[id.index()] {
            Expr::Not(x) if is_open || looks(id) => Formula::Not(self.formula(*x)?),
            Expr::And(x, y) if is_open || looks(id) => Formula::And(self.formula(*x)?, self.formula(*y)?),
            Expr::Or(x, y) if is_open || looks(id) => Formula::Or(self.formula(*x)?, self.formula(*y)?),
            Expr::Definitely(x) if is_open || looks(id) => Formula::Definitely(self.formula(*x)?),
            _ if !looks(id) => {
                let lefts = [TruthBound::Certain, TruthBound::Possible].map(|truth_bound| {
                    let literal = Literal { node: id, positive: true, truth_bound };
                    self.compiler.left(id, literal, &self.bound, UNKNOWN)
                });
                let [certain, possible] = lefts;
                return Ok(self.past([certain?, possible?]));
            }
            Expr::If(c, x, y) => Formula::If(self.formula(*c)?, self.formula(*x)?, self.formula(*y)?),
            Expr::Compare(comparison, x, y) => {
                let same = Formula::Same(self.formula(*x)?, self.formula(*y)?);
                match comparison {
                    Comparison::Equal => same,
                    _ => Formula::Not(self.add(same)),
                }
            }
            Expr::Next(x) => {
                let x = self.formula(*x)?;
                match self.compiler.model {
                    TimeModel::Steps => Formula::Until { lower: 1, upper: 1, left: None, right: x },
                    _ => Formula::Next(x),
                }
            }
            // `exists` and `eventually` commute.
            Expr::Exists(variable, x) => match &spec.nodes[x.index()] {
                Expr::Eventually(bounds, y) if !looks(*y) => {
                    let right = self.some(id, *variable, *y, true)?;
                    until(bounds, None, right)
                }
                _ => return Err(inside(id, *variable)),
            },
            Expr::ForAll(variable, x) => match &spec.nodes[x.index()] {
                Expr::Always(bounds, y) if !looks(*y) => {
                    let fails = self.some(id, *variable, *y, false)?;
                    let fails = self.add(until(bounds, None, fails));
                    Formula::Not(fails)
                }
                _ => return Err(inside(id, *variable)),
            },
            expr => {
                let Some(Temporal { bounds, all, guard, operand }) = expr.future() else {
                    let why = "this operator cannot contain a future operator";
                    let help = "put the future operator outside, under `and`, `or`, `not` or `->`";
                    return Err(Refusal::of(id, why, help));
                };
                let left = guard.map(|guard| self.formula(guard)).transpose()?;
                let of = self.formula(operand)?;
                let right = if all { self.add(Formula::Not(of)) } else { of };
                let until = until(&bounds, left, right);
                if all { Formula::Not(self.add(until)) } else { until }
            }
        };
        Ok(self.add(node))
    }

    /// Adds a past: whether some value of a variable makes a formula, or its negation, true.
    fn some(&mut self, id: ExprId, variable: VariableId, of: ExprId, positive: bool) -> Result<u32, Refusal> {
        let lefts = [TruthBound::Certain, TruthBound::Possible].map(|truth_bound| {
            let literal = Conjunct::Literal(Literal { node: of, positive, truth_bound });
            let part = self.compiler.exists(id, &[variable], vec![literal])?;
            self.member(id, part)
        });
        let [certain, possible] = lefts;
        Ok(self.past([vec![certain?], vec![possible?]]))
    }

    fn member(&mut self, id: ExprId, part: PartId) -> Result<Left, Refusal> {
        let of_part = self.compiler.part(part).variables.clone();
        if let Some(variable) = of_part.iter().find(|variable| !self.bound.contains(variable)) {
            return Err(Refusal::of(id, UNKNOWN.0, UNKNOWN.1).about(Some(*variable)));
        }
        let columns: Vec<u32> = (0..of_part.len() as u32).collect();
        let slots = of_part.iter().map(|variable| place(&self.bound, *variable)).collect();
        if self.compiler.part(part).lasts {
            self.compiler.keep(part);
        }
        let lookup = Lookup { part, access: Access::Whole, columns, slots };
        Ok(Left::Member { lookup, wanted: true, back: Access::All })
    }
}

fn until(bounds: &Bounds, left: Option<u32>, right: u32) -> Formula {
    Formula::Until { lower: bounds.lower, upper: bounds.upper.unwrap_or(u64::MAX), left, right }
}

fn inside(node: ExprId, variable: VariableId) -> Refusal {
    let why = "a nested quantifier cannot contain this future operator";
    let help = "put the future operator outside the quantifier: `eventually[0, 2 s] exists y. …`";
    Refusal::of(node, why, help).about(Some(variable))
}
