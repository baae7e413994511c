//! Compiles a quantified formula to a plan: determines which subformulas are finite relations, and the order
//! in which they bind the variables of the others.
//!
//! A *literal* is the lower or upper truth of a formula or its negation. A set of literals that must all hold
//! is a *conjunction*: its finite literals bind variables, and the others test bound tuples. Negations are
//! pushed down to finite relations, which they complement: `not p` tests that `p` does not contain the tuple.

use std::collections::HashMap;

use rondel_event::Comparison;
use rondel_spec::{Class, Expr, ExprId, Temporal, TimeModel, VariableId};

use super::join::Conjuncts;
use super::literal::{Conjunct, DIVIDE, Literal, Refusal, Scope};
use super::plan::{Condition, Keep, PartId, PartOp, RelationPlan, Root, TruthBound};
use super::value::place;

/// Maximum nesting depth of operators with variables.
const LIMIT: usize = 200;

pub(crate) struct Compiler<'a> {
    pub(crate) scope: &'a Scope<'a>,
    pub(crate) model: TimeModel,
    /// Limit on values stored without a bound in time.
    pub(crate) keep: Keep,
    pub(crate) two_valued: &'a dyn Fn(ExprId) -> bool,
    pub(crate) plan: RelationPlan,
    known: HashMap<Literal, Result<PartId, Refusal>>,
    pub(crate) depth: usize,
}

