//! From the tree to a [`Spec`]: names, then types, then nodes.

mod arithmetic;
mod attributes;
mod chains;
mod constant;
mod examples;
mod fields;
mod future;
mod instants;
mod kinds;
mod linear;
mod lower;
mod machines;
mod names;
mod slices;
mod time;
mod variables;

use std::collections::HashMap;

use rondel_event::{Path, TopicId, Value, ValueType};

pub(crate) use self::constant::constant_property;
pub(crate) use self::fields::Fields;
pub(crate) use self::kinds::article;
pub(crate) use self::linear::not_piecewise_linear;
pub(crate) use self::variables::shadowing;
use crate::ParseOptions;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::graph::Graph;
use crate::spec::{ChainId, ChainMeasure, MachineId, Spec, TimeModel, Topic, VariableId};
use crate::syntax::ast::{Ast, NodeId};

/// What a node of the tree stands for, once names are looked up.
#[derive(Clone, Debug, Default)]
enum Meaning {
    /// What its syntax says.
    #[default]
    Itself,
    /// A field, with the type that a schema declares for it and where.
    Field { topic: TopicId, path: Path, declared: Option<(ValueType, Option<Span>)> },
    /// A `let` or `const`, by its position.
    Binding(usize),
    /// The topic that the node names.
    Topic(TopicId),
    /// An embedded formula about this topic, and where its first bounds are, if it has some.
    Formula { topic: TopicId, bounds: Option<Span> },
    /// A key of a `for each`: which of all, and which key of it.
    Key(usize, usize),
    /// A variable of a machine: which machine, and which variable of it.
    MachineVariable(usize, usize),
    /// A machine being in one of these states.
    InState(MachineId, Vec<u32>),
    /// A measurement of a chain.
    Chain(ChainId, ChainMeasure),
    /// What has been reported and is not looked at further.
    Broken,
}

/// What a name stands for within one declaration.
#[derive(Clone, Copy, Debug)]
enum Local {
    /// A key of its `for each`: which of all, and which key of it.
    Key(usize, usize),
    /// A variable of its machine: which machine, and which variable of it.
    Variable(usize, usize),
}

impl Local {
    fn meaning(self) -> Meaning {
        match self {
            Local::Key(each, key) => Meaning::Key(each, key),
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
    /// The names that only the declaration knows that is being looked at.
    locals: slices::Locals<'a>,
    /// What the bounds of each machine say about time.
    machine_units: Vec<time::Units>,
    /// What the variables of each machine begin with; nothing for what is broken.
    machine_data: Vec<Vec<Option<Value>>>,
    /// How each chain measures time, and in how long a stamp should come out; nothing for what is broken.
    chain_reaches: Vec<Option<(TimeModel, u64)>>,
    /// The topics of the messages of each test; nothing for what is broken.
    test_topics: Vec<Vec<Option<TopicId>>>,
    /// For every binding those that it refers to.
    references: Vec<Vec<usize>>,
    used: Vec<bool>,
    /// The bindings that bounds name, by the place of the name.
    bounds: HashMap<Span, usize>,
    /// The bindings such that each comes after those that it refers to.
    order: Vec<usize>,
    /// The types of fields that have no declared one, by their node.
    kinds: kinds::Kinds,
    /// For every node the first operator of the future in it.
    future: Vec<Option<NodeId>>,
    /// The model of the properties that do not choose one.
    time: Option<TimeModel>,
    /// Whether numbers run straight in the properties that do not say how time runs in them.
    linear: bool,
    /// Whether numbers run straight in what is being lowered.
    interpolated: bool,
    /// The name of what is being lowered, if it does not say itself how it measures time.
    implicit_time: Option<Span>,
    /// For every binding what its bounds say about time.
    units: Vec<time::Units>,
    /// What the nodes have become, in each of the time models.
    lowered: [lower::Lowered; 3],
    /// The types of the variables of quantifiers, and what they have become in each of the models.
    variable_types: Vec<ValueType>,
    variables: HashMap<(usize, TimeModel), VariableId>,
}

/// Checks `ast`, which was read from `text`. `topic` is the name of the one topic of a single
/// formula. The result is worth something only if there is no error among the diagnostics.
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
    if ast.property_sources.is_empty() && !checker.diagnostics.iter().any(Diagnostic::is_error) {
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
        address: topic.address.clone().unwrap_or_else(|| name.clone()),
        name,
        type_name: topic.type_name.clone(),
        schema: topic.schema.clone(),
    }
}

impl Checker<'_> {
    fn span(&self, node: NodeId) -> Span {
        self.ast.nodes[node].span
    }

    fn is_broken(&self, node: NodeId) -> bool {
        matches!(self.meanings[node], Meaning::Broken)
    }

    /// Reports something about a node, and looks at the node no further.
    fn broken(&mut self, node: NodeId, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
        self.meanings[node] = Meaning::Broken;
    }
}

#[cfg(test)]
mod declaration_tests;
#[cfg(test)]
mod tests;
