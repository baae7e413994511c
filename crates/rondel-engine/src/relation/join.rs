//! Conjunctions: the order in which conjuncts bind variables and test tuples.

use rondel_event::Comparison;
use rondel_spec::{Expr, ExprId, VariableId};

use super::literal::{Conjunct, Literal, LiteralMeaning, Refusal};
use super::plan::{Condition, Lookup, PartId, PartOp, Side, Stage, Term};
use super::safe::Compiler;
use super::value::{constant, place};

/// Conjuncts by their role.
#[derive(Default)]
pub(crate) struct Conjuncts {
    node: Option<ExprId>,
    /// Parts that bind variables.
    finite: Vec<PartId>,
    /// Parts that test tuples, by exclusion.
    infinite: Vec<(PartId, ExprId)>,
    tests: Vec<Literal>,
    conditions: Vec<Condition>,
    /// Disjunctions that do not bind; joined with the binding conjuncts each alternative may.
    ways: Vec<(Literal, Vec<Vec<Conjunct>>)>,
    /// Quantified literals whose free variables other conjuncts bind, and why they are not finite by
    /// themselves.
    quantified: Vec<(Literal, Refusal)>,
}

impl Conjuncts {
    pub(crate) fn gather(
        compiler: &mut Compiler<'_>,
        node: ExprId,
        conjuncts: Vec<Conjunct>,
    ) -> Result<Conjuncts, Refusal> {
        let mut gathered = Conjuncts { node: Some(node), ..Conjuncts::default() };
        let mut open = compiler.flatten(&conjuncts);
        open.reverse();
        while let Some(conjunct) = open.pop() {
            let literal = match conjunct {
                Conjunct::In(part) => {
                    gathered.finite.push(part);
                    continue;
                }
                Conjunct::NotIn(part) => {
                    gathered.infinite.push((part, node));
                    continue;
                }
                Conjunct::NotFirst(wanted) => {
                    gathered.conditions.push(Condition::NotFirst(wanted));
                    continue;
                }
                Conjunct::Literal(literal) => literal,
            };
            if compiler.scope.is_closed(literal.node) {
                let truth = compiler.truth(literal);
                gathered.conditions.push(truth);
            } else if let Some(ways) = compiler.ways(literal) {
                match compiler.union(literal.node, ways.clone()) {
                    Ok(part) => gathered.finite.push(part),
                    Err(_) => gathered.ways.push((literal, ways)),
                }
            } else if compiler.is_test(literal.node) {
                gathered.tests.push(literal);
            } else {
                match compiler.meaning(literal) {
                    Ok(LiteralMeaning::In(part)) => gathered.finite.push(part),
                    Ok(LiteralMeaning::NotIn(part)) => gathered.infinite.push((part, literal.node)),
                    Ok(LiteralMeaning::All(conjuncts)) => open.extend(conjuncts),
                    Ok(LiteralMeaning::Any(ways)) => gathered.ways.push((literal, ways)),
                    Err(refusal) if compiler.quantifies(literal.node) => {
                        gathered.quantified.push((literal, refusal));
                    }
                    Err(refusal) => return Err(refusal),
                }
            }
        }
        gathered.finite.sort_unstable();
        gathered.finite.dedup();
        Ok(gathered)
    }

    /// Joins all conjuncts to one part.
    pub(crate) fn join(mut self, compiler: &mut Compiler<'_>) -> Result<PartId, Refusal> {
        let node = self.node.unwrap_or(ExprId(0));
        let momentary = self.finite.iter().filter(|p| !compiler.part(**p).lasts);
        // Among equally wide parts, that of an event, which is mostly empty.
        let width = |part: PartId| (compiler.part(part).variables.len(), compiler.is_instant(part));
        let widest = momentary.max_by_key(|part| width(**part)).copied();
        let so_far = match widest {
            Some(part) => {
                self.finite.retain(|p| *p != part);
                self.chain(compiler, node, part)?
            }
            None if self.finite.is_empty() => {
                if self.assignment(compiler, &[]).is_none() && !self.conditions_only() {
                    return Err(self.unbound(compiler, node, &[]));
                }
                let unit = compiler.add(node, PartOp::Unit, Vec::new(), false)?;
                self.chain(compiler, node, unit)?
            }
            None => self.lasting(compiler, node)?,
        };
        self.rest(compiler, node, so_far)
    }

