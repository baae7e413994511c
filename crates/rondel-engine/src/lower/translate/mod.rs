//! Translation of specification nodes into the graph. Types become kinds of columns, three-valued truth
//! becomes a lower and an upper truth, dense time adds a half between events, and the operators of the
//! language become the few of the graph.

mod ask;
mod by_value;
mod chain;
mod future;
mod linear;
mod machine;
mod measured;
mod operands;
mod past;
mod relation;
mod robust;
mod sources;
mod values;

use std::collections::HashMap;
use std::rc::Rc;

use rondel_event::{Comparison, Path, Read, TopicId, Value, ValueType};
use rondel_spec::{Expr, ExprId, Kernel, MachineId, Spec, TimeModel, VariableId, pattern};

use crate::CompileError;
use crate::future::{Future, RobustFuture};
use crate::ir::graph::Graph;
use crate::ir::node::{ComparisonKind, FieldId, Node};
use crate::ir::premise::Premise;
use crate::ir::truth::{Truth, TruthBounds};
use crate::ir::wire::{Halves, NodeId, Wire};
use crate::lower::error;
use crate::lower::quantifier::Quantifier;
use crate::relation::literal::Scope;
use crate::relation::plan::Keep;
use future::look_ahead;

pub(crate) use linear::{Lines, groups};
pub(crate) use machine::MachineSource;
use operands::Operands;
pub(crate) use robust::Robustness;
pub(crate) use sources::Sources;

/// The graph of a set of properties.
pub(crate) struct Translation {
    pub(crate) graph: Graph,
    /// Machines, relations and inner formulas that nodes refer to by number.
    pub(crate) sources: Sources,
    /// Fields that the graph can read; some may be unused.
    pub(crate) fields: Vec<FieldRead>,
    /// The formulas of the requested properties, in their order.
    pub(crate) formulas: Vec<Truth>,
    /// The robustness of each formula, if requested.
    pub(crate) robust: Vec<Option<Robustness>>,
    /// The properties with future operators.
    pub(crate) futures: Vec<Future>,
    /// The properties with future operators and robustness.
    pub(crate) robust_futures: Vec<RobustFuture<Robustness>>,
    /// The evaluation of each quantified formula.
    pub(crate) quantifiers: Vec<Quantifier>,
    /// The interpolated fields and linear forms, with linear interpolation.
    pub(crate) linear: Option<Lines>,
    /// The premises of the properties.
    pub(crate) premises: Vec<Premise>,
    /// The terms among the properties.
    pub(crate) terms: Vec<TermSource>,
}

/// A property that is a term: its values are recorded instead of verdicts.
#[derive(Clone, Copy)]
pub(crate) struct TermSource {
    /// Index of the property.
    pub(crate) property: u32,
    pub(crate) value_type: ValueType,
    /// Column and known rows of each half.
    pub(crate) halves: [(NodeId, Wire); 2],
}

/// A read of a field: topic, path and kind.
pub(crate) struct FieldRead {
    pub(crate) topic: TopicId,
    pub(crate) path: Path,
    pub(crate) read: Read,
}

/// A column, and the rows in which its values are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Column {
    node: NodeId,
    known: Wire,
}

/// Values of both halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ValueColumns {
    at: Column,
    after: Column,
    value_type: ValueType,
}

impl ValueColumns {
    fn lasting(column: Column, value_type: ValueType) -> ValueColumns {
        ValueColumns { at: column, after: column, value_type }
    }
}

/// The translation of a node.
#[derive(Clone, Copy)]
enum Meaning {
    Truth(Truth),
    Values(ValueColumns),
}

impl Meaning {
    /// Whether it is never unknown.
    fn is_known(self) -> bool {
        match self {
            Meaning::Truth(Truth { at, after }) => {
                at.certain == at.possible && after.certain == after.possible
            }
            Meaning::Values(values) => values.at.known == Wire::TRUE && values.after.known == Wire::TRUE,
        }
    }