impl<'a> Compiler<'a> {
    pub(crate) fn new(
        scope: &'a Scope<'a>,
        model: TimeModel,
        keep: Keep,
        two_valued: &'a dyn Fn(ExprId) -> bool,
    ) -> Compiler<'a> {
        let (plan, known) = (RelationPlan::default(), HashMap::new());
        Compiler { scope, model, keep, two_valued, plan, known, depth: 0 }
    }

    /// Plans a closed `exists` or `forall`.
    pub(crate) fn compile(
        scope: &'a Scope<'a>,
        node: ExprId,
        truth_bound: TruthBound,
        model: TimeModel,
        keep: Keep,
        two_valued: &'a dyn Fn(ExprId) -> bool,
    ) -> Result<RelationPlan, Refusal> {
        let mut compiler = Compiler::new(scope, model, keep, two_valued);
        let literal = match &scope.spec.nodes[node.index()] {
            Expr::Exists(_, body) => Literal { node: *body, positive: true, truth_bound },
            Expr::ForAll(_, body) => {
                compiler.plan.negated = true;
                Literal { node: *body, positive: false, truth_bound: truth_bound.opposite() }
            }
            _ => return Err(Refusal::of(node, "it is not a quantifier", DIVIDE)),
        };
        compiler.root(node, Vec::new(), vec![Conjunct::Literal(literal)])?;
        Ok(compiler.plan.pruned())
    }

    /// Adds a root: the formula holds where conjuncts do for some values of all their variables.
    pub(crate) fn root(
        &mut self,
        whole: ExprId,
        mut conditions: Vec<Condition>,
        conjuncts: Vec<Conjunct>,
    ) -> Result<(), Refusal> {
        self.enter(whole)?;
        let mut rest = Vec::new();
        for conjunct in self.flatten(&conjuncts) {
            match conjunct {
                Conjunct::Literal(literal) if self.scope.is_closed(literal.node) => {
                    conditions.push(self.truth(literal));
                }
                Conjunct::NotFirst(wanted) => conditions.push(Condition::NotFirst(wanted)),
                other => rest.push(other),
            }
        }
        if let [Conjunct::Literal(literal)] = rest[..] {
            if let Some(body) = self.quantified(literal) {
                self.root(whole, conditions, vec![Conjunct::Literal(body)])?;
                self.depth -= 1;
                return Ok(());
            }
            if let Some(ways) = self.ways(literal) {
                for way in ways {
                    self.root(whole, conditions.clone(), way)?;
                }
                self.depth -= 1;
                return Ok(());
            }
        }
        let part = match rest.is_empty() {
            true => self.add(whole, PartOp::Unit, Vec::new(), false)?,
            false => {
                let part = match self.conjunction(whole, rest.clone()) {
                    Ok(part) => part,
                    Err(refusal) => {
                        let mut variables: Vec<VariableId> = Vec::new();
                        for conjunct in &rest {
                            match conjunct {
                                Conjunct::Literal(literal) => variables.extend(self.scope.free(literal.node)),
                                Conjunct::In(part) | Conjunct::NotIn(part) => {
                                    variables.extend(&self.part(*part).variables);
                                }
                                Conjunct::NotFirst(_) => {}
                            }
                        }
                        variables.sort_unstable();
                        variables.dedup();
                        self.exists(whole, &variables, rest).map_err(|_| refusal)?
                    }
                };
                self.some_of(whole, part)?
            }
        };
        self.plan.roots.push(Root { conditions, part });
        self.depth -= 1;
        Ok(())
    }

    pub(crate) fn enter(&mut self, node: ExprId) -> Result<(), Refusal> {
        self.depth += 1;
        if self.depth > LIMIT {
            return Err(Refusal::of(node, "the formula is nested too deeply", DIVIDE));
        }
        Ok(())
    }

    /// Returns the body of a literal that requires some value of a variable.
    fn quantified(&self, literal: Literal) -> Option<Literal> {
        match (&self.scope.spec.nodes[literal.node.index()], literal.positive) {
            (Expr::Exists(_, body), true) | (Expr::ForAll(_, body), false) => {
                Some(Literal { node: *body, ..literal })
            }
            _ => None,
        }
    }

    /// Returns the part of a literal that has finitely many tuples.
    pub(crate) fn finite(&mut self, literal: Literal) -> Result<PartId, Refusal> {
        if let Some(known) = self.known.get(&literal) {
            return *known;
        }
        self.enter(literal.node)?;
        let found = self.finite_uncached(literal);
        self.depth -= 1;
        self.known.insert(literal, found);
        found
    }

    fn finite_uncached(&mut self, literal: Literal) -> Result<PartId, Refusal> {
        let conjuncts = self.flatten(&[Conjunct::Literal(literal)]);
        if let [Conjunct::Literal(single)] = conjuncts[..]
            && let Some(ways) = self.ways(single)
        {
            return self.union(single.node, ways);
        }
        self.conjunction(literal.node, conjuncts)
    }

    /// Splits conjunctions and negations.
    pub(crate) fn flatten(&self, conjuncts: &[Conjunct]) -> Vec<Conjunct> {
        let mut out = Vec::new();
        let mut open: Vec<Conjunct> = conjuncts.iter().rev().copied().collect();
        while let Some(conjunct) = open.pop() {
            let Conjunct::Literal(literal) = conjunct else {
                out.push(conjunct);
                continue;
            };
            let Literal { positive, truth_bound, .. } = literal;
            match self.scope.spec.nodes[literal.node.index()] {
                _ if self.scope.is_closed(literal.node) => out.push(conjunct),
                // The truth bound is that of the literal, whatever its sign.
                Expr::Not(x) => {
                    open.push(Conjunct::Literal(Literal { node: x, positive: !positive, truth_bound }))
                }
                // `definitely` is two-valued: its negation holds where that of the operand is possible.
                Expr::Definitely(x) => {
                    let truth_bound = if positive { TruthBound::Certain } else { TruthBound::Possible };
                    open.push(Conjunct::Literal(Literal { node: x, positive, truth_bound }));
                }
                Expr::And(x, y) if positive => {
                    open.extend(
                        [y, x].map(|node| Conjunct::Literal(Literal { node, positive, truth_bound })),
                    );
                }
                Expr::Or(x, y) if !positive => {
                    open.extend(
                        [y, x].map(|node| Conjunct::Literal(Literal { node, positive, truth_bound })),
                    );
                }
                _ if !out.contains(&conjunct) => out.push(conjunct),
                _ => {}
            }
        }
        out
    }

    /// Returns the alternatives of a literal that is a disjunction.
    pub(crate) fn ways(&self, literal: Literal) -> Option<Vec<Vec<Conjunct>>> {
        let Literal { positive, truth_bound, .. } = literal;
        let on = |node, positive| Conjunct::Literal(Literal { node, positive, truth_bound });
        match self.scope.spec.nodes[literal.node.index()] {
            Expr::Or(x, y) if positive => Some(vec![vec![on(x, true)], vec![on(y, true)]]),
            Expr::And(x, y) if !positive => Some(vec![vec![on(x, false)], vec![on(y, false)]]),
            Expr::Compare(comparison, x, y) if self.is_formula(x) || self.is_formula(y) => {
                let equal = (comparison == Comparison::Equal) == positive;
                Some(vec![vec![on(x, true), on(y, equal)], vec![on(x, false), on(y, !equal)]])
            }
            _ => None,
        }
    }

    /// Whether a node is a formula with variables, not a value.
    pub(crate) fn is_formula(&self, node: ExprId) -> bool {
        let is_formula = match &self.scope.spec.nodes[node.index()] {
            Expr::Bind { .. } | Expr::Compare(..) | Expr::StartsWith(..) | Expr::Call(..) => true,
            Expr::Prev(_) => false,
            expr => matches!(expr.class(), Class::Connective | Class::Quantifier | Class::Past),
        };
        is_formula && !self.scope.is_closed(node)
    }

    pub(crate) fn union(&mut self, node: ExprId, ways: Vec<Vec<Conjunct>>) -> Result<PartId, Refusal> {
        let mut parts = Vec::new();
        for way in ways {
            let conjuncts = self.flatten(&way);
            let inner = match conjuncts[..] {
                [Conjunct::Literal(literal)] => self.ways(literal),
                _ => None,
            };
            let part = match inner {
                Some(ways) => {
                    self.enter(node)?;
                    let part = self.union(node, ways);
                    self.depth -= 1;
                    part?
                }
                None => self.conjunction(node, conjuncts)?,
            };
            match &self.part(part).op {
                PartOp::Union(of) if !of.is_empty() && !self.part(part).lasts => parts.extend(of.clone()),
                _ => parts.push(part),
            }
        }
        parts.sort_unstable();
        parts.dedup();
        if let [part] = parts[..] {
            return Ok(part);
        }
        self.union_of(node, parts)
    }

    pub(crate) fn union_of(&mut self, node: ExprId, mut parts: Vec<PartId>) -> Result<PartId, Refusal> {
        let variables = parts.first().map(|p| self.part(*p).variables.clone()).unwrap_or_default();
        let why = "one side of this `or` does not bind it, so it can have any value";
        let help = "bind it on both sides, or in an atom joined to the `or` with `and`";
        for part in &parts {
            let of_part = &self.part(*part).variables;
            let differs =
                |one: &[VariableId], other: &[VariableId]| one.iter().find(|v| !other.contains(v)).copied();
            if let Some(variable) = differs(of_part, &variables).or(differs(&variables, of_part)) {
                return Err(Refusal::of(node, why, help).about(Some(variable)));
            }
        }
        let lasts = parts.iter().any(|p| self.part(*p).lasts);
        if lasts {
            for part in &mut parts {
                *part = self.lasting(node, *part)?;
            }
        }
        self.add(node, PartOp::Union(parts), variables, lasts)
    }

    /// Returns the part of the tuples for which some values of the variables satisfy the conjuncts.
    pub(crate) fn exists(
        &mut self,
        node: ExprId,
        variables: &[VariableId],
        conjuncts: Vec<Conjunct>,
    ) -> Result<PartId, Refusal> {
        self.enter(node)?;
        let part = self.exists_inner(node, variables, conjuncts);
        self.depth -= 1;
        part
    }

    fn exists_inner(
        &mut self,
        node: ExprId,
        variables: &[VariableId],
        conjuncts: Vec<Conjunct>,
    ) -> Result<PartId, Refusal> {
        let conjuncts = self.flatten(&conjuncts);
        let speaks = |free: &[VariableId]| free.iter().any(|variable| variables.contains(variable));
        let mentions = |compiler: &Self, conjunct: &Conjunct| match conjunct {
            Conjunct::Literal(literal) => speaks(compiler.scope.free(literal.node)),
            Conjunct::In(part) | Conjunct::NotIn(part) => speaks(&compiler.part(*part).variables),
            Conjunct::NotFirst(_) => false,
        };
        let (with, without): (Vec<_>, Vec<_>) = conjuncts.iter().partition(|c| mentions(self, c));
        if with.is_empty() {
            return self.conjunction(node, without);
        }
        if let ([Conjunct::Literal(literal)], true) = (&with[..], without.is_empty())
            && let Some(ways) = self.ways(*literal)
        {
            let mut parts = Vec::new();
            for way in ways {
                parts.push(self.exists(node, variables, way)?);
            }
            parts.sort_unstable();
            parts.dedup();
            return if let [part] = parts[..] { Ok(part) } else { self.union_of(node, parts) };
        }
        if !without.is_empty() {
            // Conjuncts without the variables need not be evaluated per value.
            if let Ok(part) = self.exists(node, variables, with) {
                let both = [vec![Conjunct::In(part)], without].concat();
                if let Ok(part) = self.conjunction(node, both) {
                    return Ok(part);
                }
            }
        } else if let [Conjunct::Literal(literal)] = with[..]
            && let Err(refusal) = self.finite(literal)
        {
            return self.inside(node, variables, literal).unwrap_or(Err(refusal));
        }
        let mut of = self.conjunction(node, conjuncts)?;
        for variable in variables {
            if self.part(of).variables.contains(variable) {
                let column = place(&self.part(of).variables, *variable);
                of = self.without_column(node, of, column)?;
            }
        }
        Ok(of)
    }

    /// Moves a quantifier into a single past operator, with which it commutes, so that no values need to be
    /// stored.
    fn inside(
        &mut self,
        node: ExprId,
        variables: &[VariableId],
        literal: Literal,
    ) -> Option<Result<PartId, Refusal>> {
        let Literal { node: of, positive, truth_bound } = literal;
        let on = |node| Conjunct::Literal(Literal { node, positive, truth_bound });
        let is_bound =
            |guard: ExprId| self.scope.free(guard).iter().any(|variable| variables.contains(variable));
        let expr = &self.scope.spec.nodes[of.index()];
        let Temporal { bounds, guard, operand, .. } = match (expr, positive) {
            (Expr::Previously(x), true) => {
                let part = self.exists(node, variables, vec![on(*x)]);
                return Some(part.and_then(|part| self.previously(node, part)));
            }
            (Expr::Exists(variable, x), true) | (Expr::ForAll(variable, x), false) => {
                let all = [variables, &[*variable]].concat();
                return Some(self.exists(node, &all, vec![on(*x)]));
            }
            _ => expr.past().filter(|past| past.all != positive && !past.guard.is_some_and(is_bound))?,
        };
        let part = self.exists(node, variables, vec![on(operand)]);
        Some(part.and_then(|part| self.since(of, bounds, guard, part, truth_bound)))
    }

    pub(crate) fn conjunction(&mut self, node: ExprId, conjuncts: Vec<Conjunct>) -> Result<PartId, Refusal> {
        self.enter(node)?;
        let part = Conjuncts::gather(self, node, conjuncts).and_then(|gathered| gathered.join(self));
        self.depth -= 1;
        part
    }
}
