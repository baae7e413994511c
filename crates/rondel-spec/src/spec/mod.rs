//! The checked specification: the output of the front ends and the input of the engine.

mod class;
mod declaration;
mod expression;
mod fold;
mod operator;
pub(crate) mod places;
mod topic;

use std::collections::{BTreeSet, HashMap};

use rondel_event::{TopicId, ValueType};

pub use self::class::{Class, Temporal};
pub use self::declaration::{
    Chain, ChainMeasure, Expectation, Key, Machine, Property, Slice, State, Test, TestMessage, Transition,
    Variable,
};
pub use self::expression::{Bounds, Expr, ExprId};
pub use self::fold::{Below, fold};
pub use self::operator::{Aggregate, BinaryOp, UnaryOp, binary_type};
use self::places::Places;
pub use self::topic::{Schema, SchemaType, Topic};

/// A parsed, resolved and typed specification: topics, and properties as nodes of one graph.
///
/// Each use of a `let` or `const` is a reference to a shared node. Nodes refer only to earlier nodes, so a single pass
/// in order visits all operands first and needs no recursion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// The topics in order of declaration, indexed by [`TopicId`]. The topics of [`events`](Spec::events) follow them.
    pub topics: Vec<Topic>,
    /// For each of the last topics the declared topic whose [events](rondel_event::TopicEvent) it carries: see [`Spec::events_of`].
    pub events: Vec<TopicId>,
    /// For each topic behind those the topic whose messages it carries element by element. A front end adds none; the engine
    /// gives them to the instances of a `for each` over the elements of an array.
    pub elements: Vec<TopicId>,
    /// The properties in order of declaration.
    pub properties: Vec<Property>,
    /// All nodes, indexed by [`ExprId`].
    pub nodes: Vec<Expr>,
    /// The `for each` clauses of properties and machines, indexed by [`SliceId`].
    pub slices: Vec<Slice>,
    /// The machines, indexed by [`MachineId`]. Each also has a property of its name.
    pub machines: Vec<Machine>,
    /// The chains, indexed by [`ChainId`]. Each also has a property of its name.
    pub chains: Vec<Chain>,
    /// The tests of the specification.
    pub tests: Vec<Test>,
    /// The source locations of the nodes.
    pub places: Places,
}

/// The time model of a property: how it measures time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TimeModel {
    /// Each event is one step; bounds count steps.
    #[default]
    Steps,
    /// Bounds are nanoseconds between events; formulas have a value only at events.
    Points,
    /// Bounds are nanoseconds; a field holds its value until the next message, the arrival of a message lasts for one
    /// instant, and formulas have a value at every time point, including between events.
    Dense,
}

/// The index of a [`Slice`] in a [`Spec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SliceId(pub u32);

/// The index of a [`Machine`] in a [`Spec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MachineId(pub u32);

/// The index of a [`Chain`] in a [`Spec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChainId(pub u32);

/// The identifier of a quantifier variable, unique in the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VariableId(pub u32);

impl Spec {
    /// Returns for each property the name that stands in addresses on networks: its own; of an assert whose name is
    /// its text, `assert_1` and so on by its place among the asserts.
    ///
    /// ```
    /// let text = "topic a property p = a.v > 0 assert always p assert mostly = share(p) >= 0.9 assert ever p";
    /// let spec = rondel_spec::parse(text).spec.unwrap();
    /// assert_eq!(spec.address_names(), ["p", "assert_1", "mostly", "assert_3"]);
    /// ```
    pub fn address_names(&self) -> Vec<String> {
        let mut number = 0;
        let name = |property: &Property| {
            if property.criterion.is_none() {
                return property.name.clone();
            }
            number += 1;
            // A text has spaces or parentheses.
            if property.name.chars().all(|c| c.is_alphanumeric() || c == '_') {
                return property.name.clone();
            }
            let mut name = format!("assert_{number}");
            while self.properties.iter().any(|other| other.name == name) {
                name.push('_');
            }
            name
        };
        self.properties.iter().map(name).collect()
    }

    /// Returns the topics that a property mentions: in its formula, in the `until` of its `for each`, and in parts of both
    /// that constants decide.
    pub fn topics_of_property(&self, property: &Property) -> Vec<TopicId> {
        let until = property.slice.and_then(|slice| self.slices.get(slice.0 as usize)?.until);
        let roots = [Some(property.formula), until].into_iter().flatten();
        let mut topics: Vec<TopicId> = roots.flat_map(|root| self.topics_of(root)).collect();
        topics.extend(property.mentions.iter().filter(|topic| topic.index() < self.topics.len()));
        topics.sort_unstable();
        topics.dedup();
        topics
    }

    /// Returns the topics that a node mentions, directly or through its operands, in order of declaration.
    ///
    /// ```
    /// let text = "topic a topic b let x = a.v + b.v property p = x > 0 and on(b)";
    /// let spec = rondel_spec::parse(text).spec.unwrap();
    /// let topics = spec.topics_of(spec.properties[0].formula);
    /// assert_eq!(topics.len(), 2);
    /// ```
    pub fn topics_of(&self, id: ExprId) -> Vec<TopicId> {
        let mut topics = BTreeSet::new();
        for (_, node) in self.below_with_machines([id]) {
            topics.extend(node.topics());
            if let Expr::Chain(chain, _) = node {
                let chain = self.chains.get(chain.0 as usize);
                topics.extend(chain.into_iter().flat_map(|c| &c.links).map(|(topic, _)| *topic));
            }
        }
        topics.into_iter().collect()
    }

    /// Returns the type of a node.
    pub fn value_type(&self, id: ExprId) -> ValueType {
        // The type of arithmetic depends on both operands, so they are collected first and typed in order.
        let mut needed = BTreeSet::from([id]);
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            let node = &self.nodes[id.index()];
            open.extend(node.typed_by().filter(|operand| needed.insert(*operand)));
        }
        let mut types = HashMap::new();
        for id in needed {
            let value_type = self.nodes[id.index()].type_with(|operand| types[&operand]);
            types.insert(id, value_type);
        }
        types[&id]
    }
}