    fn value_type(self) -> ValueType {
        match self {
            Meaning::Truth(_) => ValueType::Bool,
            Meaning::Values(values) => values.value_type,
        }
    }
}

/// Index of a set of topics that a node refers to. Set 0 is empty.
type SetId = usize;

/// Builder of one graph from properties of all time models.
pub(crate) struct Translator<'a> {
    spec: &'a Spec,
    /// Number of topics whose events the section receives.
    topics: usize,
    /// The types of the parameters of its slice.
    keys: &'a [ValueType],
    /// The time model of the current translation.
    model: TimeModel,
    graph: Graph,
    sources: Sources,
    fields: Vec<FieldRead>,
    fields_at: HashMap<(TopicId, Path), Vec<FieldId>>,
    /// The translation of every node in the current time model, once it is needed.
    done: Vec<Option<(Meaning, SetId)>>,
    formulas: Vec<Truth>,
    robust: Vec<Option<Robustness>>,
    /// The robustness of nodes in the current time model, once it is needed.
    margins: HashMap<ExprId, Robustness>,
    /// The scopes of variables, once a quantifier is found.
    scope: Option<Rc<Scope<'a>>>,
    /// For every node the retention policy of relations in it.
    keep: Vec<Keep>,
    /// For every node whether a quantifier in it must be evaluated by relations.
    by_relations: Vec<bool>,
    quantifiers: Vec<Quantifier>,
    /// The variables that are the parameters of inner instances.
    variables: Vec<VariableId>,
    futures: Vec<Future>,
    robust_futures: Vec<RobustFuture<Robustness>>,
    premises: Vec<Premise>,
    /// Properties that are terms; none if every property must be a formula.
    terms: Option<Vec<TermSource>>,
    /// Set with linear interpolation.
    linear: Option<Lines>,
    /// Number of obligations of tuples so far.
    obligations: u32,
    /// The machines in the current time model; none while one is being translated.
    machines: HashMap<MachineId, Option<NodeId>>,
    sets: Vec<Vec<TopicId>>,
    set_index: HashMap<Vec<TopicId>, SetId>,
    unions: HashMap<(SetId, SetId), SetId>,
}

impl<'a> Translator<'a> {
    pub(crate) fn new(spec: &'a Spec) -> Translator<'a> {
        Translator {
            spec,
            topics: spec.topics.len(),
            keys: &[],
            model: TimeModel::Steps,
            graph: Graph::new(),
            sources: Sources::default(),
            fields: Vec::new(),
            fields_at: HashMap::new(),
            done: Vec::new(),
            formulas: Vec::new(),
            robust: Vec::new(),
            margins: HashMap::new(),
            scope: None,
            keep: Vec::new(),
            by_relations: Vec::new(),
            quantifiers: Vec::new(),
            variables: Vec::new(),
            futures: Vec::new(),
            robust_futures: Vec::new(),
            premises: Vec::new(),
            terms: None,
            linear: None,
            obligations: 0,
            machines: HashMap::new(),
            sets: vec![Vec::new()],
            set_index: HashMap::from([(Vec::new(), 0)]),
            unions: HashMap::new(),
        }
    }

    /// A translator for instances with these parameters that receive events of this number of topics.
    pub(crate) fn divided(spec: &'a Spec, keys: &'a [ValueType], topics: usize) -> Translator<'a> {
        Translator { topics, keys, ..Translator::new(spec) }
    }

