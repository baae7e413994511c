//! Construction of the nodes of a [`Spec`]: shares equal nodes, folds constants, and puts operands first.

mod arithmetic;
mod logic;
mod possible;
mod temporal;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use rondel_event::{TopicId, Value, ValueType};

use self::possible::PossibleValues;
use crate::diagnostic::Span;
use crate::spec::places::Places;
use crate::spec::{Bounds, Expr, ExprId, Spec};

#[derive(Debug, Default)]
pub(crate) struct Graph {
    spec: Spec,
    types: Vec<ValueType>,
    possible_values: Vec<PossibleValues>,
    /// Nodes by hash. Of several nodes with equal hashes only the first is shared.
    known: HashMap<u64, ExprId>,
    /// Cache of [`Graph::topics_of`].
    topics: HashMap<ExprId, Vec<TopicId>>,
    /// The source location of the nodes added next.
    place: Span,
    /// For the disjunctions that were written as implications, their premises.
    implications: HashMap<ExprId, ExprId>,
}

/// Returns whether the bounds are empty.
pub(crate) fn is_empty(bounds: Bounds) -> bool {
    bounds.upper.is_some_and(|upper| bounds.lower > upper)
}

/// Calls `f` with every node that is referenced from outside the graph.
fn roots(spec: &mut Spec, mut f: impl FnMut(&mut ExprId)) {
    for property in &mut spec.properties {
        f(&mut property.formula);
        property.premises.iter_mut().for_each(&mut f);
    }
    spec.slices.iter_mut().filter_map(|slice| slice.until.as_mut()).for_each(&mut f);
    for transition in spec.machines.iter_mut().flat_map(|machine| &mut machine.transitions) {
        transition.guard.iter_mut().for_each(&mut f);
        transition.assignments.iter_mut().for_each(|(_, value)| f(value));
    }
}

impl Graph {
    /// The specification under construction; the caller adds topics and properties.
    pub(crate) fn spec_mut(&mut self) -> &mut Spec {
        &mut self.spec
    }

    pub(crate) fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Returns the finished specification, without unused nodes.
    pub(crate) fn finish(self) -> Spec {
        let mut spec = self.spec;
        let nodes = std::mem::take(&mut spec.nodes);
        let words = std::mem::take(&mut spec.places.nodes);
        let mut needed = vec![false; nodes.len()];
        roots(&mut spec, |root| needed[root.index()] = true);
        for (i, node) in nodes.iter().enumerate().rev() {
            if needed[i] {
                node.operands().for_each(|o| needed[o.index()] = true);
                let call = spec.places.call(ExprId(i as u32));
                call.into_iter().flat_map(|call| &call.operands).for_each(|o| needed[o.index()] = true);
            }
        }
        let mut places = vec![ExprId(0); nodes.len()];
        for (i, (mut node, place)) in nodes.into_iter().zip(words).enumerate() {
            if needed[i] {
                node.operands_mut().for_each(|o| *o = places[o.index()]);
                places[i] = ExprId(spec.nodes.len() as u32);
                spec.nodes.push(node);
                spec.places.nodes.push(place);
            }
        }
        roots(&mut spec, |root| *root = places[root.index()]);
        let place = |id: ExprId| needed[id.index()].then(|| places[id.index()]);
        spec.places.calls = spec.places.calls_with(place);
        spec.places.definitions = Places::moved(&spec.places.definitions, place);
        spec.places.elements = Places::moved(&spec.places.elements, place);
        spec
    }

    /// Names what a node computes as its definition does. Constants and fields, of which there may be many uses, keep
    /// their own text.
    pub(crate) fn name(&mut self, id: ExprId, name: &str) {
        let computes = !matches!(
            self.spec.nodes[id.index()],
            Expr::Literal(_)
                | Expr::Field { .. }
                | Expr::Length { .. }
                | Expr::Number { .. }
                | Expr::Key(..)
                | Expr::Variable(..)
                | Expr::MachineVariable(..)
                | Expr::On(_)
        );
        if computes {
            self.spec.places.definitions.entry(id).or_insert_with(|| name.to_owned());
        }
    }

    pub(crate) fn value_type(&self, id: ExprId) -> ValueType {
        self.types[id.index()]
    }

    /// As [`Spec::topics_of`], with a cache: for definitions that refer to each other in a chain, the whole chain
    /// would otherwise be visited for each of them.
    pub(crate) fn topics_of(&mut self, id: ExprId) -> Vec<TopicId> {
        let mut seen = HashSet::from([id]);
        let mut open = vec![id];
        let mut topics = BTreeSet::new();
        while let Some(next) = open.pop() {
            if let Some(known) = self.topics.get(&next) {
                topics.extend(known);
                continue;
            }
            let Some(node) = self.spec.nodes.get(next.index()) else { continue };
            // The formulas of these may not be translated yet.
            if node.machine().is_some() || matches!(node, Expr::Chain(..)) {
                return self.spec.topics_of(id);
            }
            topics.extend(node.topics());
            open.extend(node.operands().filter(|operand| seen.insert(*operand)));
        }
        let topics: Vec<TopicId> = topics.into_iter().collect();
        self.topics.insert(id, topics.clone());
        topics
    }

