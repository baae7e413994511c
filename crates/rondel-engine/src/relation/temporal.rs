//! Meaning of atoms, quantifiers and past operators over variables.

use rondel_event::{TopicId, ValueType};
use rondel_spec::{Bounds, Class, Expr, ExprId, Temporal, TimeModel, VariableId};

use super::literal::{Conjunct, Literal, LiteralMeaning, Refusal};
use super::parts::position;
use super::plan::{
    Atom, Condition, FieldColumn, Keep, Left, Lookup, Most, PartId, PartOp, Stage, TruthBound,
};
use super::safe::Compiler;
use super::table::Access;
use super::value::place;

/// Message and help for a first operand of `since` with variables that the second does not bind.
const OF_SINCE: (&str, &str) = (
    "the first operand of `since` uses it, but the second does not bind it",
    "bind it in the second operand, or quantify it inside the first",
);

/// Maximum number of nodes visited in the search for timeless formulas.
const TIMELESS: usize = 64;

impl Compiler<'_> {
    /// Returns the meaning of a literal with variables that is no conjunction, disjunction or comparison.
    pub(crate) fn meaning(&mut self, literal: Literal) -> Result<LiteralMeaning, Refusal> {
        let Literal { node, positive, truth_bound } = literal;
        let refuse = |why, help| Err(Refusal::of(node, why, help));
        // Truth bound of the operator itself, not of its negation.
        let own = if positive { truth_bound } else { truth_bound.opposite() };
        let signed = |part| if positive { LiteralMeaning::In(part) } else { LiteralMeaning::NotIn(part) };
        let spec = self.scope.spec;
        // A formula over variables alone holds at every time point, or at none.
        let past = spec.nodes[node.index()].past();
        if let Some(Temporal { bounds: Bounds { lower: 0, .. }, guard: None, operand, .. }) = past
            && self.is_timeless(operand)
        {
            let of = Literal { node: operand, positive, truth_bound };
            return Ok(LiteralMeaning::All(vec![Conjunct::Literal(of)]));
        }
        if let Expr::Previously(x) = &spec.nodes[node.index()]
            && self.is_timeless(*x)
        {
            let (is_later, of) = (Conjunct::NotFirst(positive), Literal { node: *x, positive, truth_bound });
            let of = Conjunct::Literal(of);
            return Ok(match positive {
                true => LiteralMeaning::All(vec![is_later, of]),
                false => LiteralMeaning::Any(vec![vec![is_later], vec![of]]),
            });
        }
        if let Some(past) = past {
            return self.past_meaning(literal, past);
        }
        Ok(match &spec.nodes[node.index()] {
            Expr::Bind { topic, fields } => signed(self.bind(node, *topic, fields)?),
            Expr::Previously(x) => {
                match self.finite(Literal { node: *x, positive: true, truth_bound: own }) {
                    Ok(of) => signed(self.previously(node, of)?),
                    Err(refusal) => {
                        let negation = Literal { node: *x, positive: false, truth_bound: own.opposite() };
                        let Ok(of) = self.finite(negation) else { return Err(refusal) };
                        let before = self.previously(node, of)?;
                        if positive {
                            LiteralMeaning::All(vec![Conjunct::NotFirst(true), Conjunct::NotIn(before)])
                        } else {
                            LiteralMeaning::Any(vec![
                                vec![Conjunct::NotFirst(false)],
                                vec![Conjunct::In(before)],
                            ])
                        }
                    }
                }
            }
            Expr::Exists(variable, body) => {
                let body = Conjunct::Literal(Literal { node: *body, positive: true, truth_bound: own });
                signed(self.exists(node, &[*variable], vec![body])?)
            }
            Expr::ForAll(variable, body) => {
                let body = Literal { node: *body, positive: false, truth_bound: own.opposite() };
                let part = self.exists(node, &[*variable], vec![Conjunct::Literal(body)])?;
                if positive { LiteralMeaning::NotIn(part) } else { LiteralMeaning::In(part) }
            }
            expr if expr.class() == Class::Future => {
                return refuse(
                    "a future operator cannot be applied to variables here",
                    "put it directly under a quantifier: `forall x. a{id: x} -> eventually[0, 2 s] b{id: x}`",
                );
            }
            Expr::If(..) => {
                return refuse(
                    "`if` cannot be applied to formulas with variables",
                    "write it with `and`, `or` and `not`",
                );
            }
            _ => {
                return refuse(
                    "this operator cannot be applied to formulas with variables",
                    "apply it to formulas without variables",
                );
            }
        })
    }

    /// Returns the meaning of `once`, `historically` or `since` over variables.
    fn past_meaning(&mut self, literal: Literal, past: Temporal) -> Result<LiteralMeaning, Refusal> {
        let Literal { node, positive, truth_bound } = literal;
        let Temporal { bounds, all, guard, operand } = past;
        // `historically` is `not once not`, with the opposite truth bound for the negated operand.
        let truth_bound = if positive == all { truth_bound.opposite() } else { truth_bound };
        let signed =
            |part, positive| if positive { LiteralMeaning::In(part) } else { LiteralMeaning::NotIn(part) };
        let refusal = match self.finite(Literal { node: operand, positive: !all, truth_bound }) {
            Ok(right) => {
                let part = self.since(node, bounds, guard, right, truth_bound)?;
                return Ok(signed(part, positive != all));
            }
            Err(refusal) if guard.is_some() => return Err(refusal),
            Err(refusal) => refusal,
        };
        // `once` is `not historically not`.
        let negation = Literal { node: operand, positive: all, truth_bound: truth_bound.opposite() };
        let part = self.all_the_time(node, bounds, negation, refusal)?;
        Ok(signed(part, positive == all))
    }

    /// Whether a formula depends on values of variables alone.
    fn is_timeless(&self, root: ExprId) -> bool {
        let mut open = vec![root];
        for _ in 0..TIMELESS {
            let Some(node) = open.pop() else { return true };
            let expr = &self.scope.spec.nodes[node.index()];
            let is_timeless = matches!(expr.class(), Class::Constant | Class::Function | Class::Connective);
            if !is_timeless || matches!(expr, Expr::If(..) | Expr::Definitely(_) | Expr::Key(..)) {
                return false;
            }
            open.extend(expr.operands());
        }
        false
    }

    /// Returns the part of the tuples for which a literal has held at all time points within bounds.
    fn all_the_time(
        &mut self,
        node: ExprId,
        bounds: Bounds,
        of: Literal,
        refusal: Refusal,
    ) -> Result<PartId, Refusal> {
        let of = self.finite(of).map_err(|_| refusal)?;
        let variables = self.part(of).variables.clone();
        if bounds.lower > 0 || bounds.upper.is_some_and(|upper| upper < bounds.lower) {
            let why = "over bounds that start later than the present, this holds for every value at first";
            let help = "start the bounds at 0, or write the operator about an atom that binds the variable";
            return Err(Refusal::of(node, why, help).about(variables.first().copied()));
        }
        let upper = bounds.upper.map(|upper| self.ticks(upper));
        let of = self.lasting(node, of)?;
        self.add(node, PartOp::Lasting(of, upper), variables, true)
    }

    pub(crate) fn previously(&mut self, node: ExprId, of: PartId) -> Result<PartId, Refusal> {
        let part = self.part(of);
        let (variables, lasts) = (part.variables.clone(), part.lasts);
        self.add(node, PartOp::Previously(of), variables, lasts)
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
            let field = FieldColumn { topic, path: path.clone(), value_type: *value_type };
            let field = position(&mut self.plan.fields, field);
            columns.push((field, place(&variables, *variable)));
        }
        let atom = position(&mut self.plan.atoms, Atom { topic, columns });
        self.add(node, PartOp::Bind(atom), variables, false)
    }

    /// Returns a bound in ticks.
    pub(crate) fn ticks(&self, bound: u64) -> i64 {
        let bound = i64::try_from(bound).unwrap_or(i64::MAX);
        // Between two nanoseconds there is a tick for the open interval.
        if self.model == TimeModel::Dense { bound.saturating_mul(2) } else { bound }
    }

    pub(crate) fn since(
        &mut self,
        node: ExprId,
        bounds: Bounds,
        left: Option<ExprId>,
        mut right: PartId,
        truth_bound: TruthBound,
    ) -> Result<PartId, Refusal> {
        let variables = self.part(right).variables.clone();
        if bounds.upper.is_some_and(|upper| upper < bounds.lower) {
            return self.add(node, PartOp::Union(Vec::new()), variables, false);
        }
        let mut lower = self.ticks(bounds.lower);
        let mut upper = bounds.upper.map(|upper| self.ticks(upper));
        let left = match left {
            Some(left) => {
                let left = Literal { node: left, positive: true, truth_bound };
                self.left(node, left, &variables, OF_SINCE)?
            }
            None => Vec::new(),
        };
        let is_endless = upper.is_none() && left.is_empty() && !variables.is_empty();
        let most = match self.keep {
            Keep::Latest(tuples) if is_endless => Some(Most { tuples, truth_bound }),
            _ => None,
        };
        if is_endless && self.keep <= Keep::Strict {
            let variable = variables.first().copied();
            let why = "without an upper bound, every value ever received would be kept";
            let help = if self.keep == Keep::Bounded {
                "add an upper bound; or write `@limit(100000)` before the property to keep that many values, or `@unbounded` (`--unbounded` for a single formula) to keep all"
            } else {
                "add an upper bound, or write `@unbounded` before the property (`--unbounded` for a single formula) to keep all values"
            };
            return Err(Refusal::of(node, why, help).about(variable));
        }
        if self.model == TimeModel::Dense && !self.is_instant(right) {
            // A condition that lasts also holds between time points.
            right = self.lasting(node, right)?;
        }
        if self.part(right).lasts {
            match (self.model, lower, left.is_empty()) {
                (TimeModel::Dense, 1.., false) => {
                    let why = "in dense time, the second operand of this `since` must be an event, and this condition lasts";
                    let help = "use an atom as the second operand, or measure in points with `@time(points)`";
                    return Err(Refusal::of(node, why, help).about(variables.first().copied()));
                }
                // With a lower bound, `since` stores when a lasting operand began and ended.
                (_, 0, _) | (TimeModel::Dense, ..) => {}
                (TimeModel::Steps, by, true) => {
                    right = self.add(node, PartOp::Delay(right, by), variables.clone(), true)?;
                    upper = upper.map(|upper| upper - lower);
                    lower = 0;
                }
                _ => right = self.scan(node, right)?,
            }
        }
        self.add(node, PartOp::Since { lower, upper, left, right, most }, variables, true)
    }

    /// Whether the part is empty between events.
    pub(crate) fn is_instant(&self, part: PartId) -> bool {
        match &self.part(part).op {
            PartOp::Bind(_) => true,
            // Joined with the tuples of events, as in `x == 1 and b{v: x}`, it has tuples only at events.
            PartOp::Chain { of, stages, .. } => {
                let joins_events =
                    |stage: &Stage| matches!(stage, Stage::With(lookup, _) if self.is_instant(lookup.part));
                self.is_instant(*of) || stages.iter().any(joins_events)
            }
            PartOp::Project(of, _) | PartOp::Previously(of) => !self.part(part).lasts && self.is_instant(*of),
            PartOp::Union(of) => !self.part(part).lasts && of.iter().all(|part| self.is_instant(*part)),
            _ => false,
        }
    }

    /// Returns the requirements of a `since` or a past. Variables that are not bound are refused with the
    /// message `unbound`.
    pub(crate) fn left(
        &mut self,
        node: ExprId,
        left: Literal,
        bound: &[VariableId],
        unbound: (&'static str, &'static str),
    ) -> Result<Vec<Left>, Refusal> {
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
                        let (why, help) = unbound;
                        return Err(Refusal::of(node, why, help).about(Some(variable)));
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
                                let truth_bound = literal.truth_bound.opposite();
                                let negation =
                                    Literal { positive: !literal.positive, truth_bound, ..literal };
                                (self.finite(negation)?, false)
                            }
                        }
                    } else {
                        match self.meaning(literal)? {
                            LiteralMeaning::In(part) => (part, true),
                            LiteralMeaning::NotIn(part) => (part, false),
                            LiteralMeaning::All(more) => {
                                open.extend(more);
                                continue;
                            }
                            LiteralMeaning::Any(_) => {
                                let why = "`previously` of a negation is not supported here";
                                let help = "write the negation before `previously`, if the first time point does not matter";
                                return Err(Refusal::of(literal.node, why, help));
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
}
