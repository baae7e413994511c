//! From a quantified formula to a plan: which parts of it are relations of finitely many tuples, and
//! in what order they bind the variables of the others.
//!
//! A *literal* is a formula or its negation, on one of the two rails. A set of literals that must all
//! hold is a *conjunction*: those that are finite bind variables, all others test tuples that are
//! bound. A negation is pushed down to where a finite relation is, and complements that one: `not p`
//! tests that no tuple of `p` is there.

use std::collections::HashMap;
use std::rc::Rc;

use rondel_event::{Comparison, TopicId, Value, ValueType};
use rondel_spec::{Bounds, Expr, ExprId, Spec, TimeModel, VariableId};

use super::join::Conjuncts;
use super::plan::{
    Arithmetic, Atom, Condition, FieldRead, Left, Lookup, Op, Part, PartId, Plan, Rail, Root, Term, Truth,
};
use super::table::Access;

/// Why a formula is refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Refusal {
    /// The part of the formula.
    pub(crate) node: ExprId,
    /// The variable that it is about, if it is about one.
    pub(crate) variable: Option<VariableId>,
    pub(crate) why: &'static str,
}

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
pub(crate) enum Meaning {
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

/// How deeply operators with variables may be nested, and how many parts there may be.
const LIMIT: usize = 200;
const PARTS: usize = 2_000;

pub(crate) struct Compiler<'a> {
    pub(crate) scope: &'a Scope<'a>,
    model: TimeModel,
    /// Whether relations may grow without bound.
    unbounded: bool,
    two_valued: &'a dyn Fn(ExprId) -> bool,
    pub(crate) plan: Plan,
    known: HashMap<Literal, Result<PartId, Refusal>>,
    depth: usize,
}

impl<'a> Compiler<'a> {
    /// The plan of a closed `exists` or `forall`.
    pub(crate) fn compile(
        scope: &'a Scope<'a>,
        node: ExprId,
        rail: Rail,
        model: TimeModel,
        unbounded: bool,
        two_valued: &'a dyn Fn(ExprId) -> bool,
    ) -> Result<Plan, Refusal> {
        let plan = Plan::default();
        let mut compiler =
            Compiler { scope, model, unbounded, two_valued, plan, known: HashMap::new(), depth: 0 };
        let literal = match &scope.spec.nodes[node.index()] {
            Expr::Exists(_, body) => Literal { node: *body, positive: true, rail },
            Expr::ForAll(_, body) => {
                compiler.plan.negated = true;
                Literal { node: *body, positive: false, rail: rail.opposite() }
            }
            _ => return Err(Refusal { node, variable: None, why: "it is no quantifier" }),
        };
        compiler.root(node, Vec::new(), vec![Conjunct::Literal(literal)])?;
        Ok(compiler.plan.pruned())
    }

