//! Translation of specification nodes into the graph. Types become kinds of columns, three-valued truth
//! becomes a lower and an upper truth, dense time adds a half between events, and the operators of the
//! language become the few of the graph.

mod by_value;
mod chain;
mod future;
mod linear;
mod machine;
mod meaning;
mod measured;
mod operands;
mod past;
mod properties;
mod quantified_future;
mod relation;
mod robust;
mod sources;
mod topic_sets;
mod values;

use std::collections::HashMap;
use std::rc::Rc;

use rondel_event::{Path, Read, TopicId, ValueType};
use rondel_spec::{Class, Expr, ExprId, MachineId, Spec, TimeModel, VariableId};

use crate::CompileError;
use crate::future::{Future, RobustFuture};
use crate::ir::graph::Graph;
use crate::ir::node::FieldId;
use crate::ir::premise::Premise;
use crate::ir::truth::{Truth, TruthBounds};
use crate::ir::wire::{Halves, NodeId, Wire};
use crate::lower::quantifier::Quantifier;
use crate::relation::literal::Scope;

pub(crate) use linear::{Lines, groups};
pub(crate) use machine::MachineSource;
use operands::Operands;
use properties::{Demands, TranslatedProperties};
pub(crate) use robust::Robustness;
pub(crate) use sources::Sources;
use topic_sets::{SetId, TopicSets};

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
    properties: TranslatedProperties,
    /// The robustness of nodes in the current time model, once it is needed.
    margins: HashMap<ExprId, Robustness>,
    /// The scopes of variables, once a quantifier is found.
    scope: Option<Rc<Scope<'a>>>,
    /// The nodes that the current properties need.
    demands: Demands,
    quantifiers: Vec<Quantifier>,
    /// The variables that are the parameters of inner instances.
    variables: Vec<VariableId>,
    /// Set with linear interpolation.
    linear: Option<Lines>,
    /// Number of obligations of tuples so far.
    obligations: u32,
    /// The machines in the current time model; none while one is being translated.
    machines: HashMap<MachineId, Option<NodeId>>,
    sets: TopicSets,
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
            properties: TranslatedProperties::default(),
            margins: HashMap::new(),
            scope: None,
            demands: Demands::default(),
            quantifiers: Vec::new(),
            variables: Vec::new(),
            linear: None,
            obligations: 0,
            machines: HashMap::new(),
            sets: TopicSets::new(),
        }
    }

    /// A translator for instances with these parameters that receive events of this number of topics.
    pub(crate) fn divided(spec: &'a Spec, keys: &'a [ValueType], topics: usize) -> Translator<'a> {
        Translator { topics, keys, ..Translator::new(spec) }
    }

    /// Accepts terms as properties.
    pub(crate) fn with_terms(mut self, are_allowed: bool) -> Translator<'a> {
        self.properties.terms = are_allowed.then(Vec::new);
        self
    }

    pub(crate) fn finish(self) -> Translation {
        let TranslatedProperties { formulas, robust, futures, robust_futures, premises, terms } =
            self.properties;
        Translation {
            graph: self.graph,
            sources: self.sources,
            fields: self.fields,
            formulas,
            robust,
            futures,
            robust_futures,
            quantifiers: self.quantifiers,
            linear: self.linear,
            premises,
            terms: terms.unwrap_or_default(),
        }
    }

    fn expr(&mut self, id: ExprId, expr: &Expr) -> Result<(Meaning, SetId), CompileError> {
        let meaning = match expr {
            _ if expr.class() == Class::Quantifier => self.quantified(id)?,
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
            Expr::Chain(..) => self.sets.set(self.spec.topics_of(id)),
            _ if matches!(expr.class(), Class::Machine | Class::Quantifier) => {
                self.sets.set(self.spec.topics_of(id))
            }
            _ => {
                let mut own = 0;
                for &topic in expr.topics() {
                    let topic = self.topic_set(id, topic)?;
                    own = self.sets.union(own, topic);
                }
                own
            }
        };
        let (operands, sets) = (Operands { id, done: &self.done }, &mut self.sets);
        let set = expr.operands().fold(own, |set, operand| sets.union(set, operands.set(operand)));
        Ok((meaning, set))
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
}

/// Both halves equal, for time models without truth between events.
fn lasting(wire: Wire) -> Halves {
    Halves { at: wire, after: wire }
}