    fn conditions_only(&self) -> bool {
        self.infinite.is_empty()
            && self.tests.is_empty()
            && self.ways.is_empty()
            && self.quantified.is_empty()
    }

    /// Joins the remaining conjuncts once all binding parts are joined.
    fn rest(mut self, compiler: &mut Compiler<'_>, node: ExprId, so_far: PartId) -> Result<PartId, Refusal> {
        if self.conditions_only() {
            return Ok(so_far);
        }
        let bound = compiler.part(so_far).variables.clone();
        // An assignment remains only if there was no chain to perform it.
        if compiler.part(so_far).lasts && self.assignment(compiler, &bound).is_some() {
            let scan = compiler.scan(node, so_far)?;
            let chain = self.chain(compiler, node, scan)?;
            return self.rest(compiler, node, chain);
        }
        if let Some((literal, refusal)) = self.quantified.pop() {
            let among = compiler.quantified_among(so_far, literal, refusal)?;
            return compiler.conjunction(node, [self.others(so_far), vec![among]].concat());
        }
        let Some((_, ways)) = self.ways.pop() else {
            return Err(self.unbound(compiler, node, &bound));
        };
        let others = self.others(so_far);
        let ways = ways.into_iter().map(|way| [others.clone(), way].concat()).collect();
        compiler.union(node, ways)
    }

    /// Returns the joined part and the remaining conjuncts.
    fn others(&self, so_far: PartId) -> Vec<Conjunct> {
        let literals = self.ways.iter().map(|(literal, _)| literal);
        let literals = literals.chain(self.quantified.iter().map(|(literal, _)| literal));
        let mut others = vec![Conjunct::In(so_far)];
        others.extend(self.infinite.iter().map(|(part, _)| Conjunct::NotIn(*part)));
        others.extend(self.tests.iter().chain(literals).map(|literal| Conjunct::Literal(*literal)));
        others
    }

    /// Returns the reason for which the remaining conjuncts cannot be tested.
    fn unbound(&self, compiler: &Compiler<'_>, node: ExprId, bound: &[VariableId]) -> Refusal {
        if let ([], [], [], [(_, refusal)]) =
            (&self.infinite[..], &self.tests[..], &self.ways[..], &self.quantified[..])
        {
            return *refusal;
        }
        let free = |variables: &[VariableId]| variables.iter().find(|v| !bound.contains(v)).copied();
        let literals = self.tests.iter().chain(self.ways.iter().map(|(literal, _)| literal));
        let of_literals = literals.filter_map(|l| Some((l.node, free(compiler.scope.free(l.node))?)));
        let infinite = self.infinite.iter();
        let of_parts =
            infinite.filter_map(|(part, node)| Some((*node, free(&compiler.part(*part).variables)?)));
        let first = of_literals.chain(of_parts).next();
        let why = "no atom in the same conjunction binds it, so it can have any value";
        let help =
            "join it with `and` to an atom that binds the variable; for `forall`, put the atom before `->`";
        Refusal::of(first.map_or(node, |(node, _)| node), why, help)
            .about(first.map(|(_, variable)| variable))
    }

    /// Returns an equation that binds another variable.
    fn assignment(&self, compiler: &Compiler<'_>, bound: &[VariableId]) -> Option<(usize, VariableId, Term)> {
        let nodes = &compiler.scope.spec.nodes;
        let unbound = |node: ExprId| match nodes[node.index()] {
            Expr::Variable(variable, _) if !bound.contains(&variable) => Some(variable),
            _ => None,
        };
        let known = |node: ExprId| match &nodes[node.index()] {
            Expr::Literal(value) => constant(value).map(Term::Constant),
            Expr::Variable(variable, _) if bound.contains(variable) => {
                Some(Term::Slot(place(bound, *variable)))
            }
            _ => None,
        };
        self.tests.iter().enumerate().find_map(|(i, literal)| match nodes[literal.node.index()] {
            Expr::Compare(comparison, x, y) => {
                let equal = match comparison {
                    Comparison::Equal => literal.positive,
                    Comparison::NotEqual => !literal.positive,
                    _ => false,
                };
                let sides = [(x, y), (y, x)];
                let mut found = sides.into_iter().filter(|_| equal);
                found.find_map(|(x, y)| Some((i, unbound(x)?, known(y)?)))
            }
            Expr::Variable(variable, _) if !bound.contains(&variable) => {
                Some((i, variable, Term::Constant(u64::from(literal.positive))))
            }
            _ => None,
        })
    }