    /// The formula holds where conjuncts do for some values of all their variables.
    fn root(
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
            true => self.add(whole, Op::Unit, Vec::new(), false)?,
            false => self.conjunction(whole, rest)?,
        };
        self.plan.roots.push(Root { conditions, part });
        self.depth -= 1;
        Ok(())
    }

    pub(crate) fn enter(&mut self, node: ExprId) -> Result<(), Refusal> {
        self.depth += 1;
        if self.depth > LIMIT {
            return Err(Refusal { node, variable: None, why: "the formula is nested too deeply" });
        }
        Ok(())
    }

    /// Some value of the variable of which the formula holds: what the literal says, if it is that.
    fn quantified(&self, literal: Literal) -> Option<Literal> {
        match (&self.scope.spec.nodes[literal.node.index()], literal.positive) {
            (Expr::Exists(_, body), true) | (Expr::ForAll(_, body), false) => {
                Some(Literal { node: *body, ..literal })
            }
            _ => None,
        }
    }

    /// The tuples of a literal, if they are finitely many.
    pub(crate) fn finite(&mut self, literal: Literal) -> Result<PartId, Refusal> {
        if let Some(known) = self.known.get(&literal) {
            return *known;
        }
        self.enter(literal.node)?;
        let found = self.finite_anew(literal);
        self.depth -= 1;
        self.known.insert(literal, found);
        found
    }

    fn finite_anew(&mut self, literal: Literal) -> Result<PartId, Refusal> {
        let conjuncts = self.flatten(&[Conjunct::Literal(literal)]);
        if let [Conjunct::Literal(single)] = conjuncts[..]
            && let Some(ways) = self.ways(single)
        {
            return self.union(single.node, ways);
        }
        self.conjunction(literal.node, conjuncts)
    }

    /// Conjunctions and negations taken apart.
    pub(crate) fn flatten(&self, conjuncts: &[Conjunct]) -> Vec<Conjunct> {
        let mut out = Vec::new();
        let mut open: Vec<Conjunct> = conjuncts.iter().rev().copied().collect();
        while let Some(conjunct) = open.pop() {
            let Conjunct::Literal(literal) = conjunct else {
                out.push(conjunct);
                continue;
            };
            let Literal { positive, rail, .. } = literal;
            match self.scope.spec.nodes[literal.node.index()] {
                _ if self.scope.is_closed(literal.node) => out.push(conjunct),
                // A rail is that of the literal, whatever its sign.
                Expr::Not(x) => open.push(Conjunct::Literal(Literal { node: x, positive: !positive, rail })),
                // What is not certain is false; so its negation holds where that is possible.
                Expr::Definitely(x) => {
                    let rail = if positive { Rail::Certain } else { Rail::Possible };
                    open.push(Conjunct::Literal(Literal { node: x, positive, rail }));
                }
                Expr::And(x, y) if positive => {
                    open.extend([y, x].map(|node| Conjunct::Literal(Literal { node, positive, rail })));
                }
                Expr::Or(x, y) if !positive => {
                    open.extend([y, x].map(|node| Conjunct::Literal(Literal { node, positive, rail })));
                }
                _ if !out.contains(&conjunct) => out.push(conjunct),
                _ => {}
            }
        }
        out
    }

    /// The ways in which a literal can hold, if it is a disjunction.
    pub(crate) fn ways(&self, literal: Literal) -> Option<Vec<Vec<Conjunct>>> {
        let Literal { positive, rail, .. } = literal;
        let on = |node, positive| Conjunct::Literal(Literal { node, positive, rail });
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

    /// Whether a node is a formula with variables, rather than a value.
    fn is_formula(&self, node: ExprId) -> bool {
        use Expr::{And, Bind, Definitely, Exists, ForAll, Historically, Not, Once, Or, Previously, Since};
        let is_formula = matches!(
            self.scope.spec.nodes[node.index()],
            And(..)
                | Bind { .. }
                | Definitely(_)
                | Exists(..)
                | ForAll(..)
                | Historically(..)
                | Not(_)
                | Once(..)
                | Or(..)
                | Previously(_)
                | Since(..)
                | Expr::Compare(..)
                | Expr::StartsWith(..)
        );
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
                Op::Union(of) if !of.is_empty() && !self.part(part).lasts => parts.extend(of.clone()),
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
        let why = "one side of this `or` says nothing of the variable, so that it can have any value";
        for part in &parts {
            let of_part = &self.part(*part).variables;
            let differs =
                |one: &[VariableId], other: &[VariableId]| one.iter().find(|v| !other.contains(v)).copied();
            if let Some(variable) = differs(of_part, &variables).or(differs(&variables, of_part)) {
                return Err(Refusal { node, variable: Some(variable), why });
            }
        }
        let lasts = parts.iter().any(|p| self.part(*p).lasts);
        if lasts {
            for part in &mut parts {
                *part = self.lasting(node, *part)?;
            }
        }
        self.add(node, Op::Union(parts), variables, lasts)
    }

    /// What a literal with variables means that is neither a conjunction, nor a disjunction, nor a
    /// comparison.
    pub(crate) fn meaning(&mut self, literal: Literal) -> Result<Meaning, Refusal> {
        let Literal { node, positive, rail } = literal;
        let refuse = |why| Err(Refusal { node, variable: None, why });
        // The rail of the operator itself, not of its negation.
        let own = if positive { rail } else { rail.opposite() };
        let signed = |part| if positive { Meaning::In(part) } else { Meaning::NotIn(part) };
        let spec = self.scope.spec;
        Ok(match &spec.nodes[node.index()] {
            Expr::Bind { topic, fields } => signed(self.bind(node, *topic, fields)?),
            Expr::Once(bounds, x) => {
                let right = self.finite(Literal { node: *x, positive: true, rail: own })?;
                signed(self.since(node, *bounds, None, right, own)?)
            }
            Expr::Since(bounds, p, q) => {
                let right = self.finite(Literal { node: *q, positive: true, rail: own })?;
                signed(self.since(node, *bounds, Some(*p), right, own)?)
            }
            Expr::Historically(bounds, x) => {
                // It is `not once not`: on the other rail than its negation is.
                match self.finite(Literal { node: *x, positive: false, rail: own.opposite() }) {
                    Ok(right) => {
                        let once = self.since(node, *bounds, None, right, own.opposite())?;
                        if positive { Meaning::NotIn(once) } else { Meaning::In(once) }
                    }
                    Err(_) => {
                        let of = self.finite(Literal { node: *x, positive: true, rail: own })?;
                        if bounds.lower > 0 {
                            return refuse("before its interval begins it holds for every value");
                        }
                        let upper = bounds.upper.map(|upper| self.ticks(upper));
                        let of = self.lasting(node, of)?;
                        let variables = self.part(of).variables.clone();
                        signed(self.add(node, Op::Lasting(of, upper), variables, true)?)
                    }
                }
            }
            Expr::Previously(x) => match self.finite(Literal { node: *x, positive: true, rail: own }) {
                Ok(of) => signed(self.previously(node, of)?),
                Err(refusal) => {
                    let negation = Literal { node: *x, positive: false, rail: own.opposite() };
                    let Ok(of) = self.finite(negation) else { return Err(refusal) };
                    let before = self.previously(node, of)?;
                    if positive {
                        Meaning::All(vec![Conjunct::NotFirst(true), Conjunct::NotIn(before)])
                    } else {
                        Meaning::Any(vec![vec![Conjunct::NotFirst(false)], vec![Conjunct::In(before)]])
                    }
                }
            },
            Expr::Exists(variable, body) => {
                let body = Conjunct::Literal(Literal { node: *body, positive: true, rail: own });
                signed(self.exists(node, *variable, vec![body])?)
            }
            Expr::ForAll(variable, body) => {
                let body = Literal { node: *body, positive: false, rail: own.opposite() };
                let part = self.exists(node, *variable, vec![Conjunct::Literal(body)])?;
                if positive { Meaning::NotIn(part) } else { Meaning::In(part) }
            }
            Expr::Next(_) | Expr::Eventually(..) | Expr::Always(..) | Expr::Until(..) => {
                return refuse("an operator of the future cannot be used on variables");
            }
            Expr::If(..) => {
                return refuse("`if` cannot be used on formulas with variables: write `and` and `or`");
            }
            _ => return refuse("this operator cannot be used on variables"),
        })
    }

    fn previously(&mut self, node: ExprId, of: PartId) -> Result<PartId, Refusal> {
        let part = self.part(of);
        let (variables, lasts) = (part.variables.clone(), part.lasts);
        self.add(node, Op::Previously(of), variables, lasts)
    }

    fn bind(
        &mut self,
        node: ExprId,
        topic: TopicId,
        fields: &[(rondel_event::Path, VariableId, ValueType)],
    ) -> Result<PartId, Refusal> {
        let variables = self.scope.free(node).to_vec();
        let mut columns = Vec::new();
        for (path, variable, value_type) in fields {
            let field = FieldRead { topic, path: path.clone(), value_type: *value_type };
            let field = position(&mut self.plan.fields, field);
            columns.push((field, place(&variables, *variable)));
        }
        let atom = position(&mut self.plan.atoms, Atom { topic, columns });
        self.add(node, Op::Bind(atom), variables, false)
    }

    /// A bound, in ticks.
    fn ticks(&self, bound: u64) -> i64 {
        let bound = i64::try_from(bound).unwrap_or(i64::MAX);
        // Between two nanoseconds there is a tick for the time between them.
        if self.model == TimeModel::Dense { bound.saturating_mul(2) } else { bound }
    }

    fn since(
        &mut self,
        node: ExprId,
        bounds: Bounds,
        left: Option<ExprId>,
        mut right: PartId,
        rail: Rail,
    ) -> Result<PartId, Refusal> {
        let variables = self.part(right).variables.clone();
        if bounds.upper.is_some_and(|upper| upper < bounds.lower) {
            return self.add(node, Op::Union(Vec::new()), variables, false);
        }
        let mut lower = self.ticks(bounds.lower);
        let mut upper = bounds.upper.map(|upper| self.ticks(upper));
        let left = match left {
            Some(left) => self.left(node, Literal { node: left, positive: true, rail }, &variables)?,
            None => Vec::new(),
        };
        if upper.is_none() && left.is_empty() && !self.unbounded {
            let variable = variables.first().copied();
            return Err(Refusal {
                node,
                variable,
                why: "without an upper bound every value ever seen is kept",
            });
        }
        if self.model == TimeModel::Dense && !self.is_instant(right) {
            // What holds for a while holds between moments too.
            right = self.lasting(node, right)?;
        }
        if self.part(right).lasts {
            match (self.model, lower, left.is_empty()) {
                (TimeModel::Dense, _, false) => {
                    let why = "in dense time the second operand of this `since` must be made of instants";
                    return Err(Refusal { node, variable: variables.first().copied(), why });
                }
                (_, 0, _) => {}
                (TimeModel::Dense, ..) => {
                    let why = "in dense time what has a lower bound must be made of instants";
                    return Err(Refusal { node, variable: variables.first().copied(), why });
                }
                (TimeModel::Steps, by, true) => {
                    right = self.add(node, Op::Delay(right, by), variables.clone(), true)?;
                    upper = upper.map(|upper| upper - lower);
                    lower = 0;
                }
                _ => right = self.scan(node, right)?,
            }
        }
        self.add(node, Op::Since { lower, upper, left, right }, variables, true)
    }

    /// Whether it is empty between events.
    fn is_instant(&self, part: PartId) -> bool {
        match &self.part(part).op {
            Op::Bind(_) => true,
            Op::Chain { of, .. } | Op::Project(of, _) | Op::Previously(of) => {
                !self.part(part).lasts && self.is_instant(*of)
            }
            Op::Union(of) => !self.part(part).lasts && of.iter().all(|part| self.is_instant(*part)),
            _ => false,
        }
    }

    /// What keeps the tuples of a `since` alive.
    fn left(&mut self, node: ExprId, left: Literal, bound: &[VariableId]) -> Result<Vec<Left>, Refusal> {
        let mut out = Vec::new();
        let mut open = self.flatten(&[Conjunct::Literal(left)]);
        while let Some(conjunct) = open.pop() {
            let (part, wanted) = match conjunct {
                Conjunct::NotFirst(wanted) => {
                    out.push(Left::Test(Condition::NotFirst(wanted)));
                    continue;
                }
                Conjunct::In(part) => (part, true),
                Conjunct::NotIn(part) => (part, false),
                Conjunct::Literal(literal) => {
                    if let Some(&variable) = self.scope.free(literal.node).iter().find(|v| !bound.contains(v))
                    {
                        let why =
                            "the first operand of `since` speaks of a variable that the second does not bind";
                        return Err(Refusal { node, variable: Some(variable), why });
                    }
                    if self.scope.is_closed(literal.node) {
                        let truth = self.truth(literal);
                        out.push(Left::Test(truth));
                        continue;
                    }
                    if self.is_test(literal.node) {
                        let test = self.test(literal, bound)?;
                        out.push(Left::Test(test));
                        continue;
                    }
                    if self.ways(literal).is_some() {
                        match self.finite(literal) {
                            Ok(part) => (part, true),
                            Err(_) => {
                                let rail = literal.rail.opposite();
                                let negation = Literal { positive: !literal.positive, rail, ..literal };
                                (self.finite(negation)?, false)
                            }
                        }
                    } else {
                        match self.meaning(literal)? {
                            Meaning::In(part) => (part, true),
                            Meaning::NotIn(part) => (part, false),
                            Meaning::All(more) => {
                                open.extend(more);
                                continue;
                            }
                            Meaning::Any(_) => {
                                let why = "the first operand of this `since` cannot be followed";
                                return Err(Refusal { node: literal.node, variable: None, why });
                            }
                        }
                    }
                }
            };
            let of_part = &self.part(part).variables;
            let columns: Vec<u32> = (0..of_part.len() as u32).collect();
            let slots: Vec<u32> = of_part.iter().map(|v| place(bound, *v)).collect();
            if self.part(part).lasts {
                self.keep(part);
            }
            let lookup = Lookup { part, access: Access::Whole, columns, slots };
            out.push(Left::Member { lookup, wanted, back: Access::All });
        }
        Ok(out)
    }

    /// The tuples for which some value of the variable makes the conjuncts hold.
    fn exists(
        &mut self,
        node: ExprId,
        variable: VariableId,
        conjuncts: Vec<Conjunct>,
    ) -> Result<PartId, Refusal> {
        self.enter(node)?;
        let part = self.exists_anew(node, variable, conjuncts);
        self.depth -= 1;
        part
    }

    fn exists_anew(
        &mut self,
        node: ExprId,
        variable: VariableId,
        conjuncts: Vec<Conjunct>,
    ) -> Result<PartId, Refusal> {
        let conjuncts = self.flatten(&conjuncts);
        let mentions = |compiler: &Self, conjunct: &Conjunct| match conjunct {
            Conjunct::Literal(literal) => compiler.scope.free(literal.node).contains(&variable),
            Conjunct::In(part) | Conjunct::NotIn(part) => compiler.part(*part).variables.contains(&variable),
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
                parts.push(self.exists(node, variable, way)?);
            }
            parts.sort_unstable();
            parts.dedup();
            return if let [part] = parts[..] { Ok(part) } else { self.union_of(node, parts) };
        }
        if !without.is_empty() {
            // What does not speak of the variable need not be asked for each of its values.
            if let Ok(part) = self.exists(node, variable, with) {
                let both = [vec![Conjunct::In(part)], without].concat();
                if let Ok(part) = self.conjunction(node, both) {
                    return Ok(part);
                }
            }
        }
        let of = self.conjunction(node, conjuncts)?;
        let variables: Vec<VariableId> =
            self.part(of).variables.iter().copied().filter(|v| *v != variable).collect();
        let columns = variables.iter().map(|v| place(&self.part(of).variables, *v)).collect();
        let lasts = self.part(of).lasts;
        self.add(node, Op::Project(of, columns), variables, lasts)
    }

    pub(crate) fn conjunction(&mut self, node: ExprId, conjuncts: Vec<Conjunct>) -> Result<PartId, Refusal> {
        self.enter(node)?;
        let part = Conjuncts::gather(self, node, conjuncts).and_then(|gathered| gathered.join(self));
        self.depth -= 1;
        part
    }

    /// Whether a node with variables is a test of values.
    pub(crate) fn is_test(&self, node: ExprId) -> bool {
        match &self.scope.spec.nodes[node.index()] {
            Expr::Compare(_, x, y) => !self.is_formula(*x) && !self.is_formula(*y),
            Expr::StartsWith(..) | Expr::Variable(..) => true,
            _ => false,
        }
    }

    /// A literal without variables.
    pub(crate) fn truth(&mut self, literal: Literal) -> Condition {
        let Literal { node, positive, rail } = literal;
        let own = if positive { rail } else { rail.opposite() };
        let rail = if (self.two_valued)(node) { Rail::Certain } else { own };
        Condition::Truth(position(&mut self.plan.truths, Truth { node, rail, negated: !positive }))
    }

    /// A comparison of terms; the slots are those of these variables.
    pub(crate) fn test(&mut self, literal: Literal, bound: &[VariableId]) -> Result<Condition, Refusal> {
        let Literal { node, positive: wanted, rail } = literal;
        let unknown = rail == Rail::Possible;
        let spec = self.scope.spec;
        Ok(match spec.nodes[node.index()] {
            Expr::Compare(comparison, x, y) => {
                let value_type = self.value_type(node, x)?;
                if self.value_type(node, y)? != value_type {
                    let why = "it compares values of different types";
                    return Err(Refusal { node, variable: None, why });
                }
                let (left, right) = (self.term(x, bound)?, self.term(y, bound)?);
                let unknown = unknown && (self.can_fail(x) || self.can_fail(y));
                Condition::Compare { comparison, value_type, left, right, wanted, unknown }
            }
            Expr::StartsWith(x, y) => {
                let (left, right) = (self.term(x, bound)?, self.term(y, bound)?);
                let unknown = unknown && (self.can_fail(x) || self.can_fail(y));
                Condition::StartsWith { left, right, wanted, unknown }
            }
            Expr::Variable(variable, ValueType::Bool) => {
                let (left, right) = (Term::Slot(place(bound, variable)), Term::Constant(1));
                let (comparison, value_type) = (Comparison::Equal, ValueType::Bool);
                Condition::Compare { comparison, value_type, left, right, wanted, unknown: false }
            }
            _ => return Err(Refusal { node, variable: None, why: "this is no test of values" }),
        })
    }

    /// The type of a value, without going far: a chain of operators can be long.
    fn value_type(&mut self, node: ExprId, of: ExprId) -> Result<ValueType, Refusal> {
        if of.index() >= node.index() {
            return Err(Refusal { node, variable: None, why: "an operand does not stand before it" });
        }
        Ok(self.scope.spec.value_type(of))
    }

    /// Whether a value can be unknown.
    fn can_fail(&self, node: ExprId) -> bool {
        if self.scope.is_closed(node) {
            return !(self.two_valued)(node);
        }
        !matches!(self.scope.spec.nodes[node.index()], Expr::Variable(..))
    }

    fn term(&mut self, node: ExprId, bound: &[VariableId]) -> Result<Term, Refusal> {
        self.enter(node)?;
        let spec = self.scope.spec;
        let refuse = |why| Err(Refusal { node, variable: None, why });
        let term = match &spec.nodes[node.index()] {
            Expr::Literal(value) => match constant(value) {
                Some(bits) => Term::Constant(bits),
                None => match value {
                    Value::String(text) => Term::ConstantText(position(&mut self.plan.texts, text.clone())),
                    // Not a number: equal to nothing, which is for the comparison to say.
                    _ => Term::Constant(f64::NAN.to_bits()),
                },
            },
            _ if self.scope.is_closed(node) => Term::Input(position(&mut self.plan.values, node)),
            Expr::Variable(variable, _) => Term::Slot(place(bound, *variable)),
            Expr::ToFloat(x) => Term::ToFloat(Box::new(self.term(*x, bound)?)),
            Expr::Unary(op, x) => {
                let value_type = self.value_type(node, *x)?;
                Term::Unary(*op, value_type, Box::new(self.term(*x, bound)?))
            }
            Expr::Binary(op, x, y) => {
                let (left, right) = (self.value_type(node, *x)?, self.value_type(node, *y)?);
                let arithmetic = match rondel_spec::binary_type(*op, left, right) {
                    Some(ValueType::Float) if left != ValueType::Float => Arithmetic::Ratio,
                    Some(ValueType::Float) => Arithmetic::Float,
                    Some(_) => Arithmetic::Whole,
                    None => return refuse("there is no such arithmetic on these types"),
                };
                Term::Binary(*op, arithmetic, Box::new([self.term(*x, bound)?, self.term(*y, bound)?]))
            }
            _ => return refuse("this value cannot be computed from variables"),
        };
        self.depth -= 1;
        Ok(term)
    }

    pub(crate) fn part(&self, part: PartId) -> &Part {
        &self.plan.parts[part.index()]
    }

    /// Adds a part, unless there is one like it.
    pub(crate) fn add(
        &mut self,
        node: ExprId,
        op: Op,
        variables: Vec<VariableId>,
        lasts: bool,
    ) -> Result<PartId, Refusal> {
        let known = self.plan.parts.iter().position(|p| p.op == op && p.variables == variables);
        if let Some(known) = known {
            return Ok(PartId(known as u32));
        }
        if self.plan.parts.len() >= PARTS {
            return Err(Refusal { node, variable: None, why: "the formula has too many parts" });
        }
        let is_text = variables.iter().map(|v| self.scope.types.get(v) == Some(&ValueType::String)).collect();
        let mut op = op;
        let mut indexes = Vec::new();
        if let Op::Since { left, .. } = &mut op {
            for left in left {
                if let Left::Member { lookup, back, .. } = left {
                    // Sorted, as the columns of the part are.
                    *back = access(&mut indexes, variables.len(), &lookup.slots);
                }
            }
        }
        self.plan.parts.push(Part { op, variables, is_text, lasts, is_kept: false, indexes });
        Ok(PartId(self.plan.parts.len() as u32 - 1))
    }

    /// The part as one that lasts.
    pub(crate) fn lasting(&mut self, node: ExprId, part: PartId) -> Result<PartId, Refusal> {
        if self.part(part).lasts {
            return Ok(part);
        }
        let variables = self.part(part).variables.clone();
        self.add(node, Op::Changes(part), variables, true)
    }

    /// The part as one that is made anew at every tick.
    pub(crate) fn scan(&mut self, node: ExprId, part: PartId) -> Result<PartId, Refusal> {
        self.keep(part);
        let variables = self.part(part).variables.clone();
        self.add(node, Op::Scan(part), variables, false)
    }

    pub(crate) fn keep(&mut self, part: PartId) {
        self.plan.parts[part.index()].is_kept = true;
    }

    /// How tuples of a part are found by some columns.
    pub(crate) fn access(&mut self, part: PartId, columns: &[u32]) -> Access {
        let part = &mut self.plan.parts[part.index()];
        if !part.lasts {
            return Access::All;
        }
        part.is_kept = true;
        access(&mut part.indexes, part.variables.len(), columns)
    }
}

