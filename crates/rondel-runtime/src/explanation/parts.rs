//! The fields and parts of a formula that explanations show.

use std::collections::HashSet;

use rondel_event::{Path, Quantifier, Read, TopicId, ValueType};
use rondel_spec::{Class, Expr, ExprId, Machine, MachineId, Property, Spec};

use super::machines;
use super::terms::{compares_numbers, is_measured, shown_side};
use crate::specification::formula::{self, Atom, Pair, word};

/// A field that a formula reads.
pub(super) type ReadField = (TopicId, Path, Read);

/// Parts of a formula that an explanation shows.
#[derive(Default)]
pub(super) struct Parts<'s> {
    /// The fields that it reads.
    pub(super) read: Vec<(ExprId, ReadField)>,
    /// Parts to be watched, from the outside in.
    pub(super) made: Vec<ExprId>,
    /// The arrays whose elements are compared with numbers.
    pub(super) arrays: Vec<(ExprId, (TopicId, Path))>,
    /// The terms whose values decide comparisons, from the outside in.
    pub(super) terms: Vec<ExprId>,
    /// The parts that read the element of an instance, each with the parameter that names it.
    pub(super) elements: Vec<(ExprId, Box<str>)>,
    /// The parts that are explained by the transitions of a machine.
    pub(super) stateful: Vec<(ExprId, (MachineId, &'s Machine))>,
}

/// Returns of a node that reads a field of the element of an instance the parameter, and whether the field is a value.
fn of_element(node: &Expr) -> Option<(&str, bool)> {
    let (path, is_value) = match node {
        Expr::Field { path, value_type, .. } => (path, *value_type != ValueType::Bool),
        Expr::Elements { path, quantifier, .. } => (path, quantifier.value_type() != ValueType::Bool),
        Expr::Length { path, .. } | Expr::Number { path, .. } => (path, true),
        _ => return None,
    };
    Some((path.of_each()?.1.parameter.as_deref()?, is_value))
}

/// The parts of a property's formula, and of the conditions of its machines.
pub(super) fn parts_of<'s>(spec: &'s Spec, property: &Property) -> Parts<'s> {
    let formula = property.formula;
    let (mut fields, mut parts, mut stateful) = (Vec::new(), Vec::new(), Vec::new());
    let (mut arrays, mut elements) = (Vec::new(), Vec::new());
    let (mut terms, mut full): (Vec<ExprId>, HashSet<ExprId>) = Default::default();
    let mut seen = HashSet::from([formula]);
    // Each node, and whether it may depend on a variable: then it cannot be a property.
    let mut open = vec![(formula, false)];
    while let Some((id, bound)) = open.pop() {
        let node = &spec.nodes[id.index()];
        let mut below: Vec<ExprId> = node.operands().collect();
        if let Some((parameter, is_value)) = of_element(node) {
            elements.push((id, parameter.into()));
            // Each instance has its own element, which no column of a message is.
            if !bound {
                if is_value { &mut terms } else { &mut parts }.push(id);
            }
            continue;
        }
        if let Expr::Elements { topic, path, quantifier, conditions } = node
            && compares_numbers(*quantifier, conditions)
        {
            arrays.push((id, (*topic, path.clone())));
        }
        let reads_fields = add_fields(&mut fields, id, node);
        let mut is_part = match node {
            _ if reads_fields => false,
            _ if matches!(node.class(), Class::Connective | Class::Constant) => false,
            _ => spec.value_type(id) == ValueType::Bool && !spec.is_unknown(id),
        };
        if let Some(word) = word(spec, id) {
            below = vec![word.operand];
            is_part = true;
        } else if let Some(atom) = formula::atom(spec, id).filter(|_| !bound) {
            // The fields of the atom show which of its conditions fails.
            below = read_by(spec, &atom);
            is_part = true;
        }
        if is_part && !bound {
            parts.push(id);
        }
        let sides = below.iter().filter_map(|operand| shown_side(spec, id, *operand));
        let its = is_measured(spec, id).then_some(id).into_iter().chain(sides);
        if let Expr::If(_, chosen, other) = node
            && chosen == other
        {
            // A full window is one term.
            full.insert(*chosen);
        }
        let its = its.filter(|term| !full.contains(term));
        for term in its.filter(|term| !bound || !reads_variable(spec, *term)) {
            if !terms.contains(&term) {
                terms.push(term);
            }
        }
        let bound = bound || node.class() == Class::Quantifier;
        let machine = machines::of(spec, property, id);
        let moves = machine.into_iter().flat_map(|(_, machine)| &machine.transitions);
        let conditions: Vec<ExprId> = moves.filter_map(|transition| transition.guard).collect();
        for condition in conditions.into_iter().rev().filter(|condition| seen.insert(*condition)) {
            open.push((condition, bound || machines::reads_machine(spec, condition)));
        }
        stateful.extend(machine.map(|machine| (id, machine)));
        let below = below.into_iter().rev().filter(|operand| seen.insert(*operand));
        open.extend(below.map(|operand| (operand, bound)));
    }
    Parts { read: fields, made: parts, arrays, terms, elements, stateful }
}

