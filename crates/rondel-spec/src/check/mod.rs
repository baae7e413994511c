//! Semantic analysis: resolves names, infers types, and translates the syntax tree into a [`Spec`].

mod advice;
mod arithmetic;
mod asserts;
mod attributes;
mod causes;
mod chains;
mod constant;
mod definitions;
mod element_names;
mod elements;
mod enumerations;
mod events;
mod examples;
mod future;
mod instants;
mod kinds;
mod length;
mod linear;
mod lower;
mod machines;
mod names;
mod number;
mod percentage;
mod slices;
mod time;
mod values;
mod variables;

use std::collections::HashMap;

use rondel_event::{Countable, Path, TopicId, Value, ValueType};

pub(crate) use self::constant::constant_property;
pub(crate) use self::definitions::define;
pub(crate) use self::linear::not_piecewise_linear;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::graph::Graph;
use crate::options::ParseOptions;
use crate::spec::{ChainId, ChainMeasure, MachineId, SliceId, Spec, TimeModel, Topic, VariableId};
use crate::syntax::ast::{Ast, NodeId};

/// The meaning of a syntax node after name resolution.
#[derive(Clone, Debug, Default)]
enum Meaning {
    /// The meaning that its syntax determines.
    #[default]
    Itself,
    /// A field, with its declared type and the location of the declaration.
    Field { topic: TopicId, path: Path, declared: Option<(ValueType, Option<Span>)> },
    /// The length of a field.
    Length { topic: TopicId, path: Path, of: Option<Countable> },
    /// A number that may be written as a text.
    Number { topic: TopicId, path: Path },
    /// Conditions on the elements of a field, with the declared type of what each compares.
    Elements { topic: TopicId, path: Path, declared: Vec<Option<ValueType>> },
    /// A `let` or `const`, by its index.
    Binding(usize),
    /// A topic.
    Topic(TopicId),
    /// An embedded formula with its topic, and the location of its first bound, if it has one.
    Formula { topic: TopicId, bounds: Option<Span> },
    /// A parameter: the index of its `for each`, and of the parameter.
    Parameter(usize, usize),
    /// A variable of a machine: the index of the machine, and of the variable.
    MachineVariable(usize, usize),
    /// A test whether a machine is in one of these states.
    InState(MachineId, Vec<u32>),
    /// A measurement of a chain.
    Chain(ChainId, ChainMeasure),
    /// An invalid node that has been reported.
    Invalid,
}

/// The meaning of a name that is local to a declaration.
#[derive(Clone, Copy, Debug)]
enum Local {
    /// A parameter: the index of its `for each`, and of the parameter.
    Parameter(usize, usize),
    /// A variable of a machine: the index of the machine, and of the variable.
    Variable(usize, usize),
}

impl Local {
    fn meaning(self) -> Meaning {
        match self {
            Local::Parameter(each, key) => Meaning::Parameter(each, key),
            Local::Variable(machine, variable) => Meaning::MachineVariable(machine, variable),
        }
    }
}

struct Checker<'a> {
    text: &'a str,
    ast: &'a Ast,
    diagnostics: &'a mut Vec<Diagnostic>,
    graph: Graph,
    meanings: Vec<Meaning>,
    /// The local names of the current declaration.
    locals: slices::Locals<'a>,
    /// The units of the bounds of each machine.
    machine_units: Vec<time::Units>,
    /// The initial values of the variables of each machine; none for invalid ones.
    machine_data: Vec<Vec<Option<Value>>>,
    /// The time model and the latency bound of each chain; none for invalid ones.
    chain_reaches: Vec<Option<(TimeModel, u64)>>,
    /// The topics of the messages of each test; none for invalid ones.
    test_topics: Vec<Vec<Option<TopicId>>>,
    /// The bindings that each binding refers to.
    references: Vec<Vec<usize>>,
    used: Vec<bool>,
    /// The bindings that bounds name, by the location of the name.
    bounds: HashMap<Span, usize>,
    /// The bindings, in an order in which each follows those that it refers to.
    order: Vec<usize>,
    /// The types of undeclared fields, by node.
    kinds: kinds::Kinds,
    /// The first future operator in each node.
    future: Vec<Option<NodeId>>,
    /// The time model of the properties that do not choose one.
    time: Option<TimeModel>,
    /// Whether the properties that choose neither a time model nor an interpolation are interpolated linearly.
    linear: bool,
    /// Whether the current property is interpolated linearly.
    interpolated: bool,
    /// The name of the current declaration, if it does not choose a time model.
    implicit_time: Option<Span>,
    /// The units of the bounds of each binding.
    units: Vec<time::Units>,
    /// The translated nodes, by time model.
    lowered: [lower::Lowered; 3],
    /// The types of the quantifier variables, and their ids in each time model.
    variable_types: Vec<ValueType>,
    variables: HashMap<(usize, TimeModel), VariableId>,
    /// The parameters that are names of elements, each with the topic and the field that `for each` names.
    element_names: Vec<element_names::ElementName>,
    /// The topics of which properties with parameters read events of instances.
    keyed_events: Vec<(SliceId, TopicId)>,
}