    pub(crate) fn constant(&self, id: ExprId) -> Option<&Value> {
        match &self.spec.nodes[id.index()] {
            Expr::Literal(value) => Some(value),
            _ => None,
        }
    }

    fn truth(&self, id: ExprId) -> Option<bool> {
        match self.constant(id) {
            Some(Value::Bool(b)) => Some(*b),
            _ => None,
        }
    }

    /// Sets the source location of the nodes added next.
    pub(crate) fn at(&mut self, place: Span) {
        self.place = place;
    }

    /// Adds a node without folding constants.
    pub(crate) fn add(&mut self, expr: Expr) -> ExprId {
        let mut hasher = DefaultHasher::new();
        expr.hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(id) = self.known.get(&hash)
            && self.spec.nodes[id.index()] == expr
        {
            return *id;
        }
        let id = ExprId(self.spec.nodes.len() as u32);
        self.types.push(expr.type_with(|operand| self.types[operand.index()]));
        self.possible_values.push(self.possible_values_of(&expr));
        self.spec.nodes.push(expr);
        self.spec.places.nodes.push(self.place);
        self.known.entry(hash).or_insert(id);
        id
    }

    pub(crate) fn literal(&mut self, value: Value) -> ExprId {
        self.add(Expr::Literal(value))
    }

    pub(crate) fn bool(&mut self, value: bool) -> ExprId {
        self.literal(Value::Bool(value))
    }

    pub(crate) fn float(&mut self, value: f64) -> ExprId {
        self.literal(Value::Float(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{BinaryOp, UnaryOp};

    #[test]
    fn equal_nodes_are_shared() {
        let mut g = Graph::default();
        let on = g.add(Expr::On(TopicId(0)));
        let a = g.rising(on);
        let b = g.rising(on);
        assert_eq!(a, b);
        assert_eq!(g.and(a, b), a);
        let (x, y) = (g.float(0.0), g.float(-0.0));
        assert_ne!(x, y, "the sign of zero is kept");
    }

    #[test]
    fn constants_are_folded() {
        let mut g = Graph::default();
        let on = g.add(Expr::On(TopicId(0)));
        let (yes, no) = (g.bool(true), g.bool(false));
        let past = |lower, upper| Bounds { lower, upper };
        assert_eq!(g.implies(no, on), yes);
        assert_eq!(g.iff(yes, on), on);
        assert_eq!(g.once(past(3, Some(2)), on), no);
        assert_eq!(g.historically(past(3, Some(2)), on), yes);
        assert_eq!(g.since(Bounds::ALL, no, on), on);
        assert_eq!(g.since(past(1, None), no, on), no);
        assert_ne!(g.once(past(1, None), yes), yes, "nothing is one step before the first");
        assert_ne!(g.previously(yes), yes);
        let (a, b) = (g.literal(Value::Int(7)), g.literal(Value::Int(2)));
        let quotient = g.binary(BinaryOp::Divide, a, b).unwrap();
        assert_eq!(g.constant(quotient), Some(&Value::Int(3)));
        let zero = g.literal(Value::Int(0));
        assert_eq!(g.binary(BinaryOp::Remainder, a, zero), None);
        let least = g.literal(Value::Int(i64::MIN));
        assert_eq!(g.unary(UnaryOp::Abs, least), None);
        let not = g.not(on);
        let vacuous = g.or(on, not);
        assert!(!g.possible_values(vacuous).can_be_false);
        let within = g.historically(past(1, None), vacuous);
        assert!(!g.possible_values(within).can_be_false);
        let within = g.and(on, not);
        let within = g.previously(within);
        assert!(!g.possible_values(within).can_be_true && g.possible_values(within).can_be_false);
        let minus = g.literal(Value::Int(-1));
        assert_eq!(g.binary(BinaryOp::Divide, least, minus), None);
    }

    /// Going through the whole chain for every definition would take minutes.
    #[test]
    fn a_long_chain_of_definitions_is_gone_through_once() {
        let definition = |i: usize| format!("let d{i} = changed(d{})\n", i - 1);
        let definitions: String = (1..10_000).map(definition).collect();
        let text = format!("topic a {{ x: int }}\nlet d0 = a.x > 0\n{definitions}property p = d9999");
        assert!(crate::parse(&text).spec.is_some());
    }
}