/// Adds the fields that a node reads, and the element that decides a quantifier. Returns whether the node only reads fields,
/// so that it is no part by itself.
fn add_fields(fields: &mut Vec<(ExprId, ReadField)>, id: ExprId, node: &Expr) -> bool {
    let mut add = |topic: TopicId, path: &Path, read: Read| fields.push((id, (topic, path.clone(), read)));
    if let Expr::Elements { topic, path, quantifier, conditions } = node
        && is_decided_by_one(*quantifier)
    {
        add(*topic, path, Read::Witness(*quantifier, conditions.clone()));
    }
    match (node, node.field()) {
        (Expr::Bind { topic, fields: these }, _) => {
            these.iter().for_each(|(path, _, value_type)| add(*topic, path, Read::Value(*value_type)));
            true
        }
        // A test of a field is a part by itself.
        (Expr::Carried { .. } | Expr::IsNan { .. }, _) => false,
        (Expr::Elements { quantifier, .. }, _) if quantifier.value_type() == ValueType::Bool => false,
        (_, Some((topic, path, read))) => {
            add(topic, path, read);
            true
        }
        _ => false,
    }
}

/// Whether a term reads a variable, of a quantifier or of a machine whose condition it is in.
fn reads_variable(spec: &Spec, term: ExprId) -> bool {
    spec.below(term).any(|(_, node)| matches!(node, Expr::Variable(..) | Expr::Bind { .. }))
        || machines::reads_machine(spec, term)
}

/// Whether one element decides the truth of a quantifier over an array.
fn is_decided_by_one(quantifier: Quantifier) -> bool {
    matches!(quantifier, Quantifier::Any | Quantifier::All | Quantifier::Min | Quantifier::Max)
}

/// Nodes that the conditions of an atom read.
fn read_by(spec: &Spec, atom: &Atom<'_>) -> Vec<ExprId> {
    let conditions = atom.pairs.iter().filter_map(|pair| match pair {
        Pair::Where(_, condition) => Some(*condition),
        Pair::Bind(..) => None,
    });
    let read = conditions.flat_map(|condition| match &spec.nodes[condition.index()] {
        Expr::Field { .. } => vec![condition],
        node => node.operands().collect(),
    });
    read.collect()
}

/// An equivalent formula or term that mentions these topics: they decide which messages an instance sees.
pub(super) fn seeing(spec: &mut Spec, formula: ExprId, topics: &[TopicId]) -> ExprId {
    let mut seen = spec.topics_of(formula);
    let whole = spec.whole_events(formula);
    seen.retain(|topic| spec.events_of(*topic).is_none() || whole.contains(topic));
    let is_term = spec.value_type(formula) != ValueType::Bool;
    let mut add = |node: Expr| {
        spec.nodes.push(node);
        ExprId(spec.nodes.len() as u32 - 1)
    };
    topics.iter().filter(|topic| !seen.contains(topic)).fold(formula, |formula, topic| {
        let on = add(Expr::On(*topic));
        let off = add(Expr::Not(on));
        if is_term {
            let always = add(Expr::Or(on, off));
            return add(Expr::If(always, formula, formula));
        }
        let never = add(Expr::And(on, off));
        add(Expr::Or(formula, never))
    })
}