fn access(indexes: &mut Vec<Vec<u32>>, arity: usize, columns: &[u32]) -> Access {
    match columns.len() {
        0 => Access::All,
        n if n == arity => Access::Whole,
        _ => Access::Index(position(indexes, columns.to_vec())),
    }
}

/// The bits of a value, unless it is a text or not a number.
pub(crate) fn constant(value: &Value) -> Option<u64> {
    match value {
        Value::Bool(x) => Some(u64::from(*x)),
        Value::Int(x) | Value::Time(x) | Value::Duration(x) => Some(*x as u64),
        Value::Float(x) => float(*x),
        Value::String(_) => None,
    }
}

/// The bits of a number, the same for both zeros.
#[inline(always)]
pub(crate) fn float(x: f64) -> Option<u64> {
    if x.is_nan() { None } else { Some((x + 0.0).to_bits()) }
}

/// The position in a list, to which it is added if it is not there.
fn position<T: PartialEq>(list: &mut Vec<T>, value: T) -> u32 {
    let known = list.iter().position(|other| *other == value);
    known.unwrap_or_else(|| {
        list.push(value);
        list.len() - 1
    }) as u32
}

/// Where a variable is among the bound ones.
pub(crate) fn place(bound: &[VariableId], variable: VariableId) -> u32 {
    bound.iter().position(|v| *v == variable).unwrap_or(0) as u32
}
