//! Evaluation of quantified formulas by value: which formulas allow it, and their translation into inner
//! instances.
//!
//! `forall x. p` is false at a time point if `p` is false for *some* value. Relations therefore keep every
//! value that can still matter. By value, one value per message suffices, under three conditions:
//!
//! 1. Every atom binds all variables, each topic always in the same fields. A message then concerns one
//!    combination of values and no other.
//! 2. At time points without a message for a combination (*untouched* for it), `p` is true whatever was before
//!    ([`Idle::Always`]; `exists` is the same of `not p`). The truth of `forall` is then that of `p` for the one
//!    touched combination, if there is one. Combinations that never occurred need no instance.
//! 3. At time points with a message for it, an instance that receives only its own messages computes the same
//!    truth of `p` as the definition, which looks at all time points.
//!
//! Condition 3 follows by induction over the formula:
//!
//! - An atom depends on its topic. Subformulas without variables are evaluated outside, over all events, and read
//!   at the time point. Operators without time depend on the current time point only.
//! - `once q` depends on earlier time points. If `q` is false at untouched ones ([`Idle::Never`]), all its
//!   witnesses are touched, and their distance is a difference of times, or of positions, which the instance
//!   receives as times.
//! - `p since q` also depends on `p` in between, so that `p` must be true at all untouched time points. So must
//!   the operand of `historically`. In dense time, the intervals between events are untouched.
//! - The truth of an unbounded operator persists from a touched time point to the next ([`Idle::Lasts`]) and is
//!   false before the first. It can be read by `previously` or another `once`. The truth of a bounded operator
//!   can change at any time point, so it can be read at touched ones only.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rondel_event::{Path, Read, TopicId, Value, ValueType};
use rondel_spec::{Bounds, Class, Expr, ExprId, Temporal, TimeModel, VariableId};

use super::{Meaning, Translator, Truth, TruthBounds};
use crate::CompileError;
use crate::exec::section::TimePoints;
use crate::ir::node::Node;
use crate::ir::wire::Wire;
use crate::keyed::by_value::ByValueSource;
use crate::lower::assemble::Ordered;
use crate::lower::quantifier::{Evaluation, Quantifier};
use crate::relation::literal::Scope;

/// The truth of a formula at time points that are untouched for its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Idle {
    /// False.
    Never,
    /// True.
    Always,
    /// The truth at the last touched time point; the argument is the truth before the first.
    Lasts(bool),
    /// Any truth.
    Other,
}

/// The node that prevents evaluation by value, and the reason.
type Reason = (ExprId, &'static str);

/// A quantified formula that can be evaluated by value.
pub(super) struct ByValueFormula {
    variables: Vec<VariableId>,
    /// Per topic the paths of the variables, in the order of `variables`.
    topics: Vec<(TopicId, Vec<Path>)>,
    /// The formula inside of the quantifiers.
    body: ExprId,
    /// True if the body must hold for some value, false if it must fail for some.
    positive: bool,
    /// True if the whole formula denies that such a value exists.
    negated: bool,
    /// Nodes of the body with variables, and constants, in order of their numbers.
    nodes: Vec<ExprId>,
    /// Truths without variables, evaluated outside.
    inputs: Vec<ExprId>,
}

/// Search for a violation of the conditions above.
struct Search<'a> {
    scope: &'a Scope<'a>,
    division: ByValueFormula,
    /// Whether a node without variables is a boolean.
    is_truth: &'a dyn Fn(ExprId) -> bool,
    idle: HashMap<ExprId, Idle>,
}

impl<'a> Search<'a> {
    fn run(
        scope: &'a Scope<'a>,
        id: ExprId,
        is_truth: &'a dyn Fn(ExprId) -> bool,
    ) -> Result<ByValueFormula, Reason> {
        let nodes = &scope.spec.nodes;
        let (mut variables, mut body) = (Vec::new(), id);
        let (mut positive, mut negated) = (true, false);
        loop {
            match nodes[body.index()] {
                Expr::ForAll(variable, of) if variables.is_empty() => {
                    (negated, positive) = (positive, false);
                    variables.push(variable);
                    body = of;
                }
                Expr::Exists(variable, of) if positive => {
                    variables.push(variable);
                    body = of;
                }
                Expr::ForAll(variable, of) if !positive => {
                    variables.push(variable);
                    body = of;
                }
                Expr::Not(of) => (body, positive) = (of, !positive),
                _ => break,
            }
        }
        let (topics, parts, inputs) = (Vec::new(), Vec::new(), Vec::new());
        let division = ByValueFormula { variables, topics, body, positive, negated, nodes: parts, inputs };
        let mut search = Search { scope, division, is_truth, idle: HashMap::new() };
        if scope.is_closed(body) {
            return Err((body, "it does not mention the variables"));
        }
        search.body(body)?;
        let root = search.idle_of(body);
        let wanted = if positive { Idle::Never } else { Idle::Always };
        if root != wanted {
            return Err((body, "values that the current message does not carry can decide it"));
        }
        let Search { mut division, .. } = search;
        division.variables.iter().try_for_each(|variable| match scope.type_of(*variable) {
            Some(ValueType::Float) | None => Err((body, "a variable is a float")),
            Some(_) => Ok(()),
        })?;
        division.inputs.sort_unstable();
        Ok(division)
    }

