//! Message atoms, `topic{field: value}`, in the conjunctions that they stand for.

use rondel_event::{Path, TopicId};
use rondel_spec::{Expr, ExprId, Spec, VariableId};

use super::word;

/// The number of conjuncts among which atoms are looked for.
const MOST: usize = 64;

/// Conditions on the current message of a topic.
#[derive(Debug)]
pub struct Atom<'s> {
    /// The topic.
    pub topic: TopicId,
    /// Its pairs, at least one.
    pub pairs: Vec<Pair<'s>>,
}

/// A pair of an atom.
#[derive(Debug)]
pub enum Pair<'s> {
    /// A field that binds a variable: `field: x`.
    Bind(&'s Path, VariableId),
    /// A field that the message carries, and a condition on it: `field < 3`.
    Where(&'s Path, ExprId),
}

/// An operand of a conjunction.
#[derive(Debug)]
pub enum Conjunct<'s> {
    /// Conjuncts that are one atom.
    Atom(Atom<'s>),
    /// Another formula.
    Formula(ExprId),
}

/// The operands of a conjunction in which there is an atom with conditions; none for other formulas.
pub fn conjuncts(spec: &Spec, id: ExprId) -> Option<Vec<Conjunct<'_>>> {
    let node = |id: ExprId| &spec.nodes[id.index()];
    let (mut operands, mut first) = (Vec::new(), id);
    while let Expr::And(a, b) = node(first)
        && word(spec, first).is_none()
        && spec.places.call(first).is_none()
        && operands.len() < MOST
    {
        operands.push(*b);
        first = *a;
    }
    operands.push(first);
    operands.reverse();
    let mut all: Vec<Conjunct<'_>> = Vec::new();
    let mut operands = operands.into_iter().peekable();
    while let Some(operand) = operands.next() {
        match node(operand) {
            Expr::Bind { topic, fields } => {
                let pairs = fields.iter().map(|(path, variable, _)| Pair::Bind(path, *variable)).collect();
                all.push(Conjunct::Atom(Atom { topic: *topic, pairs }));
            }
            carried @ Expr::Carried { topic, path } if spec.event(carried).is_none() => {
                let Some(condition) = operands.next_if(|next| is_about(spec, *next, *topic, path)) else {
                    all.push(Conjunct::Formula(operand));
                    continue;
                };
                let pair = Pair::Where(path, condition);
                match all.last_mut() {
                    Some(Conjunct::Atom(atom)) if atom.topic == *topic => atom.pairs.push(pair),
                    _ => all.push(Conjunct::Atom(Atom { topic: *topic, pairs: vec![pair] })),
                }
            }
            _ => all.push(Conjunct::Formula(operand)),
        }
    }
    let has_conditions = |conjunct: &Conjunct<'_>| match conjunct {
        Conjunct::Atom(atom) => atom.pairs.iter().any(|pair| matches!(pair, Pair::Where(..))),
        Conjunct::Formula(_) => false,
    };
    all.iter().any(has_conditions).then_some(all)
}

/// The atom that a formula is as a whole, if it has conditions.
pub fn atom(spec: &Spec, id: ExprId) -> Option<Atom<'_>> {
    let mut all = conjuncts(spec, id)?;
    match (all.pop(), all.is_empty()) {
        (Some(Conjunct::Atom(atom)), true) => Some(atom),
        _ => None,
    }
}

/// Whether a condition can stand in an atom at a field.
fn is_about(spec: &Spec, condition: ExprId, topic: TopicId, path: &Path) -> bool {
    match &spec.nodes[condition.index()] {
        Expr::Compare(_, field, _) => is_field(spec, *field, topic, path),
        Expr::Not(field) => is_field(spec, *field, topic, path),
        _ => is_field(spec, condition, topic, path),
    }
}

fn is_field(spec: &Spec, id: ExprId, of: TopicId, at: &Path) -> bool {
    match &spec.nodes[id.index()] {
        Expr::Field { topic, path, .. } => (*topic, path) == (of, at),
        Expr::ToFloat(field) => is_field(spec, *field, of, at),
        _ => false,
    }
}