    /// Takes the tests whose variables are all bound.
    fn allowed(
        &mut self,
        compiler: &mut Compiler<'_>,
        bound: &[VariableId],
    ) -> Result<Vec<Condition>, Refusal> {
        let mut conditions = std::mem::take(&mut self.conditions);
        for literal in std::mem::take(&mut self.tests) {
            if compiler.scope.free(literal.node).iter().all(|v| bound.contains(v)) {
                conditions.push(compiler.test(literal, bound)?);
            } else {
                self.tests.push(literal);
            }
        }
        Ok(conditions)
    }

    /// Takes the next excluding part whose variables are all bound.
    fn tested(&mut self, compiler: &Compiler<'_>, bound: &[VariableId]) -> Option<PartId> {
        let is_bound = |part: PartId| compiler.part(part).variables.iter().all(|v| bound.contains(v));
        let next = self.infinite.iter().position(|(part, _)| is_bound(*part))?;
        Some(self.infinite.remove(next).0)
    }

    /// Takes the next binding part: first momentary ones, then the one that shares most variables.
    fn next(&mut self, compiler: &Compiler<'_>, bound: &[VariableId]) -> Option<PartId> {
        let rank = |part: PartId| {
            let part = compiler.part(part);
            let shared = part.variables.iter().filter(|v| bound.contains(v)).count();
            (!part.lasts && shared > 0, shared, !part.lasts)
        };
        let next = (0..self.finite.len()).max_by_key(|&i| rank(self.finite[i]))?;
        Some(self.finite.remove(next))
    }

    /// Extends the tuples of a momentary part by lookups in all others.
    fn chain(&mut self, compiler: &mut Compiler<'_>, node: ExprId, of: PartId) -> Result<PartId, Refusal> {
        let mut bound = compiler.part(of).variables.clone();
        let mut stages = Vec::new();
        loop {
            stages.extend(self.allowed(compiler, &bound)?.into_iter().map(Stage::Test));
            while let Some(part) = self.tested(compiler, &bound) {
                let (lookup, _) = lookup(compiler, part, &bound);
                stages.push(Stage::Without(lookup));
            }
            if let Some((test, variable, term)) = self.assignment(compiler, &bound) {
                self.tests.remove(test);
                stages.push(Stage::Assign(term));
                bound.push(variable);
                continue;
            }
            let Some(part) = self.next(compiler, &bound) else { break };
            let (lookup, binds) = lookup(compiler, part, &bound);
            bound.extend(binds.iter().map(|&c| compiler.part(part).variables[c as usize]));
            stages.push(Stage::With(lookup, binds));
        }
        if stages.is_empty() {
            return Ok(of);
        }
        let mut variables = bound.clone();
        variables.sort_unstable();
        let output = variables.iter().map(|v| place(&bound, *v)).collect();
        compiler.add(node, PartOp::Chain { of, stages, output, is_first: false }, variables, false)
    }

