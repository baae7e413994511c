//! Which quantified formulas are evaluated by value, as slices, and how they become that.
//!
//! `forall x. p` is false at a moment where `p` is for *some* value: relations keep all values that count, for any
//! of them can matter at any moment. By value it is enough to look at one value for each message, if
//!
//! 1. every atom binds all variables, each topic always in the same fields: a message then speaks of one
//!    combination of values, and is no message to any other;
//! 2. at a moment with no message of its own (*untouched*) `p` is true for every value, whatever was before
//!    ([`Idle::Always`]; `exists` is the same of `not p`): so what `forall` says there is what `p` says of the one value
//!    that is touched, if there is one, and values that were never seen need no thought;
//! 3. at a moment with a message of its own an instance that has seen only those says of `p` what the definition
//!    says, which looks at all moments.
//!
//! The third is an induction over the formula. An atom is its topic. What has no variables is evaluated outside, for
//! all events, and read at the moment (so a field is held as ever). Operators without time look at this moment
//! only. `once q` looks at others: where `q` is false at all untouched moments ([`Idle::Never`]) its witnesses are
//! moments that the instance has seen, and their distance is that of times, or of positions, which the instance is
//! told in place of times. `p since q` looks also at `p` in between: that has to be true wherever it is untouched.
//! So has the operand of `historically`. In dense time the spans between events are untouched moments. What an
//! operator without bounds says lasts from one touched moment over all untouched ones up to the next
//! ([`Idle::Lasts`]), and was false before the first: therefore it can be asked for as `previously`, or by another
//! `once`. What has bounds can change at any moment, and can be asked for at touched moments only.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rondel_event::{Path, Read, TopicId, Value, ValueType};
use rondel_spec::{Bounds, Expr, ExprId, TimeModel, VariableId};

use super::{Meaning, Rails, Translator, Truth};
use crate::CompileError;
use crate::exec::section::Moments;
use crate::ir::node::Node;
use crate::ir::wire::Wire;
use crate::keyed::by_value::ByValueSource;
use crate::lower::assemble::Ordered;
use crate::lower::quantifier::{Evaluation, Quantifier};
use crate::relation::literal::Scope;

/// What a formula is at moments without a message of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Idle {
    /// False.
    Never,
    /// True.
    Always,
    /// What it was at the last moment with such a message; before the first, false or true.
    Lasts(bool),
    /// Anything.
    Other,
}

/// Why a formula is not evaluated by value.
type Reason = (ExprId, &'static str);

/// A quantified formula that can be evaluated by value.
pub(super) struct ByValueFormula {
    variables: Vec<VariableId>,
    /// For each topic where it has the variables, in their order.
    topics: Vec<(TopicId, Vec<Path>)>,
    /// What stands behind the quantifiers.
    body: ExprId,
    /// Whether it must hold for some value, or must fail.
    positive: bool,
    /// Whether the whole says that there is no such value.
    negated: bool,
    /// The parts of the body with variables and the constants, in order.
    nodes: Vec<ExprId>,
    /// The truths without variables.
    inputs: Vec<ExprId>,
}

/// Finds out whether a quantified formula can be evaluated by value.
struct Search<'a> {
    scope: &'a Scope<'a>,
    division: ByValueFormula,
    /// Which node without variables is a truth.
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

    /// Goes through all parts of the body, operands first.
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

    /// What a part with variables is at untouched moments.
    fn part(&mut self, id: ExprId, expr: &Expr) -> Result<Idle, Reason> {
        use Idle::{Always, Lasts, Never, Other};
        let of = |x: &ExprId| self.idle_of(*x);
        Ok(match expr {
            Expr::Bind { topic, fields } => {
                self.bind(id, *topic, fields)?;
                Never
            }
            Expr::Variable(..)
            | Expr::ToFloat(_)
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Compare(..)
            | Expr::StartsWith(..)
            | Expr::Call(..)
            | Expr::If(..) => Other,
            Expr::Not(x) => not(of(x)),
            Expr::Definitely(x) => of(x),
            Expr::And(x, y) => both(of(x), of(y)),
            Expr::Or(x, y) => not(both(not(of(x)), not(of(y)))),
            Expr::Once(bounds, x) => once(*bounds, of(x)).ok_or((*x, ELSEWHERE))?,
            Expr::Historically(bounds, x) => not(once(*bounds, not(of(x))).ok_or((*x, ELSEWHERE))?),
            Expr::Since(bounds, x, y) => {
                if of(x) != Always {
                    return Err((*x, ELSEWHERE));
                }
                if of(y) != Never {
                    return Err((*y, ELSEWHERE));
                }
                once(*bounds, Never).unwrap_or(Other)
            }
            Expr::Previously(x) if of(x) == Lasts(false) => Other,
            Expr::Previously(_) => return Err((id, "it refers to the previous event, whatever its values")),
            Expr::Exists(..) | Expr::ForAll(..) => {
                return Err((id, "it is a quantifier that uses a variable of an outer quantifier"));
            }
            _ => return Err((id, "it has variables")),
        })
    }

    /// An atom: the message has all variables, where other messages of its topic have them.
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
        // What is always true at untouched moments need not be at the touched one before.
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
    /// How a quantified formula is evaluated that does not look ahead; it can be by relations.
    pub(super) fn division(&mut self, id: ExprId) -> Option<ByValueFormula> {
        let scope = self.scope();
        let done = &self.done;
        let is_truth = |node: ExprId| matches!(done.get(node.index()), Some(Some((Meaning::Truth(_), _))));
        let found = match self.by_relations[id.index()] {
            // That would be instances of instances.
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
            // At the events themselves: nothing is asked for between them.
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
            let rails = Rails { certain: outer(truth.at.certain), possible: outer(truth.at.possible) };
            inner.done[input.index()] = Some((Meaning::Truth(Truth::lasting(rails)), 0));
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
        inner.formulas.push(truth);
        inner.robust.push(None);
        let section =
            Ordered::new(inner.finish(), Moments::Events, false, (self.spec, &[])).assemble(vec![0], &[]);
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
        // Between events no value is touched.
        let nothing = Rails::both(Wire::FALSE);
        let at = Rails { certain, possible };
        let after = if self.model == TimeModel::Dense { nothing } else { at };
        let some = Truth { at, after };
        Ok(if negated { some.not() } else { some })
    }
}

impl ByValueFormula {
    /// Where the messages have each variable.
    fn places(&self) -> Vec<(VariableId, Vec<(TopicId, Path)>)> {
        let of = |(i, variable): (usize, &VariableId)| {
            let places =
                self.topics.iter().filter_map(|(topic, paths)| Some((*topic, paths.get(i)?.clone())));
            (*variable, places.collect())
        };
        self.variables.iter().enumerate().map(of).collect()
    }
}