    fn idle_of(&self, node: ExprId) -> Idle {
        self.idle.get(&node).copied().unwrap_or(Idle::Other)
    }

    /// Visits all nodes of the body, operands first.
    fn body(&mut self, body: ExprId) -> Result<(), Reason> {
        let nodes = &self.scope.spec.nodes;
        let mut seen = BTreeSet::from([body]);
        let mut open = vec![body];
        while let Some(id) = open.pop() {
            if !self.scope.is_closed(id) {
                open.extend(nodes[id.index()].operands().filter(|operand| seen.insert(*operand)));
            }
        }
        for id in seen {
            let expr = &nodes[id.index()];
            let idle = match expr {
                Expr::Literal(value) => {
                    self.division.nodes.push(id);
                    match value {
                        Value::Bool(true) => Idle::Always,
                        Value::Bool(false) => Idle::Never,
                        _ => Idle::Other,
                    }
                }
                _ if self.scope.is_closed(id) => {
                    if !(self.is_truth)(id) {
                        return Err((id, "it is compared with a variable"));
                    }
                    self.division.inputs.push(id);
                    Idle::Other
                }
                _ => {
                    self.division.nodes.push(id);
                    self.part(id, expr)?
                }
            };
            self.idle.insert(id, idle);
        }
        Ok(())
    }

    /// The truth of a node with variables at untouched time points.
    fn part(&mut self, id: ExprId, expr: &Expr) -> Result<Idle, Reason> {
        use Idle::{Always, Lasts, Never, Other};
        let of = |x: &ExprId| self.idle_of(*x);
        Ok(match expr {
            Expr::Bind { topic, fields } => {
                self.bind(id, *topic, fields)?;
                Never
            }
            Expr::Variable(..) => Other,
            Expr::Not(x) => not(of(x)),
            Expr::Definitely(x) => of(x),
            Expr::And(x, y) => both(of(x), of(y)),
            Expr::Or(x, y) => not(both(not(of(x)), not(of(y)))),
            Expr::Previously(x) if of(x) == Lasts(false) => Other,
            Expr::Previously(_) => return Err((id, "it refers to the previous event, whatever its values")),
            _ if expr.class() == Class::Function => Other,
            _ if expr.class() == Class::Quantifier => {
                return Err((id, "it is a quantifier that uses a variable of an outer quantifier"));
            }
            _ => match expr.past() {
                Some(Temporal { bounds, guard: Some(p), operand, .. }) => {
                    if of(&p) != Always {
                        return Err((p, ELSEWHERE));
                    }
                    if of(&operand) != Never {
                        return Err((operand, ELSEWHERE));
                    }
                    once(bounds, Never).unwrap_or(Other)
                }
                Some(Temporal { bounds, all, operand, .. }) => {
                    let negated = |idle: Idle| if all { not(idle) } else { idle };
                    negated(once(bounds, negated(of(&operand))).ok_or((operand, ELSEWHERE))?)
                }
                None => return Err((id, "it has variables")),
            },
        })
    }

    /// Visits an atom: it must bind all variables, in the fields where other atoms of the topic bind them.
    fn bind(
        &mut self,
        id: ExprId,
        topic: TopicId,
        fields: &[(Path, VariableId, ValueType)],
    ) -> Result<(), Reason> {
        let variables = &self.division.variables;
        let place = |variable: &VariableId| {
            let mut places = fields.iter().filter(|(_, bound, _)| bound == variable);
            let path = places.next().map(|(path, ..)| path.clone());
            path.filter(|_| places.next().is_none())
        };
        let paths: Option<Vec<Path>> = variables.iter().map(place).collect();
        let Some(paths) = paths.filter(|paths| paths.len() == fields.len()) else {
            return Err((id, "it does not bind each variable exactly once"));
        };
        let topics = &mut self.division.topics;
        match topics.iter().find(|(other, _)| *other == topic) {
            Some((_, other)) if *other != paths => {
                return Err((id, "it binds a different field than another atom of its topic"));
            }
            Some(_) => {}
            None => topics.push((topic, paths)),
        }
        Ok(())
    }
}

const ELSEWHERE: &str = "its value can change at events that do not carry the variables";

fn not(idle: Idle) -> Idle {
    match idle {
        Idle::Never => Idle::Always,
        Idle::Always => Idle::Never,
        Idle::Lasts(before) => Idle::Lasts(!before),
        Idle::Other => Idle::Other,
    }
}