    /// Joins lasting parts to a relation that changes when they do.
    fn lasting(&mut self, compiler: &mut Compiler<'_>, node: ExprId) -> Result<PartId, Refusal> {
        let widest = |i: &usize| compiler.part(self.finite[*i]).variables.len();
        let first = (0..self.finite.len()).max_by_key(widest).unwrap_or(0);
        let mut so_far = self.finite.remove(first);
        loop {
            let bound = compiler.part(so_far).variables.clone();
            let conditions = self.allowed(compiler, &bound)?;
            if !conditions.is_empty() {
                if conditions.iter().any(|c| !c.is_fixed()) {
                    compiler.keep(so_far);
                }
                so_far = compiler.add(node, PartOp::Select(so_far, conditions), bound.clone(), true)?;
            }
            if let Some(part) = self.tested(compiler, &bound) {
                let part = compiler.lasting(node, part)?;
                let (left, right) = sides(compiler, so_far, part);
                so_far = compiler.add(node, PartOp::Without(left, right), bound, true)?;
                continue;
            }
            let Some(mut part) = self.next(compiler, &bound) else { return Ok(so_far) };
            // Tests of this side alone run before pairs are formed.
            let own = compiler.part(part).variables.clone();
            let conditions = self.allowed(compiler, &own)?;
            if !conditions.is_empty() {
                if conditions.iter().any(|c| !c.is_fixed()) {
                    compiler.keep(part);
                }
                part = compiler.add(node, PartOp::Select(part, conditions), own, true)?;
            }
            let (left, right) = sides(compiler, so_far, part);
            let of_part = compiler.part(part).variables.clone();
            let mut variables = [bound.clone(), of_part.clone()].concat();
            variables.sort_unstable();
            variables.dedup();
            let column = |v: &VariableId| match bound.contains(v) {
                true => (false, place(&bound, *v)),
                false => (true, place(&of_part, *v)),
            };
            let output = variables.iter().map(column).collect();
            so_far = compiler.add(node, PartOp::Join(left, right, output), variables, true)?;
        }
    }
}

impl Compiler<'_> {
    /// Whether a node is a quantifier.
    fn quantifies(&self, node: ExprId) -> bool {
        matches!(self.scope.spec.nodes[node.index()], Expr::Exists(..) | Expr::ForAll(..))
    }

    /// Joins a quantified literal whose free variables a part binds: `a(x) and exists y. p` is `exists y.
    /// a(x) and p`, and `a(x) and not exists y. p` is `a(x) and not exists y. a(x) and p`.
    fn quantified_among(
        &mut self,
        so_far: PartId,
        literal: Literal,
        refusal: Refusal,
    ) -> Result<Conjunct, Refusal> {
        let Literal { node, positive, truth_bound } = literal;
        let (variable, body, is_some) = match self.scope.spec.nodes[node.index()] {
            Expr::Exists(variable, body) => (variable, body, positive),
            Expr::ForAll(variable, body) => (variable, body, !positive),
            _ => return Err(refusal),
        };
        let bound = &self.part(so_far).variables;
        if self.scope.free(node).iter().any(|free| !bound.contains(free)) || bound.contains(&variable) {
            return Err(refusal);
        }
        // `forall` and `not exists` negate the body, which swaps the truth bound.
        let (positive, truth_bound) =
            if is_some { (positive, truth_bound) } else { (!positive, truth_bound.opposite()) };
        let body = Conjunct::Literal(Literal { node: body, positive, truth_bound });
        let part = self.exists(node, &[variable], vec![Conjunct::In(so_far), body]).map_err(|_| refusal)?;
        Ok(if is_some { Conjunct::In(part) } else { Conjunct::NotIn(part) })
    }
}

/// Returns the lookup of a part by bound variables, and the columns that it binds.
fn lookup(compiler: &mut Compiler<'_>, part: PartId, bound: &[VariableId]) -> (Lookup, Vec<u32>) {
    let variables = compiler.part(part).variables.clone();
    let (columns, binds): (Vec<u32>, Vec<u32>) =
        (0..variables.len() as u32).partition(|&c| bound.contains(&variables[c as usize]));
    let slots = columns.iter().map(|&c| place(bound, variables[c as usize])).collect();
    let access = compiler.access(part, &columns);
    (Lookup { part, access, columns, slots }, binds)
}

fn sides(compiler: &mut Compiler<'_>, left: PartId, right: PartId) -> (Side, Side) {
    let [of_left, of_right] = [left, right].map(|part| compiler.part(part).variables.clone());
    let shared: Vec<VariableId> = of_left.iter().filter(|v| of_right.contains(v)).copied().collect();
    let mut side = |part, variables: &[VariableId]| {
        let columns: Vec<u32> = shared.iter().map(|v| place(variables, *v)).collect();
        Side { part, access: compiler.access(part, &columns), columns }
    };
    (side(left, &of_left), side(right, &of_right))
}