/// Checks `ast`, which was parsed from `text`. `topic` is the name of the only topic of a single formula. The result
/// is valid only if there is no error among the diagnostics.
pub(crate) fn check(
    text: &str,
    ast: &Ast,
    topic: &str,
    options: &ParseOptions,
    diagnostics: &mut Vec<Diagnostic>,
) -> Spec {
    let mut graph = Graph::default();
    graph.spec_mut().topics = if ast.single {
        vec![Topic { name: topic.to_owned(), address: topic.to_owned(), type_name: None, schema: None }]
    } else {
        ast.topics.iter().map(spec_topic).collect()
    };
    let mut checker = Checker {
        text,
        ast,
        diagnostics,
        graph,
        meanings: ast.nodes.iter().map(|_| Meaning::Itself).collect(),
        keyed_events: Vec::new(),
        element_names: Vec::new(),
        locals: Default::default(),
        machine_units: vec![time::Units::default(); ast.machines.len()],
        machine_data: Vec::new(),
        chain_reaches: Vec::new(),
        test_topics: Vec::new(),
        references: vec![Vec::new(); ast.bindings.len()],
        interpolated: false,
        implicit_time: None,
        used: vec![false; ast.bindings.len()],
        bounds: HashMap::new(),
        order: Vec::new(),
        kinds: kinds::Kinds::new(ast.nodes.len() + ast.variables.len()),
        future: vec![None; ast.nodes.len()],
        time: options.time,
        linear: options.linear && options.time == Some(TimeModel::Dense),
        units: vec![time::Units::default(); ast.bindings.len()],
        lowered: Default::default(),
        variable_types: Vec::new(),
        variables: HashMap::new(),
    };
    checker.resolve_names();
    checker.order_bindings();
    checker.infer_kinds();
    checker.check_future();
    checker.collect_units();
    checker.lower();
    if ast.property_sources.is_empty()
        && ast.asserts.is_empty()
        && !checker.diagnostics.iter().any(Diagnostic::is_error)
    {
        let span = Span::new(text.len(), text.len());
        checker.diagnostics.push(
            Diagnostic::new(
                Code::NoProperty,
                span,
                "the specification has no property, so nothing is checked",
            )
            .help("add a property: `property name = formula`"),
        );
    }
    checker.graph.finish()
}

fn spec_topic(topic: &crate::syntax::ast::Topic) -> Topic {
    let name = topic.name.text.clone();
    Topic {
        // The messages of a file are the same, under whatever name it is imported.
        address: topic.address.clone().unwrap_or_else(|| name.rsplit('.').next().unwrap_or(&name).to_owned()),
        name,
        type_name: topic.type_name.as_ref().map(|name| name.text.clone()),
        schema: topic.schema.clone(),
    }
}

impl Checker<'_> {
    fn span(&self, node: NodeId) -> Span {
        self.ast.nodes[node].span
    }

    fn is_invalid(&self, node: NodeId) -> bool {
        matches!(self.meanings[node], Meaning::Invalid)
    }

    /// Reports an error at a node and marks it as invalid.
    fn invalidate(&mut self, node: NodeId, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
        self.meanings[node] = Meaning::Invalid;
    }
}

#[cfg(test)]
mod declaration_tests;
#[cfg(test)]
mod tests;