fn both(x: Idle, y: Idle) -> Idle {
    match (x, y) {
        (Idle::Never, _) | (_, Idle::Never) => Idle::Never,
        (Idle::Always, Idle::Always) => Idle::Always,
        (Idle::Lasts(x), Idle::Lasts(y)) => Idle::Lasts(x && y),
        // True at untouched time points does not imply true at the last touched one.
        _ => Idle::Other,
    }
}

fn once(bounds: Bounds, x: Idle) -> Option<Idle> {
    match x {
        Idle::Never | Idle::Lasts(false) if bounds == Bounds::ALL => Some(Idle::Lasts(false)),
        Idle::Never => Some(Idle::Other),
        _ => None,
    }
}

impl Translator<'_> {
    /// The evaluation by value of a quantified formula without future operators, if possible. Otherwise
    /// relations can evaluate it.
    pub(super) fn division(&mut self, id: ExprId) -> Option<ByValueFormula> {
        let scope = self.scope();
        let done = &self.done;
        let is_truth = |node: ExprId| matches!(done.get(node.index()), Some(Some((Meaning::Truth(_), _))));
        let found = match self.demands.by_relations[id.index()] {
            // Instances of instances are not supported.
            _ if !self.keys.is_empty() => Err((id, "the property already has `for each`")),
            true => Err((id, "`@plan(relations)` is set")),
            false => Search::run(&scope, id, &is_truth),
        };
        let (evaluation, division) = match found {
            Ok(division) => (Evaluation::ByValue(division.places()), Some(division)),
            Err((node, why)) => (Evaluation::Relations { node, why }, None),
        };
        self.quantifiers.push(Quantifier { node: id, evaluation });
        division
    }

    /// The truth of a formula that is evaluated by value.
    pub(super) fn by_value(&mut self, division: ByValueFormula) -> Result<Truth, CompileError> {
        let scope = self.scope();
        let ByValueFormula { variables, topics, body, positive, negated, nodes, inputs } = division;
        let types: Vec<ValueType> = variables.iter().filter_map(|x| scope.type_of(*x)).collect();
        let mut wires: Vec<Wire> = Vec::new();
        let mut inner = Translator::divided(self.spec, &types, topics.len());
        inner.model = TimeModel::Points;
        inner.done = vec![None; self.done.len()];
        inner.variables = variables;
        for input in inputs {
            let Some(Some((Meaning::Truth(truth), _))) = self.done.get(input.index()).copied() else {
                return Err(CompileError::ForwardReference { node: body, operand: input });
            };
            // Inputs are read at events only, so that the half between events is not needed.
            let mut outer = |wire: Wire| match wire {
                Wire::FALSE | Wire::TRUE => wire,
                _ => {
                    let known = wires.iter().position(|other| *other == wire);
                    let number = known.unwrap_or_else(|| {
                        wires.push(wire);
                        wires.len() - 1
                    });
                    inner.graph.wire(Node::Outer(number as u32))
                }
            };
            let bounds = TruthBounds { certain: outer(truth.at.certain), possible: outer(truth.at.possible) };
            inner.done[input.index()] = Some((Meaning::Truth(Truth::lasting(bounds)), 0));
        }
        for node in nodes {
            let done = inner.expr(node, &self.spec.nodes[node.index()])?;
            inner.done[node.index()] = Some(done);
        }
        let Some((Meaning::Truth(truth), _)) = inner.done[body.index()] else {
            return Err(CompileError::Unsupported {
                node: body,
                what: "a quantifier over an expression that is not boolean",
            });
        };
        inner.properties.formulas.push(truth);
        inner.properties.robust.push(None);
        let section =
            Ordered::new(inner.finish(), TimePoints::Events, false, self.spec, &[]).assemble(vec![0], &[]);
        let mut fields = Vec::new();
        for (topic, paths) in &topics {
            for (path, &value_type) in paths.iter().zip(&types) {
                fields.push(self.field(*topic, path, Read::Value(value_type)));
            }
        }
        let [certain, possible] = self.sources.add_by_value(
            &mut self.graph,
            ByValueSource {
                section: Arc::new(section),
                types,
                topics: topics.into_iter().map(|(topic, _)| topic).collect(),
                fields: fields.into(),
                inputs: wires,
                positive,
                model: self.model,
            },
        );
        // Between events all values are untouched.
        let nothing = TruthBounds::both(Wire::FALSE);
        let at = TruthBounds { certain, possible };
        let after = if self.model == TimeModel::Dense { nothing } else { at };
        let some = Truth { at, after };
        Ok(if negated { some.not() } else { some })
    }
}

impl ByValueFormula {
    /// The fields that bind each variable.
    fn places(&self) -> Vec<(VariableId, Vec<(TopicId, Path)>)> {
        let of = |(i, variable): (usize, &VariableId)| {
            let places =
                self.topics.iter().filter_map(|(topic, paths)| Some((*topic, paths.get(i)?.clone())));
            (*variable, places.collect())
        };
        self.variables.iter().enumerate().map(of).collect()
    }
}