    /// Accepts terms as properties.
    pub(crate) fn with_terms(self, are_allowed: bool) -> Translator<'a> {
        Translator { terms: are_allowed.then(Vec::new), ..self }
    }

    /// Adds the properties with these indexes, all of time model `model`. Returns those without future
    /// operators.
    ///
    /// # Errors
    /// As [`Program::compile`](crate::Program::compile).
    pub(crate) fn add(&mut self, model: TimeModel, properties: &[u32]) -> Result<Vec<u32>, CompileError> {
        let spec = self.spec;
        self.model = model;
        self.done = vec![None; spec.nodes.len()];
        self.margins.clear();
        self.machines.clear();
        let mut needed = vec![false; spec.nodes.len()];
        self.keep = vec![Keep::Bounded; needed.len()];
        self.by_relations = needed.clone();
        for &property in properties {
            let property = &spec.properties[property as usize];
            let (name, formula) = (&property.name, property.formula);
            match needed.get_mut(formula.index()) {
                Some(needed) => {
                    *needed = true;
                    let keep = Keep::of(&property.attributes, property.slice.is_some());
                    self.keep[formula.index()] = self.keep[formula.index()].max(keep);
                    let by_relations = property
                        .attributes
                        .iter()
                        .any(|(name, value)| name == "plan" && value == "relations");
                    self.by_relations[formula.index()] |= by_relations;
                }
                None => return Err(CompileError::UnknownFormula { property: name.clone(), formula }),
            }
            // A premise is nearly always a subformula of its property.
            for premise in &property.premises {
                if let Some(needed) = needed.get_mut(premise.index()) {
                    *needed = true;
                    self.keep[premise.index()] = self.keep[premise.index()].max(self.keep[formula.index()]);
                    self.by_relations[premise.index()] |= self.by_relations[formula.index()];
                }
            }
        }
        // A truth that is unknown because tuples were evicted must not become false in an operator that
        // conflates the two.
        let mut collapses = vec![false; spec.nodes.len()];
        for (i, expr) in spec.nodes.iter().enumerate().rev() {
            if needed[i] {
                collapses[i] |= !self.keeps_unknown(ExprId(i as u32), expr);
                if collapses[i] && self.keep[i] != Keep::All {
                    self.keep[i] = Keep::Strict;
                }
                for operand in self.required_operands(ExprId(i as u32), expr)? {
                    // Invalid operands are reported when their node is translated.
                    if let Some(needed) = needed.get_mut(operand.index()) {
                        *needed = true;
                        self.keep[operand.index()] = self.keep[operand.index()].max(self.keep[i]);
                        collapses[operand.index()] |= collapses[i];
                        self.by_relations[operand.index()] |= self.by_relations[i];
                    }
                }
            }
        }
        let ahead = look_ahead(&spec.nodes);
        for (i, expr) in spec.nodes.iter().enumerate() {
            if needed[i] {
                self.interpolate(ExprId(i as u32), expr)?;
            }
            if needed[i] && !ahead[i] {
                self.done[i] = Some(self.expr(ExprId(i as u32), expr)?);
            }
        }
        let mut plain = Vec::with_capacity(properties.len());
        for &position in properties {
            let property = &spec.properties[position as usize];
            if ahead[property.formula.index()] && property.robust {
                let future = self.robust_plan(position, property.formula, model, &ahead)?;
                self.robust_futures.push(future);
                continue;
            }
            if ahead[property.formula.index()] {
                let future = self.plan(position, property.formula, model, &ahead)?;
                self.futures.push(future);
                continue;
            }
            match self.done[property.formula.index()] {
                Some((Meaning::Truth(truth), _)) => {
                    plain.push(position);
                    self.formulas.push(truth);
                    let robust =
                        if property.robust { Some(self.robustness(property.formula)?) } else { None };
                    self.robust.push(robust);
                }
                Some((Meaning::Values(ValueColumns { at, after, value_type }), _))
                    if self.terms.is_some() =>
                {
                    let halves = [at, after].map(|Column { node, known }| (node, known));
                    let term = TermSource { property: position, value_type, halves };
                    self.terms.iter_mut().for_each(|terms| terms.push(term));
                }
                Some((Meaning::Values(values), _)) => {
                    let (property, found) = (property.name.clone(), values.value_type);
                    return Err(CompileError::NotAFormula { property, found });
                }
                // Cannot happen: every formula is marked as needed.
                None => {}
            }
        }
        for &property in properties {
            for (number, premise) in (0..).zip(&spec.properties[property as usize].premises) {
                if let Some(Some((Meaning::Truth(truth), _))) = self.done.get(premise.index()) {
                    self.premises.push(Premise { property, number, certain: truth.certain() });
                }
            }
        }
        if self.graph.has_overflowed() {
            return Err(CompileError::TooLarge { limit: Graph::LIMIT });
        }
        Ok(plain)
    }

    pub(crate) fn finish(self) -> Translation {
        Translation {
            graph: self.graph,
            sources: self.sources,
            fields: self.fields,
            formulas: self.formulas,
            robust: self.robust,
            futures: self.futures,
            robust_futures: self.robust_futures,
            quantifiers: self.quantifiers,
            linear: self.linear,
            premises: self.premises,
            terms: self.terms.unwrap_or_default(),
        }
    }

    fn set_of(&self, node: ExprId) -> SetId {
        self.done.get(node.index()).copied().flatten().map_or(0, |(_, set)| set)
    }

    fn expr(&mut self, id: ExprId, expr: &Expr) -> Result<(Meaning, SetId), CompileError> {
        let meaning = match expr {
            Expr::Exists(..) | Expr::ForAll(..) => self.quantified(id)?,
            // These nodes have no operands, but translate other nodes.
            Expr::InState(machine, states) => self.in_state(id, *machine, states)?,
            Expr::Ambiguous(machine) => self.ambiguous(id, *machine)?,
            Expr::MachineVariable(machine, variable, value_type) => {
                self.machine_variable(id, *machine, *variable, *value_type)?
            }
            _ => {
                let done = std::mem::take(&mut self.done);
                let meaning = self.meaning(id, expr, &Operands { id, done: &done });
                self.done = done;
                meaning?
            }
        };
        let own = match expr {
            Expr::InState(..)
            | Expr::Ambiguous(_)
            | Expr::MachineVariable(..)
            | Expr::Chain(..)
            | Expr::Exists(..)
            | Expr::ForAll(..) => self.set(self.spec.topics_of(id)),
            Expr::Window { topics, .. } => {
                let mut own = 0;
                for &topic in topics {
                    let topic = self.topic_set(id, topic)?;
                    own = self.union(own, topic);
                }
                own
            }
            _ => match expr.topic() {
                Some(topic) => self.topic_set(id, topic)?,
                None => 0,
            },
        };
        let set = expr.operands().fold(own, |set, operand| self.union(set, self.set_of(operand)));
        Ok((meaning, set))
    }

    fn meaning(&mut self, id: ExprId, expr: &Expr, operand: &Operands<'_>) -> Result<Meaning, CompileError> {
        if let Some(topic) = expr.topic() {
            self.topic_set(id, topic)?;
        }
        Ok(match expr {
            Expr::Literal(value) => self.literal(value),
            Expr::Field { topic, path, value_type } => {
                let field = self.field(*topic, path, Read::Value(*value_type));
                self.held(field, *value_type)
            }
            Expr::Elements { topic, path, quantifier, conditions } => {
                let field = self.field(*topic, path, Read::Elements(*quantifier, conditions.clone()));
                self.held(field, quantifier.value_type())
            }
            Expr::Length { topic, path, of } => {
                let field = self.field(*topic, path, Read::length(*of));
                self.held(field, ValueType::Int)
            }
            Expr::Number { topic, path } => {
                let field = self.field(*topic, path, Read::Number(ValueType::Float));
                self.held(field, ValueType::Float)
            }
            Expr::IsNan { topic, path } => {
                let field = self.field(*topic, path, Read::IsNan);
                self.held(field, ValueType::Bool)
            }
            Expr::Carried { topic, path } => {
                let field = self.field(*topic, path, Read::Presence);
                let carried = self.graph.wire(Node::Carried(field));
                Meaning::Truth(self.update(carried))
            }
            // Inside of an instance by value, every message of the topic has the values.
            Expr::Bind { topic, .. } if self.variables.is_empty() => {
                return Err(CompileError::Unsupported { node: id, what: "this operator" });
            }
            Expr::On(topic) | Expr::Bind { topic, .. } => {
                let set = self.topic_set(id, *topic)?;
                let clock = self.clock(set);
                Meaning::Truth(self.update(clock))
            }
            Expr::ToFloat(x) => {
                let values = operand.values(*x, &[ValueType::Int], "int")?;
                Meaning::Values(self.widened(values))
            }
            Expr::Unary(op, x) => Meaning::Values(self.unary(*op, operand.number(*x)?)),
            Expr::Binary(op, x, y) => {
                let (left, right) = (operand.meaning(*x)?, operand.meaning(*y)?);
                Meaning::Values(self.binary(id, *op, left, right)?)
            }
            Expr::Compare(comparison, x, y) => {
                let value_type = operand.same_type(*x, *y)?;
                let equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
                if !equality && matches!(value_type, ValueType::Bool | ValueType::String) {
                    let expected = "a number or time";
                    return Err(CompileError::WrongType { node: id, expected, found: value_type });
                }
                if let Some(truth) = self.compare_interpolated(id, *comparison, *x, *y)? {
                    return Ok(Meaning::Truth(truth));
                }
                let (left, right) = (operand.meaning(*x)?, operand.meaning(*y)?);
                let exact = match self.compare_age(*comparison, *x, *y)? {
                    None => self.compare_chain(*comparison, *x, *y)?,
                    exact => exact,
                };
                match exact {
                    Some(truth) => Meaning::Truth(truth),
                    None => Meaning::Truth(self.compare(*comparison, left, right)),
                }
            }
            Expr::StartsWith(x, y) => {
                let text = &[ValueType::String];
                let (x, y) = (operand.values(*x, text, "string")?, operand.values(*y, text, "string")?);
                let starts = |me: &mut Self, x, y| me.relation(ComparisonKind::TextStartsWith, false, x, y);
                Meaning::Truth(Truth { at: starts(self, x.at, y.at), after: starts(self, x.after, y.after) })
            }
            Expr::Call(function, x, y) => {
                let parameters = function.parameters();
                let mut arguments = Vec::with_capacity(2);
                for (argument, parameter) in [Some(*x), *y].into_iter().flatten().zip(parameters) {
                    arguments.push(operand.values(argument, &[*parameter], named(*parameter))?);
                }
                if arguments.len() != parameters.len() {
                    return Err(CompileError::Unsupported { node: id, what: error::ARGUMENTS });
                }
                let is_constant = |y: &ExprId| match self.spec.nodes.get(y.index()) {
                    Some(Expr::Literal(Value::String(text))) => pattern(text).is_ok(),
                    _ => false,
                };
                if matches!(function.kernel(), Kernel::Matches) && !y.as_ref().is_some_and(is_constant) {
                    return Err(CompileError::Unsupported { node: id, what: error::PATTERN });
                }
                self.function(*function, arguments[0], arguments.get(1).copied())
            }
            Expr::If(condition, x, y) => {
                let condition = operand.truth(*condition)?;
                operand.same_type(*x, *y)?;
                self.choose(condition, operand.meaning(*x)?, operand.meaning(*y)?)
            }
            Expr::Prev(x) => {
                let meaning = operand.meaning(*x)?;
                let set = operand.set(*x);
                self.prev(meaning, set)
            }
            Expr::Not(x) => Meaning::Truth(operand.truth(*x)?.not()),
            Expr::And(x, y) => {
                let (x, y) = (operand.truth(*x)?, operand.truth(*y)?);
                Meaning::Truth(self.by_bound([x, y], |graph, [a, b]| Halves {
                    at: graph.and(a.at, b.at),
                    after: graph.and(a.after, b.after),
                }))
            }
            Expr::Or(x, y) => {
                let (x, y) = (operand.truth(*x)?, operand.truth(*y)?);
                Meaning::Truth(self.by_bound([x, y], |graph, [a, b]| Halves {
                    at: graph.or(a.at, b.at),
                    after: graph.or(a.after, b.after),
                }))
            }
            Expr::Definitely(x) => {
                let truth = operand.truth(*x)?;
                Meaning::Truth(self.definitely(*x, truth))
            }
            Expr::Previously(x) => {
                let x = operand.truth(*x)?;
                Meaning::Truth(self.previously(x))
            }
            Expr::Once(bounds, x) => {
                let x = operand.truth(*x)?;
                Meaning::Truth(self.once(*bounds, x))
            }
            Expr::Historically(bounds, x) => {
                let x = operand.truth(*x)?.not();
                Meaning::Truth(self.once(*bounds, x).not())
            }
            Expr::Since(bounds, x, y) => {
                let (x, y) = (operand.truth(*x)?, operand.truth(*y)?);
                Meaning::Truth(self.since(*bounds, x, y))
            }
            Expr::Window { aggregate, over, operand: x, topics } => {
                Meaning::Values(self.window(id, (*aggregate, *over, *x, topics), operand)?)
            }
            Expr::Age(topic) => Meaning::Values(self.age(*topic)?),
            Expr::Latency(topic) => Meaning::Values(self.latency(*topic)?),
            Expr::Jitter(topic) => Meaning::Values(self.jitter(*topic)?),
            Expr::Chain(chain, measure) => Meaning::Values(self.chain(id, *chain, *measure)?),
            Expr::Variable(variable, value_type) if self.variables.contains(variable) => {
                let key = self.variables.iter().position(|other| other == variable);
                self.key(key.unwrap_or_default() as u32, *value_type)
            }
            Expr::Key(key, value_type) if self.keys.get(*key as usize) == Some(value_type) => {
                self.key(*key, *value_type)
            }
            _ => return Err(CompileError::Unsupported { node: id, what: "this operator" }),
        })
    }

    fn field(&mut self, topic: TopicId, path: &Path, read: Read) -> FieldId {
        let here = self.fields_at.entry((topic, path.clone())).or_default();
        if let Some(&known) = here.iter().find(|&&f| self.fields[f as usize].read == read) {
            return known;
        }
        let id = self.fields.len() as FieldId;
        here.push(id);
        self.fields.push(FieldRead { topic, path: path.clone(), read });
        id
    }

    fn topic_set(&mut self, node: ExprId, topic: TopicId) -> Result<SetId, CompileError> {
        let topics = self.spec.topics.len();
        if topic.index() >= topics {
            return Err(CompileError::UnknownTopic { node, topic, topics });
        }
        Ok(self.set(vec![topic]))
    }

    fn set(&mut self, topics: Vec<TopicId>) -> SetId {
        let (sets, index) = (&mut self.sets, &mut self.set_index);
        *index.entry(topics).or_insert_with_key(|topics| {
            sets.push(topics.clone());
            sets.len() - 1
        })
    }

    fn union(&mut self, a: SetId, b: SetId) -> SetId {
        let pair = (a.min(b), a.max(b));
        if pair.0 == 0 || a == b {
            return pair.1;
        }
        if let Some(&known) = self.unions.get(&pair) {
            return known;
        }
        let mut topics = [&self.sets[a][..], &self.sets[b][..]].concat();
        topics.sort_unstable();
        topics.dedup();
        let set = self.set(topics);
        self.unions.insert(pair, set);
        set
    }
}

/// Both halves equal, for time models without truth between events.
fn lasting(wire: Wire) -> Halves {
    Halves { at: wire, after: wire }
}

/// The name of an argument's type in messages.
fn named(value_type: ValueType) -> &'static str {
    if value_type == ValueType::Float { "float" } else { "string" }
}
