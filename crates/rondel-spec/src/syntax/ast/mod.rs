//! The syntax tree of a specification, before names are resolved and types inferred.

mod declaration;
mod node;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

pub(crate) use self::declaration::{
    Assert, Attribute, Binding, Body, Chain, ChainBound, Content, ContentKind, DefinitionSyntax, Demanded,
    ErrorState, Expect, ForEach, Machine, MachineVariable, Message, Parameter, Property, PropertySource,
    Test, Topic, Transition,
};
pub(crate) use self::node::{
    Bound, BoundKind, BoundsSyntax, Function, Infix, Measure, Node, NodeKind, Pair, Prefix,
};
pub(crate) use super::elements::{ElementTest, ElementsSyntax};
use crate::diagnostic::Span;
use crate::modules::Modules;

/// The index of a node in [`Ast::nodes`].
///
/// All nodes are in one vector, operands before their operators, so that neither later passes nor dropping the tree
/// need recursion, however deep an expression is.
pub(crate) type NodeId = usize;

#[derive(Debug, Default)]
pub(crate) struct Ast {
    pub(crate) topics: Vec<Topic>,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) properties: Vec<Property>,
    pub(crate) machines: Vec<Machine>,
    pub(crate) chains: Vec<Chain>,
    pub(crate) asserts: Vec<Assert>,
    pub(crate) tests: Vec<Test>,
    /// The declarations that become properties, in order.
    pub(crate) property_sources: Vec<PropertySource>,
    /// The `for each` of properties and machines, and the stamps of chains.
    pub(crate) for_eaches: Vec<ForEach>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) definitions: Vec<DefinitionSyntax>,
    /// The names of definitions with parameters where they are used.
    pub(crate) calls: Vec<Name>,
    /// The names of their parameters, in the body and before arguments, each with the name of the definition.
    pub(crate) parameter_uses: Vec<(String, Name)>,
    /// The nodes that were written in a definition with parameters: names of their declaration do not concern them.
    pub(crate) expanded: HashSet<NodeId>,
    /// The arguments of which fields are read in definitions.
    pub(crate) given: HashMap<NodeId, Span>,
    /// The variables of quantifiers; the parser resolves their uses.
    pub(crate) variables: Vec<Name>,
    /// The offset at which the imported files end: what is declared before it may be unused.
    pub(crate) imported: usize,
    /// The name spaces of the files.
    pub(crate) modules: Rc<Modules>,
    /// The aliases of imports, with their uses.
    pub(crate) aliases: Vec<(Name, Vec<Span>)>,
    /// Whether this is a single formula, whose names are fields of its only topic.
    pub(crate) single: bool,
}

impl Ast {
    /// Returns the expression that a node stands for: where it is the use of a parameter, the argument.
    pub(crate) fn given(&self, mut node: NodeId) -> NodeId {
        while let NodeKind::Same(inner) | NodeKind::Argument(inner, ..) = self.nodes[node].kind {
            node = inner;
        }
        node
    }

    /// Returns the name of the property that a declaration becomes.
    pub(crate) fn source_name(&self, source: PropertySource) -> &Name {
        match source {
            PropertySource::Property(i) => &self.properties[i].name,
            PropertySource::Machine(i) => &self.machines[i].name,
            PropertySource::Chain(i) => &self.chains[i].name,
            PropertySource::ChainBound(i, bound) => &self.chains[i].bounds[bound].name,
        }
    }
}

/// A word and its location. The names of declarations are full: `limits.near` for `near` in a file that is imported as
/// `limits`.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) span: Span,
}
